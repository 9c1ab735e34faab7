//! Makes the sketch of a table while a program reads it for its work.

use std::io::Read;

use fhaim_domain::TableRecords;
use zeroize::Zeroizing;

use super::{Memory, sketch::RecordSketcher};
use crate::data::Data;

/// Watches the records of a table while they are read, so that [`look_up`](super::look_up) needs no second pass.
pub struct RecordWatch<'a> {
    data: &'a Data,
    /// The key of the history until the first record.
    key: Option<Zeroizing<Vec<u8>>>,
    sketcher: Option<RecordSketcher>,
}

impl<'a> RecordWatch<'a> {
    /// Begins before the first record is read. If the history cannot be opened, the watch does nothing, and
    /// [`look_up`](super::look_up) reports the error.
    pub fn new(data: &'a Data) -> Self {
        Self {
            data,
            key: Memory::open().ok().map(|memory| memory.key),
            sketcher: None,
        }
    }

    /// Looks at the current record.
    pub fn see<R: Read>(&mut self, records: &TableRecords<R>) {
        if let Some(key) = self.key.take() {
            self.sketcher = RecordSketcher::new(&key, records.header()).ok();
        }
        if let Some(sketcher) = &mut self.sketcher {
            sketcher.add(records);
        }
    }

    /// Keeps the sketch with the table. Call it behind the last record.
    pub fn finish(self) {
        if let Some(sketcher) = self.sketcher {
            // A table that was read twice keeps the sketch of the first time.
            let _ = self.data.sketch().set(sketcher.finish());
        }
    }
}
