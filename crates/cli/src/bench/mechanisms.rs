//! `fhaim bench mechanisms`: the workload errors of docs/MECHANISM.md's table.

use fhaim_synth::bench::{Contender, Setting, Trial, mean_and_error, trial};
use serde::Serialize;

use super::datasets;
use crate::{
    args::{DEFAULT_DELTA, MechanismsArguments},
    error::Error,
    output,
    progress::Progress,
};

/// A contender on a table at one budget.
#[derive(Debug, Serialize)]
struct Row {
    dataset: String,
    mechanism: &'static str,
    epsilon: f64,
    seeds: u64,
    /// Mean L1 workload error against the rows seen, and its standard error.
    error: f64,
    standard_error: f64,
    /// The same against the rows not seen.
    error_unseen: f64,
    /// Mean seconds of a run.
    seconds: f64,
    trials: Vec<Trial>,
}

/// Runs every contender on every table.
pub fn run(arguments: &MechanismsArguments, progress: &Progress) -> Result<(), Error> {
    let mut rows = Vec::new();
    for dataset in datasets(&arguments.datasets)? {
        for (mechanism, contender) in contenders(&arguments.mechanism) {
            for &epsilon in &arguments.epsilon {
                let name = format!("{} {mechanism} e{epsilon}", dataset.name);
                let phase = progress.counted(name, arguments.seeds, "runs");
                let setting = Setting {
                    epsilon,
                    delta: DEFAULT_DELTA,
                    model_bytes: arguments.model_mb.saturating_mul(1_000_000),
                };
                let mut trials = Vec::new();
                for seed in 0..arguments.seeds {
                    trials.push(trial(&dataset.table, &contender, &setting, seed)?);
                    phase.reach(seed + 1);
                }
                phase.finish();
                rows.push(row(dataset.name.clone(), mechanism, epsilon, trials));
            }
        }
    }
    if arguments.json {
        return output::print_json(&rows);
    }
    let mut text = String::from(
        "dataset        mechanism                           epsilon   error (s.e.)     unseen  seconds\n",
    );
    for row in &rows {
        text.push_str(&format!(
            "{:14} {:34} {:>8}  {:.4} ({:.4})   {:.4} {:>8.2}\n",
            row.dataset,
            row.mechanism,
            row.epsilon,
            row.error,
            row.standard_error,
            row.error_unseen,
            row.seconds
        ));
    }
    output::print(&text)
}

/// The contenders whose names contain `wanted`; all without one.
fn contenders(wanted: &Option<String>) -> Vec<(&'static str, Contender)> {
    let mut rows = Contender::table_rows();
    if let Some(wanted) = wanted {
        rows.retain(|(name, _)| name.contains(wanted.as_str()));
    }
    rows
}

fn row(dataset: String, mechanism: &'static str, epsilon: f64, trials: Vec<Trial>) -> Row {
    let mean =
        |value: fn(&Trial) -> f64| mean_and_error(&trials.iter().map(value).collect::<Vec<_>>());
    let (error, standard_error) = mean(|trial| trial.error);
    Row {
        dataset,
        mechanism,
        epsilon,
        seeds: trials.len() as u64,
        error,
        standard_error,
        error_unseen: mean(|trial| trial.error_unseen).0,
        seconds: mean(|trial| trial.seconds).0,
        trials,
    }
}
