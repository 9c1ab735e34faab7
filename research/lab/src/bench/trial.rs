//! A single run of a mechanism or program, with measures of its accuracy.
//!
//! For each seed, the mechanism sees a random 80% of the rows. Its error is the mean over the workload's pairs of
//! ||M_q/N - Mhat_q/Nhat||_1, where M are the exact marginals of these rows and Mhat those of its model. Triples, and a
//! classifier, are measured on records drawn from the model, as its users would do.

use std::str::FromStr;
use std::time::Instant;

use fhaim_domain::{Clique, Table};
use fhaim_dp::accounting;
use fhaim_eval::{Boosted, BoostingOptions, auc, workload_error};
use fhaim_release::{Holders, MechanismJob, Options, Workload};
use fhaim_synth::{Ablations, Error, FittedModel, Mechanism, MechanismName, Staged};
use rand::{SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde::Serialize;
use serde_json::{Value, json};

use super::external_baseline::Program;

/// Share of the rows that a mechanism sees.
const SEEN: f64 = 0.8;

/// The largest number of triples that are compared.
pub const MAX_TRIPLES: usize = 200;

/// A mechanism or program under test, with its name in the results.
#[derive(Debug)]
pub struct Contender {
    pub name: String,
    means: Means,
}

/// The way in which a contender makes its records.
#[derive(Debug)]
enum Means {
    /// A mechanism with its options.
    Mechanism(Box<dyn Mechanism>),
    /// An external program.
    Program(Program),
}

impl From<Program> for Contender {
    fn from(program: Program) -> Self {
        Self {
            name: program.name.clone(),
            means: Means::Program(program),
        }
    }
}

impl Contender {
    /// Returns the same mechanism with some options replaced, or `None` if it has no options of these names or rejects
    /// them.
    pub fn with(&self, options: &Options) -> Option<Self> {
        let Means::Mechanism(mechanism) = &self.means else {
            return None;
        };
        let mut all = mechanism.options().ok()?;
        all.as_object_mut()?.extend(options.clone());
        let options = Value::from(options.clone());
        Some(Self {
            name: format!("{} {options}", self.name),
            means: Means::Mechanism(mechanism.with_options(&all).ok()?),
        })
    }

    /// Returns the rows of the table in docs/MECHANISM.md, in order.
    ///
    /// # Errors
    /// None: the mechanisms and options are known to be valid.
    pub fn table_rows() -> Result<Vec<Self>, Error> {
        let aim = |score: &str, rounds: f64| {
            (
                "aim",
                json!({ "score": score, "rounds_per_attribute": rounds }),
            )
        };
        let default = |mechanism| (mechanism, json!({}));
        let rows = [
            ("one-ways", default("one-ways")),
            ("aim, T = 16d", aim("l1", 16.0)),
            ("aim, T = 4d", aim("l1", 4.0)),
            ("l2, T = 16d, winner accounted", aim("squared-l2", 16.0)),
            ("l2, T = 4d, winner accounted", aim("squared-l2", 4.0)),
            ("fhaim-l2, T = 4d, view accounted", default("fhaim-l2")),
            ("mst", default("mst")),
            ("staged", default("staged")),
        ];
        let contender = |(name, (mechanism, options)): (&str, (&str, Value))| {
            let mechanism: MechanismName = mechanism.parse()?;
            Ok(Self {
                name: name.to_owned(),
                means: Means::Mechanism(mechanism.with_options(&options)?),
            })
        };
        rows.into_iter().map(contender).collect()
    }
}

impl From<&Without> for Contender {
    fn from(without: &Without) -> Self {
        Self {
            name: format!("staged without {}", without.parts),
            means: Means::Mechanism(Box::new(Staged::without(without.ablations))),
        }
    }
}

/// Parts of `staged` that a run leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Without {
    /// The names of the parts.
    parts: String,
    ablations: Ablations,
}

impl FromStr for Without {
    type Err = String;

