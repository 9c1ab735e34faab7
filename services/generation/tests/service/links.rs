//! Links to results: their content, their users, and their limits.

use crate::common::computation::Manner;
use crate::common::{Kind, PASSWORD, Service, User, fresh, problem, read, terms};
use fhaim_api::Page;
use fhaim_api::job::JobState;
use fhaim_api::link::{LINK_HEADER, Link, LinkMade, LinkedResult};
use fhaim_api::problem::ProblemKind;
use fhaim_generation::Change;
use fhaim_platform::program::Program as _;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

over_both!(
    link_opens_the_result_and_nothing_else,
    link_secret_is_shown_only_once,
    link_shows_the_name_that_its_dataset_had,
    revoked_link_cannot_be_opened,
    expired_link_cannot_be_opened,
    links_are_deleted_with_their_dataset,
    links_need_a_finished_job_and_are_limited,
);

async fn make(user: &User<'_>, job: Uuid, name: &str) -> LinkMade {
    let path = fresh(&format!("/v1/jobs/{job}/links"));
    let made = user.put(&path, json!({ "name": name })).await;
    read(made, StatusCode::CREATED).await
}

/// Sends a request with a link's secret.
async fn by(user: &User<'_>, path: &str, secret: &str) -> Response {
    let http = reqwest::Client::new();
    let call = http.get(format!("{}{path}", user.service.base));
    let call = call.bearer_auth(user.token()).header(LINK_HEADER, secret);
    call.send().await.unwrap()
}

/// Opens a link.
async fn open(user: &User<'_>, made: &LinkMade) -> Response {
    by(user, &format!("/v1/links/{}", made.link.id), &made.secret.0).await
}

async fn link_opens_the_result_and_nothing_else(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let ben = service.user("ben@x.example").await;
    let job = ana.done_job().await;
    let made = make(&ana, job.id, "Ben, statistics").await;
    let card: LinkedResult = read(open(&ben, &made).await, StatusCode::OK).await;
    assert_eq!(
        (card.job, card.name.as_str()),
        (job.id, "Some patients, 2026")
    );
    assert_eq!((card.epsilon, card.delta, card.runs), (5.0, 1e-9, 1));
    assert_eq!(card.schema, terms().schema);
    assert_eq!(card.spent, job.spent);
    assert!((card.total - 2000.0).abs() < 50.0 && card.caveats.len() >= 3);
    let race = &card.attributes[1];
    assert_eq!((race.name.as_str(), race.labels.len()), ("race", 4));
    // The same table as the holder would draw.
    let query = "?rows=50&seed=7&where=sex%3Df";
    let path = format!("/v1/links/{}/synthetic{query}", made.link.id);
    let drawn = by(&ben, &path, &made.secret.0).await;
    assert_eq!(drawn.headers()["fhaim-rows"], "50");
    let own = format!("/v1/jobs/{}/synthetic{query}", job.id);
    let own = ana.send(Method::GET, &own, None).await;
    assert_eq!(drawn.bytes().await.unwrap(), own.bytes().await.unwrap());
    let wrong = format!("/v1/links/{}/synthetic?rows=0", made.link.id);
    problem(by(&ben, &wrong, &made.secret.0).await, 422).await;
    nothing_else(&ben, job.id, job.dataset).await;
    // The holder sees that the link was opened.
    let links: Page<Link> = ana.get(&format!("/v1/jobs/{}/links", job.id)).await;
    assert!(links.items[0].last_opened_at.unwrap() >= links.items[0].created_at);
    // Callers who are not signed in see nothing, even with the secret.
    let http = reqwest::Client::new();
    let path = format!("{}/v1/links/{}", service.base, made.link.id);
    let call = http.get(path).header(LINK_HEADER, &made.secret.0);
    problem(call.send().await.unwrap(), 401).await;
}

/// A holder may later write into a name what a link's users must not know.
async fn link_shows_the_name_that_its_dataset_had(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let ben = service.user("ben@x.example").await;
    let job = ana.done_job().await;
    let made = make(&ana, job.id, "Ben").await;
    let rename = async |name: &str| {
        let path = format!("/v1/datasets/{}/name", job.dataset);
        let renamed = ana.put(&path, json!({ "name": name })).await;
        assert_eq!(renamed.status(), StatusCode::OK);
    };
    rename("Patients of Dr. Doe").await;
    let card: LinkedResult = read(open(&ben, &made).await, StatusCode::OK).await;
    assert_eq!(card.name, "Some patients, 2026");
    let path = format!("/v1/links/{}/synthetic?rows=3", made.link.id);
    let drawn = by(&ben, &path, &made.secret.0).await;
    let file = drawn.headers()["content-disposition"].to_str().unwrap();
    assert!(file.contains("Some_patients__2026-synthetic.csv"), "{file}");
    // A later link shows the later name.
    let later = make(&ana, job.id, "Eve").await;
    let card: LinkedResult = read(open(&ben, &later).await, StatusCode::OK).await;
    assert_eq!(card.name, "Patients of Dr. Doe");
}

