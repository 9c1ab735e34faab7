//! The noise of each round: the same in all rounds, or annealed as in AIM.

use std::sync::Arc;

use fhaim_pgm::Model;
use fhaim_release::UNIT_VARIANCE;
use fhaim_synth::MEAN_ABS;

use crate::fitting::l1;
use crate::plan::{Parts, Plan};
use crate::{Error, FederatedSetting};

/// Share of the remaining budget that the last annealed round leaves for rounding.
const SLACK: f64 = 1e-6;

/// The rounds of a run, with the noise of the current one.
#[derive(Debug)]
pub(crate) struct Schedule {
    setting: Arc<FederatedSetting>,
    plan: Plan,
    round: u32,
    last: bool,
    /// With annealing, the cost so far of a party that took part in every round. The rest of the budget decides which
    /// round is the last.
    charged: f64,
}

impl Schedule {
    /// Starts before the first sums.
    ///
    /// # Errors
    /// Those of [`Plan::new`].
    pub(crate) fn new(setting: Arc<FederatedSetting>) -> Result<Self, Error> {
        let plan = Plan::new(&setting)?;
        let first = Parts {
            first: true,
            ..Parts::default()
        };
        let charged = plan.party_rho(&setting, first)?.to_f64();
        Ok(Self {
            setting,
            plan,
            round: 0,
            last: false,
            charged,
        })
    }

    /// The noise of the current round.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The current round; 0 before the first.
    pub(crate) fn round(&self) -> u32 {
        self.round
    }

    /// Whether the current round is the last.
    pub(crate) fn is_last(&self) -> bool {
        self.last
    }

    /// Begins the next round: decides whether it is the last, and sets its noise. With annealing, a round is the last
    /// if the remaining budget does not pay for two such rounds; it then spends all of that budget.
    pub(crate) fn next_round(&mut self) -> Result<u32, Error> {
        self.round += 1;
        self.last = self.round >= self.setting.rounds;
        if self.setting.anneal {
            let left = self.setting.job.rho.to_f64() - self.charged;
            self.last |= left < 2.0 * self.round_rho()?;
            if self.last {
                self.plan = self.last_plan(left * (1.0 - SLACK));
            }
            self.charged += self.round_rho()?;
        }
        Ok(self.round)
    }

    /// Halves the noise if annealing is on and a round moved a marginal no more than noise would move it. `sums` has
    /// the sets of the round's sums, each with the number of records behind it.
    pub(crate) fn end_round<'c>(
        &mut self,
        sums: impl Iterator<Item = (&'c fhaim_domain::Clique, f64)>,
        before: &Model,
        after: &Model,
    ) -> Result<(), Error> {
        if !self.setting.anneal {
            return Ok(());
        }
        let mut still = false;
        for (clique, records) in sums {
            let (one, two) = (before.marginal(clique)?, after.marginal(clique)?);
            let moved = l1(&one, &two) * records / after.total();
            still |= moved <= MEAN_ABS * self.plan.sigma() * one.len() as f64;
        }
        if still {
            self.plan = self.plan.annealed();
        }
        Ok(())
    }

    /// Returns the share of the model cap that candidates may use (as in AIM): the share of the budget that a party of
    /// every round would have spent so far. The last round may use the whole cap.
    pub(crate) fn share_used(&self) -> Result<f64, Error> {
        if self.last {
            return Ok(1.0);
        }
        if self.setting.anneal {
            return Ok(self.charged / self.setting.job.rho.to_f64());
        }
        let upto = |rounds: u32| -> Result<f64, Error> {
            let parts = Parts {
                rounds,
                first: true,
                proxied: self.setting.combined_rounds(rounds),
            };
            Ok(self.plan.party_rho(&self.setting, parts)?.to_f64())
        };
        Ok(upto(self.round - 1)? / upto(self.setting.rounds)?)
    }

    /// Cost of the current round to a party that takes part in it.
    fn round_rho(&self) -> Result<f64, Error> {
        let nothing = self.plan.party_rho(&self.setting, Parts::default())?;
        let proxied = self.setting.method.combines_one_ways() && !self.last;
        let parts = Parts {
            rounds: 1,
            first: false,
            proxied: u32::from(proxied),
        };
        let round = self.plan.party_rho(&self.setting, parts)?;
        Ok(round.to_f64() - nothing.to_f64())
    }

    /// Returns the noise of a last round, without 1-ways, that spends all of `left`.
    fn last_plan(&self, left: f64) -> Plan {
        let measuring = match self.setting.method.selects() {
            true => self.setting.measure_share,
            false => 1.0,
        };
        let measured = self.setting.measurements_per_round() as f64;
        let variance_units = measured / (2.0 * measuring * left) / UNIT_VARIANCE as f64;
        let choices = f64::from(self.setting.local_steps);
        Plan {
            variance_units: variance_units.ceil().max(1.0) as u64,
            epsilon: (8.0 * (1.0 - measuring) * left / choices).sqrt(),
            ..self.plan
        }
    }
}
