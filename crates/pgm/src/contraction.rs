//! Calibration by contraction: from potentials to the marginals of their cliques, without a table for
//! every clique (see [`crate::buckets`]).
//!
//! On the way up, each side of a bucket is the product of its factors, level by level, and the message
//! the product of the sides' matrices, scaled so that its largest cell is 1. On the way down, the message's
//! marginal over the message is what the rest of the model says of its cells; multiplied by either
//! side's matrix and summed, it turns the other side into a marginal, which is summed onto the
//! factors and onto the level before.
//!
//! Cells of a message that are far from underflow have all their digits. Where some are not, the
//! potentials are left to [`crate::propagation`], which has logarithms for that.

use std::ops::Range;

use crate::buckets::{Bucket, Level, Part, Plan, Side, Source};
use crate::kernel::widened;
use crate::layout::Placement;
use crate::product::{self, Matrix};
use crate::propagation::MIN_SUM;
use crate::slabs;
use crate::{Work, kernel};

/// So many cells of messages are worked on by one thread at a time.
const PART: usize = 1 << 14;

/// So many cells of a level are worked on at a time: all that is done to them is done while they are in a near
/// cache.
const SLAB: usize = 1 << 13;

/// The memory of a level.
#[derive(Clone, Debug)]
struct LevelTables {
    table: Vec<f64>,
    /// For each factor, its cells as the level wants them, if they are turned, and then its marginal.
    factors: Vec<Vec<f64>>,
}

impl LevelTables {
    /// Zeroed memory for the levels of a side.
    fn of(side: &Side) -> Vec<Self> {
        let zeroed = |level: &Level| Self {
            table: vec![0.0; level.cells],
            factors: level
                .factors
                .iter()
                .map(|part| vec![0.0; part.cells])
                .collect(),
        };
        side.levels.iter().map(zeroed).collect()
    }
}

/// The memory of a bucket.
#[derive(Clone, Debug)]
struct Tables {
    left: Vec<LevelTables>,
    right: Vec<LevelTables>,
    /// What is sent up.
    message: Vec<f64>,
    /// What the message was divided by, so that its largest cell is 1.
    scale: f64,
    /// The marginal of the message's attributes, and then that over the message.
    marginal: Vec<f64>,
}

/// Buckets with their memory.
#[derive(Clone, Debug)]
pub(crate) struct Contraction {
    buckets: Vec<Bucket>,
    tables: Vec<Tables>,
    /// Place of each potential in the list of all.
    potentials: Vec<Range<usize>>,
    /// The potentials' exponentials, each relative to the largest of its table.
    weights: Vec<f64>,
}

impl Contraction {
    /// Allocates what the plan takes. The potentials are those it was made for.
    pub fn new(plan: &Plan, potentials: Vec<Range<usize>>) -> Self {
        let buckets = plan.buckets();
        let tables = (buckets.iter())
            .map(|bucket| Tables {
                left: LevelTables::of(&bucket.left),
                right: LevelTables::of(&bucket.right),
                message: vec![0.0; bucket.message()],
                scale: 1.0,
                marginal: vec![0.0; bucket.message()],
            })
            .collect();
        Self {
            buckets,
            tables,
            weights: vec![0.0; potentials.last().map_or(0, |range| range.end)],
            potentials,
        }
    }

    /// What a calibration takes.
    pub fn work(&self) -> Work {
        self.buckets.iter().map(Bucket::work).sum()
    }

    /// From log-potentials to the marginals of their cliques, scaled to `total`. False, with marginals
    /// of no meaning, where a message comes near to underflow.
    pub fn calibrate(&mut self, potentials: &[f64], total: f64, marginals: &mut [f64]) -> bool {
        exponentiate(&self.potentials, potentials, &mut self.weights);
        for (i, bucket) in self.buckets.iter().enumerate() {
            let (earlier, rest) = self.tables.split_at_mut(i);
            let Some(own) = rest.first_mut() else { break };
            let cells = |source| match source {
                Source::Potential(i) => &self.weights[self.potentials[i].clone()],
                Source::Message(i) => &earlier[i].message[..],
            };
            fill(&bucket.left, &mut own.left, &cells);
            fill(&bucket.right, &mut own.right, &cells);
            if !send_up(bucket, own) {
                return false;
            }
        }
        for (i, bucket) in self.buckets.iter().enumerate().rev() {
            let (earlier, rest) = self.tables.split_at_mut(i);
            let Some(own) = rest.first_mut() else { break };
            if bucket.is_root() {
                own.marginal[0] = total;
            }
            send_down(bucket, own);
            let sides = [
                (&bucket.left, &mut own.left),
                (&bucket.right, &mut own.right),
            ];
            for (side, levels) in sides {
                hand_out(side, levels, |part, sums| {
                    let to = match part.source {
                        Source::Potential(i) => &mut marginals[self.potentials[i].clone()],
                        Source::Message(i) => &mut earlier[i].marginal[..],
                    };
                    match &part.turn {
                        // Every cell of the one is a cell of the other.
                        Some(turn) => {
                            to.fill(0.0);
                            turn.sum(0, sums, to);
                        }
                        None => to.copy_from_slice(sums),
                    }
                });
            }
        }
        true
    }
}

