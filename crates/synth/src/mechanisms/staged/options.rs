//! What of the staged mechanism may be tuned.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::mechanisms::fitting::{FINAL_STEPS, FIT_MEMORY, Passes, check, check_fits};
use crate::mechanisms::score::Scoring;

/// So many stages follow the probe.
pub(super) const STAGES: u8 = 2;

/// The pairs of a table that is not wide: of 14 attributes, 91.
const PAIRS_OF_A_TABLE: f64 = 100.0;

/// Upper bound on the penalties that a plan is tried under.
const MAX_PENALTIES: usize = 16;

/// Upper bound on the resolutions on offer: the plan tries each of them on every pair.
const MAX_RESOLUTIONS: usize = 32;

/// Upper bound on the steps that a fit combines: each takes as much memory as the measurements.
const MAX_FIT_MEMORY: usize = 100;

/// Upper bound on the integers of a probe, and of a stage: what a ladder has pages for.
const MAX_PROBE_CELLS: usize = 1 << 24;
const MAX_BLOCK_CELLS: usize = 1 << 20;

/// What may be tuned. The defaults are what terms mean that leave an option out, and never change:
/// runs are played again from their answers. New terms are made with [`StagedOptions::recommended`],
/// in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StagedOptions {
    /// f1: share of rho for the first batch.
    pub one_way_share: f64,
    /// fc: share of rho for the probe.
    pub probe_share: f64,
    /// The part of the probe's share with which a finer probe begins: the rest is asked for only where that
    /// sees more than noise. 0: the probe is asked for at once.
    #[serde(skip_serializing_if = "is_zero")]
    pub first_look: f64,
    /// Share of rho, beside the probe's, for a block of two groups an attribute of every pair, asked for with the first
    /// look of a finer probe that is not fine by much: one whose scale is at least `coarse_look_scale` of Nhat. What hangs
    /// on the order of values shows in that one integer long before it does in 64. 0: there is none.
    #[serde(skip_serializing_if = "is_zero")]
    pub coarse_look: f64,
    /// See `coarse_look`.
    #[serde(skip_serializing_if = "is_zero")]
    pub coarse_look_scale: f64,
    /// The probe's share grows with the root of the pairs over 100, from `probe_share` up to this. Where columns are many,
    /// most pairs are never measured again, and where they are few a probe is soon fine enough. 0: it does not grow.
    #[serde(skip_serializing_if = "is_zero")]
    pub wide_probe_share: f64,
    /// Share of what is left for stage 1; stage 2 has the rest.
    pub first_stage_share: f64,
    /// How pairs outside the model are scored.
    #[serde(skip_serializing_if = "Scoring::is_normal")]
    pub scoring: Scoring,
    /// By what the weights of total and 1-ways are multiplied, against those of pairs, in plans and
    /// in what a stage spends on them. An error in a 1-way is hardly seen in a pair that is further
    /// off by itself: at 1 the errors are added up as if it were.
    #[serde(skip_serializing_if = "is_one")]
    pub one_way_weight: f64,
    /// Weight of the noise of a digit's cell beside that of a pair's. What the digits get, pairs of
    /// coarse attributes lose: a value in the wrong place of its bin is still in its bin.
    #[serde(skip_serializing_if = "is_one")]
    pub digit_weight: f64,
    /// Whether noisy blocks are moved towards what the model said before it had the pair.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shrinkage: bool,
    /// beta: weight of noise against what is not modelled.
    pub beta: f64,
    /// beta, where the probe's scale is at most `clear_probe_scale` of Nhat: errors of pairs that nearly all are measured
    /// add up to less than their sum.
    #[serde(skip_serializing_if = "is_zero")]
    pub beta_clear: f64,
    /// See `beta_clear`. 0: beta is as it is.
    #[serde(skip_serializing_if = "is_zero")]
    pub clear_probe_scale: f64,
    /// gamma, where the probe has two groups an attribute.
    pub gamma: f64,
    /// gamma, where the probe is the finer one.
    pub gamma_fine: f64,
    /// Each stage takes the one of these in place of gamma whose plan, made to its end, has the lowest J.
    /// None: gamma is as it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub penalties: Vec<f64>,
    /// The probe is the finer one where its scale is at most this share of Nhat.
    pub fine_probe_scale: f64,
    /// Share of an attribute's variation that a fine probe resolves, with at most 8 groups.
    pub fine_probe_resolves: f64,
    /// There is a probe, and pairs to measure, only where the probe's scale is at most this share
    /// of Nhat. With more noise hardly any pair can be told from an independent one: the 1-ways
    /// make better use of the budget.
    pub largest_probe_scale: f64,
    /// Most integers of a probe, of both its parts together: attributes have as many groups in it, 8 at most, as leave it
    /// below. The table is then also taken to have at most as many records as the job's bound, so that a probe which no
    /// table within the bound could have takes no noise either. 0: no limit, and noise for a probe of any table.
    #[serde(skip_serializing_if = "is_none")]
    pub probe_cells: usize,
    /// What may be released is planned for contrasts of as many groups as attributes have values, instead of 8
    /// whatever they have: columns of few values then do with a smaller parameter set.
    #[serde(skip_serializing_if = "is_false")]
    pub groups_by_size: bool,
    /// Whether pairs that the model has no room for are measured too, and their tables kept beside it.
    #[serde(skip_serializing_if = "is_false")]
    pub beside: bool,
    /// Most cells of the junction tree, however many more the job has room for: with tables beside it a larger one takes
    /// seconds and lowers no error. 0: as many as the job has room for.
    #[serde(skip_serializing_if = "is_none")]
    pub model_cells: usize,
    /// Shares of variation that blocks on offer resolve.
    pub resolutions: Vec<f64>,
    /// Pairs that join the model between two scorings of a stage, where the probe is the finer
    /// one. A coarse probe is too blunt to tell what the new members leave unexplained.
    pub additions: usize,
    /// Most integers that one stage's blocks may release together, where `pair_cells` does not allow more.
    pub block_cells: usize,
    /// One stage's blocks may release so many integers for each pair of the workload, as far as the budget could make use of them and
    /// 65,536 together at most. 0: `block_cells` alone says how many.
    #[serde(skip_serializing_if = "is_none")]
    pub pair_cells: usize,
    /// Steps of the fits between.
    pub fit_steps: usize,
    /// Tolerance of the fits between.
    pub fit_tolerance: f64,
    /// Steps of the last fit.
    pub final_steps: usize,
    /// What each step of a fit passes over.
    #[serde(skip_serializing_if = "Passes::is_tables")]
    pub passes: Passes,
    /// Steps that the search of a fit combines.
    #[serde(skip_serializing_if = "is_usual")]
    pub fit_memory: usize,
}

