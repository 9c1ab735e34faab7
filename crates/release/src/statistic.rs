//! Statistics: integer linear functions of the records, and the squared scores of the FHAIM paper.

use fhaim_domain::{Clique, Domain};
use fhaim_dp::Price;
use serde::{Deserialize, Serialize};

use crate::{Error, Tariff, replacement};

/// Largest number of groups of a contrast. The functions of a contrast are the number of groups
/// less one on their own group's categories, and -1 on the others. With more groups, the functions
/// are the groups' indicators.
pub const MAX_CENTRED: usize = 8;

/// Integer functions of one attribute: `functions[f][category]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Axis {
    /// Index of the attribute in the domain.
    pub attribute: usize,
    /// One row for each function, with one integer for each category of the attribute.
    pub functions: Vec<Vec<i64>>,
}

impl Axis {
    /// Returns the one-hot functions of an attribute with `size` categories.
    pub fn identity(attribute: usize, size: usize) -> Self {
        let functions = (0..size)
            .map(|f| (0..size).map(|x| i64::from(f == x)).collect())
            .collect();
        Self {
            attribute,
            functions,
        }
    }

    /// Returns the number of functions, which is the number of cells along this axis.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether the axis has no functions.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Returns the largest squared norm of `(u(x))_u` over the categories x.
    ///
    /// # Errors
    /// [`Error::Overflow`] beyond 128 bits.
    pub fn squared_norm(&self) -> Result<u128, Error> {
        let categories = self.functions.first().map_or(0, Vec::len);
        let mut largest = 0u128;
        for category in 0..categories {
            let mut norm = 0u128;
            for function in &self.functions {
                let value = u128::from(value_at(function, category).unsigned_abs());
                let square = value.checked_mul(value).ok_or(Error::Overflow)?;
                norm = norm.checked_add(square).ok_or(Error::Overflow)?;
            }
            largest = largest.max(norm);
        }
        Ok(largest)
    }

    /// Returns the largest |u(x)| over functions u and categories x.
    pub fn largest_value(&self) -> u64 {
        self.functions
            .iter()
            .flatten()
            .map(|value| value.unsigned_abs())
            .max()
            .unwrap_or(0)
    }

    fn check(&self, domain: &Domain) -> Result<(), Error> {
        let Some(&size) = domain.sizes().get(self.attribute) else {
            return Err(Error::UnknownAttribute(self.attribute));
        };
        if self.functions.is_empty() || self.functions.iter().any(|f| f.len() != size) {
            return Err(Error::AxisShape {
                attribute: self.attribute,
                size,
            });
        }
        Ok(())
    }
}

fn value_at(function: &[i64], category: usize) -> i64 {
    function.get(category).copied().unwrap_or(0)
}

/// The function of the records that a release contains, before its noise.
///
/// A new variant needs:
/// - its cells, sensitivity and checks in this file, its sensitivity under replacement in `replacement.rs`, and its
///   encoding in `codec.rs`;
/// - its cells of ciphertexts in `fhaim_protocol::cells`, for records, and `fhaim_protocol::counts`, for counts;
/// - its description in the ledger in `fhaim_protocol::crypto::judge`;
/// - its plaintext value in `fhaim_synth::plaintext`, and its wire form in `fhaim_api::batch`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Statistic {
    /// The number of records, as one cell.
    Total,
    /// Cells: the sum over records of u(x_a), for each u of the axis.
    OneWay(Axis),
    /// Cells, row-major over (u, v): the sum over records of u(x_a) v(x_b). The first axis has the
    /// smaller attribute index.
    Product(Axis, Axis),
    /// The scores of the FHAIM paper, with one cell for each term.
    SquaredScores(Vec<SquaredTerm>),
}

/// One squared score: weight * (||M||^2 - 2 <M, target> + ||target||^2), where M is the true
/// marginal of the clique.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SquaredTerm {
    /// Two attributes.
    pub clique: Clique,
    /// Weight of the pair in the workload.
    pub weight: i64,
    /// Integers in 0..=N for a public record bound N, one for each cell of the marginal, row-major.
    pub target: Vec<i64>,
}

