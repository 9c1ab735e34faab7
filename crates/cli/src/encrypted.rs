//! `fhaim run`: all four entities in one process, with encryption.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use fhaim_domain::{Clique, counted};
use fhaim_dp::LadderPlan;
use fhaim_files::progress::Progress;
use fhaim_he::{ParameterSet, Parameters};
use fhaim_protocol::{
    crypto::{CryptoService, judge::Rules},
    local::EncryptedSource,
    request::{DatasetId, JobId},
    sealing::SealingKey,
    terms::{Plan, Terms},
};
use fhaim_release::{MechanismJob, Phase};
use fhaim_synth::{RunOutcome, Timing};
use rand::RngCore;
use serde::Serialize;

use crate::{
    error::Error,
    estimate::Estimate,
    held::Held,
    holders::{self, Holding, Party},
    randomness::{InsecureTestSeed, system},
};

/// Encryption parameters of a run. They are public and fixed before anything is encrypted.
#[derive(Debug)]
pub struct Setup {
    set: ParameterSet,
    plan: LadderPlan,
}

/// Time of an encrypted run, and the data that it would have sent over a network.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Costs {
    parameter_set: u8,
    ladder_positions: usize,
    ladder_levels: usize,
    upload_ciphertexts: usize,
    upload_bytes: u64,
    keys_seconds: f64,
    encrypt_seconds: f64,
    estimate: Estimate,
    /// Total seconds of the computation service.
    compute_seconds: f64,
    /// Total seconds of the crypto service.
    decrypt_seconds: f64,
    /// Actual amounts, for comparison with the estimate.
    done: Done,
    #[serde(skip_serializing_if = "Option::is_none")]
    rounds: Option<Rounds>,
}

/// Actual amounts of the work that an estimate predicts.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Done {
    /// Number of polynomials whose key was switched.
    key_switches: u64,
    /// Number of multiply-accumulates of residues in products of columns.
    multiply_accumulates: u64,
    /// Number of calibrations of all fits.
    fit_steps: usize,
    /// Number of cells of the fits' junction trees, each counted once per calibration.
    fit_cells: u64,
    /// Number of cells of the fits' junction trees, each counted once per fit.
    fit_tables: u64,
    /// Seconds of all fits, which are part of the planning time.
    fit_seconds: f64,
}

/// Seconds of the FHAIM paper's three operations.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rounds {
    /// Compute: the marginals of all pairs, and their squares.
    compute: f64,
    /// Number of rounds of Select and Measure.
    rounds: usize,
    /// Select: noisy scores of all candidates, mean over rounds.
    select: f64,
    /// Measure: the noisy cells of the selected pair, mean over rounds.
    measure: f64,
}

/// The dataset of a run in one process.
#[derive(Clone, Copy, Debug)]
pub struct Dataset<'a> {
    /// The records of all holders.
    pub held: &'a Held,
    /// The holders.
    pub party: &'a Party,
    /// The dataset's terms.
    pub terms: &'a Terms,
    /// The plan that follows from the terms.
    pub plan: &'a Plan,
}

/// What each party does and sees, for a user who watches a run.
const PARTIES: &str = "\
what each party sees in this run:
  holder               the table, which it encrypts
  computation service  only ciphertexts, on which it counts and adds noise
  key service          only counts with noise, which it decrypts
  generation service   only counts with noise, from which it makes the synthetic table";

impl Setup {
    /// Returns the setup of a dataset with one run.
    pub fn new(plan: &Plan) -> Self {
        Self {
            set: plan.core.set,
            plan: plan.core.run_ladder,
        }
    }

