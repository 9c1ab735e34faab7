//! What must be so when all is over: everything done, as if nothing had happened, and paid once.

use std::collections::BTreeMap;

use fhaim_kit::NAMES;
use serde_json::Value;

use super::{
    Stage,
    users::{Owned, RUNS, User},
};

/// What jobs over a dataset have left, in the order in which they ran.
#[derive(Debug, PartialEq)]
pub struct Left {
    /// Everything released: integers, variances, costs.
    releases: Vec<Value>,
    /// Debits of each run.
    debits: Vec<usize>,
    /// All of them together.
    spent: Value,
}

impl Left {
    /// Reads it from the generation service and the crypto service.
    pub fn of(user: &User<'_>, owned: &Owned) -> Self {
        let jobs = owned.jobs.iter();
        let ledger = user.persist(&["ledger", &owned.dataset]);
        let debits = |job: &String| {
            let mut runs = ledger["runs"].as_array().unwrap().iter();
            let run = runs.find(|run| run["job"] == **job);
            run.map_or(0, |run| run["entries"].as_array().unwrap().len())
        };
        Self {
            debits: jobs.clone().map(debits).collect(),
            spent: ledger["spent"]["exact"].clone(),
            releases: jobs
                .map(|job| user.persist(&["job", "releases", job]))
                .collect(),
        }
    }

    /// Releases in all.
    pub fn count(&self) -> usize {
        self.debits.iter().sum()
    }
}

/// Holds a dataset against an undisturbed one of the same table and seed.
pub fn judge(stage: &Stage, user: &User<'_>, owned: &Owned, undisturbed: &Left) -> usize {
    let place = format!("dataset {} of {}", owned.dataset, owned.user);
    let left = Left::of(user, owned);
    if left.releases != undisturbed.releases {
        stage.finding(format!(
            "{place}: other releases than without faults: {owned:?}"
        ));
    }
    if (&left.debits, &left.spent) != (&undisturbed.debits, &undisturbed.spent) {
        let (Left { debits, spent, .. }, other) = (&left, undisturbed);
        let debited = format!(
            "{debits:?}, {spent} instead of {:?}, {}",
            other.debits, other.spent
        );
        stage.finding(format!("{place}: debited {debited}"));
    }
    let ledger = user.persist(&["ledger", &owned.dataset]);
    if !ledger["frozen"].is_null() {
        stage.finding(format!("{place}: frozen: {}", ledger["frozen"]));
    }
    let runs = ledger["runs"].as_array().unwrap().len();
    let jobs = user.persist(&["job", "list", &owned.dataset]);
    let jobs = jobs.as_array().unwrap();
    if (runs, jobs.len()) != (RUNS, RUNS) {
        let counts = format!(
            "{RUNS} jobs were started, there are {} and {runs} runs",
            jobs.len()
        );
        stage.finding(format!("{place}: {counts}"));
    }
    for job in jobs {
        if job["state"] != "done" {
            stage.finding(format!("{place}: a job is not done: {job}"));
        }
    }
    left.count()
}

/// Datasets that are there twice.
pub fn no_dataset_twice(stage: &Stage, user: &User<'_>) {
    let datasets = user.persist(&["dataset", "list"]);
    let mut names = BTreeMap::new();
    for dataset in datasets.as_array().unwrap() {
        *names.entry(dataset["name"].to_string()).or_insert(0) += 1;
    }
    for (name, number) in names {
        if number > 1 {
            stage.finding(format!("{number} datasets of one name: {name}"));
        }
    }
}

/// Faults of the services' own, and what they complained of, by how often.
pub fn read_logs(stage: &Stage) -> String {
    let mut complaints = BTreeMap::new();
    for (service, name) in NAMES.iter().enumerate() {
        for line in stage.services.log(service).lines() {
            if line.contains("kind=Internal") || line.contains("panicked") {
                stage.finding(format!("{name}: a fault of the service: {line}"));
            }
            *complaints
                .entry(format!("{name}: {}", shape(line)))
                .or_insert(0) += 1;
        }
    }
    let mut complaints: Vec<(String, usize)> = complaints.into_iter().collect();
    complaints.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let lines = complaints
        .iter()
        .map(|(line, number)| format!("{number:6} {line}\n"));
    lines.collect()
}

/// A line of a log without its time, identifiers and numbers.
fn shape(line: &str) -> String {
    let words = line.split_whitespace().skip(1).map(|word| {
        let digits = word.chars().filter(char::is_ascii_digit).count();
        if word.len() >= 32 && digits > 4 {
            "..."
        } else {
            word.trim_end_matches(|c: char| c.is_ascii_digit())
        }
    });
    let text: String = words.collect::<Vec<_>>().join(" ");
    text.chars().take(240).collect()
}
