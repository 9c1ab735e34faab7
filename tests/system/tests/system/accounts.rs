//! Accounts: the commands of their owners and of operators.

use std::{fs, path::PathBuf, process::Command};

use fhaim_api::account::{ApiKeyMade, Credentials, Secret};
use fhaim_api::problem::ProblemKind;
use fhaim_kit::{Backing, PASSWORD, ServiceOptions, Services, until};
use fhaim_sdk::{Client, Endpoints};
use uuid::Uuid;

use super::{
    PROGRAM,
    deletion::files,
    operators::{admin, ask, on_database},
    tenants::tokens,
};

/// Runs a command of a user whose current password and new password are `words`. Returns whether it succeeded, and its
/// output.
fn with_password(
    services: &Services,
    user: &str,
    words: [&str; 2],
    arguments: &[&str],
) -> (bool, String) {
    let mut env = Command::new("env");
    let [password, new] = words;
    env.arg(format!("FHAIM_NEW_PASSWORD={new}"));
    let mut command = services.command_under(env, user, arguments);
    let done = command.env("FHAIM_PASSWORD", password).output().unwrap();
    let told = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8(told).unwrap())
}

/// A mistyped password must not delete datasets and keys while the account remains.
#[test]
#[ignore = "slow"]
fn deletion_with_wrong_password_deletes_nothing() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &["--runs", "2"]);
    let job = services.run("ana", &["job", "run", &dataset, "--watch", "--yes"]);
    let job = job.lines().next().unwrap();
    let delete = ["account", "delete", "--yes"];
    let (well, told) = with_password(&services, "ana", ["correct horse batter", ""], &delete);
    assert!(!well && !told.contains("deleted"), "{told}");
    let listed = services.json("ana", &["dataset", "list"]);
    assert_eq!(listed[0]["id"], dataset.as_str());
    services.run("ana", &["download", job, "--out", "made.csv"]);
    services.run("ana", &["job", "run", &dataset, "--watch", "--yes"]);
    let (well, told) = with_password(&services, "ana", [PASSWORD, ""], &delete);
    assert!(well, "{told}");
    let folders = services.home(1).join("blobs/uploads").join(&dataset);
    assert_eq!(files(&folders), Vec::<PathBuf>::new());
    assert_eq!(
        on_database(&services, 0, "SELECT id FROM accounts").1,
        [""; 0]
    );
    assert!(!services.try_sign_in("ana").status.success());
}

/// A new password ends the sessions on other machines. `--everywhere` ends all sessions.
#[test]
fn password_change_and_logout_end_other_sessions() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    // The same account on another machine.
    let (here, there) = (
        services.folder.path().join("ana"),
        services.folder.path().join("laptop"),
    );
    let copy = |what: &str| {
        services.sign_in("ana");
        fs::create_dir_all(&there).unwrap();
        fs::copy(here.join("login.json"), there.join("login.json")).unwrap();
        fs::remove_file(here.join("login.json")).unwrap();
        services.sign_in("ana");
        assert!(
            services
                .command("laptop", &["dataset", "list"])
                .status
                .success(),
            "{what}"
        );
    };
    let is_out = |user: &str| {
        !services
            .command(user, &["dataset", "list"])
            .status
            .success()
    };
    copy("before");
    let new = "another battery staple";
    let change = ["account", "password"];
    let (well, told) = with_password(&services, "ana", ["not my password", new], &change);
    assert!(!well, "{told}");
    assert!(!is_out("laptop"));
    let (well, told) = with_password(&services, "ana", [PASSWORD, new], &change);
    assert!(well && told.contains("changed"), "{told}");
    assert!(is_out("laptop") && !is_out("ana"));
    assert!(
        !services.try_sign_in("ana").status.success(),
        "the old password still signs in"
    );
    let (well, told) = with_password(&services, "ana", [new, PASSWORD], &change);
    assert!(well, "{told}");
    copy("after");
    services.run("ana", &["account", "logout", "--everywhere"]);
    assert!(is_out("laptop") && is_out("ana"));
}

#[test]
fn disabled_account_cannot_sign_in_until_enabled() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let refuse = ["disable", "eve@example.org"];
    assert!(
        !admin(&services, 0, &refuse).0,
        "the account does not exist"
    );
    let (well, words) = admin(&services, 0, &["disable", "ana@example.org"]);
    assert!(well, "{words}");
    let told = services.try_sign_in("ana");
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("disabled"), "{told}");
    let (well, words) = admin(&services, 0, &["enable", "ana@example.org"]);
    assert!(well, "{words}");
    services.sign_in("ana");
    services.run("ana", &["dataset", "list"]);
}

