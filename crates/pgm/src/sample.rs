//! Draws synthetic records.

use std::ops::Range;

use fhaim_domain::Clique;
use rand::Rng;

use crate::Model;
use crate::kernel;
use crate::propagation::NodePlan;
use crate::table::Axis;

/// Largest shortage that counts, in records. It keeps the exponential of a shortage finite.
const FARTHEST: f64 = 30.0;

impl Model {
    /// Draws `records` synthetic records, as one column for each attribute.
    ///
    /// Attributes are drawn one after another, from the roots of the junction tree down. Each is
    /// drawn from its conditional distribution given the attributes drawn before.
    ///
    /// Independent draws would add the noise of a sample to every marginal, so the sampler balances
    /// the values of an attribute. It compares expected and drawn counts among the earlier records
    /// that share a value of another attribute with the current record. The probability of a value
    /// grows by a factor of e for each record that it is short of. This is a self-balancing walk
    /// (after Alweiss, Liu and Sawhney, "Discrepancy minimization via a self-balancing walk", STOC
    /// 2021). All pairs of attributes are within a few records of their expectation, whether or not
    /// a clique has both. A single record is an exact draw from the tree's distribution.
    ///
    /// For an extra pair, the expectation is its table. If its probabilities differ from the
    /// tree's, the balancing corrects them within the first records.
    pub fn sample<R: Rng + ?Sized>(&self, records: usize, rng: &mut R) -> Vec<Vec<u32>> {
        let mut sampler = Sampler {
            model: self,
            attribute_of: self.attributes_by_rank(),
            columns: vec![Vec::new(); self.domain.len()],
            groups: vec![Vec::new(); self.domain.len()],
            records,
            uniforms: Uniforms::new(rng),
        };
        for (node, plan) in self.propagation.nodes().iter().enumerate() {
            let mut table = self.beliefs.node(plan, node).to_vec();
            // The node's marginals over its first axes, the longest first.
            let mut prefixes = Vec::new();
            for axis in plan.axes[plan.separator..].iter().rev() {
                let shorter = table.chunks_exact(axis.size).map(|row| row.iter().sum());
                let shorter = shorter.collect();
                prefixes.push(std::mem::replace(&mut table, shorter));
            }
            for (depth, table) in (plan.separator..).zip(prefixes.iter().rev()) {
                sampler.draw(plan, depth, table);
            }
        }
        sampler.columns
    }

    /// Returns the attribute of each rank.
    pub(crate) fn attributes_by_rank(&self) -> Vec<usize> {
        let mut attributes: Vec<usize> = (0..self.tree.rank.len()).collect();
        attributes.sort_by_key(|&a| self.tree.rank[a]);
        attributes
    }
}

/// The columns drawn so far.
struct Sampler<'a, R: ?Sized> {
    model: &'a Model,
    attribute_of: Vec<usize>,
    /// Categories by attribute; empty if not drawn yet.
    columns: Vec<Vec<u32>>,
    /// Groups by attribute, which index the tree's tables.
    groups: Vec<Vec<u32>>,
    records: usize,
    uniforms: Uniforms<'a, R>,
}

/// Balances the values of an attribute together with those of all columns drawn before, as in its
/// conditional distributions.
///
/// If the attribute has extra pairs with drawn columns, balancing would not keep the tree's pairs.
/// In this case, the values are steered to the tables of extra pairs and of the tree's measured
/// pairs. Pairs without any table follow from those. `place` maps a category to its index in the
/// balance.
fn balance_beside<'a>(
    balance: &mut Balance<'a>,
    (model, columns): (&Model, &'a [Vec<u32>]),
    attribute: usize,
    place: impl Fn(usize) -> usize,
) {
    let drawn = || {
        let columns = columns.iter().enumerate();
        columns.filter(|(_, column)| !column.is_empty())
    };
    let is_beside = |other| {
        model
            .extra_pairs
            .of(&Clique::new([other, attribute]))
            .is_some()
    };
    let steers = drawn().any(|(other, _)| is_beside(other));
    for (other, column) in drawn() {
        let rows = steers.then(|| model.known_rows(other, attribute));
        match rows.flatten() {
            None => balance.beside(column, model.domain.size(other)),
            Some(rows) => balance.steer(column, &rows, &place),
        }
    }
}

