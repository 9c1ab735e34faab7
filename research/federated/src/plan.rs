//! The noise of a run: the noise that a budget pays for, and the most that a party can pay.

use fhaim_dp::{NoiseShares, Rho, Selection};
use fhaim_release::UNIT_VARIANCE;

use crate::Error;
use crate::setting::{Accounting, FederatedSetting};

/// Share of the budget for releasing a party's number of records.
const TOTAL_SHARE: f64 = 1.0 / 20.0;

/// Variance of a number of records that is exact, in units of 4. It is never drawn.
const NO_UNITS: u64 = 0;

/// Share of the budget that is reserved for the gaps of sums of noise and for rounding; far larger than either.
const SLACK: f64 = 1e-6;

/// How often a variance is raised, each time by a millionth, to make room for gaps.
const TRIES: u32 = 64;

/// The noise of a run, or of one round if noise is annealed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Variance of the noise on a party's number of records, in units of 4.
    pub total_units: u64,
    /// Variance of the noise on every measurement, in units of 4.
    pub variance_units: u64,
    /// epsilon of a selection; 0 if the method has no selections.
    pub epsilon: f64,
}

/// How often a party took part in the steps that it pays for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// |R_k|: number of rounds that the party took part in.
    pub rounds: u32,
    /// Whether the party took part in the first sums, of all 1-ways.
    pub first: bool,
    /// Number of those rounds in which the 1-ways were summed too.
    pub proxied: u32,
}

impl Plan {
    /// Computes the least noise with which a party that takes part as often as allowed stays within the budget. Of
    /// 19/20 of the budget, measurements get the share r and selections the rest.
    ///
    /// # Errors
    /// Those of [`FederatedSetting::check`]; [`fhaim_release::Error::BudgetTooSmall`] if the budget needs more noise
    /// than can be drawn.
    pub fn new(setting: &FederatedSetting) -> Result<Self, Error> {
        setting.check()?;
        let rho = setting.job.rho.to_f64() * (1.0 - SLACK);
        let most = Parts {
            rounds: setting.most_rounds,
            first: true,
            proxied: setting.combined_rounds(setting.most_rounds),
        };
        let releases = most.releases(setting) as f64;
        let exact = setting.accounting == Accounting::Printed;
        let usable = rho * (1.0 - if exact { 0.0 } else { TOTAL_SHARE });
        let (measuring, epsilon) = if setting.method.selects() {
            let choices = f64::from(setting.most_rounds) * f64::from(setting.local_steps);
            let share = (1.0 - setting.measure_share) * usable;
            (
                setting.measure_share * usable,
                (8.0 * share / choices).sqrt(),
            )
        } else {
            (usable, 0.0)
        };
        let units = |variance: f64| (variance / UNIT_VARIANCE as f64).ceil().max(1.0) as u64;
        let mut plan = Self {
            total_units: match setting.accounting {
                Accounting::Printed => NO_UNITS,
                Accounting::Corrected => units(1.0 / (2.0 * TOTAL_SHARE * rho)),
            },
            variance_units: units(releases / (2.0 * measuring)),
            epsilon,
        };
        let too_small = || Error::from(fhaim_release::Error::BudgetTooSmall(setting.job.rho));
        for _ in 0..TRIES {
            if plan.party_rho(setting, most)? <= setting.job.rho {
                // A party may be the only one in a sum, and must then be able to draw all of its noise.
                let drawn = [plan.total_units, plan.variance_units].into_iter();
                for units in drawn.filter(|&units| units != NO_UNITS) {
                    let drawn = NoiseShares::new(units, 1)?.check();
                    drawn.map_err(|_| too_small())?;
                }
                return Ok(plan);
            }
            let units = plan.variance_units;
            plan.variance_units = units.saturating_add(units / 1_000_000 + 1);
        }
        Err(too_small())
    }

    /// Returns rho_k, the cost of a party without the gaps of sums of noise: `|R_k| s eps^2/8 + 1/(2 sigma_n^2) +
    /// (|R_k| (2s-1) + d [k in P_0] + d proxied) / (2 sigma^2)`. Clients that draw uniformly measure nothing locally,
    /// and have s instead of 2s-1. Printed accounting has s as well, and no cost of the number of records.
    ///
    /// # Errors
    /// [`fhaim_release::Error::BudgetTooSmall`] for a cost of 2^48 or more.
    pub fn party_rho(&self, setting: &FederatedSetting, parts: Parts) -> Result<Rho, Error> {
        let total = match self.total_units {
            NO_UNITS => Rho::ZERO,
            units => NoiseShares::new(units, 1)?.price(1, 1)?,
        };
        let release = Rho::ratio_up(
            1,
            2 * u128::from(UNIT_VARIANCE) * u128::from(self.variance_units),
        )?;
        let choices = u64::from(parts.rounds) * u64::from(setting.local_steps);
        let selecting = match self.selection(1)? {
            Some(selection) => selection.rho()?.checked_mul(choices),
            None => Some(Rho::ZERO),
        };
        let measuring = release.checked_mul(parts.releases(setting));
        let sum = selecting
            .zip(measuring)
            .and_then(|(s, m)| s.checked_add(m)?.checked_add(total));
        sum.ok_or(fhaim_release::Error::BudgetTooSmall(setting.job.rho).into())
    }

    /// Returns the exponential mechanism for scores of this sensitivity; `None` if the method has no selections.
    ///
    /// # Errors
    /// [`Error::Privacy`] for an invalid epsilon or sensitivity.
    pub fn selection(&self, sensitivity: u64) -> Result<Option<Selection>, Error> {
        if self.epsilon == 0.0 {
            return Ok(None);
        }
        Ok(Some(Selection::new(self.epsilon, sensitivity)?))
    }