    fn from_str(parts: &str) -> Result<Self, String> {
        let mut ablations = Ablations::default();
        for part in parts.split(',') {
            let left_out = match part {
                "mixture-prior" => &mut ablations.mixture_prior,
                "first-look" => &mut ablations.first_look,
                "coarse-look" => &mut ablations.coarse_look,
                "clear-probe" => &mut ablations.clear_probe,
                "penalties" => &mut ablations.penalties,
                "shrinkage" => &mut ablations.shrinkage,
                _ => {
                    return Err(format!(
                        "staged has no part {part:?}: choose mixture-prior, first-look, coarse-look, \
                         clear-probe, penalties or shrinkage"
                    ));
                }
            };
            *left_out = true;
        }
        Ok(Self {
            parts: parts.to_owned(),
            ablations,
        })
    }
}

/// The settings of a trial that do not depend on the seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialSetting {
    /// epsilon of the run.
    pub epsilon: f64,
    /// delta of the run.
    pub delta: f64,
    /// Model cap.
    pub model_bytes: usize,
    /// Number of holders of records, and number of them whose noise counts.
    pub holders: [u32; 2],
    /// Whether boosted trees are trained too.
    pub trees: bool,
    /// Weight of the pairs with the schema's target in a mechanism's workload.
    pub target_weight: u32,
}

/// Accuracy of boosted trees that predict a target of two classes on the held-out rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TreeScores {
    /// Share of rows that trees trained on drawn records predict correctly.
    pub accuracy: f64,
    /// Area under the ROC curve of trees trained on drawn records.
    pub auc: f64,
    /// Accuracy of trees trained on the training rows.
    pub real_accuracy: f64,
    /// Area under the ROC curve of trees trained on the training rows.
    pub real_auc: f64,
}

/// The results of one run of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// The seed.
    pub seed: u64,
    /// Mean L1 error of the model's marginals over all pairs, against the training rows.
    pub pairs: f64,
    /// Mean L1 error over the pairs with the schema's target; `None` if it names no target.
    pub target_pairs: Option<f64>,
    /// Mean L1 error over all pairs, against the held-out rows.
    pub pairs_unseen: f64,
    /// Largest L1 error of a pair, against the training rows.
    pub worst_pair: f64,
    /// Mean L1 error over all pairs of drawn records, as many as the training rows, against these rows.
    pub sampled_pairs: f64,
    /// Mean L1 error of drawn records over triples: all, or [`MAX_TRIPLES`].
    pub sampled_triples: f64,
    /// Mean L1 error of drawn records over triples, against the held-out rows.
    pub sampled_triples_unseen: f64,
    /// Accuracy on held-out rows of a classifier trained on drawn records, and of one trained on the training rows;
    /// `None` if the schema names no target.
    pub accuracy: Option<[f64; 2]>,
    /// Scores of boosted trees; `None` unless requested and the schema names a target of two classes.
    pub trees: Option<TreeScores>,
    /// Duration of the run in seconds.
    pub seconds: f64,
    /// rho spent.
    pub rho: f64,
    /// Number of releases.
    pub releases: usize,
    /// Number of released integers.
    pub cells: usize,
    /// Size of the model in bytes.
    pub model_bytes: usize,
}

/// The output of a run.
struct Made {
    /// Shares of the cells of every pair.
    pairs: Vec<Vec<f64>>,
    /// Drawn records, as codes by attribute.
    columns: Vec<Vec<u32>>,
    seconds: f64,
    /// Known for our own mechanisms only; zero for a program, except for rho.
    rho: f64,
    releases: usize,
    cells: usize,
    model_bytes: usize,
}

