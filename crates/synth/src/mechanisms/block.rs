//! Axis bases and contrast blocks (docs/MECHANISM.md, C).
//!
//! An attribute's n categories are merged into k groups. The merge is measured through a *basis*:
//! integer functions of the attribute that share one noise factor w.
//!
//! * Two groups have a single contrast (1, -1), with w = sqrt 2.
//! * 3 to 8 groups have k centred indicators (k - 1 on their own group, -1 elsewhere), with w = k.
//! * More groups have their 0/1 indicators, with w = 1.
//!
//! Divided by w, each basis spans the centred tables of k groups (all tables, for indicators), and
//! one record changes it by f(k) in squared norm. Residual contrasts are from ResidualPlanner
//! (Xiao, He, Zhang and Kifer 2023).

use fhaim_domain::Clique;
use fhaim_pgm::{AxisView, Measurement};

use super::merge::Merges;
use fhaim_release::{Axis, Statistic, UNIT_VARIANCE};

pub use fhaim_release::MAX_CENTRED;

/// The kind of an axis' basis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Contrast,
    Centred,
    Indicators,
}

/// One axis of a block: an attribute's merge into k groups, and its basis.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockAxis {
    attribute: usize,
    /// Group of each category.
    groups: Vec<u32>,
    k: usize,
    form: Form,
}

/// Returns the cost factor f(k): one record's squared change of a basis of k groups, divided by the
/// squared noise factor.
pub fn cost_factor(k: usize) -> f64 {
    if k <= MAX_CENTRED {
        1.0 - 1.0 / k as f64
    } else {
        1.0
    }
}

/// Returns the cost factor of a pair block: f(k_a) f(k_b).
pub fn pair_cost([ka, kb]: [usize; 2]) -> f64 {
    cost_factor(ka) * cost_factor(kb)
}

/// Returns the degrees of freedom b(k) of a basis of k groups.
pub fn freedom(k: usize) -> f64 {
    if k <= MAX_CENTRED {
        k as f64 - 1.0
    } else {
        k as f64
    }
}

/// Returns the number of integers released along an axis of k groups in a pair block.
pub fn functions(k: usize) -> usize {
    if k == 2 { 1 } else { k }
}

impl BlockAxis {
    /// Returns the axis of a pair block: the merge of `attribute` into `k` groups.
    pub fn merged(attribute: usize, merges: &Merges, k: usize) -> Self {
        let k = k.clamp(1, merges.categories());
        let form = match k {
            2 => Form::Contrast,
            k if k <= MAX_CENTRED => Form::Centred,
            _ => Form::Indicators,
        };
        Self {
            attribute,
            groups: merges.groups(k),
            k,
            form,
        }
    }

    /// Returns the axis of a 1-way block: all `size` categories, centred for any `size`.
    pub fn one_way(attribute: usize, size: usize) -> Self {
        Self {
            attribute,
            groups: (0..size as u32).collect(),
            k: size,
            form: if size == 2 {
                Form::Contrast
            } else {
                Form::Centred
            },
        }
    }

    /// Returns the axis of all `size` categories, with one indicator each.
    pub fn cells(attribute: usize, size: usize) -> Self {
        Self {
            attribute,
            groups: (0..size as u32).collect(),
            k: size,
            form: Form::Indicators,
        }
    }

    /// Returns w. A block of scale s has noise of standard deviation s times the factors of its
    /// axes.
    pub fn noise_factor(&self) -> f64 {
        match self.form {
            Form::Contrast => std::f64::consts::SQRT_2,
            Form::Centred => self.k as f64,
            Form::Indicators => 1.0,
        }
    }

    /// Returns the number of basis functions.
    fn functions(&self) -> usize {
        match self.form {
            Form::Contrast => 1,
            Form::Centred | Form::Indicators => self.k,
        }
    }

    /// Returns the basis as integer functions of the categories.
    fn axis(&self) -> Axis {
        let value = |function: usize, group: u32| {
            let own = function == group as usize;
            match self.form {
                Form::Contrast => 1 - 2 * i64::from(group),
                Form::Centred => self.k as i64 * i64::from(own) - 1,
                Form::Indicators => i64::from(own),
            }
        };
        let functions = (0..self.functions())
            .map(|f| self.groups.iter().map(|&group| value(f, group)).collect())
            .collect();
        Axis {
            attribute: self.attribute,
            functions,
        }
    }

    /// Returns the view of the model's marginal along this axis.
    fn view(&self) -> AxisView {
        let identity = (0..self.groups.len() as u32).eq(self.groups.iter().copied());
        AxisView {
            groups: (!identity).then(|| self.groups.clone()),
            centred: self.form != Form::Indicators,
        }
    }

