//! Two tenants: every route of the OpenAPI documents is called with the token of the other tenant.

use fhaim_kit::{Backing, NAMES, PASSWORD, Services};
use serde_json::Value;

use super::PROGRAM;

/// Statuses that reveal nothing about another tenant's data.
const CLOSED: [u16; 2] = [403, 404];

/// Signs in a user in a new session, and returns its bearer tokens, one for each service.
pub(super) fn tokens(services: &Services, user: &str) -> [String; 3] {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let http = fhaim_platform::peer::http_client().unwrap();
        let address = format!("{}/v1/sessions", services.address(0));
        let credentials = serde_json::json!({
            "email": format!("{user}@example.org"), "password": PASSWORD,
        });
        let answer = http.post(address).json(&credentials).send().await.unwrap();
        let session: Value = answer.json().await.unwrap();
        ["access_token", "computation_token", "crypto_token"]
            .map(|token| session[token].as_str().unwrap().to_owned())
    })
}

/// Returns the (method, path) of each route of a service that needs a token and has a parameter.
fn routes(services: &Services, service: usize) -> Vec<(String, String)> {
    let text = services.run("ana", &["serve", NAMES[service], "--openapi"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if path.contains('{') && !operation["security"].is_null() {
                routes.push((method.to_uppercase(), path.clone()));
            }
        }
    }
    routes
}

/// Returns a body that a route would accept, so that only the token can be the reason for a refusal.
fn body(shown: &Value, service: usize, path: &str) -> Value {
    let terms = &shown["terms"];
    match (service, path) {
        (0, "/v1/datasets/{dataset}") => {
            return serde_json::json!({ "name": shown["name"], "terms": terms });
        }
        (0, "/v1/datasets/{dataset}/name") => return serde_json::json!({ "name": "Bob's" }),
        (0, "/v1/jobs/{job}/note") => return serde_json::json!({ "note": "Bob's" }),
        (0, "/v1/jobs/{job}/links/{link}") => return serde_json::json!({ "name": "Bob" }),
        (0, "/v1/api-keys/{id}") => return serde_json::json!({ "name": "nightly" }),
        (0, _) => return serde_json::json!({}),
        _ => {}
    }
    if path.ends_with("/complete") {
        return serde_json::json!({ "manifest": "0".repeat(64) });
    }
    if path.ends_with("/upload-key") {
        let (key, signature) = ("0".repeat(64), "0".repeat(128));
        return serde_json::json!({ "one_time_key": key, "signature": signature });
    }
    if path.ends_with("/signature") {
        return serde_json::json!({ "signature": "0".repeat(128) });
    }
    if path.contains("/batches/") {
        let total = serde_json::json!({ "number": 0, "statistic": "Total", "variance_units": 9 });
        return serde_json::json!({ "requests": [total] });
    }
    serde_json::json!({ "terms": terms, "layout": { "chunks": 1, "stride": 512 } })
}

#[test]
fn every_route_refuses_the_token_of_another_account() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    services.sign_up("bob");
    let dataset = services.dataset("ana", &[]);
    let job = services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    let job = job.lines().next().unwrap().to_owned();
    let before = services.json("ana", &["dataset", "show", &dataset]);
    let bob = tokens(&services, "bob");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let http = fhaim_platform::peer::http_client().unwrap();
    let key = uuid::Uuid::now_v7().to_string();
    let made = http
        .put(format!("{}/v1/api-keys/{key}", services.address(0)))
        .bearer_auth(&tokens(&services, "ana")[0])
        .json(&serde_json::json!({ "name": "nightly" }));
    let made = runtime.block_on(async { made.send().await.unwrap() });
    assert!(made.status().is_success());
    let link = services.json("ana", &["link", "make", &job, "--name", "Carl"]);
    let link = link["id"].as_str().unwrap().to_owned();
    let mut tried = 0;
    for (service, token) in bob.iter().enumerate() {
        for (method, path) in routes(&services, service) {
            let filled = path
                .replace("{dataset}", &dataset)
                .replace("{job}", &job)
                .replace("{contribution}", "0")
                .replace("{first}", "0")
                .replace("{object}", "column%2F0%2F0");
            let filled = filled.replace("{id}", &key).replace("{link}", &link);
            assert!(
                !filled.contains('{'),
                "{path} has a parameter that this test does not know"
            );
            let mut payload = body(&before, service, &path);
            if service == 2
                && let Some(fields) = payload.as_object_mut()
            {
                fields.remove("layout");
            }
            let status = runtime.block_on(async {
                let address = format!("{}{filled}", services.address(service));
                let method = method.parse().unwrap();
                let request = http.request(method, address).bearer_auth(token);
                let request = match path.ends_with("{object}") || path.ends_with("decryptions") {
                    true => request
                        .header("content-digest", format!("sha-256=:{}=:", "A".repeat(43)))
                        .header("content-type", "application/octet-stream")
                        .body("x"),
                    false => request.json(&payload),
                };
                request.send().await.unwrap().status().as_u16()
            });
            assert!(CLOSED.contains(&status), "{method} {path}: {status}");
            tried += 1;
        }
    }
    assert!(tried >= 20, "only {tried} routes were called");
    let after = services.json("ana", &["dataset", "show", &dataset]);
    assert_eq!(before, after);
    services.run("ana", &["download", &job, "--out", "still.csv", "--force"]);
}

