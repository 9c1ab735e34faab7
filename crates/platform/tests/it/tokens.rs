//! Tokens whose issuer is away, unknown, or has a wrong clock, and the calls that carry them.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::SigningKey;
use fhaim_api::problem::{Problem, ProblemKind};
use fhaim_api::token::{AccountTokens, Claims, EndedTokens, Role, Service};
use fhaim_kit::config::{postgres, sqlite};
use fhaim_platform::peer::{Body, PeerClient, PeerError, http_client};
use fhaim_platform::seal::Sealer;
use fhaim_platform::store::Store;
use fhaim_platform::token::{Signer, Verifier, install_ed25519};
use jsonwebtoken::{Algorithm, EncodingKey, Header, get_current_timestamp};
use reqwest::Method;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::TcpListener;
use uuid::Uuid;

/// An issuer of tokens with one key and any clock.
struct Issuer {
    service: Service,
    key: SigningKey,
}

impl Issuer {
    fn new(service: Service, seed: u8) -> Self {
        install_ed25519();
        Self {
            service,
            key: SigningKey::from_bytes(&[seed; 32]),
        }
    }

    fn keys(&self) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.key.verifying_key().as_bytes());
        json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig",
            "kid": "the key", "x": x }] })
        .to_string()
    }

    /// Makes a token that is valid between two times, in seconds from now.
    fn token_for(&self, kid: &str, from: i64, until: i64) -> String {
        let at = |seconds: i64| get_current_timestamp().checked_add_signed(seconds).unwrap();
        let claims = Claims {
            iss: self.service,
            aud: vec![Service::Crypto],
            role: Role::Service,
            sub: None,
            dataset: None,
            epoch: None,
            by_key: false,
            iat: at(from),
            exp: at(until),
            jti: Uuid::new_v4(),
        };
        // The beginning of an Ed25519 private key in PKCS #8 (RFC 8410, section 7).
        let mut der = vec![
            0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20,
        ];
        der.extend_from_slice(self.key.as_bytes());
        let mut head = Header::new(Algorithm::EdDSA);
        head.kid = Some(kid.to_owned());
        jsonwebtoken::encode(&head, &claims, &EncodingKey::from_ed_der(&der)).unwrap()
    }

    fn token(&self) -> String {
        self.token_for("the key", 0, 300)
    }
}

