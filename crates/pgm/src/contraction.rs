//! Calibration by contraction: from potentials to the marginals of their cliques, without a table for
//! every clique (see [`crate::buckets`]).
//!
//! On the way up, each side of a bucket is the product of its factors, scaled so that its largest
//! cell is 1, and the message the product of the sides' matrices. On the way down, the message's
//! marginal over the message is what the rest of the model says of its cells; multiplied by either
//! side's matrix and summed, it turns the other side into a marginal, which is summed onto the
//! factors.
//!
//! Cells of a message that are far from underflow have all their digits. Where some are not, the
//! potentials are left to [`crate::propagation`], which has logarithms for that.

use std::ops::Range;

use crate::buckets::{Bucket, Plan, Side, Source};
use crate::layout::Placement;
use crate::product::{self, Matrix};
use crate::propagation::MIN_SUM;
use crate::{kernel, slabs};

/// So many cells of messages are worked on by one thread at a time.
const PART: usize = 1 << 14;

/// The memory of a bucket.
#[derive(Clone, Debug)]
struct Tables {
    left: Vec<f64>,
    right: Vec<f64>,
    /// What is sent up.
    message: Vec<f64>,
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
                left: vec![0.0; bucket.left.cells],
                right: vec![0.0; bucket.right.cells],
                message: vec![0.0; bucket.message()],
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

    /// From log-potentials to the marginals of their cliques, scaled to `total`. False, with marginals
    /// of no meaning, where a message comes near to underflow.
    pub fn calibrate(&mut self, potentials: &[f64], total: f64, marginals: &mut [f64]) -> bool {
        let places = &self.potentials;
        exponentiate(places, potentials, &mut self.weights);
        for (i, bucket) in self.buckets.iter().enumerate() {
            let (earlier, rest) = self.tables.split_at_mut(i);
            let Some(own) = rest.first_mut() else { break };
            let cells = |source| match source {
                Source::Potential(i) => &self.weights[self.potentials[i].clone()],
                Source::Message(i) => &earlier[i].message[..],
            };
            let filled = fill(&bucket.left, &mut own.left, &cells)
                && fill(&bucket.right, &mut own.right, &cells);
            if !(filled && send_up(bucket, own)) {
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
            let sides = [(&bucket.left, &own.left), (&bucket.right, &own.right)];
            for (side, table) in sides {
                for (source, placement) in &side.factors {
                    let to = match *source {
                        Source::Potential(i) => &mut marginals[self.potentials[i].clone()],
                        Source::Message(i) => &mut earlier[i].marginal[..],
                    };
                    sum_onto(placement, table, to);
                }
            }
        }
        true
    }
}

/// A function that does what another does, which is inlined into it, with the widest vectors that the
/// processor has; the results are the same bits.
macro_rules! widened {
    ($name:ident = $portable:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {
        fn $name($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
            fn avx512($($argument: $type),*) $(-> $result)? {
                $portable($($argument),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2($($argument: $type),*) $(-> $result)? {
                $portable($($argument),*)
            }
            #[cfg(target_arch = "x86_64")]
            {
                use std::arch::is_x86_feature_detected as has;
                if has!("avx512f") && has!("avx512dq") && has!("avx512vl") {
                    // SAFETY: the processor has the features that the function needs.
                    return unsafe { avx512($($argument),*) };
                }
                if has!("avx2") {
                    // SAFETY: the processor has the only feature that the function needs.
                    return unsafe { avx2($($argument),*) };
                }
            }
            $portable($($argument),*)
        }
    };
}

widened!(exponentiate = exponentiate_portable(places: &[Range<usize>], potentials: &[f64], weights: &mut [f64]));
widened!(multiply_factors = multiply_factors_portable(factors: &[(&Placement, &[f64])], table: &mut [f64]) -> bool);
widened!(sum_onto = sum_onto_portable(placement: &Placement, table: &[f64], to: &mut [f64]));
widened!(send_part_up = send_part_up_portable(bucket: &Bucket, lefts: &[f64], rights: &[f64], messages: &mut [f64]) -> bool);
widened!(send_part_down = send_part_down_portable(bucket: &Bucket, sides: [&mut [f64]; 2], messages: &[f64], marginals: &mut [f64]));

#[inline(always)]
fn exponentiate_portable(places: &[Range<usize>], potentials: &[f64], weights: &mut [f64]) {
    weights.copy_from_slice(potentials);
    for range in places {
        let table = &mut weights[range.clone()];
        let top = kernel::max(table);
        kernel::exponentiate_below(table, top);
    }
}

/// Sets a side to the product of its factors, scaled so that the largest cell is 1; whether it has one far
/// from underflow. What fills rows up stays zero.
fn fill<'a>(side: &Side, table: &mut [f64], cells: &impl Fn(Source) -> &'a [f64]) -> bool {
    let factors = side.factors.iter();
    let factors = factors.map(|(source, placement)| (placement, cells(*source)));
    multiply_factors(&factors.collect::<Vec<_>>(), table)
}

#[inline(always)]
fn multiply_factors_portable(factors: &[(&Placement, &[f64])], table: &mut [f64]) -> bool {
    let Some(((first, from), others)) = factors.split_first() else {
        // A side without factors has no rows to fill up.
        table.fill(1.0);
        return true;
    };
    first.copy(from, table);
    for (placement, from) in others {
        placement.multiply(from, table);
    }
    let largest = kernel::max(table);
    kernel::scale(table, largest.recip());
    largest > MIN_SUM
}

#[inline(always)]
fn sum_onto_portable(placement: &Placement, table: &[f64], to: &mut [f64]) {
    to.fill(0.0);
    placement.sum(table, to);
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
    let of = Lengths::of(bucket);
    let parts = (own.left.chunks(of.many * of.left)).zip(own.right.chunks(of.many * of.right));
    let parts = parts.zip(own.message.chunks_mut(of.many * of.message));
    type Part<'p> = ((&'p [f64], &'p [f64]), &'p mut [f64]);
    let work = bucket.message() * bucket.inner;
    slabs::all(parts, work, |((lefts, rights), messages): Part<'_>| {
        send_part_up(bucket, lefts, rights, messages)
    })
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
        product::multiply(shape, turned, right, message);
        for row in message.chunks_exact(bucket.right_row()) {
            for &x in &row[..bucket.columns] {
                sound &= x > MIN_SUM;
            }
        }
    }
    sound
}

