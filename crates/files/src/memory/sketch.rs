//! Recognises the records of a table in other tables, from a small sample of keyed hashes.
//!
//! A record's hash is SipHash-1-3 (Aumasson and Bernstein 2012), a pseudorandom function, of its cells in normal form
//! (`cell.rs`). The order of rows and columns, the delimiter and the file format do not change it. Its key depends on
//! this machine's key and on the names of the columns. A sketch has the distinct records with the smallest hashes, each
//! with the number of times that the table has it: a uniform sample of the distinct records, and the same records in
//! every table that has them (bottom-k sketch, Cohen and Kaplan 2007).
//!
//! Two sketches are compared below the hash up to which both are complete. A record **matches** if both tables have it
//! equally often. The overlap is the share of matching records among those of one table.
//!
//! - **Misses.** If a share p of the records matches, the share in a sample of k is binomial with mean p, and a standard
//!   deviation of at most 0.5 / sqrt(k), which is 0.011 for k = [`SKETCHED`]. Half of the records are missed
//!   ([`LARGE_OVERLAP`]) once in 300,000 comparisons.
//! - **False matches.** Let another table of the same population be drawn independently. The number of times that it
//!   has a record is a Poisson variable, which has any particular value m >= 1 with probability at most m^m e^-m / m!
//!   <= 1/e = 0.37. At the same size, for records that the population has at every rate L, the expected share of
//!   matches is at most the maximum over L of (sum of P(m)^2 over m >= 1) / (1 - P(0)) = 0.276. By Chernoff's bound, the
//!   probability of an overlap of 0.45 among k records is at most e^(-0.0688 k) at the same size, and e^(-0.0141 k) at
//!   any size: e^-140 and e^-28 for k = [`SKETCHED`]. If records have a column that hardly repeats, no record matches.
//! - **Few distinct records.** A record that a table has m times is equally often in an independent table with
//!   probability at most 1 / (3 sqrt(m)), on average over records of one rate. From these probabilities and the number
//!   of records, Chernoff's bound must show that a match by chance has a probability of at most [`MAX_CHANCE`]. With
//!   fewer than 182 records that occur once, this needs a larger overlap: 56% of 50, 70% of 20, all of 5. Tables whose
//!   records are all equally often in the other one are recognised in any case.
//!
//! A part of a table whose records occur many times each cannot be told from other records of the same population: the
//! number of times differs for most of them. Tables with other columns have no hashes in common.

use std::{collections::BTreeMap, io::Read};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use fhaim_domain::TableRecords;
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use siphasher::sip::SipHasher13;
use zeroize::Zeroizing;

use super::cell::normalise;
use crate::{Error, FormatArguments, data, data::Data};

/// Number of distinct records in a sketch, at most.
pub(super) const SKETCHED: usize = 2048;

/// Smallest overlap from which on records count as used before.
pub(super) const LARGE_OVERLAP: f64 = 0.45;

/// Largest probability that an overlap counts although the tables are independent, for the records of one table.
const MAX_CHANCE: f64 = 0.005;

/// Names of a first column that numbers the rows, in lower case. Sorted rows have other numbers.
const ROW_NUMBERS: [&str; 3] = ["index", "row", "unnamed: 0"];

/// Ends a cell. This byte does not occur in UTF-8.
const CELL_END: u8 = 0xff;

/// A sample of a table's records: the number of times that the table has each of them, by their hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SketchForm", into = "SketchForm")]
pub(crate) struct Sketch {
    records: BTreeMap<u64, u64>,
    /// The whole table, by which an equal sample of other records is recognised.
    whole: Whole,
}

/// All records of a table, in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    /// Number of records.
    records: u64,
    /// Sum of their hashes, modulo 2^64.
    sum: u64,
}

/// The matching records of two tables, as far as both sketches are complete.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Overlap {
    matching: usize,
    /// The records of the table that is looked up.
    these: Compared,
    /// The records of the earlier table.
    earlier: Compared,
}

/// The distinct records of a table that are compared with those of another.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Compared {
    records: usize,
    /// Bound on the expected number of them that match in an independent table.
    by_chance: f64,
}

