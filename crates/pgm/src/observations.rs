//! Measurements as a linear map from the marginals of their cliques to whitened residuals.

use std::collections::BTreeMap;
use std::ops::Range;

use fhaim_domain::{Clique, Domain};

use crate::junction::JunctionTree;
use crate::resolution::Resolution;
use crate::table::Axis;
use crate::{AxisView, Measurement, kernel};

/// Measurements grouped by clique, with their tables reordered to the order of rank.
///
/// Lists of *cells* hold the marginals of all measured cliques one after another (over the tree's
/// groups; over categories for a single attribute). Lists of *values* hold the measured views of
/// them.
#[derive(Clone, Debug)]
pub(crate) struct Observations {
    /// The distinct measured cliques without the empty one, ascending.
    pub cliques: Vec<Clique>,
    /// Range of each clique's marginal among all cells.
    pub ranges: Vec<Range<usize>>,
    views: Vec<View>,
    /// The part of the loss that no marginal changes: the loss minus half the squared norm of the
    /// residuals.
    constant: f64,
}

/// A view of a clique's marginal, with all of its measurements.
#[derive(Clone, Debug)]
struct View {
    /// Range of the marginal among all cells.
    cells: Range<usize>,
    /// Range of the view among all values.
    values: Range<usize>,
    /// Merged cell of each cell; `None` if no cells are merged.
    merged: Option<Vec<u32>>,
    /// The size of each merged axis, and whether it is centred.
    shape: Vec<(usize, bool)>,
    /// The mean of the measurements by inverse variance, centred.
    target: Vec<f64>,
    /// 1 / sigma of that mean.
    precision: f64,
}

impl Observations {
    /// Prepares checked measurements over `domain` for a model with `total` records.
    pub fn new(
        domain: &Domain,
        resolution: &Resolution,
        tree: &JunctionTree,
        measurements: &[Measurement],
        total: f64,
    ) -> Self {
        let mut constant = 0.0;
        let mut alike: BTreeMap<(Clique, Vec<AxisKey>), Vec<Measurement>> = BTreeMap::new();
        for measurement in measurements {
            let measurement = match measurement.clique.len() {
                0 => {
                    let residual = (total - measurement.values[0]) / measurement.sigma;
                    constant += 0.5 * residual * residual;
                    continue;
                }
                1 => measurement.clone(),
                _ => resolution.regroup(measurement),
            };
            let axes = measurement.axes.iter().map(axis_key).collect();
            let key = (measurement.clique.clone(), axes);
            alike.entry(key).or_default().push(measurement);
        }
        let mut observations = Self {
            cliques: Vec::new(),
            ranges: Vec::new(),
            views: Vec::new(),
            constant,
        };
        for ((clique, _), group) in alike {
            let domain = match clique.len() {
                1 => domain,
                _ => resolution.domain(),
            };
            observations.push(domain, tree, &clique, &group);
        }
        observations
    }

    /// Adds a view. Views of the same clique are added one after another.
    fn push(
        &mut self,
        domain: &Domain,
        tree: &JunctionTree,
        clique: &Clique,
        group: &[Measurement],
    ) {
        if self.cliques.last() != Some(clique) {
            let size = |&a: &usize| domain.size(a);
            let cells: usize = clique.attributes().iter().map(size).product();
            self.ranges.push(self.cells()..self.cells() + cells);
            self.cliques.push(clique.clone());
        }
        let range = self.ranges.last().cloned().unwrap_or_default();
        let (view, constant) = View::new(domain, tree, group, range, self.values());
        self.views.push(view);
        self.constant += constant;
    }

    /// Returns the number of cells of all measured marginals.
    pub fn cells(&self) -> usize {
        self.ranges.last().map_or(0, |range| range.end)
    }

    /// Returns the number of values of all views.
    pub fn values(&self) -> usize {
        self.views.last().map_or(0, |view| view.values.end)
    }

    /// Sets `merged` to the merged marginals. Sets `residuals` to their differences, once centred,
    /// from the measurements, in units of sigma. Returns the loss.
    pub fn residuals(&self, marginals: &[f64], merged: &mut [f64], residuals: &mut [f64]) -> f64 {
        for view in &self.views {
            let merged = &mut merged[view.values.clone()];
            view.merge(&marginals[view.cells.clone()], merged);
            let residuals = &mut residuals[view.values.clone()];
            residuals.copy_from_slice(merged);
            centre(&view.shape, residuals);
            for (r, y) in residuals.iter_mut().zip(&view.target) {
                *r = (*r - y) * view.precision;
            }
        }
        self.constant + 0.5 * kernel::dot(residuals, residuals)
    }

