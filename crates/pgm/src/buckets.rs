//! Bucket elimination computes marginals without a table for every clique.
//!
//! Attributes are eliminated from the highest rank down. The bucket of an attribute has all factors
//! with this attribute: potentials of measured cliques, and messages. Summing the attribute out
//! results in a message over the other attributes (Dechter, "Bucket elimination", Artificial
//! Intelligence 1999).
//!
//! The product of a bucket's factors has as many cells as a clique of the junction tree, so it is
//! never stored. Instead, the factors are divided between two sides, whose products are smaller.
//! The message is a product of matrices with the attribute as the inner index. The attributes that
//! both sides share index the matrices.
//!
//! A side may be large as well, if every two of its attributes are in a factor together. It is
//! built up in levels: tables over ever more of its axes, from the slowest on. A factor is
//! multiplied into the first level that has all of its axes. Only factors with the fastest axis
//! need a pass over the whole side.

use crate::FitWork;
use crate::junction::JunctionTree;
use crate::layout::{Layout, Placement, padded};
use crate::node_tables::union;
use crate::table::{Axis, cells};

/// The origin of a factor's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The potential of a measured clique.
    Potential(usize),
    /// The message of an earlier bucket.
    Message(usize),
}

/// A factor in a bucket.
#[derive(Clone, Debug)]
struct Factor {
    source: Source,
    layout: Layout,
}

impl Factor {
    /// Returns the factor's axes without the bucket's.
    fn others(&self, attribute: Axis) -> Vec<Axis> {
        let others = self.layout.axes().filter(|axis| *axis != attribute);
        union(&others.collect::<Vec<_>>(), &[])
    }
}

/// A table over the slowest axes of a side: the product of the previous level and of the factors
/// that have all of their axes from this level on.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    pub cells: usize,
    /// The place of the previous level; `None` in the first level.
    pub before: Option<Placement>,
    pub factors: Vec<BucketShare>,
}

/// The place of a factor in a level.
#[derive(Clone, Debug)]
pub(crate) struct BucketShare {
    pub source: Source,
    pub cells: usize,
    /// The reordering of the factor's axes to the level's order. It is needed if cells that are
    /// contiguous in the level would be scattered in the factor.
    pub turn: Option<Placement>,
    pub place: Placement,
}

impl BucketShare {
    /// Returns the place of a factor in a level.
    fn new(level: &Layout, factor: &Factor) -> Self {
        let (turn, place) = match Placement::new(level, &factor.layout) {
            place if !place.is_scattered() => (None, place),
            _ => {
                let own: Vec<Axis> = factor.layout.axes().collect();
                let axes: Vec<Axis> = level.axes().filter(|axis| own.contains(axis)).collect();
                let turned = Layout::plain(&axes);
                let place = Placement::new(level, &turned);
                (Some(Placement::new(&turned, &factor.layout)), place)
            }
        };
        Self {
            source: factor.source,
            cells: factor.layout.cells,
            turn,
            place,
        }
    }

    /// Returns an upper bound on the bytes of [`BucketShare::new`] and of the reordered factor.
    fn bytes(level: &Layout, factor: &Factor) -> usize {
        let turned = factor.layout.cells * (size_of::<f64>() + size_of::<(u32, u32)>());
        Placement::bytes(level, &factor.layout) + turned
    }
}

/// One side of a bucket: the product of some of its factors, which is the last level. A side
/// without factors has no levels.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub levels: Vec<Level>,
}

/// A bucket. For each cell of the shared attributes it has a matrix of either side, with a row for
/// each value of the bucket's attribute, and a matrix of the message.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    /// Cells of the shared attributes.
    pub matrices: usize,
    /// Values of the attribute.
    pub inner: usize,
    /// Rows of the message's matrices: the length of the left side's rows before padding.
    pub rows: usize,
    /// Columns of the message's matrices: the length of the right side's rows before padding.
    pub columns: usize,
    /// The side with the fewer unshared attributes.
    pub left: Side,
    /// The other side.
    pub right: Side,
}

impl Bucket {
    /// Returns the length of the left side's rows.
    pub fn left_row(&self) -> usize {
        padded(self.rows)
    }

    /// Returns the length of the rows of the right side and of the message.
    pub fn right_row(&self) -> usize {
        padded(self.columns)
    }

