//! `fhaim bench mechanisms`: the workload errors of docs/MECHANISM.md's table.
//!
//! As there, models are capped at 0.5 MB, and at 1 MB on adult-32.

use super::trial::{Contender, Setting, Trial, mean_and_error, trial};
use serde::Serialize;

use super::{datasets, figures};
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
    /// Cap of the model.
    model_bytes: usize,
    /// Mean L1 workload error against the rows seen, and its standard error.
    error: f64,
    standard_error: f64,
    /// The figure to match, if there is one.
    to_match: Option<f64>,
    /// The same against the rows not seen.
    error_unseen: f64,
    /// The same of as many records drawn from the model, against the rows seen.
    error_sampled: f64,
    /// Mean seconds of a run.
    seconds: f64,
    trials: Vec<Trial>,
}

/// Runs every contender on every table.
pub fn run(arguments: &MechanismsArguments, progress: &Progress) -> Result<(), Error> {
    let mut rows = Vec::new();
    let contenders = contenders(&arguments.mechanism)?;
    for dataset in datasets(&arguments.datasets, arguments.coarse)? {
        for contender in &contenders {
            let mechanism = contender.name;
            for &epsilon in &arguments.epsilon {
                let name = format!("{} {mechanism} e{epsilon}", dataset.name);
                let phase = progress.counted(name, arguments.seeds, "runs");
                let setting = Setting {
                    epsilon,
                    delta: DEFAULT_DELTA,
                    model_bytes: model_bytes(arguments, &dataset.name),
                };
                let mut trials = Vec::new();
                for seed in 0..arguments.seeds {
                    trials.push(trial(&dataset.table, contender, &setting, seed)?);
                    phase.reach(seed + 1);
                }
                phase.finish();
                rows.push(row(dataset.name.clone(), mechanism, &setting, trials));
            }
        }
    }
    if arguments.json {
        return output::print_json(&rows);
    }
    let mut text = String::from(
        "dataset        mechanism                           epsilon  error (s.e.)      to match  behind    unseen sampled  seconds  seeds      MB\n",
    );
    for row in &rows {
        text.push_str(&format!(
            "{:14} {:34} {:>8}  {:.5} ({:.5}) {:>17}    {:.4}  {:.4} {:>8.2} {:>6} {:>7.1}\n",
            row.dataset,
            row.mechanism,
            row.epsilon,
            row.error,
            row.standard_error,
            comparison(row),
            row.error_unseen,
            row.error_sampled,
            row.seconds,
            row.seeds,
            row.model_bytes as f64 / 1e6
        ));
    }
    output::print(&text)
}

/// The figure to match, and how far behind it the error is, in standard errors of their
/// difference, taking the figure's to be like ours; better ones are below 0. One run has no
/// standard error.
fn comparison(row: &Row) -> String {
    let Some(figure) = row.to_match else {
        return String::new();
    };
    let difference = std::f64::consts::SQRT_2 * row.standard_error;
    let behind = (difference > 0.0).then(|| format!("{:+.1}", (row.error - figure) / difference));
    format!("{figure:.4}  {:>6}", behind.unwrap_or_default())
}

/// The cap asked for, or the one of the published figures.
fn model_bytes(arguments: &MechanismsArguments, dataset: &str) -> usize {
    let published = if dataset == "adult-32" { 1.0 } else { 0.5 };
    (arguments.model_mb.unwrap_or(published) * 1e6) as usize
}

/// The contenders whose names contain `wanted`; all without one.
fn contenders(wanted: &Option<String>) -> Result<Vec<Contender>, Error> {
    let mut rows = Contender::table_rows()?;
    if let Some(wanted) = wanted {
        rows.retain(|contender| contender.name.contains(wanted.as_str()));
    }
    Ok(rows)
}

fn row(dataset: String, mechanism: &'static str, setting: &Setting, trials: Vec<Trial>) -> Row {
    let mean =
        |value: fn(&Trial) -> f64| mean_and_error(&trials.iter().map(value).collect::<Vec<_>>());
    let (error, standard_error) = mean(|trial| trial.error);
    Row {
        to_match: figures::to_match(mechanism, &dataset, setting.epsilon),
        dataset,
        mechanism,
        epsilon: setting.epsilon,
        seeds: trials.len() as u64,
        model_bytes: setting.model_bytes,
        error,
        standard_error,
        error_unseen: mean(|trial| trial.error_unseen).0,
        error_sampled: mean(|trial| trial.error_sampled).0,
        seconds: mean(|trial| trial.seconds).0,
        trials,
    }
}