    /// Returns the standard deviation of the noise on a measurement, before the noise is divided among parties.
    pub fn sigma(&self) -> f64 {
        (UNIT_VARIANCE as f64 * self.variance_units as f64).sqrt()
    }

    /// Returns the plan with half the deviation and twice the epsilon: AIM's annealing.
    pub(crate) fn annealed(&self) -> Self {
        Self {
            variance_units: self.variance_units.div_ceil(4),
            epsilon: 2.0 * self.epsilon,
            ..*self
        }
    }
}

impl Parts {
    /// Number of measurements of sensitivity 1 that a party was part of.
    fn releases(&self, setting: &FederatedSetting) -> u64 {
        let attributes = setting.job.domain.len() as u64;
        let chosen = u64::from(self.rounds) * setting.measurements_per_round();
        chosen + attributes * u64::from(self.first) + attributes * u64::from(self.proxied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;
    use fhaim_domain::Domain;
    use fhaim_dp::accounting;
    use fhaim_release::MechanismJob;

    fn setting(method: Method, most_rounds: u32) -> FederatedSetting {
        let rho = accounting::rho(1.0, 1e-5).unwrap();
        let job = MechanismJob::new(Domain::new(vec![4; 14]), rho, 1000);
        FederatedSetting {
            most_rounds,
            ..FederatedSetting::new(job, method)
        }
    }

    /// At epsilon 1, d 14 and T 10, the printed sigma becomes 33.6 and the printed epsilon .0880, because a party takes
    /// part in at most three rounds and spends 1/20 of the budget on its number of records.
    #[test]
    fn three_rounds_per_party_give_the_expected_noise() {
        let private = setting(Method::AugPrivate, 3);
        let plan = Plan::new(&private).unwrap();
        assert!((plan.sigma() - 33.6).abs() < 0.06, "{}", plan.sigma());
        assert!((plan.epsilon - 0.0880).abs() < 5e-5, "{}", plan.epsilon);
        let all = setting(Method::Naive, 10);
        // The paper prints 20.9 and .0494, for all of the budget.
        let plan = Plan::new(&all).unwrap();
        assert!((plan.sigma() * 0.95f64.sqrt() - 20.9).abs() < 0.06);
        assert!((plan.epsilon / 0.95f64.sqrt() - 0.0494).abs() < 5e-5);
    }

    /// The paper's own figures at epsilon 1, d 14 and T 10: sigma 52.2 and 20.9, and epsilon .0494.
    #[test]
    fn printed_accounting_gives_the_printed_noise() {
        for (method, sigma) in [(Method::AugPrivate, 52.2), (Method::Naive, 20.9)] {
            let setting = FederatedSetting {
                accounting: Accounting::Printed,
                ..setting(method, 10)
            };
            let plan = Plan::new(&setting).unwrap();
            // Variances are rounded up to whole units.
            let units = (sigma * sigma / UNIT_VARIANCE as f64).ceil();
            let sigma = (units * UNIT_VARIANCE as f64).sqrt();
            assert!((plan.sigma() - sigma).abs() < 0.06, "{}", plan.sigma());
            assert!((plan.epsilon - 0.0494).abs() < 5e-5, "{}", plan.epsilon);
        }
    }

    #[test]
    fn largest_allowed_participation_spends_almost_the_whole_budget() {
        for method in Method::ALL {
            for most_rounds in [1, 3, 10] {
                for local_steps in [1, 4] {
                    let setting = FederatedSetting {
                        local_steps,
                        ..setting(method, most_rounds)
                    };
                    let plan = Plan::new(&setting).unwrap();
                    let most = Parts {
                        rounds: most_rounds,
                        first: true,
                        proxied: setting.combined_rounds(most_rounds),
                    };
                    let cost = plan.party_rho(&setting, most).unwrap();
                    assert!(cost <= setting.job.rho);
                    assert!(cost.to_f64() > 0.98 * setting.job.rho.to_f64(), "{method}");
                }
            }
        }
    }

    #[test]
    fn settings_out_of_range_are_rejected() {
        let good = setting(Method::Naive, 3);
        assert!(good.check().is_ok());
        let wrong = [
            (
                "rounds",
                FederatedSetting {
                    rounds: 0,
                    ..good.clone()
                },
            ),
            (
                "local steps",
                FederatedSetting {
                    local_steps: 0,
                    ..good.clone()
                },
            ),
            (
                "participation",
                FederatedSetting {
                    participation: 0.0,
                    ..good.clone()
                },
            ),
            (
                "participation",
                FederatedSetting {
                    participation: f64::NAN,
                    ..good.clone()
                },
            ),
            (
                "rounds of a party",
                FederatedSetting {
                    most_rounds: 11,
                    ..good.clone()
                },
            ),
            (
                "rounds of a party",
                FederatedSetting {
                    anneal: true,
                    ..good.clone()
                },
            ),
            (
                "measure share",
                FederatedSetting {
                    measure_share: 1.0,
                    ..good.clone()
                },
            ),
            (
                "fit steps",
                FederatedSetting {
                    fit_steps: [0, 1],
                    ..good
                },
            ),
        ];
        for (expected, setting) in wrong {
            let refused = Plan::new(&setting).unwrap_err();
            assert!(
                matches!(refused, Error::Setting { name, .. } if name == expected),
                "{refused}"
            );
        }
    }
}
