//! Large objects, in a folder on one machine or in an S3 bucket.

use crate::config;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt, TryStreamExt};
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::threads::blocking;

/// Number of bytes that a check of the store writes, about the size of a small object.
const CHECK_BYTES: usize = 64 << 10;

/// The reason why a blob was not stored or found.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The address is neither a folder nor a bucket.
    #[error("blobs: {0}: write file:///path or s3://bucket/prefix")]
    Address(String),
    /// The folder cannot be created.
    #[error("blobs: {0}")]
    Folder(#[from] std::io::Error),
    /// The blob does not exist.
    #[error("the blob does not exist")]
    Absent,
    /// The store failed.
    #[error("blob store: {0}")]
    Store(#[source] object_store::Error),
}

impl BlobError {
    /// Returns whether the disk is full.
    pub fn is_full(&self) -> bool {
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = next {
            let kind = error.downcast_ref::<std::io::Error>();
            let kind = kind.map(std::io::Error::kind);
            if matches!(
                kind,
                Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
            ) {
                return true;
            }
            next = error.source();
        }
        false
    }
}

impl From<object_store::Error> for BlobError {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { .. } => Self::Absent,
            other => Self::Store(other),
        }
    }
}

/// A blob store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Blobs {
    store: Arc<dyn ObjectStore>,
    /// The folder of the blobs, if they are files.
    folder: Option<Arc<PathBuf>>,
}

/// A stored blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Name of the blob.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// The contents of a folder at one moment.
#[derive(Debug)]
pub struct Contents {
    blobs: Vec<Path>,
    /// Files to which a blob was being written.
    unfinished: Vec<PathBuf>,
}

impl Blobs {
    /// Makes a blob store over an object store.
    pub fn over(store: impl ObjectStore) -> Self {
        Self {
            store: Arc::new(store),
            folder: None,
        }
    }

    /// Opens the blob store that a configuration names, and creates its folder if necessary.
    ///
    /// # Errors
    /// [`BlobError`] if the address is invalid or the folder cannot be created.
    pub fn open(config: &config::Blobs) -> Result<Self, BlobError> {
        if let Some(folder) = config.url.strip_prefix("file://") {
            std::fs::create_dir_all(folder)?;
            let files = LocalFileSystem::new_with_prefix(folder)?.with_fsync(true);
            return Ok(Self {
                folder: Some(Arc::new(PathBuf::from(folder))),
                ..Self::over(files)
            });
        }
        let address = || BlobError::Address(config.url.clone());
        let rest = config.url.strip_prefix("s3://").ok_or_else(address)?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
        if let Some(endpoint) = &config.endpoint {
            let plain = endpoint.starts_with("http://");
            builder = builder.with_endpoint(endpoint).with_allow_http(plain);
        }
        if let Some(region) = &config.region {
            builder = builder.with_region(region);
        }
        let bucket = builder.build()?;
        Ok(Self::over(PrefixStore::new(bucket, prefix)))
    }

