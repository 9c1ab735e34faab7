//! Accounts, sessions, API keys, rate limits.

use crate::common::{Kind, PASSWORD, Service, credentials, fresh, problem, read};
use fhaim_api::Page;
use fhaim_api::account::{Account, ApiKey, ApiKeyMade, Secret, Session};
use fhaim_api::problem::ProblemKind;
use fhaim_generation::Change;
use fhaim_platform::program::Program;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

over_both!(
    sign_up_and_sign_in_check_credentials,
    closed_sign_up_leaves_accounts_to_the_operator,
    reused_refresh_token_ends_its_family,
    api_keys_are_exchanged_listed_and_deleted,
    repeated_put_replaces_an_unused_api_key,
    lost_refresh_can_be_repeated_until_its_successor_is_used,
    sign_in_attempts_are_limited_by_account_and_address,
    changed_password_ends_other_sessions,
    access_tokens_from_before_a_password_change_are_refused,
    nothing_made_with_an_old_token_works_after_an_account_is_disabled,
    api_keys_make_no_api_keys,
    lists_continue_after_an_entry_with_a_damaged_identifier,
    operator_lists_and_revokes_api_keys,
    signing_out_everywhere_ends_all_sessions,
    account_without_datasets_can_be_closed,
    operator_disables_enables_and_resets_an_account,
    sign_in_during_a_password_change_gets_no_session,
    refresh_of_a_disabled_account_is_rejected,
);

async fn post(service: &Service, path: &str, body: Value) -> Response {
    service.send(Method::POST, path, Some(body)).await
}

async fn sign_up_and_sign_in_check_credentials(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("Ana@Hospital.example").await;
    assert_eq!(ana.account.email, "ana@hospital.example");
    let account: Account = ana.get("/v1/account").await;
    assert_eq!(
        (account.id, &account.email),
        (ana.account.id, &ana.account.email)
    );

    let again = json!({ "email": "ANA@hospital.example", "password": PASSWORD });
    let taken = problem(post(&service, "/v1/accounts", again).await, 409).await;
    assert_eq!(taken.kind, ProblemKind::Conflict);
    let wrong = problem(
        service
            .sign_in("ana@hospital.example", "another password")
            .await,
        401,
    );
    let unknown = problem(service.sign_in("bob@hospital.example", PASSWORD).await, 401);
    let (wrong, unknown) = (wrong.await, unknown.await);
    assert_eq!((wrong.kind, &wrong.detail), (unknown.kind, &unknown.detail));

    for (email, password) in [
        ("ana", PASSWORD),
        ("eve@x.example", "short"),
        ("e\0@x.y", PASSWORD),
    ] {
        let body = json!({ "email": email, "password": password });
        problem(post(&service, "/v1/accounts", body).await, 422).await;
    }
    problem(
        post(&service, "/v1/accounts", json!({ "email": "a@b.example" })).await,
        422,
    )
    .await;
    for token in [None, Some("x"), Some(&ana.token()[..ana.token().len() - 2])] {
        let refused = service
            .send_as(token, Method::GET, "/v1/account", None)
            .await;
        problem(refused, 401).await;
    }
}

async fn closed_sign_up_leaves_accounts_to_the_operator(kind: Kind) {
    let service = Service::start_with(kind, |config| config.sign_up = false).await;
    let body = json!({ "email": "ana@x.example", "password": PASSWORD });
    let closed = problem(post(&service, "/v1/accounts", body).await, 403).await;
    assert_eq!(closed.kind, ProblemKind::Forbidden);
    service
        .state
        .create_account(credentials("ana@x.example"))
        .await
        .unwrap();
    let session = service.sign_in("ana@x.example", PASSWORD).await;
    read::<Session>(session, StatusCode::CREATED).await;
}

async fn refresh(service: &Service, session: &Session) -> Response {
    let token = session.refresh_token.clone().unwrap();
    post(
        service,
        "/v1/sessions/refresh",
        json!({ "refresh_token": token }),
    )
    .await
}

