//! Isolation of tenants: another account calls every route of the OpenAPI document that names an
//! object. The test finds new routes by itself.

use crate::common::{Kind, Service, fresh, problem, read, terms};
use fhaim_api::Page;
use fhaim_api::dataset::Dataset;
use fhaim_api::job::{Job, JobState};
use fhaim_api::link::LinkMade;
use fhaim_generation::State;
use fhaim_platform::program::Program;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

over_both!(objects_of_other_accounts_are_not_found);

/// Returns all methods and paths of the document.
fn operations() -> Vec<(Method, String, Value)> {
    let document = serde_json::to_value(State::openapi()).unwrap();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method = method.to_uppercase().parse().unwrap();
            operations.push((method, path.clone(), operation.clone()));
        }
    }
    operations
}

/// Routes that need no token.
const OPEN: [&str; 7] = [
    "/.well-known/ended-tokens.json",
    "/.well-known/jwks.json",
    "/openapi.json",
    "/v1/accounts",
    "/v1/sessions",
    "/v1/sessions/api-key",
    "/v1/sessions/refresh",
];

/// Routes that create or change a part of an object, which must exist.
const BELONGS: [&str; 5] = [
    "/v1/datasets/{dataset}/deletion",
    "/v1/datasets/{dataset}/name",
    "/v1/jobs/{job}/note",
    "/v1/datasets/{dataset}/jobs/{job}",
    "/v1/jobs/{job}/links/{link}",
];

/// Returns a valid body of a route, if the route takes one.
fn body(operation: &Value) -> Option<Value> {
    let content = &operation["requestBody"]["content"]["application/json"];
    let name = content["schema"]["$ref"].as_str()?.rsplit('/').next()?;
    match name {
        "NewApiKey" => Some(json!({ "name": "k" })),
        "NewDataset" => Some(json!({ "name": "d", "terms": terms() })),
        "NewJob" => Some(json!({})),
        "NewName" => Some(json!({ "name": "n" })),
        "NewNote" => Some(json!({ "note": "n" })),
        "NewLink" => Some(json!({ "name": "l" })),
        other => panic!("add an example body for {other} to this test"),
    }
}

async fn objects_of_other_accounts_are_not_found(kind: Kind) {
    let service = Service::start_working(kind).await;
    let (ana, eve) = (
        service.user("ana@x.example").await,
        service.user("eve@x.example").await,
    );
    let done = ana.done_job().await;
    let waiting = ana.new_dataset(terms()).await;
    let key = ana.new_key("k").await;
    let path = fresh(&format!("/v1/jobs/{}/links", done.id));
    let link = ana.put(&path, json!({ "name": "l" })).await;
    let link: LinkMade = read(link, StatusCode::CREATED).await;
    let state = async || {
        let path = format!("/v1/jobs/{}", done.id);
        let keys: Value = ana.get("/v1/api-keys").await;
        let links: Value = ana.get(&format!("{path}/links")).await;
        (
            ana.get::<Value>("/v1/datasets").await,
            ana.get::<Value>(&path).await,
            (keys, links),
        )
    };
    let before = state().await;
    let (mut named, mut signed_in) = (0, 0);
    for (method, path, operation) in operations() {
        if OPEN.contains(&path.as_str()) {
            assert!(operation["security"].is_null(), "{path}");
            continue;
        }
        let filled = |dataset: Uuid, job: Uuid, key: Uuid, link: Uuid| {
            path.replace("{dataset}", &dataset.to_string())
                .replace("{job}", &job.to_string())
                .replace("{id}", &key.to_string())
                .replace("{link}", &link.to_string())
        };
        let own = filled(waiting.id, done.id, key.key.id, link.link.id);
        assert!(
            !own.contains('{'),
            "{path}: add the new parameter to this test"
        );
        problem(service.send(method.clone(), &own, None).await, 401).await;
        signed_in += 1;
        if own == path {
            continue;
        }
        named += 1;
        let none = filled(Uuid::nil(), Uuid::nil(), Uuid::nil(), Uuid::nil());
        let body = body(&operation);
        // A missing object can be created, unless it is part of another object.
        let makes = body.is_some() && !BELONGS.contains(&path.as_str());
        for id in [Some(own), (!makes).then_some(none)].into_iter().flatten() {
            let theirs = eve.send(method.clone(), &id, body.clone()).await;
            let theirs = problem(theirs, 404).await;
            assert_eq!(
                (theirs.detail, theirs.retry_after),
                (None, None),
                "{method} {id}"
            );
        }
        let nonsense = path.replace(['{', '}'], "");
        eve.refused(method, &nonsense, 404).await;
    }
    assert!(named >= 20 && signed_in >= 25, "{named} of {signed_in}");
    assert_eq!(state().await, before);
    assert!(
        eve.get::<Page<Dataset>>("/v1/datasets")
            .await
            .items
            .is_empty()
    );
    let job: Job = ana.get(&format!("/v1/jobs/{}", done.id)).await;
    assert_eq!(job.state, JobState::Done);
}