    /// Stores a blob. Replaces an existing blob of the same name.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn put(&self, name: &str, bytes: Bytes) -> Result<(), BlobError> {
        self.store.put(&Path::from(name), bytes.into()).await?;
        Ok(())
    }

    /// Reads a blob.
    ///
    /// # Errors
    /// [`BlobError::Absent`], or a failure of the store.
    pub async fn get(&self, name: &str) -> Result<Bytes, BlobError> {
        Ok(self.store.get(&Path::from(name)).await?.bytes().await?)
    }

    /// Returns the size of a blob, and a stream of its bytes, which are never all in memory.
    ///
    /// # Errors
    /// [`BlobError::Absent`], or a failure of the store. The stream yields an error if reading breaks off.
    pub async fn stream(
        &self,
        name: &str,
    ) -> Result<(u64, BoxStream<'static, std::io::Result<Bytes>>), BlobError> {
        let found = self.store.get(&Path::from(name)).await?;
        let bytes = found.meta.size;
        let pieces = found.into_stream().map_err(std::io::Error::other);
        Ok((bytes, pieces.boxed()))
    }

    /// Deletes a blob. Succeeds if the blob does not exist.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn delete(&self, name: &str) -> Result<(), BlobError> {
        match self.store.delete(&Path::from(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes all blobs below a folder, and the files of blobs that were being written when their service was
    /// killed.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn delete_folder(&self, folder: &str) -> Result<(), BlobError> {
        let path = Path::from(folder);
        self.delete_each(self.below(&path)).await?;
        let Some(root) = &self.folder else {
            return Ok(());
        };
        // The store does not list files that are being written.
        let below = on_disk_at(root, &path);
        on_disk(move || remove_folder(&below)).await
    }

    /// Lists the current contents of a folder, to be deleted later: complete blobs, and files of blobs that were
    /// being written. Later additions are not part of it.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn contents(&self, folder: &str) -> Result<Contents, BlobError> {
        let path = Path::from(folder);
        let blobs = self.below(&path).try_collect().await?;
        let unfinished = match &self.folder {
            None => Vec::new(),
            Some(root) => {
                let below = on_disk_at(root, &path);
                let find = move || {
                    let mut found = Vec::new();
                    match unfinished(&below, Duration::ZERO, &mut found) {
                        Err(error) if error.kind() == ErrorKind::NotFound => {}
                        done => done?,
                    }
                    Ok(found)
                };
                on_disk(find).await?
            }
        };
        Ok(Contents { blobs, unfinished })
    }

    /// Deletes listed contents of a folder.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn delete_contents(&self, contents: Contents) -> Result<(), BlobError> {
        let blobs = stream::iter(contents.blobs.into_iter().map(Ok));
        self.delete_each(blobs).await?;
        let remove = move || {
            for path in &contents.unfinished {
                match std::fs::remove_file(path) {
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    done => done?,
                }
            }
            Ok(())
        };
        on_disk(remove).await
    }

    /// Lists the blobs below a folder. Another deletion of the same folder may remove entries during the listing.
    fn below(&self, path: &Path) -> impl Stream<Item = Result<Path, object_store::Error>> {
        self.store.list(Some(path)).filter_map(|found| async {
            match found {
                Err(object_store::Error::NotFound { .. }) => None,
                found => Some(found.map(|meta| meta.location)),
            }
        })
    }

    async fn delete_each(
        &self,
        blobs: impl Stream<Item = Result<Path, object_store::Error>>,
    ) -> Result<(), BlobError> {
        let deleted = blobs.try_for_each_concurrent(8, |location| async move {
            match self.store.delete(&location).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        });
        Ok(deleted.await?)
    }

    /// Lists the blobs below a folder that are at least as old as `age`.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn list(&self, below: &str, age: Duration) -> Result<Vec<Listed>, BlobError> {
        let path = Path::from(below);
        let latest = SystemTime::now().checked_sub(age);
        let found: Vec<ObjectMeta> = self.store.list(Some(&path)).try_collect().await?;
        let old = |meta: &ObjectMeta| {
            latest.is_some_and(|latest| SystemTime::from(meta.last_modified) <= latest)
        };
        let listed = |meta: ObjectMeta| Listed {
            name: meta.location.to_string(),
            bytes: meta.size,
        };
        Ok(found.into_iter().filter(old).map(listed).collect())
    }

    /// Deletes files of blobs that were being written when their service was killed, and that have not been written
    /// to for `age`. Returns their number.
    ///
    /// # Errors
    /// A failure of the folder.
    pub async fn sweep(&self, age: Duration) -> Result<usize, BlobError> {
        let Some(root) = self.folder.clone() else {
            return Ok(0); // S3 stores only complete blobs
        };
        on_disk(move || {
            let mut found = Vec::new();
            unfinished(&root, age, &mut found)?;
            for path in &found {
                std::fs::remove_file(path)?;
            }
            Ok(found.len())
        })
        .await
    }

    /// Returns the free bytes and all bytes of the disk of the folder, if the blobs are files.
    pub fn room(&self) -> Option<(u64, u64)> {
        let disk = rustix::fs::statvfs(self.folder.as_deref()?).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Some((bytes(disk.f_bavail), bytes(disk.f_blocks)))
    }

    /// Checks that the store can be written to. A full store still answers reads.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn check(&self) -> Result<(), BlobError> {
        self.put("readiness", Bytes::from_static(&[0; CHECK_BYTES]))
            .await
    }
}

/// Returns the path of a folder of blobs below the root folder.
fn on_disk_at(root: &std::path::Path, path: &Path) -> PathBuf {
    let parts = path.parts();
    parts.fold(root.to_owned(), |path, part| path.join(part.as_ref()))
}

/// Does work on files outside the threads that answer requests.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, BlobError> {
    let done = blocking(work).await;
    let done = done.map_err(|_| std::io::Error::other("the thread panicked during the work"))?;
    Ok(done?)
}

