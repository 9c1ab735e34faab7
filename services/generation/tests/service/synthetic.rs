//! Synthetic tables over HTTP.

use crate::common::computation::Manner;
use crate::common::{Kind, Service, User, problem, schema, terms};
use bytes::Bytes;
use fhaim_api::job::{Job, ModelView};
use fhaim_domain::{Clique, ReadOptions, Table, read_csv};
use fhaim_synth::load_model;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use reqwest::{Method, StatusCode};
use std::time::Duration;

over_both!(
    synthetic_tables_and_model_file_match_the_job,
    account_with_many_draws_leaves_room_for_others
);

/// Forty draws of one account whose client reads nothing, and one draw of another account.
async fn account_with_many_draws_leaves_room_for_others(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let ben = service.user("ben@x.example").await;
    let job = ana.done_job().await;
    let own = ben.done_job().await;
    let path = format!("/v1/jobs/{}/synthetic?rows=4000000", job.id);
    let asked = (0..40).map(|_| ana.send(Method::GET, &path, None));
    let asked = futures_util::future::join_all(asked);
    let other = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        fetch(&ben, &own, "?rows=10").await
    };
    let (asked, drawn) = tokio::join!(asked, other);
    assert_eq!(table(&drawn).records(), 10);
    let served = asked
        .iter()
        .filter(|answer| answer.status() == StatusCode::OK);
    assert_eq!(served.count(), 2);
    let refused = asked
        .into_iter()
        .find(|answer| answer.status() != StatusCode::OK);
    let refused = problem(refused.unwrap(), 503).await;
    assert!(refused.retry_after.is_some());
}

async fn fetch(user: &User<'_>, job: &Job, query: &str) -> Bytes {
    let path = format!("/v1/jobs/{}/synthetic{query}", job.id);
    let response = user.send(Method::GET, &path, None).await;
    assert_eq!(response.status(), StatusCode::OK, "{query}");
    response.bytes().await.unwrap()
}

/// Parses a table strictly: header, columns, every value within its domain.
fn table(csv: &[u8]) -> Table {
    let options = ReadOptions::new("synthetic.csv");
    read_csv(schema(), csv, &options).unwrap().table
}

async fn synthetic_tables_and_model_file_match_the_job(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let job = ana.done_job().await;
    same_seed(&ana, &job).await;
    closeness(&ana, &job).await;
    blocks(&ana, &job).await;
    parquet(&ana, &job).await;
    conditions(&ana, &job).await;
    refusals(&ana, &job).await;
    model_file(&service, &ana, &job).await;
}

/// The downloaded model is the one from which tables are drawn. An unfinished job has no model.
async fn model_file(service: &Service, ana: &User<'_>, job: &Job) {
    let path = format!("/v1/jobs/{}/model/file", job.id);
    let response = ana.send(Method::GET, &path, None).await;
    assert_eq!(response.status(), StatusCode::OK);
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "application/octet-stream");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(
        header("content-disposition"),
        "attachment; filename=\"Some_patients__2026.model\""
    );
    let length: usize = header("content-length").parse().unwrap();
    let saved = response.bytes().await.unwrap();
    assert_eq!(saved.len(), length);
    let model = load_model(&saved, 1 << 30).unwrap();
    assert_eq!(model.save(), saved);
    let view: ModelView = ana.get(&format!("/v1/jobs/{}/model", job.id)).await;
    let marginals = model.marginals().unwrap();
    assert_eq!((model.total(), model.bytes()), (view.total, view.bytes));
    for (attribute, shown) in view.one_ways.iter().enumerate() {
        let fitted = marginals.marginal(&Clique::new([attribute])).unwrap();
        assert_eq!(fitted, shown.fitted);
    }
    let waiting = ana.ready_dataset(terms()).await;
    service.computation.answer(Manner::Hang);
    let new = ana.new_job(waiting.id).await;
    let path = format!("/v1/jobs/{}/model/file", new.id);
    ana.refused(Method::GET, &path, 409).await;
}

async fn same_seed(ana: &User<'_>, job: &Job) {
    let one = fetch(ana, job, "?seed=7&rows=500").await;
    assert_eq!(fetch(ana, job, "?rows=500&seed=7&format=csv").await, one);
    assert_ne!(fetch(ana, job, "?rows=500&seed=8").await, one);
    assert_ne!(
        fetch(ana, job, "?rows=500").await,
        fetch(ana, job, "?rows=500").await
    );
    assert_eq!(table(&one).records(), 500);
    let path = format!("/v1/jobs/{}/synthetic?rows=3", job.id);
    let response = ana.send(Method::GET, &path, None).await;
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(
        header("content-disposition"),
        "attachment; filename=\"Some_patients__2026-synthetic.csv\""
    );
    assert_eq!(header("fhaim-rows"), "3");
    // The chosen seed reproduces the table.
    let seed = header("fhaim-seed");
    let drawn = response.bytes().await.unwrap();
    assert_eq!(
        fetch(ana, job, &format!("?rows=3&seed={seed}")).await,
        drawn
    );
}