impl<R: Rng + ?Sized> Sampler<'_, R> {
    /// Draws the attribute of a node's axis `depth`, from the node's marginal over the axes up to
    /// it.
    fn draw(&mut self, plan: &NodePlan, depth: usize, table: &[f64]) {
        let (given, axis) = (&plan.axes[..depth], plan.axes[depth]);
        let attribute = self.attribute_of[axis.rank];
        let rows = self.rows(given);
        let split = self.model.resolution.split(attribute);
        let group = |category: usize| split.map_or(category, |split| split[category] as usize);
        let mut balance = Balance::new(axis.size);
        balance_beside(&mut balance, (self.model, &self.columns), attribute, group);
        // A state of the given axes that occurs at most once has nothing to balance.
        let states = table.len() / axis.size;
        if states <= self.records {
            balance.beside(&rows, states);
        }
        let groups = balance.choose_all(&rows, table, &mut self.uniforms);
        self.columns[attribute] = match split {
            Some(split) => self.draw_categories(attribute, split, &groups),
            None => groups.clone(),
        };
        self.groups[attribute] = groups;
    }

    /// Returns the state of some axes for each record.
    fn rows(&self, axes: &[Axis]) -> Vec<u32> {
        let mut rows = vec![0; self.records];
        for axis in axes {
            let groups = &self.groups[self.attribute_of[axis.rank]];
            let values = rows.iter_mut().zip(groups);
            values.for_each(|(row, &group)| *row = *row * axis.size as u32 + group);
        }
        rows
    }

    /// Draws a category from each record's group. Given the group, it does not depend on anything
    /// else.
    fn draw_categories(&mut self, attribute: usize, split: &[u32], groups: &[u32]) -> Vec<u32> {
        let Some(shares) = &self.model.shares[attribute] else {
            return groups.to_vec();
        };
        // Categories in order of their groups, so that those of a group are contiguous.
        let mut categories: Vec<u32> = (0..split.len() as u32).collect();
        categories.sort_by_key(|&category| split[category as usize]);
        let ordered: Vec<f64> = categories.iter().map(|&c| shares[c as usize]).collect();
        let count = self.model.resolution.domain().size(attribute);
        let starts: Vec<usize> = (0..=count as u32)
            .map(|group| categories.partition_point(|&c| split[c as usize] < group))
            .collect();
        let mut places = vec![0; categories.len()];
        for (place, &category) in categories.iter().enumerate() {
            places[category as usize] = place;
        }
        let mut balance = Balance::new(split.len());
        let drawn = (self.model, self.columns.as_slice());
        balance_beside(&mut balance, drawn, attribute, |category| places[category]);
        let place = |(record, &group): (usize, &u32)| {
            let (start, end) = (starts[group as usize], starts[group as usize + 1]);
            balance.choose(record, start, &ordered[start..end], &mut self.uniforms)
        };
        let places: Vec<usize> = groups.iter().enumerate().map(place).collect();
        places.into_iter().map(|place| categories[place]).collect()
    }
}

/// A column whose pair with the attribute is steered to a table.
struct Steered<'a> {
    column: &'a [u32],
    /// Index of the first row of its values.
    first: usize,
    /// For each of its values, a row of weights of the attribute's values.
    wanted: Vec<f64>,
}

/// The shortage of each value of an attribute so far: expected records minus drawn records.
struct Balance<'a> {
    /// Number of values of the attribute.
    size: usize,
    /// Length of a row: one number for each value, padded with zeros to a whole number of vectors.
    stride: usize,
    /// The balanced columns, with the indices of their values' first rows.
    others: Vec<(&'a [u32], usize)>,
    /// The columns whose pairs are steered to tables.
    steered: Vec<Steered<'a>>,
    /// A row for all records, and for each other column one for the records with each of its
    /// values.
    short: Vec<f64>,
    /// Cumulative probabilities of the values, not normalised.
    chances: Vec<f64>,
    expected: Vec<f64>,
    /// The change of the record's rows.
    change: Vec<f64>,
    /// The indices of the record's rows.
    rows: Vec<usize>,
}

impl<'a> Balance<'a> {
    fn new(size: usize) -> Self {
        let stride = size.next_multiple_of(kernel::NARROW);
        Self {
            size,
            stride,
            others: Vec::new(),
            steered: Vec::new(),
            short: vec![0.0; stride],
            chances: vec![0.0; stride],
            expected: vec![0.0; stride],
            change: vec![0.0; stride],
            rows: Vec::new(),
        }
    }

