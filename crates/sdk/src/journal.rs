//! The record of an upload, stored next to the holder's other files, so that an interrupted upload can be resumed.
//!
//! The file has one JSON object per line. The first line has the version, the dataset and a digest of the table. Every
//! object that the service has confirmed adds a line. The holder's own key has a line before the objects that are
//! encrypted under it. With another key the upload starts over: objects sent before do not count. A line that a crash
//! cut off is dropped. Only its owner can read the file: a party with the key can read the objects at the service.
//!
//! A second file is locked while the record is open, and contains the number of the process. Two processes that write
//! to one record would each send objects under different keys, and neither could complete the upload.

use fhaim_api::Digest;
use fhaim_domain::Version;
use fhaim_dp::generator;
use fhaim_he::{Parameters, UploadKey};
use fhaim_protocol::encryption::{key_from_text, key_to_text};
use fhaim_protocol::upload::Object;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use uuid::Uuid;
use zeroize::{Zeroize, Zeroizing};

use crate::Error;

/// The version of the file.
const VERSION: u8 = 1;

/// Beginning of the line with a key.
const KEY_LINE: &str = "{\"upload_key\":";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    version: Version<VERSION>,
    dataset: Uuid,
    table: Digest,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    object: Object,
    digest: Digest,
}

/// A holder's key, in hexadecimal.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyLine {
    upload_key: String,
}

impl Drop for KeyLine {
    fn drop(&mut self) {
        self.upload_key.zeroize();
    }
}

/// The record of one upload.
pub struct Journal {
    kept: Option<Kept>,
    sent: BTreeMap<String, Digest>,
    /// The key of the sent objects, if it is the holder's own.
    key: Option<KeyLine>,
}

/// The file of a record.
struct Kept {
    path: PathBuf,
    file: File,
    head: Head,
    /// Locked until the record is dropped.
    _lock: File,
}

/// Locks the second file of a record, and writes the number of this process into it.
fn lock(path: &Path, dataset: Uuid) -> Result<File, Error> {
    let fault = |error: std::io::Error| Error::Journal {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let mut options = OpenOptions::new();
    options.create(true).read(true).write(true).truncate(false);
    let mut file = options
        .open(path.with_extension("upload.lock"))
        .map_err(fault)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // If it cannot be read, the process is unknown.
            let _ = file.read_to_string(&mut text);
            let process = text.trim().parse().ok();
            return Err(Error::UploadRunning { dataset, process });
        }
        Err(TryLockError::Error(error)) => return Err(fault(error)),
    }
    let written = file
        .set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    written.map_err(fault)?;
    Ok(file)
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Journal");
        let path = self.kept.as_ref().map(|kept| &kept.path);
        shown.field("path", &path).field("sent", &self.sent);
        shown.finish_non_exhaustive()
    }
}

impl Journal {
    /// Creates a record in memory only.
    pub fn in_memory() -> Self {
        Self {
            kept: None,
            sent: BTreeMap::new(),
            key: None,
        }
    }