/// Runs a contender once. `seed` decides which rows it sees, and its noise.
///
/// # Errors
/// Errors of the mechanism or the program; an error for a table of fewer than two records, or for several holders if
/// the contender reads the records of one.
pub fn trial(
    table: &Table,
    contender: &Contender,
    setting: &TrialSetting,
    seed: u64,
) -> Result<Trial, crate::error::Error> {
    let mut rng = StdRng::seed_from_u64(seed);
    let seen_records = (table.records() as f64 * SEEN).round() as usize;
    let (seen, unseen) = table.split(seen_records, &mut rng).map_err(Error::from)?;
    let pairs = table.domain().pairs();
    let made = match &contender.means {
        Means::Mechanism(mechanism) => {
            refuse_holders(contender, mechanism.clear_only(), setting)?;
            run_mechanism(mechanism.as_ref(), &seen, &pairs, setting, &mut rng)?
        }
        Means::Program(program) => {
            refuse_holders(contender, true, setting)?;
            run_program(program, &seen, &pairs, setting, seed)?
        }
    };
    let of_seen = errors(&seen, &made.pairs, &pairs)?;
    let of_target = table.schema().target().map(|target| {
        let with = pairs.iter().zip(&of_seen);
        let with = with.filter(|(pair, _)| pair.attributes().contains(&target));
        mean_and_error(&with.map(|(_, &error)| error).collect::<Vec<_>>()).0
    });
    let of_unseen = errors(&unseen, &made.pairs, &pairs)?;
    let drawn = Table::new(table.shared_schema(), made.columns).map_err(Error::from)?;
    let triples = triples(table);
    let report = fhaim_eval::predict_held_out(&seen, &drawn, &unseen)?;
    let trees = match binary_target(table).filter(|_| setting.trees) {
        Some(target) => tree_scores([&seen, &drawn, &unseen], target)?,
        None => None,
    };
    Ok(Trial {
        seed,
        pairs: mean_and_error(&of_seen).0,
        target_pairs: of_target,
        pairs_unseen: mean_and_error(&of_unseen).0,
        worst_pair: of_seen.iter().copied().fold(0.0, f64::max),
        sampled_pairs: workload_error(&seen, &drawn, &pairs)?,
        sampled_triples: workload_error(&seen, &drawn, &triples)?,
        sampled_triples_unseen: workload_error(&unseen, &drawn, &triples)?,
        accuracy: report.map(|report| [report.synthetic.accuracy, report.real.accuracy]),
        trees,
        seconds: made.seconds,
        rho: made.rho,
        releases: made.releases,
        cells: made.cells,
        model_bytes: made.model_bytes,
    })
}

/// Returns the schema's target if it has two classes.
fn binary_target(table: &Table) -> Option<usize> {
    let target = table.schema().target()?;
    (table.domain().size(target) == 2).then_some(target)
}

/// Trains trees on drawn records and on training rows, and tests both on held-out rows. Returns `None` if the held-out
/// rows are all of one class.
fn tree_scores(
    [seen, drawn, unseen]: [&Table; 3],
    target: usize,
) -> Result<Option<TreeScores>, crate::error::Error> {
    let truth: Vec<bool> = unseen
        .column(target)
        .iter()
        .map(|&code| code == 1)
        .collect();
    let scores = |table: &Table| -> Result<_, fhaim_eval::Error> {
        let trees = Boosted::fit(table, target, 1, &BoostingOptions::default())?;
        let margins = trees.margins(unseen);
        let right = margins.iter().zip(&truth);
        let right = right.filter(|&(margin, &truth)| (*margin > 0.0) == truth);
        let accuracy = right.count() as f64 / truth.len() as f64;
        Ok(auc(&truth, &margins).map(|auc| (accuracy, auc)))
    };
    let (Some((accuracy, auc)), Some((real_accuracy, real_auc))) = (scores(drawn)?, scores(seen)?)
    else {
        return Ok(None);
    };
    Ok(Some(TreeScores {
        accuracy,
        auc,
        real_accuracy,
        real_auc,
    }))
}

/// Rejects several holders if the contender reads the records of a single one.
fn refuse_holders(
    contender: &Contender,
    clear_only: bool,
    setting: &TrialSetting,
) -> Result<(), crate::error::Error> {
    if clear_only && setting.holders[0] > 1 {
        return Err(crate::error::Error::Usage(format!(
            "{} reads the records of a single holder: leave out --holders, or this mechanism",
            contender.name
        )));
    }
    Ok(())
}

