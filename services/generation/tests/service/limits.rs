//! Limits of an account, and their report.

use crate::common::{Kind, Service, fresh, problem, terms};
use fhaim_api::dataset::{NewDataset, Voucher, WireTerms};
use fhaim_api::problem::{Problem, ProblemKind};
use fhaim_api::usage::Usage;
use fhaim_platform::program::Program;
use reqwest::Method;
use serde_json::json;

over_both!(
    account_limits_are_enforced_and_reported,
    schema_whose_one_ways_fit_no_request_is_refused_before_it_is_planned,
    voucher_is_valid_only_at_the_crypto_service,
    voucher_is_refused_after_a_receipt_or_a_release
);

fn assert_names(problem: &Problem, limit: &str) {
    assert_eq!(problem.kind, ProblemKind::Quota, "{problem}");
    let words = problem.to_string();
    assert!(words.contains(&format!("{limit}: ")), "{words}");
}

async fn account_limits_are_enforced_and_reported(kind: Kind) {
    let service = Service::start_with(kind, |config| {
        config.limits.datasets = 2;
        config.limits.jobs = 3;
        config.limits.jobs_under_way = 1;
        config.limits.api_keys = 1;
    })
    .await;
    let ana = service.user("ana@x.example").await;
    let new = NewDataset {
        name: "t".to_owned(),
        terms: WireTerms(terms().choices()),
    };
    let new = serde_json::to_value(new).unwrap();
    // Concurrent calls do not exceed the limit.
    let put = async || ana.put(&fresh("/v1/datasets"), new.clone()).await;
    let (one, two, three) = tokio::join!(put(), put(), put());
    let mut refused = Vec::new();
    for made in [one, two, three] {
        if !made.status().is_success() {
            refused.push(problem(made, 403).await);
        }
    }
    let [refused] = refused.try_into().unwrap();
    assert_names(&refused, "datasets");
    let datasets = ana.get::<fhaim_api::Page<fhaim_api::dataset::Dataset>>("/v1/datasets");
    let datasets = datasets.await.items;
    let dataset = datasets[0].id;
    service.computation.complete_upload(dataset);
    let ready = format!("/v1/datasets/{dataset}/ready");
    ana.post::<fhaim_api::dataset::Dataset>(&ready).await;

    let jobs = format!("/v1/datasets/{dataset}/jobs");
    for _ in 0..3 {
        let job = ana.new_job(dataset).await.id;
        let another = ana.put(&fresh(&jobs), json!({})).await;
        // Either the dataset's runs or the account's limit is reached first.
        if let Ok(refused) = another.json::<Problem>().await
            && refused.kind != ProblemKind::BudgetSpent
        {
            assert_names(&refused, "jobs_under_way");
        }
        let cancel = format!("/v1/jobs/{job}/cancel");
        ana.post::<fhaim_api::job::Job>(&cancel).await;
    }
    assert_names(
        &problem(ana.put(&fresh(&jobs), json!({})).await, 403).await,
        "jobs",
    );

    ana.new_key("one").await;
    let another = ana
        .put(&fresh("/v1/api-keys"), json!({ "name": "two" }))
        .await;
    assert_names(&problem(another, 403).await, "api_keys");

    let usage: Usage = ana.get("/v1/usage").await;
    let used = usage
        .limits
        .iter()
        .map(|used| (&*used.limit, used.used, used.most));
    let expected = [
        ("datasets", 2, 2),
        ("jobs", 3, 3),
        ("jobs_under_way", 0, 1),
        ("api_keys", 1, 1),
        ("links", 0, 1_000),
    ];
    assert_eq!(used.collect::<Vec<_>>(), expected);
    // Deleting makes room, and other accounts have their own limits.
    let path = format!("/v1/datasets/{dataset}");
    assert_eq!(ana.send(Method::DELETE, &path, None).await.status(), 204);
    ana.new_dataset(terms()).await;
    let eve = service.user("eve@x.example").await;
    eve.new_dataset(terms()).await;
}

/// A key service without the keys was restored from an earlier copy, so it must not create others.
/// A plan for 2 columns of 10,000 categories takes 200,000,000 numbers, and no service accepts them in one
/// request.
async fn schema_whose_one_ways_fit_no_request_is_refused_before_it_is_planned(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    let put = async |columns: usize, categories: usize| {
        let categories: Vec<String> = (0..categories).map(|n| format!("{n:x}")).collect();
        let column =
            |n| json!({ "name": format!("c{n}"), "kind": "categorical", "categories": categories });
        let columns: Vec<_> = (0..columns).map(column).collect();
        let schema = json!({ "name": "wide", "columns": columns });
        let schema = serde_json::to_vec(&schema).unwrap();
        let schema = fhaim_domain::Schema::from_json("wide", &schema).unwrap();
        let new = NewDataset {
            name: "wide".to_owned(),
            terms: WireTerms(fhaim_protocol::terms::Terms::new(schema, 1.0, 1e-9, 1000)),
        };
        let new = serde_json::to_value(new).unwrap();
        ana.put(&fresh("/v1/datasets"), new).await
    };
    let began = std::time::Instant::now();
    let refused = problem(put(2, 10_000).await, 422).await;
    assert!(began.elapsed().as_secs_f64() < 1.0, "{:?}", began.elapsed());
    let words = refused.detail.unwrap();
    assert!(
        words.contains("schema: ") && words.contains("200000000"),
        "{words}"
    );
    // A batch with one column of 1,000 categories fits into a request.
    assert_eq!(put(2, 800).await.status(), reqwest::StatusCode::CREATED);
}

async fn voucher_is_refused_after_a_receipt_or_a_release(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    let store = &service.state.base().store;
    for (column, value) in [("receipt", "'{}'"), ("releases", "1")] {
        let dataset = ana.new_dataset(terms()).await.id;
        sqlx::query("UPDATE datasets SET state = 'ready'")
            .execute(store.pool())
            .await
            .unwrap();
        let path = format!("/v1/datasets/{dataset}/voucher");
        let job = ana
            .put(&fresh(&format!("/v1/datasets/{dataset}/jobs")), json!({}))
            .await;
        assert!(job.status().is_success());
        // A job without releases is not evidence of keys.
        ana.get::<Voucher>(&path).await;
        let known = format!("UPDATE jobs SET {column} = {value} WHERE dataset = '{dataset}'");
        let known = sqlx::query(sqlx::AssertSqlSafe(known));
        known.execute(store.pool()).await.unwrap();
        let refused = ana.send(Method::GET, &path, None).await;
        let words = problem(refused, 409).await.to_string();
        assert!(words.contains("set back"), "{words}");
    }
}

async fn voucher_is_valid_only_at_the_crypto_service(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    let dataset = ana.new_dataset(terms()).await.id;
    let path = format!("/v1/datasets/{dataset}/voucher");
    let made: Voucher = ana.get(&path).await;
    let verifier = &service.state.base().verifier;
    // The voucher is only for the crypto service: it is not accepted as a token here.
    let refused = verifier.verify(&made.voucher.0).await.unwrap_err();
    assert_eq!(refused.kind(), ProblemKind::Unauthenticated);
    let words = "the token is for another service";
    assert!(refused.to_string().contains(words), "{refused}");
    let used = (service.send_as(Some(&made.voucher.0), Method::GET, "/v1/account", None)).await;
    problem(used, 401).await;
    let eve = service.user("eve@x.example").await;
    eve.refused(Method::GET, &path, 404).await;
}
