//! Checks at the end: all jobs are done with the results of undisturbed jobs, and were paid once.

use std::collections::BTreeMap;

use fhaim_kit::NAMES;
use serde_json::Value;

use super::{
    Stage,
    users::{Owned, RUNS, User},
};

/// Results of the jobs over a dataset, in the order in which they ran.
#[derive(Debug, PartialEq)]
pub struct Left {
    /// Releases of each job: integers, variances, costs.
    releases: Vec<Value>,
    /// Number of debits of each run.
    debits: Vec<usize>,
    /// Exact sum of all debits.
    spent: Value,
}

impl Left {
    /// Reads the results from the generation service and the crypto service.
    pub fn of(user: &User<'_>, owned: &Owned) -> Self {
        let jobs = owned.jobs.iter();
        let ledger = user.persist(&["ledger", &owned.dataset]);
        let debits = |job: &String| {
            let mut runs = ledger["runs"].as_array().unwrap().iter();
            let run = runs.find(|run| run["job"] == **job);
            run.map_or(0, |run| run["releases"].as_array().unwrap().len())
        };
        Self {
            debits: jobs.clone().map(debits).collect(),
            spent: ledger["spent"]["exact"].clone(),
            releases: jobs
                .map(|job| user.persist(&["job", "releases", job]))
                .collect(),
        }
    }

    /// Returns the total number of releases.
    pub fn count(&self) -> usize {
        self.debits.iter().sum()
    }
}

/// Compares a dataset with an undisturbed one of the same table and seed. Returns the number of its releases.
pub fn judge(stage: &Stage, user: &User<'_>, owned: &Owned, undisturbed: &Left) -> usize {
    let place = format!("dataset {} of {}", owned.dataset, owned.user);
    let left = Left::of(user, owned);
    if left.releases != undisturbed.releases {
        stage.finding(format!(
            "{place}: the releases differ from those without faults: {owned:?}"
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
            "{RUNS} jobs were started, but there are {} jobs and {runs} runs",
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

/// Reports datasets that exist twice.
pub fn no_dataset_twice(stage: &Stage, user: &User<'_>) {
    let datasets = user.persist(&["dataset", "list"]);
    let mut names = BTreeMap::new();
    for dataset in datasets.as_array().unwrap() {
        *names.entry(dataset["name"].to_string()).or_insert(0) += 1;
    }
    for (name, number) in names {
        if number > 1 {
            stage.finding(format!("{number} datasets have the same name: {name}"));
        }
    }
}

/// Reports internal faults in the services' logs, and returns all log lines by frequency.
pub fn read_logs(stage: &Stage) -> String {
    let mut complaints = BTreeMap::new();
    for (service, name) in NAMES.iter().enumerate() {
        for line in stage.services.log(service).lines() {
            if line.contains("kind=Internal") || line.contains("panicked") {
                stage.finding(format!("{name}: internal fault: {line}"));
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

/// Returns a line of a log without its time, identifiers and numbers.
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