widened!(exponentiate = exponentiate_portable(places: &[Range<usize>], potentials: &[f64], weights: &mut [f64]));
widened!(pub(crate) multiply_slab = multiply_slab_portable(factors: &[(&Placement, &[f64])], start: usize, slab: &mut [f64]));
widened!(sum_slab = sum_slab_portable(start: usize, slab: &[f64], sums: &mut [(&Placement, &mut [f64])]));
widened!(send_part_up = send_part_up_portable(bucket: &Bucket, lefts: &[f64], rights: &[f64], messages: &mut [f64]) -> bool);
widened!(sum_rows = sum_rows_portable(right: &[f64], columns: usize, message: &mut [f64]) -> bool);
widened!(scale_to_one = scale_to_one_portable(message: &mut [f64]) -> f64);
widened!(send_part_down = send_part_down_portable(bucket: &Bucket, sides: [&mut [f64]; 2], ratios: &[f64]));
widened!(multiply_rows = multiply_rows_portable(right: &mut [f64], ratio: &[f64]));
widened!(divide = divide_portable(marginals: &mut [f64], messages: &[f64], scale: f64));

#[inline(always)]
fn exponentiate_portable(places: &[Range<usize>], potentials: &[f64], weights: &mut [f64]) {
    weights.copy_from_slice(potentials);
    for range in places {
        let table = &mut weights[range.clone()];
        let top = kernel::max(table);
        kernel::exponentiate_below(table, top);
    }
}

/// Sets a side's levels. What fills rows up stays zero.
fn fill<'a>(side: &Side, levels: &mut [LevelTables], cells: &impl Fn(Source) -> &'a [f64]) {
    for (i, level) in side.levels.iter().enumerate() {
        let (earlier, rest) = levels.split_at_mut(i);
        let Some(own) = rest.first_mut() else { break };
        for (part, turned) in level.factors.iter().zip(&mut own.factors) {
            if let Some(turn) = &part.turn {
                multiply_factors(&[(turn, cells(part.source))], turned);
            }
        }
        let before = level.before.iter().zip(earlier.last());
        let before = before.map(|(placement, before)| (placement, &before.table[..]));
        let factors =
            (level.factors.iter().zip(&own.factors)).map(|(part, turned)| match part.turn {
                Some(_) => (&part.place, &turned[..]),
                None => (&part.place, cells(part.source)),
            });
        multiply_factors(&before.chain(factors).collect::<Vec<_>>(), &mut own.table);
    }
}

/// Sets a table to the product of smaller ones, a slab of cells at a time.
fn multiply_factors(factors: &[(&Placement, &[f64])], table: &mut [f64]) {
    let cells = table.len();
    let slabs = table.chunks_mut(SLAB).enumerate();
    slabs::all(slabs, cells, |(i, slab): (usize, &mut [f64])| {
        multiply_slab(factors, i * SLAB, slab);
        true
    });
}

#[inline(always)]
fn multiply_slab_portable(factors: &[(&Placement, &[f64])], start: usize, slab: &mut [f64]) {
    let Some(((first, from), others)) = factors.split_first() else {
        return;
    };
    first.copy(from, start, slab);
    for (placement, from) in others {
        placement.multiply(from, start, slab);
    }
}

/// From a side's marginal to those of its factors, for which `take` is called, and to the levels before, whose
/// products are no longer needed.
fn hand_out(side: &Side, levels: &mut [LevelTables], mut take: impl FnMut(&Part, &[f64])) {
    for (i, level) in side.levels.iter().enumerate().rev() {
        let (earlier, rest) = levels.split_at_mut(i);
        let Some(own) = rest.first_mut() else {
            continue;
        };
        let before = level.before.iter().zip(earlier.last_mut());
        let before = before.map(|(placement, before)| (placement, &mut before.table[..]));
        let factors = level.factors.iter().zip(&mut own.factors);
        let factors = factors.map(|(part, sums)| (&part.place, &mut sums[..]));
        let mut sums: Vec<_> = before.chain(factors).collect();
        sums.iter_mut().for_each(|(_, sums)| sums.fill(0.0));
        for (i, slab) in own.table.chunks(SLAB).enumerate() {
            sum_slab(i * SLAB, slab, &mut sums);
        }
        for (part, sums) in level.factors.iter().zip(&own.factors) {
            take(part, sums);
        }
    }
}

