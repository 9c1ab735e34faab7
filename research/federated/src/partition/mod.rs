//! Partitions: which record is whose. They stand for parties that there would be, so they may look at anything.

mod cluster;
mod draw;
mod synthfs;

use std::str::FromStr;

use fhaim_domain::Table;
use rand::{Rng, RngCore, seq::SliceRandom};

use crate::Error;

pub use self::synthfs::{SYNTHFS_ATTRIBUTES, SYNTHFS_BINS, synthfs};

/// Classes that a party of the rule `qli` has.
const CLASSES_OF_A_PARTY: usize = 3;

/// How records are dealt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// `ns`: at random, all parties alike.
    Equal,
    /// `cluster`: parties are clusters of like records (k-means on principal components; FLAIM has UMAP).
    Cluster,
    /// `dli`: the records of each class by shares drawn from a Dirichlet distribution with this parameter:
    /// label skew.
    ClassShares(f64),
    /// `qs`: as `dli`, all records at once: sizes differ, contents do not.
    Shares(f64),
    /// `qli`: each party draws three classes; a class is dealt evenly among those who drew it.
    Classes,
}

impl FromStr for Rule {
    type Err = String;

    /// `ns`, `cluster`, `dli`, `qs`, `qli`; a parameter may follow a colon: `dli:0.1`.
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

/// Deals a table's records among so many parties: the rows of each, ascending, none of them empty.
///
/// # Errors
/// No party, or more than there are records; a rule by classes for a table without a target column.
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

/// The rows of each class that occurs.
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

/// Deals rows at random by shares that are drawn from Dirichlet(concentration, ..., concentration).
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
        // The shares may sum to a little less than one: the last party has what is left.
        let to = match number {
            number if number == last => rows.len(),
            _ => ((sum * rows.len() as f64).round() as usize).clamp(from, rows.len()),
        };
        party.extend_from_slice(&rows[from..to]);
        from = to;
    }
}

/// Each party draws three classes; one that nobody drew goes to a party at random; then each class is dealt
/// evenly among those who have it.
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

/// Gives each party without records one of the largest party's, its last.
fn fill_empty(dealt: &mut [Vec<usize>]) {
    while let Some(empty) = dealt.iter().position(Vec::is_empty) {
        let largest = (0..dealt.len()).max_by_key(|&party| dealt[party].len());
        // There are at least as many records as parties, so the largest has two while one has none.
        match largest.and_then(|party| dealt[party].pop()) {
            Some(row) => dealt[empty].push(row),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests;
