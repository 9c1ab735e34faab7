//! Batches: asked for once, polled, and queued again after a refusal.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use crate::common;

use common::Fixture;
use fhaim_api::batch::{Batch, BatchStatus};
use fhaim_api::keys::Receipt;
use fhaim_api::problem::ProblemKind;
use fhaim_computation::batches::{ask, look};
use fhaim_computation::store::batches::{Name, TABLE, task};
use fhaim_platform::lease::Tasks;
use fhaim_platform::runner::Work;
use fhaim_protocol::crypto::chain::{ReceiptKey, Tip};
use fhaim_protocol::request::DatasetId;
use fhaim_release::{ReleaseRequest, Statistic};
use rand::SeedableRng;
use rand::rngs::StdRng;
use uuid::Uuid;

fn batch(variance_units: u64, receipts: &[Receipt]) -> Batch {
    let total = ReleaseRequest {
        number: 0,
        statistic: Statistic::Total,
        variance_units,
    };
    Batch {
        requests: vec![total],
        receipts: receipts.to_vec(),
        again: false,
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow"]
async fn batch_is_asked_for_once_and_then_polled() {
    let fixture = Fixture::new().await;
    let state = &fixture.state;
    let (open, stored) = (fixture.register().await, fixture.upload().await);
    let key = ReceiptKey::random(&mut StdRng::seed_from_u64(1));
    let receipt = |height| -> Receipt {
        let tip = Tip {
            height,
            ..Tip::default()
        };
        key.sign(DatasetId(stored.dataset.into_bytes()), tip).into()
    };
    let name = Name {
        dataset: stored.dataset,
        job: Uuid::new_v4(),
        first: 0,
    };
    let nothing = look(state, name, &[]).await.unwrap_err();
    assert_eq!(nothing.kind(), ProblemKind::NotFound);
    let incomplete = Name {
        dataset: open.dataset,
        ..name
    };
    let early = ask(state, incomplete, &batch(9, &[])).await.unwrap_err();
    assert_eq!(early.kind(), ProblemKind::Conflict);

    for shown in [[].as_slice(), &[receipt(1)]] {
        let asked = ask(state, name, &batch(9, shown)).await.unwrap();
        assert_eq!(asked, BatchStatus::Queued);
    }
    let other = ask(state, name, &batch(8, &[])).await.unwrap_err();
    assert_eq!(other.kind(), ProblemKind::Conflict);
    let elsewhere = ask(state, Name { first: 1, ..name }, &batch(9, &[])).await;
    assert_eq!(elsewhere.unwrap_err().kind(), ProblemKind::Invalid);
    // Receipts shown with a look are for the crypto service, in addition to those shown before.
    for shown in [receipt(2), receipt(1)] {
        let looked = look(state, name, &[shown]).await.unwrap();
        assert_eq!(looked, BatchStatus::Queued);
    }
    let tasks = Tasks::new(state.base.store.clone(), TABLE, 30);
    let lease = tasks.take(&[]).await.unwrap().unwrap();
    assert_eq!(lease.owner, stored.owner.to_string());
    let taken = task(&state.base.store, &lease).await.unwrap();
    assert_eq!(taken.receipts, [receipt(1), receipt(2)]);
    let looked = look(state, name, &[]).await.unwrap();
    assert!(matches!(looked, BatchStatus::Running { .. }));

    let mut tx = tasks.begin().await.unwrap();
    state.fail(&mut tx, &lease, "for a reason").await.unwrap();
    tx.commit().await.unwrap();
    let refused = BatchStatus::Refused {
        reason: "for a reason".to_owned(),
        without_run: false,
    };
    assert_eq!(look(state, name, &[]).await.unwrap(), refused);
    assert_eq!(ask(state, name, &batch(9, &[])).await.unwrap(), refused);
    let again = Batch {
        again: true,
        ..batch(9, &[])
    };
    assert_eq!(ask(state, name, &again).await.unwrap(), BatchStatus::Queued);
    let lease = tasks.take(&[]).await.unwrap().unwrap();
    assert_eq!((lease.attempt, lease.faults), (2, 0));
}
