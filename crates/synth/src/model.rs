//! The interface of fitted models, and the further capabilities that a model may have.

use std::fmt;
use std::sync::Arc;

use fhaim_domain::{Clique, Domain};
use fhaim_pgm::FitReport;
use rand::RngCore;
use thiserror::Error;

/// A fitted model that draws synthetic records. The records, and all other results, cost no more
/// privacy than the releases that the model was fitted to.
///
/// Marginals, conditions and densities are optional capabilities. A model returns each one that it
/// has as a separate trait.
pub trait FittedModel: fmt::Debug + Send + Sync {
    /// Returns the domain of the records.
    fn domain(&self) -> &Domain;

    /// Returns the number of records that the model stands for, at least 0.
    fn total(&self) -> f64;

    /// Returns the model's size in memory, in bytes.
    fn bytes(&self) -> usize;

    /// Draws `records` synthetic records, as one column of domain codes for each attribute. The
    /// same generator in the same state gives the same records.
    fn sample(&self, records: usize, rng: &mut dyn RngCore) -> Vec<Vec<u32>>;

    /// Serializes the model for [`crate::load_model`]. The bytes begin with the magic of the
    /// format.
    fn save(&self) -> Vec<u8>;

    /// Returns a report of the fit, if the model was fitted iteratively.
    fn fit(&self) -> Option<FitReport> {
        None
    }

    /// Returns the model's marginals, if it supports them.
    fn marginals(&self) -> Option<&dyn Marginals> {
        None
    }

    /// Returns the interface to condition the model on values of attributes, if it supports that.
    fn conditions(&self) -> Option<&dyn Conditions> {
        None
    }

    /// Returns the model's density, if it can be computed.
    fn density(&self) -> Option<&dyn Density> {
        None
    }
}

/// A model whose marginals can be computed.
pub trait Marginals {
    /// Returns the cliques whose marginals are stored. Other marginals take longer.
    fn cliques(&self) -> Vec<Clique>;

    /// Returns the expected counts over a clique, row-major (the last attribute varies fastest).
    /// They add up to the total.
    ///
    /// # Errors
    /// The clique is outside the domain, or its marginal takes more memory than allowed.
    fn marginal(&self, clique: &Clique) -> Result<Vec<f64>, ModelError>;

    /// Returns the marginals of several cliques, in their order.
    ///
    /// # Errors
    /// As [`Marginals::marginal`].
    fn marginals_of(&self, cliques: &[Clique]) -> Result<Vec<Vec<f64>>, ModelError> {
        cliques.iter().map(|clique| self.marginal(clique)).collect()
    }
}

/// A model that can be conditioned on values of attributes. Conditional marginals are the marginals
/// of the conditioned model.
pub trait Conditions {
    /// Returns the model of the records that have the given value of each attribute, scaled to the
    /// same total.
    ///
    /// # Errors
    /// [`ModelError::Impossible`] for the first condition that almost no record meets together with
    /// the preceding ones; an error for an attribute or a value outside the domain.
    fn given(&self, conditions: &[(usize, u32)]) -> Result<Arc<dyn FittedModel>, ModelError>;
}

/// A model that can compute the probability of a record.
pub trait Density {
    /// Returns ln p(x) of each record x, and minus infinity for a record with a value that a
    /// condition rules out. Records are given as columns of codes, one for each attribute.
    ///
    /// # Errors
    /// The columns are not those of records over the domain.
    fn log_densities(&self, columns: &[Vec<u32>]) -> Result<Vec<f64>, ModelError>;
}

/// The reason why a model could not be read or queried.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Almost no record meets the condition.
    #[error(
        "no record of the model has value {value} in attribute {attribute} and meets the preceding conditions"
    )]
    Impossible {
        /// Index of the attribute.
        attribute: usize,
        /// The requested value.
        value: usize,
    },
    /// The bytes have no known format.
    #[error("not a saved model of a known format")]
    UnknownFormat,
    /// An error of the generator.
    #[error(transparent)]
    Generator(Box<dyn std::error::Error + Send + Sync>),
}

impl ModelError {
    /// Wraps an error of a generator.
    pub fn generator(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Generator(error.into())
    }
}
