//! Parts of several holders: their consistency, their memory, and taking one back.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use crate::common;

use common::{Fixture, Keys, terms};
use fhaim_api::Digest;
use fhaim_api::batch::Batch;
use fhaim_api::dataset::WireTerms;
use fhaim_api::problem::ProblemKind;
use fhaim_api::upload::{NewUpload, WireLayout};
use fhaim_computation::store::batches::{Name, TABLE};
use fhaim_computation::uploads::{self, StoredUpload};
use fhaim_computation::{batches, limits};
use fhaim_platform::Failure;
use fhaim_platform::blobs::Blobs;
use fhaim_platform::housekeeping::Housekeeping;
use fhaim_platform::lease::Tasks;
use fhaim_platform::runner::Work;
use fhaim_protocol::committee::{KeyService, ServiceSigningKey};
use fhaim_protocol::roster::{HolderSigningKey, Member, Partition, Roster};
use fhaim_protocol::terms::Terms;
use fhaim_protocol::upload::{Object, UploadPlan};
use fhaim_release::{ReleaseRequest, Statistic};
use object_store::local::LocalFileSystem;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::error::Elapsed;
use uuid::Uuid;

/// Two holders of one dataset.
struct Two {
    fixture: Fixture,
    terms: Terms,
    dataset: Uuid,
    users: [Uuid; 2],
}

impl Two {
    async fn new(partition: Partition) -> Self {
        let users = [Uuid::new_v4(), Uuid::new_v4()];
        let columns = |number: usize| match partition {
            Partition::Records => Vec::new(),
            Partition::Columns => vec![["a", "b"][number].to_owned()],
        };
        let member = |number: usize| Member {
            account: users[number].to_string(),
            columns: columns(number),
            record_bound: if partition == Partition::Records {
                500
            } else {
                1000
            },
            key: HolderSigningKey::from_bytes(&[number as u8 + 1; 32]).public(),
        };
        let terms = Terms {
            roster: Some(Roster {
                partition,
                honest: 1,
                holders: (0..2).map(member).collect(),
            }),
            ..terms(1000).choices()
        };
        let terms = terms.complete(&fhaim_synth::Mechanisms).unwrap();
        Self {
            fixture: Fixture::under(&terms).await,
            terms,
            dataset: Uuid::new_v4(),
            users,
        }
    }

    async fn register(&self, number: usize, stride: usize) -> Result<StoredUpload, Failure> {
        let layout = Some(WireLayout { chunks: 1, stride });
        let terms = WireTerms(self.terms.clone());
        let (state, user) = (&self.fixture.state, self.users[number]);
        uploads::register(state, self.dataset, user, NewUpload { terms, layout }).await?;
        uploads::find(state, self.dataset).await
    }

    /// Returns the plan of a holder of records.
    fn plan(&self) -> UploadPlan {
        self.fixture.plan
    }

    async fn put(
        &self,
        stored: &StoredUpload,
        number: u32,
        object: Object,
    ) -> Result<Digest, Failure> {
        let bytes = self
            .fixture
            .encode_as(number as usize, object, number.into());
        let digest = Digest::of(&bytes);
        let state = &self.fixture.state;
        uploads::put(state, stored, number, &object.name(), digest, bytes).await?;
        Ok(digest)
    }

    /// Uploads both parts.
    async fn upload(&self) -> StoredUpload {
        for number in 0..2 {
            self.upload_part(number).await;
        }
        self.stored().await
    }

    async fn upload_part(&self, number: usize) {
        let stored = self.register(number, 128).await.unwrap();
        let number = number as u32;
        let mut digests = BTreeMap::new();
        for object in self.plan().objects() {
            let digest = self.put(&stored, number, object).await.unwrap();
            digests.insert(object.name(), digest);
        }
        let completed = self.fixture.complete_part(&stored, number, &digests);
        completed.await.unwrap();
    }

