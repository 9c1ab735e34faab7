//! `fhaim ledger`: the privacy ledger of a dataset, with the names of its columns.

use std::{collections::HashMap, fmt::Write};

use fhaim_api::{
    Cost,
    dataset::Dataset,
    keys::{DatasetLedger, Receipt},
};
use fhaim_domain::{Claim, Schema};
use fhaim_dp::{Entry, Rho};
use fhaim_sdk::Client;
use serde::Serialize;
use uuid::Uuid;

use super::{args::ShowArguments, login};
use crate::{error::Error, output};

/// Output of `fhaim ledger --json`: a summary, then the releases of each run.
#[derive(Debug, Serialize)]
struct LedgerView {
    dataset: Uuid,
    name: String,
    /// Budget of all runs together: epsilon and delta.
    epsilon: f64,
    delta: f64,
    budget: Cost,
    spent: Cost,
    /// Budget that no run has yet.
    unclaimed: Cost,
    /// Reason for which nothing more is released.
    #[serde(skip_serializing_if = "Option::is_none")]
    frozen: Option<String>,
    /// Cost of drafting the schema, according to its holder. It is not part of the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    draft: Option<Claim>,
    receipt: Receipt,
    runs: Vec<RunView>,
}

/// A run of the dataset.
#[derive(Debug, Serialize)]
struct RunView {
    job: Uuid,
    budget: Cost,
    spent: Cost,
    phases: Vec<PhaseView>,
    releases: Vec<ReleaseView>,
}

/// The releases of a run's phase together.
#[derive(Debug, Serialize)]
struct PhaseView {
    phase: String,
    releases: usize,
    cells: u64,
    rho: f64,
}

/// A release.
#[derive(Debug, Serialize)]
struct ReleaseView {
    number: u32,
    phase: String,
    /// Names of the columns; empty for a release about the whole table.
    columns: Vec<String>,
    /// The kind of the statistic, such as `pair of columns`.
    statistic: String,
    cells: u64,
    /// Standard deviation of the noise of each holder.
    sigma: f64,
    rho: f64,
}

/// Runs `fhaim ledger`.
pub async fn run(arguments: &ShowArguments) -> Result<(), Error> {
    let client = login::client()?;
    let ledger = client.ledger(arguments.dataset).await?;
    let dataset = client.dataset(arguments.dataset).await?;
    let phases = phases(&client, &ledger).await;
    let view = LedgerView::new(ledger, &dataset, &phases);
    match arguments.json {
        true => output::print_json(&view),
        false => output::print(&view.to_text()),
    }
}

/// Returns the phase of each release, by job and number. The crypto service does not know phases, and no cost depends
/// on them, so a job without an answer has none.
async fn phases(client: &Client, ledger: &DatasetLedger) -> HashMap<(Uuid, u32), String> {
    let mut phases = HashMap::new();
    for run in &ledger.runs {
        let releases = client.releases(run.job).await.unwrap_or_default();
        let of_run = releases
            .into_iter()
            .map(|release| ((run.job, release.number), release.phase));
        phases.extend(of_run);
    }
    phases
}

impl LedgerView {
    fn new(
        ledger: DatasetLedger,
        dataset: &Dataset,
        phases: &HashMap<(Uuid, u32), String>,
    ) -> Self {
        let terms = &dataset.terms.0;
        let runs = ledger.runs.into_iter().map(|run| {
            let release = |entry: &Entry| {
                let phase = phases.get(&(run.job, entry.debit.number));
                ReleaseView::new(entry, phase.cloned(), &terms.schema)
            };
            let releases: Vec<ReleaseView> = run.entries.iter().map(release).collect();
            RunView {
                job: run.job,
                budget: run.budget,
                spent: run.spent,
                phases: PhaseView::all(&releases),
                releases,
            }
        });
        Self {
            dataset: dataset.id,
            name: dataset.name.clone(),
            epsilon: terms.epsilon,
            delta: terms.delta,
            budget: ledger.budget,
            spent: ledger.spent,
            unclaimed: ledger.unclaimed,
            frozen: ledger.frozen,
            draft: terms.schema.claim(),
            receipt: ledger.receipt,
            runs: runs.collect(),
        }
    }

