//! A fitted model and its marginals.

use fhaim_domain::{Clique, Domain};

use crate::junction::JunctionTree;
use crate::measurement::check_clique;
use crate::observations::{ascending_cells, ranked};
use crate::propagation::{Beliefs, Propagation};
use crate::{Error, FitReport};

/// A distribution over a domain that factors over a junction tree, scaled to a number of records.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) domain: Domain,
    pub(crate) tree: JunctionTree,
    pub(crate) propagation: Propagation,
    pub(crate) beliefs: Beliefs,
    pub(crate) total: f64,
    /// Cliques of the potentials.
    pub(crate) cliques: Vec<Clique>,
    /// One table for each of them, axes by rank.
    pub(crate) potentials: Vec<f64>,
    pub(crate) report: FitReport,
    /// Most bytes that a query may take.
    pub(crate) max_bytes: usize,
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
        self.report
    }

    /// The cliques of the junction tree, parents before children: marginals within one of them
    /// are sums of its cells, others take elimination.
    pub fn cliques(&self) -> impl Iterator<Item = Clique> + '_ {
        self.tree.nodes.iter().map(|node| node.clique())
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.propagation.bytes() + size_of_val(self.potentials.as_slice())
    }

    /// Expected counts over `clique`, row-major (the last attribute varies fastest); they sum to
    /// the total. Within a clique of the tree this is a sum, across cliques an elimination along
    /// the paths between them.
    ///
    /// # Errors
    /// A clique with an attribute that the domain does not have, or an elimination that takes
    /// more bytes than the fit was allowed.
    pub fn marginal(&self, clique: &Clique) -> Result<Vec<f64>, Error> {
        check_clique(clique, &self.domain)?;
        let axes = ranked(clique, &self.domain, &self.tree);
        let table = match self.propagation.marginal(&self.beliefs, &axes) {
            Some(table) => table,
            None => self.eliminate(&axes)?,
        };
        Ok(self.ascending(clique, &table))
    }

    /// A table with its axes turned from the order of rank to that of the attributes.
    pub(crate) fn ascending(&self, clique: &Clique, table: &[f64]) -> Vec<f64> {
        let attributes = clique.attributes();
        let sizes: Vec<usize> = attributes.iter().map(|&a| self.domain.size(a)).collect();
        let places = ascending_cells(attributes, &sizes, &self.tree);
        let mut marginal = vec![0.0; table.len()];
        places
            .iter()
            .zip(table)
            .for_each(|(&place, &x)| marginal[place] = x);
        marginal
    }
}
