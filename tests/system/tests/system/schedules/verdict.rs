//! Checks at the end of a schedule: nothing is lost, nothing is spent twice, nothing is stuck.

use std::collections::{BTreeMap, BTreeSet};

use fhaim_kit::{KEYSHARE, name_of};
use serde_json::Value;

use super::{
    COMPUTATION, CRYPTO, GENERATION, Stage,
    chains::{self, Chains, ReleaseName},
    refusals::Refusal,
    users::{DatasetRecord, JobRecord, User, table},
};

/// Number of datasets, jobs and losses of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Datasets that users made.
    pub datasets: usize,
    /// Datasets that users deleted.
    pub deleted: usize,
    /// Jobs with results.
    pub done: usize,
    /// Datasets that were refused after services were set back.
    pub lost: usize,
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.datasets += other.datasets;
        self.deleted += other.deleted;
        self.done += other.done;
        self.lost += other.lost;
    }
}

/// Checks all datasets of all users, and returns their numbers.
pub fn judge(stage: &Stage, users: &[User<'_>], records: &mut [DatasetRecord]) -> Outcome {
    let mut outcome = Outcome::default();
    for record in records.iter_mut() {
        let user = users
            .iter()
            .find(|user| user.name() == record.user)
            .unwrap();
        outcome.add(judge_dataset(stage, user, record));
    }
    let ledger = chains::read(&stage.services, CRYPTO);
    for record in records.iter() {
        judge_ledger(stage, record, &ledger);
    }
    judge_positions(stage, records);
    judge_other_account(stage);
    outcome
}

/// Checks that a dataset is usable with the results that its user had, or is refused for a loss.
pub fn judge_dataset(stage: &Stage, user: &User<'_>, record: &mut DatasetRecord) -> Outcome {
    let mut outcome = Outcome {
        datasets: 1,
        ..Outcome::default()
    };
    if record.deleted.is_some() {
        outcome.deleted = 1;
        judge_deletion(stage, user, record);
        return outcome;
    }
    if let Some(refusal) = record.refused.take() {
        // The dataset may be usable again: the last job shows it.
        explained(stage, record, refusal);
    }
    for job in record.jobs.clone() {
        outcome.done += usize::from(judge_results(stage, user, record, job));
    }
    match user.job(record) {
        Ok(()) => outcome.done += 1,
        Err(refusal) => record.refused = Some(explained(stage, record, refusal)),
    }
    if record.refused.is_some() {
        outcome.lost = 1;
        return outcome;
    }
    judge_budget(stage, user, record);
    if record.partner.is_none() {
        judge_integers(stage, user, record);
    }
    outcome
}

/// Checks that the results of a job are the same as before, or are refused for a loss. Returns whether they are there.
fn judge_results(
    stage: &Stage,
    user: &User<'_>,
    record: &mut DatasetRecord,
    mut job: JobRecord,
) -> bool {
    let Some(results) = job.results.take() else {
        return false;
    };
    let again = user.results(&job.id).or_else(|_| {
        // The generation service may not know the job any more.
        user.finish(record, &mut job)?;
        user.results(&job.id)
    });
    match again {
        Ok(again) if again.equal(&results) => return true,
        Ok(again) => stage.finding(format!(
            "job {} of {} has other results: {results:?} and {again:?}",
            job.id, record.dataset
        )),
        Err(refusal) => record.refused = Some(explained(stage, record, refusal)),
    }
    false
}

/// Checks that the releases of a dataset cost no more than its budget.
fn judge_budget(stage: &Stage, user: &User<'_>, record: &DatasetRecord) {
    let ledger = user.insist(&record.user, &["ledger", &record.dataset]);
    let ledger = ledger.map(|text| serde_json::from_str::<Value>(&text).unwrap());
    let is_within = |ledger: &Value| {
        Some(ledger["spent"]["rho"].as_f64()? <= ledger["budget"]["rho"].as_f64()?)
    };
    match ledger {
        Ok(ledger) if is_within(&ledger) == Some(true) => {}
        other => stage.finding(format!("{} is over its budget: {other:?}", record.dataset)),
    }
}

/// Reports a refusal that no loss explains, and returns it.
fn explained(stage: &Stage, record: &DatasetRecord, refusal: Refusal) -> Refusal {
    let set_backs = stage.set_backs.lock().unwrap();
    let is_explained = refusal.is_explained(&set_backs, &record.dataset, record.began);
    drop(set_backs);
    if !is_explained {
        let (dataset, words) = (&record.dataset, &refusal.words);
        stage.finding(format!("{dataset} is refused without a loss: {words}"));
    }
    refusal
}

/// Checks that a deleted dataset is gone. It exists again where a service was set back to before its deletion, and can
/// then be deleted again.
fn judge_deletion(stage: &Stage, user: &User<'_>, record: &mut DatasetRecord) {
    let [began, ended] = record.deleted.unwrap();
    // Also if a service was set back while the deletion continued at the others.
    let is_back = |service| {
        let set_backs = stage.set_backs.lock().unwrap();
        let mut of_service = set_backs
            .iter()
            .filter(|set_back| set_back.service == service);
        of_service.any(|set_back| set_back.copied < ended && set_back.at > began)
    };
    let exists = user.insist(&record.user, &["dataset", "show", &record.dataset]);
    if exists.is_ok() {
        if !is_back(GENERATION) {
            stage.finding(format!("{} exists after its deletion", record.dataset));
        }
        if let Err(refusal) = user.delete(record) {
            stage.finding(format!(
                "{} is not deleted again: {refusal:?}",
                record.dataset
            ));
        }
    }
    let keys = chains::read(&stage.services, CRYPTO);
    if chains::has_keys(&keys, &record.dataset) && !is_back(CRYPTO) {
        stage.finding(format!("{} has keys after its deletion", record.dataset));
    }
}

/// Compares all released integers of a dataset with its table and its noise.
fn judge_integers(stage: &Stage, user: &User<'_>, record: &DatasetRecord) {
    let data = table(record.variant);
    let verify = ["verify", &record.dataset, "--data", &data, "--json"];
    let found = user.run(&record.user, &verify);
    let report: Value = serde_json::from_str(&found.out).unwrap_or_default();
    if !found.success || report["findings"] != Value::Array(Vec::new()) {
        stage.finding(format!(
            "the integers of {} are wrong: {} {}",
            record.dataset, found.out, found.err
        ));
    }
}

/// Checks that the ledger has every release that a user saw. If the key service forgot one and another party knows of
/// it, the dataset is frozen.
fn judge_ledger(stage: &Stage, record: &DatasetRecord, ledger: &Chains) {
    if record.deleted.is_some() {
        return;
    }
    let debited = chains::releases(ledger);
    for job in &record.jobs {
        for (number, (seen, _)) in &job.seen {
            let name = (record.dataset.clone(), job.id.clone(), *number);
            let is_known = [GENERATION, COMPUTATION]
                .iter()
                .any(|service| !stage.is_set_back_before(*service, *seen));
            let is_frozen = chains::is_frozen(ledger, &record.dataset);
            if !debited.contains(&name) && is_known && !is_frozen && record.refused.is_none() {
                stage.finding(format!(
                    "release {name:?} was seen and is not in the ledger"
                ));
            }
        }
    }
}

/// Checks that no position of a ladder served two releases, unless all services forgot the first one.
pub fn judge_positions(stage: &Stage, records: &[DatasetRecord]) {
    let seen = seen(records);
    let set_backs = stage.set_backs.lock().unwrap();
    for service in stage.setup.services() {
        if service != CRYPTO && service < KEYSHARE {
            continue;
        }
        let before = set_backs
            .iter()
            .filter(|set_back| set_back.service == service);
        let last = chains::read(&stage.services, service);
        let histories = before.map(|set_back| &set_back.before).chain([&last]);
        for pair in chains::doubled(histories) {
            // Nobody knows the integers of a release that no user saw: it did not leave the services.
            let Some(at) = pair.iter().find_map(|name| seen.get(name)) else {
                continue;
            };
            let is_forgotten = |service: &usize| {
                let mut later = set_backs
                    .iter()
                    .filter(|set_back| set_back.service == *service);
                later.any(|set_back| set_back.copied < *at && set_back.at > *at)
            };
            if ![GENERATION, COMPUTATION, CRYPTO].iter().all(is_forgotten) {
                let name = name_of(service);
                stage.finding(format!("{name}: a position served two releases: {pair:?}"));
            }
        }
    }
}

/// Returns the releases that users saw, with the first time.
fn seen(records: &[DatasetRecord]) -> BTreeMap<ReleaseName, std::time::Instant> {
    let mut all = BTreeMap::new();
    for record in records {
        for job in &record.jobs {
            for (number, (at, _)) in &job.seen {
                all.insert((record.dataset.clone(), job.id.clone(), *number), *at);
            }
        }
    }
    all
}

/// Checks that another account can use the services.
fn judge_other_account(stage: &Stage) {
    let other = User::new(stage, "other");
    let mut record = other.create(0, None, "other-0");
    match other
        .job(&mut record)
        .and_then(|()| other.delete(&mut record))
    {
        Ok(()) => {}
        Err(refusal) => stage.finding(format!("another account cannot work: {refusal:?}")),
    }
}

/// Reports internal faults in the services' logs, and returns all log lines by frequency.
pub fn read_logs(stage: &Stage) -> String {
    let mut complaints = BTreeMap::new();
    let mut faults = BTreeSet::new();
    for service in stage.setup.services() {
        let name = name_of(service);
        for line in stage.services.log(service).lines() {
            if line.contains("kind=Internal") || line.contains("panicked") {
                faults.insert(format!("{name}: internal fault: {line}"));
            }
            *complaints
                .entry(format!("{name}: {}", shape(line)))
                .or_insert(0) += 1;
        }
    }
    faults.into_iter().for_each(|fault| stage.finding(fault));
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
