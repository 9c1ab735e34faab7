//! `fhaim-lab bench mechanisms`: measures how accurate mechanisms are on a table, in the clear, with one or more model
//! caps.

use std::borrow::Cow;

use fhaim_domain::Table;
use fhaim_files::progress::Progress;

use super::families::Family;
use super::trial::{
    Contender, MAX_TRIPLES, TreeScores, Trial, TrialSetting, mean_and_error, trial,
};
use serde::Serialize;

use super::rows::{Rows, bracketed};
use super::{Dataset, own_tables, tables};
use crate::{args::DEFAULT_DELTA, bench::args::MechanismsArguments, error::Error};

/// A mean over the seeds, and its standard error (`None` for a single seed).
#[derive(Clone, Copy, Debug, Serialize)]
struct Figure {
    mean: f64,
    standard_error: Option<f64>,
}

/// The results of a contender on a table at one budget and one cap.
#[derive(Debug, Serialize)]
struct Row {
    dataset: String,
    mechanism: String,
    epsilon: f64,
    seeds: u64,
    /// Model cap.
    model_bytes: usize,
    /// Number of holders that share the records, and number of them whose noise counts.
    holders: [u32; 2],
    /// Mean L1 error of the model's marginals over all pairs, against the training rows.
    pairs: Figure,
    /// Mean L1 error over all pairs, against the held-out rows.
    pairs_unseen: Figure,
    /// Largest L1 error of a pair, against the training rows.
    worst_pair: Figure,
    /// Mean L1 error over all pairs of drawn records, as many as the training rows, against these rows.
    sampled_pairs: Figure,
    /// Mean L1 error of drawn records over triples: all, or a sample that is the same for all contenders.
    sampled_triples: Figure,
    /// Mean L1 error of drawn records over triples, against the held-out rows.
    sampled_triples_unseen: Figure,
    /// Accuracy on held-out rows of a classifier trained on drawn records, and of one trained on the training rows;
    /// `None` if the schema names no target.
    accuracy: Option<[Figure; 2]>,
    /// Accuracy and area under the ROC curve of boosted trees trained on drawn records, then of trees trained on the
    /// training rows; `None` unless requested and the target has two classes.
    trees: Option<[Figure; 4]>,
    /// Mean seconds of a run.
    seconds: Figure,
    trials: Vec<Trial>,
}

/// A line of the output.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Line {
    Measured(Box<Row>),
    Refused(Refused),
}

/// A contender that rejects a table or a budget before its first release.
#[derive(Debug, Serialize)]
struct Refused {
    dataset: String,
    mechanism: String,
    epsilon: f64,
    /// The reason.
    refused: String,
}

/// Runs the command: every contender on every table. A refusal is a line of the output, and the others are run.
pub fn run(arguments: &MechanismsArguments, progress: &Progress) -> Result<(), Error> {
    let contenders = contenders(arguments)?;
    let mut rows = Rows::begin(arguments.json, HEADING, line)?;
    for subject in subjects(arguments)? {
        for contender in &contenders {
            for &epsilon in &arguments.epsilon {
                for (&megabytes, &holders) in settings(arguments) {
                    let setting = TrialSetting {
                        epsilon,
                        delta: DEFAULT_DELTA,
                        model_bytes: (megabytes * 1e6) as usize,
                        holders,
                        trees: arguments.trees,
                        target_weight: arguments.target_weight,
                    };
                    let seeds = arguments.seeds;
                    rows.push(&measure(&subject, contender, setting, seeds, progress)?)?;
                }
            }
        }
    }
    rows.end(&format!(
        "Errors are L1 distances of shares, from 0 to 2; \"unseen\" is against the held-out rows. \
         Triples: all, or {MAX_TRIPLES} of them, the same for all mechanisms.\n"
    ))
}

/// Returns every model cap with every number of holders.
fn settings(arguments: &MechanismsArguments) -> impl Iterator<Item = (&f64, &[u32; 2])> {
    let caps = arguments.model_mb.iter();
    caps.flat_map(|cap| arguments.holders.iter().map(move |holders| (cap, holders)))
}

/// The data that mechanisms run on.
enum Subject {
    /// One table, which is split differently for every seed.
    Table(Dataset),
    /// A family, with another table for every seed.
    Family(Family),
}

