//! Uploads with real blobs, a real database, and a stand-in for the crypto service.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use crate::common;

use bytes::Bytes;
use common::{Fixture, Keys, terms};
use fhaim_api::Digest;
use fhaim_api::problem::ProblemKind;
use fhaim_api::upload::WireLayout;
use fhaim_computation::datasets::PartReader;
use fhaim_computation::uploads::{self, WHOLE};
use fhaim_platform::Failure;
use fhaim_platform::blobs::Blobs;
use fhaim_protocol::upload::Object;
use object_store::local::LocalFileSystem;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use std::time::Duration;
use uuid::Uuid;

const COLUMN: Object = Object::Column {
    column: 3,
    chunk: 0,
};

const NOISE: Object = Object::Noise {
    page: 0,
    level: 1,
    index: 1,
};

/// Variances in the ladder's units. [`NOISE`] is the second vector of its second level, which a digit of 3 uses.
const WITH_NOISE: u64 = 3 << 2;
const WITHOUT_NOISE: u64 = 3;

/// Returns two kinds of damage: one changed byte, and another object that decodes as well.
fn changes(bytes: &[u8], others: &[u8]) -> [Vec<u8>; 2] {
    let mut flipped = bytes.to_vec();
    flipped[bytes.len() / 2] ^= 1;
    assert_ne!(bytes, others);
    [flipped, others.to_vec()]
}