    /// Maps noisy basis values along this axis to the k groups, projected on the basis' span.
    /// `values` holds `before` x functions x `after` numbers, row-major. The result has k in the
    /// middle.
    fn to_groups(&self, values: &[f64], after: usize) -> Vec<f64> {
        let functions = self.functions();
        let mut table = Vec::with_capacity(values.len() / functions * self.k);
        for slab in values.chunks_exact(functions * after) {
            match self.form {
                Form::Contrast => {
                    table.extend(slab.iter().map(|z| z / 2.0));
                    table.extend(slab.iter().map(|z| -z / 2.0));
                }
                Form::Centred => {
                    let scale = 1.0 / self.k as f64;
                    let start = table.len();
                    table.extend(slab.iter().map(|z| z * scale));
                    centre(&mut table[start..], self.k, after);
                }
                Form::Indicators => table.extend_from_slice(slab),
            }
        }
        table
    }

    /// Merges a table along this axis and projects it on the basis' span, for comparison with
    /// [`Block::table`].
    fn project(&self, table: &[f64], after: usize) -> Vec<f64> {
        let size = self.groups.len();
        let mut merged = vec![0.0; table.len() / size * self.k];
        let slabs = table.chunks_exact(size * after);
        for (slab, out) in slabs.zip(merged.chunks_exact_mut(self.k * after)) {
            for (row, &group) in slab.chunks_exact(after).zip(&self.groups) {
                let start = group as usize * after;
                for (sum, value) in out[start..start + after].iter_mut().zip(row) {
                    *sum += value;
                }
            }
            if self.form != Form::Indicators {
                centre(out, self.k, after);
            }
        }
        merged
    }
}

/// Subtracts the mean along the first axis from a k x `after` table.
fn centre(table: &mut [f64], k: usize, after: usize) {
    for column in 0..after {
        let sum: f64 = (0..k).map(|row| table[row * after + column]).sum();
        for row in 0..k {
            table[row * after + column] -= sum / k as f64;
        }
    }
}

/// A block: the products of the bases of at most two attributes, released with one scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    axes: Vec<BlockAxis>,
}

impl Block {
    /// Returns the block of the number of records.
    pub fn total() -> Self {
        Self { axes: Vec::new() }
    }

    /// Returns the 1-way block of an attribute.
    pub fn one_way(attribute: usize, size: usize) -> Self {
        Self {
            axes: vec![BlockAxis::one_way(attribute, size)],
        }
    }

    /// Returns the block of a pair (attributes in ascending order).
    pub fn pair(a: BlockAxis, b: BlockAxis) -> Self {
        Self { axes: vec![a, b] }
    }

    /// Returns the attributes.
    pub fn clique(&self) -> Clique {
        Clique::new(self.axes.iter().map(|axis| axis.attribute))
    }

    /// Returns the number of groups along each axis.
    pub fn shape(&self) -> Vec<usize> {
        self.axes.iter().map(|axis| axis.k).collect()
    }

    /// Returns the group of each category along an axis.
    pub fn groups(&self, axis: usize) -> &[u32] {
        &self.axes[axis].groups
    }

    /// Returns the statistic to release.
    pub fn statistic(&self) -> Statistic {
        match self.axes.as_slice() {
            [a, b] => Statistic::Product(a.axis(), b.axis()),
            [a] => Statistic::OneWay(a.axis()),
            _ => Statistic::Total,
        }
    }

    /// Returns s, the scale of the noise in an orthonormal basis of the block's span, for noise of
    /// variance `UNIT_VARIANCE * variance_units` from all holders together.
    pub fn scale(&self, variance_units: u64) -> f64 {
        let factor: f64 = self.axes.iter().map(BlockAxis::noise_factor).product();
        (UNIT_VARIANCE as f64 * variance_units as f64).sqrt() / factor
    }

    /// Returns the degrees of freedom: the dimension of the span.
    pub fn freedom(&self) -> f64 {
        let axis_freedom = |axis: &BlockAxis| match axis.form {
            Form::Contrast | Form::Centred => axis.k as f64 - 1.0,
            Form::Indicators => axis.k as f64,
        };
        self.axes.iter().map(axis_freedom).product()
    }

    /// Returns Y: released values divided by the noise factors, mapped back to the table of groups
    /// and projected on the span of the bases. Row-major.
    pub fn table(&self, values: &[i64]) -> Vec<f64> {
        let mut table: Vec<f64> = values.iter().map(|&z| z as f64).collect();
        let mut after = 1;
        for axis in self.axes.iter().rev() {
            table = axis.to_groups(&table, after);
            after *= axis.k;
        }
        table
    }

