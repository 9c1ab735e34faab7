//! Contributions of counts. A holder that has all columns of its records counts by itself, and
//! uploads the encrypted tables of all pairs' counts instead of encrypted records.
//!
//! The computation service adds the holders' tables. A contrast is then the product of an encrypted
//! table with a public polynomial. It needs no ciphertext product, its cost does not depend on the
//! number of records, and not even the order of magnitude of that number is visible.
//! | module | purpose |
//! |---|---|
//! | [`pair_counts`] | counts records in pieces |
//! | `bits` | the same for columns with few values, 64 records per word |
//! | [`upload`] | a holder's objects, and the sum of all holders' counts |
//! | this one | the list of tables, and statistics as weights of their counts |
//!
//! One-way statistics and the total are computed from a pair's table. A holder's tables may
//! contradict each other, or hold any numbers. They are added to the others' tables, so the price
//! for the others' records stays right, except for squared scores (docs/THREAT-MODEL.md).

mod bits;
pub mod pair_counts;
pub mod upload;

use crate::Error;
use fhaim_domain::{Clique, Domain};
use fhaim_he::{CountsLayout, Weights};
use fhaim_release::{Axis, Statistic};

/// Most counts of all tables together: 2^27 counts take 16,384 ciphertexts.
pub const MAX_COUNTS: usize = 1 << 27;

/// The tables of a domain: one for each pair of attributes, in lexicographic order. A domain with a
/// single attribute has the table of that attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountTables {
    domain: Domain,
    layout: CountsLayout,
    /// For each attribute, the other attribute of its smallest table.
    partners: Vec<usize>,
}

impl CountTables {
    /// Lists the tables of a domain.
    ///
    /// # Errors
    /// [`Error::Terms`] for more than [`MAX_COUNTS`] counts, and for a domain without attributes.
    pub fn new(domain: &Domain) -> Result<Self, Error> {
        let sizes = match domain.sizes() {
            [one] => vec![*one],
            _ => pairs(domain.len())
                .map(|[a, b]| cells(domain, a, b))
                .collect(),
        };
        let counts = sizes
            .iter()
            .fold(0usize, |sum, size| sum.saturating_add(*size));
        if counts == 0 || counts > MAX_COUNTS {
            return Err(Error::Terms(format!(
                "all pairs of columns together have {counts} cells, and a contribution of counts \
                 can have at most {MAX_COUNTS}: use fewer bins or categories, leave columns out, or \
                 contribute records"
            )));
        }
        let smallest = |a: usize| {
            let others = (0..domain.len()).filter(|&b| b != a);
            others.min_by_key(|&b| (domain.size(b), b)).unwrap_or(a)
        };
        Ok(Self {
            layout: CountsLayout::new(&sizes)?,
            partners: (0..domain.len()).map(smallest).collect(),
            domain: domain.clone(),
        })
    }

    /// Returns the domain of the tables.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Returns the layout of the counts in ciphertexts.
    pub fn layout(&self) -> &CountsLayout {
        &self.layout
    }

    /// Returns the place of the first count in the table of a pair (a < b) or of a single attribute
    /// (a = b). The other counts follow in row-major order.
    fn first(&self, a: usize, b: usize) -> Result<usize, Error> {
        let d = self.domain.len();
        let number = if a == b { 0 } else { number(d, a, b) };
        let first = self.layout.first(number).filter(|_| a <= b && b < d);
        Ok(first.ok_or(fhaim_he::Error::OutOfRange("a pair of attributes"))?)
    }

    /// Returns the weights of each cell of a statistic that is linear in the records, or nothing
    /// for other statistics. The caller must have checked the statistic against the domain.
    ///
    /// # Errors
    /// [`Error::Encryption`] for attributes that the tables do not have; [`Error::Release`] if a
    /// product of weights overflows.
    pub fn cells(&self, statistic: &Statistic) -> Result<Vec<Weights>, Error> {
        match statistic {
            Statistic::Total => {
                let ones = vec![1; self.domain.sizes().first().copied().unwrap_or(0)];
                Ok(vec![self.margin(0, &ones)?])
            }
            Statistic::OneWay(axis) => {
                let functions = axis.functions.iter();
                functions.map(|u| self.margin(axis.attribute, u)).collect()
            }
            Statistic::Product(a, b) => self.product(a, b),
            Statistic::SquaredScores(_) => Ok(Vec::new()),
        }
    }

