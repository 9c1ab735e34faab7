//! The options of the staged mechanism, and the parts that research can leave out.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::mechanisms::fitting::check;

/// Number of stages after the probe.
pub(super) const STAGES: u8 = 2;

/// Number of pairs from which on the probe's share of the budget grows.
const PAIRS_OF_A_TABLE: f64 = 100.0;

/// Share of rho up to which the probe's share grows.
const WIDE_PROBE_SHARE: f64 = 0.2;

/// The options that terms may set. The defaults are the recommended values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StagedOptions {
    /// Share of the privacy budget for the first measurement of every single column: from 0.05 to
    /// 0.5.
    pub one_way_share: f64,
    /// Share of the privacy budget for finding related pairs of columns: from 0.05 to 0.4. A table with
    /// more than 100 pairs spends more, up to twice the default.
    pub probe_share: f64,
    /// Whether related pairs that the model has no room for are measured too.
    pub extra_pairs: bool,
}

impl Default for StagedOptions {
    fn default() -> Self {
        Self {
            one_way_share: 0.2,
            probe_share: 0.1,
            extra_pairs: true,
        }
    }
}

impl StagedOptions {
    /// Checks the ranges. Within them, the shares of the first batch, the probe and the coarse look
    /// add up to less than 1.
    pub(super) fn check(&self) -> Result<(), Error> {
        let share = self.one_way_share;
        let fits = (0.05..=0.5).contains(&share);
        check("one_way_share", "from 0.05 to 0.5", share, fits)?;
        let share = self.probe_share;
        let fits = (0.05..=0.4).contains(&share);
        check("probe_share", "from 0.05 to 0.4", share, fits)
    }

    /// Returns the share of rho for the probe of this number of pairs, both its parts together. In
    /// a wide table most pairs are only probed, so the share grows with the square root of the
    /// number of pairs.
    pub(super) fn probe_share_of(&self, pairs: usize) -> f64 {
        let grown = self.probe_share * (pairs as f64 / PAIRS_OF_A_TABLE).sqrt();
        grown.min(WIDE_PROBE_SHARE).max(self.probe_share)
    }
}

/// Parts of the mechanism that a run leaves out, to measure the effect of each part. A part that is
/// `true` is left out. Terms cannot set them; the default leaves nothing out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ablations {
    /// The mixture of priors that scores pairs. Without it all pairs have one normal prior.
    pub mixture_prior: bool,
    /// The first look at a finer probe. Without it, the whole probe is requested at once.
    pub first_look: bool,
    /// The block of two groups for each attribute that an imprecise first look adds to every pair.
    pub coarse_look: bool,
    /// The lower weight of noise in plans after a clear probe.
    pub clear_probe: bool,
    /// The choice among several penalties for the growth of the model. Without it the penalty is 0.5.
    pub penalties: bool,
    /// The shrinkage of noisy blocks towards the model.
    pub shrinkage: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_share_grows_with_the_pairs_of_a_wide_table() {
        let share = |columns: usize| {
            let options = StagedOptions::default();
            options.probe_share_of(columns * (columns - 1) / 2)
        };
        assert_eq!(share(14), 0.1);
        // 190 pairs, 325, and 435.
        for (columns, grown) in [(20, 0.137_84), (26, 0.180_28), (30, 0.2), (600, 0.2)] {
            let share = share(columns);
            assert!((share - grown).abs() < 1e-5, "{columns} columns: {share}");
        }
    }

    #[test]
    fn probe_share_above_the_limit_of_growth_is_kept() {
        let options = StagedOptions {
            probe_share: 0.3,
            ..StagedOptions::default()
        };
        assert_eq!(
            [1, 100, 10_000].map(|pairs| options.probe_share_of(pairs)),
            [0.3; 3]
        );
    }

    #[test]
    fn options_out_of_range_are_rejected_by_name() {
        assert!(StagedOptions::default().check().is_ok());
        for wrong in [f64::NAN, 0.0, 0.049, 0.501, f64::INFINITY] {
            let one_way = StagedOptions {
                one_way_share: wrong,
                ..StagedOptions::default()
            };
            let probe = StagedOptions {
                probe_share: wrong,
                ..StagedOptions::default()
            };
            for (options, expected) in [(one_way, "one_way_share"), (probe, "probe_share")] {
                let refused = options.check();
                assert!(
                    matches!(refused, Err(Error::Option { name, .. }) if name == expected),
                    "{expected} {wrong}: {refused:?}"
                );
            }
        }
    }
}