    /// Adds `-rate` times the gradient of the loss at these residuals to `potentials`.
    pub fn descend(&self, residuals: &[f64], rate: f64, potentials: &mut [f64]) {
        for view in &self.views {
            let step = -rate * view.precision;
            let residuals = &residuals[view.values.clone()];
            view.add_transposed(residuals, step, &mut potentials[view.cells.clone()]);
        }
    }

    /// As [`Observations::descend`], with each value's share divided by its curvature as if the
    /// values were independent counts: merged / sigma^2, and at least 1 / (`floor` sigma).
    pub fn descend_scaled(
        &self,
        residuals: &[f64],
        merged: &[f64],
        (rate, floor): (f64, f64),
        potentials: &mut [f64],
        scratch: &mut Vec<f64>,
    ) {
        for view in &self.views {
            let values = view.values.clone();
            scratch.clear();
            scratch.extend(
                (residuals[values.clone()].iter().zip(&merged[values]))
                    .map(|(residual, merged)| residual / (merged * view.precision + floor)),
            );
            centre(&view.shape, scratch);
            view.add_transposed(scratch, -rate, &mut potentials[view.cells.clone()]);
        }
    }

    /// Divides each value by merged / sigma^2 + 1, the curvature of the dual of a proximal step as
    /// if the values were independent counts.
    pub fn precondition(&self, merged: &[f64], values: &mut [f64]) {
        for view in &self.views {
            let values_of_view = &mut values[view.values.clone()];
            for (x, merged) in values_of_view.iter_mut().zip(&merged[view.values.clone()]) {
                *x /= merged * view.precision * view.precision + 1.0;
            }
            centre(&view.shape, values_of_view);
        }
    }

    /// Returns the attributes of the cliques that differ more from their measurements than noise
    /// accounts for, largest difference first.
    pub fn furthest(&self, residuals: &[f64]) -> Vec<usize> {
        let mut excesses: Vec<(f64, &Clique)> = Vec::new();
        for (clique, cells) in self.cliques.iter().zip(&self.ranges) {
            let views = self.views.iter().filter(|view| view.cells == *cells);
            let excess = views.map(|view| {
                let residuals = &residuals[view.values.clone()];
                0.5 * kernel::dot(residuals, residuals) - residuals.len() as f64
            });
            excesses.push((excess.sum(), clique));
        }
        excesses.retain(|(excess, _)| *excess > 0.0);
        excesses.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let mut attributes = Vec::new();
        for attribute in excesses.iter().flat_map(|(_, clique)| clique.attributes()) {
            if !attributes.contains(attribute) {
                attributes.push(*attribute);
            }
        }
        attributes
    }

    /// Returns the largest entry of the loss's gradient, in absolute value, and the largest
    /// curvature merged / sigma^2.
    pub fn steepest(&self, residuals: &[f64], merged: &[f64]) -> (f64, f64) {
        let (mut slope, mut curvature) = (0.0f64, 0.0f64);
        for view in &self.views {
            let values = view.values.clone();
            for (r, m) in residuals[values.clone()].iter().zip(&merged[values]) {
                slope = slope.max((r * view.precision).abs());
                curvature = curvature.max(m * view.precision * view.precision);
            }
        }
        (slope, curvature)
    }
}

impl View {
    /// Returns the view of the measurements in `group`, which is not empty, and the share of the
    /// loss from their differences from their mean.
    fn new(
        domain: &Domain,
        tree: &JunctionTree,
        group: &[Measurement],
        cells: Range<usize>,
        start: usize,
    ) -> (Self, f64) {
        let attributes = group[0].clique.attributes();
        let sizes = group[0].shape(domain);
        let mut by_rank: Vec<usize> = (0..attributes.len()).collect();
        by_rank.sort_by_key(|&i| tree.rank[attributes[i]]);
        let shape: Vec<(usize, bool)> = (by_rank.iter())
            .map(|&i| (sizes[i], group[0].axes[i].centred))
            .collect();
        let axes: Vec<(usize, &AxisView)> = (by_rank.iter())
            .map(|&i| (domain.size(attributes[i]), &group[0].axes[i]))
            .collect();
        let places = ascending_cells(attributes, &sizes, tree);
        let weight: f64 = group.iter().map(|m| m.sigma.powi(-2)).sum();
        let turned = |m: &Measurement| -> Vec<f64> {
            let mut values = places
                .iter()
                .map(|&place| m.values[place])
                .collect::<Vec<f64>>();
            centre(&shape, &mut values);
            values
        };
        let mut target = vec![0.0; places.len()];
        for m in group {
            let share = m.sigma.powi(-2) / weight;
            target
                .iter_mut()
                .zip(turned(m))
                .for_each(|(t, y)| *t += share * y);
        }
        let spread = |m: &Measurement| -> f64 {
            let squares = target.iter().zip(turned(m)).map(|(t, y)| (y - t) * (y - t));
            0.5 * m.sigma.powi(-2) * squares.sum::<f64>()
        };
        let constant = group.iter().map(spread).sum();
        let view = Self {
            cells,
            values: start..start + target.len(),
            merged: merged_cells(&axes),
            shape,
            target,
            precision: weight.sqrt(),
        };
        (view, constant)
    }

