//! What a holder fixes when a dataset's key is made, and what follows from it for everyone.
//!
//! All of it is public. Holder, crypto service and computation service work a [`Plan`] out from
//! the same [`Terms`], so that none has to take another's word for the budget or the ladder.

use crate::Error;
use crate::crypto::leak;
use fhaim_domain::Schema;
use fhaim_dp::{LadderPlan, PAGE, Rho, accounting};
use fhaim_he::{ParameterSet, Parameters};
use fhaim_synth::{Job, LadderNeed, MechanismName, UNIT_VARIANCE, Workload};
use serde::{Deserialize, Serialize};

/// Standard deviations of noise that a released value must have room for: beyond them lies less
/// than 2^-128.
const NOISE_REACH: f64 = 14.0;

/// The largest |u(x) v(x)| of a contrast block: centred indicators of eight groups on both axes.
const LARGEST_CONTRAST: u128 = 49;

/// The most runs a dataset can be planned for.
pub const MAX_RUNS: u32 = 64;

/// The most attributes and one-hot columns of a schema.
const MAX_ATTRIBUTES: usize = 1000;
const MAX_COLUMNS: usize = 50_000;

/// What the holder decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The table's public description.
    pub schema: Schema,
    /// The whole privacy budget of the dataset.
    pub epsilon: f64,
    /// Its delta.
    pub delta: f64,
    /// How synthetic tables will be made.
    pub mechanism: MechanismName,
    /// N: the table has at most so many records.
    pub record_bound: u64,
    /// Runs the budget is shared by, equally.
    pub runs: u32,
    /// Most bytes a model's junction tree may take.
    pub model_bytes: usize,
    /// Weight of the workload's pairs with the schema's target attribute, if it has one.
    pub target_weight: u32,
}

/// What follows from [`Terms`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Encryption parameters.
    pub set: ParameterSet,
    /// The dataset's budget.
    pub budget: Rho,
    /// What every run is about; its `rho` is one run's share of the budget.
    pub job: Job,
    /// Runs the budget is shared by.
    pub runs: u32,
    /// Noise of one run.
    pub run_ladder: LadderPlan,
}

impl Terms {
    /// Terms of one run with the default model cap and no weights.
    pub fn new(schema: Schema, epsilon: f64, delta: f64, record_bound: u64) -> Self {
        Self {
            schema,
            epsilon,
            delta,
            mechanism: MechanismName::default(),
            record_bound,
            runs: 1,
            model_bytes: fhaim_synth::DEFAULT_MODEL_BYTES,
            target_weight: 1,
        }
    }

    /// The plan, the same wherever it is worked out.
    ///
    /// # Errors
    /// A budget that is none, no runs or too many, a record bound or weight of zero, a domain or
    /// model cap that the mechanism refuses, values too large for every parameter set.
    pub fn plan(&self) -> Result<Plan, Error> {
        if !(1..=MAX_RUNS).contains(&self.runs) {
            return Err(Error::Terms(format!(
                "{} runs: there must be 1 to {MAX_RUNS}",
                self.runs
            )));
        }
        let weight = u64::from(self.target_weight);
        for (field, value) in [
            ("record_bound", self.record_bound),
            ("target_weight", weight),
        ] {
            if value == 0 {
                return Err(Error::Terms(format!("{field}: it must be at least 1")));
            }
        }
        self.check_size()?;
        let budget = accounting::rho(self.epsilon, self.delta)?;
        let job = self.job(budget.share(self.runs))?;
        let (set, run_ladder) = encryption(self.mechanism, &job)?;
        Ok(Plan {
            set,
            budget,
            run_ladder,
            job,
            runs: self.runs,
        })
    }

    /// Refuses what would keep a service busy before it is known to be possible.
    fn check_size(&self) -> Result<(), Error> {
        let domain = self.schema.domain();
        if domain.len() > MAX_ATTRIBUTES || domain.columns() > MAX_COLUMNS {
            return Err(Error::Terms(format!(
                "the schema has {} attributes and {} categories in all: at most {MAX_ATTRIBUTES} \
                 and {MAX_COLUMNS} can be planned for; leave columns out or use fewer bins",
                domain.len(),
                domain.columns()
            )));
        }
        Ok(())
    }

