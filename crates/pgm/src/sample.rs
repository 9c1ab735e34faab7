//! Synthetic records.

use std::ops::Range;

use fhaim_domain::Clique;
use rand::Rng;

use crate::Model;
use crate::kernel;
use crate::propagation::NodePlan;
use crate::table::Axis;

/// The farthest that a shortage counts, in records: keeps its exponential finite.
const FARTHEST: f64 = 30.0;

impl Model {
    /// Columns of `records` synthetic records, by attribute.
    ///
    /// Attributes are drawn one after another, each from its conditional distribution given those
    /// drawn before: from the roots of the junction tree down. Independent draws would add the
    /// noise of a sample to every marginal. So a value's chances grow with what it is short of,
    /// over the records so far that share a value of another attribute with this one, by a factor
    /// of e for each record: a self-balancing walk (after Alweiss, Liu and Sawhney, "Discrepancy
    /// minimization via a self-balancing walk", STOC 2021). All pairs of attributes come out
    /// within a few records of their expectation, whether or not a clique has both; a single
    /// record is an exact draw of the tree's. Of a pair beside the tree what is expected is its table instead: chances that have to be
    /// other than the tree's for that make up for it within the first records.
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

    /// The attribute of each rank.
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
    /// Categories by attribute; empty where not drawn yet.
    columns: Vec<Vec<u32>>,
    /// Groups by attribute: what the tree's tables are over.
    groups: Vec<Vec<u32>>,
    records: usize,
    uniforms: Uniforms<'a, R>,
}

/// Balances the values of an attribute beside those of all columns drawn before, as its conditional distributions have
/// it. Where pairs of it are beside the tree these would not keep the tree's: then it is steered to the tables of both,
/// and pairs of which nothing is known follow from those. `place` is where the balance has a category.
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
    /// Draws the attribute of a node's axis `depth` from the node's marginal over the axes up to
    /// it.
    fn draw(&mut self, plan: &NodePlan, depth: usize, table: &[f64]) {
        let (given, axis) = (&plan.axes[..depth], plan.axes[depth]);
        let attribute = self.attribute_of[axis.rank];
        let rows = self.rows(given);
        let split = self.model.resolution.split(attribute);
        let group = |category: usize| split.map_or(category, |split| split[category] as usize);
        let mut balance = Balance::new(axis.size);
        balance_beside(&mut balance, (self.model, &self.columns), attribute, group);
        // A state of the axes given that comes up once or less has nothing to be balanced.
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

    /// The state of some axes that each record is in.
    fn rows(&self, axes: &[Axis]) -> Vec<u32> {
        let mut rows = vec![0; self.records];
        for axis in axes {
            let groups = &self.groups[self.attribute_of[axis.rank]];
            let values = rows.iter_mut().zip(groups);
            values.for_each(|(row, &group)| *row = *row * axis.size as u32 + group);
        }
        rows
    }

    /// Draws a category from each record's group: categories do not depend on anything else.
    fn draw_categories(&mut self, attribute: usize, split: &[u32], groups: &[u32]) -> Vec<u32> {
        let Some(shares) = &self.model.shares[attribute] else {
            return groups.to_vec();
        };
        // Categories in order of their groups, so that a group's are side by side.
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

/// A column whose pair with the attribute is beside the tree.
struct Steered<'a> {
    column: &'a [u32],
    /// Where the rows of its values begin.
    first: usize,
    /// For each of its values a row of weights of the attribute's values.
    wanted: Vec<f64>,
}

/// What each value of an attribute is short of so far: records expected less records drawn.
struct Balance<'a> {
    /// Values of the attribute.
    size: usize,
    /// Numbers of a row, one for each value, and zeros up to a whole number of vectors.
    stride: usize,
    /// The columns drawn before, and where the rows of their values begin.
    others: Vec<(&'a [u32], usize)>,
    /// The columns whose pair with this attribute is beside the tree.
    steered: Vec<Steered<'a>>,
    /// A row for all records; then, for each other column, one for the records with each of its values.
    short: Vec<f64>,
    /// Chances of the values up to each, not normalised.
    chances: Vec<f64>,
    expected: Vec<f64>,
    /// What the record's rows change by.
    change: Vec<f64>,
    /// Where the record's rows are.
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

    /// Steers the values beside those of another column to expected counts of both: a row for each of the other's
    /// values, in which category c counts for value `place(c)`.
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

    /// Balances the values beside those of another column, which has so many.
    fn beside(&mut self, column: &'a [u32], values: usize) {
        self.others.push((column, self.short.len()));
        let end = self.short.len() + values * self.stride;
        self.short.resize(end, 0.0);
    }

    /// Chooses a value for each record, from the row of `table` that it is in.
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
        // A loop: what an iterator calls is compiled by itself, without the wider vectors.
        let mut chosen = vec![0; rows.len()];
        for (record, (chosen, &row)) in chosen.iter_mut().zip(rows).enumerate() {
            let weights = &table[row as usize * self.size..][..self.size];
            *chosen = self.choose(record, 0, weights, uniforms) as u32;
        }
        chosen
    }

    /// Chooses one of the values from `start` on, whose expectations are in proportion to
    /// `weights`.
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
            // What the model deems impossible can only come of underflow; any value will do.
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

    /// Notes what is expected of a record. What is past the last value stays zero.
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
        // The first is that of all records.
        self.rows
            .resize(1 + self.others.len() + self.steered.len(), 0);
        let others = self.others.iter().map(|&(column, first)| (column, first));
        let steered = self.steered.iter().map(|other| (other.column, other.first));
        for (row, (column, first)) in self.rows[1..].iter_mut().zip(others.chain(steered)) {
            *row = first + column[record] as usize * self.stride;
        }
    }

    /// Makes what is expected lean towards what the tables beside are short of. Other columns are then balanced around
    /// what this comes to, and not around what the tree says: where a table brings a dependence, others follow from it.
    #[inline(always)]
    fn lean(&mut self) {
        let steered = &self.rows[1 + self.others.len()..];
        kernel::sum_rows(steered, &self.short, &mut self.chances);
        // What all values are short of alike favours none of them.
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
        // Not 0: the value that is most short keeps what was expected of it.
        let scale = 1.0 / sum;
        self.expected
            .iter_mut()
            .for_each(|expected| *expected *= scale);
    }

    /// Draws a value by a number from 0 on and below 1, whose share of all chances it falls in.
    ///
    /// A record waits for all that was settled for the one before, so what counts is how many steps follow on each
    /// other: no branch depends on the value.
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
        // The product was rounded up to all chances together.
        let last = self.expected.iter().rposition(|&expected| expected > 0.0);
        last.unwrap_or(0)
    }

    /// Notes what was expected of the record among the values it could have, and what was drawn.
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
                // The table has no such record: nothing is wanted of its values.
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

/// So many numbers are asked of a generator at a time.
const AT_A_TIME: usize = 64;

/// Numbers from 0 on and below 1, of 53 bits, drawn some at a time.
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