/// An account that knows the identifier of another account's dataset cannot register it at any service. The key service
/// makes keys only for the account that the generation service vouches for.
#[test]
fn dataset_identifier_of_another_account_cannot_be_registered() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    services.sign_up("eve");
    let eve = tokens(&services, "eve");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let http = fhaim_platform::peer::http_client().unwrap();
    let id = services.create("ana", &[]);
    let take = |service: usize, voucher: Option<&str>| {
        let shown = services.json("ana", &["dataset", "show", &id]);
        let mut payload = body(&shown, service, "/v1/datasets/{dataset}");
        if service == 2 {
            payload.as_object_mut().unwrap().remove("layout");
        }
        if let Some(voucher) = voucher {
            payload["voucher"] = voucher.into();
        }
        let address = format!("{}/v1/datasets/{id}", services.address(service));
        let call = http.put(address).bearer_auth(&eve[service]).json(&payload);
        let answer = runtime.block_on(async { call.send().await.unwrap() });
        answer.status().as_u16()
    };
    assert_eq!(
        [0, 1, 2].map(|service| take(service, None)),
        [404, 404, 403]
    );
    // A voucher for Eve's own dataset does not help either.
    let hers = services.create("eve", &[]);
    let address = format!("{}/v1/datasets/{hers}/voucher", services.address(0));
    let asked = http.get(address).bearer_auth(&eve[0]);
    let said = runtime.block_on(async { asked.send().await.unwrap().json::<Value>().await });
    let said = said.unwrap();
    assert_eq!(take(2, said["voucher"].as_str()), 403);
    services.run(
        "ana",
        &["dataset", "upload", &id, "--data", "t.csv", "--yes"],
    );
    let usage = services.json("ana", &["account", "usage"]);
    let used = |service: usize, limit: usize| usage[NAMES[service]][limit]["used"].as_u64();
    assert_eq!((used(0, 0), used(2, 0)), (Some(1), Some(1)));
    assert!(used(1, 0).unwrap() > 1 << 20, "{usage}");
}

/// A token is valid for one service only. Otherwise the operator of a service could make API keys and destroy keys in
/// the name of a caller.
#[test]
fn token_of_one_service_is_refused_by_the_others() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &[]);
    let ana = tokens(&services, "ana");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let http = fhaim_platform::peer::http_client().unwrap();
    let new_key = format!("/v1/api-keys/{}", uuid::Uuid::now_v7());
    let shown = format!("/v1/datasets/{dataset}");
    let calls = [
        (0, "PUT", new_key.as_str()),
        (0, "GET", "/v1/usage"),
        (1, "GET", "/v1/usage"),
        (1, "DELETE", shown.as_str()),
        (2, "GET", "/v1/usage"),
        (2, "DELETE", shown.as_str()),
    ];
    let call = |service: usize, token: &str, (method, path): (&str, &str)| {
        let address = format!("{}{path}", services.address(service));
        let request = http.request(method.parse().unwrap(), address);
        let request = request.bearer_auth(token);
        let request = request.json(&serde_json::json!({ "name": "replayed" }));
        runtime.block_on(async {
            let answer = request.send().await.unwrap();
            (answer.status().as_u16(), answer.text().await.unwrap())
        })
    };
    for (service, method, path) in calls {
        for (of, token) in ana.iter().enumerate().filter(|(of, _)| *of != service) {
            let place = format!("{method} {path} of {} with {}'s", NAMES[service], NAMES[of]);
            let (status, words) = call(service, token, (method, path));
            assert_eq!(status, 401, "{place}: {words}");
            assert!(
                words.contains("a sign-in gives one token per service"),
                "{place}: {words}"
            );
        }
        if method == "GET" {
            assert_eq!(call(service, &ana[service], (method, path)).0, 200);
        }
    }
    services.run("ana", &["dataset", "show", &dataset]);
}
