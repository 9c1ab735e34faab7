//! The expected noise of columns and pairs.

use std::collections::BTreeMap;

use fhaim_release::{MechanismJob, WeightedPair};

use super::reference::{COLUMN_VARIATION, PAIR_VARIATION, usual_groups};
use super::{BudgetPlan, NOISE_LIMIT, PairForecast, PairPlan, PairSizeForecast, WeightedPlan};
use crate::mechanisms::block::{cost_factor, freedom, pair_cost};
use crate::mechanisms::columns::OneWays;
use crate::mechanisms::score::MEAN_ABS;

/// Squared change of a basis, divided by its squared noise factor, if one holder's part of a record
/// is replaced.
pub(super) const REPLACED: f64 = 2.0;

/// The coarsest probe of a pair.
const COARSE: [usize; 2] = [2, 2];

/// Number of precisions that are tried for measured pairs, and the ratio between two of them.
const LEVELS: i32 = 120;
const LEVEL_RATIO: f64 = 1.25;

/// The expected precision of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ColumnPrecision {
    /// Mean absolute error of a released share.
    pub(super) share_error: f64,
    /// Expected total variation distance.
    pub(super) error: f64,
}

/// Numbers of values of a pair's columns, ascending, and the pair's weight in the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClassKey {
    pub(super) sizes: [usize; 2],
    weight: u32,
}

/// The pairs with the same key.
#[derive(Clone, Debug)]
pub(super) struct PairClass {
    pub(super) key: ClassKey,
    pub(super) count: usize,
    /// Expected error of the dependence of such a pair.
    pub(super) interaction: f64,
    /// Sum of the expected errors of all these pairs.
    errors: f64,
    pub(super) above_noise: bool,
}

/// A resolution of a pair class.
#[derive(Clone, Copy, Debug)]
struct PairResolution {
    /// c^(2/3): the pair's weight in the division of the budget.
    weight: f64,
    /// Expected total variation distance that noise causes, times the root of the level.
    noise: f64,
    /// Expected total variation distance that the merge of values hides.
    hidden: f64,
}

impl PairResolution {
    /// Returns the expected total variation distance if the pair gets `level` times its weight.
    fn error(&self, level: f64) -> f64 {
        self.noise / level.sqrt() + self.hidden
    }
}

/// The mean expected error of all pairs, if all are measured at the same resolution.
#[derive(Clone, Copy, Debug)]
struct MeanError {
    noise: f64,
    hidden: f64,
    /// rho of a unit of weight of 1-ways.
    unit_rho: f64,
}

/// Returns the resolution with the lowest mean error if noise is multiplied by `factor`.
fn lowest(means: &[MeanError], factor: f64) -> Option<usize> {
    let errors = means.iter().map(|mean| mean.noise * factor + mean.hidden);
    let lowest = errors
        .enumerate()
        .min_by(|(_, one), (_, other)| one.total_cmp(other));
    lowest.map(|(resolution, _)| resolution)
}

/// The expected precision of a run.
pub(super) struct Precision {
    pub(super) columns: Vec<ColumnPrecision>,
    pub(super) classes: Vec<PairClass>,
    pub(super) above_noise: f64,
}

impl Precision {
    pub(super) fn new(plan: &BudgetPlan, job: &MechanismJob, records: u64) -> Self {
        match plan {
            BudgetPlan::Weighted(plan) => Self::weighted(plan, job, records),
            BudgetPlan::Rounds(plan) => Self::of_rounds(plan, job, records),
        }
    }

    fn weighted(plan: &WeightedPlan, job: &MechanismJob, records: u64) -> Self {
        let budget = Budget::new(plan, job, records);
        let classes = classes(job);
        let Some(pairs) = plan.pairs.filter(|_| !classes.is_empty()) else {
            return budget.without_pairs(budget.columns(budget.alone()), classes);
        };
        let options = PairOptions::new(&budget, &pairs, &classes);
        // More than 1 if no pair is measured.
        let excess =
            budget.probe_scale(&pairs, &classes) / (pairs.largest_probe_scale * budget.records);
        if excess > 1.0 {
            // Without pairs, columns get the whole budget. Their errors are at least those of the
            // smallest budget that measures pairs, so that a larger budget never looks worse.
            let least = Budget {
                rho: budget.rho * excess.powi(2),
                ..budget.clone()
            };
            let alone = budget.columns(budget.alone());
            let staged = least.columns(options.unit_rho(&least, &classes));
            let columns = alone
                .iter()
                .zip(&staged)
                .map(|(one, other)| one.worse(other));
            return budget.without_pairs(columns.collect(), classes);
        }
        let mut precision = Self {
            columns: budget.columns(options.unit_rho(&budget, &classes)),
            classes,
            above_noise: 0.0,
        };
        for index in 0..precision.classes.len() {
            precision.classes[index].interaction = options.error(&budget, index);
        }
        precision.add_errors(job);
        precision.above_noise = options.count_above_noise(&budget, &mut precision.classes);
        precision
    }