/// Checks that an account that opened a link has no access as a holder.
async fn nothing_else(ben: &User<'_>, job: Uuid, dataset: Uuid) {
    for path in [
        format!("/v1/jobs/{job}"),
        format!("/v1/jobs/{job}/releases"),
        format!("/v1/jobs/{job}/model"),
        format!("/v1/jobs/{job}/model/file"),
        format!("/v1/jobs/{job}/synthetic"),
        format!("/v1/jobs/{job}/links"),
        format!("/v1/datasets/{dataset}"),
    ] {
        ben.refused(Method::GET, &path, 404).await;
    }
    let datasets: Page<Value> = ben.get("/v1/datasets").await;
    assert!(datasets.items.is_empty());
}

async fn link_secret_is_shown_only_once(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let ben = service.user("ben@x.example").await;
    let job = ana.done_job().await.id;
    let path = fresh(&format!("/v1/jobs/{job}/links"));
    let name = json!({ "name": "Ben" });
    let put = async |name: &Value| ana.put(&path, name.clone()).await;
    let lost: LinkMade = read(put(&name).await, StatusCode::CREATED).await;
    // The response was lost: repeating the call gives another secret and voids the lost one.
    let made: LinkMade = read(put(&name).await, StatusCode::OK).await;
    assert_ne!(made.secret, lost.secret);
    let other = problem(put(&json!({ "name": "Eve" })).await, 409).await;
    assert_eq!(other.kind, ProblemKind::Conflict);
    problem(open(&ben, &lost).await, 404).await;
    read::<LinkedResult>(open(&ben, &made).await, StatusCode::OK).await;
    let opened = problem(put(&name).await, 409).await.detail.unwrap();
    assert!(opened.contains("has been opened"), "{opened}");
    // Neither the list nor the database contains the secret.
    let listed: Value = ana.get(&format!("/v1/jobs/{job}/links")).await;
    assert!(!listed.to_string().contains(&made.secret.0));
    if matches!(kind, Kind::Sqlite) {
        for entry in std::fs::read_dir(service.folder.path()).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
            let secret = made.secret.0.as_bytes();
            assert!(!bytes.windows(secret.len()).any(|found| found == secret));
        }
    }
    // The secret is not accepted in the URL.
    let query = format!("/v1/links/{}?fhaim-link={}", made.link.id, made.secret.0);
    ben.refused(Method::GET, &query, 404).await;
    for wrong in ["", "x", &lost.secret.0, &made.secret.0[1..]] {
        let path = format!("/v1/links/{}", made.link.id);
        let refused = problem(by(&ben, &path, wrong).await, 404).await;
        assert_eq!(refused.detail, None);
        let path = format!("{path}/synthetic");
        problem(by(&ben, &path, wrong).await, 404).await;
    }
}

async fn revoked_link_cannot_be_opened(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let ben = service.user("ben@x.example").await;
    let job = ana.done_job().await.id;
    let (one, two) = (make(&ana, job, "one").await, make(&ana, job, "two").await);
    let path = format!("/v1/jobs/{job}/links/{}", one.link.id);
    ben.refused(Method::DELETE, &path, 404).await;
    read::<LinkedResult>(open(&ben, &one).await, StatusCode::OK).await;
    let revoked = ana.send(Method::DELETE, &path, None).await;
    assert_eq!(revoked.status(), StatusCode::NO_CONTENT);
    ana.refused(Method::DELETE, &path, 404).await;
    problem(open(&ben, &one).await, 404).await;
    read::<LinkedResult>(open(&ben, &two).await, StatusCode::OK).await;
    let links: Page<Link> = ana.get(&format!("/v1/jobs/{job}/links")).await;
    assert_eq!(links.items.len(), 1);
    // Disabling the account that made a link disables the link.
    let change = async |change| service.state.change_account("ana@x.example", change).await;
    change(Change::Disable).await.unwrap();
    problem(open(&ben, &two).await, 404).await;
    change(Change::Enable).await.unwrap();
    read::<LinkedResult>(open(&ben, &two).await, StatusCode::OK).await;
}