    /// Returns the number of cells of the message.
    pub fn message(&self) -> usize {
        self.matrices * self.rows * self.right_row()
    }

    /// Returns the work of calibrating the bucket in both directions.
    pub fn work(&self) -> FitWork {
        let level = |level: &Level| {
            let others = level.factors.len() + usize::from(level.before.is_some());
            2 * level.cells * others
        };
        let sides = self.left.levels.iter().chain(&self.right.levels);
        let levels: usize = sides.map(level).sum();
        let whole = self.message() * self.inner;
        // Without factors on the left, the right side is only summed and then scaled.
        let (passed, products) = match self.left.levels.is_empty() {
            true => (2 * whole, 0),
            false => (0, 3 * whole),
        };
        FitWork {
            cells: (levels + passed + 2 * self.message()) as u64,
            products: products as u64,
        }
    }

    /// Whether the message has a single cell, so that no other bucket depends on it.
    pub fn is_root(&self) -> bool {
        self.matrices * self.rows * self.columns == 1
    }
}

/// A bucket before its memory is allocated.
#[derive(Clone, Debug)]
struct FactorOutline {
    attribute: Axis,
    shared: Vec<Axis>,
    rows: Vec<Axis>,
    columns: Vec<Axis>,
    left: Vec<Factor>,
    right: Vec<Factor>,
}

impl FactorOutline {
    /// Divides a bucket's factors between two sides.
    fn new(attribute: Axis, factors: Vec<Factor>) -> Self {
        let others: Vec<Vec<Axis>> = factors.iter().map(|f| f.others(attribute)).collect();
        let split = best_split(&others);
        let axes = |on_left: bool| {
            let side = others
                .iter()
                .zip(&split)
                .filter(|(_, left)| **left == on_left);
            side.fold(Vec::new(), |all, (axes, _)| union(&all, axes))
        };
        let (left, right) = (axes(true), axes(false));
        let without = |axes: &[Axis], other: &[Axis]| -> Vec<Axis> {
            axes.iter()
                .copied()
                .filter(|axis| !other.contains(axis))
                .collect()
        };
        let shared: Vec<Axis> = (left.iter().copied())
            .filter(|axis| right.contains(axis))
            .collect();
        let shared = fastest_last(shared, &others);
        let (rows, columns) = (without(&left, &right), without(&right, &left));
        let (rows, columns) = (fastest_last(rows, &others), fastest_last(columns, &others));
        // Vectors pass over rows, so the right side gets the longer ones.
        let turned = cells(&rows) > cells(&columns);
        let (rows, columns) = if turned {
            (columns, rows)
        } else {
            (rows, columns)
        };
        let mut sides = (Vec::new(), Vec::new());
        for (factor, on_left) in factors.into_iter().zip(split) {
            match on_left != turned {
                true => sides.0.push(factor),
                false => sides.1.push(factor),
            }
        }
        Self {
            attribute,
            shared,
            rows,
            columns,
            left: sides.0,
            right: sides.1,
        }
    }