    pub(super) fn column(&self, attribute: usize) -> ColumnPrecision {
        self.columns.get(attribute).copied().unwrap_or_default()
    }

    pub(super) fn pairs(&self) -> PairForecast {
        let count: usize = self.classes.iter().map(|class| class.count).sum();
        let errors: f64 = self.classes.iter().map(|class| class.errors).sum();
        let sizes = self.classes.iter().map(|class| PairSizeForecast {
            values: class.key.sizes,
            count: class.count,
            error: class.errors / class.count.max(1) as f64,
            above_noise: class.above_noise,
        });
        PairForecast {
            count,
            // A whole number of pairs may be a little less because of rounding.
            above_noise: (self.above_noise + 1e-6) as usize,
            error: errors / count.max(1) as f64,
            sizes: sizes.collect(),
        }
    }

    /// Sums up the errors of all pairs of each class: those of the dependence and of both columns.
    pub(super) fn add_errors(&mut self, job: &MechanismJob) {
        let index: BTreeMap<ClassKey, usize> = (self.classes.iter().enumerate())
            .map(|(i, class)| (class.key, i))
            .collect();
        for pair in job.workload.pairs() {
            let key = ClassKey::of(job, pair);
            let Some(class) = index.get(&key).and_then(|&i| self.classes.get_mut(i)) else {
                continue;
            };
            let [a, b] = pair
                .attributes
                .map(|a| self.columns.get(a).map_or(0.0, |c| c.error));
            class.errors += class.interaction.hypot(a).hypot(b).min(1.0);
        }
    }
}

impl ColumnPrecision {
    fn worse(&self, other: &Self) -> Self {
        Self {
            share_error: self.share_error.max(other.share_error),
            error: self.error.max(other.error),
        }
    }
}

impl ClassKey {
    fn of(job: &MechanismJob, pair: &WeightedPair) -> Self {
        let mut sizes = pair.attributes.map(|a| job.domain.size(a));
        sizes.sort_unstable();
        Self {
            sizes,
            weight: pair.weight,
        }
    }
}

/// Groups the pairs of attributes that both vary.
pub(super) fn classes(job: &MechanismJob) -> Vec<PairClass> {
    let mut counts: BTreeMap<ClassKey, usize> = BTreeMap::new();
    for pair in job.workload.pairs() {
        let key = ClassKey::of(job, pair);
        if key.sizes[0] > 1 {
            *counts.entry(key).or_default() += 1;
        }
    }
    let class = |(key, count)| PairClass {
        key,
        count,
        interaction: PAIR_VARIATION,
        errors: 0.0,
        above_noise: false,
    };
    counts.into_iter().map(class).collect()
}

/// Returns the number of records that shares are relative to.
pub(super) fn counted(job: &MechanismJob, records: u64) -> f64 {
    records.clamp(1, job.record_bound.max(1)) as f64
}

/// Budget and weights of the statistics that a run measures.
#[derive(Clone)]
struct Budget<'a> {
    job: &'a MechanismJob,
    plan: &'a WeightedPlan,
    records: f64,
    rho: f64,
    /// c^(2/3) of each attribute's 1-way.
    weights: Vec<f64>,
    /// Sum of the weights of all 1-ways, digits and the total.
    all_weights: f64,
}

impl<'a> Budget<'a> {
    fn new(plan: &'a WeightedPlan, job: &'a MechanismJob, records: u64) -> Self {
        let one_ways = OneWays::new(job, plan.digit_weight);
        let mut weights = vec![0.0; job.domain.len()];
        for (item, &weight) in one_ways.items.iter().zip(&one_ways.weights) {
            if let [attribute] = *item.block.clique().attributes()
                && let Some(own) = weights.get_mut(attribute)
            {
                *own = weight;
            }
        }
        Self {
            job,
            plan,
            records: counted(job, records),
            rho: job.rho.to_f64(),
            weights,
            all_weights: one_ways.weights.iter().sum(),
        }
    }

    fn without_pairs(&self, columns: Vec<ColumnPrecision>, classes: Vec<PairClass>) -> Precision {
        let mut precision = Precision {
            columns,
            classes,
            above_noise: 0.0,
        };
        precision.add_errors(self.job);
        precision
    }

    /// Returns the rho of a unit of weight if only 1-ways are measured.
    fn alone(&self) -> f64 {
        self.rho / self.all_weights
    }