/// Checks that a failure is final, and names the damaged object and its dataset.
fn assert_names(failure: &Failure, dataset: Uuid, what: &str) {
    assert_eq!(failure.kind(), ProblemKind::Damaged);
    let words = failure.problem.to_string();
    let named = words.contains(what) && words.contains(&dataset.to_string());
    assert!(named && words.contains("digest"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_object_is_detected_on_load() {
    let mut fixture = Fixture::new().await;
    let stored = fixture.upload().await;
    fixture.load(&stored).await.unwrap();
    fixture.state.memory.dataset_bytes = u64::MAX;
    let path = fixture.blob(&stored, &format!("{WHOLE}/{COLUMN}"));
    let whole = std::fs::read(&path).unwrap();
    for changed in changes(&whole, &fixture.encode(COLUMN, 2)) {
        std::fs::write(&path, changed).unwrap();
        let failure = fixture.load(&stored).await.unwrap_err();
        assert_names(&failure, stored.dataset, &COLUMN.name());
    }
    std::fs::write(&path, whole).unwrap();
    fixture.load(&stored).await.unwrap();
}

/// Noise is read when a page needs it. A batch with damaged noise is not sealed; a batch without it has the same result
/// before, during and after the damage.
#[tokio::test(flavor = "multi_thread")]
async fn changed_noise_is_detected_before_sealing() {
    let fixture = Fixture::new().await;
    let stored = fixture.upload().await;
    let sealed = fixture.answer(&stored, WITH_NOISE).await.unwrap();
    let without = fixture.answer(&stored, WITHOUT_NOISE).await.unwrap();
    let path = fixture.blob(&stored, &format!("{WHOLE}/{NOISE}"));
    let whole = std::fs::read(&path).unwrap();
    for changed in changes(&whole, &fixture.encode(NOISE, 2)) {
        std::fs::write(&path, changed).unwrap();
        let refused = fixture.answer(&stored, WITH_NOISE).await.unwrap_err();
        assert_names(&refused, stored.dataset, &NOISE.name());
        let other = fixture.answer(&stored, WITHOUT_NOISE).await.unwrap();
        assert_eq!(other, without);
    }
    std::fs::remove_file(&path).unwrap();
    let refused = fixture.answer(&stored, WITH_NOISE).await.unwrap_err();
    assert_names(&refused, stored.dataset, &NOISE.name());
    std::fs::write(&path, whole).unwrap();
    assert_eq!(fixture.answer(&stored, WITH_NOISE).await.unwrap(), sealed);
}

/// Covers a large upload, whose columns are read while a batch runs.
#[tokio::test(flavor = "multi_thread")]
async fn changed_column_is_detected_when_read_during_a_batch() {
    let fixture = Fixture::new().await;
    let stored = fixture.upload().await;
    let params = uploads::plan_core(&stored.terms).unwrap().parameters();
    let parts = PartReader::open_all(&fixture.state, &stored, &params.unwrap()).await;
    // `false`: the columns are not kept in memory.
    let table = parts.unwrap()[0]
        .columns(false)
        .await
        .unwrap()
        .unwrap()
        .table;
    let read = || {
        let table = table.clone();
        let read = move || table.read(0, &[2, 3], 0..1);
        tokio::task::spawn_blocking(read)
    };
    assert_eq!(read().await.unwrap().unwrap().len(), 2);
    let path = fixture.blob(&stored, &format!("{WHOLE}/{COLUMN}"));
    let whole = std::fs::read(&path).unwrap();
    for changed in changes(&whole, &fixture.encode(COLUMN, 2)) {
        std::fs::write(&path, changed).unwrap();
        let words = read().await.unwrap().unwrap_err().to_string();
        assert!(words.contains("column/3/0"), "{words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_key_is_detected_on_load() {
    let fixture = Fixture::new().await;
    let stored = fixture.upload().await;
    let others = Keys::new(&terms(1000));
    for (name, others) in [
        ("public", others.public.to_bytes().unwrap()),
        ("evaluation", others.evaluation.to_bytes()),
    ] {
        let path = fixture.blob(&stored, name);
        let whole = std::fs::read(&path).unwrap();
        for changed in changes(&whole, &others) {
            std::fs::write(&path, changed).unwrap();
            let failure = fixture.load(&stored).await.unwrap_err();
            assert_names(&failure, stored.dataset, name);
        }
        std::fs::write(&path, whole).unwrap();
        fixture.load(&stored).await.unwrap();
    }
}

/// A put that has found the upload open and still writes when the upload is completed.
#[tokio::test(flavor = "multi_thread")]
async fn put_racing_with_complete_changes_nothing() {
    let fixture = Fixture::new().await;
    let stored = fixture.register().await;
    let digests = fixture.put_all(&stored).await;
    let mut slow = fixture.state.clone();
    let files = LocalFileSystem::new_with_prefix(fixture.blobs()).unwrap();
    let wait = ThrottleConfig {
        wait_put_per_call: Duration::from_secs(3),
        ..ThrottleConfig::default()
    };
    slow.base.blobs = Blobs::over(ThrottledStore::new(files, wait));
    let bytes = fixture.encode(COLUMN, 2);
    let digest = Digest::of(&bytes);
    let racing = {
        let stored = stored.clone();
        tokio::spawn(async move {
            uploads::put(&slow, &stored, WHOLE, &COLUMN.name(), digest, bytes).await
        })
    };
    // By now the put has checked the upload. A slower put would find it complete, which also passes.
    tokio::time::sleep(Duration::from_secs(1)).await;
    fixture.complete(&stored, &digests).await.unwrap();
    let refused = racing.await.unwrap().unwrap_err();
    assert_eq!(refused.kind(), ProblemKind::Conflict);
    let blob = fixture.blob(&stored, &format!("{WHOLE}/{COLUMN}"));
    let kept = Digest::of(&std::fs::read(blob).unwrap());
    assert_eq!(kept, digests[&COLUMN.name()]);
    fixture.load(&stored).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_put_replaces_the_object_and_leaves_no_blob() {
    let fixture = Fixture::new().await;
    let stored = fixture.register().await;
    let mut digests = fixture.put_all(&stored).await;
    // Puts the same bytes, then others, and then several others concurrently.
    for seed in [1, 2] {
        fixture
            .put(&stored, COLUMN, &fixture.encode(COLUMN, seed))
            .await
            .unwrap();
    }
    let many: Vec<Bytes> = (3..9).map(|seed| fixture.encode(NOISE, seed)).collect();
    let puts = many.iter().map(|bytes| fixture.put(&stored, NOISE, bytes));
    let done = futures_util::future::join_all(puts).await;
    assert!(done.iter().all(Result::is_ok));
    let blob = |object| fixture.blob(&stored, &format!("{WHOLE}/{object}"));
    let digest = |object| Digest::of(&std::fs::read(blob(object)).unwrap());
    assert_eq!(digest(COLUMN), Digest::of(&fixture.encode(COLUMN, 2)));
    assert!(many.iter().any(|bytes| Digest::of(bytes) == digest(NOISE)));
    // The manifest must be that of the current objects.
    let old = fixture.complete(&stored, &digests).await.unwrap_err();
    assert_eq!(old.kind(), ProblemKind::DigestMismatch);
    for object in [COLUMN, NOISE] {
        digests.insert(object.name(), digest(object));
    }
    fixture.complete(&stored, &digests).await.unwrap();
    fixture.load(&stored).await.unwrap();
    let bytes = fixture.encode(COLUMN, 1);
    let late = fixture.put(&stored, COLUMN, &bytes).await.unwrap_err();
    assert_eq!(late.kind(), ProblemKind::Conflict);
    fixture.load(&stored).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn layout_beyond_the_record_bound_is_rejected() {
    let fixture = Fixture::new().await;
    for (bound, stride, accepted) in [
        (64, 64, true),
        (1, 64, true),
        (65, 128, true),
        (64, 128, false),
        (63, 128, false),
        (257, 512, true),
        (256, 512, false),
    ] {
        let registered = fixture.register_as(terms(bound), stride).await;
        match registered {
            Ok(_) => assert!(accepted, "{bound} records, stride {stride}"),
            Err(failure) => {
                assert!(!accepted, "{bound} records, stride {stride}: {failure}");
                assert_eq!(failure.kind(), ProblemKind::Invalid);
                assert!(failure.to_string().contains("record bound"), "{failure}");
            }
        }
    }
    // All chunks but the last are full.
    for (bound, chunks, accepted) in [(8193, 2, true), (8192, 2, false), (24_576, 4, false)] {
        let stride = 8192;
        let layout = Some(WireLayout { chunks, stride });
        let checked = uploads::part_plan(&terms(bound), WHOLE, layout);
        assert_eq!(
            checked.is_ok(),
            accepted,
            "{bound} records, {chunks} chunks"
        );
    }
}

/// A full disk rejects the object with a problem that tells the client to retry.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs mount"]
async fn put_on_a_full_disk_can_be_retried() {
    let fixture = Fixture::new().await;
    let stored = fixture.register().await;
    let full = fixture
        .blobs()
        .join(&stored.folder)
        .join(format!("{WHOLE}/column"));
    std::fs::create_dir_all(&full).unwrap();
    let mount = |program: &str, arguments: &[&str]| {
        let done = std::process::Command::new(program)
            .args(arguments)
            .arg(&full)
            .output();
        done.is_ok_and(|done| done.status.success())
    };
    let mounted = mount("mount", &["-t", "tmpfs", "-o", "size=64k", "tmpfs"]);
    assert!(mounted, "this user may mount file systems");
    let refused = fixture
        .put(&stored, COLUMN, &fixture.encode(COLUMN, 1))
        .await;
    assert!(mount("umount", &["-l"]));
    let failure = refused.unwrap_err();
    assert_eq!(failure.kind(), ProblemKind::Full, "{failure}");
    assert!(failure.problem.retry_after.is_some());
    let digests = fixture.put_all(&stored).await;
    fixture.complete(&stored, &digests).await.unwrap();
    fixture.load(&stored).await.unwrap();
}

/// The costly parts of a plan are computed once, by the service that knows the mechanism, and stored with the
/// upload's terms. This service uses the stored values.
#[tokio::test(flavor = "multi_thread")]
async fn stored_plan_of_an_upload_is_used() {
    let fixture = Fixture::new().await;
    let stored = fixture.register().await;
    let objects = async || {
        let stored = uploads::find(&fixture.state, stored.dataset).await.unwrap();
        let upload = uploads::show(&fixture.state, &stored).await.unwrap();
        upload.contributions[0].objects
    };
    let planned = objects().await;
    assert_eq!(planned, fixture.plan.object_count() as u64);
    // More than any mechanism needs, to show that the stored value is used.
    let mut terms = stored.terms.clone();
    terms.need.as_mut().unwrap().ladder.cells += 1 << 20;
    let text = serde_json::to_string(&terms).unwrap();
    let update = sqlx::query("UPDATE uploads SET terms = $1").bind(text);
    update
        .execute(fixture.state.base.store.pool())
        .await
        .unwrap();
    assert!(objects().await > planned);
}
