//! The expected batches and fits of a run, from public numbers only.
//!
//! Some sizes depend on the records. They are assumed to be as in tables whose columns depend on
//! each other. The constants are from seven such tables, of 286 to 10 million records.

use super::extent::{
    FINE_PROBE_SCALE, LARGEST_PROBE_SCALE, PARTS, model_cells, most_groups, stage_cells,
};
use super::machine::{ADDITIONS, COARSE_LOOK_SCALE, DIGIT_WEIGHT, ONE_WAY_WEIGHT, RESOLUTIONS};
use super::options::{STAGES, StagedOptions};
use super::pair::COARSE;
use crate::expected::{Expected, ExpectedBatch, ExpectedFit, most_cells};
use crate::forecast::{BudgetPlan, PairPlan, WeightedPlan};
use crate::mechanisms::block::{MAX_CENTRED, functions, pair_cost};
use crate::mechanisms::columns::OneWays;
use crate::mechanisms::fitting::{FINAL_STEPS, FIT_STEPS};
use fhaim_release::MechanismJob;
use std::collections::BTreeSet;

/// Number of records divided by the scale of a probe of two groups for each attribute. Up to the
/// first value almost no pair joins the model; from the second on, the model is as large as
/// possible.
const FILLS: [f64; 2] = [20.0, 300.0];

/// Scale of the finer probe, of up to eight groups, relative to that of a probe of two groups.
const FINER_SCALE: f64 = 1.75;

/// Attributes of up to this number of values are measured with one group for each value.
const WHOLE: usize = 4;

/// The number of an attribute's groups in a probe is its number of values (at most the probe's
/// groups) to this power.
const PROBED: f64 = 0.82;

/// The number of an attribute's groups in a stage is its number of values to this power, up to
/// [`MAX_CENTRED`].
const STAGED: f64 = 0.6;

/// Attributes of more values than [`WHOLE`] have at most [`PROBED_NUMBERS`] distinct numbers of
/// groups in a probe. [`SAME_NUMBER`] consecutive ones have the same number. Blocks with different
/// numbers have different variances.
const PROBED_NUMBERS: usize = 3;
const SAME_NUMBER: usize = 2;

/// Share of all groups that are second factors of a batch.
const FACTORS: f64 = 0.75;

/// Share of its steps that a fit takes: without pairs, and the least and the largest with pairs.
/// The more the probe sees, the larger the share.
const NO_PAIRS: f64 = 0.15;
const LEAST_STEPS: f64 = 0.2;
const MOST_STEPS: f64 = 0.6;

/// Sizes that follow from the job's public numbers.
struct Shape<'a> {
    job: &'a MechanismJob,
    options: &'a StagedOptions,
    one_ways: ExpectedBatch,
    /// Share of its cap that a model will fill. It grows as the probe's noise falls relative to the
    /// number of records.
    share: f64,
    /// Largest number of groups of an attribute in a probe, if there is a probe.
    probe: Option<usize>,
    /// Whether the probe is a fine one.
    fine: bool,
    /// Whether the first part of the probe includes a coarse block of every pair.
    coarse_look: bool,
}

/// Returns the expected batches (total and 1-ways, the probe, and the stages, each of which
/// measures the 1-ways again), and the fits between them.
pub(super) fn expected(job: &MechanismJob, options: &StagedOptions, records: usize) -> Expected {
    let shape = Shape::new(job, options, records);
    Expected {
        batches: shape.batches(),
        fits: shape.fits(),
    }
}

/// Returns the division of the budget if all pairs of the workload vary.
pub(super) fn budget_plan(job: &MechanismJob, options: &StagedOptions) -> BudgetPlan {
    let probe = options.probe_share_of(job.workload.pairs().len());
    let pairs = PairPlan {
        probe,
        largest_probe_scale: LARGEST_PROBE_SCALE,
        stages: 1.0 - options.one_way_share - probe,
        one_way_weight: ONE_WAY_WEIGHT,
        resolutions: &RESOLUTIONS,
    };
    BudgetPlan::Weighted(WeightedPlan {
        one_ways: options.one_way_share,
        digit_weight: DIGIT_WEIGHT,
        pairs: Some(pairs),
    })
}