/// Turns both sides into marginals.
fn send_down(bucket: &Bucket, own: &mut Tables) {
    let of = Lengths::of(bucket);
    let lefts = own.left.chunks_mut(of.many * of.left);
    let rights = own.right.chunks_mut(of.many * of.right);
    let messages = own.message.chunks(of.many * of.message);
    let marginals = own.marginal.chunks_mut(of.many * of.message);
    let parts = lefts.zip(rights).zip(messages.zip(marginals));
    type Part<'p> = ((&'p mut [f64], &'p mut [f64]), (&'p [f64], &'p mut [f64]));
    let work = bucket.message() * bucket.inner;
    slabs::all(
        parts,
        work,
        |((left, right), (messages, marginals)): Part<'_>| {
            send_part_down(bucket, [left, right], messages, marginals);
            true
        },
    );
}

#[inline(always)]
fn send_part_down_portable(
    bucket: &Bucket,
    [lefts, rights]: [&mut [f64]; 2],
    messages: &[f64],
    marginals: &mut [f64],
) {
    let of = Lengths::of(bucket);
    let (rows, inner) = (bucket.rows, bucket.inner);
    let (left_row, right_row) = (bucket.left_row(), bucket.right_row());
    let turned_cells = if rows == 1 { 0 } else { left_row * right_row };
    let mut scratch = vec![0.0; of.left + of.right + turned_cells];
    let (for_left, rest) = scratch.split_at_mut(of.left);
    let (for_right, turned) = rest.split_at_mut(of.right);
    divide(marginals, messages);
    let sides = (lefts.chunks_exact_mut(of.left)).zip(rights.chunks_exact_mut(of.right));
    for ((left, right), ratio) in sides.zip(marginals.chunks_exact(of.message)) {
        let matrix = |cells, row| Matrix {
            cells,
            row,
            column: 1,
        };
        product::multiply(
            (inner, rows, right_row),
            matrix(left, left_row),
            ratio,
            for_right,
        );
        if rows == 1 {
            product::column(right, ratio, for_left);
        } else {
            product::turn(ratio, right_row, turned, left_row);
            let shape = (inner, right_row, left_row);
            product::multiply(shape, matrix(right, right_row), turned, for_left);
        }
        multiply(left, for_left);
        multiply(right, for_right);
    }
}

/// Divides marginals by messages; what fills rows up, and is zero in both, stays zero.
#[inline(always)]
fn divide(marginals: &mut [f64], messages: &[f64]) {
    for (x, &y) in marginals.iter_mut().zip(messages) {
        *x = if y > 0.0 { *x / y } else { 0.0 };
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
                cells: table.cells,
                factors: vec![(source, Placement::new(&table, &Layout::plain(&all)))],
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
            let (mut left, mut right) =
                (vec![0.0; bucket.left.cells], vec![0.0; bucket.right.cells]);
            assert!(
                fill(&bucket.left, &mut left, &cells) && fill(&bucket.right, &mut right, &cells)
            );
            let mut messages = [vec![0.0; bucket.message()], vec![0.0; bucket.message()]];
            assert!(send_part_up(&bucket, &left, &right, &mut messages[0]));
            assert!(send_part_up_portable(
                &bucket,
                &left,
                &right,
                &mut messages[1]
            ));
            assert_eq!(messages[0], messages[1]);
            let marginal = numbers(bucket.message(), 3);
            let [wide, portable] = [send_part_down, send_part_down_portable].map(|send| {
                let (mut left, mut right) = (left.clone(), right.clone());
                let mut marginal = marginal.clone();
                send(
                    &bucket,
                    [&mut left, &mut right],
                    &messages[0],
                    &mut marginal,
                );
                (left, right, marginal)
            });
            assert_eq!(wide, portable);
        }
    }
}
