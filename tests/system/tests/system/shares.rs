//! Key services that share keys, as processes: what one key service would release, and nothing that one of them
//! does not pay for.

use std::fs;

use fhaim_kit::{
    Backing, KEYSHARE, Services, Setting, WITNESS, command::stderr, files::read_json, until,
};

use super::{
    PROGRAM,
    flow::{answers, released},
    operators::on_database,
};

fn services(backing: &Backing, keys: usize, witness: bool) -> Services {
    let setting = Setting {
        witness,
        keys,
        ..Setting::new(PROGRAM)
    };
    Services::start_in(backing, setting)
}

/// The integers of `fhaim run` with the seed of [`Services::dataset`]'s noise.
fn own(services: &Services) -> Vec<Vec<i64>> {
    let data = ["run", "--data", "t.csv", "--schema", "t.schema.json"];
    let more = ["--epsilon", "1", "--out", "own.csv", "--seed", "5"];
    let ledger = ["--ledger", "own.json"];
    services.run("ana", &[&data[..], &more, &ledger].concat());
    let own = read_json(&services.folder.path().join("own.json"));
    answers(&own["releases"], "values")
}

/// The kinds of acts of a key service's chain, in order.
fn acts(services: &Services, service: usize) -> Vec<String> {
    on_database(services, service, "SELECT kind FROM chain ORDER BY height").1
}

/// A job's identifier from what `job run` prints first.
fn job(printed: &str) -> String {
    printed.lines().next().unwrap().to_owned()
}

fn whole(services: &Services, keys: usize, more: &[&str]) {
    services.sign_up("ana");
    let count = keys.to_string();
    let dataset = services.dataset("ana", &[&["--keys", &count], more].concat());
    let shown = services.run("ana", &["dataset", "show", &dataset]);
    for name in ["crypto", "keyshare1", "keyshare2"].iter().take(keys) {
        assert!(shown.contains(&format!(": {name}, key ")), "{shown}");
    }
    let printed = services.run("ana", &["job", "run", &dataset, "--watch"]);
    assert_eq!(released(services, "ana", &job(&printed)), own(services));
    // Every service has a chain of its own, with the same releases on it.
    let first = acts(services, 2);
    for other in KEYSHARE..KEYSHARE + keys - 1 {
        assert_eq!(acts(services, other), first);
        assert_eq!(services.log(other), "");
    }
    assert_eq!(services.log(2), "");
    services.run("ana", &["dataset", "delete", &dataset, "--yes"]);
    for other in [2].into_iter().chain(KEYSHARE..KEYSHARE + keys - 1) {
        let kept = "SELECT dataset FROM key_sets WHERE secret IS NOT NULL";
        assert_eq!(on_database(services, other, kept).1, Vec::<String>::new());
        assert_eq!(acts(services, other).last().unwrap(), "keys-destroyed");
    }
}

#[test]
fn two_release_what_one_does() {
    let services = services(&Backing::Local, 2, false);
    whole(&services, 2, &[]);
    // A dataset whose key one service has leaves nothing at the other.
    let dataset = services.dataset("ana", &[]);
    services.run("ana", &["job", "run", &dataset, "--watch"]);
    let known = "SELECT dataset FROM key_sets WHERE secret IS NOT NULL";
    assert_eq!(
        on_database(&services, KEYSHARE, known).1,
        Vec::<String>::new()
    );
}

#[test]
fn three_release_what_one_does_with_a_second_computation_service() {
    whole(&services(&Backing::Local, 3, true), 3, &["--witness"]);
}

#[test]
fn two_release_what_one_does_on_postgres_and_s3() {
    if let Some(backing) = Backing::remote() {
        whole(&services(&backing, 2, true), 2, &["--witness"]);
    }
}
