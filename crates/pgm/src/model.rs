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
    /// For attributes that are split, the share of each category in its group.
    pub(crate) shares: Vec<Option<Vec<f64>>>,
    pub(crate) tree: JunctionTree,
    pub(crate) propagation: Propagation,
    pub(crate) beliefs: Beliefs,
    pub(crate) total: f64,
    pub(crate) potentials: Potentials,
    pub(crate) report: FitReport,
    /// Pairs that the tree has no room for.
    pub(crate) extra_pairs: ExtraPairs,
    /// Pairs that the tree has a measurement of, as [`ExtraPairs`] has the others; empty until somebody asks.
    pub(crate) measured: OnceLock<Arc<ExtraPairs>>,
    /// Most bytes that a query may take.
    pub(crate) max_bytes: usize,
}

/// Log-potentials of the measured cliques.
#[derive(Clone, Debug)]
pub(crate) struct Potentials {
    /// Ascending.
    pub cliques: Vec<Clique>,
    /// Place of each clique's table.
    pub ranges: Vec<Range<usize>>,
    /// Axes by rank, over groups; over categories for a single attribute.
    pub tables: Vec<f64>,
}

impl Potentials {
    /// The table of a clique.
    pub fn of(&self, clique: &Clique) -> Option<&[f64]> {
        let i = self.cliques.binary_search(clique).ok()?;
        Some(&self.tables[self.ranges[i].clone()])
    }
}

impl Model {
    /// The domain it was fitted over.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Number of records: what every marginal sums to.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// The loss at the end of the fit.
    pub fn loss(&self) -> f64 {
        self.report.loss
    }

    /// How the fit went.
    pub fn report(&self) -> FitReport {
        FitReport {
            cells: self.propagation.cells(),
            ..self.report
        }
    }

    /// The cliques of the junction tree, parents before children: marginals within one of them
    /// are sums of its cells, others take elimination. The tree is over groups of categories where
    /// no measurement of several attributes tells them apart.
    pub fn cliques(&self) -> impl Iterator<Item = Clique> + '_ {
        self.tree.nodes.iter().map(|node| node.clique())
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let shares: usize = self.shares.iter().flatten().map(Vec::len).sum();
        let own = shares + self.potentials.tables.len();
        self.propagation.bytes() + own * size_of::<f64>() + self.extra_pairs.bytes()
    }

    /// Expected counts over `clique`, row-major (the last attribute varies fastest); they sum to
    /// the total. Of a pair beside the tree its table; within a clique of the tree this is a sum, across cliques an
    /// elimination along the paths between them.
    ///
    /// # Errors
    /// A clique with an attribute that the domain does not have, or an elimination that takes
    /// more bytes than the fit was allowed.
    pub fn marginal(&self, clique: &Clique) -> Result<Vec<f64>, Error> {
        check_clique(clique, &self.domain)?;
        match self.extra_pairs.of(clique) {
            Some(counts) => Ok(counts.to_vec()),
            None => self.marginal_of_tree(clique),
        }
    }

    /// [`Model::marginal`] of a clique of the domain, as the tree has it.
    pub(crate) fn marginal_of_tree(&self, clique: &Clique) -> Result<Vec<f64>, Error> {
        let axes = ranked(clique, self.resolution.domain(), &self.tree);
        let table = match self.propagation.marginal(&self.beliefs, &axes) {
            Some(table) => table,
            None => self.eliminate(&axes)?,
        };
        self.expand(clique, &table)
    }

    /// A table over groups with its axes by rank, turned into one over categories with its axes
    /// by attribute.
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

    /// A table over groups (or one attribute) with its axes turned from the order of rank to that
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

    /// Whether a table over `clique` is within the model's limit.
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
