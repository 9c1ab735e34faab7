//! Groups attributes' categories as finely as the measured tables distinguish them.
//!
//! If every measured table of two or more attributes merges some categories of an attribute, the
//! fitted potentials of these tables are constant within the groups. The junction tree is then
//! built over the groups: given its group, a category depends only on its attribute's potential.
//! The distribution is the same, and the cells of a clique are the product of the numbers of groups
//! instead of categories.

use std::collections::BTreeMap;
use std::ops::Range;

use fhaim_domain::{Clique, Domain};

use crate::{AxisView, Measurement};

/// The groups of every attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolution {
    /// Sizes of the attributes in groups; in categories for attributes that are not split.
    groups: Domain,
    /// The group of each category, for attributes that are split into groups.
    splits: Vec<Option<Vec<u32>>>,
}

impl Resolution {
    /// Returns the coarsest groups that distinguish everything that any measurement of two or more
    /// attributes distinguishes. Attributes without such a measurement are not split.
    pub fn new(domain: &Domain, measurements: &[Measurement]) -> Self {
        let splits = (0..domain.len())
            .map(|a| common_refinement(domain.size(a), &views(a, measurements)))
            .collect();
        Self::with_splits(domain, splits)
    }

    /// Returns the resolution with the given groups of each attribute, numbered without gaps.
    pub fn with_splits(domain: &Domain, splits: Vec<Option<Vec<u32>>>) -> Self {
        let sizes = (splits.iter().zip(domain.sizes())).map(|(split, &size)| match split {
            Some(groups) => groups.iter().max().map_or(0, |&g| g as usize + 1),
            None => size,
        });
        Self {
            groups: Domain::new(sizes.collect()),
            splits,
        }
    }

    /// Returns the domain of the junction tree.
    pub fn domain(&self) -> &Domain {
        &self.groups
    }

    /// Returns the group of each category; `None` if every category is a group.
    pub fn split(&self, attribute: usize) -> Option<&[u32]> {
        self.splits[attribute].as_deref()
    }

    /// Returns the group of each category, for attributes that are split.
    pub fn splits(&self) -> &[Option<Vec<u32>>] {
        &self.splits
    }

    /// Returns the number of cells of the potential over `clique`: one for each category of a
    /// single attribute, and otherwise one for each combination of groups.
    pub fn potential_cells(&self, domain: &Domain, clique: &Clique) -> Option<usize> {
        match clique.len() {
            1 => domain.cells(clique),
            _ => self.groups.cells(clique),
        }
    }

    /// Returns a category of each group.
    pub fn representatives(&self, attribute: usize) -> Vec<usize> {
        let mut categories: Vec<usize> = (0..self.groups.size(attribute)).collect();
        for (category, &group) in self.split(attribute).iter().copied().flatten().enumerate() {
            categories[group as usize] = category;
        }
        categories
    }

    /// Converts a measurement of two or more attributes to one of their groups.
    pub fn regroup(&self, measurement: &Measurement) -> Measurement {
        let attributes = measurement.clique.attributes();
        let axes = (attributes.iter().zip(&measurement.axes))
            .map(|(&a, axis)| AxisView {
                groups: self.regroup_axis(a, axis),
                centred: axis.centred,
            })
            .collect();
        Measurement {
            axes,
            ..measurement.clone()
        }
    }

    fn regroup_axis(&self, attribute: usize, axis: &AxisView) -> Option<Vec<u32>> {
        let measured = axis.groups.as_ref()?;
        let groups: Vec<u32> = (self.representatives(attribute).into_iter())
            .map(|category| measured[category])
            .collect();
        let identity = (0..groups.len() as u32).eq(groups.iter().copied());
        (!identity).then_some(groups)
    }
}

