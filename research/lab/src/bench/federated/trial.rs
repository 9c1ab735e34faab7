//! A single run of a contender.

use std::{sync::Arc, time::Instant};

use fhaim_domain::{Clique, Table};
use fhaim_dp::{Rho, accounting};
use fhaim_eval::{Boosted, BoostingOptions, auc, workload_error};
use fhaim_federated::{FederatedSetting, FederatedSource, Method, PooledRun, play};
use fhaim_release::{Holders, MechanismJob, MechanismRun};
use fhaim_synth::{FittedModel, MechanismName};
use rand::{SeedableRng, rngs::StdRng};
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

use super::source::{Divided, Source};
use super::{Contender, DELTA, FederatedArguments};
use crate::error::Error;

/// Bytes that a party of DistAIM sends for a cell: two of three shares of 8 bytes to each of three servers (Araki et al.
/// 2016), as FLAIM's program counts them. Here no share is sent.
const SHARED_CELL_BYTES: usize = 48;

/// Share of the budget that is reserved for the gaps of sums of noise.
const GAPS: f64 = 1e-6;

/// The results of one run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Trial {
    pub seed: u64,
    pub error: f64,
    pub error_subsets: f64,
    pub nll: f64,
    pub auc: Option<f64>,
    /// Share of the budget that the record that paid most spent.
    pub spent: f64,
    /// Mean megabytes of masked cells that a party sent; `None` for methods without masks.
    pub sent_mb: Option<f64>,
    /// Mean megabytes of cells and models that a party sent and received, over the parties that took part.
    pub traffic_mb: Option<f64>,
    /// Number of rounds; 0 for methods without rounds.
    pub rounds: u32,
    pub dropped: usize,
    pub seconds: f64,
}

/// A model with the costs of making it.
struct Made {
    model: Arc<dyn FittedModel>,
    spent: Rho,
    sent_mb: Option<f64>,
    traffic_mb: Option<f64>,
    rounds: u32,
    dropped: usize,
}

/// Runs a contender once. The seed decides the split, the workload, the partition and all draws.
pub fn trial(
    source: &Source,
    contender: Contender,
    arguments: &FederatedArguments,
    epsilon: f64,
    seed: u64,
) -> Result<Trial, Error> {
    let mut rng = StdRng::seed_from_u64(seed);
    let divided = source.divide(arguments, &mut rng)?;
    let rho = accounting::rho(epsilon, DELTA)?;
    let Divided { seen, .. } = &divided;
    let mut job = MechanismJob::new(seen.domain().clone(), rho, seen.records() as u64);
    job.model_bytes = (arguments.model_mb * 1e6) as usize;
    job.workload = divided.workload.clone();
    let mut noise = ChaCha20Rng::seed_from_u64(seed);
    let started = Instant::now();
    let made = make(contender, arguments, job, &divided, &mut noise)?;
    let seconds = started.elapsed().as_secs_f64();
    figures(&made, &divided, seed, &mut rng).map(|trial| Trial {
        spent: made.spent.to_f64() / rho.to_f64(),
        seconds,
        ..trial
    })
}

fn make(
    contender: Contender,
    arguments: &FederatedArguments,
    job: MechanismJob,
    divided: &Divided,
    rng: &mut ChaCha20Rng,
) -> Result<Made, Error> {
    let parties = divided.parties.as_slice();
    let rounds = arguments.rounds(&job.domain);
    let setting = |method| {
        let defaults = FederatedSetting::new(job.clone(), method);
        let most = arguments
            .fit_steps
            .map_or(usize::MAX, |steps| steps as usize);
        FederatedSetting {
            fit_steps: defaults.fit_steps.map(|steps| steps.min(most)),
            rounds,
            local_steps: arguments.local_steps,
            participation: arguments.participation,
            most_rounds: arguments.most_rounds(rounds),
            measure_share: arguments.measure_share,
            anneal: arguments.anneal,
            accounting: arguments.accounting,
            ..defaults
        }
    };
    match contender {
        Contender::Flaim(method) => federate(setting(method), parties, rng),
        Contender::Aim => {
            let alone = FederatedSetting {
                participation: 1.0,
                most_rounds: rounds,
                local_steps: 1,
                ..setting(Method::Naive)
            };
            federate(alone, std::slice::from_ref(&divided.seen), rng)
        }
        Contender::DistAim => {
            let setting = setting(Method::Naive);
            let run = PooledRun::new(&setting, parties, rng)?;
            let (outcome, ledgers) = run.run(&mut |_| {})?;
            let spent = ledgers.iter().map(|ledger| ledger.spent()).max();
            let candidates = setting.candidates();
            let cells: usize = candidates.iter().map(|candidate| candidate.cells).sum();
            Ok(Made {
                model: Arc::new(outcome.model),
                spent: spent.unwrap_or(Rho::ZERO),
                sent_mb: None,
                traffic_mb: Some((cells * SHARED_CELL_BYTES) as f64 / 1e6),
                rounds: outcome.rounds,
                dropped: outcome.dropped,
            })
        }
        Contender::Staged => stage(job, parties, (parties.len() as u32 - 1).max(1), rng),
        Contender::StagedAlone => stage(job, parties, 1, rng),
    }
}

