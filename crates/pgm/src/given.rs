//! Models given what some attributes are.

use fhaim_domain::Clique;

use crate::extra_pairs::ExtraPairs;
use crate::saved::Parts;
use crate::{Error, Model};

/// The log-potential of a value that is ruled out. It is finite, so that sums and differences of it are
/// numbers; its exponential is zero beside that of any fitted potential.
const RULED_OUT: f64 = -1e300;

/// A condition must leave at least this share of the records: below it the model has nothing to
/// go by but rounding.
const MIN_SHARE: f64 = 1e-12;

impl Model {
    /// The distribution of the records that have each attribute's value, scaled to the same
    /// total: by evidence on the junction tree (Koller and Friedman 2009, section 10.3.3), exact of what the tree says.
    /// Every record drawn from it meets all conditions. Where a condition's attribute has pairs beside the tree, the
    /// others' values are as much more likely as those tables say, each by itself: where two of the others depend on
    /// each other, both count. No table is beside the tree of what is returned, since what they say holds of all records
    /// together. The order of conditions makes no difference but to rounding.
    ///
    /// # Errors
    /// [`Error::UnknownAttribute`], [`Error::UnknownValue`], and [`Error::Impossible`] for the
    /// first condition that leaves less than 10^-12 of the records that meet those before it.
    pub fn given(&self, conditions: &[(usize, u32)]) -> Result<Self, Error> {
        let mut model = self.clone();
        for &(attribute, value) in conditions {
            model = model.given_one(self, attribute, value as usize)?;
        }
        Ok(model)
    }

    /// One more condition, with the tables beside the tree of the model without any.
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
                // What an earlier condition ruled out stays so.
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

/// The log-potentials of one attribute's values.
fn potentials_of(parts: &mut Parts, attribute: usize) -> &mut [f64] {
    let clique = Clique::new([attribute]);
    let place = match parts.cliques.binary_search(&clique) {
        Ok(place) => place,
        Err(place) => {
            // One attribute alone joins nothing: the junction tree stays as it is.
            parts.cliques.insert(place, clique);
            let none = vec![0.0; parts.domain.size(attribute)];
            parts.tables.insert(place, none);
            place
        }
    };
    &mut parts.tables[place]
}