fn run_mechanism(
    mechanism: &dyn Mechanism,
    seen: &Table,
    pairs: &[Clique],
    setting: &TrialSetting,
    rng: &mut StdRng,
) -> Result<Made, Error> {
    let rho = accounting::rho(setting.epsilon, setting.delta)?;
    let mut job = MechanismJob::new(seen.domain().clone(), rho, seen.records() as u64);
    job.model_bytes = setting.model_bytes;
    let [count, honest] = setting.holders;
    job.holders = Holders::of_records(count, honest)?;
    if let Some(target) = seen.schema().target() {
        let weight = setting.target_weight;
        job.workload = Workload::all_pairs_with_target(seen.domain(), target, weight);
    }
    let started = Instant::now();
    let outcome = mechanism.run_in_the_clear(seen, &job, rng, &mut |_| {})?;
    let seconds = started.elapsed().as_secs_f64();
    let model = outcome.model.as_ref();
    let cells = outcome.releases.iter().map(|release| release.values.len());
    Ok(Made {
        pairs: shares(model, pairs)?,
        columns: model.sample(seen.records(), rng),
        seconds,
        rho: outcome.spent.to_f64(),
        releases: outcome.releases.len(),
        cells: cells.sum(),
        model_bytes: model.bytes(),
    })
}

/// Runs a program. The measured time is that of the whole process, including its start.
fn run_program(
    program: &Program,
    seen: &Table,
    pairs: &[Clique],
    setting: &TrialSetting,
    seed: u64,
) -> Result<Made, crate::error::Error> {
    let rho = accounting::rho(setting.epsilon, setting.delta)?.to_f64();
    let started = Instant::now();
    let answer = program.run(seen, pairs, setting, (rho, seed))?;
    Ok(Made {
        pairs: answer.marginals,
        columns: answer.columns,
        seconds: started.elapsed().as_secs_f64(),
        rho,
        releases: 0,
        cells: 0,
        model_bytes: 0,
    })
}

/// Returns all triples of a table's attributes, or a fixed sample of [`MAX_TRIPLES`].
fn triples(table: &Table) -> Vec<Clique> {
    let all: Vec<Clique> = table.domain().subsets(3).collect();
    let mut rng = StdRng::seed_from_u64(3);
    if all.len() <= MAX_TRIPLES {
        return all;
    }
    all.choose_multiple(&mut rng, MAX_TRIPLES)
        .cloned()
        .collect()
}

/// Returns the shares of a model's cells in each clique.
///
/// # Errors
/// [`Error::Internal`] for a model without marginals; errors of a model over another domain.
fn shares(model: &dyn FittedModel, cliques: &[Clique]) -> Result<Vec<Vec<f64>>, Error> {
    let no_marginals = Error::Internal("a model of the table has no marginals");
    let marginals = model.marginals().ok_or(no_marginals)?;
    let mut marginals = marginals.marginals_of(cliques)?;
    for cell in marginals.iter_mut().flatten() {
        *cell /= model.total();
    }
    Ok(marginals)
}

/// Returns ||M_q/N - Mhat_q/Nhat||_1 for each clique, given Mhat_q/Nhat.
///
/// # Errors
/// Errors for cliques outside the table's domain.
fn errors(table: &Table, shares: &[Vec<f64>], cliques: &[Clique]) -> Result<Vec<f64>, Error> {
    let records = table.records() as f64;
    let pairs = cliques.iter().zip(shares);
    let errors = pairs.map(|(clique, shares)| {
        let counts = table.counts(clique)?;
        let cells = counts.iter().zip(shares);
        Ok(cells
            .map(|(&m, share)| (m as f64 / records - share).abs())
            .sum())
    });
    errors.collect()
}

/// Returns the mean and its standard error: `None` for a single value, and for values that are not all finite.
pub fn mean_and_error(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n.max(1.0);
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let error = (values.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt());
    (mean, error.filter(|error| error.is_finite()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_to_leave_out_are_parsed_by_name() {
        let without: Without = "first-look,penalties".parse().unwrap();
        let expected = Ablations {
            first_look: true,
            penalties: true,
            ..Ablations::default()
        };
        assert_eq!(without.ablations, expected);
        let refused = "first-look,look".parse::<Without>().unwrap_err();
        assert!(refused.contains("\"look\""), "{refused}");
    }

    #[test]
    fn single_and_infinite_values_have_no_standard_error() {
        assert_eq!(mean_and_error(&[3.0]), (3.0, None));
        assert_eq!(mean_and_error(&[1.0, 3.0]), (2.0, Some(1.0)));
        assert_eq!(mean_and_error(&[2.0, 2.0]), (2.0, Some(0.0)));
        assert_eq!(mean_and_error(&[2.0, f64::INFINITY]), (f64::INFINITY, None));
    }
}
