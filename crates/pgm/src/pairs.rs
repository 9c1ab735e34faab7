//! Many marginals at once.

use fhaim_domain::Clique;

use crate::{Error, Model};

impl Model {
    /// The marginals over many cliques, in their order; see [`Model::marginal`].
    ///
    /// # Errors
    /// As [`Model::marginal`].
    pub fn pair_marginals(&self, cliques: &[Clique]) -> Result<Vec<Vec<f64>>, Error> {
        cliques.iter().map(|clique| self.marginal(clique)).collect()
    }
}