async fn expired_link_cannot_be_opened(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let ben = service.user("ben@x.example").await;
    let job = ana.done_job().await.id;
    let path = fresh(&format!("/v1/jobs/{job}/links"));
    let asked = |days: u32| json!({ "name": "Ben", "days": days });
    for wrong in [0, 3651] {
        let refused = problem(ana.put(&path, asked(wrong)).await, 422).await;
        assert!(refused.detail.unwrap().contains("must be 1 to 3650;"));
    }
    let made: LinkMade = read(ana.put(&path, asked(30)).await, StatusCode::CREATED).await;
    let term = made.link.expires_at.unwrap() - made.link.created_at;
    assert_eq!(term, time::Duration::days(30));
    // Repeating the call keeps the first expiry; another number of days is a conflict.
    let again: LinkMade = read(ana.put(&path, asked(30)).await, StatusCode::OK).await;
    assert_eq!(again.link.expires_at, made.link.expires_at);
    problem(ana.put(&path, asked(31)).await, 409).await;
    let endless = make(&ana, job, "no expiry").await;
    assert_eq!(endless.link.expires_at, None);
    read::<LinkedResult>(open(&ben, &again).await, StatusCode::OK).await;
    // After the expiry, drawing a table is refused as well.
    let ended = sqlx::query("UPDATE links SET expires_at = created_at WHERE expires_at > 0");
    let pool = service.state.base().store.pool();
    assert_eq!(ended.execute(pool).await.unwrap().rows_affected(), 1);
    problem(open(&ben, &again).await, 404).await;
    let table = format!("/v1/links/{}/synthetic?rows=5", again.link.id);
    problem(by(&ben, &table, &again.secret.0).await, 404).await;
    read::<LinkedResult>(open(&ben, &endless).await, StatusCode::OK).await;
    let links: Page<Link> = ana.get(&format!("/v1/jobs/{job}/links")).await;
    assert_eq!(links.items[1].expires_at, Some(links.items[1].created_at));
}

async fn links_are_deleted_with_their_dataset(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let ben = service.user("ben@x.example").await;
    let job = ana.done_job().await;
    let made = make(&ana, job.id, "Ben").await;
    let dataset = format!("/v1/datasets/{}", job.dataset);
    let deleted = ana.send(Method::DELETE, &dataset, None).await;
    assert_eq!(deleted.status(), StatusCode::NO_CONTENT);
    problem(open(&ben, &made).await, 404).await;
    let usage: fhaim_api::usage::Usage = ana.get("/v1/usage").await;
    let links = usage.limits.iter().find(|used| used.limit == "links");
    assert_eq!(links.unwrap().used, 0);
    let close = json!({ "password": PASSWORD });
    let closed = ana.send(Method::DELETE, "/v1/account", Some(close)).await;
    assert_eq!(closed.status(), StatusCode::NO_CONTENT);
}

async fn links_need_a_finished_job_and_are_limited(kind: Kind) {
    let mut service = Service::start_with(kind, |config| config.limits.links = 1).await;
    service.work();
    let ana = service.user("ana@x.example").await;
    let done = ana.done_job().await.id;
    service.computation.answer(Manner::Hang);
    let dataset = ana.ready_dataset(terms()).await.id;
    let job = ana.new_job(dataset).await;
    assert_ne!(job.state, JobState::Done);
    let links = |job: Uuid| fresh(&format!("/v1/jobs/{job}/links"));
    let named = |name: &str| json!({ "name": name });
    let early = problem(ana.put(&links(job.id), named("Ben")).await, 409).await;
    assert!(early.detail.unwrap().contains("no model"));
    for wrong in ["", "a\nb", &"x".repeat(101)] {
        problem(ana.put(&links(done), named(wrong)).await, 422).await;
    }
    make(&ana, done, "one").await;
    let many = problem(ana.put(&links(done), named("two")).await, 403).await;
    assert_eq!(many.kind, ProblemKind::Quota);
    // An expired link does not count, and is deleted some time later.
    for end in [
        "UPDATE links SET expires_at = created_at WHERE expires_at = 0",
        "UPDATE links SET expires_at = 1 WHERE expires_at = 0",
    ] {
        let pool = service.state.base().store.pool();
        let changed = sqlx::query(end).execute(pool).await.unwrap();
        assert_eq!(changed.rows_affected(), 1);
        make(&ana, done, "next").await;
        let all: Page<Link> = ana.get(&format!("/v1/jobs/{done}/links")).await;
        assert_eq!(all.items.len(), 2);
    }
}
