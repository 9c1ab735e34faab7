//! `fhaim-lab bench endings`: how the fits of many runs end on tables that are hard to fit.
//!
//! Tables come from generators with fixed seeds. They have many zeros, long tails, columns that hardly vary, and a
//! dominant category. Each run counts its fits whose loss is above the number of measured values: noise accounts for
//! about half of that number.

use std::{fmt::Write as _, str::FromStr};

use clap::Args;
use fhaim_domain::{ReadOptions, Schema, Table, read_csv};
use fhaim_dp::accounting;
use fhaim_files::progress::Progress;
use fhaim_pgm::{Ending, FitReport};
use fhaim_release::MechanismJob;
use fhaim_synth::MechanismName;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde::Serialize;
use serde_json::{Value, json};

use super::families::normal;
use super::rows::Rows;
use crate::{args::DEFAULT_DELTA, error::Error};

pub const ENDINGS_EXAMPLES: &str = "\
Examples:
  fhaim-lab bench endings --seeds 20
  fhaim-lab bench endings --mechanism staged --family zero-inflated --epsilon 10 --seeds 100
  fhaim-lab bench endings --mechanism aim --max-columns 10 --seeds 2 --json";

/// Arguments of `bench endings`.
#[derive(Debug, Args)]
pub struct EndingsArguments {
    /// Mechanism to run (may be repeated)
    #[arg(long, value_name = "M", default_values_t = [MechanismName::default()])]
    pub mechanism: Vec<MechanismName>,
    /// Family of tables (may be repeated): zero-inflated, heavy-tail, near-constant, dominant or mixed
    #[arg(long, value_name = "FAMILY", default_values_t = Skew::ALL)]
    pub family: Vec<Skew>,
    /// Privacy budget (may be repeated)
    #[arg(long, value_name = "E", default_values_t = [0.1, 1.0, 10.0])]
    pub epsilon: Vec<f64>,
    /// Number of runs of each, every one on another table: seeds 0, 1, ...
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// Maximum number of columns of a table
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u8).range(2..=60))]
    pub max_columns: u8,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

/// A family of tables that are hard to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skew {
    /// Most records have zeros in all columns of amounts; the others have amounts with a long tail.
    ZeroInflated,
    /// The share of a category falls with a power of its rank.
    HeavyTail,
    /// All but about one record in a thousand have the same value.
    NearConstant,
    /// One category has nine records in ten.
    Dominant,
    /// Columns of all of these kinds.
    Mixed,
}

impl Skew {
    const ALL: [Self; 5] = [
        Self::ZeroInflated,
        Self::HeavyTail,
        Self::NearConstant,
        Self::Dominant,
        Self::Mixed,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::ZeroInflated => "zero-inflated",
            Self::HeavyTail => "heavy-tail",
            Self::NearConstant => "near-constant",
            Self::Dominant => "dominant",
            Self::Mixed => "mixed",
        }
    }

    /// Generates a table with 2 to `most` columns and 200 to 20,000 records. The same seed gives the same table.
    pub(super) fn table(self, most: u8, seed: u64) -> Result<Table, Error> {
        let mut rng = StdRng::seed_from_u64(seed ^ (self as u64) << 32);
        let columns = rng.random_range(2..=most);
        let records = (200.0 * 100f64.powf(rng.random())) as usize;
        let active = rng.random_range(0.02..0.5);
        let active: Vec<bool> = (0..records).map(|_| rng.random_bool(active)).collect();
        let columns = (0..columns).map(|i| {
            let kind = match self {
                Self::Mixed => Self::ALL[rng.random_range(0..4)],
                kind => kind,
            };
            let name = format!("c{i}");
            match kind {
                Self::ZeroInflated => amounts(&name, &active, &mut rng),
                kind => categories(&name, kind, &active, &mut rng),
            }
        });
        let columns: Vec<Column> = columns.collect();
        read(self.as_str(), &columns, records)
    }
}

impl std::fmt::Display for Skew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Skew {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|known| known.as_str() == name);
        let known = Self::ALL.map(Self::as_str).join(", ");
        found.ok_or_else(|| format!("{name:?} is not a family; choose from {known}"))
    }
}

/// A column's declaration in a schema, and its text in every record.
struct Column {
    schema: Value,
    cells: Vec<String>,
}

