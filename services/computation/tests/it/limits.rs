//! Storage limits of an account.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use crate::common;

use common::{Fixture, terms};
use fhaim_api::Digest;
use fhaim_api::dataset::WireTerms;
use fhaim_api::problem::ProblemKind;
use fhaim_api::upload::{NewUpload, Upload, WireLayout};
use fhaim_computation::{limits, uploads};
use fhaim_platform::Failure;
use fhaim_platform::blobs::Blobs;
use fhaim_protocol::roster::ContributionKind;
use fhaim_protocol::terms::Terms;
use object_store::local::LocalFileSystem;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use std::time::Duration;
use tokio::time::error::Elapsed;
use uuid::Uuid;

async fn register(fixture: &Fixture, owner: Uuid) -> Result<Upload, Failure> {
    let layout = Some(WireLayout {
        chunks: 1,
        stride: 128,
    });
    let terms = WireTerms(terms(1000));
    let new = NewUpload { terms, layout };
    let made = uploads::register(&fixture.state, Uuid::new_v4(), owner, new).await;
    made.map(|(upload, _)| upload)
}

/// Returns the used bytes and the limit.
async fn used(fixture: &Fixture, owner: Uuid) -> (u64, u64) {
    let usage = limits::usage(&fixture.state, owner).await.unwrap();
    assert_eq!(usage.limits[0].limit, "stored_bytes");
    (usage.limits[0].used, usage.limits[0].most)
}

#[tokio::test(flavor = "multi_thread")]
async fn account_storage_is_limited() {
    let mut fixture = Fixture::new().await;
    let (ana, eve) = (Uuid::new_v4(), Uuid::new_v4());
    register(&fixture, ana).await.unwrap();
    let params = terms(1000).plan().unwrap().parameters().unwrap();
    let bytes = fixture
        .plan
        .form()
        .bytes(&params, fixture.plan.polynomials());
    assert_eq!(used(&fixture, ana).await.0, bytes);
    fixture.state = fixture.reopened(2 * bytes + 1).await;
    assert_eq!(used(&fixture, ana).await, (bytes, 2 * bytes + 1));
    // Concurrent registrations do not exceed the limit.
    let (one, two) = tokio::join!(register(&fixture, ana), register(&fixture, ana));
    let (made, refused) = match (one, two) {
        (Ok(made), Err(refused)) | (Err(refused), Ok(made)) => (made, refused),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused.kind(), ProblemKind::Quota);
    let words = refused.problem.to_string();
    assert!(
        words.contains("stored_bytes: ") && words.contains("delete a dataset"),
        "{words}"
    );
    let kept = std::fs::read_dir(fixture.blobs().join("uploads")).unwrap();
    let folders = kept.map(|dataset| std::fs::read_dir(dataset.unwrap().path()).unwrap());
    let keys = folders
        .flatten()
        .filter(|set| set.as_ref().unwrap().path().join("public").exists());
    assert_eq!(keys.count(), 2, "the refused upload left its keys");
    register(&fixture, eve).await.unwrap();
    uploads::delete(&fixture.state, made.dataset, ana)
        .await
        .unwrap();
    register(&fixture, ana).await.unwrap();
}

/// Guards against blobs that no row counts, left by clients that disconnect after sending an object.
#[tokio::test(flavor = "multi_thread")]
async fn disconnected_puts_leave_no_extra_blobs() {
    let fixture = Fixture::new().await;
    let stored = fixture.register().await;
    let object = fixture.plan.column_objects().next().unwrap();
    let slow = ThrottleConfig {
        wait_put_per_call: Duration::from_millis(100),
        ..ThrottleConfig::default()
    };
    let local = LocalFileSystem::new_with_prefix(fixture.blobs()).unwrap();
    let mut state = fixture.state.clone();
    state.base.blobs = Blobs::over(ThrottledStore::new(local, slow));
    let folder = fixture.blobs().join(&stored.folder).join("0");
    for seed in 0..10 {
        let bytes = fixture.encode(object, seed);
        let (digest, name) = (Digest::of(&bytes), object.name());
        let put = uploads::put(&state, &stored, uploads::WHOLE, &name, digest, bytes);
        let hung_up = tokio::time::timeout(Duration::from_millis(60 + 10 * seed), put).await;
        assert!(matches!(hung_up, Err(Elapsed { .. })) || seed > 3);
    }
    fixture
        .put(&stored, object, &fixture.encode(object, 99))
        .await
        .unwrap();
    // A started put runs to its end without its client.
    let there = async || {
        let blobs = std::fs::read_dir(folder.join("column/0")).unwrap().count();
        let kept = uploads::objects(&fixture.state, &stored, uploads::WHOLE).await;
        (kept.unwrap().len(), blobs)
    };
    for _ in 0..200 {
        if there().await == (1, 1) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(there().await, (1, 1));
    fixture.blob(&stored, &format!("0/{object}"));
}

/// All counts are kept in memory, so those that would not fit are refused before they are sent.
#[tokio::test(flavor = "multi_thread")]
async fn counts_larger_than_memory_are_rejected() {
    let mut fixture = Fixture::new().await;
    let counts = Terms {
        contribution: ContributionKind::Counts,
        ..terms(1000).choices()
    };
    let counts = counts.complete(&fhaim_synth::Mechanisms).unwrap();
    let register = async |fixture: &Fixture| {
        let (dataset, owner, terms) = (Uuid::new_v4(), Uuid::new_v4(), WireTerms(counts.clone()));
        let new = NewUpload {
            terms,
            layout: None,
        };
        uploads::register(&fixture.state, dataset, owner, new).await
    };
    let set = uploads::plan_core(&counts).unwrap().set;
    let one = set.memory_bytes() as u64;
    fixture.state.memory.counts_bytes = one - 1;
    let refused = register(&fixture).await.unwrap_err();
    assert_eq!(refused.kind(), ProblemKind::Invalid);
    let words = refused.problem.to_string();
    assert!(words.contains("upload records"), "{words}");
    fixture.state.memory.counts_bytes = 8 * one;
    register(&fixture).await.unwrap();
}
