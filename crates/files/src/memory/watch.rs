//! Makes the sketch of a table while a program reads it for its work.

use std::io::Read;

use fhaim_domain::TableRecords;
use zeroize::Zeroizing;

use super::{KEY_BYTES, sketch::RecordSketcher};
use crate::{FormatArguments, data::Data, home};

/// Watches the records of a table while they are read, so that [`look_up`](super::look_up) needs no second pass.
///
/// It does nothing if there is no history yet.
pub struct RecordWatch<'a> {
    data: &'a Data,
    missing: &'a [String],
    key: Option<Zeroizing<Vec<u8>>>,
    sketcher: Option<RecordSketcher>,
}

impl<'a> RecordWatch<'a> {
    /// Begins before the first record is read.
    pub fn new(data: &'a Data, format: &'a FormatArguments) -> Self {
        Self {
            data,
            missing: &format.missing,
            key: existing_key(),
            sketcher: None,
        }
    }

    /// Looks at the current record.
    pub fn see<R: Read>(&mut self, records: &TableRecords<R>) {
        if let Some(key) = self.key.take() {
            self.sketcher = RecordSketcher::new(&key, records.header(), self.missing).ok();
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

/// Returns the key of the history if there is one.
fn existing_key() -> Option<Zeroizing<Vec<u8>>> {
    let path = home::memory().ok()?.join("memory.key");
    let key = Zeroizing::new(home::read(&path).ok()??);
    (key.len() == KEY_BYTES).then_some(key)
}
