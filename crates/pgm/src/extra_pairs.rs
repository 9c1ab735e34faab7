//! Pairs of attributes beside the junction tree.
//!
//! A tree has room for few of the pairs of a table in which everything depends on everything. What is known of the
//! others is kept as it is, a table for each pair: the pair's marginal is that table, and records are drawn so that
//! they follow it (`sample`). Densities are those of the tree alone.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use fhaim_domain::{Clique, Domain};

use crate::measurement::check_clique;
use crate::{Error, Model};

/// How far the sum of a table may be from the number of records, as a share of it.
const TOLERANCE: f64 = 1e-6;

/// A condition multiplies what the tree says of another attribute's value by at most this, and divides it by at most
/// this.
const MOST_TILT: f64 = 1e6;

/// Expected counts of pairs, row-major over the categories of both attributes, by pair.
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
                problem.or_else(|| beside.contains_key(&clique).then_some("is there twice"));
            if let Some(problem) = problem {
                return Err(Error::Beside { clique, problem });
            }
            beside.insert(clique, counts);
        }
        Ok(Self(beside))
    }

    /// The table of a clique, where it is one of the pairs.
    pub fn of(&self, clique: &Clique) -> Option<&[f64]> {
        self.0.get(clique).map(Vec::as_slice)
    }

    /// All tables, in ascending order of their pairs.
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

    /// A pair's counts, a row for each value of `other` and a column for each of `attribute`; nothing of a pair that is
    /// not here.
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

/// All pairs of a clique's attributes.
fn pairs_of(clique: &Clique) -> impl Iterator<Item = Clique> {
    let attributes = clique.attributes();
    let seconds = |i: usize| attributes[i + 1..].iter();
    (0..attributes.len())
        .flat_map(move |i| seconds(i).map(move |&b| Clique::new([attributes[i], b])))
}

/// What is wrong with a table, as the end of a sentence.
fn problem_of(
    clique: &Clique,
    counts: &[f64],
    domain: &Domain,
    total: f64,
) -> Option<&'static str> {
    if clique.len() != 2 {
        return Some("is not of two attributes");
    }
    if domain.cells(clique) != Some(counts.len()) {
        return Some("has another number of cells");
    }
    if !counts
        .iter()
        .all(|count| *count >= 0.0 && count.is_finite())
    {
        return Some("has counts that are none");
    }
    let sum: f64 = counts.iter().sum();
    ((sum - total).abs() > TOLERANCE * total).then_some("does not sum to the number of records")
}

impl Model {
    /// The model with these tables of pairs beside its tree: expected counts, row-major over the categories of both
    /// attributes, which sum to [`Model::total`]. They take the place of those it had.
    ///
    /// # Errors
    /// [`Error::Beside`] for a table that is none of a pair of the domain, or one of two of the same pair.
    pub fn with_beside(
        mut self,
        tables: impl IntoIterator<Item = (Clique, Vec<f64>)>,
    ) -> Result<Self, Error> {
        self.extra_pairs = ExtraPairs::new(&self.domain, self.total, tables)?;
        self.measured = OnceLock::new();
        Ok(self)
    }

    /// The pairs beside the tree, ascending.
    pub fn pairs_beside(&self) -> impl ExactSizeIterator<Item = &Clique> {
        self.extra_pairs.iter().map(|(clique, _)| clique)
    }

    /// For every attribute whose pair with `attribute` is beside the tree, by how much the logarithms of its values'
    /// chances differ from the tree's where `attribute` has `value`.
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

    /// Expected counts of a pair that records are steered to, as [`ExtraPairs::rows_of`] has them: of those beside the tree, and
    /// of those that the tree has a measurement of.
    pub(crate) fn known_rows(&self, other: usize, attribute: usize) -> Option<Vec<Vec<f64>>> {
        let rows_of = |tables: &ExtraPairs| tables.rows_of(&self.domain, other, attribute);
        rows_of(&self.extra_pairs).or_else(|| rows_of(self.measured()))
    }

    /// The tables of the pairs that the tree has a measurement of, worked out when they are first asked for.
    fn measured(&self) -> &ExtraPairs {
        self.measured.get_or_init(|| {
            let pairs = self.potentials.cliques.iter().flat_map(pairs_of);
            // Within a clique of the tree each is a sum, which takes no more memory than that.
            let tables = pairs.filter_map(|pair| {
                let counts = self.marginal_of_tree(&pair).ok()?;
                Some((pair, counts))
            });
            Arc::new(ExtraPairs(tables.collect()))
        })
    }
}