fn federate(
    setting: FederatedSetting,
    parties: &[Table],
    rng: &mut ChaCha20Rng,
) -> Result<Made, Error> {
    let mut server = fhaim_dp::fork(rng);
    let run = play(&Arc::new(setting), parties, rng, &mut server, &mut |_| {})?;
    let spent = run.ledgers.iter().map(|ledger| ledger.spent()).max();
    let sent: u64 = run.sent.iter().sum();
    let received: u64 = run.received.iter().sum();
    let took_part = run.sent.iter().filter(|&&bytes| bytes > 0).count().max(1);
    Ok(Made {
        model: Arc::new(run.outcome.model),
        spent: spent.unwrap_or(Rho::ZERO),
        sent_mb: Some(sent as f64 / 1e6 / parties.len() as f64),
        traffic_mb: Some((sent + received) as f64 / 1e6 / took_part as f64),
        rounds: run.outcome.rounds,
        dropped: run.outcome.dropped,
    })
}

/// Runs the default mechanism for the pairs of the workload, over the sums of all parties. `honest` is the number of
/// parties whose noise counts.
fn stage(
    mut job: MechanismJob,
    parties: &[Table],
    honest: u32,
    rng: &mut ChaCha20Rng,
) -> Result<Made, Error> {
    let rho = job.rho;
    job.workload = job.workload.within_pairs();
    job.rho = Rho::from_f64_down(rho.to_f64() * (1.0 - GAPS))?;
    // There are at most as many parties as records, and that number fits.
    let count = parties.len() as u32;
    if honest == 1 {
        // Each party adds all of the noise, and the fit must know the total.
        job.holders = Holders::of_records(count, 1).map_err(fhaim_synth::Error::from)?;
    }
    let machine = MechanismName::default().start(job.clone())?;
    let colluders = count - honest;
    let mut source = FederatedSource::new(parties, colluders, rng);
    let run = MechanismRun::new(machine, job, Vec::new()).map_err(fhaim_synth::Error::from)?;
    let outcome = fhaim_synth::drive(run, &mut source, &mut |_| {})?;
    let spent = outcome.spent.checked_add(source.gaps());
    let spent = spent.filter(|&spent| spent <= rho);
    Ok(Made {
        model: outcome.model,
        spent: spent.ok_or(Error::Job("the gaps of noise exceed the budget".to_owned()))?,
        sent_mb: None,
        traffic_mb: None,
        rounds: 0,
        dropped: 0,
    })
}

fn figures(made: &Made, divided: &Divided, seed: u64, rng: &mut StdRng) -> Result<Trial, Error> {
    let Divided { seen, unseen, .. } = divided;
    let model = made.model.as_ref();
    let columns = model.sample(seen.records(), rng);
    let drawn = Table::new(seen.shared_schema(), columns).map_err(fhaim_domain::Error::from)?;
    let sets: Vec<Clique> = divided
        .workload
        .sets()
        .map(|(attributes, _)| Clique::new(attributes.iter().copied()))
        .collect();
    let mut subsets: Vec<Clique> = sets.iter().flat_map(subsets).collect();
    subsets.sort_unstable();
    subsets.dedup();
    let density = model
        .density()
        .ok_or(Error::Job("the model has no density".to_owned()))?;
    let densities = density
        .log_densities(unseen.columns())
        .map_err(fhaim_synth::Error::from)?;
    let nll = -densities.iter().sum::<f64>() / densities.len() as f64;
    Ok(Trial {
        seed,
        error: workload_error(seen, &drawn, &sets)?,
        error_subsets: workload_error(seen, &drawn, &subsets)?,
        nll,
        auc: predicted(&drawn, unseen)?,
        spent: 0.0,
        sent_mb: made.sent_mb,
        traffic_mb: made.traffic_mb,
        rounds: made.rounds,
        dropped: made.dropped,
        seconds: 0.0,
    })
}

/// Returns all subsets of a set, except the empty one.
fn subsets(set: &Clique) -> Vec<Clique> {
    let attributes = set.attributes();
    let chosen = |mask: u32| {
        let numbered = attributes.iter().enumerate();
        let kept = numbered.filter(move |(bit, _)| mask >> bit & 1 == 1);
        Clique::new(kept.map(|(_, &a)| a))
    };
    (1..1u32 << attributes.len()).map(chosen).collect()
}

/// Returns the AUC of trees that are trained on synthetic records and tested on held-out ones, if the target has two
/// classes.
fn predicted(drawn: &Table, unseen: &Table) -> Result<Option<f64>, Error> {
    let Some(target) = drawn
        .schema()
        .target()
        .filter(|&t| drawn.domain().size(t) == 2)
    else {
        return Ok(None);
    };
    let trees = Boosted::fit(drawn, target, 1, &BoostingOptions::default())?;
    let positive: Vec<bool> = unseen
        .column(target)
        .iter()
        .map(|&code| code == 1)
        .collect();
    Ok(auc(&positive, &trees.margins(unseen)))
}