    fn merge(&self, marginal: &[f64], merged: &mut [f64]) {
        match &self.merged {
            None => merged.copy_from_slice(marginal),
            Some(places) => {
                merged.fill(0.0);
                for (&place, x) in places.iter().zip(marginal) {
                    merged[place as usize] += x;
                }
            }
        }
    }

    /// Adds `by` times the transposed map of centred `values` to `cells`.
    fn add_transposed(&self, values: &[f64], by: f64, cells: &mut [f64]) {
        match &self.merged {
            None => cells.iter_mut().zip(values).for_each(|(c, x)| *c += by * x),
            Some(places) => {
                for (&place, cell) in places.iter().zip(cells) {
                    *cell += by * values[place as usize];
                }
            }
        }
    }
}

/// The sort key of a view's axis among views of the same clique.
type AxisKey = (Option<Vec<u32>>, bool);

fn axis_key(axis: &AxisView) -> AxisKey {
    (axis.groups.clone(), axis.centred)
}

/// Returns the axes of `clique` by rank.
pub(crate) fn ranked(clique: &Clique, domain: &Domain, tree: &JunctionTree) -> Vec<Axis> {
    let mut axes: Vec<Axis> = (clique.attributes().iter())
        .map(|&a| Axis {
            rank: tree.rank[a],
            size: domain.size(a),
        })
        .collect();
    axes.sort_by_key(|axis| axis.rank);
    axes
}

/// For each cell of a table with axes in order of rank, returns the cell of the same table with
/// axes in order of `attributes` (ascending). `sizes` are the sizes of `attributes`.
pub(crate) fn ascending_cells(
    attributes: &[usize],
    sizes: &[usize],
    tree: &JunctionTree,
) -> Vec<usize> {
    let mut by_rank: Vec<usize> = (0..attributes.len()).collect();
    by_rank.sort_by_key(|&i| tree.rank[attributes[i]]);
    let mut places = vec![0];
    for i in by_rank {
        let stride: usize = sizes[i + 1..].iter().product();
        places = (places.iter())
            .flat_map(|&place| (0..sizes[i]).map(move |x| place + x * stride))
            .collect();
    }
    places
}

/// Returns the merged cell of each cell, or `None` if no axis is merged. Each axis is given by its
/// size and view.
fn merged_cells(axes: &[(usize, &AxisView)]) -> Option<Vec<u32>> {
    if axes.iter().all(|(_, view)| view.groups.is_none()) {
        return None;
    }
    let mut places = vec![0u32];
    for &(size, view) in axes {
        let groups = view.size(size) as u32;
        let group = |category: usize| match &view.groups {
            Some(groups) => groups[category],
            None => category as u32,
        };
        places = (places.iter())
            .flat_map(|&place| (0..size).map(move |category| place * groups + group(category)))
            .collect();
    }
    Some(places)
}

/// Subtracts the mean along every centred axis of a table. `shape` has (size, centred) for each
/// axis.
fn centre(shape: &[(usize, bool)], table: &mut [f64]) {
    let mut inner = table.len();
    for &(size, centred) in shape {
        let slab = inner;
        inner /= size;
        if !centred {
            continue;
        }
        for slab in table.chunks_exact_mut(slab) {
            for i in 0..inner {
                let line = || (i..size * inner).step_by(inner);
                let mean = line().map(|cell| slab[cell]).sum::<f64>() / size as f64;
                line().for_each(|cell| slab[cell] -= mean);
            }
        }
    }
}