    /// Returns the layouts of a side's levels, each with its factors; empty without factors.
    fn levels<'f>(&self, inner: &[Axis], factors: &'f [Factor]) -> Vec<(Layout, Vec<&'f Factor>)> {
        let outer: Vec<Axis> = (self.shared.iter().copied())
            .chain([self.attribute])
            .collect();
        let axes: Vec<Axis> = outer.iter().chain(inner).copied().collect();
        // The number of axes, from the slowest on, of the first level that has all axes of a
        // factor.
        let needed = |factor: &&Factor| {
            let own: Vec<Axis> = factor.layout.axes().collect();
            let last = axes.iter().rposition(|axis| own.contains(axis));
            last.map_or(0, |last| last + 1)
        };
        let mut levels = Vec::new();
        for depth in 0..=axes.len() {
            let own: Vec<&Factor> = factors.iter().filter(|f| needed(f) == depth).collect();
            if own.is_empty() {
                continue;
            }
            // Some factor has the side's fastest axis, so the last level is the whole side.
            let layout = match depth == axes.len() {
                true => Layout::rows(&outer, inner),
                false => Layout::plain(&axes[..depth]),
            };
            levels.push((layout, own));
        }
        levels
    }

    fn message(&self) -> Layout {
        let outer: Vec<Axis> = self.shared.iter().chain(&self.rows).copied().collect();
        Layout::rows(&outer, &self.columns)
    }

    /// Returns the bytes of both sides, of the message and its marginal, and of all places. Returns
    /// `None` if the number of a table's cells does not fit 32 bits.
    fn bytes(&self) -> Option<usize> {
        let message = self.message().cells;
        u32::try_from(message).ok()?;
        let mut bytes = message.checked_mul(2 * size_of::<f64>())?;
        for (inner, factors) in [(&self.rows, &self.left), (&self.columns, &self.right)] {
            let levels = self.levels(inner, factors);
            for (i, (layout, own)) in levels.iter().enumerate() {
                u32::try_from(layout.cells).ok()?;
                bytes = bytes.checked_add(layout.cells.checked_mul(size_of::<f64>())?)?;
                let before = i.checked_sub(1).map(|before| &levels[before].0);
                let before = before.map_or(0, |before| Placement::bytes(layout, before));
                let parts = own.iter().map(|factor| BucketShare::bytes(layout, factor));
                bytes = bytes.checked_add(before + parts.sum::<usize>())?;
            }
        }
        Some(bytes)
    }

    fn bucket(&self) -> Bucket {
        let side = |factors: &[Factor], inner: &[Axis]| {
            let levels = self.levels(inner, factors);
            let level = |(i, (layout, own)): (usize, &(Layout, Vec<&Factor>))| {
                let before = i.checked_sub(1).map(|before| &levels[before].0);
                Level {
                    cells: layout.cells,
                    before: before.map(|before| Placement::new(layout, before)),
                    factors: own.iter().map(|f| BucketShare::new(layout, f)).collect(),
                }
            };
            Side {
                levels: levels.iter().enumerate().map(level).collect(),
            }
        };
        Bucket {
            matrices: cells(&self.shared),
            inner: self.attribute.size,
            rows: cells(&self.rows),
            columns: cells(&self.columns),
            left: side(&self.left, &self.rows),
            right: side(&self.right, &self.columns),
        }
    }
}

/// Buckets in the order of elimination.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    outlines: Vec<FactorOutline>,
}

impl Plan {
    /// Plans for potentials over `cliques` (axes by rank, each within a node of the tree).
    pub fn new(tree: &JunctionTree, sizes: &[usize], cliques: &[Vec<Axis>]) -> Self {
        let mut attributes: Vec<Axis> = (tree.rank.iter().zip(sizes))
            .map(|(&rank, &size)| Axis { rank, size })
            .collect();
        attributes.sort_unstable_by_key(|axis| axis.rank);
        let mut waiting: Vec<Vec<Factor>> = vec![Vec::new(); attributes.len()];
        for (i, axes) in cliques.iter().enumerate() {
            if let Some(last) = axes.last() {
                waiting[last.rank].push(Factor {
                    source: Source::Potential(i),
                    layout: Layout::plain(axes),
                });
            }
        }
        let mut outlines = Vec::with_capacity(attributes.len());
        for attribute in attributes.into_iter().rev() {
            let factors = std::mem::take(&mut waiting[attribute.rank]);
            let outline = FactorOutline::new(attribute, factors);
            let message = outline.message();
            if let Some(next) = message.axes().map(|axis| axis.rank).max() {
                waiting[next].push(Factor {
                    source: Source::Message(outlines.len()),
                    layout: message,
                });
            }
            outlines.push(outline);
        }
        Self { outlines }
    }

    /// Returns the bytes that contracting takes, without the potentials' weights.
    pub fn bytes(&self) -> Option<usize> {
        let mut outlines = self.outlines.iter();
        outlines.try_fold(0usize, |sum, outline| sum.checked_add(outline.bytes()?))
    }

    /// Returns the buckets, with all places.
    pub fn buckets(&self) -> Vec<Bucket> {
        self.outlines.iter().map(FactorOutline::bucket).collect()
    }
}