async fn reused_refresh_token_ends_its_family(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    let other: Session = read(
        service.sign_in("ana@x.example", PASSWORD).await,
        StatusCode::CREATED,
    )
    .await;
    let second: Session = read(refresh(&service, &ana.session).await, StatusCode::CREATED).await;
    let third: Session = read(refresh(&service, &second).await, StatusCode::CREATED).await;
    assert_ne!(second.refresh_token, third.refresh_token);
    let token = Some(third.access_token.0.as_str());
    let account = service
        .send_as(token, Method::GET, "/v1/account", None)
        .await;
    assert_eq!(account.status(), StatusCode::OK);

    // Reusing the first token ends its family and no other.
    problem(refresh(&service, &ana.session).await, 401).await;
    problem(refresh(&service, &third).await, 401).await;
    let other: Session = read(refresh(&service, &other).await, StatusCode::CREATED).await;

    let body = json!({ "refresh_token": other.refresh_token });
    let ended = service
        .send(Method::DELETE, "/v1/sessions", Some(body.clone()))
        .await;
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    problem(refresh(&service, &other).await, 401).await;
    let again = service
        .send(Method::DELETE, "/v1/sessions", Some(body))
        .await;
    assert_eq!(again.status(), StatusCode::NO_CONTENT);
}

async fn api_keys_are_exchanged_listed_and_deleted(kind: Kind) {
    let service = Service::start(kind).await;
    let (ana, eve) = (
        service.user("ana@x.example").await,
        service.user("eve@x.example").await,
    );
    let mut made = Vec::new();
    for name in ["one", "two", "three"] {
        made.push(ana.new_key(name).await);
    }
    let exchange =
        |text: &Secret| post(&service, "/v1/sessions/api-key", json!({ "api_key": text }));
    assert!(made[0].text.0.starts_with("fhaim_"));
    let session: Session = read(exchange(&made[0].text).await, StatusCode::CREATED).await;
    assert_eq!(session.refresh_token, None);
    let token = Some(session.access_token.0.as_str());
    let account = service
        .send_as(token, Method::GET, "/v1/account", None)
        .await;
    assert_eq!(
        read::<Account>(account, StatusCode::OK).await.id,
        ana.account.id
    );

    let first: Page<ApiKey> = ana.get("/v1/api-keys?limit=2").await;
    let next = first.next.clone().unwrap();
    let rest: Page<ApiKey> = ana.get(&format!("/v1/api-keys?limit=2&after={next}")).await;
    let names: Vec<&str> = first
        .items
        .iter()
        .chain(&rest.items)
        .map(|k| k.name.as_str())
        .collect();
    assert_eq!(
        (names, rest.next.clone()),
        (vec!["three", "two", "one"], None)
    );
    assert!(rest.items[0].last_used_at.is_some() && first.items[0].last_used_at.is_none());
    assert!(
        eve.get::<Page<ApiKey>>("/v1/api-keys")
            .await
            .items
            .is_empty()
    );

    let path = format!("/v1/api-keys/{}", made[0].key.id);
    eve.refused(Method::DELETE, &path, 404).await;
    let deleted = ana.send(Method::DELETE, &path, None).await;
    assert_eq!(deleted.status(), StatusCode::NO_CONTENT);
    ana.refused(Method::DELETE, &path, 404).await;
    problem(exchange(&made[0].text).await, 401).await;
    for name in ["", "tab\there", &"n".repeat(101)] {
        let body = json!({ "name": name });
        problem(ana.put(&fresh("/v1/api-keys"), body).await, 422).await;
    }
}

/// A key whose text was lost can be requested again until it is used. The lost text becomes invalid.
async fn repeated_put_replaces_an_unused_api_key(kind: Kind) {
    let service = Service::start(kind).await;
    let (ana, eve) = (
        service.user("ana@x.example").await,
        service.user("eve@x.example").await,
    );
    let path = fresh("/v1/api-keys");
    let body = json!({ "name": "one" });
    let lost: ApiKeyMade = read(ana.put(&path, body.clone()).await, StatusCode::CREATED).await;
    let key: ApiKeyMade = read(ana.put(&path, body.clone()).await, StatusCode::OK).await;
    assert_eq!(lost.key.id, key.key.id);
    assert_eq!(lost.key.created_at, key.key.created_at);
    let exchange =
        |text: &Secret| post(&service, "/v1/sessions/api-key", json!({ "api_key": text }));
    problem(ana.put(&path, json!({ "name": "two" })).await, 409).await;
    problem(eve.put(&path, body.clone()).await, 404).await;
    problem(exchange(&lost.text).await, 401).await;
    read::<Session>(exchange(&key.text).await, StatusCode::CREATED).await;
    problem(ana.put(&path, body).await, 409).await;
    read::<Session>(exchange(&key.text).await, StatusCode::CREATED).await;
    let keys: Page<ApiKey> = ana.get("/v1/api-keys").await;
    assert_eq!(keys.items.len(), 1);
}

