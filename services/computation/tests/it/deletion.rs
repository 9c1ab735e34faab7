//! Deletion removes everything: batches, objects, keys, partly written files, and then rows.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use crate::common;

use common::Fixture;
use fhaim_api::batch::Batch;
use fhaim_api::problem::ProblemKind;
use fhaim_computation::store::batches::{Name, TABLE};
use fhaim_computation::{batches, uploads};
use fhaim_platform::blobs::Blobs;
use fhaim_platform::housekeeping::{self, Housekeeping};
use fhaim_platform::lease::{Lost, Tasks};
use fhaim_release::{ReleaseRequest, Statistic};
use object_store::local::LocalFileSystem;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tokio::time::error::Elapsed;
use uuid::Uuid;

/// Returns all files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let below = |path: std::path::PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![path.display().to_string()],
    };
    entries
        .flat_map(|entry| below(entry.unwrap().path()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_stops_batches_and_leaves_no_file() {
    let fixture = Fixture::new().await;
    let state = &fixture.state;
    let stored = fixture.upload().await;
    let name = Name {
        dataset: stored.dataset,
        job: Uuid::new_v4(),
        first: 0,
    };
    let batch = Batch {
        requests: vec![ReleaseRequest {
            number: 0,
            statistic: Statistic::Total,
            variance_units: 9,
        }],
        receipts: Vec::new(),
        again: false,
    };
    batches::ask(state, name, &batch).await.unwrap();
    let tasks = Tasks::new(state.base.store.clone(), TABLE, 30);
    let lease = tasks.take(&[]).await.unwrap().unwrap();
    // A file that a killed service was writing.
    let half = fixture.blobs().join(&stored.folder).join("0/half#1");
    std::fs::write(half, "half").unwrap();

    let (dataset, owner) = (stored.dataset, stored.owner);
    let other = uploads::delete(state, dataset, Uuid::new_v4()).await;
    assert_eq!(other.unwrap_err().kind(), ProblemKind::NotFound);
    uploads::delete(state, dataset, owner).await.unwrap();
    let renewed = tasks.renew(&lease).await.unwrap();
    assert_eq!(renewed, Err(Lost), "the batch is still leased");
    assert_eq!(
        files(&fixture.blobs().join("uploads")),
        Vec::<String>::new()
    );
    let again = uploads::delete(state, dataset, owner).await.unwrap_err();
    assert_eq!(again.kind(), ProblemKind::NotFound);
    // The database's write-ahead log is empty, too.
    let log = fixture.folder.path().join("store.db-wal");
    assert_eq!(std::fs::metadata(log).map_or(0, |log| log.len()), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn service_killed_during_a_deletion_starts_again() {
    let fixture = Fixture::new().await;
    let stored = fixture.upload().await;
    fhaim_computation::store::uploads::begin_deletion(&fixture.state.base.store, stored.dataset)
        .await
        .unwrap();
    let state = fixture.reopened(1 << 30).await;
    let found = uploads::find(&state, stored.dataset).await;
    assert_eq!(found.unwrap_err().kind(), ProblemKind::NotFound);
}

/// Guards against ciphertexts that remain after an interrupted deletion, because rows were deleted first
/// and the next call reported success.
#[tokio::test(flavor = "multi_thread")]
async fn interrupted_deletion_is_resumed() {
    let mut fixture = Fixture::new().await;
    let stored = fixture.upload().await;
    let (dataset, owner) = (stored.dataset, stored.owner);
    let files_there = || files(&fixture.blobs().join("uploads")).len();
    let all = files_there();
    // Each deletion of a blob is slow, and the caller gives up.
    let slow = ThrottleConfig {
        wait_delete_per_call: Duration::from_millis(200),
        ..ThrottleConfig::default()
    };
    let local = LocalFileSystem::new_with_prefix(fixture.blobs()).unwrap();
    let quick = fixture.state.base.blobs.clone();
    let mut state = fixture.state.clone();
    state.base.blobs = Blobs::over(ThrottledStore::new(local, slow));
    let deleting = uploads::delete(&state, dataset, owner);
    let broken_off = tokio::time::timeout(Duration::from_millis(500), deleting).await;
    assert!(matches!(broken_off, Err(Elapsed { .. })));
    let left = files_there();
    assert!(0 < left && left < all, "{left} of {all}");
    // The upload is hidden from its owner, and nothing can be added.
    let found = uploads::find_owned(&state, dataset, owner).await;
    assert_eq!(found.unwrap_err().kind(), ProblemKind::NotFound);
    let object = fixture.plan.objects().next().unwrap();
    let bytes = fixture.encode(object, 1);
    let put = fixture.put(&stored, object, &bytes).await.unwrap_err();
    assert_eq!(put.kind(), ProblemKind::NotFound);
    fixture.state.base.blobs = quick;
    // The service resumes the deletion when it starts; the owner's next call finds nothing.
    fixture.state.tidy().await.unwrap();
    assert_eq!(
        files(&fixture.blobs().join("uploads")),
        Vec::<String>::new()
    );
    let again = uploads::delete(&fixture.state, dataset, owner).await;
    assert_eq!(again.unwrap_err().kind(), ProblemKind::NotFound);
}

/// A worker that was killed after its dataset's deletion leaves a page that no row names.
#[tokio::test(flavor = "multi_thread")]
async fn blob_without_a_row_is_an_orphan() {
    let fixture = Fixture::new().await;
    let stored = fixture.register().await;
    let blobs = &fixture.state.base.blobs;
    let object = fixture.plan.objects().next().unwrap();
    let bytes = fixture.encode(object, 1);
    fixture.put(&stored, object, &bytes).await.unwrap();
    let lost = [
        format!("uploads/{}/{}/sealed/page", Uuid::new_v4(), Uuid::new_v4()),
        // In the folder of an existing upload.
        format!("{}/sealed/page", stored.folder),
        stored.blob(uploads::WHOLE, object, Uuid::new_v4()),
    ];
    for name in &lost {
        blobs.put(name, "page".into()).await.unwrap();
    }
    let orphans = housekeeping::orphans(&fixture.state, Duration::ZERO).await;
    let orphans: BTreeSet<String> = orphans.unwrap().into_iter().map(|blob| blob.name).collect();
    assert_eq!(orphans, BTreeSet::from(lost));
    let young = housekeeping::orphans(&fixture.state, Duration::from_secs(60)).await;
    assert_eq!(young.unwrap(), []);
}