impl<'a> Shape<'a> {
    fn new(job: &'a MechanismJob, options: &'a StagedOptions, records: usize) -> Self {
        let count = job.workload.pairs().len();
        let cost = count as f64 * pair_cost(COARSE);
        let scale = (cost / (2.0 * options.probe_share_of(count) * job.rho.to_f64())).sqrt();
        let seen = records as f64 / (job.holders.inflation() * scale);
        let [first, last] = FILLS;
        let sizes = job.domain.sizes();
        let pairs = job.workload.pairs().iter();
        let wanted: Vec<[usize; 2]> = pairs.map(|p| p.attributes.map(|a| sizes[a])).collect();
        let fine = most_groups(&wanted).filter(|_| seen * FINE_PROBE_SCALE >= FINER_SCALE);
        let widths: BTreeSet<usize> = sizes.iter().copied().collect();
        Self {
            one_ways: ExpectedBatch {
                statistics: 1 + sizes.len(),
                sums: OneWays::new(job, DIGIT_WEIGHT).cells(),
                // The total's variance, and one for all attributes of the same size.
                variances: 1 + widths.len(),
                ..ExpectedBatch::default()
            },
            share: ((seen - first) / (last - first)).clamp(0.0, 1.0),
            probe: (seen * LARGEST_PROBE_SCALE >= 1.0).then(|| fine.unwrap_or(2)),
            fine: fine.is_some(),
            coarse_look: fine.is_some() && seen * COARSE_LOOK_SCALE <= FINER_SCALE,
            job,
            options,
        }
    }

    fn batches(&self) -> Vec<ExpectedBatch> {
        let mut batches = vec![self.one_ways];
        let mut stage = self.one_ways;
        if let Some(most) = self.probe {
            // The first part of a fine probe is the look.
            let parts = if self.fine { PARTS } else { 1 };
            batches.extend(vec![self.probe(most); parts]);
            if self.coarse_look {
                let coarse =
                    self.blocks(self.job.workload.pairs().len(), 1, |size| probed(size, 2));
                let look = &mut batches[1];
                look.statistics += coarse.statistics;
                look.products += coarse.products;
                look.factors += coarse.factors;
                look.variances += coarse.variances;
            }
            let blocks = self.stage();
            stage.statistics += blocks.statistics;
            stage.products = blocks.products;
            stage.factors = blocks.factors;
            stage.variances += blocks.variances;
        }
        batches.extend(vec![stage; usize::from(STAGES)]);
        batches
    }

    /// Returns blocks of all pairs, with at most `most` groups for each attribute. All blocks have
    /// the same scale, so blocks with equal numbers of groups have the same variance.
    fn probe(&self, most: usize) -> ExpectedBatch {
        let pairs = self.job.workload.pairs().len();
        self.blocks(pairs, PROBED_NUMBERS, |size| probed(size, most))
    }

    /// Returns the blocks that a stage requests in addition to the 1-ways.
    fn stage(&self) -> ExpectedBatch {
        if !self.fine {
            return self.blocks(self.measured(), usize::MAX, |size| probed(size, 2));
        }
        let blocks = self.blocks(self.measured(), usize::MAX, staged);
        ExpectedBatch {
            products: blocks.products.min(stage_cells(self.job)),
            ..blocks
        }
    }

    /// Returns blocks of a number of pairs, whose attributes have `groups(size)` groups. Wide
    /// attributes have at most `most` distinct numbers of groups.
    fn blocks(&self, pairs: usize, most: usize, groups: impl Fn(usize) -> f64) -> ExpectedBatch {
        let sizes = self.job.domain.sizes();
        let of_pairs = self.job.workload.pairs().iter();
        let cells: f64 = of_pairs
            .map(|pair| {
                let [a, b] = pair.attributes.map(|a| basis(groups(sizes[a])));
                a * b
            })
            .sum();
        let joined = pairs as f64 / self.job.workload.pairs().len().max(1) as f64;
        let factors: f64 = sizes.iter().map(|&size| basis(groups(size))).sum();
        ExpectedBatch {
            statistics: pairs,
            sums: 0,
            products: whole(cells * joined),
            factors: whole(factors * FACTORS),
            variances: self.variances(most).min(pairs),
        }
    }

    /// Returns the number of variances of blocks: one for each combination of the two attributes'
    /// numbers of groups. Narrow attributes have one group for each value, wide ones at most `most`
    /// distinct numbers of groups.
    fn variances(&self, most: usize) -> usize {
        if !self.fine {
            return 1;
        }
        let mut wide = 0;
        let number = |&size: &usize| {
            if size <= WHOLE {
                return size;
            }
            wide += 1;
            WHOLE + 1 + ((wide - 1) / SAME_NUMBER) % most
        };
        let numbers: Vec<usize> = self.job.domain.sizes().iter().map(number).collect();
        let pairs = self.job.workload.pairs().iter();
        let pairs = pairs.map(|pair| {
            let [a, b] = pair.attributes.map(|attribute| numbers[attribute]);
            [a.min(b), a.max(b)]
        });
        pairs.collect::<BTreeSet<_>>().len()
    }

    /// Returns the number of pairs that stages measure: all pairs of a fine probe if extra pairs
    /// are measured, else those in the model.
    fn measured(&self) -> usize {
        if self.fine && self.options.extra_pairs {
            return self.job.workload.pairs().len();
        }
        self.members()
    }

