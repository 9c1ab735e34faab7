//! Finds the earlier tables that have many records of a table.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    sketch::Overlap,
    stored::{FileDigest, History, Identity},
};

/// The tables of a history, by the hashes of their records and by the digests of files.
pub(super) struct Index<'a> {
    tables: &'a [Identity],
    hashes: HashMap<u64, Vec<usize>>,
    files: HashMap<FileDigest, usize>,
}

impl<'a> Index<'a> {
    pub fn of(history: &'a History) -> Self {
        let mut hashes: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut files = HashMap::new();
        for (table, identity) in history.tables.iter().enumerate() {
            match identity {
                Identity::Records(sketch) => {
                    (sketch.hashes()).for_each(|hash| hashes.entry(hash).or_default().push(table));
                }
                Identity::File(digest) => {
                    files.insert(*digest, table);
                }
            }
        }
        Self {
            tables: &history.tables,
            hashes,
            files,
        }
    }

    /// Returns the tables with a large overlap with these records.
    pub fn overlaps(&self, records: &Identity) -> BTreeMap<usize, Overlap> {
        let sketch = match records {
            Identity::Records(sketch) => sketch,
            Identity::File(digest) => {
                let table = self.files.get(digest);
                return table
                    .map(|&table| (table, Overlap::WHOLE))
                    .into_iter()
                    .collect();
            }
        };
        let sharing = sketch.hashes().filter_map(|hash| self.hashes.get(&hash));
        let sharing: BTreeSet<usize> = sharing.flatten().copied().collect();
        let overlaps = sharing.into_iter().filter_map(|table| {
            let Identity::Records(earlier) = self.tables.get(table)? else {
                return None;
            };
            Some((table, sketch.overlap(earlier)))
        });
        overlaps.filter(|(_, overlap)| overlap.is_large()).collect()
    }
}