    /// Returns the number of files of a holder's part.
    fn files(&self, stored: &StoredUpload, number: u32) -> usize {
        let folder = self
            .fixture
            .blobs()
            .join(&stored.folder)
            .join(number.to_string());
        files(&folder).len()
    }

    /// Returns the bytes that a holder's account uses.
    async fn used(&self, number: usize) -> u64 {
        let usage = limits::usage(&self.fixture.state, self.users[number]).await;
        usage.unwrap().limits[0].used
    }

    /// Asks for a batch and refuses it like a worker.
    async fn refused_batch(&self) {
        let state = &self.fixture.state;
        let name = Name {
            dataset: self.dataset,
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
        let used = uploads::take_back(state, &self.stored().await, 1).await;
        assert_eq!(
            used.unwrap_err().kind(),
            ProblemKind::Conflict,
            "the batch is under way"
        );
        let mut tx = tasks.begin().await.unwrap();
        state
            .fail(&mut tx, &lease, "not all have signed")
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    async fn stored(&self) -> StoredUpload {
        uploads::find(&self.fixture.state, self.dataset)
            .await
            .unwrap()
    }
}

fn files(folder: &std::path::Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let below = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    };
    entries
        .flat_map(|entry| below(entry.unwrap().path()))
        .collect()
}

/// A taken back part is deleted, no longer counted, and can be uploaded again.
#[tokio::test(flavor = "multi_thread")]
async fn taken_back_part_is_deleted_and_can_be_uploaded_again() {
    let two = Two::new(Partition::Records).await;
    let stored = two.upload().await;
    let (state, used) = (&two.fixture.state, two.used(1).await);
    assert!(used > 0 && two.files(&stored, 1) > 0);
    uploads::take_back(state, &stored, 1).await.unwrap();
    assert_eq!((two.used(1).await, two.files(&stored, 1)), (0, 0));
    assert!(two.used(0).await > 0 && two.files(&stored, 0) > 0);
    let again = uploads::take_back(state, &stored, 1).await.unwrap_err();
    assert_eq!(again.kind(), ProblemKind::NotFound);
    let object = two.plan().objects().next().unwrap();
    let late = two.put(&stored, 1, object).await.unwrap_err();
    assert_eq!(late.kind(), ProblemKind::NotFound);
    assert_eq!(two.files(&stored, 1), 0, "a late object stays");
    two.upload_part(1).await;
    assert_eq!(two.used(1).await, used);
    two.fixture.load(&stored).await.unwrap();
}

/// Guards against ciphertexts that remain when taking a part back is interrupted.
#[tokio::test(flavor = "multi_thread")]
async fn interrupted_taking_back_is_resumed() {
    let two = Two::new(Partition::Records).await;
    let stored = two.upload().await;
    let all = two.files(&stored, 1);
    let slow = ThrottleConfig {
        wait_delete_per_call: Duration::from_millis(200),
        ..ThrottleConfig::default()
    };
    let local = LocalFileSystem::new_with_prefix(two.fixture.blobs()).unwrap();
    let mut state = two.fixture.state.clone();
    state.base.blobs = Blobs::over(ThrottledStore::new(local, slow));
    let taking_back = uploads::take_back(&state, &stored, 1);
    let broken_off = tokio::time::timeout(Duration::from_millis(500), taking_back).await;
    assert!(matches!(broken_off, Err(Elapsed { .. })));
    let left = two.files(&stored, 1);
    assert!(0 < left && left < all, "{left} of {all}");
    // Nothing can be added or computed, and the other part is unchanged.
    let object = two.plan().objects().next().unwrap();
    let put = two.put(&stored, 1, object).await.unwrap_err();
    assert_eq!(put.kind(), ProblemKind::NotFound);
    let loaded = two.fixture.load(&stored).await.unwrap_err();
    assert_eq!(loaded.kind(), ProblemKind::Internal);
    let words = "does not have all contributions";
    assert!(loaded.to_string().contains(words), "{loaded}");
    let registered = two.register(1, 128).await.unwrap_err();
    assert_eq!(registered.kind(), ProblemKind::Unavailable, "{registered}");
    two.fixture.state.tidy().await.unwrap();
    assert_eq!(two.files(&stored, 1), 0);
    assert!(two.files(&stored, 0) > 0);
    assert_eq!(two.used(1).await, 0);
    two.register(1, 128).await.unwrap();
}

/// Guards against a replica that still deletes a taken back part while it is uploaded again.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn part_uploaded_again_survives_a_late_deletion() {
    let two = Two::new(Partition::Records).await;
    let stored = two.upload().await;
    let state = &two.fixture.state;
    let slow = |config: ThrottleConfig| {
        let local = LocalFileSystem::new_with_prefix(two.fixture.blobs()).unwrap();
        let mut state = state.clone();
        state.base.blobs = Blobs::over(ThrottledStore::new(local, config));
        state
    };
    let deleting = slow(ThrottleConfig {
        wait_delete_per_call: Duration::from_secs(5),
        ..ThrottleConfig::default()
    });
    let taking_back = uploads::take_back(&deleting, &stored, 1);
    let broken_off = tokio::time::timeout(Duration::from_millis(100), taking_back).await;
    assert!(matches!(broken_off, Err(Elapsed { .. })));
    // The late replica has read which parts are taken back, but not yet listed their folders.
    let listing = slow(ThrottleConfig {
        wait_list_per_call: Duration::from_secs(4),
        ..ThrottleConfig::default()
    });
    let late = tokio::spawn(async move { listing.tidy().await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    state.tidy().await.unwrap();
    two.upload_part(1).await;
    let all = two.files(&stored, 1);
    assert!(!late.is_finished(), "the other was not late");
    late.await.unwrap().unwrap();
    assert_eq!(two.files(&stored, 1), all);
    two.fixture.load(&two.stored().await).await.unwrap();
}

/// Anyone who may start a job could otherwise prevent other holders from deleting their ciphertexts.
#[tokio::test(flavor = "multi_thread")]
async fn refused_batch_does_not_block_taking_back() {
    let two = Two::new(Partition::Records).await;
    let stored = two.upload().await;
    two.refused_batch().await;
    uploads::take_back(&two.fixture.state, &stored, 1)
        .await
        .unwrap();
    assert_eq!(two.files(&stored, 1), 0);
}

/// Guards against a memory limit per holder, which several holders together exceed.
#[tokio::test(flavor = "multi_thread")]
async fn column_memory_is_bounded_over_all_holders() {
    let mut two = Two::new(Partition::Records).await;
    let stored = two.upload().await;
    let column = Object::Column {
        column: 3,
        chunk: 0,
    };
    let path = two.fixture.blob(&stored, &format!("1/{column}"));
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let set = uploads::plan_core(&stored.terms).unwrap().set;
    let one = (two.fixture.plan.columns * set.plaintext_moduli.len() * set.memory_bytes()) as u64;
    // Loading reads the columns that are kept in memory, and finds the changed byte. Other columns are
    // read when a batch needs them.
    for (bytes, kept) in [(2 * one, true), (2 * one - 1, false), (one, false)] {
        two.fixture.state.memory.dataset_bytes = bytes;
        let loaded = two.fixture.load(&stored).await;
        assert_eq!(loaded.is_err(), kept, "{bytes} bytes: {loaded:?}");
    }
}

/// Each holder has its own upload key. Otherwise, a copy of another holder's objects could be computed on.
#[tokio::test(flavor = "multi_thread")]
async fn object_under_another_holders_upload_key_is_refused() {
    let two = Two::new(Partition::Records).await;
    let stored = two.upload().await;
    let state = &two.fixture.state;
    uploads::take_back(state, &stored, 1).await.unwrap();
    let stored = two.register(1, 128).await.unwrap();
    for object in [
        Object::Column {
            column: 0,
            chunk: 0,
        },
        Object::Noise {
            page: 0,
            level: 0,
            index: 0,
        },
    ] {
        let put = async |holder: usize| {
            let bytes = two.fixture.encode_as(holder, object, 9);
            let digest = Digest::of(&bytes);
            uploads::put(state, &stored, 1, &object.name(), digest, bytes).await
        };
        let refused = put(0).await.unwrap_err();
        assert_eq!(refused.kind(), ProblemKind::Invalid, "{refused}");
        assert!(refused.to_string().contains("upload key"), "{refused}");
        put(1).await.unwrap();
    }
    assert!(two.files(&stored, 1) > 0);
}

/// The key services make the switching keys of a roster, so its holders upload none.
#[tokio::test(flavor = "multi_thread")]
async fn holder_of_a_roster_has_no_keys_object() {
    let two = Two::new(Partition::Records).await;
    let stored = two.register(1, 128).await.unwrap();
    let keys = Object::Keys.name();
    let bytes = bytes::Bytes::from_static(b"keys");
    let digest = Digest::of(&bytes);
    let refused = uploads::put(&two.fixture.state, &stored, 1, &keys, digest, bytes).await;
    assert_eq!(refused.unwrap_err().kind(), ProblemKind::NotFound);
}

/// Keys for another roster would not switch the holders' objects to the dataset's key.
#[tokio::test(flavor = "multi_thread")]
async fn evaluation_keys_of_another_roster_are_refused() {
    let mut two = Two::new(Partition::Records).await;
    let agreed = two.fixture.keys.agreed.lock().unwrap().take().unwrap();
    let mut sole = agreed.choices();
    sole.roster = None;
    two.fixture.keys = Keys::new(&sole.complete(&fhaim_synth::Mechanisms).unwrap());
    *two.fixture.keys.agreed.lock().unwrap() = Some(agreed);
    two.fixture.state = two.fixture.reopened(1 << 30).await;
    let refused = two.register(0, 128).await.unwrap_err();
    assert!(refused.to_string().contains("another roster"), "{refused}");
}

/// The first key service makes the keys without the second, and shows terms that name no other service.
#[tokio::test(flavor = "multi_thread")]
async fn keys_without_the_second_key_service_are_refused() {
    let service = |name: &str, key| KeyService {
        name: name.to_owned(),
        key: ServiceSigningKey::from_bytes(&[key; 32]).public(),
    };
    let shared = Terms {
        key_services: vec![service("first", 1), service("second", 2)],
        ..terms(1000).choices()
    };
    let shared = shared.complete(&fhaim_synth::Mechanisms).unwrap();
    let fixture = Fixture::under(&shared).await;
    let of_one = Terms {
        key_services: Vec::new(),
        ..shared.clone()
    };
    for (shown, kind) in [
        (of_one, ProblemKind::Conflict),
        (shared.clone(), ProblemKind::Unavailable),
    ] {
        *fixture.keys.agreed.lock().unwrap() = Some(shown);
        let refused = fixture.register_as(shared.clone(), 128).await;
        let refused = refused.map(|stored| stored.dataset).unwrap_err();
        assert_eq!(refused.kind(), kind, "{refused}");
    }
}

/// Guards against different rows that are found only in the first run, which they would use up.
#[tokio::test(flavor = "multi_thread")]
async fn holders_of_columns_with_other_rows_are_rejected() {
    let two = Two::new(Partition::Columns).await;
    two.register(0, 512).await.unwrap();
    let refused = two.register(1, 1024).await.unwrap_err();
    assert_eq!(refused.kind(), ProblemKind::Conflict);
    let words = refused.problem.to_string();
    let says = ["513 to 1024", "257 to 512", "holder 1", "fhaim align"];
    assert!(says.iter().all(|part| words.contains(part)), "{words}");
    two.register(1, 512).await.unwrap();
    two.register(1, 512).await.unwrap();
    // Holders of records may have different numbers of rows.
    let two = Two::new(Partition::Records).await;
    two.register(0, 512).await.unwrap();
    two.register(1, 128).await.unwrap();
}
