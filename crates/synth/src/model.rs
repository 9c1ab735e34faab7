//! A fitted model as everyone but its own generator sees it, and what such a model may be able to
//! do beside giving records.

use std::fmt;
use std::sync::Arc;

use fhaim_domain::{Clique, Domain};
use fhaim_pgm::FitReport;
use rand::RngCore;
use thiserror::Error;

/// What a generator leaves behind: synthetic records. They, and all else it tells, cost no more
/// privacy than the releases that it was fitted to.
///
/// Marginals, conditions and densities are capabilities: a model that has one says so, and gives
/// it behind a trait of its own.
pub trait FittedModel: fmt::Debug + Send + Sync {
    /// The domain of its records.
    fn domain(&self) -> &Domain;

    /// The number of records that it stands for, at least 0.
    fn total(&self) -> f64;

    /// Bytes that it holds in memory.
    fn bytes(&self) -> usize;

    /// Columns of `records` synthetic records, by attribute, as codes of the domain. The same
    /// generator in the same state gives the same records.
    fn sample(&self, records: usize, rng: &mut dyn RngCore) -> Vec<Vec<u32>>;

    /// The model as bytes, for [`crate::load_model`]. They begin with the magic of its format.
    fn save(&self) -> Vec<u8>;

    /// How its fit went, if it was fitted in steps.
    fn fit(&self) -> Option<FitReport> {
        None
    }

    /// Its marginals, if it can tell them.
    fn marginals(&self) -> Option<&dyn Marginals> {
        None
    }

    /// What it is given values of some attributes, if it can tell that.
    fn conditions(&self) -> Option<&dyn Conditions> {
        None
    }

    /// Its density, if it has one that can be worked out.
    fn density(&self) -> Option<&dyn Density> {
        None
    }
}

/// A model whose marginals can be worked out.
pub trait Marginals {
    /// Cliques whose marginals it holds, as their attributes: the others take longer.
    fn cliques(&self) -> Vec<Clique>;

    /// Expected counts over a clique, row-major (the last attribute varies fastest); they sum to
    /// the total.
    ///
    /// # Errors
    /// A clique outside the domain, or one whose marginal takes more memory than allowed.
    fn marginal(&self, clique: &Clique) -> Result<Vec<f64>, ModelError>;

    /// [`Marginals::marginal`] of many cliques, in their order.
    ///
    /// # Errors
    /// As [`Marginals::marginal`].
    fn marginals_of(&self, cliques: &[Clique]) -> Result<Vec<Vec<f64>>, ModelError> {
        cliques.iter().map(|clique| self.marginal(clique)).collect()
    }
}

/// A model that can be asked about the records with some values: its conditional marginals are
/// the marginals of what it gives.
pub trait Conditions {
    /// The model of the records that have each attribute's value, scaled to the same total.
    ///
    /// # Errors
    /// [`ModelError::Impossible`] for the first condition that next to none of the records meet
    /// which meet those before it; an attribute or a value outside the domain.
    fn given(&self, conditions: &[(usize, u32)]) -> Result<Arc<dyn FittedModel>, ModelError>;
}

/// A model that can tell how likely a record is.
pub trait Density {
    /// ln p(x) of each record x, for records given as columns of codes, one for each attribute;
    /// minus infinity for a record that the model deems impossible.
    ///
    /// # Errors
    /// Columns that are not those of records over the domain.
    fn log_densities(&self, columns: &[Vec<u32>]) -> Result<Vec<f64>, ModelError>;
}

/// Why a model could not be read or asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A condition that next to no record meets.
    #[error("the model has no records whose attribute {attribute} is {value}, given the others")]
    Impossible {
        /// Index of the attribute.
        attribute: usize,
        /// The value asked for.
        value: usize,
    },
    /// Bytes of no format that is known here.
    #[error("not a saved model of a known format")]
    UnknownFormat,
    /// What the generator itself refuses.
    #[error(transparent)]
    Generator(Box<dyn std::error::Error + Send + Sync>),
}

impl ModelError {
    /// Wraps a generator's own error.
    pub fn generator(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Generator(error.into())
    }
}