#[inline(always)]
fn sum_slab_portable(start: usize, slab: &[f64], sums: &mut [(&Placement, &mut [f64])]) {
    for (placement, sums) in sums {
        placement.sum(start, slab, sums);
    }
}

/// Lengths of a bucket's matrices.
struct Lengths {
    left: usize,
    right: usize,
    message: usize,
    /// So many matrices are one thread's at a time.
    many: usize,
}

impl Lengths {
    fn of(bucket: &Bucket) -> Self {
        let message = bucket.rows * bucket.right_row();
        Self {
            left: bucket.inner * bucket.left_row(),
            right: bucket.inner * bucket.right_row(),
            message,
            many: (PART / (message * bucket.inner)).max(1),
        }
    }
}

/// Sets the message; whether all of its cells are far from underflow.
fn send_up(bucket: &Bucket, own: &mut Tables) -> bool {
    let sound = match (own.left.last(), own.right.last()) {
        (Some(left), Some(right)) => {
            let of = Lengths::of(bucket);
            let lefts = left.table.chunks(of.many * of.left);
            let parts = lefts.zip(right.table.chunks(of.many * of.right));
            let parts = parts.zip(own.message.chunks_mut(of.many * of.message));
            type Part<'p> = ((&'p [f64], &'p [f64]), &'p mut [f64]);
            let work = bucket.message() * bucket.inner;
            slabs::all(parts, work, |((lefts, rights), messages): Part<'_>| {
                send_part_up(bucket, lefts, rights, messages)
            })
        }
        // The cells of a side without factors are all 1.
        (_, Some(right)) => sum_rows(&right.table, bucket.columns, &mut own.message),
        _ => {
            own.message.fill(bucket.inner as f64);
            true
        }
    };
    own.scale = scale_to_one(&mut own.message);
    sound
}

#[inline(always)]
fn send_part_up_portable(
    bucket: &Bucket,
    lefts: &[f64],
    rights: &[f64],
    messages: &mut [f64],
) -> bool {
    let of = Lengths::of(bucket);
    let shape = (bucket.rows, bucket.inner, bucket.right_row());
    let sides = lefts
        .chunks_exact(of.left)
        .zip(rights.chunks_exact(of.right));
    let mut sound = true;
    for ((left, right), message) in sides.zip(messages.chunks_exact_mut(of.message)) {
        let turned = Matrix {
            cells: left,
            row: 1,
            column: bucket.left_row(),
        };
        product::multiply::<false>(shape, turned, right, message);
        for row in message.chunks_exact(bucket.right_row()) {
            sound &= all_above(&row[..bucket.columns]);
        }
    }
    sound
}

/// Whether all are far from underflow.
#[inline(always)]
fn all_above(row: &[f64]) -> bool {
    row.iter().fold(true, |sound, &x| sound & (x > MIN_SUM))
}

/// Sets a message to the sums of the rows of its bucket's only side with factors; whether all `columns` of them that do
/// not fill the row up are far from underflow.
#[inline(always)]
fn sum_rows_portable(right: &[f64], columns: usize, message: &mut [f64]) -> bool {
    // Pieces that stay in a near cache while all rows are added.
    const PIECE: usize = 1024;
    let row = message.len();
    for (i, piece) in message.chunks_mut(PIECE).enumerate() {
        piece.fill(0.0);
        for row in right.chunks_exact(row) {
            kernel::add(piece, &row[i * PIECE..][..piece.len()]);
        }
    }
    all_above(&message[..columns])
}

/// Divides a message by its largest cell, which it returns.
#[inline(always)]
fn scale_to_one_portable(message: &mut [f64]) -> f64 {
    let largest = kernel::max(message);
    kernel::scale(message, largest.recip());
    largest
}

/// Turns both sides into marginals.
fn send_down(bucket: &Bucket, own: &mut Tables) {
    divide(&mut own.marginal, &own.message, own.scale);
    match (own.left.last_mut(), own.right.last_mut()) {
        (Some(left), Some(right)) => {
            let of = Lengths::of(bucket);
            let lefts = left.table.chunks_mut(of.many * of.left);
            let rights = right.table.chunks_mut(of.many * of.right);
            let parts = lefts.zip(rights);
            let parts = parts.zip(own.marginal.chunks(of.many * of.message));
            type Part<'p> = ((&'p mut [f64], &'p mut [f64]), &'p [f64]);
            let work = bucket.message() * bucket.inner;
            slabs::all(parts, work, |((left, right), ratios): Part<'_>| {
                send_part_down(bucket, [left, right], ratios);
                true
            });
        }
        (_, Some(right)) => multiply_rows(&mut right.table, &own.marginal),
        _ => {}
    }
}