/// Generates amounts with a long tail in the active records, and zeros in nearly all others. Half of the columns are
/// numbers with digits within their bins; the others are small counts.
fn amounts(name: &str, active: &[bool], rng: &mut StdRng) -> Column {
    let is_amount = |active: bool, rng: &mut StdRng| active && rng.random_bool(0.95);
    if rng.random() {
        let most = rng.random_range(3..12);
        let mut count = |&active: &bool| match is_amount(active, rng) {
            true => (1.0 - 1.5 * (1.0 - rng.random::<f64>()).ln()).min(f64::from(most)) as u32,
            false => 0,
        };
        let cells = active.iter().map(|a| count(a).to_string()).collect();
        let categories: Vec<String> = (0..=most).map(|x| x.to_string()).collect();
        let schema = json!({"name": name, "kind": "categorical", "categories": categories});
        return Column { schema, cells };
    }
    let (middle, spread) = (rng.random_range(3.0..7.0), rng.random_range(0.5..2.0));
    let mut amount = |&active: &bool| match is_amount(active, rng) {
        true => (middle + spread * normal(rng)).exp().clamp(1.0, 1e6) as u64,
        false => 0,
    };
    let cells = active.iter().map(|a| amount(a).to_string()).collect();
    let inner = (1..10).map(|i| (middle + spread * (f64::from(i) - 5.0) / 2.5).exp() as u64);
    // The first bin must have room for 1, because 0 is special.
    let inner = inner.filter(|&edge| edge >= 2);
    let mut edges: Vec<u64> = inner.chain([0, 1_000_001]).collect();
    edges.sort_unstable();
    edges.dedup();
    let schema = json!({
        "name": name, "kind": "number", "special": [0], "edges": edges, "digits": 16, "integer": true
    });
    Column { schema, cells }
}

/// Generates categories with the family's shares. In half of the columns, the active records have the shares in reverse
/// order.
fn categories(name: &str, kind: Skew, active: &[bool], rng: &mut StdRng) -> Column {
    let size = rng.random_range(2..=24usize);
    let rest = 1.0 / (size as f64 - 1.0).max(1.0);
    let shares: Vec<f64> = match kind {
        Skew::HeavyTail => {
            let power = rng.random_range(1.0..3.0);
            (1..=size).map(|rank| (rank as f64).powf(-power)).collect()
        }
        Skew::NearConstant => std::iter::once(999.0).chain(vec![rest; size - 1]).collect(),
        _ => std::iter::once(9.0).chain(vec![rest; size - 1]).collect(),
    };
    let sum: f64 = shares.iter().sum();
    let depends = rng.random_bool(0.5);
    let mut category = |&active: &bool| {
        let mut left = sum * rng.random::<f64>();
        let found = shares.iter().position(|share| {
            left -= share;
            left < 0.0
        });
        let found = found.unwrap_or(size - 1);
        if depends && active {
            size - 1 - found
        } else {
            found
        }
    };
    let cells = active.iter().map(|a| format!("v{}", category(a))).collect();
    let names: Vec<String> = (0..size).map(|x| format!("v{x}")).collect();
    let schema = json!({"name": name, "kind": "categorical", "categories": names});
    Column { schema, cells }
}

/// Writes the columns as CSV and reads them by their schema, like a user's table.
fn read(name: &str, columns: &[Column], records: usize) -> Result<Table, Error> {
    let declared: Vec<&Value> = columns.iter().map(|column| &column.schema).collect();
    let names: Vec<&str> = declared.iter().filter_map(|c| c["name"].as_str()).collect();
    let mut csv = names.join(",");
    for record in 0..records {
        let cells: Vec<&str> = columns.iter().map(|c| c.cells[record].as_str()).collect();
        csv.push('\n');
        csv.push_str(&cells.join(","));
    }
    let schema = json!({"name": name, "columns": declared}).to_string();
    let schema = Schema::from_json(name, schema.as_bytes())?;
    Ok(read_csv(schema, csv.as_bytes(), &ReadOptions::new(name))?.table)
}

/// The results of a mechanism on a family's tables at one budget.
#[derive(Debug, Default, Serialize)]
struct Row {
    mechanism: String,
    family: String,
    epsilon: f64,
    runs: u64,
    /// Number of runs that ended with an error, and the first error.
    failed: u64,
    failure: Option<String>,
    /// Number of fits of all runs, and of calibrations of the junction tree in them.
    fits: usize,
    evaluations: usize,
    /// Number of fits that used all their steps.
    out_of_steps: usize,
    /// Number of fits whose loss is above their number of measured values.
    unexplained: usize,
    /// Number of last fits that used all their steps, and of last fits that no step improved.
    last_out_of_steps: u64,
    last_stuck: u64,
    /// Number of last fits whose loss is above their number of measured values, and the seeds of their runs.
    last_unexplained: u64,
    last_unexplained_seeds: Vec<u64>,
    /// Mean loss per measured value of last fits.
    mean_loss_per_value: f64,
    /// The largest loss per measured value of a last fit, and of any fit.
    worst_last: f64,
    worst: f64,
    /// Seconds of all fits, as measured on one machine.
    fit_seconds: f64,
}

