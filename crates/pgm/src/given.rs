//! Conditions a model on values of attributes.

use fhaim_domain::Clique;

use crate::extra_pairs::ExtraPairs;
use crate::saved::Parts;
use crate::{Error, Model};

/// The log-potential of a value that is ruled out. It is finite, so that its sums and differences
/// are numbers. Next to any fitted potential, its exponential is zero.
pub(crate) const RULED_OUT: f64 = -1e300;

/// The smallest share of the records that a condition must leave. Below it, the model's numbers are
/// only rounding errors.
const MIN_SHARE: f64 = 1e-12;

impl Model {
    /// Returns the distribution of the records that have the given value of each attribute, scaled
    /// to the same total.
    ///
    /// For the tree, this is exact evidence on the junction tree (Koller and Friedman 2009, section
    /// 10.3.3). Every record drawn from the result meets all conditions.
    ///
    /// If the attribute of a condition has extra pairs, the probabilities of the other attributes'
    /// values are multiplied by the ratios that those tables imply. Each table applies by itself:
    /// if two of the other attributes depend on each other, both ratios count. The result has no
    /// extra pairs, because their tables hold only for all records together.
    ///
    /// The order of conditions affects only rounding.
    ///
    /// # Errors
    /// [`Error::UnknownAttribute`], [`Error::UnknownValue`], and [`Error::Impossible`] for the
    /// first condition that leaves less than 10^-12 of all records, together with the preceding
    /// conditions.
    pub fn given(&self, conditions: &[(usize, u32)]) -> Result<Self, Error> {
        let mut model = self.clone();
        for &(attribute, value) in conditions {
            model = model.given_one(self, attribute, value as usize)?;
        }
        Ok(model)
    }

    /// Adds one condition, with the extra pairs of the model without conditions, `whole`.
    fn given_one(&self, whole: &Self, attribute: usize, value: usize) -> Result<Self, Error> {
        let clique = Clique::new([attribute]);
        let marginal = self.marginal(&clique)?;
        let Some(&records) = marginal.get(value) else {
            return Err(Error::UnknownValue { attribute, value });
        };
        let met = records > MIN_SHARE * self.total();
        if !met {
            return Err(Error::Impossible { attribute, value });
        }
        let mut parts = self.parts();
        for (other, tilt) in whole.tilts(attribute, value)? {
            let potentials = potentials_of(&mut parts, other);
            for (potential, tilt) in potentials.iter_mut().zip(tilt) {
                // A value that an earlier condition ruled out stays ruled out.
                *potential += tilt;
            }
        }
        for (other, potential) in potentials_of(&mut parts, attribute).iter_mut().enumerate() {
            if other != value {
                *potential = RULED_OUT;
            }
        }
        parts.beside = ExtraPairs::default();
        Self::assemble(parts, self.max_bytes)
    }
}

/// Returns the log-potentials of one attribute's values.
fn potentials_of(parts: &mut Parts, attribute: usize) -> &mut [f64] {
    let clique = Clique::new([attribute]);
    let place = match parts.cliques.binary_search(&clique) {
        Ok(place) => place,
        Err(place) => {
            // A single attribute joins nothing, so the junction tree stays as it is.
            parts.cliques.insert(place, clique);
            let none = vec![0.0; parts.domain.size(attribute)];
            parts.tables.insert(place, none);
            place
        }
    };
    &mut parts.tables[place]
}