impl Overlap {
    /// One record of two equal tables.
    pub const WHOLE: Self = Self {
        matching: 1,
        these: Compared::ONE,
        earlier: Compared::ONE,
    };

    /// Returns the share of the records of the table that is looked up.
    pub fn share(self) -> f64 {
        self.these.share(self.matching)
    }

    /// Whether enough records match for the costs of both uses to add up.
    pub fn is_large(self) -> bool {
        let Self {
            matching,
            these,
            earlier,
        } = self;
        let are_equal = matching == these.records && matching == earlier.records;
        matching > 0 && (are_equal || these.is_used(matching) || earlier.is_used(matching))
    }
}

impl Compared {
    const ONE: Self = Self {
        records: 1,
        by_chance: 1.0,
    };

    /// Counts the records of a sketch up to a hash.
    fn up_to(end: u64, sketch: &Sketch) -> Self {
        let times = sketch.records.range(..=end).map(|(_, &times)| times);
        Self {
            records: times.clone().count(),
            by_chance: times.map(chance).sum(),
        }
    }

    fn share(self, matching: usize) -> f64 {
        matching as f64 / self.records.max(1) as f64
    }

    /// Whether a large share of the records matches, and more than by chance (Chernoff's bound).
    fn is_used(self, matching: usize) -> bool {
        let (share, by_chance) = (self.share(matching), self.by_chance / self.records as f64);
        let exponent = self.records as f64 * divergence(share, by_chance);
        share >= LARGE_OVERLAP && share > by_chance && exponent >= -MAX_CHANCE.ln()
    }
}

/// Returns a bound on the probability that a record that a table has this often is equally often in an independent
/// table of the same size.
fn chance(times: u64) -> f64 {
    1.0 / (3.0 * (times as f64).sqrt())
}

/// Relative entropy of two events with probabilities `p` and `q`, in nats.
fn divergence(p: f64, q: f64) -> f64 {
    let part = |p: f64, q: f64| if p > 0.0 { p * (p / q).ln() } else { 0.0 };
    part(p, q) + part(1.0 - p, 1.0 - q)
}

/// Makes the sketch of a table while its records are read, in memory that does not depend on their number.
pub(super) struct RecordSketcher {
    columns: Vec<usize>,
    /// The hash of nothing, under the key of the columns.
    hasher: SipHasher13,
    /// The cells of the current record in normal form.
    record: Zeroizing<Vec<u8>>,
    sketch: Sketch,
    /// The hash up to which the sketch has all records.
    end: u64,
}

impl RecordSketcher {
    /// Begins a table with these columns.
    pub fn new(key: &[u8], header: &[String]) -> Result<Self, Error> {
        let columns = columns(header);
        Ok(Self {
            hasher: SipHasher13::new_with_key(&hash_key(key, header, &columns)?),
            columns,
            record: Zeroizing::new(Vec::with_capacity(1024)),
            sketch: Sketch::default(),
            end: u64::MAX,
        })
    }

    /// Adds the current record of the table.
    pub fn add<R: Read>(&mut self, records: &TableRecords<R>) {
        self.record.clear();
        for &column in &self.columns {
            normalise(records.bytes(column), &mut self.record);
            self.record.push(CELL_END);
        }
        self.add_hash(self.hasher.hash(&self.record));
    }

    /// Adds a record by its hash. Its number of times is exact: a record of the final sample is in every earlier one.
    fn add_hash(&mut self, hash: u64) {
        let whole = &mut self.sketch.whole;
        whole.records += 1;
        whole.sum = whole.sum.wrapping_add(hash);
        if hash > self.end {
            return;
        }
        let records = &mut self.sketch.records;
        *records.entry(hash).or_insert(0) += 1;
        if records.len() > SKETCHED {
            records.pop_last();
        }
        self.end = self.sketch.complete_to();
    }

    /// Returns the sketch of the records so far.
    pub fn finish(self) -> Sketch {
        self.sketch
    }
}

impl Sketch {
    /// Makes the sketch of a table in a separate pass.
    ///
    /// # Errors
    /// The table cannot be read, or its text cannot be split into records.
    pub fn of(key: &[u8], data: &Data, format: &FormatArguments) -> Result<Self, Error> {
        let (text, dialect) = data::dialect_text(data, format)?;
        let mut records = TableRecords::open(&data.name(), &dialect, text)?;
        let mut sketcher = RecordSketcher::new(key, records.header())?;
        while records.advance()? {
            sketcher.add(&records);
        }
        Ok(sketcher.finish())
    }

