//! The OpenAPI document, health, metrics, and problems of the router.

use crate::common::{Kind, Service, problem};
use fhaim_api::problem::ProblemKind;
use fhaim_generation::State;
use fhaim_platform::program::Program;
use reqwest::{Method, StatusCode};
use serde_json::Value;

/// Collects all references of a document with their places.
fn references(value: &Value, place: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let ("$ref", Value::String(target)) = (name.as_str(), field) {
                    found.push((place.to_owned(), target.clone()));
                }
                references(field, &format!("{place}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                references(item, &format!("{place}/{i}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn openapi_references_resolve_and_errors_are_listed() {
    let document = serde_json::to_value(State::openapi()).unwrap();
    let mut found = Vec::new();
    references(&document, "", &mut found);
    assert!(found.len() > 50);
    for (place, target) in found {
        let target = target.strip_prefix('#').unwrap();
        assert!(document.pointer(target).is_some(), "{place}: {target}");
    }
    let scheme = document.pointer("/components/securitySchemes/bearer/scheme");
    assert_eq!(scheme.unwrap(), "bearer");
    let mut operations = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            operations += 1;
            let has = |status: &str| operation["responses"].get(status).is_some();
            let place = format!("{method} {path}");
            assert!(operation["summary"].is_string() || operation["description"].is_string());
            if operation.get("security").is_some() {
                assert!(
                    has("401") && has("403") && has("500") && has("503"),
                    "{place}"
                );
            }
            if operation.get("requestBody").is_some() {
                assert!(
                    has("400") && has("413") && has("415") && has("422"),
                    "{place}"
                );
            }
            if path.contains('{') {
                assert!(has("404"), "{place}");
            }
            for (status, answer) in operation["responses"].as_object().unwrap() {
                if status.starts_with(['4', '5']) {
                    let body = answer.pointer("/content/application~1problem+json/schema/$ref");
                    assert_eq!(
                        body.unwrap(),
                        "#/components/schemas/Problem",
                        "{place} {status}"
                    );
                }
            }
        }
    }
    assert!(operations > 20, "{operations}");
}

#[tokio::test(flavor = "multi_thread")]
async fn service_routes_and_router_problems_are_answered() {
    let service = Service::start(Kind::Sqlite).await;
    let get = async |path: &str| service.send(Method::GET, path, None).await;
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(get(path).await.status(), StatusCode::OK, "{path}");
    }
    let served: Value = get("/openapi.json").await.json().await.unwrap();
    assert_eq!(served, serde_json::to_value(State::openapi()).unwrap());
    let keys: Value = get("/.well-known/jwks.json").await.json().await.unwrap();
    let key = &keys["keys"][0];
    assert_eq!(
        (&key["kty"], &key["crv"]),
        (&"OKP".into(), &"Ed25519".into())
    );
    assert!(key.get("d").is_none());

    assert_eq!(
        problem(get("/v1/nothing").await, 404).await.kind,
        ProblemKind::NotFound
    );
    let wrong = service.send(Method::PATCH, "/v1/sessions", None).await;
    let allow = wrong.headers().get("allow").cloned();
    assert_eq!(
        problem(wrong, 405).await.kind,
        ProblemKind::MethodNotAllowed
    );
    let allow = allow.unwrap();
    assert!(allow.to_str().unwrap().contains("POST"), "{allow:?}");
    let metrics = get("/metrics").await.text().await.unwrap();
    assert!(
        metrics.contains("service=\"generation\"") && metrics.contains("route=\"/openapi.json\"")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_bodies_are_rejected() {
    let service = Service::start(Kind::Sqlite).await;
    let send = async |media: &str, body: Vec<u8>| {
        let request = reqwest::Client::new().post(format!("{}/v1/sessions", service.base));
        let request = request.header("content-type", media).body(body);
        request.send().await.unwrap()
    };
    problem(send("application/json", b"{".to_vec()).await, 400).await;
    problem(send("application/json", b"[]".to_vec()).await, 422).await;
    problem(send("text/plain", b"{}".to_vec()).await, 415).await;
    problem(send("application/json", vec![b' '; 5 << 20]).await, 413).await;
    let extra = br#"{"email":"a@b.example","password":"correct horse battery","admin":true}"#;
    let refused = problem(send("application/json", extra.to_vec()).await, 422).await;
    assert!(refused.detail.unwrap().contains("admin"));
}
