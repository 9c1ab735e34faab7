//! The key of an upload's noise, stored in a separate file so that releases can be checked later.
//!
//! The file is one JSON object: the version, the dataset, the holder's number in it, the 32 bytes of the key in
//! hexadecimal, a digest of the table under that key, and whether the upload is complete. Once everything is sent, it
//! also has the digest of the upload. Only the file's owner can read it: the key removes the noise from the releases.

use fhaim_api::Digest;
use fhaim_domain::Version;
use fhaim_dp::{LadderKey, generator};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use uuid::Uuid;
use zeroize::{Zeroize, Zeroizing};

use crate::{Error, Records};

/// The version of the file.
const VERSION: u8 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: Version<VERSION>,
    dataset: Uuid,
    part: u32,
    key: Digest,
    table: Digest,
    complete: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    manifest: Option<Digest>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.key.0.zeroize();
    }
}

/// A ladder key and the upload that it belongs to.
#[derive(Debug)]
pub struct KeptLadder {
    path: PathBuf,
    dataset: Uuid,
    part: u32,
    key: LadderKey,
    table: Digest,
    complete: bool,
    manifest: Option<Digest>,
}

impl KeptLadder {
    /// Creates a key for the upload of some records. It replaces any earlier key in the file.
    ///
    /// # Errors
    /// [`Error::Ladder`] if the file cannot be written. [`Error::Protocol`] if the system has no randomness.
    pub fn make(path: &Path, dataset: Uuid, part: u32, records: &Records) -> Result<Self, Error> {
        let mut rng = generator().map_err(fhaim_protocol::Error::from)?;
        let key = LadderKey::random(dataset.into_bytes(), &mut rng);
        let kept = Self {
            path: path.to_owned(),
            dataset,
            part,
            table: digest(&key, records),
            key,
            complete: false,
            manifest: None,
        };
        kept.write()?;
        Ok(kept)
    }

    /// Reads the key in a file. Returns `None` if there is no file.
    ///
    /// # Errors
    /// [`Error::Ladder`] for a file that cannot be read, or that belongs to another dataset.
    pub fn read(path: &Path, dataset: Uuid) -> Result<Option<Self>, Error> {
        let fault = |reason: String| Error::Ladder {
            path: path.to_owned(),
            reason,
        };
        let text = match std::fs::read(path) {
            Ok(text) => Zeroizing::new(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fault(error.to_string())),
        };
        // serde's errors may quote the text, which contains the key.
        let kept = serde_json::from_slice::<Kept>(&text);
        let kept = kept.map_err(|_| fault(format!("not a ladder key of version {VERSION}")))?;
        if kept.dataset != dataset {
            return Err(fault("the key belongs to another dataset".to_owned()));
        }
        Ok(Some(Self {
            path: path.to_owned(),
            dataset,
            part: kept.part,
            key: LadderKey::from_bytes(dataset.into_bytes(), &kept.key.0),
            table: kept.table,
            complete: kept.complete,
            manifest: kept.manifest,
        }))
    }

    /// The key's file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The key.
    pub fn key(&self) -> &LadderKey {
        &self.key
    }

    /// The holder's number in its dataset.
    pub fn part(&self) -> u32 {
        self.part
    }

    /// Returns whether the key was made for the upload of exactly these records.
    pub fn is_of(&self, records: &Records) -> bool {
        digest(&self.key, records) == self.table
    }

    /// Returns the key for resuming an upload of `part`. A key of a complete upload belonged to another upload. A key
    /// for other records would reveal where the two tables differ. Such a key cannot check this upload, so its file is
    /// removed.
    ///
    /// # Errors
    /// The errors of [`KeptLadder::read`], and a file that cannot be removed.
    pub(crate) fn go_on(
        path: &Path,
        dataset: Uuid,
        part: u32,
        records: &Records,
    ) -> Result<Option<Self>, Error> {
        match Self::read(path, dataset)? {
            Some(kept) if !kept.complete && kept.part == part && kept.is_of(records) => {
                Ok(Some(kept))
            }
            Some(_) => {
                std::fs::remove_file(path).map_err(|error| Error::Ladder {
                    path: path.to_owned(),
                    reason: error.to_string(),
                })?;
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// The digest of the upload that the key was made for, once everything is sent.
    pub(crate) fn manifest(&self) -> Option<Digest> {
        self.manifest
    }

    /// Stores the digest of the upload, before the request that completes it.
    ///
    /// # Errors
    /// [`Error::Ladder`] if the file cannot be written.
    pub(crate) fn sent(&mut self, manifest: Digest) -> Result<(), Error> {
        self.manifest = Some(manifest);
        self.write()
    }

    /// Marks the upload as complete, so that no other upload continues with this key.
    ///
    /// # Errors
    /// [`Error::Ladder`] if the file cannot be written.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.complete = true;
        self.write()
    }

    fn write(&self) -> Result<(), Error> {
        let kept = Kept {
            version: Version,
            dataset: self.dataset,
            part: self.part,
            key: Digest(*self.key.as_bytes()),
            table: self.table,
            complete: self.complete,
            manifest: self.manifest,
        };
        // Only numbers, names and digests: writing them cannot fail.
        let text = Zeroizing::new(serde_json::to_vec(&kept).unwrap_or_default());
        replace(&self.path, &text).map_err(|error| Error::Ladder {
            path: self.path.clone(),
            reason: error.to_string(),
        })
    }
}

/// Writes a file that only its owner can read. The old content is replaced completely or not at all.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let new = path.with_extension(format!("{}.new", Uuid::now_v7()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&new).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&new, path)
    });
    if written.is_err() {
        // It may contain a part of the key.
        let _ = std::fs::remove_file(&new);
    }
    written
}