/// Returns the distinct views of one attribute in measurements of two or more attributes.
fn views(attribute: usize, measurements: &[Measurement]) -> Vec<Option<&[u32]>> {
    let mut views: Vec<Option<&[u32]>> = (measurements.iter())
        .filter(|m| m.clique.len() > 1)
        .filter_map(|m| {
            let axis = (m.clique.attributes().iter()).position(|&a| a == attribute)?;
            Some(m.axes[axis].groups.as_deref())
        })
        .collect();
    views.sort_unstable();
    views.dedup();
    views
}

/// Returns the group of each category. Two categories are in the same group if they are in all
/// views. Groups are numbered by their first categories. Returns `None` if there is no view, or
/// every category is a group.
fn common_refinement(size: usize, views: &[Option<&[u32]>]) -> Option<Vec<u32>> {
    let views: Vec<&[u32]> = views.iter().copied().collect::<Option<_>>()?;
    if views.is_empty() {
        return None;
    }
    let mut numbers = BTreeMap::new();
    let groups: Vec<u32> = (0..size)
        .map(|category| {
            let seen: Vec<u32> = views.iter().map(|view| view[category]).collect();
            let next = numbers.len() as u32;
            *numbers.entry(seen).or_insert(next)
        })
        .collect();
    (numbers.len() < size).then_some(groups)
}

/// The range of a measured clique's potential among all of them, and its range among the tree's
/// potentials.
#[derive(Clone, Debug)]
struct CellShare {
    measured: Range<usize>,
    tree: Range<usize>,
    /// The group of each measured cell, for a single attribute that is split.
    split: Option<Vec<u32>>,
}

/// Converts potentials of measured cliques to those of the tree, and the tree's marginals back.
#[derive(Clone, Debug)]
pub(crate) struct Folding {
    parts: Vec<CellShare>,
    /// Potentials of the tree.
    pub potentials: Vec<f64>,
    /// Marginals of the tree.
    pub marginals: Vec<f64>,
}

impl Folding {
    /// Returns a folding of potentials over `cliques`, one after another. Returns `None` if the
    /// tree's potentials are the same.
    pub fn new(domain: &Domain, resolution: &Resolution, cliques: &[Clique]) -> Option<Self> {
        let (mut measured, mut tree) = (0, 0);
        let mut parts = Vec::with_capacity(cliques.len());
        for clique in cliques {
            let (split, cells) = match clique.attributes() {
                &[a] => (resolution.split(a).map(<[u32]>::to_vec), domain.size(a)),
                attributes => (None, table_cells(resolution, attributes)),
            };
            let groups = table_cells(resolution, clique.attributes());
            parts.push(CellShare {
                measured: measured..measured + cells,
                tree: tree..tree + groups,
                split,
            });
            measured += cells;
            tree += groups;
        }
        let needed = parts.iter().any(|part| part.split.is_some());
        needed.then(|| Self {
            parts,
            potentials: vec![0.0; tree],
            marginals: vec![0.0; tree],
        })
    }

    /// Computes the tree's potentials. A group's potential is the logarithm of the sum of its
    /// categories' exponentials.
    pub fn fold(&mut self, measured: &[f64]) {
        for part in &self.parts {
            let from = &measured[part.measured.clone()];
            let to = &mut self.potentials[part.tree.clone()];
            match &part.split {
                None => to.copy_from_slice(from),
                Some(groups) => fold(groups, from, to),
            }
        }
    }

    /// Computes the marginals of the measured cliques from those of the tree. A group's count is
    /// divided among its categories in proportion to the exponentials of their `measured`
    /// potentials.
    pub fn unfold(&self, measured: &[f64], marginals: &mut [f64]) {
        for part in &self.parts {
            let from = &self.marginals[part.tree.clone()];
            let to = &mut marginals[part.measured.clone()];
            let Some(groups) = &part.split else {
                to.copy_from_slice(from);
                continue;
            };
            let folded = &self.potentials[part.tree.clone()];
            let own = &measured[part.measured.clone()];
            for ((x, &group), potential) in to.iter_mut().zip(groups).zip(own) {
                let group = group as usize;
                *x = from[group] * (potential - folded[group]).exp();
            }
        }
    }
}