impl Row {
    fn add(&mut self, seed: u64, report: &FitReport) {
        let chain = &report.chain;
        self.fits += chain.fits;
        self.evaluations += chain.steps;
        self.out_of_steps += chain.out_of_steps;
        self.unexplained += chain.unexplained;
        self.fit_seconds += chain.seconds;
        self.last_out_of_steps += u64::from(report.ending == Ending::OutOfSteps);
        self.last_stuck += u64::from(report.ending == Ending::Stuck);
        if !report.is_explained() {
            self.last_unexplained += 1;
            self.last_unexplained_seeds.push(seed);
        }
        self.mean_loss_per_value += report.loss_per_value();
        self.worst_last = self.worst_last.max(report.loss_per_value());
        self.worst = self.worst.max(chain.worst_loss_per_value);
    }
}

/// Runs the command: every mechanism on every family at every budget.
pub fn run(arguments: &EndingsArguments, progress: &Progress) -> Result<(), Error> {
    let mut rows = Rows::begin(arguments.json, HEADING, line)?;
    for &mechanism in &arguments.mechanism {
        for &family in &arguments.family {
            for &epsilon in &arguments.epsilon {
                let phase = progress.counted(
                    format!("{mechanism} {family} e{epsilon}"),
                    arguments.seeds,
                    "runs",
                );
                let mut row = Row {
                    mechanism: mechanism.to_string(),
                    family: family.to_string(),
                    epsilon,
                    runs: arguments.seeds,
                    ..Row::default()
                };
                for seed in 0..arguments.seeds {
                    let table = family.table(arguments.max_columns, seed)?;
                    match fit_report(mechanism, &table, epsilon, seed) {
                        Ok(report) => row.add(seed, &report),
                        Err(error) => {
                            row.failed += 1;
                            let place = || format!("seed {seed}: {error}");
                            row.failure.get_or_insert_with(place);
                        }
                    }
                    phase.reach(seed + 1);
                }
                row.mean_loss_per_value /= (row.runs - row.failed).max(1) as f64;
                phase.finish();
                rows.push(&row)?;
            }
        }
    }
    rows.end("Loss is per measured value: noise accounts for about .5.\n")
}

/// Returns the report on the last fit of a run, and on all fits before it.
fn fit_report(
    mechanism: MechanismName,
    table: &Table,
    epsilon: f64,
    seed: u64,
) -> Result<FitReport, fhaim_synth::Error> {
    let rho = accounting::rho(epsilon, DEFAULT_DELTA)?;
    let mut job = MechanismJob::new(table.domain().clone(), rho, table.records() as u64);
    job.model_bytes = 8_000_000;
    let mut rng = StdRng::seed_from_u64(seed);
    let outcome = mechanism.run_in_the_clear(table, &job, &mut rng, &mut |_| {})?;
    Ok(outcome.model.fit().unwrap_or_default())
}

const HEADING: &str = "mechanism  family         epsilon  runs failed    fits  evals/fit  out of steps  \
     above values  last: out stuck above   mean  worst  worst of all  seconds\n";

fn line(row: &Row) -> String {
    let mut text = format!(
        "{:10} {:14} {:>7} {:>5} {:>6} {:>7} {:>10.1} {:>13} {:>13} {:>10} {:>5} {:>5} {:>6.3} {:>6.2} {:>13.2} {:>8.1}\n",
        row.mechanism,
        row.family,
        row.epsilon,
        row.runs,
        row.failed,
        row.fits,
        row.evaluations as f64 / row.fits.max(1) as f64,
        row.out_of_steps,
        row.unexplained,
        row.last_out_of_steps,
        row.last_stuck,
        row.last_unexplained,
        row.mean_loss_per_value,
        row.worst_last,
        row.worst,
        row.fit_seconds,
    );
    if let Some(failure) = &row.failure {
        let _ = writeln!(text, "           {failure}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_a_seed_are_reproducible_and_within_their_limits() {
        for family in Skew::ALL {
            assert_eq!(family.as_str().parse(), Ok(family));
            for seed in 0..3 {
                let table = family.table(10, seed).unwrap();
                assert!((200..=20_000).contains(&table.records()));
                assert!((2..=10).contains(&table.schema().fields().len()));
                let again = family.table(10, seed).unwrap();
                assert_eq!(table.column(0), again.column(0));
            }
        }
        assert!(
            "zero"
                .parse::<Skew>()
                .unwrap_err()
                .contains("zero-inflated")
        );
    }
}