    /// Returns the rho of a unit of weight of 1-ways after the first batch and stages of `level`.
    fn staged(&self, level: f64) -> f64 {
        let weight = self.plan.pairs.map_or(0.0, |pairs| pairs.one_way_weight);
        (self.plan.one_ways * self.alone()).max(weight * level)
    }

    /// Returns the precision of all columns, given the rho of a unit of their weight.
    fn columns(&self, rho: f64) -> Vec<ColumnPrecision> {
        let sizes = self.job.domain.sizes().iter();
        let column = |(&size, weight): (&usize, &f64)| {
            if *weight <= 0.0 {
                return ColumnPrecision::default();
            }
            let cell = 1.0 - 1.0 / size as f64;
            let cost = if self.job.holders.owners().is_some() {
                REPLACED
            } else {
                cell
            };
            let scale = self.job.holders.inflation() * (cost / (2.0 * rho * weight)).sqrt();
            let share_error = MEAN_ABS * scale * cell.sqrt() / self.records;
            ColumnPrecision {
                share_error: share_error.min(1.0),
                error: limited(0.5 * size as f64 * share_error, COLUMN_VARIATION),
            }
        };
        sizes.zip(&self.weights).map(column).collect()
    }

    /// Returns the scale of the coarsest probe of all pairs.
    fn probe_scale(&self, pairs: &PairPlan, classes: &[PairClass]) -> f64 {
        let count: usize = classes.iter().map(|class| class.count).sum();
        let cost = count as f64 * pair_cost(COARSE);
        self.job.holders.inflation() * (cost / (2.0 * pairs.probe * self.rho)).sqrt()
    }

    /// Returns the total variation distance that noise causes in a pair with `groups`, if it gets a
    /// rho of 1.
    fn pair_noise(&self, groups: [usize; 2]) -> f64 {
        let [a, b] = groups.map(cost_factor);
        let replaced = match self.job.holders.owners() {
            Some(_) => REPLACED * a.max(b) / (a * b),
            None => 1.0,
        };
        let cells = freedom(groups[0]) * freedom(groups[1]);
        let scale = self.job.holders.inflation() * (replaced / 2.0).sqrt();
        0.5 * MEAN_ABS * cells * scale / self.records
    }
}

/// The resolutions of all pair classes, coarsest first.
struct PairOptions {
    pairs: PairPlan,
    /// By class, then by resolution.
    options: Vec<Vec<PairResolution>>,
    /// Sum of the weights of all pairs, by resolution.
    weights: Vec<f64>,
}

impl PairOptions {
    fn new(budget: &Budget<'_>, pairs: &PairPlan, classes: &[PairClass]) -> Self {
        let usual = usual_groups(budget.job.domain.sizes(), pairs.resolutions);
        let of_class = |class: &PairClass| {
            let [a, b] = class
                .key
                .sizes
                .map(|size| usual.get(&size).map_or(&[][..], Vec::as_slice));
            let options = a.iter().zip(b).map(|(a, b)| {
                let groups = [a.count, b.count];
                let cost = f64::from(class.key.weight) * freedom(a.count) * freedom(b.count);
                let weight = cost.powf(2.0 / 3.0);
                PairResolution {
                    weight,
                    noise: budget.pair_noise(groups) / weight.sqrt(),
                    hidden: PAIR_VARIATION * (1.0 - a.resolved * b.resolved).max(0.0).sqrt(),
                }
            });
            options.collect::<Vec<_>>()
        };
        let options: Vec<Vec<PairResolution>> = classes.iter().map(of_class).collect();
        let weight = |resolution: usize| {
            let of_class = options.iter().zip(classes);
            let weight = of_class.filter_map(|(options, class)| {
                Some(class.count as f64 * options.get(resolution)?.weight)
            });
            weight.sum()
        };
        Self {
            weights: (0..pairs.resolutions.len()).map(weight).collect(),
            pairs: *pairs,
            options,
        }
    }

    /// Returns the rho of a unit of weight in the stages, if measured pairs have `weight` together.
    ///
    /// All items are filled to the same level. 1-ways count `one_way_weight` times their weight and
    /// start at the level of the first batch.
    fn level(&self, budget: &Budget<'_>, weight: f64) -> f64 {
        let one_ways = self.pairs.one_way_weight * budget.all_weights;
        let first = budget.plan.one_ways * budget.rho;
        let stages = self.pairs.stages * budget.rho;
        let of_pairs = stages / weight;
        match of_pairs * one_ways <= first {
            true => of_pairs,
            false => (first + stages) / (weight + one_ways),
        }
    }