/// A refresh whose response was lost can be repeated. The lost token becomes void, and using it later
/// ends the family.
async fn lost_refresh_can_be_repeated_until_its_successor_is_used(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    let made = async |session: &Session| -> Session {
        read(refresh(&service, session).await, StatusCode::CREATED).await
    };
    let lost = made(&ana.session).await;
    let lost_too = made(&ana.session).await;
    let second = made(&ana.session).await;
    let third = made(&second).await;
    let fourth = made(&third).await;
    // The successor of the first token has now been used.
    problem(refresh(&service, &ana.session).await, 401).await;
    for ended in [&lost, &lost_too, &fourth] {
        problem(refresh(&service, ended).await, 401).await;
    }

    // Using a void token ends the tokens that replaced it.
    let session = service.sign_in("ana@x.example", PASSWORD).await;
    let session: Session = read(session, StatusCode::CREATED).await;
    let void = made(&session).await;
    let given = made(&session).await;
    problem(refresh(&service, &void).await, 401).await;
    problem(refresh(&service, &given).await, 401).await;
}

async fn sign_in_attempts_are_limited_by_account_and_address(kind: Kind) {
    let service = Service::start_with(kind, |config| {
        config.limits.sign_ins_per_address = 8.try_into().unwrap();
        config.limits.sign_ins_per_email = 3.try_into().unwrap();
        config.limits.address_header = Some("x-forwarded-for".to_owned());
    })
    .await;
    service
        .state
        .create_account(credentials("ana@x.example"))
        .await
        .unwrap();
    let try_from = async |address: &str, email: &str| {
        let credentials = json!({ "email": email, "password": PASSWORD });
        let request = reqwest::Client::new().post(format!("{}/v1/sessions", service.base));
        let request = request.header("x-forwarded-for", format!("6.6.6.6, {address}"));
        request.json(&credentials).send().await.unwrap()
    };
    // By account and address, ignoring the case of the email address.
    for email in ["ana@x.example", "Ana@x.example", "ANA@x.example"] {
        let tried = try_from("10.0.0.1", email).await;
        assert_eq!(tried.status(), StatusCode::CREATED);
    }
    // Someone who knows the account's name cannot lock its owner out elsewhere.
    let elsewhere = try_from("10.0.0.4", "ana@x.example").await;
    assert_eq!(elsewhere.status(), StatusCode::CREATED);
    let refused = try_from("10.0.0.1", "Ana@x.example").await;
    let seconds: u64 = refused.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let refused = problem(refused, 429).await;
    assert_eq!(
        (refused.kind, refused.retry_after),
        (ProblemKind::TooManyRequests, Some(seconds))
    );
    assert!((1..=21).contains(&seconds));
    // By address for all accounts.
    for i in 0..8 {
        let unknown = try_from("10.0.0.9", &format!("user{i}@x.example")).await;
        assert_eq!(unknown.status(), StatusCode::UNAUTHORIZED);
    }
    problem(try_from("10.0.0.9", "user8@x.example").await, 429).await;
    assert_eq!(
        try_from("10.0.0.10", "user8@x.example").await.status(),
        StatusCode::UNAUTHORIZED
    );
}

async fn changed_password_ends_other_sessions(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    let change = async |password: &str, new: &str| {
        let body = json!({ "password": password, "new_password": new });
        ana.put("/v1/account/password", body).await
    };
    let new = "another battery staple";
    problem(change("not the password", new).await, 403).await;
    problem(change(PASSWORD, "short").await, 422).await;
    let session: Session = read(change(PASSWORD, new).await, StatusCode::CREATED).await;
    // The old password and its sessions are rejected.
    problem(service.sign_in("ana@x.example", PASSWORD).await, 401).await;
    problem(refresh(&service, &ana.session).await, 401).await;
    read::<Session>(refresh(&service, &session).await, StatusCode::CREATED).await;
    let signed_in = service.sign_in("ana@x.example", new).await;
    read::<Session>(signed_in, StatusCode::CREATED).await;
}

