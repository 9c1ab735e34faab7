//! Implements the fitted-model traits for graphical models, which have marginals, conditions and a
//! density.

use std::sync::Arc;

use fhaim_domain::{Clique, Domain};
use fhaim_pgm::{FitReport, Model};
use rand::RngCore;

use crate::model::{Conditions, Density, FittedModel, Marginals, ModelError};

impl FittedModel for Model {
    fn domain(&self) -> &Domain {
        Self::domain(self)
    }

    fn total(&self) -> f64 {
        Self::total(self)
    }

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }

    fn sample(&self, records: usize, rng: &mut dyn RngCore) -> Vec<Vec<u32>> {
        Self::sample(self, records, rng)
    }

    fn save(&self) -> Vec<u8> {
        Self::save(self)
    }

    fn fit(&self) -> Option<FitReport> {
        Some(self.report())
    }

    fn marginals(&self) -> Option<&dyn Marginals> {
        Some(self)
    }

    fn conditions(&self) -> Option<&dyn Conditions> {
        Some(self)
    }

    fn density(&self) -> Option<&dyn Density> {
        Some(self)
    }
}

impl Marginals for Model {
    fn cliques(&self) -> Vec<Clique> {
        Self::cliques(self).collect()
    }

    fn marginal(&self, clique: &Clique) -> Result<Vec<f64>, ModelError> {
        Ok(Self::marginal(self, clique)?)
    }

    fn marginals_of(&self, cliques: &[Clique]) -> Result<Vec<Vec<f64>>, ModelError> {
        Ok(self.pair_marginals(cliques)?)
    }
}

impl Conditions for Model {
    fn given(&self, conditions: &[(usize, u32)]) -> Result<Arc<dyn FittedModel>, ModelError> {
        Ok(Arc::new(Self::given(self, conditions)?))
    }
}

impl Density for Model {
    fn log_densities(&self, columns: &[Vec<u32>]) -> Result<Vec<f64>, ModelError> {
        Ok(Self::log_densities(self, columns)?)
    }
}

impl From<fhaim_pgm::Error> for ModelError {
    fn from(error: fhaim_pgm::Error) -> Self {
        match error {
            fhaim_pgm::Error::Impossible { attribute, value } => {
                Self::Impossible { attribute, value }
            }
            other => Self::generator(other),
        }
    }
}