    /// The hashes of the sample.
    pub fn hashes(&self) -> impl Iterator<Item = u64> {
        self.records.keys().copied()
    }

    /// The hash up to which the sketch has all records of its table.
    fn complete_to(&self) -> u64 {
        match self.records.last_key_value() {
            Some((&last, _)) if self.records.len() == SKETCHED => last,
            _ => u64::MAX,
        }
    }

    /// Estimates the overlap of this table with an earlier one.
    pub(super) fn overlap(&self, earlier: &Self) -> Overlap {
        let end = self.complete_to().min(earlier.complete_to());
        let matches = |(hash, times): &(&u64, &u64)| earlier.records.get(hash) == Some(times);
        Overlap {
            matching: self.records.range(..=end).filter(matches).count(),
            these: Compared::up_to(end, self),
            earlier: Compared::up_to(end, earlier),
        }
    }
}

/// Returns the places of the columns that identify a record, in the order of their names.
fn columns(header: &[String]) -> Vec<usize> {
    let numbers_rows = |place: usize, name: &str| {
        place == 0 && header.len() > 1 && ROW_NUMBERS.contains(&name.to_lowercase().as_str())
    };
    let names = header.iter().enumerate();
    let named = names.filter(|(place, name)| !numbers_rows(*place, name));
    let mut columns: Vec<(usize, &String)> = named.collect();
    columns.sort_by_key(|(_, name)| *name);
    columns.into_iter().map(|(place, _)| place).collect()
}

/// Derives the key of the hashes of tables with these columns.
fn hash_key(key: &[u8], header: &[String], columns: &[usize]) -> Result<[u8; 16], Error> {
    // This cannot fail: HMAC accepts keys of any length.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| Error::NoRandomness)?;
    mac.update(b"records\0");
    for name in columns.iter().filter_map(|&column| header.get(column)) {
        mac.update(name.as_bytes());
        mac.update(&[CELL_END]);
    }
    let digest: [u8; 32] = mac.finalize().into_bytes().into();
    digest.first_chunk().copied().ok_or(Error::NoRandomness)
}

/// A sketch as stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SketchForm {
    /// The hashes in ascending order, each as eight bytes with the last one first: base64.
    hashes: String,
    /// The number of times of each record; empty if the table has all of them once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    times: Vec<u64>,
    #[serde(default)]
    whole: Whole,
}

impl From<Sketch> for SketchForm {
    fn from(sketch: Sketch) -> Self {
        let hashes = sketch.records.keys().map(|hash| hash.to_le_bytes());
        let hashes: Vec<[u8; 8]> = hashes.collect();
        let times: Vec<u64> = sketch.records.into_values().collect();
        let is_once = times.iter().all(|times| *times == 1);
        Self {
            hashes: BASE64.encode(hashes.as_flattened()),
            times: if is_once { Vec::new() } else { times },
            whole: sketch.whole,
        }
    }
}

impl TryFrom<SketchForm> for Sketch {
    type Error = String;

    fn try_from(form: SketchForm) -> Result<Self, Self::Error> {
        let bytes = BASE64.decode(&form.hashes);
        let bytes = bytes.map_err(|error| format!("hashes: {error}"))?;
        let (hashes, rest) = bytes.as_chunks::<8>();
        let hashes: Vec<u64> = hashes
            .iter()
            .map(|hash| u64::from_le_bytes(*hash))
            .collect();
        let times = match form.times.is_empty() {
            true => vec![1; hashes.len()],
            false => form.times,
        };
        let is_valid = rest.is_empty()
            && hashes.len() <= SKETCHED
            && hashes.is_sorted_by(|one, next| one < next)
            && times.len() == hashes.len()
            && !times.contains(&0);
        match is_valid {
            true => Ok(Self {
                records: hashes.into_iter().zip(times).collect(),
                whole: form.whole,
            }),
            false => Err("the hashes of a table are damaged".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
