//! How good mechanisms are: one run of one of them.
//!
//! For each seed the mechanism sees a random 80% of the rows; its error is the mean over the
//! workload's pairs of ||M_q/N - Mhat_q/Nhat||_1, with M the exact marginals of the rows it saw and
//! Mhat those of its model. Triples, and a classifier trained on what is drawn, are judged on
//! records drawn from the model, as its users would.

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

/// Most triples that are compared.
pub const MAX_TRIPLES: usize = 200;

/// What is measured, under the name that the tables have for it.
#[derive(Debug)]
pub struct Contender {
    pub name: String,
    means: Means,
}

/// How a contender comes to its records.
#[derive(Debug)]
enum Means {
    /// A mechanism with its options.
    Mechanism(Box<dyn Mechanism>),
    /// A program of someone else's.
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
    /// The same mechanism with some options in place of its own; nothing where it has none of these names,
    /// or refuses them.
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

    /// The rows of the table in docs/MECHANISM.md, in its order.
    ///
    /// # Errors
    /// Never: the mechanisms and the options are some that there are.
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
    /// Their names.
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

/// What is the same for all seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialSetting {
    /// epsilon of the run.
    pub epsilon: f64,
    /// delta of the run.
    pub delta: f64,
    /// Cap of the model.
    pub model_bytes: usize,
    /// Holders of records, and those of them whose noise is relied upon.
    pub holders: [u32; 2],
    /// Whether boosted trees are trained too.
    pub trees: bool,
    /// Weight of the pairs with the schema's target in a mechanism's workload.
    pub target_weight: u32,
}

/// How well boosted trees predict a target of two classes on the rows not seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TreeScores {
    /// Share of the rows whose class is predicted, by trees trained on drawn records.
    pub accuracy: f64,
    /// Area under their ROC curve.
    pub auc: f64,
    /// The same of trees trained on the rows seen.
    pub real_accuracy: f64,
    /// The same of trees trained on the rows seen.
    pub real_auc: f64,
}

/// One run of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// The seed.
    pub seed: u64,
    /// Mean L1 error of all pairs against the rows seen, of the model's marginals.
    pub pairs: f64,
    /// The same of the pairs with the schema's target alone; none where it names none.
    pub target_pairs: Option<f64>,
    /// Of all pairs, against the rows not seen.
    pub pairs_unseen: f64,
    /// The worst pair's, against the rows seen.
    pub worst_pair: f64,
    /// Mean L1 error of all pairs against the rows seen, of as many records drawn from the model.
    pub sampled_pairs: f64,
    /// The same of triples: all, or [`MAX_TRIPLES`].
    pub sampled_triples: f64,
    /// The same against the rows not seen.
    pub sampled_triples_unseen: f64,
    /// Accuracy on the rows not seen of a classifier trained on drawn records, and of the same one
    /// trained on the rows seen; none where the schema names no target.
    pub accuracy: Option<[f64; 2]>,
    /// What boosted trees make of the drawn records, where they are asked for and the schema names
    /// a target of two classes.
    pub trees: Option<TreeScores>,
    /// Seconds of the run.
    pub seconds: f64,
    /// rho spent.
    pub rho: f64,
    /// Releases made.
    pub releases: usize,
    /// Integers released.
    pub cells: usize,
    /// Bytes of the model.
    pub model_bytes: usize,
}

/// What a run leaves.
struct Made {
    /// Shares of the cells of every pair.
    pairs: Vec<Vec<f64>>,
    /// Records drawn, as codes by attribute.
    columns: Vec<Vec<u32>>,
    seconds: f64,
    /// What ours say beside: of a program nothing is known.
    rho: f64,
    releases: usize,
    cells: usize,
    model_bytes: usize,
}

/// Runs a contender once: `seed` decides the rows it sees and its noise.
///
/// # Errors
/// Those of the mechanism or the program; a table of fewer than two records; several holders, for
/// what reads the records of one.
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

/// The schema's target, where it has two classes.
fn binary_target(table: &Table) -> Option<usize> {
    let target = table.schema().target()?;
    (table.domain().size(target) == 2).then_some(target)
}

/// Trees trained on the drawn records and on those seen, tested on those not seen; none where these
/// are all of one class.
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

/// Refuses several holders for what reads the records of one.
fn refuse_holders(
    contender: &Contender,
    clear_only: bool,
    setting: &TrialSetting,
) -> Result<(), crate::error::Error> {
    if clear_only && setting.holders[0] > 1 {
        return Err(crate::error::Error::Usage(format!(
            "{} reads one holder's records: leave --holders out, or --mechanism",
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

/// The seconds are those of the whole process, its start included.
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

/// All triples of a table's attributes, or the same [`MAX_TRIPLES`] of them every time.
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

/// The shares of a model's cells in each clique.
///
/// # Errors
/// A model that has no marginals, or is over another domain.
fn shares(model: &dyn FittedModel, cliques: &[Clique]) -> Result<Vec<Vec<f64>>, Error> {
    let no_marginals = Error::Internal("a model of the table has no marginals");
    let marginals = model.marginals().ok_or(no_marginals)?;
    let mut marginals = marginals.marginals_of(cliques)?;
    for cell in marginals.iter_mut().flatten() {
        *cell /= model.total();
    }
    Ok(marginals)
}

/// ||M_q/N - Mhat_q/Nhat||_1 for each clique, given Mhat_q/Nhat.
///
/// # Errors
/// Cliques outside of the table's domain.
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

/// Mean and standard error of the mean, which one value has none of.
pub fn mean_and_error(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n.max(1.0);
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let error = (values.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt());
    (mean, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_to_leave_out_are_read_by_name() {
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
    fn one_run_has_no_standard_error() {
        assert_eq!(mean_and_error(&[3.0]), (3.0, None));
        assert_eq!(mean_and_error(&[1.0, 3.0]), (2.0, Some(1.0)));
        assert_eq!(mean_and_error(&[2.0, 2.0]), (2.0, Some(0.0)));
    }
}
