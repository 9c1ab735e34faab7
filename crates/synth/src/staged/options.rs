//! What of the staged mechanism may be tuned.

use crate::Error;
use crate::one_ways::FINAL_STEPS;

/// What may be tuned. The defaults are those the published figures were made with.
#[derive(Clone, Debug, PartialEq)]
pub struct StagedOptions {
    /// f1: share of rho for the first batch.
    pub one_way_share: f64,
    /// fc: share of rho for the probe.
    pub probe_share: f64,
    /// Share of what is left for stage 1; stage 2 has the rest.
    pub first_stage_share: f64,
    /// beta: weight of noise against what is not modelled.
    pub beta: f64,
    /// gamma, where the probe has two groups an attribute.
    pub gamma: f64,
    /// gamma, where the probe is the finer one.
    pub gamma_fine: f64,
    /// The probe is the finer one where its scale is at most this share of Nhat.
    pub fine_probe_scale: f64,
    /// Share of an attribute's variation that a fine probe resolves, with at most 8 groups.
    pub fine_probe_resolves: f64,
    /// There is a probe, and pairs to measure, only where the probe's scale is at most this share
    /// of Nhat. With more noise hardly any pair can be told from an independent one: the 1-ways
    /// make better use of the budget.
    pub largest_probe_scale: f64,
    /// Shares of variation that blocks on offer resolve.
    pub resolutions: Vec<f64>,
    /// Pairs that join the model between two scorings of a stage, where the probe is the finer
    /// one. A coarse probe is too blunt to tell what the new members leave unexplained.
    pub additions: usize,
    /// Most integers that one stage's blocks may release together.
    pub block_cells: usize,
    /// Steps of the fits between.
    pub fit_steps: usize,
    /// Tolerance of the fits between.
    pub fit_tolerance: f64,
    /// Steps of the last fit.
    pub final_steps: usize,
}

impl Default for StagedOptions {
    fn default() -> Self {
        Self {
            one_way_share: 0.2,
            probe_share: 0.1,
            first_stage_share: 0.5,
            beta: 0.85,
            gamma: 0.25,
            gamma_fine: 0.5,
            fine_probe_scale: 0.03,
            fine_probe_resolves: 0.95,
            largest_probe_scale: 0.125,
            resolutions: vec![0.0, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0],
            additions: 4,
            block_cells: 1 << 13,
            fit_steps: 100,
            fit_tolerance: 1e-3,
            final_steps: FINAL_STEPS,
        }
    }
}

impl StagedOptions {
    pub(super) fn check(&self) -> Result<(), Error> {
        let shares = [
            ("one_way_share", self.one_way_share),
            ("probe_share", self.probe_share),
            ("first_stage_share", self.first_stage_share),
        ];
        for (name, value) in shares {
            if !(value > 0.0 && value < 1.0) {
                let range = "between 0 and 1";
                return Err(Error::Option { name, range, value });
            }
        }
        if self.one_way_share + self.probe_share >= 1.0 {
            return Err(Error::Option {
                name: "one_way_share + probe_share",
                range: "below 1",
                value: self.one_way_share + self.probe_share,
            });
        }
        Ok(())
    }
}