/// Finds files below a folder to which a blob was being written, and that are older than `age`. Until a blob is
/// complete, the name of its file ends in `#` and a number.
fn unfinished(
    folder: &std::path::Path,
    age: Duration,
    found: &mut Vec<PathBuf>,
) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            // A folder that is removed meanwhile has no files left.
            match unfinished(&entry.path(), age, found) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                done => done?,
            }
            continue;
        }
        let name = entry.file_name();
        let number = name
            .to_str()
            .and_then(|name| Some(name.rsplit_once('#')?.1));
        let staging =
            number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        if !staging {
            continue;
        }
        let old = match entry.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            metadata => metadata?
                .modified()?
                .elapsed()
                .is_ok_and(|since| since >= age),
        };
        if old {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Number of attempts to remove a folder that is still being written to, and the pause between them.
const REMOVALS: u32 = 20;
const REMOVAL_PAUSE: Duration = Duration::from_millis(50);

/// Removes a folder with everything in it. A worker that was stopped may still write one more file, so that the
/// folder is not empty when it is removed. The next attempt removes that file too.
fn remove_folder(folder: &std::path::Path) -> std::io::Result<()> {
    let mut tries = 1..REMOVALS;
    loop {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                if tries.next().is_none() {
                    return Err(error);
                }
                std::thread::sleep(REMOVAL_PAUSE);
            }
            removed => return removed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn blobs_are_stored_read_and_deleted_by_folder() {
        let folder = tempfile::tempdir().unwrap();
        let config = config::Blobs {
            url: format!("file://{}/blobs", folder.path().display()),
            endpoint: None,
            region: None,
        };
        let blobs = Blobs::open(&config).unwrap();
        blobs.check().await.unwrap();
        for name in ["a/column/1/2", "a/noise/0/1/2", "b/column/1/2"] {
            blobs.put(name, Bytes::from(name)).await.unwrap();
        }
        assert_eq!(blobs.get("a/column/1/2").await.unwrap(), "a/column/1/2");
        let (bytes, pieces) = blobs.stream("a/column/1/2").await.unwrap();
        let pieces: Vec<Bytes> = pieces.try_collect().await.unwrap();
        assert_eq!(
            (bytes, pieces.concat().as_slice()),
            (12, &b"a/column/1/2"[..])
        );
        blobs.delete_folder("a").await.unwrap();
        let gone = blobs.get("a/noise/0/1/2").await;
        assert!(matches!(gone, Err(BlobError::Absent)));
        let gone = blobs.stream("a/noise/0/1/2").await.err();
        assert!(matches!(gone, Some(BlobError::Absent)));
        assert_eq!(blobs.get("b/column/1/2").await.unwrap(), "b/column/1/2");
    }

    /// A service that restarts continues a deletion that its caller also repeats.
    #[tokio::test(flavor = "multi_thread")]
    async fn folder_can_be_deleted_by_several_callers_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let config = config::Blobs {
            url: format!("file://{}", folder.path().display()),
            endpoint: None,
            region: None,
        };
        let blobs = Blobs::open(&config).unwrap();
        for blob in 0..600 {
            let place = folder.path().join(format!("a/{}/{blob}", blob / 6));
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(place, "x").unwrap();
        }
        let deleting = (0..4).map(|_| {
            let blobs = blobs.clone();
            tokio::spawn(async move { blobs.delete_folder("a").await })
        });
        for deleted in deleting.collect::<Vec<_>>() {
            deleted.await.unwrap().unwrap();
        }
        assert!(!folder.path().join("a").exists());
    }

    /// A service that is killed while it writes a blob leaves an unfinished file.
    #[tokio::test]
    async fn unfinished_files_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let config = config::Blobs {
            url: format!("file://{}", folder.path().display()),
            endpoint: None,
            region: None,
        };
        let blobs = Blobs::open(&config).unwrap();
        for name in ["a/1/whole", "b/1/whole", "c#1/whole"] {
            blobs.put(name, Bytes::from("x")).await.unwrap();
        }
        let (ours, others) = (
            folder.path().join("a/1/half#1"),
            folder.path().join("b/1/half#2"),
        );
        let write = || [&ours, &others].map(|path| std::fs::write(path, "half").unwrap());
        write();
        assert_eq!(blobs.sweep(Duration::from_secs(60)).await.unwrap(), 0);
        assert_eq!(blobs.sweep(Duration::ZERO).await.unwrap(), 2);
        write();
        blobs.delete_folder("a").await.unwrap();
        blobs.delete_folder("a").await.unwrap();
        assert!(!folder.path().join("a").exists());
        assert!(others.exists());
        blobs.get("b/1/whole").await.unwrap();
        blobs.get("c#1/whole").await.unwrap();
    }

    /// A file that is written during the removal must not keep the folder.
    #[test]
    fn folder_that_is_still_written_to_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("below");
        let writer = {
            let below = below.clone();
            std::thread::spawn(move || {
                for file in 0..3000 {
                    // Fails when the folder is gone, as it does for a worker.
                    let _ = std::fs::create_dir_all(below.join("page"));
                    let _ = std::fs::write(below.join(format!("page/{file}")), [0; 64]);
                }
            })
        };
        while !writer.is_finished() {
            remove_folder(&below).unwrap();
        }
        writer.join().unwrap();
        remove_folder(&below).unwrap();
        assert!(!below.exists());
    }
}
