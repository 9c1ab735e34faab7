//! A key service that shows holders an invented history of releases.

use std::fs;

use fhaim_kit::{Backing, KEYSHARE, ServiceOptions, Services, command::stderr};
use fhaim_protocol::crypto::chain::{Act, Tip};
use fhaim_protocol::crypto::judge::{Replay, Rules};
use fhaim_protocol::request::DatasetId;
use fhaim_protocol::terms::Terms;
use fhaim_release::{Axis, ReleaseRequest, Statistic};
use serde_json::Value;
use uuid::Uuid;

use super::{
    PROGRAM,
    operators::on_database,
    parties::{self, HOLDERS},
    restores::CRYPTO,
    verify,
};

const GENERATION: usize = 0;

fn services(keys: usize) -> Services {
    let setting = ServiceOptions {
        keys,
        ..ServiceOptions::new(PROGRAM)
    };
    Services::start_in(&Backing::Local, setting)
}

/// Returns the releases with functions that are zero. They have the same cells and positions, and almost no cost.
fn zeroed(requests: &[ReleaseRequest], categories: usize) -> Vec<ReleaseRequest> {
    let zero = |request: &ReleaseRequest| ReleaseRequest {
        statistic: Statistic::OneWay(Axis {
            attribute: 0,
            functions: vec![vec![0; categories]; request.statistic.cells()],
        }),
        ..request.clone()
    };
    requests.iter().map(zero).collect()
}

/// Rewrites the key service's record of a dataset's only run: other releases at the same positions, on a valid chain.
fn invent(services: &Services, dataset: &str) {
    let shown = services.json("ana", &["dataset", "show", dataset]);
    let terms: Terms = serde_json::from_value(shown["terms"].clone()).unwrap();
    let id = DatasetId(dataset.parse::<Uuid>().unwrap().into_bytes());
    let rules = Rules::new(id, &terms.plan_core().unwrap());
    let categories = rules.plan.domain.sizes()[0];
    let rows = "SELECT json_object('height', height, 'act', act, 'requests', requests, \
                'answers', answers) FROM chain ORDER BY height";
    let rows = on_database(services, CRYPTO, rows).1;
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    let read = |row: &Value| serde_json::from_str::<Act>(row["act"].as_str().unwrap()).unwrap();
    let requests = |row: &Value| -> Vec<ReleaseRequest> {
        serde_json::from_str(row["requests"].as_str().unwrap()).unwrap()
    };
    let mut tip = Tip::default();
    let mut replay: Option<Replay> = None;
    let mut debited = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let mut act = read(row);
        match &mut act {
            Act::Debited { job, entries, .. } => {
                // The next act is the release, which has the requests.
                let zero = zeroed(&requests(&rows[number + 1]), categories);
                let run = replay.get_or_insert_with(|| Replay::new(&rules, *job, 0));
                (_, *entries) = run.batch(&rules, &zero).unwrap();
                debited.clone_from(entries);
            }
            Act::Released { entries, .. } => {
                entries.clone_from(&debited);
                let zero = zeroed(&requests(row), categories);
                let zero = serde_json::to_string(&zero).unwrap();
                edit(services, &row["height"], ("requests", &zero));
            }
            _ => (),
        }
        let act = serde_json::to_string(&act).unwrap();
        tip = tip.append(id, &act);
        edit(services, &row["height"], ("act", &act));
        let head: String = tip.head.iter().map(|byte| format!("{byte:02x}")).collect();
        edit(services, &row["height"], ("head", &head));
    }
    forget_receipts(services);
}

/// Removes the holders' receipts. A key service that deviates would ignore them, but the program compares them.
fn forget_receipts(services: &Services) {
    for holder in HOLDERS {
        fs::remove_dir_all(services.folder.path().join(holder).join("receipts")).unwrap();
    }
}

fn edit(services: &Services, height: &Value, (column, value): (&str, &str)) {
    assert!(!value.contains('\''));
    let statement = format!("UPDATE chain SET {column} = '{value}' WHERE height = {height}");
    assert_eq!(on_database(services, CRYPTO, &statement).0, 1);
}