/// The answers of a server, and the tokens of the requests that it got.
#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<Vec<(u16, String)>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Script {
    /// Answers in order, and repeats the last answer.
    fn new(answers: &[(u16, String)]) -> Self {
        let script = Self::default();
        *script.answers.lock().unwrap() = answers.to_vec();
        script
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    async fn serve(&self, listener: TcpListener) -> String {
        let address = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new().fallback(get(answer)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        address
    }

    async fn start(&self) -> String {
        self.serve(TcpListener::bind("127.0.0.1:0").await.unwrap())
            .await
    }
}

async fn answer(State(script): State<Script>, headers: HeaderMap) -> Response {
    let token = headers.get(header::AUTHORIZATION);
    let token = token.map_or("", |token| token.to_str().unwrap());
    script.asked.lock().unwrap().push(token.to_owned());
    let mut answers = script.answers.lock().unwrap();
    let (status, body) = match answers.len() {
        1 => answers[0].clone(),
        _ => answers.remove(0),
    };
    (StatusCode::from_u16(status).unwrap(), body).into_response()
}

/// The part of the crypto service that verifies and makes tokens.
struct Crypto {
    signer: Arc<Signer>,
    verifier: Verifier,
    _folder: TempDir,
}

impl Crypto {
    async fn trusting(issuers: &[(Service, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&sqlite(folder.path()), &[]).await.unwrap();
        let sealer = Arc::new(Sealer::from_text(&"ab".repeat(32)).unwrap());
        let signer = Signer::open(Service::Crypto, store, sealer).await.unwrap();
        let signer = Arc::new(signer);
        let issuers: BTreeMap<Service, String> = issuers
            .iter()
            .map(|(service, address)| (*service, (*address).to_owned()))
            .collect();
        Self {
            verifier: Verifier::new(signer.clone(), &issuers, http_client().unwrap()),
            signer,
            _folder: folder,
        }
    }

    async fn refusal(&self, token: &str) -> Box<Problem> {
        self.verifier.verify(token).await.unwrap_err().problem
    }
}

/// Returns an address on which nothing listens.
async fn nowhere() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

#[tokio::test]
async fn unreachable_issuer_is_an_outage_until_it_returns() {
    let issuer = Issuer::new(Service::Computation, 1);
    let address = nowhere().await;
    let crypto = Crypto::trusting(&[(Service::Computation, &format!("http://{address}"))]).await;
    for _ in 0..5 {
        let problem = crypto.refusal(&issuer.token()).await;
        assert_eq!(problem.kind, ProblemKind::Unavailable);
        assert!(problem.retry_after.is_some_and(|seconds| seconds > 0));
    }
    let script = Script::new(&[(200, issuer.keys())]);
    script
        .serve(TcpListener::bind(address).await.unwrap())
        .await;
    let started = Instant::now();
    while let Err(failure) = crypto.verifier.verify(&issuer.token()).await {
        assert_eq!(failure.kind(), ProblemKind::Unavailable);
        assert!(started.elapsed() < Duration::from_secs(60), "{failure}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A caller that shows unknown key ids does not make the service ask the issuer more often.
#[tokio::test]
async fn unknown_key_ids_do_not_cause_more_calls() {
    let issuer = Issuer::new(Service::Computation, 1);
    for (status, kind) in [
        (200, ProblemKind::Unauthenticated),
        (500, ProblemKind::Unavailable),
    ] {
        let script = Script::new(&[(status, issuer.keys())]);
        let crypto = Crypto::trusting(&[(Service::Computation, &script.start().await)]).await;
        let started = Instant::now();
        for number in 0..50 {
            let token = issuer.token_for(&format!("{number}"), 0, 300);
            assert_eq!(crypto.refusal(&token).await.kind, kind);
        }
        let strange = |number| issuer.token_for(&format!("{number}"), 0, 300);
        let tokens: Vec<String> = (50..100).map(strange).collect();
        let tries = tokens.iter().map(|token| crypto.refusal(token));
        let refused = futures_util::future::join_all(tries).await;
        assert!(refused.iter().all(|problem| problem.kind == kind));
        let most = 1 + started.elapsed().as_secs() / 2;
        let asked = script.asked().len() as u64;
        assert!((1..=most).contains(&asked), "{asked} calls, {most} at most");
    }
}

#[tokio::test]
async fn invalid_tokens_are_refused_while_another_issuer_is_away() {
    let issuer = Issuer::new(Service::Computation, 1);
    let script = Script::new(&[(200, issuer.keys())]);
    let computation = script.start().await;
    let away = format!("http://{}", nowhere().await);
    let crypto = Crypto::trusting(&[
        (Service::Computation, &computation),
        (Service::Generation, &away),
    ])
    .await;
    crypto.verifier.verify(&issuer.token()).await.unwrap();
    let forged = Issuer::new(Service::Computation, 2).token();
    let unknown = issuer.token_for("another key", 0, 300);
    let claims = URL_SAFE_NO_PAD.encode(br#"{"iss":"nobody"}"#);
    let nobody = issuer.token();
    let parts: Vec<&str> = nobody.split('.').collect();
    let nobody = format!("{}.{claims}.{}", parts[0], parts[2]);
    for token in [forged, unknown, nobody, "x.y.z".to_owned(), String::new()] {
        let problem = crypto.refusal(&token).await;
        assert_eq!(problem.kind, ProblemKind::Unauthenticated, "{token}");
        assert_eq!(problem.detail, None);
    }
    // An issuer that is away does not affect the tokens of others.
    let other = Issuer::new(Service::Generation, 3).token();
    assert_eq!(crypto.refusal(&other).await.kind, ProblemKind::Unavailable);
    crypto.verifier.verify(&issuer.token()).await.unwrap();
}

#[tokio::test]
async fn tokens_are_refused_seconds_after_they_expire() {
    let issuer = Issuer::new(Service::Computation, 1);
    let script = Script::new(&[(200, issuer.keys())]);
    let crypto = Crypto::trusting(&[(Service::Computation, &script.start().await)]).await;
    let ended = async |ago: i64| {
        let token = issuer.token_for("the key", -900, -ago);
        crypto.verifier.verify(&token).await.err()
    };
    assert!(ended(-1).await.is_none() && ended(3).await.is_none());
    for ago in [10, 60, 300, 599] {
        let refused = ended(ago).await;
        let refused = refused.unwrap_or_else(|| panic!("accepted {ago} s after it expired"));
        assert_eq!(refused.kind(), ProblemKind::Unauthenticated);
    }
}

#[tokio::test]
async fn ended_tokens_are_refused_and_the_service_fetches_their_list_rarely() {
    let account = Uuid::from_u128(1);
    let accounts = vec![AccountTokens {
        account: AccountTokens::digest(account),
        epoch: 4,
    }];
    let list = serde_json::to_string(&EndedTokens { accounts }).unwrap();
    let script = Script::new(&[(200, list)]);
    let crypto = Crypto::trusting(&[(Service::Generation, &script.start().await)]).await;
    let check = |account, epoch| crypto.verifier.check_ended(account, epoch);
    let started = Instant::now();
    for _ in 0..50 {
        for ended in [0, 3] {
            let refused = check(account, Some(ended)).await.unwrap_err();
            assert_eq!(refused.kind(), ProblemKind::Unauthenticated);
        }
        check(account, Some(4)).await.unwrap();
        check(account, None).await.unwrap();
        check(Uuid::from_u128(2), Some(3)).await.unwrap();
    }
    let most = 1 + started.elapsed().as_secs() / 2;
    let asked = script.asked().len() as u64;
    assert!((1..=most).contains(&asked), "{asked} calls, {most} at most");
}

#[tokio::test]
async fn tokens_are_accepted_while_the_list_of_ended_ones_is_away() {
    let away = format!("http://{}", nowhere().await);
    let crypto = Crypto::trusting(&[(Service::Generation, &away)]).await;
    let checked = crypto.verifier.check_ended(Uuid::from_u128(1), Some(3));
    checked.await.unwrap();
}

/// Tokens as services make them for each other, by a clock that differs.
#[tokio::test]
async fn clock_differences_of_minutes_are_accepted_and_larger_ones_reported() {
    let issuer = Issuer::new(Service::Computation, 1);
    let script = Script::new(&[(200, issuer.keys())]);
    let crypto = Crypto::trusting(&[(Service::Computation, &script.start().await)]).await;
    for off in [-580, -360, -60, 0, 60, 360, 580] {
        let token = issuer.token_for("the key", off, off + 600);
        crypto.verifier.verify(&token).await.unwrap();
    }
    for (off, words) in [
        (-3600, "s ago by the crypto service's clock"),
        (-640, "s ago by the crypto service's clock"),
        (640, "s ahead of the crypto service's clock"),
        (3600, "s ahead of the crypto service's clock"),
    ] {
        let problem = crypto
            .refusal(&issuer.token_for("the key", off, off + 600))
            .await;
        assert_eq!(problem.kind, ProblemKind::Unauthenticated, "{off}");
        let detail = problem.detail.unwrap();
        assert!(detail.contains(words), "{off}: {detail}");
        assert!(detail.contains("computation"), "{off}: {detail}");
    }
}

fn problem(kind: ProblemKind, detail: &str) -> (u16, String) {
    let problem = Problem::new(kind).with_detail(detail);
    (problem.status, serde_json::to_string(&problem).unwrap())
}

async fn call(script: &Script) -> Result<serde_json::Value, PeerError> {
    let crypto = Crypto::trusting(&[]).await;
    let http = http_client().unwrap();
    let address = script.start().await;
    let client = PeerClient::new(Service::Computation, &address, crypto.signer, http);
    client.json(Method::GET, "/x", Body::Empty).await
}

#[tokio::test]
async fn refused_token_is_replaced_by_a_new_one() {
    let refused = problem(ProblemKind::Unauthenticated, "unknown key");
    let script = Script::new(&[refused.clone(), refused, (200, "7".to_owned())]);
    assert_eq!(call(&script).await.unwrap(), 7);
    let mut tokens = script.asked();
    assert_eq!(tokens.len(), 3);
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), 3, "a token was sent twice");
}

#[tokio::test]
async fn final_refusals_are_separated_from_temporary_ones() {
    for (kind, is_final, most) in [
        (ProblemKind::Unauthenticated, false, 8),
        (ProblemKind::Internal, false, 1),
        (ProblemKind::Refused, true, 1),
        (ProblemKind::NotFound, true, 1),
        (ProblemKind::Conflict, true, 1),
        (ProblemKind::Invalid, true, 1),
        (ProblemKind::Damaged, true, 1),
    ] {
        let script = Script::new(&[problem(kind, "the reason")]);
        let error = call(&script).await.unwrap_err();
        let refusal = error.refusal().map(|problem| problem.kind);
        assert_eq!(refusal, is_final.then_some(kind));
        assert!(error.to_string().contains("the reason"), "{error}");
        let asked = script.asked().len();
        assert!((1..=most).contains(&asked), "{kind:?}: {asked} tries");
    }
    // The answer is not a problem document.
    let error = call(&Script::new(&[(404, "nginx".to_owned())])).await;
    assert!(error.unwrap_err().refusal().is_none());
}

#[tokio::test]
#[ignore = "needs FHAIM_TEST_POSTGRES"]
async fn replicas_that_start_together_share_one_key() {
    let database = postgres().await;
    let sealer = Arc::new(Sealer::from_text(&"ab".repeat(32)).unwrap());
    let store = Store::open(&database, &[]).await.unwrap();
    let mut replicas = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let (store, sealer) = (store.clone(), sealer.clone());
        replicas.spawn(Signer::open(Service::Crypto, store, sealer));
    }
    while let Some(replica) = replicas.join_next().await {
        let keys = replica.unwrap().unwrap().jwks().keys;
        assert_eq!(keys.len(), 1, "{keys:?}");
    }
    store.close().await;
}
