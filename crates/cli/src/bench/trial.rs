//! How good mechanisms are: one run of one of them.
//!
//! For each seed the mechanism sees a random 80% of the rows; its error is the mean over the
//! workload's pairs of ||M_q/N - Mhat_q/Nhat||_1, with M the exact marginals of the rows it saw and
//! Mhat those of its model. Triples, and a classifier trained on what is drawn, are judged on
//! records drawn from the model, as its users would.

use std::time::Instant;

use fhaim_domain::{Clique, Table};
use fhaim_dp::accounting;
use fhaim_eval::workload_error;
use fhaim_release::{Holders, Job};
use fhaim_synth::{Error, FittedModel, Mechanism, MechanismName};
use rand::{SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde::Serialize;
use serde_json::{Value, json};

/// Share of the rows that a mechanism sees.
const SEEN: f64 = 0.8;

/// Most triples that are compared.
pub const MAX_TRIPLES: usize = 200;

/// A mechanism with its options, under the name that the tables have for it.
#[derive(Debug)]
pub struct Contender {
    pub name: &'static str,
    mechanism: Box<dyn Mechanism>,
}

impl Contender {
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
        // As new terms name it.
        let staged = ("staged", MechanismName::default().options()?);
        let rows = [
            ("one-ways", default("one-ways")),
            ("aim, T = 16d", aim("l1", 16.0)),
            ("aim, T = 4d", aim("l1", 4.0)),
            ("l2, T = 16d, winner accounted", aim("squared-l2", 16.0)),
            ("l2, T = 4d, winner accounted", aim("squared-l2", 4.0)),
            ("fhaim-l2, T = 4d, view accounted", default("fhaim-l2")),
            ("staged", staged),
        ];
        let contender = |(name, (mechanism, options)): (_, (&str, Value))| {
            let mechanism: MechanismName = mechanism.parse()?;
            let mechanism = mechanism.with_options(&options)?;
            Ok(Self { name, mechanism })
        };
        rows.into_iter().map(contender).collect()
    }
}

/// What is the same for all seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// epsilon of the run.
    pub epsilon: f64,
    /// delta of the run.
    pub delta: f64,
    /// Cap of the model.
    pub model_bytes: usize,
    /// Holders of records, and those of them whose noise is relied upon.
    pub holders: [u32; 2],
}

/// One run of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// The seed.
    pub seed: u64,
    /// Mean L1 error of all pairs against the rows seen, of the model's marginals.
    pub pairs: f64,
    /// The same against the rows not seen.
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

/// Runs a contender once: `seed` decides the rows it sees and its noise.
///
/// # Errors
/// Those of the mechanism; a table of fewer than two records; several holders, for a mechanism that
/// reads the records of one.
pub fn trial(
    table: &Table,
    contender: &Contender,
    setting: &Setting,
    seed: u64,
) -> Result<Trial, crate::error::Error> {
    let mut rng = StdRng::seed_from_u64(seed);
    let seen_records = (table.records() as f64 * SEEN).round() as usize;
    let (seen, unseen) = table.split(seen_records, &mut rng).map_err(Error::from)?;
    let rho = accounting::rho(setting.epsilon, setting.delta).map_err(Error::from)?;
    let mut job = Job::new(table.domain().clone(), rho, seen.records() as u64);
    job.model_bytes = setting.model_bytes;
    let [count, honest] = setting.holders;
    job.holders = Holders::of_records(count, honest).map_err(Error::from)?;
    let pairs = table.domain().pairs();
    let mechanism = &contender.mechanism;
    if mechanism.clear_only() && count > 1 {
        let name = contender.name;
        let error =
            format!("{name} reads one holder's records: leave --holders out, or --mechanism");
        return Err(crate::error::Error::Usage(error));
    }
    let started = Instant::now();
    let outcome = mechanism.run_in_the_clear(&seen, &job, &mut rng, &mut |_| {})?;
    let seconds = started.elapsed().as_secs_f64();
    let model = outcome.model.as_ref();
    let of_seen = errors(&seen, model, &pairs)?;
    let of_unseen = errors(&unseen, model, &pairs)?;
    let columns = model.sample(seen.records(), &mut rng);
    let drawn = Table::new(table.shared_schema(), columns).map_err(Error::from)?;
    let triples = triples(table);
    let report = fhaim_eval::predict_held_out(&seen, &drawn, &unseen)?;
    let cells = outcome.releases.iter().map(|release| release.values.len());
    Ok(Trial {
        seed,
        pairs: mean_and_error(&of_seen).0,
        pairs_unseen: mean_and_error(&of_unseen).0,
        worst_pair: of_seen.iter().copied().fold(0.0, f64::max),
        sampled_pairs: workload_error(&seen, &drawn, &pairs)?,
        sampled_triples: workload_error(&seen, &drawn, &triples)?,
        sampled_triples_unseen: workload_error(&unseen, &drawn, &triples)?,
        accuracy: report.map(|report| [report.synthetic.accuracy, report.real.accuracy]),
        seconds,
        rho: outcome.spent.to_f64(),
        releases: outcome.releases.len(),
        cells: cells.sum(),
        model_bytes: model.bytes(),
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

/// ||M_q/N - Mhat_q/Nhat||_1 for each clique.
///
/// # Errors
/// A model over another domain.
fn errors(table: &Table, model: &dyn FittedModel, cliques: &[Clique]) -> Result<Vec<f64>, Error> {
    let no_marginals = Error::Internal("a model of the table has no marginals");
    let marginals = model.marginals().ok_or(no_marginals)?;
    let marginals = marginals.marginals_of(cliques)?;
    let (records, total) = (table.records() as f64, model.total());
    let pairs = cliques.iter().zip(&marginals);
    let errors = pairs.map(|(clique, marginal)| {
        let counts = table.counts(clique)?;
        let cells = counts.iter().zip(marginal);
        Ok(cells
            .map(|(&m, mu)| (m as f64 / records - mu / total).abs())
            .sum())
    });
    errors.collect()
}

/// Mean and standard error of the mean.
pub fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n.max(1.0);
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let error = if values.len() > 1 {
        (squares / (n - 1.0) / n).sqrt()
    } else {
        0.0
    };
    (mean, error)
}
