//! `fhaim-lab bench attack`: attacks the models of mechanisms, with privacy and without it.
//!
//! A model is made from a random tenth of the records; the others were not seen. In addition to the selected budgets,
//! there is one with almost no noise. If an attack failed on it, its failure on other models would mean nothing.

use std::num::NonZeroUsize;

use clap::Args;
use fhaim_domain::Table;
use fhaim_dp::accounting;
use fhaim_eval::{Attack, MonteCarlo};
use fhaim_files::progress::Progress;
use fhaim_release::MechanismJob;
use fhaim_synth::MechanismName;
use rand::{SeedableRng, rngs::StdRng};
use serde::Serialize;

use super::rows::{Rows, bracketed};
use super::trial::mean_and_error;
use super::{Dataset, datasets};
use crate::{
    args::{count, mechanism},
    attack::attack,
    error::Error,
    size,
};

/// The end of the text of `--help`.
pub const BENCH_ATTACK_EXAMPLES: &str = "\
Examples:
  FHAIM_DATA_DIR=data fhaim-lab bench attack compas diabetes
  FHAIM_DATA_DIR=data fhaim-lab bench attack compas --mechanism aim --epsilon 0.1 --seeds 20 --json";

/// delta of all budgets.
const DELTA: f64 = 1e-5;

/// The budget that gives almost no privacy.
const NO_PRIVACY: f64 = 1e8;

/// Share of the records that a model is made from.
const MEMBERS: f64 = 0.1;

/// Arguments of `bench attack`.
#[derive(Debug, Args)]
pub struct BenchAttackArguments {
    /// Datasets to run on [default: all]
    pub datasets: Vec<String>,
    /// Mechanism whose models are attacked
    #[arg(long, value_name = "M", default_value_t, value_parser = mechanism())]
    pub mechanism: MechanismName,
    /// Privacy budget, in addition to almost no privacy (may be repeated)
    #[arg(long, value_name = "E", default_values_t = [1.0, 10.0], allow_negative_numbers = true)]
    pub epsilon: Vec<f64>,
    /// Number of runs of each: seeds 0, 1, ...
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// Number of records to draw for the Monte Carlo attack
    #[arg(long, value_name = "N", default_value = "20000", value_parser = count)]
    pub drawn: NonZeroUsize,
    /// Maximum memory for a model, in MB
    #[arg(long, value_name = "MB", default_value_t = 8)]
    pub model_mb: usize,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

/// The result of an attack over all seeds, with the result of guessing.
#[derive(Clone, Copy, Debug, Serialize)]
struct Found {
    mean: f64,
    standard_error: Option<f64>,
    chance: f64,
}

/// The results for a table at one budget.
#[derive(Debug, Serialize)]
struct Row {
    dataset: String,
    mechanism: String,
    /// `None` for almost no privacy.
    epsilon: Option<f64>,
    seeds: u64,
    members: usize,
    white_box: Found,
    total_variation: Found,
    likelihood: Found,
    monte_carlo: Found,
}

/// Runs the command: attacks the models of every table at every budget.
pub fn run(arguments: &BenchAttackArguments, progress: &Progress) -> Result<(), Error> {
    let mut rows = Rows::begin(arguments.json, HEADING, line)?;
    for dataset in datasets(&arguments.datasets)? {
        let columns = dataset.table.schema().columns().len();
        size::check_drawn(arguments.drawn.get(), columns, "--drawn")?;
        let budgets = arguments.epsilon.iter().copied().map(Some);
        for epsilon in budgets.chain(std::iter::once(None)) {
            rows.push(&measure(arguments, &dataset, epsilon, progress)?)?;
        }
    }
    rows.end("")
}

fn measure(
    arguments: &BenchAttackArguments,
    dataset: &Dataset,
    epsilon: Option<f64>,
    progress: &Progress,
) -> Result<Row, Error> {
    let shown = epsilon.map_or("none".to_owned(), |epsilon| epsilon.to_string());
    let phase = progress.counted(
        format!("{} e{shown}", dataset.name),
        arguments.seeds,
        "runs",
    );
    let mut all = Vec::new();
    let mut members = 0;
    for seed in 0..arguments.seeds {
        let (found, of) = trial(arguments, &dataset.table, epsilon, seed)?;
        members = of;
        all.push(found);
        phase.reach(seed + 1);
    }
    phase.finish();
    let figure = |which: usize| {
        let found: Vec<f64> = all.iter().map(|attacks| attacks[which].found).collect();
        let chances: Vec<f64> = all.iter().map(|attacks| attacks[which].chance).collect();
        let (mean, standard_error) = mean_and_error(&found);
        Found {
            mean,
            standard_error,
            chance: mean_and_error(&chances).0,
        }
    };
    Ok(Row {
        dataset: dataset.name.clone(),
        mechanism: arguments.mechanism.to_string(),
        epsilon,
        seeds: arguments.seeds,
        members,
        white_box: figure(0),
        total_variation: figure(1),
        likelihood: figure(2),
        monte_carlo: figure(3),
    })
}

/// Runs the four attacks in the order of a row, and returns them with the number of members.
fn trial(
    arguments: &BenchAttackArguments,
    table: &Table,
    epsilon: Option<f64>,
    seed: u64,
) -> Result<([Attack; 4], usize), Error> {
    let mut rng = StdRng::seed_from_u64(seed);
    let records = (table.records() as f64 * MEMBERS).round().max(1.0) as usize;
    let split = table.split(records, &mut rng);
    let (members, others) = split.map_err(fhaim_domain::Error::from)?;
    let rho = accounting::rho(epsilon.unwrap_or(NO_PRIVACY), DELTA)?;
    let mut job = MechanismJob::new(table.domain().clone(), rho, members.records() as u64);
    job.model_bytes = arguments.model_mb.saturating_mul(1_000_000);
    let outcome = arguments
        .mechanism
        .run_in_the_clear(&members, &job, &mut rng, &mut |_| {})?;
    let options = MonteCarlo {
        records: records.min(100),
        seed,
        ..MonteCarlo::default()
    };
    let attacks = attack(
        outcome.model.as_ref(),
        (&members, &others),
        arguments.drawn.get(),
        &options,
        &Progress::new(true),
    )?;
    let scores = attacks
        .scores
        .ok_or(Error::Job("the model has no density".to_owned()))?;
    let all = [
        scores.white_box,
        scores.total_variation,
        scores.likelihood,
        attacks.monte_carlo,
    ];
    Ok((all, records))
}

const HEADING: &str = "table          mechanism  epsilon  members    white box (s.e.)  chance    variation (s.e.)  chance   \
     likelihood (s.e.)  chance  monte carlo (s.e.)  chance\n";

fn line(row: &Row) -> String {
    let epsilon = row
        .epsilon
        .map_or("none".to_owned(), |epsilon| epsilon.to_string());
    let mut text = format!(
        "{:14} {:9} {epsilon:>8} {:>8}",
        row.dataset, row.mechanism, row.members
    );
    for found in [
        row.white_box,
        row.total_variation,
        row.likelihood,
        row.monte_carlo,
    ] {
        let error = bracketed(found.standard_error, 3);
        text.push_str(&format!(
            "  {:>10.3} {error} {:>7.3}",
            found.mean, found.chance
        ));
    }
    text.push('\n');
    text
}