/// Checks that a session's access token is refused, and that it makes no API key.
async fn refused_token(service: &Service, session: &Session) {
    let token = Some(session.access_token.0.as_str());
    let account = service.send_as(token, Method::GET, "/v1/account", None);
    problem(account.await, 401).await;
    let (path, body) = (fresh("/v1/api-keys"), json!({ "name": "one" }));
    let made = service.send_as(token, Method::PUT, &path, Some(body));
    problem(made.await, 401).await;
}

async fn access_tokens_from_before_a_password_change_are_refused(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    let key = ana.new_key("one").await;
    let new = "another battery staple";
    let body = json!({ "password": PASSWORD, "new_password": new });
    let changed = ana.put("/v1/account/password", body).await;
    let session: Session = read(changed, StatusCode::CREATED).await;
    refused_token(&service, &ana.session).await;
    // The new session works, and so do the programs that have an API key.
    let token = Some(session.access_token.0.as_str());
    let account = service.send_as(token, Method::GET, "/v1/account", None);
    read::<Account>(account.await, StatusCode::OK).await;
    let body = json!({ "api_key": key.text });
    let exchanged: Session = read(
        post(&service, "/v1/sessions/api-key", body).await,
        StatusCode::CREATED,
    )
    .await;
    // The operator's change ends the tokens of both.
    let reset = Change::Password(Secret("a third battery staple".to_owned()));
    service
        .state
        .change_account("ana@x.example", reset)
        .await
        .unwrap();
    for session in [&session, &exchanged] {
        refused_token(&service, session).await;
    }
}

/// A thief with an access token makes an API key before the operator disables the account.
async fn nothing_made_with_an_old_token_works_after_an_account_is_disabled(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    let stolen = ana.new_key("a thief's").await;
    let exchange = || {
        let body = json!({ "api_key": stolen.text });
        post(&service, "/v1/sessions/api-key", body)
    };
    let session: Session = read(exchange().await, StatusCode::CREATED).await;
    let change = |change| service.state.change_account("ana@x.example", change);
    change(Change::Disable).await.unwrap();
    for enabled in [false, true] {
        if enabled {
            change(Change::Enable).await.unwrap();
        }
        refused_token(&service, &ana.session).await;
        refused_token(&service, &session).await;
        problem(exchange().await, 401).await;
        problem(refresh(&service, &ana.session).await, 401).await;
    }
    let again = service.sign_in("ana@x.example", PASSWORD).await;
    read::<Session>(again, StatusCode::CREATED).await;
}

/// Otherwise a leaked key could replace itself before it is revoked.
async fn api_keys_make_no_api_keys(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    let key = ana.new_key("a program").await;
    let body = json!({ "api_key": key.text });
    let session = post(&service, "/v1/sessions/api-key", body).await;
    let session: Session = read(session, StatusCode::CREATED).await;
    let token = Some(&*session.access_token.0);
    let path = format!("/v1/api-keys/{}", Uuid::now_v7());
    let body = json!({ "name": "another" });
    let refused = service.send_as(token, Method::PUT, &path, Some(body)).await;
    let told = problem(refused, 403).await.detail.unwrap();
    assert!(told.contains("sign in with the password"), "{told}");
    let listed: Page<ApiKey> = ana.get("/v1/api-keys").await;
    assert_eq!(listed.items.len(), 1);
}

async fn lists_continue_after_an_entry_with_a_damaged_identifier(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    for name in ["one", "two", "three", "four"] {
        ana.new_key(name).await;
    }
    sqlx::query("UPDATE api_keys SET id = 'x' WHERE name = 'three'")
        .execute(service.state.base().store.pool())
        .await
        .unwrap();
    let (mut names, mut path) = (Vec::new(), "/v1/api-keys?limit=2".to_owned());
    loop {
        let page: Page<ApiKey> = ana.get(&path).await;
        names.extend(page.items.into_iter().map(|key| key.name));
        let Some(next) = page.next else { break };
        path = format!("/v1/api-keys?limit=2&after={next}");
    }
    assert_eq!(names, ["four", "two", "one"]);
    service.stop().await;
}