impl Statistic {
    /// Adds the public part to decrypted cells: squared scores are decrypted without weight *
    /// ||target||^2. Returns `None` if a sum exceeds 64 bits.
    pub fn add_public_part(&self, cells: &mut [i64]) -> Option<()> {
        let Self::SquaredScores(terms) = self else {
            return Some(());
        };
        for (term, cell) in terms.iter().zip(cells) {
            let mut targets = term.target.iter();
            let norm = targets.try_fold(0i64, |sum, &t| sum.checked_add(t.checked_mul(t)?))?;
            *cell = cell.checked_add(term.weight.checked_mul(norm)?)?;
        }
        Some(())
    }

    /// Returns the number of released integers.
    pub fn cells(&self) -> usize {
        match self {
            Self::Total => 1,
            Self::OneWay(axis) => axis.len(),
            Self::Product(a, b) => a.len().saturating_mul(b.len()),
            Self::SquaredScores(terms) => terms.len(),
        }
    }

    /// Returns the attributes that the statistic uses. For squared scores these are the attributes
    /// of all terms.
    pub fn clique(&self) -> Clique {
        match self {
            Self::Total => Clique::new([]),
            Self::OneWay(axis) => Clique::new([axis.attribute]),
            Self::Product(a, b) => Clique::new([a.attribute, b.attribute]),
            Self::SquaredScores(terms) => {
                Clique::new(terms.iter().flat_map(|t| t.clique.attributes().to_vec()))
            }
        }
    }

    /// Returns Delta_2^2 under a tariff, an exact integer: the largest squared Euclidean change of
    /// the cells if one record is added or removed. If holders have columns of the same records, it
    /// also covers the replacement of one holder's part of a record.
    ///
    /// # Errors
    /// Those of [`Statistic::squared_sensitivity`].
    pub fn squared_sensitivity_under(&self, tariff: &Tariff) -> Result<u128, Error> {
        let whole = self.squared_sensitivity(tariff.record_bound)?;
        let Some(owners) = tariff.holders.owners() else {
            return Ok(whole);
        };
        let part = match self {
            Self::Total => 0,
            Self::OneWay(axis) => replacement::one_way(axis)?,
            Self::Product(a, b) => {
                let one_holder = owners.get(a.attribute) == owners.get(b.attribute);
                replacement::product(a, b, one_holder)?
            }
            Self::SquaredScores(terms) => {
                replacement::squared_scores(terms, tariff.record_bound, owners)?
            }
        };
        Ok(whole.max(part))
    }

    /// Returns Delta_2^2, an exact integer: the largest squared Euclidean change of the cells if
    /// one record is added or removed, for tables of at most `record_bound` records.
    ///
    /// A record with value x changes a one-way by (u(x))_u, and a product by the outer product of
    /// two such vectors. A squared score changes by w (2 m + 1 - 2 t), which is at most w (2 N + 1)
    /// in absolute value if count m and target t are both in 0..=N.
    ///
    /// # Errors
    /// [`Error::Overflow`] beyond 128 bits, [`Error::TargetOutOfRange`] for a target outside 0..=N.
    pub fn squared_sensitivity(&self, record_bound: u64) -> Result<u128, Error> {
        match self {
            Self::Total => Ok(1),
            Self::OneWay(axis) => axis.squared_norm(),
            Self::Product(a, b) => a
                .squared_norm()?
                .checked_mul(b.squared_norm()?)
                .ok_or(Error::Overflow),
            Self::SquaredScores(terms) => squared_scores_sensitivity(terms, record_bound),
        }
    }

    /// Returns the price of the statistic under noise of variance `UNIT_VARIANCE * variance_units`
    /// from every holder. It has the Gaussian mechanism, Delta_2^2 / (2 sigma^2) with the noise of
    /// the holders that are relied upon, the ladders' gap, and the leak of its ciphertexts.
    ///
    /// # Errors
    /// Those of [`Statistic::squared_sensitivity`]; [`Error::NoNoise`] for a variance of zero; a
    /// price of 2^48 or more.
    pub fn price(&self, variance_units: u64, tariff: &Tariff) -> Result<Price, Error> {
        if variance_units == 0 {
            return Err(Error::NoNoise);
        }
        let sensitivity = self.squared_sensitivity_under(tariff)?;
        let cells = self.cells();
        let leak = tariff.leak.of(cells)?;
        let honest = tariff.holders.honest();
        Ok(Price::of(
            sensitivity,
            variance_units,
            cells as u64,
            honest,
            leak,
        )?)
    }

