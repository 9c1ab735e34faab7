//! Counting a table while it is read: in one pass, and in memory that does not depend on its length.

use std::{
    ops::Range,
    panic::resume_unwind,
    sync::mpsc::{self, Receiver},
    thread,
};

use fhaim_protocol::counts::{CountTables, pair_counts::PairCounts};

use crate::{
    error::Error,
    input::{self, Source},
};

/// Lists of records that may wait to be counted.
const READ_AHEAD: usize = 4;

/// The share that is all records.
pub const WHOLE: Range<usize> = 0..usize::MAX;

/// Counts all pairs of columns in each of several shares of consecutive records, in a thread beside the
/// one that reads. What reading changed is told on standard error. The caller compares each count with
/// the record bound of its holder.
pub fn tallies(source: Source<'_>, shares: &[Range<usize>]) -> Result<Vec<PairCounts>, Error> {
    let tables = CountTables::new(source.schema.domain())?;
    let new = |_| PairCounts::new(tables.clone(), u64::MAX);
    let tallies: Vec<PairCounts> = shares.iter().map(new).collect();
    thread::scope(|scope| {
        let (sender, read) = mpsc::sync_channel(READ_AHEAD);
        let counting = scope.spawn(move || count(tallies, shares, &read));
        let streamed = input::stream(source, |columns| {
            // Where nobody counts any more, the error is the counting thread's.
            let _ = sender.send(columns.to_vec());
            Ok(())
        });
        drop(sender);
        let counted = counting.join().unwrap_or_else(|panic| resume_unwind(panic));
        streamed.and(counted)
    })
}

/// Counts what was read, until there is no more.
fn count(
    mut tallies: Vec<PairCounts>,
    shares: &[Range<usize>],
    read: &Receiver<Vec<Vec<u32>>>,
) -> Result<Vec<PairCounts>, Error> {
    let mut before = 0;
    for columns in read {
        let here = before..before + columns.first().map_or(0, Vec::len);
        for (pair_counts, share) in tallies.iter_mut().zip(shares) {
            let [start, end] = [share.start, share.end].map(|row| row.clamp(here.start, here.end));
            if start < end {
                // Clamped to the records that are here, of which every list has the codes.
                let own = columns
                    .iter()
                    .map(|codes| &codes[start - before..end - before]);
                pair_counts.add(&own.collect::<Vec<&[u32]>>())?;
            }
        }
        before = here.end;
    }
    Ok(tallies)
}

/// Counts the records of a table, which has to be one of its schema, and says nothing of it.
pub fn records(source: Source<'_>) -> Result<usize, Error> {
    let counted = input::stream_quietly(source, |_| Ok(()))?;
    Ok(usize::try_from(counted.records).unwrap_or(usize::MAX))
}