/// Returns the digest, under a key, of the data of some records that is encrypted.
fn digest(key: &LadderKey, records: &Records) -> Digest {
    let mut hash = Sha256::new();
    match records {
        Records::Table(table) => {
            hash.update(b"records");
            for column in table.columns() {
                hash.update((column.len() as u64).to_le_bytes());
                column
                    .iter()
                    .for_each(|code| hash.update(code.to_le_bytes()));
            }
        }
        Records::Counts(pair_counts) => {
            hash.update(b"counts");
            let numbers = 0..pair_counts.tables().layout().ciphertexts();
            for counts in numbers.filter_map(|number| pair_counts.counts(number)) {
                hash.update((counts.len() as u64).to_le_bytes());
                counts
                    .iter()
                    .for_each(|count| hash.update(count.to_le_bytes()));
            }
        }
    }
    Digest(key.table_digest(&hash.finalize().into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::{Schema, Table};
    use std::sync::Arc;

    fn records(codes: Vec<u32>) -> Records {
        let schema = br#"{"name":"t","columns":[
            {"name":"a","kind":"categorical","categories":["x","y"]}]}"#;
        let schema = Schema::from_json("t.json", schema).unwrap();
        Records::Table(Arc::new(Table::new(schema, vec![codes]).unwrap()))
    }

    #[test]
    fn key_file_round_trips_and_identifies_its_table() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ladder");
        let id = Uuid::now_v7();
        assert!(KeptLadder::read(&path, id).unwrap().is_none());
        let made = KeptLadder::make(&path, id, 2, &records(vec![0, 1])).unwrap();
        let read = KeptLadder::read(&path, id).unwrap().unwrap();
        assert_eq!(read.key().as_bytes(), made.key().as_bytes());
        assert_eq!(read.part(), 2);
        assert!(read.is_of(&records(vec![0, 1])));
        for other in [vec![1, 0], vec![0, 0], vec![0, 1, 1]] {
            assert!(!read.is_of(&records(other)));
        }
        assert!(matches!(
            KeptLadder::read(&path, Uuid::now_v7()),
            Err(Error::Ladder { .. })
        ));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1);
    }

    /// No key is used for two uploads, or for two tables.
    #[test]
    fn upload_resumes_only_with_its_own_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ladder");
        let (id, table) = (Uuid::now_v7(), records(vec![0, 1]));
        let make = || KeptLadder::make(&path, id, 0, &table).unwrap();
        let go_on = |part, records: &Records| KeptLadder::go_on(&path, id, part, records).unwrap();
        let first = make();
        let again = go_on(0, &table).unwrap();
        assert_eq!(again.key().as_bytes(), first.key().as_bytes());
        assert_ne!(make().key().as_bytes(), first.key().as_bytes());
        for (part, records) in [(1, table.clone()), (0, records(vec![1, 1]))] {
            make();
            assert!(go_on(part, &records).is_none());
            assert!(!path.exists());
        }
        make().finish().unwrap();
        assert!(KeptLadder::read(&path, id).unwrap().is_some());
        assert!(go_on(0, &table).is_none());
    }

    #[test]
    fn invalid_key_file_is_rejected_without_quoting_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ladder");
        let id = Uuid::now_v7();
        KeptLadder::make(&path, id, 0, &records(vec![0])).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let secret = &text[text.find("\"key\":\"").unwrap() + 7..][..64];
        let newer = text.replace("\"version\":1", "\"version\":2");
        let more = text.replace("\"part\":0", "\"part\":0,\"more\":1");
        let cut = &text[..text.len() - 3];
        let odd = text.replace(secret, &secret[1..]);
        for other in [&newer, &more, cut, &odd, "", "[]"] {
            assert_ne!(other, text);
            std::fs::write(&path, other).unwrap();
            let error = KeptLadder::read(&path, id).unwrap_err().to_string();
            assert!(!error.contains(&secret[1..]), "{error}");
        }
    }
}