    fn to_text(&self) -> String {
        let parts = [&self.budget, &self.spent, &self.unclaimed].map(|cost| cost.rho);
        let mut text = format!(
            "{}: epsilon {}, delta {:e}\n{}{}",
            self.name,
            self.epsilon,
            self.delta,
            self.draft.map_or_else(String::new, drafted),
            budget_text(parts, self.frozen.as_deref())
        );
        for run in &self.runs {
            run.write(&mut text);
        }
        text
    }
}

impl RunView {
    /// Adds the run to `text`: the phases, then the releases. Writing to a text cannot fail.
    fn write(&self, text: &mut String) {
        let (spent, budget) = (self.spent.rho, self.budget.rho);
        let _ = writeln!(text, "\njob {}: spent {spent:.6} of {budget:.6}", self.job);
        let _ = writeln!(
            text,
            "{:>8} {:>8} {:>9}  phase",
            "spent", "releases", "integers"
        );
        for phase in &self.phases {
            let share = 100.0 * phase.rho / spent.max(f64::MIN_POSITIVE);
            let (releases, cells, phase) = (phase.releases, phase.cells, &phase.phase);
            let _ = writeln!(text, "{share:7.1}% {releases:8} {cells:9}  {phase}");
        }
        let _ = writeln!(
            text,
            "\n{:>8} {:>8} {:>9} {:>9}  statistic",
            "release", "rho", "integers", "noise"
        );
        for release in &self.releases {
            let (number, rho, cells, sigma) =
                (release.number, release.rho, release.cells, release.sigma);
            let what = release.words();
            let _ = writeln!(text, "{number:8} {rho:8.2e} {cells:9} {sigma:9.2}  {what}");
        }
        text.push_str(
            "(rho: privacy cost; noise: standard deviation of the noise in each integer)\n",
        );
    }
}

impl PhaseView {
    /// Adds up the releases of each phase, in the order of their first release.
    fn all(releases: &[ReleaseView]) -> Vec<Self> {
        let mut phases: Vec<Self> = Vec::new();
        for release in releases {
            let known = phases.iter().position(|known| known.phase == release.phase);
            let at = known.unwrap_or(phases.len());
            if known.is_none() {
                phases.push(Self {
                    phase: release.phase.clone(),
                    releases: 0,
                    cells: 0,
                    rho: 0.0,
                });
            }
            if let Some(phase) = phases.get_mut(at) {
                phase.releases += 1;
                phase.cells += release.cells;
                phase.rho += release.rho;
            }
        }
        phases
    }
}

impl ReleaseView {
    fn new(entry: &Entry, phase: Option<String>, schema: &Schema) -> Self {
        let debit = &entry.debit;
        let columns = columns(&debit.description, schema);
        let statistic = match columns.len() {
            0 => debit.description.clone(),
            1 => "column".to_owned(),
            _ => "pair of columns".to_owned(),
        };
        Self {
            number: debit.number,
            phase: phase.unwrap_or_else(|| statistic.clone()),
            columns,
            statistic,
            cells: debit.cells,
            sigma: (4.0 * debit.variance_units as f64).sqrt(),
            rho: entry.cost().map_or(f64::INFINITY, Rho::to_f64),
        }
    }

    fn words(&self) -> String {
        match self.columns.is_empty() {
            true => self.statistic.clone(),
            false => self.columns.join(" x "),
        }
    }
}

/// Returns the names of the columns in a ledger's description of a release, which has the numbers of attributes, such as
/// `attributes 0 and 9`. Returns none for another description.
fn columns(description: &str, schema: &Schema) -> Vec<String> {
    let numbers = description
        .strip_prefix("attributes ")
        .or_else(|| description.strip_prefix("attribute "));
    let names = numbers.map(|numbers| {
        let name = |number: &str| {
            let column = schema.columns().get(number.parse::<usize>().ok()?)?;
            Some(column.name().to_owned())
        };
        numbers
            .split(" and ")
            .map(name)
            .collect::<Option<Vec<String>>>()
    });
    names.flatten().unwrap_or_default()
}

