//! Recognises the records of a table in other tables, from a small sample of keyed hashes.
//!
//! A record's hash is SipHash-2-4 (Aumasson and Bernstein 2012), a pseudorandom function, of its cells in normal form
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
//!
//! A part of a table whose records occur many times each cannot be told from other records of the same population: the
//! number of times differs for most of them. Tables with other columns have no hashes in common.

use std::{collections::BTreeMap, io::Read};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use fhaim_domain::TableRecords;
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::cell::{is_normal, normalise};
use crate::{Error, FormatArguments, data, data::Data};

/// Number of distinct records in a sketch, at most.
pub(super) const SKETCHED: usize = 2048;

/// From this overlap on, records count as used before.
pub(super) const LARGE_OVERLAP: f64 = 0.45;

/// Names of a first column that numbers the rows, in lower case. Sorted rows have other numbers.
const ROW_NUMBERS: [&str; 3] = ["index", "row", "unnamed: 0"];

/// A sample of a table's records: the number of times that the table has each of them, by their hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SketchForm", into = "SketchForm")]
pub(crate) struct Sketch {
    records: BTreeMap<u64, u64>,
}

/// Shares of the records of two tables that match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Overlap {
    /// Share of the records of the table that is looked up.
    pub of_these: f64,
    /// Share of the records of the earlier table.
    pub of_earlier: f64,
}

impl Overlap {
    /// All records of two equal tables.
    pub const WHOLE: Self = Self {
        of_these: 1.0,
        of_earlier: 1.0,
    };

    /// Whether enough records match for the costs of both uses to add up.
    pub fn is_large(self) -> bool {
        self.of_these.max(self.of_earlier) >= LARGE_OVERLAP
    }
}

/// Makes the sketch of a table while its records are read, in memory that does not depend on their number.
pub(super) struct RecordSketcher {
    columns: Vec<usize>,
    hash: SipHash,
    /// The normal form of a cell that has another form.
    cell: Zeroizing<Vec<u8>>,
    sketch: Sketch,
    /// The hash up to which the sketch has all records.
    end: u64,
}

impl RecordSketcher {
    /// Begins a table with these columns.
    pub fn new(key: &[u8], header: &[String]) -> Result<Self, Error> {
        let columns = columns(header);
        Ok(Self {
            hash: SipHash::new(hash_key(key, header, &columns)?),
            columns,
            cell: Zeroizing::new(Vec::with_capacity(1024)),
            sketch: Sketch::default(),
            end: u64::MAX,
        })
    }

    /// Adds the current record of the table.
    pub fn add<R: Read>(&mut self, records: &TableRecords<R>) {
        let mut hash = self.hash;
        for &column in &self.columns {
            let cell = records.bytes(column).trim_ascii();
            if is_normal(cell) {
                hash.add(cell);
                continue;
            }
            self.cell.clear();
            normalise(cell, &mut self.cell);
            hash.add(&self.cell);
        }
        self.add_hash(hash.finish());
    }

    /// Adds a record by its hash. Its number of times is exact: a record of the final sample is in every earlier one.
    fn add_hash(&mut self, hash: u64) {
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
        let matching = self.records.range(..=end).filter(matches).count();
        let share = |records: &BTreeMap<u64, u64>| match records.range(..=end).count() {
            0 => 0.0,
            all => matching as f64 / all as f64,
        };
        Overlap {
            of_these: share(&self.records),
            of_earlier: share(&earlier.records),
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
fn hash_key(key: &[u8], header: &[String], columns: &[usize]) -> Result<[u64; 2], Error> {
    // This cannot fail: HMAC accepts keys of any length.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| Error::NoRandomness)?;
    mac.update(b"records\0");
    for name in columns.iter().filter_map(|&column| header.get(column)) {
        mac.update(name.as_bytes());
        mac.update(&[0]);
    }
    let digest: [u8; 32] = mac.finalize().into_bytes().into();
    let [first, second, ..] = digest.as_chunks::<8>().0 else {
        return Err(Error::NoRandomness);
    };
    Ok([u64::from_le_bytes(*first), u64::from_le_bytes(*second)])
}

/// The first of eight bytes that end a cell. These bytes do not occur in UTF-8.
const FIRST_END: u64 = 0xf8;

/// SipHash-2-4 of a record, cell by cell.
#[derive(Clone, Copy)]
struct SipHash {
    state: [u64; 4],
    /// Number of words.
    words: u64,
}

impl SipHash {
    fn new([first, second]: [u64; 2]) -> Self {
        Self {
            state: [
                first ^ 0x736f_6d65_7073_6575,
                second ^ 0x646f_7261_6e64_6f6d,
                first ^ 0x6c79_6765_6e65_7261,
                second ^ 0x7465_6462_7974_6573,
            ],
            words: 0,
        }
    }

    /// Adds a cell as words of eight bytes. The last word has up to seven bytes of the cell and their number, so that no
    /// two lists of cells have the same words.
    #[inline]
    fn add(&mut self, cell: &[u8]) {
        let (words, rest) = cell.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        self.word(short(rest) | (FIRST_END + rest.len() as u64) << 56);
    }

    #[inline]
    fn word(&mut self, word: u64) {
        self.state[3] ^= word;
        self.round();
        self.round();
        self.state[0] ^= word;
        self.words += 1;
    }

    #[inline]
    fn round(&mut self) {
        let [a, b, c, d] = &mut self.state;
        *a = a.wrapping_add(*b);
        *c = c.wrapping_add(*d);
        *b = b.rotate_left(13) ^ *a;
        *d = d.rotate_left(16) ^ *c;
        *a = a.rotate_left(32);
        *c = c.wrapping_add(*b);
        *a = a.wrapping_add(*d);
        *b = b.rotate_left(17) ^ *c;
        *d = d.rotate_left(21) ^ *a;
        *c = c.rotate_left(32);
    }

    fn finish(mut self) -> u64 {
        // The last word of the standard has the length of the text in bytes, modulo 256.
        self.word(self.words << 3 << 56);
        self.state[2] ^= 0xff;
        (0..4).for_each(|_| self.round());
        self.state.iter().fold(0, |sum, word| sum ^ word)
    }
}

/// Returns up to seven bytes as a number, the first byte last. Overlapping parts are faster than single bytes.
#[inline]
fn short(bytes: &[u8]) -> u64 {
    let end = 8 * bytes.len() as u32;
    let (first, last) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>());
    if let (Some(first), Some(last)) = (first, last) {
        let [first, last] = [first, last].map(|part| u64::from(u32::from_le_bytes(*part)));
        return first | last << (end - 32);
    }
    let (first, last) = (bytes.first_chunk::<2>(), bytes.last_chunk::<2>());
    if let (Some(first), Some(last)) = (first, last) {
        let [first, last] = [first, last].map(|part| u64::from(u16::from_le_bytes(*part)));
        return first | last << (end - 16);
    }
    bytes.first().map_or(0, |byte| u64::from(*byte))
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
            }),
            false => Err("the hashes of a table are damaged".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
