//! Tables with their axes, and products of two of them.

use std::borrow::Cow;

use crate::kernel::widened;
use crate::node_tables::union;
use crate::product::{self, Matrix, Shape};
use crate::propagation::sum_onto;
use crate::table::{Axis, cells, stride};

/// A table with its axes, by rank.
#[derive(Clone, Debug)]
pub(crate) struct Factor {
    pub axes: Vec<Axis>,
    pub table: Vec<f64>,
}

impl Factor {
    /// Returns the product with another factor, summed onto those of their axes that are `needed`.
    ///
    /// The product is computed as products of matrices, one for each cell of the needed axes that
    /// both factors have. So no table over all axes is stored.
    pub fn contract(&self, other: &Self, needed: &[Axis]) -> Self {
        // An axis that is neither needed nor shared is summed out before.
        let left_axes = intersection(&self.axes, &union(&other.axes, needed));
        let right_axes = intersection(&other.axes, &union(&self.axes, needed));
        let shared = intersection(&left_axes, &right_axes);
        let (outer, inner) = (intersection(&shared, needed), without(&shared, needed));
        let (rows, columns) = (without(&left_axes, &shared), without(&right_axes, &shared));
        let left = arranged(
            &left_axes,
            self.summed(&left_axes),
            &[&outer[..], &rows, &inner].concat(),
        );
        let right = arranged(
            &right_axes,
            other.summed(&right_axes),
            &[&outer[..], &inner, &columns].concat(),
        );
        let shape = (cells(&rows), cells(&inner), cells(&columns));
        let mut table = vec![0.0; cells(&outer) * shape.0 * shape.2];
        multiply_matrices(shape, &left, &right, &mut table);
        let found = [&outer[..], &rows, &columns].concat();
        let mut axes = found.clone();
        axes.sort_unstable_by_key(|axis| axis.rank);
        let table = arranged(&found, Cow::Owned(table), &axes).into_owned();
        Self { axes, table }
    }

    /// Returns the sums onto some of the axes.
    fn summed(&self, onto: &[Axis]) -> Cow<'_, [f64]> {
        match self.axes.len() == onto.len() {
            true => Cow::Borrowed(&self.table),
            false => Cow::Owned(sum_onto(&self.axes, &self.table, onto)),
        }
    }
}

widened!(multiply_matrices = multiply_matrices_portable(shape: Shape, left: &[f64], right: &[f64], out: &mut [f64]));

/// Multiplies matrices pairwise: `left` has those with the shape's rows, `right` those with its
/// columns.
#[inline(always)]
fn multiply_matrices_portable(
    (rows, inner, columns): Shape,
    left: &[f64],
    right: &[f64],
    out: &mut [f64],
) {
    let pairs = (left.chunks_exact(rows * inner)).zip(right.chunks_exact(inner * columns));
    for (out, (left, right)) in out.chunks_exact_mut(rows * columns).zip(pairs) {
        let left = Matrix::rows(left, inner);
        product::multiply::<false>((rows, inner, columns), left, right, out);
    }
}

/// Returns the cells of a table with its axes in another order.
fn arranged<'a>(axes: &[Axis], table: Cow<'a, [f64]>, order: &[Axis]) -> Cow<'a, [f64]> {
    if axes == order {
        return table;
    }
    let Some((last, outer)) = order.split_last() else {
        return table;
    };
    let mut offsets = vec![0];
    for axis in outer {
        let step = stride(axes, axis);
        offsets = (offsets.iter())
            .flat_map(|&offset| (0..axis.size).map(move |i| offset + i * step))
            .collect();
    }
    let step = stride(axes, last);
    let mut cells = Vec::with_capacity(table.len());
    for offset in offsets {
        match step {
            1 => cells.extend_from_slice(&table[offset..][..last.size]),
            _ => cells.extend((0..last.size).map(|i| table[offset + i * step])),
        }
    }
    Cow::Owned(cells)
}

/// Returns the axes in both, in the order of the first.
pub(crate) fn intersection(a: &[Axis], b: &[Axis]) -> Vec<Axis> {
    a.iter().filter(|axis| b.contains(axis)).copied().collect()
}

/// Returns the axes of the first that are not in the second.
fn without(a: &[Axis], b: &[Axis]) -> Vec<Axis> {
    a.iter().filter(|axis| !b.contains(axis)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Embedding;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Returns a factor over the axes whose bits are set.
    fn factor(rng: &mut ChaCha8Rng, all: &[Axis], bits: u32) -> Factor {
        let axes = chosen(all, bits);
        let table = (0..cells(&axes))
            .map(|_| rng.random_range(0.0..1.0))
            .collect();
        Factor { axes, table }
    }

    fn chosen(all: &[Axis], bits: u32) -> Vec<Axis> {
        let set = all.iter().filter(|axis| bits >> axis.rank & 1 == 1);
        set.copied().collect()
    }

    #[test]
    fn contraction_equals_the_sum_of_the_whole_product() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let all: Vec<Axis> = ([3, 2, 4, 1, 5].iter().enumerate())
            .map(|(rank, &size)| Axis { rank, size })
            .collect();
        for _ in 0..500 {
            let [a, b, needed] = [(); 3].map(|()| rng.random_range(0..32));
            let (a, b) = (factor(&mut rng, &all, a), factor(&mut rng, &all, b));
            let needed = chosen(&all, needed);
            let both = union(&a.axes, &b.axes);
            let mut product = vec![1.0; cells(&both)];
            for factor in [&a, &b] {
                Embedding::new(&both, &factor.axes).multiply(&factor.table, &mut product);
            }
            let axes = intersection(&both, &needed);
            let expected = sum_onto(&both, &product, &axes);
            let found = a.contract(&b, &needed);
            assert_eq!(found.axes, axes);
            for (x, y) in found.table.iter().zip(&expected) {
                assert!((x - y).abs() < 1e-12, "{x} and {y}");
            }
            assert_eq!(found.table.len(), expected.len());
        }
    }
}