    /// Returns the number of pairs that join the model. In the largest model, every attribute joins
    /// the attributes before it in a clique of the model's largest size.
    fn members(&self) -> usize {
        let all = self.job.workload.pairs().len();
        if !self.fine {
            return all.div_ceil(2);
        }
        let others = self.clique() - 1.0;
        let attributes = self.job.domain.len() as f64;
        let members = others * attributes - others * (others + 1.0) / 2.0;
        (members.max(1.0) as usize).min(all)
    }

    /// Returns the number of cells of the final model.
    fn cells(&self) -> f64 {
        let most = most_cells(self.job).min(model_cells(self.job) as f64);
        (most * self.share).max(self.least_cells())
    }

    /// Returns the number of attributes of the model's largest clique.
    fn clique(&self) -> f64 {
        let attributes = self.job.domain.len() as f64;
        (self.cells().ln() / self.mean_logarithm(usize::MAX)).clamp(1.0, attributes.max(1.0))
    }

    /// Returns the mean logarithm of the attributes' numbers of values, each limited to `most`.
    fn mean_logarithm(&self, most: usize) -> f64 {
        let sizes = self.job.domain.sizes();
        let logarithms = sizes.iter().map(|&size| (size.clamp(1, most) as f64).ln());
        (logarithms.sum::<f64>() / sizes.len().max(1) as f64).max(f64::MIN_POSITIVE)
    }

    /// Returns one fit after each batch, where the two parts of a probe count as one, and the fits
    /// while pairs join. Only the last two fits include the measurements of stages.
    fn fits(&self) -> Vec<ExpectedFit> {
        let (between, last) = (FIT_STEPS, FINAL_STEPS);
        let sums = self.one_ways.sums as f64;
        let [probed, staged] = self.fitted();
        let least = self.least_cells();
        let most = if self.fine { self.cells() } else { least };
        let mut fits = vec![self.fit(between, least, sums); 2];
        if self.fine {
            fits.extend(self.growing(sums, probed));
        }
        for steps in [between, last] {
            fits.push(self.fit(steps, most, sums + probed + staged));
        }
        fits
    }

    fn fit(&self, steps: usize, cells: f64, values: f64) -> ExpectedFit {
        let effort = match cells > self.least_cells() {
            true => LEAST_STEPS + (MOST_STEPS - LEAST_STEPS) * self.share,
            false => NO_PAIRS,
        };
        ExpectedFit {
            steps: effort * steps as f64,
            cells,
            values,
        }
    }

    /// Returns the fits while pairs join: one whenever [`ADDITIONS`] pairs have joined, after which
    /// the others are scored again. These fits use the groups of the probe, and each is larger than
    /// the one before by the same factor.
    fn growing(&self, sums: f64, probed: f64) -> impl Iterator<Item = ExpectedFit> {
        let coarser = self.mean_logarithm(usize::MAX) - self.mean_logarithm(MAX_CENTRED);
        let least = self.least_cells();
        let last = (self.cells() / (coarser * self.clique()).exp()).max(least);
        let fits = self.members().div_ceil(ADDITIONS);
        (1..=fits).map(move |number| {
            let joined = number as f64 / fits as f64;
            let cells = least * (last / least).powf(joined);
            self.fit(FIT_STEPS, cells, sums + joined * probed)
        })
    }

    /// Returns the numbers of values of the probe and of a stage that belong to pairs in the model.
    /// Values of other pairs are not fitted.
    fn fitted(&self) -> [f64; 2] {
        let Some(most) = self.probe else {
            return [0.0; 2];
        };
        let members = self.members() as f64;
        [self.probe(most), self.stage()]
            .map(|blocks| blocks.products as f64 * members / blocks.statistics.max(1) as f64)
    }

    /// Returns the number of cells of the model without pairs.
    fn least_cells(&self) -> f64 {
        self.job.domain.columns() as f64
    }
}

/// Returns the expected groups of an attribute of `size` values in a probe of at most `most`
/// groups.
fn probed(size: usize, most: usize) -> f64 {
    power(size.min(most), PROBED)
}

/// Returns the expected groups of an attribute of `size` values in a stage.
fn staged(size: usize) -> f64 {
    power(size, STAGED).min(MAX_CENTRED as f64)
}

fn power(size: usize, power: f64) -> f64 {
    let all = size as f64;
    all.powf(power).max(all.min(WHOLE as f64))
}

/// Returns the number of functions of a basis of `groups` groups, which may be a fraction.
fn basis(groups: f64) -> f64 {
    match groups {
        few if few <= 2.0 => functions(few as usize) as f64,
        more => more,
    }
}

/// Rounds down to a whole number, and up to 1 for a positive number below 1.
fn whole(number: f64) -> usize {
    let least = if number > 0.0 { 1.0 } else { 0.0 };
    number.max(least) as usize
}