    /// Returns the largest absolute value of a cell before noise, for at most `record_bound`
    /// records.
    ///
    /// # Errors
    /// [`Error::Overflow`] beyond 128 bits.
    pub fn largest_cell(&self, record_bound: u64) -> Result<u128, Error> {
        let records = u128::from(record_bound);
        let per_record = match self {
            Self::Total => 1,
            Self::OneWay(axis) => u128::from(axis.largest_value()),
            Self::Product(a, b) => u128::from(a.largest_value()) * u128::from(b.largest_value()),
            // ||M - t||^2 <= (||M||_1 + ||t||_1) max |M - t| <= N (N + sum t).
            Self::SquaredScores(terms) => terms
                .iter()
                .map(|term| {
                    let weight = u128::from(term.weight.unsigned_abs());
                    let target: u128 = term
                        .target
                        .iter()
                        .map(|t| u128::from(t.unsigned_abs()))
                        .sum();
                    weight.saturating_mul(records.saturating_add(target))
                })
                .max()
                .unwrap_or(0),
        };
        per_record.checked_mul(records).ok_or(Error::Overflow)
    }

    /// Rejects squared scores of a dataset with two or more holders. Such a score contains products
    /// of all holders' counts. No noise that is paid for hides the factor of a very large count of
    /// one holder.
    ///
    /// # Errors
    /// [`Error::SquaresOfSeveral`].
    pub fn check_holders(&self, holders: usize) -> Result<(), Error> {
        match self {
            Self::SquaredScores(_) if holders > 1 => Err(Error::SquaresOfSeveral(holders)),
            _ => Ok(()),
        }
    }

    /// Checks attributes and lengths against the domain.
    ///
    /// # Errors
    /// The attribute or clique that does not fit.
    pub fn check(&self, domain: &Domain) -> Result<(), Error> {
        match self {
            Self::Total => Ok(()),
            Self::OneWay(axis) => axis.check(domain),
            Self::Product(a, b) => {
                a.check(domain)?;
                b.check(domain)?;
                if a.attribute >= b.attribute {
                    return Err(Error::AxisOrder);
                }
                Ok(())
            }
            Self::SquaredScores(terms) => terms.iter().try_for_each(|term| term.check(domain)),
        }
    }
}

impl SquaredTerm {
    fn check(&self, domain: &Domain) -> Result<(), Error> {
        if let Some(&unknown) = self
            .clique
            .attributes()
            .iter()
            .find(|&&a| a >= domain.len())
        {
            return Err(Error::UnknownAttribute(unknown));
        }
        if self.clique.len() != 2 || domain.cells(&self.clique) != Some(self.target.len()) {
            return Err(Error::TermShape(self.clique.clone()));
        }
        Ok(())
    }
}

