//! AIM's noise schedule (McKenna, Mullins, Sheldon and Miklau 2022, Algorithm 4). The budget is
//! divided for T rounds. The noise is halved when a measurement teaches the model nothing, and the
//! last round spends the rest. `aim` and `fhaim-l2` share it.

use fhaim_release::MechanismJob;

use super::candidates::first_cliques;
use super::fitting::check;
use super::score::MEAN_ABS;
use crate::Error;
use crate::forecast::RoundPlan;

/// Share of the budget for measurements. Selections get the rest.
const MEASURE_SHARE: f64 = 0.9;

/// Largest number of rounds for each attribute that options may set.
const MAX_ROUNDS: f64 = 1000.0;

/// Checks the number of rounds for each attribute.
pub(crate) fn check_rounds(rounds_per_attribute: f64) -> Result<(), Error> {
    let fits = rounds_per_attribute > 0.0 && rounds_per_attribute <= MAX_ROUNDS;
    let range = "above 0 and at most 1000";
    check("rounds_per_attribute", range, rounds_per_attribute, fits)
}

/// Returns the division of the budget for `rounds` rounds: the 1-ways first, with the noise of a round
/// each, then pairs with the rest. More rounds than the budget pays for at this noise never happen.
pub(crate) fn budget_plan(job: &MechanismJob, rounds: f64) -> RoundPlan {
    let first = first_cliques(&job.domain).len() as f64 * MEASURE_SHARE;
    let left = (rounds - first).max(0.0);
    let most_pairs = match job.domain.coarse_attributes().len() {
        0 | 1 => 0,
        _ => left as usize,
    };
    RoundPlan {
        column: MEASURE_SHARE / rounds,
        pairs: MEASURE_SHARE * left / rounds,
        least_pairs: 1,
        most_pairs,
        squared_score_noise: None,
    }
}

/// The noise of the current round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Schedule {
    /// Standard deviation of measurements.
    pub(crate) sigma: f64,
    /// Parameter of the exponential mechanism.
    pub(crate) epsilon: f64,
    /// Whether this is the last round.
    pub(crate) last: bool,
    /// Remaining rounds of a fixed schedule, all with the same noise.
    fixed: Option<u32>,
}

impl Schedule {
    /// Returns the schedule with sigma_0 and epsilon_0 for `rounds` rounds on `rho`.
    pub(crate) fn new(rho: f64, rounds: f64) -> Result<Self, Error> {
        if !(rounds >= 1.0 && rounds.is_finite()) {
            return Err(Error::Option {
                name: "rounds",
                range: "at least 1",
                value: rounds,
            });
        }
        Ok(Self {
            sigma: (rounds / (2.0 * MEASURE_SHARE * rho)).sqrt(),
            epsilon: (8.0 * (1.0 - MEASURE_SHARE) * rho / rounds).sqrt(),
            last: false,
            fixed: None,
        })
    }

    /// Returns a schedule of `rounds` equal rounds. 0 counts as 1.
    pub(crate) fn fixed(sigma: f64, epsilon: f64, rounds: u32) -> Self {
        Self {
            sigma,
            epsilon,
            last: false,
            fixed: Some(rounds),
        }
    }

    /// Returns the rho of one measurement of sensitivity 1.
    pub(crate) fn measure_rho(&self) -> f64 {
        1.0 / (2.0 * self.sigma * self.sigma)
    }

    /// Returns the rho of one selection by the exponential mechanism.
    pub(crate) fn select_rho(&self) -> f64 {
        self.epsilon * self.epsilon / 8.0
    }

    /// Begins a round. It becomes the last one if `left` does not pay for two.
    pub(crate) fn begin_round(&mut self, left: f64) {
        if let Some(rounds) = &mut self.fixed {
            *rounds = rounds.saturating_sub(1);
            self.last = *rounds == 0;
            return;
        }
        if left < 2.0 * (self.measure_rho() + self.select_rho()) {
            let left = left * (1.0 - crate::account::SLACK);
            self.sigma = (1.0 / (2.0 * MEASURE_SHARE * left)).sqrt();
            self.epsilon = (8.0 * (1.0 - MEASURE_SHARE) * left).sqrt();
            self.last = true;
        }
    }

    /// Ends a round. Halves the noise if the measurement of `cells` cells changed the model's
    /// answer by no more than noise would (L1 distance `moved`).
    pub(crate) fn end_round(&mut self, moved: f64, cells: usize) {
        if self.fixed.is_none() && moved <= MEAN_ABS * self.sigma * cells as f64 {
            self.sigma /= 2.0;
            self.epsilon *= 2.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_costs_its_share_of_the_budget() {
        let schedule = Schedule::new(0.8, 40.0).unwrap();
        let round = schedule.measure_rho() + schedule.select_rho();
        assert!((round - 0.8 / 40.0).abs() < 1e-12);
        assert!(matches!(Schedule::new(0.8, 0.0), Err(Error::Option { .. })));
    }

    #[test]
    fn last_round_uses_the_rest_of_the_budget() {
        let mut schedule = Schedule::new(1.0, 10.0).unwrap();
        schedule.begin_round(0.5);
        assert!(!schedule.last);
        schedule.begin_round(0.19);
        assert!(schedule.last);
        let round = schedule.measure_rho() + schedule.select_rho();
        assert!(round <= 0.19 && round > 0.1899);
    }

    #[test]
    fn fixed_schedule_keeps_its_noise_until_its_last_round() {
        let mut schedule = Schedule::fixed(5.0, 0.1, 2);
        schedule.begin_round(1e-9);
        schedule.end_round(0.0, 4);
        assert_eq!(
            (schedule.sigma, schedule.epsilon, schedule.last),
            (5.0, 0.1, false)
        );
        schedule.begin_round(1e9);
        assert_eq!((schedule.sigma, schedule.last), (5.0, true));
    }

    #[test]
    fn noise_is_halved_only_when_the_model_did_not_change() {
        let start = Schedule::new(1.0, 10.0).unwrap();
        let mut still = start;
        still.end_round(0.0, 4);
        assert_eq!(still.sigma, start.sigma / 2.0);
        let mut moved = start;
        moved.end_round(MEAN_ABS * start.sigma * 4.0 * 1.01, 4);
        assert_eq!(moved, start);
    }
}
