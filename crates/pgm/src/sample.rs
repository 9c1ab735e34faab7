//! Synthetic records.

use rand::Rng;

use crate::Model;
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
    /// record is an exact draw.
    pub fn sample<R: Rng + ?Sized>(&self, records: usize, rng: &mut R) -> Vec<Vec<u32>> {
        let mut sampler = Sampler {
            model: self,
            attribute_of: self.attributes_by_rank(),
            columns: vec![Vec::new(); self.domain.len()],
            groups: vec![Vec::new(); self.domain.len()],
            records,
            rng,
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
    rng: &'a mut R,
}

impl<R: Rng + ?Sized> Sampler<'_, R> {
    /// Draws the attribute of a node's axis `depth` from the node's marginal over the axes up to
    /// it.
    fn draw(&mut self, plan: &NodePlan, depth: usize, table: &[f64]) {
        let (given, axis) = (&plan.axes[..depth], plan.axes[depth]);
        let attribute = self.attribute_of[axis.rank];
        let rows = self.rows(given);
        let mut balance = Balance::new(axis.size, &self.columns);
        // A state of the axes given that comes up once or less has nothing to be balanced.
        if table.len() / axis.size <= self.records {
            balance.beside(&rows);
        }
        let groups: Vec<u32> = (0..self.records)
            .map(|record| {
                let chances = &table[rows[record] as usize * axis.size..][..axis.size];
                balance.choose(record, 0, chances, self.rng) as u32
            })
            .collect();
        self.columns[attribute] = match self.model.resolution.split(attribute) {
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
        let mut balance = Balance::new(split.len(), &self.columns);
        let place = |(record, &group): (usize, &u32)| {
            let (start, end) = (starts[group as usize], starts[group as usize + 1]);
            balance.choose(record, start, &ordered[start..end], self.rng)
        };
        let places: Vec<usize> = groups.iter().enumerate().map(place).collect();
        places.into_iter().map(|place| categories[place]).collect()
    }
}

/// What each value of an attribute is short of so far: records expected less records drawn.
struct Balance<'a> {
    size: usize,
    /// The columns drawn before.
    others: Vec<&'a [u32]>,
    /// For all records: one number for each value.
    all: Vec<f64>,
    /// For each other column, the same for the records with each of its values.
    beside: Vec<Vec<f64>>,
    chances: Vec<f64>,
}

impl<'a> Balance<'a> {
    fn new(size: usize, columns: &'a [Vec<u32>]) -> Self {
        let mut balance = Self {
            size,
            others: Vec::new(),
            all: vec![0.0; size],
            beside: Vec::new(),
            chances: Vec::new(),
        };
        (columns.iter().filter(|column| !column.is_empty())).for_each(|c| balance.beside(c));
        balance
    }

    /// Balances the values beside those of another column.
    fn beside(&mut self, column: &'a [u32]) {
        let values = column.iter().max().map_or(0, |&x| x as usize + 1);
        self.others.push(column);
        self.beside.push(vec![0.0; values * self.size]);
    }

    /// Chooses one of the values from `start` on, whose expectations are in proportion to
    /// `weights`.
    fn choose<R: Rng + ?Sized>(
        &mut self,
        record: usize,
        start: usize,
        weights: &[f64],
        rng: &mut R,
    ) -> usize {
        let values = start..start + weights.len();
        let sum: f64 = weights.iter().sum();
        if weights.len() == 1 || sum <= 0.0 {
            // What the model deems impossible can only come of underflow; any value will do.
            return start;
        }
        self.chances.clear();
        self.chances.extend_from_slice(&self.all[values.clone()]);
        for (column, short) in self.others.iter().zip(&self.beside) {
            let row = column[record] as usize * self.size;
            let row = &short[row..row + self.size][values.clone()];
            self.chances.iter_mut().zip(row).for_each(|(x, s)| *x += s);
        }
        for (chance, weight) in self.chances.iter_mut().zip(weights) {
            *chance = weight * chance.clamp(-FARTHEST, FARTHEST).exp();
        }
        let chosen = draw(&self.chances, rng);
        let scale = 1.0 / sum;
        let settle = |short: &mut [f64]| {
            for (s, weight) in short.iter_mut().zip(weights) {
                *s += weight * scale;
            }
            short[chosen] -= 1.0;
        };
        settle(&mut self.all[values.clone()]);
        for (column, short) in self.others.iter().zip(&mut self.beside) {
            let row = column[record] as usize * self.size;
            settle(&mut short[row..row + self.size][values.clone()]);
        }
        start + chosen
    }
}

/// An index with chances in proportion to `chances`, of which one at least is positive.
fn draw<R: Rng + ?Sized>(chances: &[f64], rng: &mut R) -> usize {
    let mut left = rng.random::<f64>() * chances.iter().sum::<f64>();
    let mut chosen = 0;
    for (i, &chance) in chances.iter().enumerate() {
        if chance > 0.0 {
            chosen = i;
            left -= chance;
            if left < 0.0 {
                break;
            }
        }
    }
    chosen
}