impl Default for StagedOptions {
    fn default() -> Self {
        Self {
            one_way_share: 0.2,
            probe_share: 0.1,
            first_look: 0.0,
            coarse_look: 0.0,
            coarse_look_scale: 0.0,
            wide_probe_share: 0.0,
            first_stage_share: 0.5,
            scoring: Scoring::Normal,
            one_way_weight: 1.0,
            digit_weight: 1.0,
            shrinkage: false,
            beta: 0.85,
            beta_clear: 0.0,
            clear_probe_scale: 0.0,
            gamma: 0.25,
            gamma_fine: 0.5,
            penalties: Vec::new(),
            fine_probe_scale: 0.03,
            fine_probe_resolves: 0.95,
            largest_probe_scale: 0.125,
            probe_cells: 0,
            groups_by_size: false,
            beside: false,
            model_cells: 0,
            resolutions: vec![0.0, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0],
            additions: 4,
            block_cells: 1 << 13,
            pair_cells: 0,
            fit_steps: 100,
            fit_tolerance: 1e-3,
            final_steps: FINAL_STEPS,
            passes: Passes::Tables,
            fit_memory: FIT_MEMORY,
        }
    }
}

impl StagedOptions {
    /// What new terms name.
    pub fn recommended() -> Self {
        Self {
            scoring: Scoring::Mixture,
            first_look: 0.04,
            coarse_look: 0.02,
            coarse_look_scale: 0.02,
            wide_probe_share: 0.2,
            beta_clear: 0.6,
            clear_probe_scale: 0.002,
            // 128 pages of a ladder: both parts of all pairs of 256 attributes of four values.
            probe_cells: 1 << 20,
            groups_by_size: true,
            beside: true,
            // 16 MB: docs/PERFORMANCE.md, "Fits".
            model_cells: 1 << 21,
            pair_cells: 64,
            penalties: vec![0.1, 0.25, 0.5, 0.75],
            one_way_weight: 0.5,
            digit_weight: 0.1,
            shrinkage: true,
            // Half as many again take longer at large budgets, and change no error: docs/PERFORMANCE.md, "Fits".
            final_steps: FINAL_STEPS,
            passes: Passes::Contractions,
            fit_memory: 20,
            ..Self::default()
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let shares = [
            ("one_way_share", self.one_way_share),
            ("probe_share", self.probe_share),
            ("first_stage_share", self.first_stage_share),
        ];
        for (name, value) in shares {
            check(name, "between 0 and 1", value, value > 0.0 && value < 1.0)?;
        }
        let probes = self.probe_share.max(self.wide_probe_share) + self.coarse_look;
        let spent = self.one_way_share + probes;
        let name = "one_way_share + probe_share + coarse_look";
        check(name, "below 1", spent, spent < 1.0)?;
        let weights = [
            ("one_way_weight", self.one_way_weight),
            ("digit_weight", self.digit_weight),
            ("coarse_look", self.coarse_look),
            ("coarse_look_scale", self.coarse_look_scale),
            ("wide_probe_share", self.wide_probe_share),
            ("beta", self.beta),
            ("beta_clear", self.beta_clear),
            ("clear_probe_scale", self.clear_probe_scale),
            ("gamma", self.gamma),
            ("gamma_fine", self.gamma_fine),
            ("fine_probe_scale", self.fine_probe_scale),
            ("largest_probe_scale", self.largest_probe_scale),
        ];
        for (name, value) in weights {
            check(
                name,
                "a number of at least 0",
                value,
                value.is_finite() && value >= 0.0,
            )?;
        }
        self.check_resolutions()?;
        let (name, memory) = ("fit_memory", self.fit_memory);
        let fits = (1..=MAX_FIT_MEMORY).contains(&memory);
        check(name, "from 1 to 100", memory as f64, fits)?;
        self.check_plans()?;
        let (name, cells) = ("block_cells", self.block_cells);
        let range = "from 1 to 1048576";
        check(
            name,
            range,
            cells as f64,
            (1..=MAX_BLOCK_CELLS).contains(&cells),
        )?;
        let (name, cells) = ("pair_cells", self.pair_cells);
        let fits = cells <= MAX_BLOCK_CELLS;
        check(name, "from 0 to 1048576", cells as f64, fits)?;
        let (name, cells) = ("probe_cells", self.probe_cells);
        let fits = cells <= MAX_PROBE_CELLS;
        check(name, "from 0 to 16777216", cells as f64, fits)?;
        let additions = self.additions;
        check("additions", "at least 1", additions as f64, additions > 0)?;
        check_fits(self.fit_steps, self.fit_tolerance, self.final_steps)
    }

    /// The share of rho that the probe of so many pairs has, both its parts together.
    pub(super) fn probe_share(&self, pairs: usize) -> f64 {
        let grown = self.probe_share * (pairs as f64 / PAIRS_OF_A_TABLE).sqrt();
        grown.min(self.wide_probe_share).max(self.probe_share)
    }

    fn check_plans(&self) -> Result<(), Error> {
        let look = self.first_look;
        let fits = (0.0..self.probe_share).contains(&look);
        check("first_look", "from 0 to below probe_share", look, fits)?;
        let tried = self.penalties.len();
        let range = "a list of at most 16 numbers of at least 0";
        check("penalties", range, tried as f64, tried <= MAX_PENALTIES)?;
        for &gamma in &self.penalties {
            check("penalties", range, gamma, gamma.is_finite() && gamma >= 0.0)?;
        }
        Ok(())
    }

    fn check_resolutions(&self) -> Result<(), Error> {
        let offered = self.resolutions.len();
        let range = "a list of 1 to 32 shares";
        let fits = (1..=MAX_RESOLUTIONS).contains(&offered);
        check("resolutions", range, offered as f64, fits)?;
        let range = "from 0 to 1";
        let share = |name, value| check(name, range, value, (0.0..=1.0).contains(&value));
        for &resolved in &self.resolutions {
            share("resolutions", resolved)?;
        }
        share("fine_probe_resolves", self.fine_probe_resolves)
    }
}

/// What options without a name mean is not written: landed terms have no such name.
fn is_one(weight: &f64) -> bool {
    *weight == 1.0
}

/// As [`is_one`], for the memory of fits.
fn is_usual(memory: &usize) -> bool {
    *memory == FIT_MEMORY
}

fn is_none(cells: &usize) -> bool {
    *cells == 0
}

fn is_false(set: &bool) -> bool {
    !set
}

fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Terms without the name mean what they meant, and no landed terms gain one.
    #[test]
    fn what_terms_without_a_name_mean_is_not_written() {
        let written = |options| serde_json::to_value(options).unwrap();
        let landed = written(StagedOptions::default());
        for name in [
            "digit_weight",
            "passes",
            "fit_memory",
            "first_look",
            "coarse_look",
            "coarse_look_scale",
            "wide_probe_share",
            "beta_clear",
            "clear_probe_scale",
            "penalties",
            "probe_cells",
            "groups_by_size",
            "beside",
            "model_cells",
            "pair_cells",
        ] {
            assert!(landed.get(name).is_none(), "{name}");
        }
        let recommended = written(StagedOptions::recommended());
        assert_eq!(recommended["digit_weight"], 0.1);
        assert_eq!(recommended["passes"], "contractions");
        assert_eq!(recommended["fit_memory"], 20);
        assert_eq!(recommended["first_look"], 0.04);
        assert_eq!(recommended["coarse_look"], 0.02);
        assert_eq!(recommended["coarse_look_scale"], 0.02);
        assert_eq!(recommended["wide_probe_share"], 0.2);
        assert_eq!(recommended["beta_clear"], 0.6);
        assert_eq!(recommended["clear_probe_scale"], 0.002);
        assert_eq!(recommended["penalties"].as_array().unwrap().len(), 4);
        assert_eq!(recommended["probe_cells"], 1 << 20);
        assert_eq!(recommended["groups_by_size"], true);
        assert_eq!(recommended["beside"], true);
        assert_eq!(recommended["model_cells"], 1 << 21);
        assert_eq!(recommended["pair_cells"], 64);
    }

