//! The noise of a run: what a setting's budget pays for, and what one party pays at most.

use fhaim_dp::{NoiseShares, Rho, Selection};
use fhaim_release::UNIT_VARIANCE;

use crate::Error;
use crate::setting::{FederatedSetting, Method};

/// Share of the budget for a party's number of records.
const TOTAL_SHARE: f64 = 1.0 / 20.0;

/// What is kept back for the gaps of sums of noise and for rounding: far above either.
const SLACK: f64 = 1e-6;

/// How often a variance is raised, by a part in a million, to make room for gaps.
const TRIES: u32 = 64;

/// The noise of a run, or of a round of it where noise is annealed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Variance of a party's number of records, in units of 4.
    pub total_units: u64,
    /// Variance of every measurement, in units of 4.
    pub variance_units: u64,
    /// epsilon of a selection; 0 where nobody selects.
    pub epsilon: f64,
}

/// How often a party did what it pays for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// |R_k|: rounds it took part in.
    pub rounds: u32,
    /// Whether it took part in the first sums, of all 1-ways.
    pub first: bool,
    /// Rounds of those whose 1-ways were summed too.
    pub proxied: u32,
}

impl Plan {
    /// The least noise at which a party that takes part as often as it may stays within the budget:
    /// sigma^2 takes r of 19/20 of it, selections the rest.
    ///
    /// # Errors
    /// A setting out of its range; a budget too small for any noise that can be drawn.
    pub fn new(setting: &FederatedSetting) -> Result<Self, Error> {
        setting.check()?;
        let rho = setting.job.rho.to_f64() * (1.0 - SLACK);
        let most = Parts {
            rounds: setting.most_rounds,
            first: true,
            proxied: proxied_rounds(setting, setting.most_rounds),
        };
        let releases = most.releases(setting) as f64;
        let usable = rho * (1.0 - TOTAL_SHARE);
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
            total_units: units(1.0 / (2.0 * TOTAL_SHARE * rho)),
            variance_units: units(releases / (2.0 * measuring)),
            epsilon,
        };
        let too_small = || Error::from(fhaim_release::Error::BudgetTooSmall(setting.job.rho));
        for _ in 0..TRIES {
            if plan.party_rho(setting, most)? <= setting.job.rho {
                // A party may be alone in a sum, whose noise is all its own then.
                for units in [plan.total_units, plan.variance_units] {
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

    /// rho_k, without the gaps of sums of noise:
    /// `|R_k| s eps^2/8 + 1/(2 sigma_n^2) + (|R_k| (2s-1) + d [k in P_0] + d proxied) / (2 sigma^2)`.
    ///
    /// # Errors
    /// A cost of 2^48 or more.
    pub fn party_rho(&self, setting: &FederatedSetting, parts: Parts) -> Result<Rho, Error> {
        let total = NoiseShares::new(self.total_units, 1)?.price(1, 1)?;
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

    /// The exponential mechanism for scores of some sensitivity; `None` where nobody selects.
    ///
    /// # Errors
    /// An epsilon or a sensitivity that is none.
    pub fn selection(&self, sensitivity: u64) -> Result<Option<Selection>, Error> {
        if self.epsilon == 0.0 {
            return Ok(None);
        }
        Ok(Some(Selection::new(self.epsilon, sensitivity)?))
    }

    /// The measurements' standard deviation, before it is divided among parties.
    pub fn sigma(&self) -> f64 {
        (UNIT_VARIANCE as f64 * self.variance_units as f64).sqrt()
    }

    /// Half the deviation and twice the epsilon: AIM's annealing.
    pub(crate) fn annealed(&self) -> Self {
        Self {
            variance_units: self.variance_units.div_ceil(4),
            epsilon: 2.0 * self.epsilon,
            ..*self
        }
    }
}

impl Parts {
    /// Measurements of sensitivity 1 that a party was part of.
    fn releases(&self, setting: &FederatedSetting) -> u64 {
        let attributes = setting.job.domain.len() as u64;
        let chosen = u64::from(self.rounds) * (2 * u64::from(setting.local_steps) - 1);
        chosen + attributes * u64::from(self.first) + attributes * u64::from(self.proxied)
    }
}

/// Of so many rounds of a party, the most whose 1-ways are summed too: never the last round's.
fn proxied_rounds(setting: &FederatedSetting, rounds: u32) -> u32 {
    match setting.method {
        Method::AugPrivate => rounds.min(setting.rounds - 1),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    /// The printed sigma at epsilon 1, d 14, T 10 becomes 33.6 and the printed epsilon .0880, with at most
    /// three rounds a party and 1/20 for its number of records.
    #[test]
    fn three_rounds_a_party_cost_what_they_should() {
        let private = setting(Method::AugPrivate, 3);
        let plan = Plan::new(&private).unwrap();
        assert!((plan.sigma() - 33.6).abs() < 0.06, "{}", plan.sigma());
        assert!((plan.epsilon - 0.0880).abs() < 5e-5, "{}", plan.epsilon);
        let all = setting(Method::Naive, 10);
        // 20.9 and .0494 printed, for all of the budget.
        let plan = Plan::new(&all).unwrap();
        assert!((plan.sigma() * 0.95f64.sqrt() - 20.9).abs() < 0.06);
        assert!((plan.epsilon / 0.95f64.sqrt() - 0.0494).abs() < 5e-5);
    }

    #[test]
    fn the_most_a_party_may_do_is_what_the_budget_pays_for() {
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
                        proxied: proxied_rounds(&setting, most_rounds),
                    };
                    let cost = plan.party_rho(&setting, most).unwrap();
                    assert!(cost <= setting.job.rho);
                    assert!(cost.to_f64() > 0.98 * setting.job.rho.to_f64(), "{method}");
                }
            }
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
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