    /// Creates the keys, encrypts the table and the noise, and returns a source that answers with the services.
    pub fn source(
        &self,
        dataset: Dataset<'_>,
        seed: Option<InsecureTestSeed>,
        estimate: Estimate,
        progress: &Progress,
    ) -> Result<(EncryptedSource, Costs), Error> {
        let Dataset {
            held,
            party,
            terms,
            plan,
        } = dataset;
        let mut rng = system()?;
        let mut id = [0; 16];
        rng.fill_bytes(&mut id);
        progress.say(PARTIES);
        let phase = progress.uncounted("key service makes keys");
        let params = Parameters::shared(self.set)?;
        let rules = Rules::new(DatasetId(id), &plan.core);
        let mut crypto = CryptoService::new(rules, &params, &mut rng)?;
        let public = crypto.public_key(&mut rng)?;
        let keys = crypto.evaluation_keys(terms.roster_shape(), &mut rng)?;
        party.sign(terms, &mut crypto, holders::key_digests(&public, &keys)?)?;
        let keys_seconds = phase.finish();

        let total = holders::objects(held, plan, terms.contribution)? as u64;
        let phase = progress.counted("holder encrypts", total, "polynomials");
        let ladders = holders::ladders(self.plan, &plan.job.holders, seed)?;
        let done = AtomicU64::new(0);
        let advance = || phase.reach(done.fetch_add(1, Ordering::Relaxed) + 1);
        let holding = Holding {
            dataset: DatasetId(id),
            held,
            ladders: &ladders,
            plan,
            crypto: &crypto,
        };
        let what = terms.contribution;
        let uploaded = holders::upload(&holding, what, public, keys, &mut rng, &advance)?;
        let encrypt_seconds = phase.finish();

        let costs = Costs {
            parameter_set: self.set.id,
            ladder_positions: self.plan.positions(),
            ladder_levels: self.plan.levels(),
            upload_ciphertexts: uploaded.ciphertexts,
            upload_bytes: uploaded.bytes,
            keys_seconds,
            encrypt_seconds,
            estimate,
            compute_seconds: 0.0,
            decrypt_seconds: 0.0,
            done: Done::default(),
            rounds: None,
        };
        let key = SealingKey::random(&mut rng);
        let source = EncryptedSource::new(uploaded.computation, crypto, JobId(id), key)?;
        Ok((source, costs))
    }
}

impl Costs {
    /// Adds the time that the source spent on the batches of a run, and the amounts and time of its fits.
    pub fn with(mut self, source: &EncryptedSource, outcome: &RunOutcome) -> Self {
        self.compute_seconds = source.seconds.computation;
        self.decrypt_seconds = source.seconds.crypto;
        let work = source.computation().work();
        let fits = outcome.model.fit().unwrap_or_default().chain;
        self.done = Done {
            key_switches: work.key_switches,
            multiply_accumulates: work.multiply_accumulates,
            fit_steps: fits.steps,
            fit_cells: fits.cells,
            fit_tables: fits.tables,
            fit_seconds: fits.seconds,
        };
        let timings = &outcome.timings;
        if let Some(rounds) = &mut self.rounds {
            rounds.select = mean_seconds(timings, Phase::SELECT);
            rounds.measure = mean_seconds(timings, Phase::MEASURE);
            rounds.rounds = batches(timings, Phase::MEASURE).count();
        }
        self
    }

    /// Returns the times of the paper's three operations, if the mechanism is the paper's.
    pub fn rounds(&self) -> Option<&Rounds> {
        self.rounds.as_ref()
    }
}

/// Runs the FHAIM paper's operation Compute: the marginals of all pairs and their squares, before the first round.
pub fn compute(
    source: &mut EncryptedSource,
    job: &MechanismJob,
    costs: &mut Costs,
    progress: &Progress,
) -> Result<(), Error> {
    let pairs: Vec<Clique> = job.workload.pairs().iter().map(|p| p.clique()).collect();
    let phase = progress.uncounted("compute");
    source.compute_squares(&pairs)?;
    costs.rounds = Some(Rounds {
        compute: phase.finish(),
        rounds: 0,
        select: 0.0,
        measure: 0.0,
    });
    Ok(())
}

fn batches(timings: &[Timing], phase: Phase) -> impl Iterator<Item = f64> {
    let of_phase = timings.iter().filter(move |timing| timing.phase == phase);
    of_phase.map(|timing| timing.release_seconds)
}

fn mean_seconds(timings: &[Timing], phase: Phase) -> f64 {
    let seconds: Vec<f64> = batches(timings, phase).collect();
    seconds.iter().sum::<f64>() / seconds.len().max(1) as f64
}

impl fmt::Display for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Compute {:.2} s, Select {:.3} s and Measure {:.3} s per round, {}",
            self.compute,
            self.select,
            self.measure,
            counted(self.rounds, "round")
        )
    }
}