/// Describes the state of a dataset's budget.
pub fn budget(ledger: &DatasetLedger) -> String {
    let parts = [&ledger.budget, &ledger.spent, &ledger.unclaimed].map(|cost| cost.rho);
    budget_text(parts, ledger.frozen.as_deref())
}

fn budget_text([budget, spent, unclaimed]: [f64; 3], frozen: Option<&str>) -> String {
    let mut text = format!(
        "budget: rho {budget:.6}, spent {spent:.6}, available for new runs {unclaimed:.6}\n"
    );
    if let Some(reason) = frozen {
        text.push_str(&format!("nothing more can be released: {reason}\n"));
    }
    text
}

/// Describes the cost of drafting the schema. The holder states it, and no service can check it.
fn drafted(claim: Claim) -> String {
    let rho = Rho::from_count(claim.rho).to_f64();
    format!(
        "schema: drafted privately, rho {rho:.6} (epsilon {}, delta {:e}) according to its holder; this cost \
         adds to the budget\n",
        claim.epsilon, claim.delta
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_of_the_draft_is_shown() {
        let claim = Claim {
            epsilon: 0.1,
            delta: 1e-10,
            rho: 1 << 70,
        };
        let told = drafted(claim);
        assert!(
            told.starts_with("schema: drafted privately, rho 0.000977 (epsilon 0.1, delta 1e-10)"),
            "{told}"
        );
    }

    #[test]
    fn frozen_ledger_shows_the_reason() {
        let cost = |rho: f64| serde_json::json!({ "exact": "1", "rho": rho });
        let mut ledger = serde_json::json!({
            "dataset": Uuid::nil(), "budget": cost(0.5), "spent": cost(0.25),
            "unclaimed": cost(0.25), "runs": [],
            "receipt": {
                "dataset": Uuid::nil(), "height": 1, "head": "0".repeat(64), "signature": "",
            },
        });
        let told =
            |ledger: &serde_json::Value| budget(&serde_json::from_value(ledger.clone()).unwrap());
        let open = "budget: rho 0.500000, spent 0.250000, available for new runs 0.250000\n";
        assert_eq!(told(&ledger), open);
        ledger["frozen"] = "set back".into();
        let frozen = format!("{open}nothing more can be released: set back\n");
        assert_eq!(told(&ledger), frozen);
    }

    #[test]
    fn release_is_described_by_column_names() {
        let schema = r#"{"name": "t", "columns": [
            {"name": "sex", "kind": "categorical", "categories": ["f", "m"]},
            {"name": "ward", "kind": "categorical", "categories": ["north", "south"]}]}"#;
        let schema = Schema::from_json("t.json", schema.as_bytes()).unwrap();
        assert_eq!(columns("attribute 1", &schema), ["ward"]);
        assert_eq!(columns("attributes 0 and 1", &schema), ["sex", "ward"]);
        for other in ["number of records", "scores of 3 pairs", "attribute 7"] {
            assert!(columns(other, &schema).is_empty(), "{other}");
        }
    }

    #[test]
    fn phases_add_up_their_releases() {
        let release = |number, phase: &str, rho| ReleaseView {
            number,
            phase: phase.to_owned(),
            columns: Vec::new(),
            statistic: "number of records".to_owned(),
            cells: 2,
            sigma: 1.0,
            rho,
        };
        let releases = [
            release(0, "a", 0.5),
            release(1, "b", 0.25),
            release(2, "a", 0.125),
        ];
        let phases = PhaseView::all(&releases);
        let parts: Vec<_> = phases
            .iter()
            .map(|p| (p.phase.as_str(), p.releases, p.cells, p.rho))
            .collect();
        assert_eq!(parts, [("a", 2, 4, 0.625), ("b", 1, 2, 0.25)]);
    }
}