    /// Steers pairs with another column to their expected counts. `counts` has a row for each of
    /// the other column's values, in which category c counts for value `place(c)`.
    fn steer(&mut self, column: &'a [u32], counts: &[Vec<f64>], place: impl Fn(usize) -> usize) {
        let first = self.short.len();
        let length = counts.len() * self.stride;
        self.short.resize(first + length, 0.0);
        let mut wanted = vec![0.0; length];
        for (counts, wanted) in counts.iter().zip(wanted.chunks_exact_mut(self.stride)) {
            for (category, count) in counts.iter().enumerate() {
                wanted[place(category)] += count;
            }
        }
        self.steered.push(Steered {
            column,
            first,
            wanted,
        });
    }

    /// Balances pairs with another column, which has `values` values.
    fn beside(&mut self, column: &'a [u32], values: usize) {
        self.others.push((column, self.short.len()));
        let end = self.short.len() + values * self.stride;
        self.short.resize(end, 0.0);
    }

    /// Chooses a value for each record, from the record's row of `table`.
    fn choose_all<R: Rng + ?Sized>(
        &mut self,
        rows: &[u32],
        table: &[f64],
        uniforms: &mut Uniforms<'_, R>,
    ) -> Vec<u32> {
        kernel::with_avx2!(
            self.choose_all_avx2(rows, table, uniforms),
            self.choose_all_portable(rows, table, uniforms)
        )
    }

    /// [`Balance::choose_all_portable`] with wider vectors; the results are the same.
    #[target_feature(enable = "avx2")]
    #[cfg(target_arch = "x86_64")]
    fn choose_all_avx2<R: Rng + ?Sized>(
        &mut self,
        rows: &[u32],
        table: &[f64],
        uniforms: &mut Uniforms<'_, R>,
    ) -> Vec<u32> {
        self.choose_all_portable(rows, table, uniforms)
    }

    #[inline(always)]
    fn choose_all_portable<R: Rng + ?Sized>(
        &mut self,
        rows: &[u32],
        table: &[f64],
        uniforms: &mut Uniforms<'_, R>,
    ) -> Vec<u32> {
        // This is a loop because closures of iterators are compiled separately, without the wider
        // vectors.
        let mut chosen = vec![0; rows.len()];
        for (record, (chosen, &row)) in chosen.iter_mut().zip(rows).enumerate() {
            let weights = &table[row as usize * self.size..][..self.size];
            *chosen = self.choose(record, 0, weights, uniforms) as u32;
        }
        chosen
    }

    /// Chooses one of the values from `start` on, whose expectations are proportional to `weights`.
    #[inline(always)]
    fn choose<R: Rng + ?Sized>(
        &mut self,
        record: usize,
        start: usize,
        weights: &[f64],
        uniforms: &mut Uniforms<'_, R>,
    ) -> usize {
        let sum: f64 = weights.iter().sum();
        if weights.len() == 1 || sum <= 0.0 {
            // Values that the model considers impossible occur only after underflow, so any value
            // will do.
            return start;
        }
        self.expect(start, weights, 1.0 / sum);
        self.find_rows(record);
        if !self.steered.is_empty() {
            self.lean();
        }
        let plain = &self.rows[..=self.others.len()];
        kernel::sum_rows(plain, &self.short, &mut self.chances);
        let chosen = self.draw(uniforms.next());
        self.settle(record, chosen, start..start + weights.len());
        chosen
    }

    /// Stores the expectation of a record. Padding stays zero.
    #[inline(always)]
    fn expect(&mut self, start: usize, weights: &[f64], scale: f64) {
        if weights.len() < self.size {
            self.expected.fill(0.0);
        }
        for (expected, weight) in self.expected[start..].iter_mut().zip(weights) {
            *expected = weight * scale;
        }
    }

    /// Finds the record's rows.
    #[inline(always)]
    fn find_rows(&mut self, record: usize) {
        // The first row is that of all records.
        self.rows
            .resize(1 + self.others.len() + self.steered.len(), 0);
        let others = self.others.iter().map(|&(column, first)| (column, first));
        let steered = self.steered.iter().map(|other| (other.column, other.first));
        for (row, (column, first)) in self.rows[1..].iter_mut().zip(others.chain(steered)) {
            *row = first + column[record] as usize * self.stride;
        }
    }

