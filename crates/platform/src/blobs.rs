//! Large objects: a folder on one machine, an S3 bucket beyond it.

use crate::config;
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreExt};
use std::io::ErrorKind;
use std::sync::Arc;

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
pub struct Blobs(Arc<dyn ObjectStore>);

impl Blobs {
    /// The blobs of an object store.
    pub fn over(store: impl ObjectStore) -> Self {
        Self(Arc::new(store))
    }

    /// Opens what a configuration names; makes the folder if need be.
    ///
    /// # Errors
    /// An address that cannot be read, a folder that cannot be made.
    pub fn open(config: &config::Blobs) -> Result<Self, BlobError> {
        if let Some(folder) = config.url.strip_prefix("file://") {
            std::fs::create_dir_all(folder)?;
            let files = LocalFileSystem::new_with_prefix(folder)?.with_fsync(true);
            return Ok(Self::over(files));
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
        self.0.put(&Path::from(name), bytes.into()).await?;
        Ok(())
    }

    /// A blob's bytes.
    ///
    /// # Errors
    /// [`BlobError::Absent`], or a failure of the store.
    pub async fn get(&self, name: &str) -> Result<Bytes, BlobError> {
        Ok(self.0.get(&Path::from(name)).await?.bytes().await?)
    }

    /// Deletes a blob; one that is not there is deleted already.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn delete(&self, name: &str) -> Result<(), BlobError> {
        match self.0.delete(&Path::from(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes all blobs below a folder.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn delete_folder(&self, folder: &str) -> Result<(), BlobError> {
        let folder = Path::from(folder);
        let blobs = self.0.list(Some(&folder)).map_ok(|meta| meta.location);
        let deleted = blobs.try_for_each_concurrent(8, |location| async move {
            match self.0.delete(&location).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        });
        Ok(deleted.await?)
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
        blobs.delete_folder("a").await.unwrap();
        let gone = blobs.get("a/noise/0/1/2").await;
        assert!(matches!(gone, Err(BlobError::Absent)));
        assert_eq!(blobs.get("b/column/1/2").await.unwrap(), "b/column/1/2");
    }
}
