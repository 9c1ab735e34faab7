//! The records of a run in one process: a table, or the counts of its records.

use std::sync::Arc;

use fhaim_domain::{Clique, Counted, Domain, NearUnique, RawColumn, Schema, Table};
use fhaim_protocol::{counts::pair_counts::PairCounts, roster::ContributionKind};
use fhaim_release::MAX_HOLDERS;

use crate::{
    counting,
    division::{self, HolderTable, HolderUpload},
    error::Error,
    generate::args::GenerateArguments,
    input::{self, Source},
};

/// The records of all holders, or their counts.
#[derive(Debug)]
pub enum Held {
    /// The table.
    Table(Table),
    /// The counts of each holder's records, from one pass over a table that is never in memory.
    Counts {
        /// The table's schema.
        schema: Arc<Schema>,
        /// The counts of each holder, in order.
        holder_counts: Vec<PairCounts>,
    },
}

impl Held {
    /// Reads the records for a run, and their values without binning if there is a report.
    pub fn read(
        arguments: &GenerateArguments,
        schema: Schema,
    ) -> Result<(Self, Vec<RawColumn>), Error> {
        let GenerateArguments {
            data,
            format,
            strictness,
            ..
        } = arguments;
        if arguments.report.is_some() {
            let reading = input::reading(data, schema, format, strictness)?;
            return Ok((Self::Table(reading.table), reading.values));
        }
        let source = Source {
            data,
            schema: &schema,
            format,
            strictness,
            near_unique: NearUnique::Refuse,
        };
        let held = match counts(arguments, source)? {
            Some(holder_counts) => Self::Counts {
                schema: Arc::new(schema),
                holder_counts,
            },
            None => Self::Table(input::table(data, schema, format, strictness)?),
        };
        Ok((held, Vec::new()))
    }

    /// Returns the schema.
    pub fn schema(&self) -> &Schema {
        match self {
            Self::Table(table) => table.schema(),
            Self::Counts { schema, .. } => schema,
        }
    }

    /// Returns the schema for sharing with a table.
    pub fn shared_schema(&self) -> Arc<Schema> {
        match self {
            Self::Table(table) => table.shared_schema(),
            Self::Counts { schema, .. } => Arc::clone(schema),
        }
    }

    /// Returns the number of records.
    pub fn records(&self) -> usize {
        match self {
            Self::Table(table) => table.records(),
            // Reading limits the number, so this does not saturate.
            Self::Counts { .. } => usize::try_from(Counted::records(self)).unwrap_or(usize::MAX),
        }
    }
}

impl Counted for Held {
    fn domain(&self) -> &Domain {
        self.schema().domain()
    }

    fn records(&self) -> u64 {
        match self {
            Self::Table(table) => Counted::records(table),
            Self::Counts { holder_counts, .. } => {
                holder_counts.iter().map(PairCounts::records).sum()
            }
        }
    }

    fn marginal(&self, clique: &Clique) -> Option<Vec<u64>> {
        match self {
            Self::Table(table) => table.marginal(clique),
            Self::Counts { holder_counts, .. } => {
                let mut marginals = holder_counts
                    .iter()
                    .map(|pair_counts| pair_counts.marginal(clique));
                let mut sum = marginals.next()??;
                for marginal in marginals {
                    let cells = sum.iter_mut().zip(marginal?);
                    cells.for_each(|(sum, count)| *sum += count);
                }
                Some(sum)
            }
        }
    }
}

/// Returns the counts of each holder's records, or `None` if a run needs the records themselves.
///
/// Reads the file once, or twice if the split or the content of the uploads depends on the number of records.
fn counts(
    arguments: &GenerateArguments,
    source: Source<'_>,
) -> Result<Option<Vec<PairCounts>>, Error> {
    let several = &arguments.holders;
    let counted = several.contribution != HolderUpload::Records
        && several.by == HolderTable::Records
        && (1..=MAX_HOLDERS).contains(&several.holders)
        && !arguments.mechanism.clear_only();
    if !counted {
        return Ok(None);
    }
    if several.holders == 1 && several.contribution == HolderUpload::Counts {
        return Ok(Some(counting::count_pairs(source, &[counting::WHOLE])?));
    }
    let records = counting::records(source)?;
    if division::contribution(several, source.schema.domain(), records)? != ContributionKind::Counts
    {
        return Ok(None);
    }
    let shares = division::shares(records, several.holders);
    Ok(Some(counting::count_pairs(source, &shares)?))
}