async fn operator_lists_and_revokes_api_keys(kind: Kind) {
    let service = Service::start(kind).await;
    let (ana, eve) = (
        service.user("ana@x.example").await,
        service.user("eve@x.example").await,
    );
    let (one, two) = (ana.new_key("one").await, ana.new_key("two").await);
    let own = eve.new_key("another account's").await;
    let exchange = |key: &ApiKeyMade| {
        let body = json!({ "api_key": key.text });
        post(&service, "/v1/sessions/api-key", body)
    };
    let session: Session = read(exchange(&one).await, StatusCode::CREATED).await;
    let keys = service.state.api_keys("Ana@x.example").await.unwrap();
    let listed: Vec<_> = keys.iter().map(|key| (key.id, &*key.name)).collect();
    assert_eq!(listed, [(two.key.id, "two"), (one.key.id, "one")]);
    assert!(keys[0].last_used_at.is_none() && keys[1].last_used_at.is_some());
    let revoke = |key| {
        service
            .state
            .change_account("ana@x.example", Change::Revoke(key))
    };
    for missing in [Uuid::nil(), own.key.id] {
        let refused = revoke(Some(missing)).await.unwrap_err();
        assert_eq!(refused.kind(), ProblemKind::NotFound);
    }
    revoke(Some(one.key.id)).await.unwrap();
    problem(exchange(&one).await, 401).await;
    refused_token(&service, &session).await;
    // Sessions of people continue with a new access token, and other keys stay valid.
    let renewed = refresh(&service, &ana.session).await;
    read::<Session>(renewed, StatusCode::CREATED).await;
    read::<Session>(exchange(&two).await, StatusCode::CREATED).await;
    revoke(None).await.unwrap();
    assert!(
        service
            .state
            .api_keys("ana@x.example")
            .await
            .unwrap()
            .is_empty()
    );
    problem(exchange(&two).await, 401).await;
    read::<Session>(exchange(&own).await, StatusCode::CREATED).await;
}

async fn signing_out_everywhere_ends_all_sessions(kind: Kind) {
    let service = Service::start(kind).await;
    let (ana, eve) = (
        service.user("ana@x.example").await,
        service.user("eve@x.example").await,
    );
    let elsewhere = service.sign_in("ana@x.example", PASSWORD).await;
    let elsewhere: Session = read(elsewhere, StatusCode::CREATED).await;
    let ended = ana.send(Method::DELETE, "/v1/account/sessions", None).await;
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    for session in [&ana.session, &elsewhere] {
        problem(refresh(&service, session).await, 401).await;
        refused_token(&service, session).await;
    }
    read::<Session>(refresh(&service, &eve.session).await, StatusCode::CREATED).await;
}

async fn account_without_datasets_can_be_closed(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    let key = ana.new_key("one").await;
    let dataset = ana.new_dataset(crate::common::terms()).await.id;
    let close = async |password: &str| {
        let body = Some(json!({ "password": password }));
        ana.send(Method::DELETE, "/v1/account", body).await
    };
    problem(close("not the password").await, 403).await;
    let refused = problem(close(PASSWORD).await, 409).await;
    assert!(refused.detail.unwrap().contains("1 dataset"));
    let path = format!("/v1/datasets/{dataset}");
    assert_eq!(ana.send(Method::DELETE, &path, None).await.status(), 204);
    assert_eq!(close(PASSWORD).await.status(), StatusCode::NO_CONTENT);
    problem(service.sign_in("ana@x.example", PASSWORD).await, 401).await;
    problem(refresh(&service, &ana.session).await, 401).await;
    let body = json!({ "api_key": key.text });
    problem(post(&service, "/v1/sessions/api-key", body).await, 401).await;
    // An unexpired access token of the closed account is refused.
    refused_token(&service, &ana.session).await;
    // The address can be used again.
    service.user("ana@x.example").await;
}