    fn job(&self, rho: Rho) -> Result<Job, Error> {
        let domain = self.schema.domain().clone();
        let mut job = Job::new(domain.clone(), rho, self.record_bound);
        job.leak = leak()?;
        job.model_bytes = self.model_bytes;
        if let Some(target) = self.schema.target()
            && self.target_weight > 1
        {
            job.workload = Workload::all_pairs_with_target(&domain, target, self.target_weight);
        }
        Ok(job)
    }
}

impl Plan {
    /// The parameters, with their tables.
    ///
    /// # Errors
    /// What their validation refuses.
    pub fn parameters(&self) -> Result<Parameters, Error> {
        Ok(Parameters::shared(self.set)?)
    }

    /// Noise of all runs: run r uses the pages from `r * run_ladder.pages()` on.
    ///
    /// # Errors
    /// More positions than a ladder has.
    pub fn ladder(&self) -> Result<LadderPlan, Error> {
        if self.runs == 1 {
            return Ok(self.run_ladder);
        }
        let positions = self.run_ladder.pages() * PAGE * self.runs as usize;
        Ok(LadderPlan::with_levels(
            positions,
            self.run_ladder.levels(),
        )?)
    }
}

/// Parameters and noise for one run of a mechanism.
///
/// # Errors
/// What the mechanism refuses; values too large for every parameter set.
pub fn encryption(
    mechanism: MechanismName,
    job: &Job,
) -> Result<(ParameterSet, LadderPlan), Error> {
    let need = mechanism.ladder_need(job)?;
    let squares = mechanism == MechanismName::FhaimL2;
    let largest = largest_release(job, &need, squares);
    let set = ParameterSet::choose(job.record_bound, largest, squares)?;
    Ok((set, need.plan()?))
}

/// A bound on every value that is decrypted, noise included.
fn largest_release(job: &Job, need: &LadderNeed, squares: bool) -> u128 {
    let records = u128::from(job.record_bound);
    let widest = job.domain.sizes().iter().copied().max().unwrap_or(1) as u128;
    let mut largest = LARGEST_CONTRAST.max(widest) * records;
    if squares {
        // weight (||M||^2 - 2 <M, target>), with sum M and every target at most N.
        let pairs = job.workload.pairs().iter();
        let weights = pairs.map(|pair| job.workload.overlap(&pair.clique()));
        let weight = u128::from(weights.max().unwrap_or(1));
        let norm = records.saturating_mul(records).saturating_mul(2);
        largest = largest.max(weight.saturating_mul(norm));
    }
    let sigma = (UNIT_VARIANCE as f64 * need.largest_variance_units as f64).sqrt();
    largest.saturating_add((NOISE_REACH * sigma).ceil() as u128)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        let json = r#"{"name":"t","columns":[
            {"name":"a","kind":"categorical","categories":["x","y"]},
            {"name":"b","kind":"numeric","min":0,"max":10,"bins":5}]}"#;
        let schema = Schema::from_json("t.json", json.as_bytes()).unwrap();
        Terms::new(schema, 1.0, 1e-9, 512)
    }

    #[test]
    fn runs_share_the_budget_and_have_pages_of_their_own() {
        let one = terms().plan().unwrap();
        assert_eq!(one.ladder().unwrap(), one.run_ladder);
        let three = Terms { runs: 3, ..terms() };
        let three = three.plan().unwrap();
        let shares = Rho::checked_sum([three.job.rho; 3]).unwrap();
        assert!(shares <= three.budget && three.budget == one.budget);
        let ladder = three.ladder().unwrap();
        assert_eq!(ladder.pages(), 3 * three.run_ladder.pages());
        assert_eq!(ladder.levels(), three.run_ladder.levels());
    }

    #[test]
    fn the_plan_survives_json_and_impossible_terms_are_refused() {
        let text = serde_json::to_string(&terms()).unwrap();
        let read: Terms = serde_json::from_str(&text).unwrap();
        assert_eq!(read.plan().unwrap(), terms().plan().unwrap());
        let unknown = text.replacen('{', r#"{"extra":1,"#, 1);
        assert!(serde_json::from_str::<Terms>(&unknown).is_err());
        for runs in [0, MAX_RUNS + 1] {
            assert!(Terms { runs, ..terms() }.plan().is_err());
        }
        for epsilon in [0.0, -1.0, f64::NAN] {
            assert!(Terms { epsilon, ..terms() }.plan().is_err());
        }
        let record_bound = u64::MAX;
        let endless = Terms {
            record_bound,
            ..terms()
        };
        assert!(endless.plan().is_err());
    }
}
