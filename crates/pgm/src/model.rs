//! A fitted model and its marginals.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use fhaim_domain::{Clique, Domain};

use crate::extra_pairs::ExtraPairs;
use crate::junction::JunctionTree;
use crate::measurement::check_clique;
use crate::observations::{ascending_cells, ranked};
use crate::propagation::{Beliefs, Propagation};
use crate::resolution::Resolution;
use crate::{Error, FitReport};

/// A distribution over a domain that factors over a junction tree, scaled to a number of records.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) domain: Domain,
    /// The groups that the tree is over.
    pub(crate) resolution: Resolution,
    /// Each category's share of its group, for attributes whose categories are grouped.
    pub(crate) shares: Vec<Option<Vec<f64>>>,
    pub(crate) tree: JunctionTree,
    pub(crate) propagation: Propagation,
    pub(crate) beliefs: Beliefs,
    pub(crate) total: f64,
    pub(crate) potentials: Potentials,
    pub(crate) report: FitReport,
    /// Pairs for which the tree has no room.
    pub(crate) extra_pairs: ExtraPairs,
    /// Tables of the pairs that the tree has a measurement of; empty until they are needed.
    pub(crate) measured: OnceLock<Arc<ExtraPairs>>,
    /// Largest number of bytes that a query may take.
    pub(crate) max_bytes: usize,
}

/// Log-potentials of the measured cliques.
#[derive(Clone, Debug)]
pub(crate) struct Potentials {
    /// The measured cliques, ascending.
    pub cliques: Vec<Clique>,
    /// Range of each clique's table in `tables`.
    pub ranges: Vec<Range<usize>>,
    /// The tables, with axes by rank, over groups; over categories for a single attribute.
    pub tables: Vec<f64>,
}

impl Potentials {
    /// Returns the table of a clique.
    pub fn of(&self, clique: &Clique) -> Option<&[f64]> {
        let i = self.cliques.binary_search(clique).ok()?;
        Some(&self.tables[self.ranges[i].clone()])
    }
}

impl Model {
    /// Returns the domain of the fit.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Returns the number of records, which is the sum of every marginal.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Returns the final loss of the fit.
    pub fn loss(&self) -> f64 {
        self.report.loss
    }

    /// Returns the report of the fit.
    pub fn report(&self) -> FitReport {
        FitReport {
            cells: self.propagation.cells(),
            ..self.report
        }
    }

    /// Returns the cliques of the junction tree, parents before children. A marginal within one of
    /// them is a sum of its cells; other marginals need an elimination. The tree is over groups of
    /// categories if no measurement of several attributes distinguishes the categories.
    pub fn cliques(&self) -> impl Iterator<Item = Clique> + '_ {
        self.tree.nodes.iter().map(|node| node.clique())
    }

    /// Returns the model's size in bytes.
    pub fn bytes(&self) -> usize {
        let shares: usize = self.shares.iter().flatten().map(Vec::len).sum();
        let own = shares + self.potentials.tables.len();
        self.propagation.bytes() + own * size_of::<f64>() + self.extra_pairs.bytes()
    }

    /// Returns the expected counts over `clique`, row-major (the last attribute varies fastest).
    /// They add up to the total.
    ///
    /// The marginal of an extra pair is its table. Within a clique of the tree, a marginal is a
    /// sum; across cliques, it is an elimination along the paths between them.
    ///
    /// # Errors
    /// The clique has an attribute that the domain does not have, or the elimination takes more
    /// bytes than the fit was allowed.
    pub fn marginal(&self, clique: &Clique) -> Result<Vec<f64>, Error> {
        check_clique(clique, &self.domain)?;
        match self.extra_pairs.of(clique) {
            Some(counts) => Ok(counts.to_vec()),
            None => self.marginal_of_tree(clique),
        }
    }

    /// As [`Model::marginal`], for a clique of the domain, from the tree only.
    pub(crate) fn marginal_of_tree(&self, clique: &Clique) -> Result<Vec<f64>, Error> {
        let axes = ranked(clique, self.resolution.domain(), &self.tree);
        let table = match self.propagation.marginal(&self.beliefs, &axes) {
            Some(table) => table,
            None => self.eliminate(&axes)?,
        };
        self.expand(clique, &table)
    }

    /// Converts a table over groups with axes by rank to one over categories with axes by
    /// attribute.
    pub(crate) fn expand(&self, clique: &Clique, table: &[f64]) -> Result<Vec<f64>, Error> {
        let attributes = clique.attributes();
        let mut marginal = self.by_attribute(clique, table);
        if attributes.iter().all(|&a| self.shares[a].is_none()) {
            return Ok(marginal);
        }
        self.check_cells(clique, self.domain.cells(clique))?;
        let mut inner = marginal.len();
        for &a in attributes {
            let size = self.resolution.domain().size(a);
            inner /= size;
            if let (Some(groups), Some(shares)) = (self.resolution.split(a), &self.shares[a]) {
                marginal = expand_axis(&marginal, size * inner, inner, groups, shares);
            }
        }
        Ok(marginal)
    }

    /// Reorders the axes of a table over groups (or one attribute) from the order of rank to that
    /// of attributes.
    pub(crate) fn by_attribute(&self, clique: &Clique, table: &[f64]) -> Vec<f64> {
        let attributes = clique.attributes();
        if attributes.len() == 1 {
            return table.to_vec();
        }
        let size = |&a: &usize| self.resolution.domain().size(a);
        let sizes: Vec<usize> = attributes.iter().map(size).collect();
        let places = ascending_cells(attributes, &sizes, &self.tree);
        let mut turned = vec![0.0; table.len()];
        for (&place, &x) in places.iter().zip(table) {
            turned[place] = x;
        }
        turned
    }

    /// Checks that a table over `clique` is within the model's limit.
    pub(crate) fn check_cells(&self, clique: &Clique, cells: Option<usize>) -> Result<(), Error> {
        let bytes = cells.and_then(|cells| cells.checked_mul(size_of::<f64>()));
        if bytes.is_some_and(|bytes| bytes <= self.max_bytes) {
            return Ok(());
        }
        Err(Error::TooLarge {
            bytes,
            cap: self.max_bytes,
            largest: clique.clone(),
            cells,
        })
    }
}

/// Splits the groups of one axis of a table into categories, each with its share. A slab is all
/// groups of the axis, a row all cells of one group.
fn expand_axis(table: &[f64], slab: usize, row: usize, groups: &[u32], shares: &[f64]) -> Vec<f64> {
    let mut expanded = Vec::with_capacity(table.len() / slab * groups.len() * row);
    for slab in table.chunks_exact(slab) {
        for (&group, &share) in groups.iter().zip(shares) {
            let cells = &slab[group as usize * row..][..row];
            expanded.extend(cells.iter().map(|x| x * share));
        }
    }
    expanded
}