fn squared_scores_sensitivity(terms: &[SquaredTerm], record_bound: u64) -> Result<u128, Error> {
    let mut weights = 0u128;
    for term in terms {
        let in_range = |&t: &i64| u64::try_from(t).is_ok_and(|t| t <= record_bound);
        if !term.target.iter().all(in_range) {
            return Err(Error::TargetOutOfRange(term.clique.clone()));
        }
        let weight = u128::from(term.weight.unsigned_abs());
        let square = weight.checked_mul(weight).ok_or(Error::Overflow)?;
        weights = weights.checked_add(square).ok_or(Error::Overflow)?;
    }
    // 2 N + 1 < 2^65, so squaring may overflow 128 bits and is checked too.
    let step = 2 * u128::from(record_bound) + 1;
    step.checked_mul(step)
        .and_then(|square| square.checked_mul(weights))
        .ok_or(Error::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the changes of a one-way by brute force over all categories.
    fn brute_force_axis(axis: &Axis) -> u128 {
        let size = axis.functions[0].len();
        (0..size)
            .map(|x| axis.functions.iter().map(|u| (u[x] * u[x]) as u128).sum())
            .max()
            .unwrap()
    }

    fn centred(attribute: usize, k: i64, size: usize) -> Axis {
        let functions = (0..k)
            .map(|g| {
                (0..size as i64)
                    .map(|x| if x % k == g { k - 1 } else { -1 })
                    .collect()
            })
            .collect();
        Axis {
            attribute,
            functions,
        }
    }

    #[test]
    fn sensitivity_of_one_ways_and_products_equals_brute_force_over_records() {
        for k in 2..=8 {
            for l in 2..=8 {
                let a = centred(0, k, 10);
                let b = centred(1, l, 9);
                let product = Statistic::Product(a.clone(), b.clone());
                let mut largest = 0u128;
                for x in 0..10 {
                    for y in 0..9 {
                        let mut moved = 0u128;
                        for u in &a.functions {
                            for v in &b.functions {
                                moved += (u[x] * v[y]).pow(2) as u128;
                            }
                        }
                        largest = largest.max(moved);
                    }
                }
                assert_eq!(product.squared_sensitivity(5).unwrap(), largest);
                assert_eq!(
                    Statistic::OneWay(a.clone()).squared_sensitivity(5).unwrap(),
                    brute_force_axis(&a)
                );
            }
        }
    }

    #[test]
    fn sensitivity_of_squared_scores_is_never_below_brute_force() {
        let bound = 6i64;
        let weights = [3i64, 2];
        let mut largest = 0i128;
        // Counts of the growing cell, before and after one more record, and its target.
        for m in 0..bound {
            for t in 0..=bound {
                let moved: i128 = weights
                    .iter()
                    .map(|w| i128::from(w * ((m + 1 - t).pow(2) - (m - t).pow(2))).pow(2))
                    .sum();
                largest = largest.max(moved);
            }
        }
        let term = |a, weight| SquaredTerm {
            clique: Clique::new([a, a + 1]),
            weight,
            target: vec![bound, 0, 1, 2],
        };
        let scores = Statistic::SquaredScores(vec![term(0, 3), term(1, 2)]);
        let claimed = scores.squared_sensitivity(bound as u64).unwrap();
        assert_eq!(claimed, (2 * 6 + 1) * (2 * 6 + 1) * (9 + 4));
        assert!(claimed as i128 >= largest);
    }

    #[test]
    fn targets_outside_the_record_bound_are_refused() {
        for bad in [-1, 7] {
            let term = SquaredTerm {
                clique: Clique::new([0, 1]),
                weight: 1,
                target: vec![0, bad, 0, 0],
            };
            let refused = Statistic::SquaredScores(vec![term]).squared_sensitivity(6);
            assert!(matches!(refused, Err(Error::TargetOutOfRange(_))));
        }
    }

    #[test]
    fn sums_beyond_128_bits_are_rejected() {
        let huge = Axis {
            attribute: 0,
            functions: vec![vec![i64::MIN]; 5],
        };
        assert_eq!(huge.squared_norm(), Err(Error::Overflow));
        let other = Axis {
            attribute: 1,
            functions: vec![vec![i64::MAX]],
        };
        let product = Statistic::Product(other.clone(), other);
        assert_eq!(product.squared_sensitivity(1), Err(Error::Overflow));
    }

    #[test]
    fn statistics_that_do_not_fit_the_domain_are_rejected() {
        let domain = Domain::new(vec![2, 3]);
        let (a, b) = (Axis::identity(0, 2), Axis::identity(1, 3));
        assert!(
            Statistic::Product(a.clone(), b.clone())
                .check(&domain)
                .is_ok()
        );
        assert_eq!(
            Statistic::Product(b, a).check(&domain),
            Err(Error::AxisOrder)
        );
        let wrong = Statistic::OneWay(Axis::identity(1, 2));
        assert!(matches!(
            wrong.check(&domain),
            Err(Error::AxisShape {
                attribute: 1,
                size: 3
            })
        ));
        let unknown = Statistic::OneWay(Axis::identity(2, 2));
        assert_eq!(unknown.check(&domain), Err(Error::UnknownAttribute(2)));
        let scores = Statistic::SquaredScores(vec![SquaredTerm {
            clique: Clique::new([0, 1]),
            weight: 1,
            target: vec![0; 5],
        }]);
        assert!(matches!(scores.check(&domain), Err(Error::TermShape(_))));
    }
}
