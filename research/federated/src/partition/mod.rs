//! Partitions: split the records of a table among simulated parties. They may read the records freely.

mod cluster;
mod draw;
mod synthfs;

use std::{fmt, str::FromStr};

use fhaim_domain::Table;
use rand::{Rng, RngCore, seq::SliceRandom};

use crate::Error;

pub use self::synthfs::{SYNTHFS_ATTRIBUTES, SYNTHFS_BINS, synthfs};

/// Number of classes that a party draws under the rule `qli`.
const CLASSES_OF_A_PARTY: usize = 3;

/// A rule for splitting records among parties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// `ns`: at random, in equal numbers.
    Equal,
    /// `cluster`: each party has a cluster of similar records (k-means on principal components; FLAIM uses UMAP).
    Cluster,
    /// `dli`: the records of each class are split by shares from a Dirichlet distribution with this parameter. This
    /// gives label skew.
    ClassShares(f64),
    /// `qs`: all records are split by shares from a Dirichlet distribution. Sizes differ, but contents do not.
    Shares(f64),
    /// `qli`: each party draws three classes, and a class is split evenly among the parties that drew it.
    Classes,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal => f.pad("ns"),
            Self::Cluster => f.pad("cluster"),
            Self::ClassShares(concentration) => write!(f, "dli:{concentration}"),
            Self::Shares(concentration) => write!(f, "qs:{concentration}"),
            Self::Classes => f.pad("qli"),
        }
    }
}

impl FromStr for Rule {
    type Err = String;

    /// Parses `ns`, `cluster`, `dli`, `qs` or `qli`. A parameter for `dli` and `qs` follows a colon: `dli:0.1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let concentration = match parameter.map(str::parse::<f64>) {
            None => 0.5,
            Some(Ok(value)) if value > 0.0 && value.is_finite() => value,
            Some(_) => return Err(format!("{text:?}: the parameter must be a positive number")),
        };
        match (name, parameter) {
            ("ns", None) => Ok(Self::Equal),
            ("cluster", None) => Ok(Self::Cluster),
            ("qli", None) => Ok(Self::Classes),
            ("dli", _) => Ok(Self::ClassShares(concentration)),
            ("qs", _) => Ok(Self::Shares(concentration)),
            ("ns" | "cluster" | "qli", Some(_)) => Err(format!("{name} takes no parameter")),
            _ => Err(format!(
                "unknown rule {text:?}: choose ns, cluster, dli, dli:A, qs, qs:A or qli"
            )),
        }
    }
}

/// Splits a table's records among this number of parties. Returns the rows of each party, ascending and never empty.
///
/// # Errors
/// [`Error::TooFewRecords`] for zero parties, or more parties than records; [`Error::NoTarget`] for a rule by classes
/// if the table has no target column.
pub fn partition(
    table: &Table,
    parties: usize,
    rule: &Rule,
    rng: &mut dyn RngCore,
) -> Result<Vec<Vec<usize>>, Error> {
    let records = table.records();
    if parties == 0 || parties > records {
        return Err(Error::TooFewRecords { parties, records });
    }
    let mut dealt = match *rule {
        Rule::Equal => equally(records, parties, rng),
        Rule::Cluster => cluster::cluster(table, parties, rng),
        Rule::ClassShares(concentration) => {
            let mut dealt = vec![Vec::new(); parties];
            for rows in classes(table)? {
                by_shares(rows, &mut dealt, concentration, rng);
            }
            dealt
        }
        Rule::Shares(concentration) => {
            let mut dealt = vec![Vec::new(); parties];
            by_shares((0..records).collect(), &mut dealt, concentration, rng);
            dealt
        }
        Rule::Classes => by_classes(&classes(table)?, parties, rng),
    };
    fill_empty(&mut dealt);
    dealt.iter_mut().for_each(|rows| rows.sort_unstable());
    Ok(dealt)
}

/// Returns the rows of each class that occurs.
fn classes(table: &Table) -> Result<Vec<Vec<usize>>, Error> {
    let target = table.schema().target().ok_or(Error::NoTarget)?;
    let mut classes = vec![Vec::new(); table.domain().size(target)];
    for (row, &code) in table.column(target).iter().enumerate() {
        classes[code as usize].push(row);
    }
    classes.retain(|rows| !rows.is_empty());
    Ok(classes)
}

fn equally(records: usize, parties: usize, rng: &mut dyn RngCore) -> Vec<Vec<usize>> {
    let mut rows: Vec<usize> = (0..records).collect();
    rows.shuffle(rng);
    let end = |party: usize| party * records / parties;
    (0..parties)
        .map(|party| rows[end(party)..end(party + 1)].to_vec())
        .collect()
}

/// Splits rows at random by shares from Dirichlet(concentration, ..., concentration).
fn by_shares(
    mut rows: Vec<usize>,
    dealt: &mut [Vec<usize>],
    concentration: f64,
    rng: &mut dyn RngCore,
) {
    let shares = draw::dirichlet(dealt.len(), concentration, rng);
    rows.shuffle(rng);
    let last = dealt.len() - 1;
    let (mut sum, mut from) = (0.0, 0);
    for (number, (share, party)) in shares.iter().zip(dealt).enumerate() {
        sum += share;
        // Rounding may leave the sum of shares slightly below one, so the last party gets all remaining rows.
        let to = match number {
            number if number == last => rows.len(),
            _ => ((sum * rows.len() as f64).round() as usize).clamp(from, rows.len()),
        };
        party.extend_from_slice(&rows[from..to]);
        from = to;
    }
}

/// Lets each party draw three classes, and gives classes that no party drew to a random party. Then splits each class
/// evenly among its parties.
fn by_classes(classes: &[Vec<usize>], parties: usize, rng: &mut dyn RngCore) -> Vec<Vec<usize>> {
    let mut owners = vec![Vec::new(); classes.len()];
    let numbers: Vec<usize> = (0..classes.len()).collect();
    for party in 0..parties {
        let mut drawn = numbers.clone();
        let (drawn, _) = drawn.partial_shuffle(rng, CLASSES_OF_A_PARTY.min(classes.len()));
        drawn.iter().for_each(|&class| owners[class].push(party));
    }
    let mut dealt = vec![Vec::new(); parties];
    for (rows, mut owners) in classes.iter().zip(owners) {
        if owners.is_empty() {
            owners.push(rng.random_range(0..parties));
        }
        let mut rows = rows.clone();
        rows.shuffle(rng);
        for (place, row) in rows.into_iter().enumerate() {
            dealt[owners[place % owners.len()]].push(row);
        }
    }
    dealt
}

/// Moves one record, the last of the largest party, to each party without records.
fn fill_empty(dealt: &mut [Vec<usize>]) {
    while let Some(empty) = dealt.iter().position(Vec::is_empty) {
        let largest = (0..dealt.len()).max_by_key(|&party| dealt[party].len());
        // There are at least as many records as parties, so while a party is empty, the largest has at least two.
        match largest.and_then(|party| dealt[party].pop()) {
            Some(row) => dealt[empty].push(row),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests;