    /// Opens or creates the record in a file. `table` is a digest of the table's file.
    ///
    /// # Errors
    /// [`Error::UploadRunning`] while the record is open elsewhere, also in another process. [`Error::Journal`] for a
    /// file of another dataset or another table, or one that cannot be read or written.
    pub fn open(path: &Path, dataset: Uuid, table: Digest) -> Result<Self, Error> {
        let lock = lock(path, dataset)?;
        let fault = |reason: String| Error::Journal {
            path: path.to_owned(),
            reason,
        };
        let text = Zeroizing::new(match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(fault(error.to_string())),
        });
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut lines = text[..whole].lines();
        let wanted = Head {
            version: Version,
            dataset,
            table,
        };
        let begun = match lines.next() {
            Some(line) => {
                let head: Head =
                    serde_json::from_str(line).map_err(|error| fault(error.to_string()))?;
                if head.dataset != dataset {
                    return Err(fault("the record belongs to another dataset".to_owned()));
                }
                if head != wanted {
                    let reason = "the table differs from the one that the upload began with";
                    return Err(fault(reason.to_owned()));
                }
                true
            }
            None => false,
        };
        let (mut sent, mut key) = (BTreeMap::new(), None);
        for line in lines {
            if line.starts_with(KEY_LINE) {
                // serde's errors may quote the text, which contains the key.
                let line = serde_json::from_str::<KeyLine>(line);
                key =
                    Some(line.map_err(|_| fault("the line with the key is not valid".to_owned()))?);
                sent.clear();
                continue;
            }
            let line: Line = serde_json::from_str(line).map_err(|e| fault(e.to_string()))?;
            sent.insert(line.object.name(), line.digest);
        }
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path);
        let file = file.map_err(|error| fault(error.to_string()))?;
        let kept = Kept {
            path: path.to_owned(),
            file,
            head: wanted,
            _lock: lock,
        };
        let mut journal = Self {
            kept: Some(kept),
            sent,
            key,
        };
        journal.cut(whole as u64)?;
        if !begun {
            journal.write_head()?;
        }
        Ok(journal)
    }

    fn cut(&mut self, length: u64) -> Result<(), Error> {
        let Some(Kept { file, .. }) = &mut self.kept else {
            return Ok(());
        };
        let cut = file
            .set_len(length)
            .and_then(|()| file.seek(SeekFrom::End(0)));
        let done = cut.map(|_| ());
        done.map_err(|error| self.fault(&error))
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let Some(Kept { file, .. }) = &mut self.kept else {
            return Ok(());
        };
        let mut text = Zeroizing::new(serde_json::to_string(line).unwrap_or_default());
        text.push('\n');
        let written = file.write_all(text.as_bytes());
        written.map_err(|error| self.fault(&error))
    }

    fn write_head(&mut self) -> Result<(), Error> {
        match self.kept.as_ref().map(|kept| kept.head.clone()) {
            Some(head) => self.write(&head),
            None => Ok(()),
        }
    }

    fn fault(&self, error: &dyn std::fmt::Display) -> Error {
        let path = self.kept.as_ref().map(|kept| kept.path.clone());
        Error::Journal {
            path: path.unwrap_or_default(),
            reason: error.to_string(),
        }
    }

    /// Forgets all sent objects and their key, so that the upload starts over.
    ///
    /// # Errors
    /// [`Error::Journal`] if the file cannot be written.
    pub(crate) fn restart(&mut self) -> Result<(), Error> {
        self.sent.clear();
        self.key = None;
        self.cut(0)?;
        self.write_head()
    }

    /// Records an object that the service has confirmed.
    ///
    /// # Errors
    /// [`Error::Journal`] if the file cannot be written.
    pub fn confirm(&mut self, object: Object, digest: Digest) -> Result<(), Error> {
        self.write(&Line { object, digest })?;
        self.sent.insert(object.name(), digest);
        Ok(())
    }

    /// Returns the holder's own key for the objects to send. This is the key of the objects that were sent already.
    /// Before the first object, it is a new key, which is stored before anything is sent.
    ///
    /// # Errors
    /// [`Error::Journal`] for a key of other parameters, for sent objects without a key, and if the file cannot be
    /// written. [`Error::Protocol`] if the system has no randomness.
    pub(crate) fn upload_key(&mut self, params: &Parameters) -> Result<UploadKey, Error> {
        if !self.sent.is_empty() {
            let Some(key) = &self.key else {
                return Err(
                    self.fault(&"the record lacks the key of the sent objects: remove the file")
                );
            };
            let key = key_from_text(params, &key.upload_key);
            return key.map_err(|error| self.fault(&error));
        }
        let mut rng = generator().map_err(fhaim_protocol::Error::from)?;
        let key = UploadKey::random(params, &mut rng).map_err(fhaim_protocol::Error::from)?;
        let line = KeyLine {
            upload_key: key_to_text(&key).to_string(),
        };
        self.write(&line)?;
        self.key = Some(line);
        Ok(key)
    }

    /// The confirmed objects, by name.
    pub fn sent(&self) -> &BTreeMap<String, Digest> {
        &self.sent
    }

    /// Forgets an object that the service lacks after all.
    pub fn forget(&mut self, name: &str) {
        self.sent.remove(name);
    }

    /// Removes the file after the upload is complete.
    pub fn finish(self) {
        if let Some(Kept { path, .. }) = &self.kept {
            // A file that stays behind has no use and does no harm.
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: Object = Object::Column {
        column: 1,
        chunk: 2,
    };

    #[test]
    fn record_survives_a_crash_at_any_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("upload");
        let (dataset, table) = (Uuid::new_v4(), Digest::of(b"table"));
        let mut journal = Journal::open(&path, dataset, table).unwrap();
        journal.confirm(OBJECT, Digest::of(b"1")).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let mut journal = Journal::open(&path, dataset, table).unwrap();
            assert_eq!(journal.sent().len(), usize::from(length == whole.len()));
            journal.confirm(OBJECT, Digest::of(b"2")).unwrap();
            drop(journal);
            let read = Journal::open(&path, dataset, table).unwrap();
            assert_eq!(read.sent()["column/1/2"], Digest::of(b"2"));
        }
    }

    #[test]
    fn open_record_is_rejected_with_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("upload");
        let (dataset, table) = (Uuid::new_v4(), Digest::of(b"table"));
        let mut journal = Journal::open(&path, dataset, table).unwrap();
        journal.confirm(OBJECT, Digest::of(b"1")).unwrap();
        let refused = Journal::open(&path, dataset, table).unwrap_err();
        let process = std::process::id();
        let words = format!("another upload of this dataset is running (process {process})");
        assert!(refused.to_string().contains(&words), "{refused}");
        drop(journal);
        let journal = Journal::open(&path, dataset, table).unwrap();
        assert_eq!(journal.sent().len(), 1);
        journal.finish();
        Journal::open(&path, dataset, table).unwrap();
    }

    #[test]
    fn restarted_record_has_no_sent_objects() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("upload");
        let (dataset, table) = (Uuid::new_v4(), Digest::of(b"table"));
        let mut journal = Journal::open(&path, dataset, table).unwrap();
        let first = journal.upload_key(&params()).unwrap();
        journal.confirm(OBJECT, Digest::of(b"1")).unwrap();
        journal.restart().unwrap();
        assert!(journal.sent().is_empty());
        let next = journal.upload_key(&params()).unwrap();
        assert_ne!(next.id(), first.id());
        journal.confirm(Object::Keys, Digest::of(b"2")).unwrap();
        drop(journal);
        let mut read = Journal::open(&path, dataset, table).unwrap();
        assert_eq!(read.sent().keys().collect::<Vec<_>>(), ["keys"]);
        assert_eq!(read.upload_key(&params()).unwrap().id(), next.id());
    }

    #[test]
    fn record_of_another_table_or_dataset_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("upload");
        let (dataset, table) = (Uuid::new_v4(), Digest::of(b"table"));
        Journal::open(&path, dataset, table).unwrap();
        assert!(matches!(
            Journal::open(&path, Uuid::new_v4(), table),
            Err(Error::Journal { .. })
        ));
        assert!(matches!(
            Journal::open(&path, dataset, Digest::of(b"other")),
            Err(Error::Journal { .. })
        ));
        Journal::open(&path, dataset, table).unwrap().finish();
        assert!(!path.exists());
    }

    fn params() -> Parameters {
        Parameters::new(fhaim_he::STANDARD).unwrap()
    }

    /// A resumed upload uses the key that it began with. If no sent object counts any more, it begins with another key.
    #[test]
    fn upload_key_is_stored_with_the_objects_sent_under_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("upload");
        let (dataset, table) = (Uuid::new_v4(), Digest::of(b"table"));
        let open = || Journal::open(&path, dataset, table).unwrap();
        let mut journal = open();
        let first = journal.upload_key(&params()).unwrap();
        journal.confirm(OBJECT, Digest::of(b"1")).unwrap();
        let shown = format!("{journal:?}");
        assert!(!shown.contains(&key_to_text(&first)[..40]));
        drop(journal);
        let mut again = open();
        let key = again.upload_key(&params()).unwrap();
        assert_eq!((key.id(), key.to_bytes()), (first.id(), first.to_bytes()));
        assert_eq!(again.sent().len(), 1);
        // The key is not valid for another parameter set.
        let other = Parameters::new(fhaim_he::WIDE).unwrap();
        assert!(matches!(
            again.upload_key(&other),
            Err(Error::Journal { .. })
        ));
        again.forget(&OBJECT.name());
        let next = again.upload_key(&params()).unwrap();
        assert_ne!(next.id(), first.id());
        again.confirm(Object::Keys, Digest::of(b"2")).unwrap();
        drop(again);
        // Objects sent under the first key do not count.
        let mut last = open();
        let names: Vec<&String> = last.sent().keys().collect();
        assert_eq!(names, ["keys"]);
        assert_eq!(last.upload_key(&params()).unwrap().id(), next.id());
    }

    /// Wherever a crash cuts the file off, the objects that count as sent are under the key in the file.
    #[test]
    fn truncated_key_has_no_sent_objects() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("upload");
        let (dataset, table) = (Uuid::new_v4(), Digest::of(b"table"));
        let mut journal = Journal::open(&path, dataset, table).unwrap();
        let key = journal.upload_key(&params()).unwrap();
        journal.confirm(OBJECT, Digest::of(b"1")).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        let lines = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let ends: Vec<usize> = lines.map(|(place, _)| place + 1).collect();
        let cuts = [
            ends[0],
            ends[0] + 20,
            ends[1] - 1,
            ends[1],
            ends[1] + 20,
            ends[2],
        ];
        for cut in cuts {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut journal = Journal::open(&path, dataset, table).unwrap();
            let same = journal.upload_key(&params()).unwrap().id() == key.id();
            assert_eq!(same, cut == ends[2], "{cut}");
            assert_eq!(journal.sent().len(), usize::from(same));
        }
    }

    #[test]
    fn sent_objects_without_their_key_are_rejected() {
        let mut journal = Journal::in_memory();
        journal.confirm(OBJECT, Digest::of(b"1")).unwrap();
        assert!(matches!(
            journal.upload_key(&params()),
            Err(Error::Journal { .. })
        ));
    }

    #[cfg(unix)]
    #[test]
    fn record_file_is_readable_only_by_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("upload");
        let (dataset, table) = (Uuid::new_v4(), Digest::of(b"table"));
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        let mut journal = Journal::open(&path, dataset, table).unwrap();
        journal.upload_key(&params()).unwrap();
        assert_eq!(mode(), 0o600);
    }
}