    /// Merges and projects the marginal of the block's attributes (row-major over categories) like
    /// [`Block::table`].
    pub fn project(&self, marginal: &[f64]) -> Vec<f64> {
        let mut table = marginal.to_vec();
        let mut after = 1;
        for axis in self.axes.iter().rev() {
            table = axis.project(&table, after);
            after *= axis.k;
        }
        table
    }

    /// Returns the measurement of a table Y at scale `s`.
    pub fn measurement(&self, table: Vec<f64>, s: f64) -> Measurement {
        Measurement {
            clique: self.clique(),
            axes: self.axes.iter().map(BlockAxis::view).collect(),
            values: table,
            sigma: s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merges(size: usize) -> Merges {
        Merges::new(
            &(0..size)
                .map(|x| 1.0 + (x * 7 % 5) as f64)
                .collect::<Vec<_>>(),
        )
    }

    /// Computes the values of a block without noise, from counts over the pair's cells.
    fn exact(statistic: &Statistic, counts: &[f64]) -> Vec<i64> {
        let Statistic::Product(a, b) = statistic else {
            panic!("not a pair");
        };
        let size = b.functions[0].len();
        let mut values = Vec::new();
        for u in &a.functions {
            for v in &b.functions {
                let sum: f64 = (0..counts.len())
                    .map(|cell| (u[cell / size] * v[cell % size]) as f64 * counts[cell])
                    .sum();
                values.push(sum as i64);
            }
        }
        values
    }

    #[test]
    fn block_costs_its_cost_factors_over_twice_the_squared_scale() {
        for ka in 2..=11 {
            for kb in 2..=11 {
                let (a, b) = (merges(11), merges(12));
                let block = Block::pair(BlockAxis::merged(0, &a, ka), BlockAxis::merged(1, &b, kb));
                let units = 1000;
                let sensitivity = block.statistic().squared_sensitivity(1).unwrap() as f64;
                let rho = sensitivity / (2.0 * 4.0 * units as f64);
                let s = block.scale(units);
                let formula = cost_factor(ka) * cost_factor(kb) / (2.0 * s * s);
                assert!((rho / formula - 1.0).abs() < 1e-12, "{ka} {kb}");
            }
        }
    }

    #[test]
    fn one_way_block_costs_one_minus_one_over_n_over_twice_the_squared_scale() {
        for n in 2..=40usize {
            let block = Block::one_way(0, n);
            let sensitivity = block.statistic().squared_sensitivity(1).unwrap() as f64;
            let s = block.scale(500);
            let formula = (1.0 - 1.0 / n as f64) / (2.0 * s * s);
            assert!((sensitivity / 4000.0 / formula - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn noiseless_answers_equal_the_projected_marginal() {
        let counts: Vec<f64> = (0..120).map(|cell| f64::from(cell * 37 % 11)).collect();
        let (a, b) = (merges(10), merges(12));
        for (ka, kb) in [(2, 2), (2, 5), (5, 3), (8, 2), (9, 12), (10, 4), (2, 12)] {
            let block = Block::pair(BlockAxis::merged(0, &a, ka), BlockAxis::merged(1, &b, kb));
            let table = block.table(&exact(&block.statistic(), &counts));
            let projected = block.project(&counts);
            assert_eq!(table.len(), ka * kb);
            for (y, p) in table.iter().zip(&projected) {
                assert!((y - p).abs() < 1e-9, "{ka} x {kb}: {y} {p}");
            }
        }
    }

    #[test]
    fn noisy_table_lies_in_the_span_of_the_bases() {
        let merges = merges(9);
        let block = Block::pair(
            BlockAxis::merged(0, &merges, 4),
            BlockAxis::merged(1, &merges, 9),
        );
        let noise: Vec<i64> = (0..36).map(|i| (i * i * 31 % 17) - 8).collect();
        let table = block.table(&noise);
        for column in 0..9 {
            let sum: f64 = (0..4).map(|row| table[row * 9 + column]).sum();
            assert!(sum.abs() < 1e-12);
        }
    }

    #[test]
    fn span_has_the_dimension_that_freedom_returns() {
        let merges = merges(9);
        for (k, dimensions) in [(2, 1.0), (3, 2.0), (8, 7.0), (9, 9.0)] {
            let axis = BlockAxis::merged(0, &merges, k);
            // The projection's trace is the dimension of its image.
            let trace: f64 = (0..k)
                .map(|g| {
                    let first = axis.groups.iter().position(|&x| x as usize == g).unwrap();
                    let mut unit = vec![0.0; 9];
                    unit[first] = 1.0;
                    axis.project(&unit, 1)[g]
                })
                .sum();
            assert!((trace - dimensions).abs() < 1e-12);
            assert_eq!(freedom(k), dimensions);
        }
    }
}
