//! Splits a table among several simulated holders, for a run in one process.

use std::ops::Range;

use clap::Args;
use fhaim_domain::Domain;
use fhaim_protocol::roster::ContributionKind;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Options for simulated holders, each with a part of the table and its own keys and noise.
#[derive(Clone, Copy, Debug, Args, Serialize, Deserialize)]
pub struct HoldersArguments {
    /// Split the table among K simulated holders, each with its own keys and noise
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub holders: u32,
    /// Part of the table that each holder has
    #[arg(long, value_enum, value_name = "PART", default_value_t)]
    pub by: HolderTable,
    /// Number of holders whose noise the privacy guarantee relies on
    ///
    /// With 1, no holder needs to trust another. With all holders, the result is more accurate, but the
    /// guarantee holds only against services and readers: other holders can subtract their own noise.
    #[arg(long, value_name = "H", default_value_t = 1)]
    pub honest: u32,
    /// Content of each holder's upload
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub contribution: HolderUpload,
}

impl Default for HoldersArguments {
    fn default() -> Self {
        Self {
            holders: 1,
            by: HolderTable::Records,
            honest: 1,
            contribution: HolderUpload::Records,
        }
    }
}

/// Part of the table that a holder has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HolderTable {
    /// All columns of some records
    #[default]
    Records,
    /// Some columns of all records
    Columns,
}

/// Content of a holder's upload, in addition to its noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HolderUpload {
    /// Encrypted one-hot records, as in the FHAIM paper
    #[default]
    Records,
    /// Encrypted counts of all pairs of columns; the size does not depend on the number of records
    Counts,
    /// The smaller of the two
    Auto,
}

/// Splits consecutive records among `count` holders as evenly as possible.
pub fn shares(records: usize, count: u32) -> Vec<Range<usize>> {
    let edge = |holder: u32| (records as u64 * u64::from(holder) / u64::from(count)) as usize;
    (0..count)
        .map(|holder| edge(holder)..edge(holder + 1))
        .collect()
}

/// Returns the content of the holders' uploads; for `Auto`, the smaller one.
pub fn contribution(
    arguments: &HoldersArguments,
    domain: &Domain,
    records: usize,
) -> Result<ContributionKind, Error> {
    match (arguments.contribution, arguments.by) {
        (HolderUpload::Records, _) | (HolderUpload::Auto, HolderTable::Columns) => {
            Ok(ContributionKind::Records)
        }
        (HolderUpload::Counts, _) => Ok(ContributionKind::Counts),
        (HolderUpload::Auto, HolderTable::Records) => {
            let records = records.div_ceil(arguments.holders.max(1) as usize);
            Ok(ContributionKind::smaller(domain, records)?)
        }
    }
}