/// Returns the number of cells of a table over groups. It fits `usize`, because a node of the tree
/// has the table.
fn table_cells(resolution: &Resolution, attributes: &[usize]) -> usize {
    let size = |&a: &usize| resolution.groups.size(a);
    attributes.iter().map(size).product()
}

fn fold(groups: &[u32], categories: &[f64], folded: &mut [f64]) {
    // Relative to the largest value in the same group, so that no group underflows.
    folded.fill(f64::NEG_INFINITY);
    for (&group, &x) in groups.iter().zip(categories) {
        let largest = &mut folded[group as usize];
        *largest = largest.max(x);
    }
    let mut sums = vec![0.0; folded.len()];
    for (&group, &x) in groups.iter().zip(categories) {
        sums[group as usize] += (x - folded[group as usize]).exp();
    }
    for (x, sum) in folded.iter_mut().zip(sums) {
        *x += sum.ln();
    }
}

/// Returns the share of each category in its group, from the potentials of its attribute. Shares
/// are equal without potentials.
pub(crate) fn shares(groups: &[u32], potentials: Option<&[f64]>) -> Vec<f64> {
    let level = vec![0.0; groups.len()];
    let potentials = potentials.unwrap_or(&level);
    let count = groups.iter().max().map_or(0, |&g| g as usize + 1);
    let mut folded = vec![0.0; count];
    fold(groups, potentials, &mut folded);
    (groups.iter().zip(potentials))
        .map(|(&group, x)| (x - folded[group as usize]).exp())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(clique: [usize; 2], groups: [Option<Vec<u32>>; 2]) -> Measurement {
        Measurement {
            clique: Clique::new(clique),
            axes: groups
                .map(|groups| AxisView {
                    groups,
                    centred: false,
                })
                .into(),
            values: Vec::new(),
            sigma: 1.0,
        }
    }

    #[test]
    fn groups_are_the_common_refinement_of_all_views() {
        let domain = Domain::new(vec![4, 4, 3, 5]);
        let measurements = [
            grouped([0, 1], [Some(vec![0, 0, 1, 1]), Some(vec![0, 1, 1, 1])]),
            grouped([1, 2], [Some(vec![1, 0, 0, 1]), None]),
            Measurement::cells(Clique::new([0]), vec![0.0; 4], 1.0),
        ];
        let resolution = Resolution::new(&domain, &measurements);
        assert_eq!(resolution.split(0), Some(&[0, 0, 1, 1][..]));
        assert_eq!(resolution.split(1), Some(&[0, 1, 1, 2][..]));
        // Attribute 2 keeps its categories; attribute 3 is in no table of two attributes.
        assert_eq!((resolution.split(2), resolution.split(3)), (None, None));
        assert_eq!(resolution.domain().sizes(), [2, 3, 3, 5]);
        assert_eq!(resolution.representatives(1), [0, 2, 3]);
        let regrouped = resolution.regroup(&measurements[1]);
        assert_eq!(regrouped.axes[0].groups, Some(vec![1, 0, 1]));
        assert_eq!(regrouped.axes[1].groups, None);
        assert_eq!(resolution.regroup(&measurements[0]).axes[0].groups, None);
    }

    #[test]
    fn folding_keeps_groups_far_below_others() {
        let groups = [0, 1, 0, 1];
        let potentials = [0.0, -2000.0, 2.0f64.ln(), -2000.0];
        let mut folded = [0.0; 2];
        fold(&groups, &potentials, &mut folded);
        assert!((folded[0] - 3.0f64.ln()).abs() < 1e-12);
        assert!((folded[1] + 2000.0 - 2.0f64.ln()).abs() < 1e-9);
        let shares = shares(&groups, Some(&potentials));
        for (share, expected) in shares.iter().zip([1.0 / 3.0, 0.5, 2.0 / 3.0, 0.5]) {
            assert!((share - expected).abs() < 1e-12);
        }
    }
}