/// A token that was made before the account was disabled is refused by all services.
#[test]
#[ignore = "slow"]
fn tokens_of_a_disabled_account_delete_nothing() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &[]);
    let old = tokens(&services, "ana");
    let delete = |service: usize| {
        let path = format!("{}/v1/datasets/{dataset}", services.address(service));
        let http = fhaim_platform::peer::http_client().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let request = http.delete(path).bearer_auth(&old[service]);
        let answer = runtime.block_on(async { request.send().await });
        answer.unwrap().status().as_u16()
    };
    let usage = |service: usize| {
        let path = format!("{}/v1/usage", services.address(service));
        ask(&path, Some(&old[service]), None).0
    };
    assert_eq!([0, 1, 2].map(usage), [200; 3]);
    assert!(admin(&services, 0, &["disable", "ana@example.org"]).0);
    // The other services ask the generation service every few seconds.
    until(|| match [0, 1, 2].map(usage) {
        [401, 401, 401] => Ok(()),
        told => Err(format!("{told:?}")),
    });
    assert_eq!([2, 1, 0].map(delete), [401; 3]);
    assert!(admin(&services, 0, &["enable", "ana@example.org"]).0);
    assert_eq!([2, 1, 0].map(delete), [401; 3]);
    services.sign_in("ana");
    services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    services.run("ana", &["dataset", "delete", &dataset, "--yes"]);
}

/// Makes an API key, and returns its text.
async fn new_key(services: &Services, token: &str) -> Secret {
    let http = fhaim_platform::peer::http_client().unwrap();
    let address = format!("{}/v1/api-keys/{}", services.address(0), Uuid::now_v7());
    let name = serde_json::json!({ "name": "nightly" });
    let made = http.put(address).bearer_auth(token).json(&name);
    let made = made.send().await.unwrap();
    made.json::<ApiKeyMade>().await.unwrap().text
}

/// A program that is still signed in continues with a new token. The program whose key is revoked is out.
#[test]
fn operator_revokes_an_api_key_and_other_sessions_continue() {
    let services = Services::start(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let [generation, computation, crypto] = [0, 1, 2].map(|service| services.address(service));
    let endpoints = Endpoints {
        generation,
        computation,
        crypto,
        witness: None,
    };
    let credentials = Credentials {
        email: "ana@example.org".to_owned(),
        password: Secret(PASSWORD.to_owned()),
    };
    let [token, _, _] = tokens(&services, "ana");
    let (ana, program) = runtime.block_on(async {
        let ana = Client::new(endpoints.clone()).unwrap();
        ana.sign_in(&credentials).await.unwrap();
        let program = Client::new(endpoints).unwrap();
        let key = new_key(&services, &token).await;
        program.sign_in_with_key(key).await.unwrap();
        (ana, program)
    });
    let keys = ["keys", "ana@example.org"];
    let (well, listed) = admin(&services, 0, &keys);
    assert!(well && listed.lines().count() == 1, "{listed}");
    assert!(listed.trim_end().ends_with("nightly"), "{listed}");
    let key = listed.split_whitespace().next().unwrap();
    let revoke = [&keys[..], &["--revoke", key]].concat();
    let (well, words) = admin(&services, 0, &revoke);
    assert!(well, "{words}");
    let (well, words) = admin(&services, 0, &keys);
    assert!(well && words.contains("has no API keys"), "{words}");
    let (well, words) = admin(&services, 0, &revoke);
    assert!(
        !well && words.contains(key),
        "a key is revoked twice: {words}"
    );
    let (well, words) = admin(&services, 0, &["keys", "nobody@example.org"]);
    assert!(!well && words.contains("nobody@example.org"), "{words}");
    runtime.block_on(async {
        ana.account().await.unwrap();
        let refused = program.account().await.unwrap_err();
        assert_eq!(refused.kind(), Some(ProblemKind::Unauthenticated));
    });
}

/// Too many sign-ins and invalid keys are in the security log of the generation service.
#[test]
fn refused_sign_ins_keys_and_tokens_are_logged() {
    let tries = "FHAIM_GENERATION__LIMITS__SIGN_INS_PER_EMAIL".to_owned();
    let setting = ServiceOptions {
        variables: [vec![(tries, "3".to_owned())], vec![], vec![]],
        ..ServiceOptions::new(PROGRAM)
    };
    let services = Services::start_in(&Backing::Local, setting);
    services.sign_up("ana");
    let sessions = format!("{}/v1/sessions", services.address(0));
    let wrong = serde_json::json!({ "email": "ana@example.org", "password": "not the password" });
    let answers: Vec<_> = (0..5)
        .map(|_| ask(&sessions, None, Some(wrong.clone())).0)
        .collect();
    assert_eq!(answers.last(), Some(&429));
    let key = serde_json::json!({ "api_key": "fhaim_made_up_key" });
    assert_eq!(ask(&format!("{sessions}/api-key"), None, Some(key)).0, 401);
    let log = services.log(0);
    for event in ["sign-in-limited", "key-refused"] {
        let line = log.lines().find(|line| line.contains(event));
        assert!(
            line.is_some_and(|line| line.contains("security")),
            "{event}: {log}"
        );
    }
    assert!(!log.contains("made_up"), "{log}");
    // Each service logs invalid tokens.
    for service in 0..3 {
        let address = format!("{}/v1/usage", services.address(service));
        assert_eq!(ask(&address, Some("a.b.c"), None).0, 401);
        let log = services.log(service);
        assert!(
            log.contains("token-refused") && !log.contains("a.b.c"),
            "{service}: {log}"
        );
    }
}
