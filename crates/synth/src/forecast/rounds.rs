//! The expected noise of mechanisms that measure one table of counts in each round.

use std::collections::BTreeMap;

use fhaim_release::MechanismJob;

use super::precision::{
    ColumnPrecision, PairClass, Precision, REPLACED, classes, counted, limited,
};
use super::reference::{COLUMN_VARIATION, PAIR_VARIATION};
use super::{NOISE_LIMIT, RoundPlan};
use crate::mechanisms::score::MEAN_ABS;

/// Ratio between two numbers of measured pairs that are tried.
const COUNT_RATIO: f64 = 1.05;

/// The noise of a run's tables.
struct Noise {
    /// Mean absolute error of a cell's share, times the root of the table's rho.
    share: f64,
    /// rho of all pairs together.
    rho: f64,
    /// Number of pairs of columns that vary.
    pairs: usize,
}

impl Precision {
    /// Returns the precision of a run that divides the budget of pairs evenly among some of them. The
    /// mechanism chooses the pairs by noisy scores; their number is expected to be the one with the
    /// least mean error. The others keep the error of a usual pair that is not measured.
    pub(super) fn of_rounds(plan: &RoundPlan, job: &MechanismJob, records: u64) -> Self {
        let cost = match job.holders.owners() {
            Some(_) => REPLACED,
            None => 1.0,
        };
        let scale = job.holders.inflation() * (cost / 2.0).sqrt();
        let rho = job.rho.to_f64();
        let mut classes = classes(job);
        let noise = Noise {
            share: MEAN_ABS * scale / counted(job, records),
            rho: plan.pairs * rho,
            pairs: classes.iter().map(|class| class.count).sum(),
        };
        let most = noise.most_pairs(plan, &classes, counted(job, records));
        let least = plan.least_pairs.clamp(1, most.max(1));
        let above_noise = noise.count_above_noise(&mut classes, most);
        let columns = noise.columns(job, plan.column * rho, most > 0);
        if most > 0 {
            let attributes = job.domain.coarse_attributes();
            let error = |&a: &usize| Some((job.domain.size(a), columns.get(a)?.error));
            let errors = attributes.iter().filter_map(error).collect();
            noise.add_interactions(&mut classes, &errors, [least, most]);
        }
        let mut precision = Self {
            columns,
            classes,
            above_noise,
        };
        precision.add_errors(job);
        precision
    }
}

impl Noise {
    /// Returns the largest number of pairs that a run measures. If noise hides the score of a usual
    /// pair, each round measures any pair, also one that was measured before.
    fn most_pairs(&self, plan: &RoundPlan, classes: &[PairClass], records: f64) -> usize {
        let most = plan.most_pairs.min(self.pairs);
        let Some(score_noise) = plan.squared_score_noise.filter(|_| most > 0) else {
            return most;
        };
        let cells = |class: &PairClass| {
            class.count as f64 * (class.key.sizes[0] * class.key.sizes[1]) as f64
        };
        let cells = classes.iter().map(cells).sum::<f64>() / self.pairs as f64;
        // A usual pair differs from the model by this many records, spread evenly over its cells.
        let moved = 2.0 * PAIR_VARIATION * records;
        if moved * moved / cells >= score_noise {
            return most;
        }
        let missed = (1.0 - 1.0 / self.pairs as f64).powf(plan.most_pairs as f64);
        (((1.0 - missed) * self.pairs as f64) as usize).clamp(1, most)
    }

    /// Returns the precision of all columns. The table of a pair of which the other column has b
    /// values is as good for a column as a table of the column with a b-th of its rho.
    fn columns(&self, job: &MechanismJob, first: f64, with_pairs: bool) -> Vec<ColumnPrecision> {
        let attributes = job.domain.coarse_attributes();
        let parts = attributes.iter().map(|&a| 1.0 / job.domain.size(a) as f64);
        let parts: f64 = parts.sum();
        let others = attributes.len().saturating_sub(1).max(1) as f64;
        let mut columns = vec![ColumnPrecision::default(); job.domain.len()];
        for &attribute in &attributes {
            let size = job.domain.size(attribute) as f64;
            let Some(column) = columns.get_mut(attribute).filter(|_| size > 1.0) else {
                continue;
            };
            let part = (parts - 1.0 / size) / others;
            let from_pairs = match with_pairs {
                true => 2.0 * self.rho * part / attributes.len() as f64,
                false => 0.0,
            };
            let share_error = self.share / (first + from_pairs).sqrt();
            *column = ColumnPrecision {
                share_error: share_error.min(1.0),
                error: limited(0.5 * size * share_error, COLUMN_VARIATION),
            };
        }
        columns
    }

    /// Returns the expected total variation distance of a pair's dependence that noise causes if the
    /// pair's table gets a rho of 1.
    fn of_pair(&self, class: &PairClass) -> f64 {
        let [a, b] = class.key.sizes.map(|size| size as f64);
        0.5 * self.share * (a * (a - 1.0) * b * (b - 1.0)).sqrt()
    }

    /// Sets the expected error of each class's dependence, with the number of measured pairs that has
    /// the least mean error of pairs. `columns` has the error of columns by their numbers of values.
    fn add_interactions(
        &self,
        classes: &mut [PairClass],
        columns: &BTreeMap<usize, f64>,
        [least, most]: [usize; 2],
    ) {
        let interaction = |class: &PairClass, count: usize| {
            let noise = self.of_pair(class) * (count as f64 / self.rho).sqrt();
            let measured = count as f64 / self.pairs as f64;
            measured * limited(noise, PAIR_VARIATION) + (1.0 - measured) * PAIR_VARIATION
        };
        let error = |class: &PairClass, count: usize| {
            let [a, b] = class
                .key
                .sizes
                .map(|size| columns.get(&size).copied().unwrap_or(0.0));
            class.count as f64 * interaction(class, count).hypot(a).hypot(b).min(1.0)
        };
        let sum = |count: usize| classes.iter().map(|class| error(class, count)).sum::<f64>();
        let best = counts(least, most).min_by(|&one, &other| sum(one).total_cmp(&sum(other)));
        let best = best.unwrap_or(most);
        for class in classes {
            class.interaction = interaction(class, best);
        }
    }

    /// Returns the largest number of pairs that can be measured above the noise, and marks the classes
    /// all of whose pairs are among them.
    fn count_above_noise(&self, classes: &mut [PairClass], most: usize) -> f64 {
        let mut order: Vec<(f64, usize)> = (classes.iter().enumerate())
            .map(|(index, class)| ((self.of_pair(class) / NOISE_LIMIT).powi(2), index))
            .collect();
        order.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let (mut left, mut room, mut count) = (self.rho, most as f64, 0.0);
        for (cost, index) in order {
            let Some(class) = classes.get_mut(index) else {
                continue;
            };
            let all = class.count as f64;
            let some = (left / cost).min(room).clamp(0.0, all);
            class.above_noise = some == all;
            left -= some * cost;
            room -= some;
            count += some;
        }
        count
    }
}

/// Returns the numbers of pairs to try: the fewest, the most, and some between them.
fn counts(least: usize, most: usize) -> impl Iterator<Item = usize> {
    let next = |count: &usize| Some(((*count as f64 * COUNT_RATIO) as usize).max(count + 1));
    let between = std::iter::successors(Some(least), next).take_while(move |&count| count < most);
    between.chain([most])
}