    /// Returns the cells of a pair's marginal, in row-major order.
    ///
    /// # Errors
    /// Those of [`CountTables::cells`].
    pub fn marginal(&self, pair: &Clique) -> Result<Vec<Weights>, Error> {
        let &[a, b] = pair.attributes() else {
            return Err(fhaim_he::Error::OutOfRange("a pair of attributes").into());
        };
        let first = self.first(a, b)?;
        let count = |cell| Weights(vec![(first + cell, 1)]);
        Ok((0..cells(&self.domain, a, b)).map(count).collect())
    }

    /// Returns the other attribute of an attribute's smallest table; the attribute itself if it is
    /// the only one.
    fn partner(&self, a: usize) -> Option<usize> {
        self.partners.get(a).copied()
    }

    /// Returns the weights of the sum over all records of u(x_a).
    fn margin(&self, a: usize, u: &[i64]) -> Result<Weights, Error> {
        let partner = self.partner(a);
        let partner = partner.ok_or(fhaim_he::Error::OutOfRange("an attribute"))?;
        if partner == a {
            let first = self.first(a, a)?;
            let terms = entries(u).map(|(x, u)| (first + x, u));
            return Ok(Weights(terms.collect()));
        }
        let ones = vec![1; self.domain.size(partner)];
        if a < partner {
            self.cell([a, partner], u, &ones)
        } else {
            self.cell([partner, a], &ones, u)
        }
    }

    fn product(&self, a: &Axis, b: &Axis) -> Result<Vec<Weights>, Error> {
        let pair = [a.attribute, b.attribute];
        let functions = a.functions.iter();
        let functions = functions.flat_map(|u| b.functions.iter().map(move |v| (u, v)));
        functions.map(|(u, v)| self.cell(pair, u, v)).collect()
    }

    /// Returns the weights of the sum over all records of u(x_a) v(x_b), for a < b.
    fn cell(&self, [a, b]: [usize; 2], u: &[i64], v: &[i64]) -> Result<Weights, Error> {
        let (first, row) = (self.first(a, b)?, self.domain.size(b));
        let mut weights = Vec::new();
        for (x, u) in entries(u) {
            for (y, v) in entries(v) {
                let weight = u.checked_mul(v).ok_or(fhaim_release::Error::Overflow)?;
                weights.push((first + x * row + y, weight));
            }
        }
        Ok(Weights(weights))
    }
}

/// Returns the nonzero entries.
fn entries(function: &[i64]) -> impl Iterator<Item = (usize, i64)> {
    let entries = function.iter().copied().enumerate();
    entries.filter(|&(_, value)| value != 0)
}

/// Returns all pairs of `d` attributes, in lexicographic order.
fn pairs(d: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..d).flat_map(move |a| (a + 1..d).map(move |b| [a, b]))
}

/// Returns the number of a pair in lexicographic order.
fn number(d: usize, a: usize, b: usize) -> usize {
    // (d - 1) + (d - 2) + ... pairs start with a smaller attribute.
    (a * (2 * d).saturating_sub(a + 1) / 2 + b).saturating_sub(a + 1)
}

fn cells(domain: &Domain, a: usize, b: usize) -> usize {
    domain.size(a).saturating_mul(domain.size(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_numbered_in_lexicographic_order() {
        for d in 2..9 {
            for (expected, [a, b]) in pairs(d).enumerate() {
                assert_eq!(number(d, a, b), expected);
            }
        }
    }

    #[test]
    fn tables_with_too_many_counts_are_rejected() {
        let new = |sizes| CountTables::new(&Domain::new(sizes));
        assert!(matches!(new(vec![]), Err(Error::Terms(..))));
        assert!(matches!(new(vec![3, 0]), Err(Error::Terms(..))));
        let refused = new(vec![50_000, 50_000]);
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("contribute records")
        );
    }
}
