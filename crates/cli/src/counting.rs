//! Counts a table while it is read, in one pass and with memory that does not depend on its length.

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

/// Maximum number of record lists that wait to be counted.
const READ_AHEAD: usize = 4;

/// The share with all records.
pub const WHOLE: Range<usize> = 0..usize::MAX;

/// Counts all pairs of columns in each of several shares of consecutive records.
///
/// Counting runs in a second thread while the first one reads. Changes made while reading are reported on standard
/// error. The caller must compare the number of records in each share with the record bound of its holder.
pub fn count_pairs(source: Source<'_>, shares: &[Range<usize>]) -> Result<Vec<PairCounts>, Error> {
    let tables = CountTables::new(source.schema.domain())?;
    let new = |_| PairCounts::new(tables.clone(), u64::MAX);
    let holder_counts: Vec<PairCounts> = shares.iter().map(new).collect();
    thread::scope(|scope| {
        let (sender, read) = mpsc::sync_channel(READ_AHEAD);
        let counting = scope.spawn(move || count(holder_counts, shares, &read));
        let streamed = input::stream(source, |columns| {
            // Sending fails only if the counting thread has failed, and then its error is returned.
            let _ = sender.send(columns.to_vec());
            Ok(())
        });
        drop(sender);
        let counted = counting.join().unwrap_or_else(|panic| resume_unwind(panic));
        streamed.and(counted)
    })
}

/// Counts the records that arrive on `read`.
fn count(
    mut holder_counts: Vec<PairCounts>,
    shares: &[Range<usize>],
    read: &Receiver<Vec<Vec<u32>>>,
) -> Result<Vec<PairCounts>, Error> {
    let mut before = 0;
    for columns in read {
        let here = before..before + columns.first().map_or(0, Vec::len);
        for (pair_counts, share) in holder_counts.iter_mut().zip(shares) {
            let [start, end] = [share.start, share.end].map(|row| row.clamp(here.start, here.end));
            if start < end {
                // `start` and `end` are clamped to this list of records, so the slices are in range.
                let own = columns
                    .iter()
                    .map(|codes| &codes[start - before..end - before]);
                pair_counts.add(&own.collect::<Vec<&[u32]>>())?;
            }
        }
        before = here.end;
    }
    Ok(holder_counts)
}

/// Counts the records of a table without reporting changes made while reading.
///
/// # Errors
/// If the table does not match its schema.
pub fn records(source: Source<'_>) -> Result<usize, Error> {
    let counted = input::stream_quietly(source, |_| Ok(()))?;
    Ok(usize::try_from(counted.records).unwrap_or(usize::MAX))
}
