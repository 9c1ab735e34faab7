//! Calibration by contraction: computes the marginals of cliques from their potentials, without a
//! table for every clique (see [`crate::buckets`]).
//!
//! On the way up, each side of a bucket is the product of its factors, level by level. The message
//! is the product of the sides' matrices, scaled so that its largest cell is 1.
//!
//! On the way down, the message's marginal divided by the message is the factor that the rest of
//! the model contributes to each cell. Multiplied by either side's matrix and summed, it turns the
//! other side into a marginal. That marginal is summed onto the side's factors and onto the
//! previous level.
//!
//! Cells of a message that are far from underflow have full precision. If some are not, the
//! potentials are left to [`crate::propagation`], which works with logarithms.

use std::ops::Range;

use crate::blocked;
use crate::buckets::{Bucket, BucketShare, Level, Plan, Side, Source};
use crate::kernel::widened;
use crate::layout::Placement;
use crate::messages::Message;
use crate::{FitWork, kernel};

/// Number of cells of a level that are processed at a time. All operations on them are done while
/// they are in a near cache.
const SLAB: usize = 1 << 13;

/// Number of cells from which on a level is shared among threads.
const SHARED: usize = 1 << 16;

/// The memory of a level.
#[derive(Clone, Debug)]
struct LevelTables {
    table: Vec<f64>,
    /// For each factor: its reordered cells, if needed, and later its marginal.
    factors: Vec<Vec<f64>>,
}

impl LevelTables {
    /// Returns zeroed memory for the levels of a side.
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

/// Returns the product of a side's factors, if it has any.
fn product(levels: &[LevelTables]) -> Option<&[f64]> {
    levels.last().map(|level| &level.table[..])
}

/// As [`product`], for modification.
fn product_mut(levels: &mut [LevelTables]) -> Option<&mut [f64]> {
    levels.last_mut().map(|level| &mut level.table[..])
}

/// The memory of a bucket.
#[derive(Clone, Debug)]
struct Tables {
    left: Vec<LevelTables>,
    right: Vec<LevelTables>,
    message: Message,
}

/// Buckets with their memory.
#[derive(Clone, Debug)]
pub(crate) struct Contraction {
    buckets: Vec<Bucket>,
    tables: Vec<Tables>,
    /// Range of each potential in the list of all potentials.
    potentials: Vec<Range<usize>>,
    /// The potentials' exponentials, each relative to the largest of its table.
    weights: Vec<f64>,
    /// Scratch memory for messages on their way down.
    scratch: Vec<f64>,
}

impl Contraction {
    /// Allocates the memory of a plan. `potentials` are the ranges of the potentials that the plan
    /// was made for.
    pub fn new(plan: &Plan, potentials: Vec<Range<usize>>) -> Self {
        let buckets = plan.buckets();
        let tables = (buckets.iter())
            .map(|bucket| Tables {
                left: LevelTables::of(&bucket.left),
                right: LevelTables::of(&bucket.right),
                message: Message::of(bucket),
            })
            .collect();
        Self {
            buckets,
            tables,
            weights: vec![0.0; potentials.last().map_or(0, |range| range.end)],
            potentials,
            scratch: Vec::new(),
        }
    }

    /// Returns the work of a calibration.
    pub fn work(&self) -> FitWork {
        self.buckets.iter().map(Bucket::work).sum()
    }

    /// Computes the marginals of cliques from their log-potentials, scaled to `total`. Returns
    /// `false`, with meaningless marginals, if a message comes near underflow.
    pub fn calibrate(&mut self, potentials: &[f64], total: f64, marginals: &mut [f64]) -> bool {
        exponentiate(&self.potentials, potentials, &mut self.weights);
        for (i, bucket) in self.buckets.iter().enumerate() {
            let (earlier, rest) = self.tables.split_at_mut(i);
            let Some(own) = rest.first_mut() else { break };
            let cells = |source| match source {
                Source::Potential(i) => &self.weights[self.potentials[i].clone()],
                Source::Message(i) => &earlier[i].message.cells[..],
            };
            fill(&bucket.left, &mut own.left, &cells);
            fill(&bucket.right, &mut own.right, &cells);
            let [left, right] = [&own.left, &own.right].map(|levels| product(levels));
            if !own.message.send_up(bucket, left, right) {
                return false;
            }
        }
        for (i, bucket) in self.buckets.iter().enumerate().rev() {
            let (earlier, rest) = self.tables.split_at_mut(i);
            let Some(own) = rest.first_mut() else { break };
            if bucket.is_root() {
                own.message.marginal[0] = total;
            }
            let [left, right] = [&mut own.left, &mut own.right].map(|levels| product_mut(levels));
            own.message
                .send_down(bucket, left, right, &mut self.scratch);
            let sides = [
                (&bucket.left, &mut own.left),
                (&bucket.right, &mut own.right),
            ];
            for (side, levels) in sides {
                hand_out(side, levels, |part, sums| {
                    let to = match part.source {
                        Source::Potential(i) => &mut marginals[self.potentials[i].clone()],
                        Source::Message(i) => &mut earlier[i].message.marginal[..],
                    };
                    match &part.turn {
                        // The reordering maps cells one to one.
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

#[inline(always)]
fn exponentiate_portable(places: &[Range<usize>], potentials: &[f64], weights: &mut [f64]) {
    weights.copy_from_slice(potentials);
    for range in places {
        let table = &mut weights[range.clone()];
        let top = kernel::max(table);
        kernel::exponentiate_below(table, top);
    }
}

/// Computes a side's levels. Padding stays zero.
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
    blocked::all(slabs, cells, |(i, slab): (usize, &mut [f64])| {
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

/// Sums a side's marginal onto its factors, for which `take` is called, and onto the previous
/// levels, whose products are no longer needed.
fn hand_out(side: &Side, levels: &mut [LevelTables], mut take: impl FnMut(&BucketShare, &[f64])) {
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
        sum_table(&own.table, &mut sums);
        for (part, sums) in level.factors.iter().zip(&own.factors) {
            take(part, sums);
        }
    }
}

/// Sets smaller tables to sums of a table's cells. If the table is shared among threads, each
/// thread passes over it for some of the smaller tables. Otherwise one pass serves all of them.
fn sum_table(table: &[f64], sums: &mut [(&Placement, &mut [f64])]) {
    let together = if table.len() < SHARED { sums.len() } else { 1 };
    let parts = sums.chunks_mut(together.max(1));
    blocked::all(
        parts,
        table.len(),
        |sums: &mut [(&Placement, &mut [f64])]| {
            sums.iter_mut().for_each(|(_, sums)| sums.fill(0.0));
            for (i, slab) in table.chunks(SLAB).enumerate() {
                sum_slab(i * SLAB, slab, sums);
            }
            true
        },
    );
}

#[inline(always)]
fn sum_slab_portable(start: usize, slab: &[f64], sums: &mut [(&Placement, &mut [f64])]) {
    for (placement, sums) in sums {
        placement.sum(start, slab, sums);
    }
}