/// Makes the generation service show the invented requests as well.
fn have_generation_agree(services: &Services) {
    let rows = "SELECT json_object('job', job, 'first', json_extract(requests, '$[0].number'), \
                'requests', requests) FROM chain WHERE kind = 'released' ORDER BY height";
    let mut batches = 0;
    for (number, row) in on_database(services, CRYPTO, rows).1.iter().enumerate() {
        let row: Value = serde_json::from_str(row).unwrap();
        let (job, requests) = (
            row["job"].as_str().unwrap(),
            row["requests"].as_str().unwrap(),
        );
        let statement = format!(
            "UPDATE batches SET requests = '{requests}' WHERE job = '{job}' AND number = {number}"
        );
        batches += on_database(services, GENERATION, &statement).0;
    }
    assert!(batches > 1);
}

/// Returns the masked summands of each release in a holder's share, or the reason for a refusal.
fn share(services: &Services, holder: &str, dataset: &str) -> Result<Vec<Vec<u64>>, String> {
    let (data, out) = (format!("{holder}.csv"), format!("{holder}.share"));
    let command = ["verify", dataset, "--data", &data, "--share-out", &out];
    let told = services.command(holder, &command);
    let path = services.folder.path().join(out);
    if !told.status.success() {
        assert!(!path.exists(), "a share was written");
        return Err(stderr(&told));
    }
    let share: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let masked = share["releases"].as_array().unwrap().iter();
    let masked = masked.map(|release| serde_json::from_value(release["masked"].clone()).unwrap());
    Ok(masked.collect())
}

/// Returns the releases of the only job minus the sum of all shares.
fn rest(services: &Services, dataset: &str, shares: &[Vec<Vec<u64>>]) -> Vec<Vec<i64>> {
    let jobs = services.json("ana", &["job", "list", dataset]);
    let job = jobs[0]["id"].as_str().unwrap().to_owned();
    let releases = services.json("ana", &["job", "releases", &job]);
    let of_release = |(number, release): (usize, &Value)| {
        let values: Vec<i64> = serde_json::from_value(release["values"].clone()).unwrap();
        let sum = |cell: usize| {
            let masked = shares.iter().map(|share| share[number][cell]);
            masked.fold(0u64, u64::wrapping_add).cast_signed()
        };
        let cells = values.iter().enumerate();
        cells.map(|(cell, value)| value - sum(cell)).collect()
    };
    let releases = releases.as_array().unwrap().iter().enumerate();
    releases.map(of_release).collect()
}

/// Asks every holder for its share, and returns the refusals. Panics if no holder refuses.
fn refusals(services: &Services, dataset: &str) -> Vec<Option<String>> {
    let shares = HOLDERS.map(|holder| share(services, holder, dataset));
    if shares.iter().all(Result::is_ok) {
        let shares = shares.map(Result::unwrap);
        let rest = rest(services, dataset, &shares);
        panic!(
            "no holder refused its share; the releases without noise are {:?} ...",
            &rest[..3]
        );
    }
    let refusals = shares.map(Result::err);
    eprintln!("{refusals:#?}");
    refusals.into()
}

#[test]
#[ignore = "slow"]
fn invented_history_of_a_key_service_gets_no_share() {
    let services = services(1);
    let dataset = verify::shared(&services, parties::Division::Records, &[]);
    invent(&services, &dataset);
    for refusal in refusals(&services, &dataset) {
        let words = refusal.expect("refused");
        assert!(words.contains("generation service"), "{words}");
    }
}

/// The generation service deviates as well. A holder that watched the job has its own record of the releases.
#[test]
#[ignore = "slow"]
fn invented_history_of_two_services_gets_no_share_of_a_holder_that_watched() {
    let services = services(1);
    let dataset = verify::shared(&services, parties::Division::Records, &[]);
    invent(&services, &dataset);
    have_generation_agree(&services);
    let [_, ben, _] = refusals(&services, &dataset).try_into().unwrap();
    let words = ben.expect("refused");
    assert!(words.contains("this machine recorded"), "{words}");
}

/// If several services share the key, one key service that follows the protocol is enough.
#[test]
#[ignore = "slow"]
fn invented_history_gets_no_share_where_one_key_service_has_another() {
    let services = services(2);
    let dataset = verify::shared(&services, parties::Division::Records, &["--keys", "2"]);
    let kinds = on_database(&services, KEYSHARE, "SELECT kind FROM chain").1;
    assert!(kinds.contains(&"released".to_owned()));
    invent(&services, &dataset);
    have_generation_agree(&services);
    for refusal in refusals(&services, &dataset) {
        let words = refusal.expect("refused");
        assert!(words.contains("keyshare1"), "{words}");
    }
}