    /// Shifts the expectation towards the shortages of the steered pairs. Other columns are then
    /// balanced around the shifted expectation instead of the tree's, so that dependences that
    /// follow from a table are kept.
    #[inline(always)]
    fn lean(&mut self) {
        let steered = &self.rows[1 + self.others.len()..];
        kernel::sum_rows(steered, &self.short, &mut self.chances);
        // A shortage that all values have in common favours none of them.
        let chances = self.chances.iter().zip(&self.expected);
        let possible = chances.filter(|(_, expected)| **expected > 0.0);
        let most = possible
            .map(|(&short, _)| short)
            .fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for (expected, short) in self.expected.iter_mut().zip(&self.chances) {
            *expected *= kernel::exp_of_few((short - most).clamp(-FARTHEST, FARTHEST));
            sum += *expected;
        }
        // The sum is not 0, because the value with the largest shortage keeps its expectation.
        let scale = 1.0 / sum;
        self.expected
            .iter_mut()
            .for_each(|expected| *expected *= scale);
    }

    /// Draws the value whose share of all probabilities contains `uniform`, a number from 0 up to
    /// but not including 1.
    ///
    /// A record waits for the rows settled for the previous record, so the length of the chain of
    /// dependent steps determines the time. No branch depends on the value.
    #[inline(always)]
    fn draw(&mut self, uniform: f64) -> usize {
        let mut before = 0.0;
        let (chances, _) = self.chances.as_chunks_mut::<{ kernel::NARROW }>();
        let (expected, _) = self.expected.as_chunks::<{ kernel::NARROW }>();
        for (chances, expected) in chances.iter_mut().zip(expected) {
            let mut up_to = *chances;
            for (chance, expected) in up_to.iter_mut().zip(expected) {
                *chance = expected * kernel::exp_of_few(chance.clamp(-FARTHEST, FARTHEST));
            }
            for chance in &mut up_to {
                before += *chance;
                *chance = before;
            }
            *chances = up_to;
        }
        let left = uniform * before;
        let passed = self
            .chances
            .iter()
            .map(|&chance| usize::from(chance <= left));
        let chosen = passed.sum::<usize>();
        if chosen < self.size {
            return chosen;
        }
        // Rounding made `left` equal to the sum of all probabilities.
        let last = self.expected.iter().rposition(|&expected| expected > 0.0);
        last.unwrap_or(0)
    }

    /// Adds the difference between the expectation and the drawn value to the record's rows.
    /// `among` are the values that the record could have.
    #[inline(always)]
    fn settle(&mut self, record: usize, chosen: usize, among: Range<usize>) {
        let expected = self.expected.iter().enumerate();
        for (change, (value, expected)) in self.change.iter_mut().zip(expected) {
            *change = expected - f64::from(u8::from(value == chosen));
        }
        let (plain, steered) = self.rows.split_at(1 + self.others.len());
        kernel::settle_rows(plain, &self.change, &mut self.short);
        for (&row, other) in steered.iter().zip(&self.steered) {
            let wanted = &other.wanted[other.column[record] as usize * self.stride..];
            let wanted = &wanted[among.clone()];
            let sum: f64 = wanted.iter().sum();
            if sum <= 0.0 {
                // The table has no such record, so it gives its values no expectation.
                continue;
            }
            let short = self.short[row..][among.clone()].iter_mut();
            for (short, weight) in short.zip(wanted) {
                *short += weight / sum;
            }
            self.short[row + chosen] -= 1.0;
        }
    }
}

/// Number of random numbers that are drawn from the generator at a time.
const AT_A_TIME: usize = 64;

/// Random numbers of 53 bits, from 0 up to but not including 1, which are drawn in batches.
struct Uniforms<'a, R: ?Sized> {
    rng: &'a mut R,
    drawn: [[u8; 8]; AT_A_TIME],
    used: usize,
}

impl<'a, R: Rng + ?Sized> Uniforms<'a, R> {
    fn new(rng: &'a mut R) -> Self {
        Self {
            rng,
            drawn: [[0; 8]; AT_A_TIME],
            used: AT_A_TIME,
        }
    }

    #[inline(always)]
    fn next(&mut self) -> f64 {
        const UNIT: f64 = 1.0 / (1u64 << 53) as f64;
        if self.used == AT_A_TIME {
            self.rng.fill_bytes(self.drawn.as_flattened_mut());
            self.used = 0;
        }
        let bits = u64::from_le_bytes(self.drawn[self.used]);
        self.used += 1;
        (bits >> 11) as f64 * UNIT
    }
}
