//! Extra pairs: pairs of attributes for which the junction tree has no room.
//!
//! If everything in a table depends on everything, a tree has room for only a few pairs. Each extra
//! pair has its own table of expected counts. The table is the pair's marginal, and records are
//! drawn so that they follow it (`sample`). Densities are those of the tree only.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use fhaim_domain::{Clique, Domain};

use crate::measurement::check_clique;
use crate::{Error, Model};

/// Largest relative difference of a table's sum from the number of records.
const TOLERANCE: f64 = 1e-6;

/// Largest factor by which a condition multiplies or divides the tree's probability of another
/// attribute's value.
const MOST_TILT: f64 = 1e6;

/// Expected counts of pairs, by pair. Each table is row-major over the categories of both
/// attributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExtraPairs(BTreeMap<Clique, Vec<f64>>);

impl ExtraPairs {
    /// Checks tables against a domain and a number of records.
    pub fn new(
        domain: &Domain,
        total: f64,
        tables: impl IntoIterator<Item = (Clique, Vec<f64>)>,
    ) -> Result<Self, Error> {
        let mut beside = BTreeMap::new();
        for (clique, counts) in tables {
            check_clique(&clique, domain)?;
            let problem = problem_of(&clique, &counts, domain, total);
            let problem =
                problem.or_else(|| beside.contains_key(&clique).then_some("appears twice"));
            if let Some(problem) = problem {
                return Err(Error::Beside { clique, problem });
            }
            beside.insert(clique, counts);
        }
        Ok(Self(beside))
    }

    /// Returns the table of a clique, if it is one of the pairs.
    pub fn of(&self, clique: &Clique) -> Option<&[f64]> {
        self.0.get(clique).map(Vec::as_slice)
    }

    /// Returns all tables, in ascending order of their pairs.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Clique, &[f64])> {
        self.0
            .iter()
            .map(|(clique, counts)| (clique, counts.as_slice()))
    }

    pub fn bytes(&self) -> usize {
        self.0
            .values()
            .map(|counts| size_of_val(counts.as_slice()))
            .sum()
    }

    /// Returns a pair's counts, with a row for each value of `other` and a column for each value of
    /// `attribute`. Returns `None` if the pair has no table here.
    pub fn rows_of(
        &self,
        domain: &Domain,
        other: usize,
        attribute: usize,
    ) -> Option<Vec<Vec<f64>>> {
        let counts = self.of(&Clique::new([other, attribute]))?;
        let rows = counts.chunks_exact(domain.size(other.max(attribute)));
        if other < attribute {
            return Some(rows.map(<[f64]>::to_vec).collect());
        }
        let rows: Vec<&[f64]> = rows.collect();
        let column = |value: usize| rows.iter().map(|row| row[value]).collect();
        Some((0..domain.size(other)).map(column).collect())
    }
}

/// Returns all pairs of a clique's attributes.
fn pairs_of(clique: &Clique) -> impl Iterator<Item = Clique> {
    let attributes = clique.attributes();
    let seconds = |i: usize| attributes[i + 1..].iter();
    (0..attributes.len())
        .flat_map(move |i| seconds(i).map(move |&b| Clique::new([attributes[i], b])))
}

/// Returns the problem of a table, if it has one, as the end of a sentence.
fn problem_of(
    clique: &Clique,
    counts: &[f64],
    domain: &Domain,
    total: f64,
) -> Option<&'static str> {
    if clique.len() != 2 {
        return Some("does not have two attributes");
    }
    if domain.cells(clique) != Some(counts.len()) {
        return Some("has the wrong number of cells");
    }
    if !counts
        .iter()
        .all(|count| *count >= 0.0 && count.is_finite())
    {
        return Some("has negative or non-finite counts");
    }
    let sum: f64 = counts.iter().sum();
    ((sum - total).abs() > TOLERANCE * total).then_some("does not add up to the number of records")
}

impl Model {
    /// Returns the model with these tables as its extra pairs, in place of any earlier ones. The
    /// tables are expected counts, row-major over the categories of both attributes, and add up to
    /// [`Model::total`].
    ///
    /// # Errors
    /// [`Error::Beside`] if a table is not that of a pair of the domain, or a pair appears twice.
    pub fn with_beside(
        mut self,
        tables: impl IntoIterator<Item = (Clique, Vec<f64>)>,
    ) -> Result<Self, Error> {
        self.extra_pairs = ExtraPairs::new(&self.domain, self.total, tables)?;
        self.measured = OnceLock::new();
        Ok(self)
    }

    /// Returns the extra pairs, ascending.
    pub fn pairs_beside(&self) -> impl ExactSizeIterator<Item = &Clique> {
        self.extra_pairs.iter().map(|(clique, _)| clique)
    }

    /// For each attribute that has an extra pair with `attribute`, returns the differences of its
    /// values' log-probabilities from the tree's, given that `attribute` has `value`.
    pub(crate) fn tilts(
        &self,
        attribute: usize,
        value: usize,
    ) -> Result<Vec<(usize, Vec<f64>)>, Error> {
        let with = |pair: &&Clique| pair.attributes().contains(&attribute);
        let pairs: Vec<Clique> = self.pairs_beside().filter(with).cloned().collect();
        let of_tree = self.pair_marginals_of_tree(&pairs)?;
        let of_tree = ExtraPairs(pairs.iter().cloned().zip(of_tree).collect());
        let others = pairs
            .iter()
            .flat_map(|pair| pair.attributes().iter().copied());
        let tilts = others
            .filter(|&other| other != attribute)
            .filter_map(|other| {
                let row = |tables: &ExtraPairs| {
                    let rows = tables.rows_of(&self.domain, attribute, other)?;
                    rows.into_iter().nth(value)
                };
                let (wanted, expected) = (row(&self.extra_pairs)?, row(&of_tree)?);
                let tilt = wanted.iter().zip(&expected).map(|(wanted, expected)| {
                    let ratio = if *expected > 0.0 {
                        wanted / expected
                    } else {
                        1.0
                    };
                    ratio.clamp(1.0 / MOST_TILT, MOST_TILT).ln()
                });
                Some((other, tilt.collect()))
            });
        Ok(tilts.collect())
    }

    /// Returns the expected counts of a pair that sampled records should follow, in the form of
    /// [`ExtraPairs::rows_of`]. Such pairs are the extra pairs, and the pairs that the tree has a
    /// measurement of.
    pub(crate) fn known_rows(&self, other: usize, attribute: usize) -> Option<Vec<Vec<f64>>> {
        let rows_of = |tables: &ExtraPairs| tables.rows_of(&self.domain, other, attribute);
        rows_of(&self.extra_pairs).or_else(|| rows_of(self.measured()))
    }

    /// Returns the tables of the pairs that the tree has a measurement of, computed at the first
    /// call.
    fn measured(&self) -> &ExtraPairs {
        self.measured.get_or_init(|| {
            let pairs = self.potentials.cliques.iter().flat_map(pairs_of);
            // Each pair is within a clique of the tree, so its table is a sum and takes no more
            // memory than the clique.
            let tables = pairs.filter_map(|pair| {
                let counts = self.marginal_of_tree(&pair).ok()?;
                Some((pair, counts))
            });
            Arc::new(ExtraPairs(tables.collect()))
        })
    }
}