impl Subject {
    fn name(&self) -> &str {
        match self {
            Self::Table(dataset) => &dataset.name,
            Self::Family(family) => family.as_str(),
        }
    }

    fn table(&self, seed: u64) -> Result<Cow<'_, Table>, Error> {
        match self {
            Self::Table(dataset) => Ok(Cow::Borrowed(&dataset.table)),
            Self::Family(family) => Ok(Cow::Owned(family.table(seed)?)),
        }
    }
}

/// Returns the user's own tables and the named families, or else the published tables.
fn subjects(arguments: &MechanismsArguments) -> Result<Vec<Subject>, Error> {
    let all = if arguments.datasets.is_empty() && !arguments.family.is_empty() {
        own_tables(&arguments.own)?
    } else {
        tables(&arguments.datasets, &arguments.own)?
    };
    let families = arguments.family.iter().copied().map(Subject::Family);
    Ok(all
        .into_iter()
        .map(Subject::Table)
        .chain(families)
        .collect())
}

fn measure(
    subject: &Subject,
    contender: &Contender,
    setting: TrialSetting,
    seeds: u64,
    progress: &Progress,
) -> Result<Line, Error> {
    let (epsilon, megabytes) = (setting.epsilon, setting.model_bytes as f64 / 1e6);
    let name = format!(
        "{} {} e{epsilon} {megabytes} MB",
        subject.name(),
        contender.name
    );
    let phase = progress.counted(name, seeds, "runs");
    let mut trials = Vec::new();
    for seed in 0..seeds {
        let table = subject.table(seed)?;
        match trial(&table, contender, &setting, seed) {
            Err(error) if error.is_refusal_of_noise() => {
                phase.finish();
                return Ok(Line::Refused(Refused {
                    dataset: subject.name().to_owned(),
                    mechanism: contender.name.clone(),
                    epsilon,
                    refused: error.to_string(),
                }));
            }
            made => trials.push(made?),
        }
        phase.reach(seed + 1);
    }
    phase.finish();
    let name = subject.name().to_owned();
    let row = row(name, contender.name.clone(), setting, trials);
    Ok(Line::Measured(Box::new(row)))
}

/// Returns the mechanisms whose names match (all mechanisms if no name is given), and the programs. If there are
/// programs and no names, returns the programs only.
fn contenders(arguments: &MechanismsArguments) -> Result<Vec<Contender>, Error> {
    let programs = arguments.program.iter().cloned().map(Contender::from);
    let mut rows = Contender::table_rows()?;
    match arguments.mechanism.as_slice() {
        [] if programs.len() > 0 => rows.clear(),
        [] => {}
        wanted => {
            let names: Vec<_> = rows.iter().map(|row| row.name.clone()).collect();
            for text in wanted {
                if !names.iter().any(|name| name.contains(text.as_str())) {
                    let known = names.join("\", \"");
                    return Err(Error::Usage(format!(
                        "no mechanism has {text:?} in its name: choose from \"{known}\""
                    )));
                }
            }
            // A complete name selects only its own mechanism, even if other names contain it.
            let means = |text: &String, name: &str| match names.contains(text) {
                true => text == name,
                false => name.contains(text.as_str()),
            };
            rows.retain(|row| wanted.iter().any(|text| means(text, &row.name)));
        }
    }
    let mut others = Vec::new();
    for options in &arguments.options {
        let with: Vec<_> = rows.iter().filter_map(|row| row.with(options)).collect();
        if with.is_empty() {
            let options = serde_json::Value::from(options.clone());
            return Err(Error::Usage(format!(
                "none of the selected mechanisms has the options {options}"
            )));
        }
        others.extend(with);
    }
    others.extend(arguments.without.iter().map(Contender::from));
    Ok(rows.into_iter().chain(others).chain(programs).collect())
}