    #[test]
    fn the_probe_of_a_wide_table_has_a_larger_share() {
        let share = |options: fn() -> StagedOptions, columns: usize| {
            options().probe_share(columns * (columns - 1) / 2)
        };
        for columns in [2, 14, 600] {
            assert_eq!(share(StagedOptions::default, columns), 0.1);
        }
        assert_eq!(share(StagedOptions::recommended, 14), 0.1);
        // 190 pairs, 325, and 435.
        for (columns, grown) in [(20, 0.137_84), (26, 0.180_28), (30, 0.2), (600, 0.2)] {
            let share = share(StagedOptions::recommended, columns);
            assert!((share - grown).abs() < 1e-5, "{columns} columns: {share}");
        }
    }

    #[test]
    fn options_out_of_their_range_are_refused_by_name() {
        assert!(StagedOptions::default().check().is_ok());
        let refused = |change: fn(&mut StagedOptions)| {
            let mut options = StagedOptions::default();
            change(&mut options);
            match options.check().unwrap_err() {
                Error::Option { name, .. } => name,
                other => panic!("{other}"),
            }
        };
        assert_eq!(refused(|o| o.probe_share = f64::NAN), "probe_share");
        assert_eq!(
            refused(|o| o.one_way_share = 0.95),
            "one_way_share + probe_share + coarse_look"
        );
        assert_eq!(refused(|o| o.beta = -1.0), "beta");
        assert_eq!(refused(|o| o.first_look = o.probe_share), "first_look");
        assert_eq!(refused(|o| o.first_look = f64::NAN), "first_look");
        assert_eq!(
            refused(|o| o.coarse_look = f64::NAN),
            "one_way_share + probe_share + coarse_look"
        );
        assert_eq!(refused(|o| o.coarse_look = -0.1), "coarse_look");
        assert_eq!(
            refused(|o| o.wide_probe_share = 0.9),
            "one_way_share + probe_share + coarse_look"
        );
        assert_eq!(refused(|o| o.beta_clear = f64::INFINITY), "beta_clear");
        assert_eq!(refused(|o| o.penalties = vec![0.5, -1.0]), "penalties");
        assert_eq!(refused(|o| o.penalties = vec![0.5; 17]), "penalties");
        assert_eq!(refused(|o| o.one_way_weight = f64::NAN), "one_way_weight");
        assert_eq!(refused(|o| o.digit_weight = f64::INFINITY), "digit_weight");
        assert_eq!(refused(|o| o.resolutions.clear()), "resolutions");
        assert_eq!(refused(|o| o.resolutions[1] = 1.5), "resolutions");
        assert_eq!(
            refused(|o| o.fine_probe_resolves = 2.0),
            "fine_probe_resolves"
        );
        assert_eq!(refused(|o| o.block_cells = 0), "block_cells");
        assert_eq!(refused(|o| o.pair_cells = usize::MAX), "pair_cells");
        assert_eq!(refused(|o| o.probe_cells = usize::MAX), "probe_cells");
        assert_eq!(refused(|o| o.additions = 0), "additions");
        assert_eq!(refused(|o| o.fit_steps = usize::MAX), "fit_steps");
        assert_eq!(refused(|o| o.fit_memory = 0), "fit_memory");
        assert_eq!(refused(|o| o.fit_tolerance = 0.0), "fit_tolerance");
    }
}
