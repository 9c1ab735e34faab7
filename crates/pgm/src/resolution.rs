//! Attributes at the resolution that measured tables look at them.
//!
//! Where every measured table of two or more attributes merges categories of an attribute, fitted
//! potentials of such tables are constant within its groups. Then the junction tree is built over
//! the groups: given its group, a category depends on nothing but the potential of its own
//! attribute. The distribution is the same, and a clique has the product of the numbers of groups
//! as cells, not that of the categories.

use std::collections::BTreeMap;
use std::ops::Range;

use fhaim_domain::{Clique, Domain};

use crate::{AxisView, Measurement};

/// The groups of every attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resolution {
    /// Sizes of the attributes in groups; the categories of those that are not split.
    groups: Domain,
    /// The group of each category, for attributes that are split.
    splits: Vec<Option<Vec<u32>>>,
}

impl Resolution {
    /// The coarsest groups that tell apart what any measurement of two or more attributes does.
    /// Attributes in none are not split.
    pub fn new(domain: &Domain, measurements: &[Measurement]) -> Self {
        let splits = (0..domain.len())
            .map(|a| common_refinement(domain.size(a), &views(a, measurements)))
            .collect();
        Self::with_splits(domain, splits)
    }

    /// The given groups of each attribute, numbered without gaps.
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

    /// The domain of the junction tree.
    pub fn domain(&self) -> &Domain {
        &self.groups
    }

    /// The group of each category; `None` if every category is a group.
    pub fn split(&self, attribute: usize) -> Option<&[u32]> {
        self.splits[attribute].as_deref()
    }

    /// The group of each category, for attributes that are split.
    pub fn splits(&self) -> &[Option<Vec<u32>>] {
        &self.splits
    }

    /// Cells of the potential over `clique`: one for each category of an attribute by itself,
    /// else one for each combination of groups.
    pub fn potential_cells(&self, domain: &Domain, clique: &Clique) -> Option<usize> {
        match clique.len() {
            1 => domain.cells(clique),
            _ => self.groups.cells(clique),
        }
    }

    /// A category of each group.
    pub fn representatives(&self, attribute: usize) -> Vec<usize> {
        let mut categories: Vec<usize> = (0..self.groups.size(attribute)).collect();
        for (category, &group) in self.split(attribute).iter().copied().flatten().enumerate() {
            categories[group as usize] = category;
        }
        categories
    }

    /// A measurement of two or more attributes as one of their groups.
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

/// The distinct ways in which measurements of two or more attributes see one of them.
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

/// The group of each category if two categories are together wherever all views have them
/// together; `None` if there is no view or that leaves every category alone. Groups are numbered
/// by their first categories.
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

/// Where a measured clique's potential is in a list of all, and what the tree sees of it.
#[derive(Clone, Debug)]
struct CellShare {
    measured: Range<usize>,
    tree: Range<usize>,
    /// The group of each measured cell, for an attribute by itself that is split.
    split: Option<Vec<u32>>,
}

/// Potentials of measured cliques, turned into those of the tree and back into marginals.
#[derive(Clone, Debug)]
pub(crate) struct Folding {
    parts: Vec<CellShare>,
    /// Potentials of the tree.
    pub potentials: Vec<f64>,
    /// Marginals of the tree.
    pub marginals: Vec<f64>,
}

impl Folding {
    /// A folding of potentials over `cliques`, one after another; `None` where the tree has them
    /// as they are.
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

    /// Sets the tree's potentials: a group's is the logarithm of the sum of its categories'
    /// exponentials.
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

    /// Sets the marginals of the measured cliques from those of the tree: categories share their
    /// group's in proportion to the exponentials of their `measured` potentials.
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

/// Cells of a table over groups; within `usize`, since the tree has it in a node.
fn table_cells(resolution: &Resolution, attributes: &[usize]) -> usize {
    let size = |&a: &usize| resolution.groups.size(a);
    attributes.iter().map(size).product()
}

fn fold(groups: &[u32], categories: &[f64], folded: &mut [f64]) {
    // Relative to the largest of its own group, so that no group underflows.
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

/// The share of each category in its group, from the potentials of its attribute (`None` if it
/// has no potential: equal shares).
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
    fn groups_are_as_fine_as_the_finest_views_together() {
        let domain = Domain::new(vec![4, 4, 3, 5]);
        let measurements = [
            grouped([0, 1], [Some(vec![0, 0, 1, 1]), Some(vec![0, 1, 1, 1])]),
            grouped([1, 2], [Some(vec![1, 0, 0, 1]), None]),
            Measurement::cells(Clique::new([0]), vec![0.0; 4], 1.0),
        ];
        let resolution = Resolution::new(&domain, &measurements);
        assert_eq!(resolution.split(0), Some(&[0, 0, 1, 1][..]));
        assert_eq!(resolution.split(1), Some(&[0, 1, 1, 2][..]));
        // One keeps its categories, one is in no table of two attributes.
        assert_eq!((resolution.split(2), resolution.split(3)), (None, None));
        assert_eq!(resolution.domain().sizes(), [2, 3, 3, 5]);
        assert_eq!(resolution.representatives(1), [0, 2, 3]);
        let regrouped = resolution.regroup(&measurements[1]);
        assert_eq!(regrouped.axes[0].groups, Some(vec![1, 0, 1]));
        assert_eq!(regrouped.axes[1].groups, None);
        assert_eq!(resolution.regroup(&measurements[0]).axes[0].groups, None);
    }

    #[test]
    fn folded_sums_keep_groups_that_are_far_below_others() {
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