#[inline(always)]
fn send_part_down_portable(bucket: &Bucket, [lefts, rights]: [&mut [f64]; 2], ratios: &[f64]) {
    let of = Lengths::of(bucket);
    let (rows, inner) = (bucket.rows, bucket.inner);
    let (left_row, right_row) = (bucket.left_row(), bucket.right_row());
    let turned_cells = if rows == 1 { 0 } else { left_row * right_row };
    let mut scratch = vec![0.0; of.left + turned_cells];
    let (for_left, turned) = scratch.split_at_mut(of.left);
    let sides = (lefts.chunks_exact_mut(of.left)).zip(rights.chunks_exact_mut(of.right));
    for ((left, right), ratio) in sides.zip(ratios.chunks_exact(of.message)) {
        if rows == 1 {
            product::column(right, ratio, for_left);
        } else {
            product::turn(ratio, right_row, turned, left_row);
            let shape = (inner, right_row, left_row);
            product::multiply::<false>(shape, Matrix::rows(right, right_row), turned, for_left);
        }
        let shape = (inner, rows, right_row);
        product::multiply::<true>(shape, Matrix::rows(left, left_row), ratio, right);
        multiply(left, for_left);
    }
}

#[inline(always)]
fn multiply_rows_portable(right: &mut [f64], ratio: &[f64]) {
    for row in right.chunks_exact_mut(ratio.len()) {
        multiply(row, ratio);
    }
}

/// Divides marginals by messages as they were before they were scaled; what fills rows up, and is zero in both,
/// stays zero.
#[inline(always)]
fn divide_portable(marginals: &mut [f64], messages: &[f64], scale: f64) {
    for (x, &y) in marginals.iter_mut().zip(messages) {
        *x = if y > 0.0 { *x / (y * scale) } else { 0.0 };
    }
}

#[inline(always)]
fn multiply(to: &mut [f64], by: &[f64]) {
    for (x, y) in to.iter_mut().zip(by) {
        *x *= y;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::table::Axis;

    fn numbers(count: usize, seed: u64) -> Vec<f64> {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (x >> 11) as f64 / (1u64 << 53) as f64 + 0.1
        };
        (0..count).map(|_| next()).collect()
    }

    /// A bucket with two shared attributes, whose sides' rows are filled up.
    fn bucket(rows: usize, columns: usize) -> Bucket {
        let sizes = [3, 2, 7, rows, columns];
        let axis = |rank: usize| Axis {
            rank,
            size: sizes[rank],
        };
        let side = |inner: Axis, factor: usize| {
            let table = Layout::rows(&[axis(0), axis(1), axis(2)], &[inner]);
            let all = [axis(0), axis(1), axis(2), inner];
            let source = Source::Potential(factor);
            Side {
                levels: vec![Level {
                    cells: table.cells,
                    before: None,
                    factors: vec![Part {
                        source,
                        cells: 6 * 7 * inner.size,
                        turn: None,
                        place: Placement::new(&table, &Layout::plain(&all)),
                    }],
                }],
            }
        };
        Bucket {
            matrices: 6,
            inner: 7,
            rows,
            columns,
            left: side(axis(3), 0),
            right: side(axis(4), 1),
        }
    }

    /// What every width of vectors must give.
    #[test]
    fn wider_vectors_change_no_bit() {
        for (rows, columns) in [(1, 1), (1, 9), (5, 13), (8, 16), (11, 70)] {
            let bucket = bucket(rows, columns);
            let factors = [rows, columns].map(|n| numbers(6 * 7 * n, n as u64));
            let cells = |source: Source| match source {
                Source::Potential(i) | Source::Message(i) => &factors[i][..],
            };
            let side = |side: &Side| {
                let mut levels = LevelTables::of(side);
                fill(side, &mut levels, &cells);
                levels.remove(0).table
            };
            let (left, right) = (side(&bucket.left), side(&bucket.right));
            let mut messages = [vec![0.0; bucket.message()], vec![0.0; bucket.message()]];
            assert!(send_part_up(&bucket, &left, &right, &mut messages[0]));
            assert!(send_part_up_portable(
                &bucket,
                &left,
                &right,
                &mut messages[1]
            ));
            assert_eq!(messages[0], messages[1]);
            let ratios = numbers(bucket.message(), 3);
            let [wide, portable] = [send_part_down, send_part_down_portable].map(|send| {
                let (mut left, mut right) = (left.clone(), right.clone());
                send(&bucket, [&mut left, &mut right], &ratios);
                (left, right)
            });
            assert_eq!(wide, portable);
        }
    }
}
