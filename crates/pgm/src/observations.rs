//! The loss of a model's marginals against the measurements, and its gradient.

use std::collections::BTreeMap;

use fhaim_domain::{Clique, Domain};

use crate::junction::JunctionTree;
use crate::table::{Axis, cells};
use crate::{AxisView, Measurement};

/// Measurements grouped by clique, with their tables turned to the order of rank.
#[derive(Clone, Debug)]
pub(crate) struct Observations {
    /// Measured cliques (the empty one left out), each once; ascending.
    pub cliques: Vec<Clique>,
    /// Axes of each clique by rank.
    pub axes: Vec<Vec<Axis>>,
    blocks: Vec<Block>,
    /// Loss of the measurements of the total, which no marginal can change.
    constant: f64,
    /// Memory for the largest merged table.
    scratch: Vec<f64>,
}

/// One measurement.
#[derive(Clone, Debug)]
struct Block {
    /// First and last (exclusive) cell of its clique's marginal among all.
    start: usize,
    end: usize,
    /// Merged cell of each cell; `None` keeps them.
    merged: Option<Vec<u32>>,
    /// The merged shape, and which axes are centred.
    axes: Vec<(usize, bool)>,
    /// The values, projected.
    target: Vec<f64>,
    /// 1 / sigma^2.
    weight: f64,
}

/// Axes of `clique` by rank.
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

/// For each cell of a table whose axes are in order of rank, the cell of the same table with its
/// axes in order of `attributes` (ascending). `sizes` belong to `attributes`.
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

impl Observations {
    /// Prepares checked measurements; the loss will be that of a model with `total` records.
    pub fn new(
        domain: &Domain,
        tree: &JunctionTree,
        measurements: &[Measurement],
        total: f64,
    ) -> Self {
        let mut starts: BTreeMap<&Clique, usize> = (measurements.iter())
            .filter(|m| !m.clique.is_empty())
            .map(|m| (&m.clique, 0))
            .collect();
        let mut end = 0;
        let mut axes = Vec::with_capacity(starts.len());
        for (clique, start) in &mut starts {
            *start = end;
            let ranked = ranked(clique, domain, tree);
            end += cells(&ranked);
            axes.push(ranked);
        }
        let mut constant = 0.0;
        let mut blocks = Vec::with_capacity(measurements.len());
        for measurement in measurements {
            match starts.get(&measurement.clique) {
                Some(&start) => blocks.push(Block::new(domain, tree, measurement, start)),
                None => {
                    let residual = (total - measurement.values[0]) / measurement.sigma;
                    constant += 0.5 * residual * residual;
                }
            }
        }
        let largest = blocks.iter().map(|b| b.target.len()).max().unwrap_or(0);
        Self {
            cliques: starts.into_keys().cloned().collect(),
            axes,
            blocks,
            constant,
            scratch: vec![0.0; largest],
        }
    }

    /// Cells of all measured marginals together.
    pub fn len(&self) -> usize {
        self.axes.iter().map(|axes| cells(axes)).sum()
    }

    /// Loss of the marginals; sets `gradient` to its gradient.
    pub fn loss(&mut self, marginals: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        let mut loss = self.constant;
        for block in &self.blocks {
            let residual = &mut self.scratch[..block.target.len()];
            block.project(&marginals[block.start..block.end], residual);
            let mut squares = 0.0;
            for (r, y) in residual.iter_mut().zip(&block.target) {
                *r -= y;
                squares += *r * *r;
                *r *= block.weight;
            }
            loss += 0.5 * block.weight * squares;
            block.scatter(residual, &mut gradient[block.start..block.end]);
        }
        loss
    }
}

impl Block {
    fn new(domain: &Domain, tree: &JunctionTree, measurement: &Measurement, start: usize) -> Self {
        let attributes = measurement.clique.attributes();
        let shape = measurement.shape(domain);
        let mut target: Vec<f64> = ascending_cells(attributes, &shape, tree)
            .into_iter()
            .map(|cell| measurement.values[cell])
            .collect();
        let mut by_rank: Vec<usize> = (0..attributes.len()).collect();
        by_rank.sort_by_key(|&i| tree.rank[attributes[i]]);
        let axes: Vec<(usize, bool)> = (by_rank.iter())
            .map(|&i| (shape[i], measurement.axes[i].centred))
            .collect();
        centre(&axes, &mut target);
        let views: Vec<(usize, &AxisView)> = (by_rank.iter())
            .map(|&i| (domain.size(attributes[i]), &measurement.axes[i]))
            .collect();
        let cells: usize = views.iter().map(|&(size, _)| size).product();
        Self {
            start,
            end: start + cells,
            merged: merged_cells(&views),
            axes,
            target,
            weight: 1.0 / (measurement.sigma * measurement.sigma),
        }
    }

    /// The measured view of a marginal: merged and centred.
    fn project(&self, marginal: &[f64], view: &mut [f64]) {
        match &self.merged {
            None => view.copy_from_slice(marginal),
            Some(merged) => {
                view.fill(0.0);
                for (&cell, x) in merged.iter().zip(marginal) {
                    view[cell as usize] += x;
                }
            }
        }
        centre(&self.axes, view);
    }

    /// The transpose of [`Block::project`] for views that are centred already; adds.
    fn scatter(&self, view: &[f64], gradient: &mut [f64]) {
        match &self.merged {
            None => crate::kernel::add(gradient, view),
            Some(merged) => {
                for (&cell, g) in merged.iter().zip(gradient) {
                    *g += view[cell as usize];
                }
            }
        }
    }
}

/// The merged cell of each cell, or `None` where no axis is merged.
fn merged_cells(views: &[(usize, &AxisView)]) -> Option<Vec<u32>> {
    if views.iter().all(|(_, view)| view.groups.is_none()) {
        return None;
    }
    let mut places = vec![0u32];
    for &(size, view) in views {
        let groups = view.size(size) as u32;
        places = (places.iter())
            .flat_map(|&place| {
                (0..size).map(move |category| {
                    let group = match &view.groups {
                        Some(groups) => groups[category],
                        None => category as u32,
                    };
                    place * groups + group
                })
            })
            .collect();
    }
    Some(places)
}

/// Takes the mean out along every centred axis of a table: (size, centred) for each axis.
fn centre(axes: &[(usize, bool)], table: &mut [f64]) {
    let mut inner = table.len();
    for &(size, centred) in axes {
        let slab = inner;
        inner /= size;
        if !centred {
            continue;
        }
        for slab in table.chunks_exact_mut(slab) {
            for i in 0..inner {
                let mean = (0..size).map(|x| slab[x * inner + i]).sum::<f64>() / size as f64;
                (0..size).for_each(|x| slab[x * inner + i] -= mean);
            }
        }
    }
}