fn row(dataset: String, mechanism: String, setting: TrialSetting, trials: Vec<Trial>) -> Row {
    let figure = |value: &dyn Fn(&Trial) -> f64| {
        let (mean, standard_error) = mean_and_error(&trials.iter().map(value).collect::<Vec<_>>());
        Figure {
            mean,
            standard_error,
        }
    };
    let predicted = trials.iter().all(|trial| trial.accuracy.is_some());
    let accuracy = |k: usize| {
        let of = |trial: &Trial| trial.accuracy.map_or(0.0, |accuracy| accuracy[k]);
        figure(&of)
    };
    let boosted = trials.iter().all(|trial| trial.trees.is_some());
    let trees = |value: &dyn Fn(&TreeScores) -> f64| {
        figure(&|trial: &Trial| trial.trees.as_ref().map_or(0.0, value))
    };
    let trees = boosted.then(|| {
        [
            trees(&|scores| scores.accuracy),
            trees(&|scores| scores.auc),
            trees(&|scores| scores.real_accuracy),
            trees(&|scores| scores.real_auc),
        ]
    });
    Row {
        dataset,
        mechanism,
        epsilon: setting.epsilon,
        seeds: trials.len() as u64,
        model_bytes: setting.model_bytes,
        holders: setting.holders,
        pairs: figure(&|trial| trial.pairs),
        pairs_unseen: figure(&|trial| trial.pairs_unseen),
        worst_pair: figure(&|trial| trial.worst_pair),
        sampled_pairs: figure(&|trial| trial.sampled_pairs),
        sampled_triples: figure(&|trial| trial.sampled_triples),
        sampled_triples_unseen: figure(&|trial| trial.sampled_triples_unseen),
        accuracy: predicted.then(|| [accuracy(0), accuracy(1)]),
        trees,
        seconds: figure(&|trial| trial.seconds),
        trials,
    }
}

/// Returns the mechanism's name, with the holders if there are several.
fn of_holders(row: &Row) -> String {
    match row.holders {
        [1, _] => row.mechanism.clone(),
        [count, honest] => format!("{}, {count} holders, h = {honest}", row.mechanism),
    }
}

const HEADING: &str = "dataset        mechanism                          epsilon     MB  pairs (s.e.)       \
     unseen   worst  drawn: pairs triples unseen  accuracy   real  seconds seeds\n";

fn line(line: &Line) -> String {
    match line {
        Line::Measured(row) => measured(row),
        Line::Refused(Refused {
            dataset,
            mechanism,
            epsilon,
            refused,
        }) => format!("{dataset:14} {mechanism:34} {epsilon:>7}  refused: {refused}\n"),
    }
}

fn measured(row: &Row) -> String {
    let accuracy = row.accuracy.map_or_else(
        || format!("{:>9} {:>6}", "-", "-"),
        |[drawn, real]| format!("{:>9.3} {:>6.3}", drawn.mean, real.mean),
    );
    let mut text = format!(
        "{:14} {:34} {:>7} {:>6.1}  {:.5} {}  {:>7.4} {:>7.4}       {:>7.4} {:>7.4} \
         {:>6.4} {accuracy} {:>8.2} {:>5}\n",
        row.dataset,
        of_holders(row),
        row.epsilon,
        row.model_bytes as f64 / 1e6,
        row.pairs.mean,
        bracketed(row.pairs.standard_error, 5),
        row.pairs_unseen.mean,
        row.worst_pair.mean,
        row.sampled_pairs.mean,
        row.sampled_triples.mean,
        row.sampled_triples_unseen.mean,
        row.seconds.mean,
        row.seeds,
    );
    if let Some([accuracy, auc, real_accuracy, real_auc]) = row.trees {
        text.push_str(&format!(
            "{:49} trees: accuracy {:.4} {}, AUC {:.4} {}; trained on real rows: {:.4}, {:.4}\n",
            "",
            accuracy.mean,
            bracketed(accuracy.standard_error, 4).trim_end(),
            auc.mean,
            bracketed(auc.standard_error, 4).trim_end(),
            real_accuracy.mean,
            real_auc.mean,
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scores of `fhaim-l2` need more noise than can be drawn at a tiny budget.
    #[test]
    fn refusal_of_a_contender_is_a_line_of_the_output() {
        let subject = Subject::Family(Family::Narrow);
        let contenders = Contender::table_rows().unwrap();
        let named = |name: &str| contenders.iter().find(|row| row.name.contains(name));
        let setting = TrialSetting {
            epsilon: 1e-4,
            delta: DEFAULT_DELTA,
            model_bytes: 1_000_000,
            holders: [1, 1],
            trees: false,
            target_weight: 1,
        };
        let contender = named("fhaim-l2").unwrap();
        let made = measure(&subject, contender, setting, 1, &Progress::new(true)).unwrap();
        let text = line(&made);
        assert!(
            matches!(made, Line::Refused(_)) && text.contains("2^28"),
            "{text}"
        );
    }
}