    /// Returns the mean error of all pairs at each resolution.
    fn means(&self, budget: &Budget<'_>, classes: &[PairClass]) -> Vec<MeanError> {
        let all: usize = classes.iter().map(|class| class.count).sum();
        let mean = |(resolution, &weight): (usize, &f64)| {
            let level = self.level(budget, weight);
            let mut mean = MeanError {
                noise: 0.0,
                hidden: 0.0,
                unit_rho: budget.staged(level),
            };
            for (options, class) in self.options.iter().zip(classes) {
                let share = class.count as f64 / all.max(1) as f64;
                if let Some(option) = options.get(resolution) {
                    mean.noise += share * option.noise / level.sqrt();
                    mean.hidden += share * option.hidden;
                }
            }
            mean
        };
        self.weights.iter().enumerate().map(mean).collect()
    }

    /// Returns the rho of a unit of weight of 1-ways, if all pairs are measured at the resolution
    /// with the lowest mean error.
    ///
    /// A larger budget allows a finer resolution, which leaves a smaller share for 1-ways. So that
    /// a larger budget never looks worse, the result is at least as precise as for every smaller
    /// budget. Dividing the precision of a budget by `coarser` multiplies its noise by that.
    fn unit_rho(&self, budget: &Budget<'_>, classes: &[PairClass]) -> f64 {
        let mut finer = self.means(budget, classes);
        let mut coarser = 1.0;
        let mut most = 0.0_f64;
        while let Some(best) = lowest(&finer, coarser) {
            let Some(&now) = finer.get(best) else { break };
            most = most.max(now.unit_rho / (coarser * coarser));
            finer.truncate(best);
            let takes_over = |other: &MeanError| {
                (other.hidden - now.hidden) / (now.noise - other.noise).max(f64::MIN_POSITIVE)
            };
            let next = finer.iter().map(takes_over).fold(f64::INFINITY, f64::min);
            coarser = next.max(coarser);
        }
        most
    }

    /// Returns the expected error of a class's dependence if all pairs are measured at the same
    /// resolution, the best one for the class.
    fn error(&self, budget: &Budget<'_>, class: usize) -> f64 {
        let options = self.options.get(class).into_iter().flatten();
        let errors = options.zip(&self.weights);
        let errors = errors.map(|(option, &weight)| option.error(self.level(budget, weight)));
        limited(errors.fold(f64::INFINITY, f64::min), PAIR_VARIATION)
    }

    /// Returns the largest number of pairs that can be measured above the noise, and marks the
    /// classes that these pairs include.
    ///
    /// At every level, each pair has the coarsest resolution with which it is above the noise, and
    /// the pairs with the lowest cost are measured.
    fn count_above_noise(&self, budget: &Budget<'_>, classes: &mut [PairClass]) -> f64 {
        let (mut most, mut measured) = (0.0, Vec::new());
        for step in 0..LEVELS {
            let level = budget.rho * LEVEL_RATIO.powi(-step);
            let (count, included) = self.affordable(budget, level, classes);
            if count > most {
                (most, measured) = (count, included);
            }
        }
        for index in measured {
            if let Some(class) = classes.get_mut(index) {
                class.above_noise = true;
            }
        }
        most
    }

    /// Returns the number of pairs that the budget can measure above the noise at a level, and the
    /// classes all of whose pairs are among them.
    fn affordable(
        &self,
        budget: &Budget<'_>,
        level: f64,
        classes: &[PairClass],
    ) -> (f64, Vec<usize>) {
        let one_ways = self.pairs.one_way_weight * level * budget.all_weights;
        let first = budget.plan.one_ways * budget.rho;
        let mut left = self.pairs.stages * budget.rho - (one_ways - first).max(0.0);
        let cheapest = |options: &Vec<PairResolution>| {
            let clear = options
                .iter()
                .find(|option| option.error(level) <= NOISE_LIMIT);
            clear.map(|option| option.weight * level)
        };
        let costs = self.options.iter().enumerate();
        let mut costs: Vec<(usize, f64)> = costs
            .filter_map(|(class, options)| Some((class, cheapest(options)?)))
            .collect();
        costs.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        let (mut count, mut included) = (0.0, Vec::new());
        for (index, cost) in costs {
            let all = classes.get(index).map_or(0.0, |class| class.count as f64);
            let some = (left / cost).clamp(0.0, all);
            count += some;
            left -= some * cost;
            if some == all {
                included.push(index);
            }
        }
        (count, included)
    }
}

/// Combines an error by noise with the largest error that remains if noise hides everything: the
/// root of the expected square, if both are normal.
pub(super) fn limited(noise: f64, most: f64) -> f64 {
    match noise.is_finite() {
        true => noise * most / noise.hypot(most),
        false => most,
    }
}