/// The table has as many records as the model, distributed like the original table.
async fn closeness(ana: &User<'_>, job: &Job) {
    let drawn = table(&fetch(ana, job, "?seed=1").await);
    assert!(drawn.records().abs_diff(2000) < 50);
    let (truth, pair) = (crate::common::table(), Clique::new([2, 3]));
    let distance: u64 = (drawn.counts(&pair).unwrap().iter())
        .zip(truth.counts(&pair).unwrap())
        .map(|(a, b)| a.abs_diff(b))
        .sum();
    // Independent columns would differ by about 1,400 in each direction.
    assert!(distance < 600, "{distance}");
}

/// A table of more than one block has one header and all records.
async fn blocks(ana: &User<'_>, job: &Job) {
    let csv = fetch(ana, job, "?rows=150001&seed=3").await;
    assert_eq!(table(&csv).records(), 150_001);
    let header = csv.windows(9).filter(|bytes| *bytes == b"sex,race,");
    assert_eq!(header.count(), 1);
}

async fn parquet(ana: &User<'_>, job: &Job) {
    let csv = fetch(ana, job, "?rows=100000&seed=3").await;
    let path = format!(
        "/v1/jobs/{}/synthetic?rows=100000&seed=3&format=parquet",
        job.id
    );
    let response = ana.send(Method::GET, &path, None).await;
    assert_eq!(
        response.headers()["content-type"],
        "application/vnd.apache.parquet"
    );
    let file = SerializedFileReader::new(response.bytes().await.unwrap()).unwrap();
    assert_eq!(file.metadata().file_metadata().num_rows(), 100_000);
    assert!(file.num_row_groups() > 1);
    let text = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Long(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let csv = std::str::from_utf8(&csv).unwrap();
    for (row, line) in file.get_row_iter(None).unwrap().zip(csv.lines().skip(1)) {
        let fields: Vec<String> = row
            .unwrap()
            .get_column_iter()
            .map(|(_, f)| text(f))
            .collect();
        assert_eq!(
            fields.join(","),
            line.replace("\"White, other\"", "White, other")
        );
    }
}

async fn conditions(ana: &User<'_>, job: &Job) {
    let given = |where_: &str| {
        let query = [("rows", "3000"), ("seed", "5"), ("where", where_)];
        let url = reqwest::Url::parse_with_params("http://x/", query).unwrap();
        format!("?{}", url.query().unwrap())
    };
    for (text, codes) in [
        ("race=Asian", vec![(1, 0)]),
        ("\"race=White, other\",sick=yes", vec![(1, 2), (4, 1)]),
        ("age=35,dose=0.8,sex=m", vec![(2, 3), (3, 1), (0, 1)]),
        ("dose=", vec![(3, 5)]),
    ] {
        let drawn = table(&fetch(ana, job, &given(text)).await);
        assert_eq!(drawn.records(), 3000);
        for (attribute, code) in codes {
            assert!(drawn.column(attribute).iter().all(|&c| c == code), "{text}");
        }
    }
    // Conditioning uses the joint distribution: dose depends on age.
    let old = table(&fetch(ana, job, &given("age=85")).await);
    let dose = old.counts(&Clique::new([3])).unwrap();
    assert!(dose[4] + dose[5] > 2700, "{dose:?}");
    let parquet = fetch(ana, job, &format!("{}&format=parquet", given("sex=f"))).await;
    assert_eq!(&parquet[..4], b"PAR1");
}

async fn refusals(ana: &User<'_>, job: &Job) {
    for (query, words) in [
        ("rows=0", "rows"),
        ("rows=100000001", "rows"),
        ("rows=many", "rows"),
        ("seed=-1", "seed"),
        ("format=xlsx", "format"),
        ("columns=a", "columns"),
        ("where=rice%3DAsian", "no column \"rice\""),
        ("where=race%3DAsain", "it has Asian, Black"),
        ("where=age%3D91", "numbers from 0 to 90"),
        ("where=sex%3Df,sex%3Dm", "two values"),
        ("where=sex", "column=value"),
        ("rows=100000000&format=parquet&where=%22", "quote"),
    ] {
        let path = format!("/v1/jobs/{}/synthetic?{query}", job.id);
        let refused = ana.refused(Method::GET, &path, 422).await;
        let detail = refused.detail.unwrap();
        assert!(detail.contains(words), "{query}: {detail}");
    }
}