/// Orders a side's axes so that few factors, given by their axes, have the fastest ones.
fn fastest_last(mut axes: Vec<Axis>, factors: &[Vec<Axis>]) -> Vec<Axis> {
    let mut waiting: Vec<&Vec<Axis>> = factors.iter().collect();
    let mut ordered = Vec::with_capacity(axes.len());
    while !axes.is_empty() {
        let having = |axis: &Axis| waiting.iter().filter(|axes| axes.contains(axis)).count();
        // Among axes with equally many factors, the larger one makes longer runs.
        let fastest = (0..axes.len())
            .min_by_key(|&i| (having(&axes[i]), usize::MAX - axes[i].size))
            .unwrap_or(0);
        let axis = axes.remove(fastest);
        waiting.retain(|axes| !axes.contains(&axis));
        ordered.push(axis);
    }
    ordered.reverse();
    ordered
}

/// Chooses the factors, given by their axes without the bucket's, that go to the left side. The
/// choice has the least cost of passing over the sides.
///
/// A split separates two attributes that no factor has together: one is on the left and one on the
/// right. Without such a pair of attributes, all factors are on the right.
fn best_split(factors: &[Vec<Axis>]) -> Vec<bool> {
    let all = factors
        .iter()
        .fold(Vec::new(), |all, axes| union(&all, axes));
    let mut best = vec![false; factors.len()];
    let mut least = cost(factors, &best);
    for (i, x) in all.iter().enumerate() {
        for y in &all[i + 1..] {
            if factors
                .iter()
                .any(|axes| axes.contains(x) && axes.contains(y))
            {
                continue;
            }
            let split = split_between(factors, x, y);
            let cost = cost(factors, &split);
            if cost < least {
                (best, least) = (split, cost);
            }
        }
    }
    best
}

/// Splits factors: those with `x` go to the left, those with `y` to the right, and each other, the
/// largest first, to the side that grows less.
fn split_between(factors: &[Vec<Axis>], x: &Axis, y: &Axis) -> Vec<bool> {
    let mut split: Vec<bool> = factors.iter().map(|axes| axes.contains(x)).collect();
    let with = |axis: &Axis| {
        let having = factors.iter().filter(|axes| axes.contains(axis));
        having.fold(Vec::new(), |all, axes| union(&all, axes))
    };
    let (mut left, mut right) = (with(x), with(y));
    let mut rest: Vec<usize> = (0..factors.len())
        .filter(|&i| !factors[i].contains(x) && !factors[i].contains(y))
        .collect();
    rest.sort_by_key(|&i| std::cmp::Reverse(cells(&factors[i])));
    for i in rest {
        let (with_left, with_right) = (union(&left, &factors[i]), union(&right, &factors[i]));
        let growth = |with: &[Axis], before: &[Axis]| (cells(with) - cells(before), cells(before));
        split[i] = growth(&with_left, &left) < growth(&with_right, &right);
        match split[i] {
            true => left = with_left,
            false => right = with_right,
        }
    }
    split
}

/// Returns the number of cells that are passed over to compute both sides and to sum them onto
/// their factors.
fn cost(factors: &[Vec<Axis>], split: &[bool]) -> usize {
    let side = |on_left: bool| {
        let side = || {
            factors
                .iter()
                .zip(split)
                .filter(|(_, left)| **left == on_left)
        };
        let all = side().fold(Vec::new(), |all, (axes, _)| union(&all, axes));
        let passes = 2 + 2 * side().count();
        cells(&all).saturating_mul(passes)
    };
    side(true).saturating_add(side(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(rank: usize) -> Axis {
        Axis { rank, size: 10 }
    }

    fn axes(ranks: &[usize]) -> Vec<Axis> {
        ranks.iter().map(|&rank| axis(rank)).collect()
    }

    #[test]
    fn split_separates_attributes_that_no_factor_has_together() {
        let pairs = [axes(&[0]), axes(&[1]), axes(&[2]), axes(&[3]), axes(&[])];
        let split = best_split(&pairs);
        assert_eq!(split.iter().filter(|left| **left).count(), 2, "{split:?}");
        let chain = [axes(&[0, 1]), axes(&[1, 2])];
        let split = best_split(&chain);
        assert_ne!(split[0], split[1]);
        let triangle = [axes(&[0, 1]), axes(&[1, 2]), axes(&[0, 2])];
        assert_eq!(best_split(&triangle), [false; 3]);
    }
}
