//! Contributions of counts: where one holder has all columns of its records, it counts by itself, and
//! uploads the encrypted tables of all pairs' counts instead of encrypted records.
//!
//! The computation service adds the holders' tables, and a contrast is a product of an encrypted
//! table with a public polynomial: it takes no ciphertext product, the number of records does not
//! matter, and not even its order of magnitude is seen.
//!
//! | module | for |
//! |---|---|
//! | [`pair_counts`] | counting, a few records at a time |
//! | `bits` | the same of columns of few values, 64 records a word |
//! | [`upload`] | what a holder sends, and how holders' are put together |
//! | this one | which tables there are, and a statistic as weights of their counts |
//!
//! One-way statistics and the total are read off a pair's table. A holder's tables may contradict
//! each other, or hold anything: they are added to the others', so what the others' records cost
//! stands, but for squared scores (docs/THREAT-MODEL.md).

mod bits;
pub mod pair_counts;
pub mod upload;

use crate::Error;
use fhaim_domain::{Clique, Domain};
use fhaim_he::{CountsLayout, Weights};
use fhaim_release::{Axis, Statistic};

/// The most counts of all tables together: 2^27 take 16,384 ciphertexts.
pub const MAX_COUNTS: usize = 1 << 27;

/// The tables of a domain: those of all pairs of attributes, in lexicographic order; of a single
/// attribute its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountTables {
    domain: Domain,
    layout: CountsLayout,
    /// Of each attribute the other one of the smallest table that it is in.
    partners: Vec<usize>,
}

impl CountTables {
    /// The tables of a domain.
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
                "all pairs of columns have {counts} cells together, and a contribution of counts \
                 holds at most {MAX_COUNTS}: use fewer bins or categories, leave columns out, or \
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

    /// The domain they are of.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Where they lie in ciphertexts.
    pub fn layout(&self) -> &CountsLayout {
        &self.layout
    }

    /// The place of the first count of a pair's table, a < b, whose others follow in row-major order;
    /// of a single attribute's, where a = b.
    fn first(&self, a: usize, b: usize) -> Result<usize, Error> {
        let d = self.domain.len();
        let number = if a == b { 0 } else { number(d, a, b) };
        let first = self.layout.first(number).filter(|_| a <= b && b < d);
        Ok(first.ok_or(fhaim_he::Error::OutOfRange("a pair of attributes"))?)
    }

    /// The weights of each cell of a statistic that is linear in the records, and none of others. The
    /// statistic must have been held against the domain.
    ///
    /// # Errors
    /// [`Error::Encryption`] for attributes that the tables do not have; [`Error::Release`] where a
    /// product of weights does not fit its number.
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

    /// The cells of a pair's marginal, in row-major order.
    ///
    /// # Errors
    /// As [`CountTables::cells`].
    pub fn marginal(&self, pair: &Clique) -> Result<Vec<Weights>, Error> {
        let &[a, b] = pair.attributes() else {
            return Err(fhaim_he::Error::OutOfRange("a pair of attributes").into());
        };
        let first = self.first(a, b)?;
        let count = |cell| Weights(vec![(first + cell, 1)]);
        Ok((0..cells(&self.domain, a, b)).map(count).collect())
    }

    /// The other attribute of the smallest table that an attribute is in; itself where it is the only one.
    fn partner(&self, a: usize) -> Option<usize> {
        self.partners.get(a).copied()
    }

    /// The sum over all records of u(x_a).
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

    /// The sum over all records of u(x_a) v(x_b), a < b.
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

/// The entries that are not zero.
fn entries(function: &[i64]) -> impl Iterator<Item = (usize, i64)> {
    let entries = function.iter().copied().enumerate();
    entries.filter(|&(_, value)| value != 0)
}

/// All pairs of `d` attributes, in lexicographic order.
fn pairs(d: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..d).flat_map(move |a| (a + 1..d).map(move |b| [a, b]))
}

/// The number of a pair in that order.
fn number(d: usize, a: usize, b: usize) -> usize {
    // (d - 1) + (d - 2) + ... pairs begin with a smaller attribute.
    (a * (2 * d).saturating_sub(a + 1) / 2 + b).saturating_sub(a + 1)
}

fn cells(domain: &Domain, a: usize, b: usize) -> usize {
    domain.size(a).saturating_mul(domain.size(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_numbered_in_their_order() {
        for d in 2..9 {
            for (expected, [a, b]) in pairs(d).enumerate() {
                assert_eq!(number(d, a, b), expected);
            }
        }
    }

    #[test]
    fn too_many_counts_are_refused() {
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
