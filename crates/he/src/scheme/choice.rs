//! Choice of a parameter set for a dataset.

use crate::error::{Error, Result};
use crate::scheme::noise;
use crate::scheme::params::{ParameterSet, Parameters, SETS};
use crate::table::layout::Layout;

/// A dataset's requirements on its parameter set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Largest number of records.
    pub records: u64,
    /// Bound on the absolute value of a release, noise included.
    pub largest: u128,
    /// Whether squared scores are released.
    pub squares: bool,
    /// Layout of all record chunks.
    pub layout: Layout,
    /// Largest squared norm of a combination of columns that enters a product.
    pub energy: u64,
    /// Number of services that share the secret key.
    pub shares: usize,
    /// Smallest acceptable [`ParameterSet::strip_bits`].
    pub strip_bits: f64,
}

impl ParameterSet {
    /// Chooses the first set that meets a demand. A later version may choose another one, so a plan must record the
    /// set's identifier.
    ///
    /// # Errors
    /// [`Error::NoParameters`] if no set is large enough.
    pub fn choose(demand: &Demand) -> Result<Self> {
        let Demand {
            records, largest, ..
        } = *demand;
        for set in SETS.into_iter().filter(|set| set.meets(demand)) {
            let params = Parameters::shared(set)?;
            if noise::hides_uploads(&params, demand.layout, demand.energy as f64) {
                return Ok(set);
            }
        }
        Err(Error::NoParameters {
            records,
            largest,
            way_out: "lower the record bound, or raise epsilon",
        })
    }

    /// Checks whether values, keys and sealed ciphertexts of a demand are within the set's limits.
    /// [`ParameterSet::choose`] also checks the noise of products.
    pub fn meets(&self, demand: &Demand) -> bool {
        self.is_for(demand.records, demand.squares)
            && demand.largest < self.range() / 2
            && !(self.whole_key_only && demand.shares > 1)
            && self.strip_bits() >= demand.strip_bits
    }

    /// Returns minus the binary logarithm of the largest failure probability that one sealed ciphertext adds to the
    /// proof. It is the statistical distance by which the flood moves when the noise of the mask's encryption is
    /// removed (docs/THREAT-MODEL.md).
    pub fn strip_bits(&self) -> f64 {
        noise::strip_bits(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::params::{COMPACT, STANDARD, WIDE};

    #[test]
    fn choice_depends_on_records_values_squares_columns_and_shares() {
        let choose = |records: u64, largest, squares, energy, shares| {
            let layout = Layout::for_records(records as usize).unwrap();
            ParameterSet::choose(&Demand {
                records,
                largest,
                squares,
                layout,
                energy,
                shares,
                strip_bits: 0.0,
            })
        };
        let sealed = Demand {
            records: 48_842,
            largest: 1 << 20,
            squares: false,
            layout: Layout::for_records(48_842).unwrap(),
            energy: 1,
            shares: 1,
            strip_bits: 53.0,
        };
        assert_eq!(ParameterSet::choose(&sealed).unwrap(), STANDARD);
        // 49 on one column of 32 and on 24 more, 1 on the others: adult-32.
        for (case, set) in [
            ((48_842, 49 * 48_842, false, 1232, 1), COMPACT),
            ((1 << 20, 1 << 23, false, 12, 1), COMPACT),
            ((48_842, 49 * 48_842, false, 1, 2), STANDARD),
            ((48_842, 49 * 48_842, false, 1, 3), STANDARD),
            ((1 << 18, 49 << 18, false, 1, 1), STANDARD),
            (((1 << 20) + 1, 1 << 20, false, 1, 1), STANDARD),
            ((48_842, 189 * 48_842, false, 8925, 1), STANDARD),
            ((1 << 22, 49 << 22, false, 100_000_000, 3), STANDARD),
            (((1 << 22) + 1, 1, false, 1, 1), WIDE),
            ((1 << 30, 49 << 30, false, 8925, 3), WIDE),
            ((7214, 1 << 40, true, 1, 1), WIDE),
        ] {
            let (records, largest, squares, energy, shares) = case;
            let chosen = choose(records, largest, squares, energy, shares).unwrap();
            assert_eq!(chosen, set, "{case:?}");
        }
        for (records, squares) in [((1 << 30) + 1, false), ((1 << 18) + 1, true)] {
            let refused = choose(records, 1, squares, 1, 1);
            assert!(matches!(refused, Err(Error::NoParameters { .. })));
        }
    }

    /// Prices use this number before a set is chosen.
    #[test]
    fn plaintext_moduli_depend_only_on_records_and_squares() {
        for squares in [false, true] {
            for records in (0..=30).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]) {
                let residues = ParameterSet::residues(records, squares);
                let layout = Layout::for_records(records.max(1) as usize).unwrap();
                for largest in [1, 1 << 20, 1 << 28, 1 << 40, 1 << 49] {
                    let chosen = [1, 3].map(|shares| {
                        ParameterSet::choose(&Demand {
                            records,
                            largest,
                            squares,
                            layout,
                            energy: 676,
                            shares,
                            strip_bits: 0.0,
                        })
                    });
                    for set in chosen.into_iter().flatten() {
                        assert_eq!(set.plaintext_moduli.len(), residues, "{records} {largest}");
                    }
                }
            }
        }
    }
}