async fn operator_disables_enables_and_resets_an_account(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    let key = ana.new_key("one").await;
    let exchange = || {
        post(
            &service,
            "/v1/sessions/api-key",
            json!({ "api_key": key.text }),
        )
    };
    let change = |email, change| service.state.change_account(email, change);
    let unknown = change("eve@x.example", Change::Disable).await.unwrap_err();
    assert_eq!(unknown.kind(), ProblemKind::NotFound);
    change("Ana@x.example", Change::Disable).await.unwrap();
    let refused = problem(service.sign_in("ana@x.example", PASSWORD).await, 403).await;
    assert!(refused.detail.unwrap().contains("disabled"));
    // A wrong password does not reveal that the account is disabled.
    let wrong = service.sign_in("ana@x.example", "not the password").await;
    problem(wrong, 401).await;
    problem(refresh(&service, &ana.session).await, 401).await;
    problem(exchange().await, 401).await;
    change("ana@x.example", Change::Enable).await.unwrap();
    let signed_in = service.sign_in("ana@x.example", PASSWORD).await;
    read::<Session>(signed_in, StatusCode::CREATED).await;
    let new = Secret("another battery staple".to_owned());
    change("ana@x.example", Change::Password(new))
        .await
        .unwrap();
    problem(service.sign_in("ana@x.example", PASSWORD).await, 401).await;
    let signed_in = service.sign_in("ana@x.example", "another battery staple");
    read::<Session>(signed_in.await, StatusCode::CREATED).await;
}

/// Guards against a session that begins during the password check and survives the end of all others.
async fn sign_in_during_a_password_change_gets_no_session(kind: Kind) {
    let service = Service::start(kind).await;
    let email = "ana@x.example";
    let ana = service.user(email).await;
    for change in [
        Change::Password(Secret("another battery staple".to_owned())),
        Change::Disable,
    ] {
        service
            .state
            .change_account(email, Change::Password(Secret(PASSWORD.to_owned())))
            .await
            .unwrap();
        // Other sign-ins occupy the threads that compare passwords.
        let decoy = |number| {
            let email = format!("nobody{number}@x.example");
            let service = &service;
            async move { service.sign_in(&email, PASSWORD).await }
        };
        let decoys = futures_util::future::join_all((0..60).map(decoy));
        let thief = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            service.sign_in(email, PASSWORD).await
        };
        let owner = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let mut tx = service.state.base().store.begin().await.unwrap();
            // The result of the owner's change, without comparing and hashing its password.
            let statement = match change {
                Change::Disable => "UPDATE accounts SET disabled = 1 WHERE id = $1",
                _ => "UPDATE accounts SET password = 'another' WHERE id = $1",
            };
            let id = ana.account.id.to_string();
            for statement in [statement, "DELETE FROM refresh_tokens WHERE account = $1"] {
                let statement = sqlx::query(statement).bind(&id);
                statement.execute(&mut *tx).await.unwrap();
            }
            tx.commit().await.unwrap();
        };
        let (_, signed_in, ()) = tokio::join!(decoys, thief, owner);
        assert!(
            !signed_in.status().is_success(),
            "{change:?}: a session began"
        );
    }
}

/// A session that already exists cannot be renewed.
async fn refresh_of_a_disabled_account_is_rejected(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    let id = ana.account.id.to_string();
    // The row is changed directly, so the account's sessions still exist.
    let disable = sqlx::query("UPDATE accounts SET disabled = 1 WHERE id = $1").bind(id);
    disable
        .execute(service.state.base().store.pool())
        .await
        .unwrap();
    problem(refresh(&service, &ana.session).await, 401).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_not_stored_in_plain_text() {
    let service = Service::start(Kind::Sqlite).await;
    let ana = service.user("ana@x.example").await;
    let key = ana.new_key("one").await;
    let mut stored = Vec::new();
    for file in std::fs::read_dir(service.folder.path()).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() && !path.ends_with("keys") {
            stored.extend(std::fs::read(path).unwrap());
        }
    }
    let holds = |text: &str| {
        stored
            .windows(text.len())
            .any(|bytes| bytes == text.as_bytes())
    };
    assert!(holds("ana@x.example") && holds("$argon2id$"));
    let refresh = ana.session.refresh_token.clone().unwrap();
    for secret in [
        PASSWORD,
        &key.text.0,
        &key.text.0[6..],
        &refresh.0,
        ana.token(),
    ] {
        assert!(!holds(secret));
    }
    assert!(!format!("{:?} {:?}", ana.session, key).contains(&key.text.0));
}
