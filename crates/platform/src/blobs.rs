//! Large objects: a folder on one machine, an S3 bucket beyond it.

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

/// What a check of the store writes: about as much as a small object.
const CHECK_BYTES: usize = 64 << 10;

/// Why a blob was not stored or found.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// An address that is neither a folder nor a bucket.
    #[error("blobs: {0}: write file:///path or s3://bucket/prefix")]
    Address(String),
    /// The folder cannot be made.
    #[error("blobs: {0}")]
    Folder(#[from] std::io::Error),
    /// There is no such blob.
    #[error("there is no such blob")]
    Absent,
    /// The store failed.
    #[error("blob store: {0}")]
    Store(#[source] object_store::Error),
}

impl BlobError {
    /// Whether there is no room left.
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
    /// Where the blobs are files: their folder.
    folder: Option<Arc<PathBuf>>,
}

/// A blob that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// What a folder had in it at one moment.
#[derive(Debug)]
pub struct Contents {
    blobs: Vec<Path>,
    /// Files that a blob was being written to.
    unfinished: Vec<PathBuf>,
}

impl Blobs {
    /// The blobs of an object store.
    pub fn over(store: impl ObjectStore) -> Self {
        Self {
            store: Arc::new(store),
            folder: None,
        }
    }

    /// Opens what a configuration names; makes the folder if need be.
    ///
    /// # Errors
    /// An address that cannot be read, a folder that cannot be made.
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

    /// Stores a blob; one that is there already is replaced.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn put(&self, name: &str, bytes: Bytes) -> Result<(), BlobError> {
        self.store.put(&Path::from(name), bytes.into()).await?;
        Ok(())
    }

    /// A blob's bytes.
    ///
    /// # Errors
    /// [`BlobError::Absent`], or a failure of the store.
    pub async fn get(&self, name: &str) -> Result<Bytes, BlobError> {
        Ok(self.store.get(&Path::from(name)).await?.bytes().await?)
    }

    /// How many bytes a blob has, and these as they are read: never all of them in memory.
    ///
    /// # Errors
    /// [`BlobError::Absent`], or a failure of the store; the stream's own, where reading breaks off.
    pub async fn stream(
        &self,
        name: &str,
    ) -> Result<(u64, BoxStream<'static, std::io::Result<Bytes>>), BlobError> {
        let found = self.store.get(&Path::from(name)).await?;
        let bytes = found.meta.size;
        let pieces = found.into_stream().map_err(std::io::Error::other);
        Ok((bytes, pieces.boxed()))
    }

    /// Deletes a blob; one that is not there is deleted already.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn delete(&self, name: &str) -> Result<(), BlobError> {
        match self.store.delete(&Path::from(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes all blobs below a folder, also what was left of those that were being written when
    /// their service was killed.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn delete_folder(&self, folder: &str) -> Result<(), BlobError> {
        let path = Path::from(folder);
        self.delete_each(self.below(&path)).await?;
        let Some(root) = &self.folder else {
            return Ok(());
        };
        // Of files that are being written the store says nothing.
        let below = on_disk_at(root, &path);
        on_disk(move || remove_folder(&below)).await
    }

    /// What is below a folder now, whole blobs and what is left of those that were being written, to be
    /// deleted later: whatever comes after is not among it.
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

    /// Deletes what a folder had in it.
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

    /// Blobs below a folder, as they are listed. Whoever deletes the same folder meanwhile takes it away
    /// under the listing.
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

    /// Blobs below a folder that are as old as `age`.
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

    /// Deletes what is left of blobs that were being written when their service was killed, and
    /// that nobody has written to for as long as `age`. How many there were.
    ///
    /// # Errors
    /// A failure of the folder.
    pub async fn sweep(&self, age: Duration) -> Result<usize, BlobError> {
        let Some(root) = self.folder.clone() else {
            return Ok(0); // S3 has no blob before it has all of it
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

    /// Bytes that are free, and all there are, on the disk of a folder.
    pub fn room(&self) -> Option<(u64, u64)> {
        let disk = rustix::fs::statvfs(self.folder.as_deref()?).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Some((bytes(disk.f_bavail), bytes(disk.f_blocks)))
    }

    /// Whether the store can be written to: a full one answers and does no work.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn check(&self) -> Result<(), BlobError> {
        self.put("readiness", Bytes::from_static(&[0; CHECK_BYTES]))
            .await
    }
}

/// Where a folder of blobs is, below the folder of all.
fn on_disk_at(root: &std::path::Path, path: &Path) -> PathBuf {
    let parts = path.parts();
    parts.fold(root.to_owned(), |path, part| path.join(part.as_ref()))
}

/// Work on files, off the threads that answer.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, BlobError> {
    let done = blocking(work).await;
    let done = done.map_err(|_| std::io::Error::other("a thread ended before its work"))?;
    Ok(done?)
}

/// Files below a folder that a blob was being written to, for longer ago than `age`: those end in
/// `#` and a number until they are whole.
fn unfinished(
    folder: &std::path::Path,
    age: Duration,
    found: &mut Vec<PathBuf>,
) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            // One that goes meanwhile has nothing left.
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

/// How often a folder is removed that somebody still writes to, and the pause in between.
const REMOVALS: u32 = 20;
const REMOVAL_PAUSE: Duration = Duration::from_millis(50);

/// Removes a folder with everything in it. A worker that was stopped may be about to write one file
/// more, which makes the folder one that is not empty: that is gone with the next try.
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
    async fn a_folder_keeps_and_forgets() {
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

    /// A service that starts goes on with a deletion that its caller asks for again.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_folder_is_deleted_by_several_at_a_time() {
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

    /// A service that is killed while it writes a blob leaves the file that it wrote to.
    #[tokio::test]
    async fn unfinished_files_go() {
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

    /// A file that is written while the folder is removed would leave it behind.
    #[test]
    fn a_folder_that_is_still_written_to_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("below");
        let writer = {
            let below = below.clone();
            std::thread::spawn(move || {
                for file in 0..3000 {
                    // Once the folder is gone there is nothing to write to, as for a worker.
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
