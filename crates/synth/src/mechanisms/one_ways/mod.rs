//! `one-ways`: measures the total and the 1-ways only, so that attributes are independent. A
//! baseline (docs/MECHANISM.md, D).

mod machine;

use serde_json::Value;

use self::machine::OneWaysMachine;
use super::columns::OneWays;
use crate::Error;
use crate::account::{Offer, ReleaseAccount};
use crate::engine::AnyMachine;
use crate::expected::{Expected, ExpectedBatch, ExpectedFit};
use crate::forecast::{BudgetPlan, WeightedPlan};
use crate::mechanism::{Mechanism, NoOptions, parse_options, write_options};
use crate::mechanisms::fitting::FINAL_STEPS;
use fhaim_release::LadderNeed;
use fhaim_release::MechanismJob;

/// The baseline, which spends the whole budget on the total and the 1-ways. It has no options.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneWaysOnly;

const NAME: &str = "one-ways";

impl Mechanism for OneWaysOnly {
    fn name(&self) -> &'static str {
        NAME
    }

    fn label(&self) -> &'static str {
        "Independent columns"
    }

    fn about(&self) -> &'static str {
        "Measures every column and treats columns as independent: a baseline"
    }

    fn options(&self) -> Result<Value, Error> {
        write_options(NAME, &NoOptions {})
    }

    fn with_options(&self, options: &Value) -> Result<Box<dyn Mechanism>, Error> {
        let NoOptions {} = parse_options(NAME, options)?;
        Ok(Box::new(Self))
    }

    fn ladder_need(&self, job: &MechanismJob) -> Result<LadderNeed, Error> {
        job.check()?;
        let one_ways = OneWays::new(job, 1.0);
        let offers = one_ways.offers(&ReleaseAccount::new(job), job.rho.to_f64())?;
        Ok(LadderNeed {
            cells: one_ways.cells(),
            largest_variance_units: offers.iter().map(Offer::variance_units).max().unwrap_or(1),
        })
    }

    fn expected(&self, job: &MechanismJob, _records: usize) -> Result<Expected, Error> {
        let sums = OneWays::new(job, 1.0).cells();
        let batch = ExpectedBatch {
            statistics: 1 + job.domain.len(),
            sums,
            variances: 1 + job.domain.len(),
            ..ExpectedBatch::default()
        };
        Ok(Expected {
            batches: vec![batch],
            fits: vec![ExpectedFit {
                steps: FINAL_STEPS as f64,
                cells: job.domain.columns() as f64,
                values: sums as f64,
            }],
        })
    }

    fn budget_plan(&self, _job: &MechanismJob) -> Option<BudgetPlan> {
        Some(BudgetPlan::Weighted(WeightedPlan {
            one_ways: 1.0,
            digit_weight: 1.0,
            pairs: None,
        }))
    }

    fn start(&self, job: MechanismJob) -> Result<Box<AnyMachine>, Error> {
        Ok(Box::new(OneWaysMachine::new(job)?))
    }
}
