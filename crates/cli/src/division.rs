//! How a run in one process divides a table among several holders.

use std::ops::Range;

use clap::Args;
use fhaim_domain::Domain;
use fhaim_protocol::roster::ContributionKind;

use crate::error::Error;

/// As if several holders had parts of the table, each with keys and noise of its own.
#[derive(Clone, Copy, Debug, Args)]
pub struct HoldersArguments {
    /// Divide the table among so many holders, each with noise of its own
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub holders: u32,
    /// What each of them has: some of the records, or some of the columns
    #[arg(long, value_enum, value_name = "PART", default_value_t)]
    pub by: HolderTable,
    /// Holders whose noise everyone relies on: 1 trusts nobody else's; all of them protects against
    /// services and readers, but not against other holders, who can subtract their own noise
    #[arg(long, value_name = "H", default_value_t = 1)]
    pub honest: u32,
    /// What each of them uploads: encrypted records, or encrypted counts of all pairs of columns
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

/// What a holder has of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum HolderTable {
    /// All columns of some records
    #[default]
    Records,
    /// Some columns of all records
    Columns,
}

/// What a holder uploads beside its noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum HolderUpload {
    /// One-hot records, as in the FHAIM paper
    #[default]
    Records,
    /// Counts of all pairs of columns: megabytes for any number of records
    Counts,
    /// Whichever of the two is smaller
    Auto,
}

/// The records of each of `count` holders: consecutive ones, as evenly as can be.
pub fn shares(records: usize, count: u32) -> Vec<Range<usize>> {
    let edge = |holder: u32| (records as u64 * u64::from(holder) / u64::from(count)) as usize;
    (0..count)
        .map(|holder| edge(holder)..edge(holder + 1))
        .collect()
}

/// What the holders upload. `Auto` takes the smaller of the two.
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
