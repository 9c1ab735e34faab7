//! The stored ledger: runs are assigned once, and receipts are compared with the ledger.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use crate::common;

use bytes::Bytes;
use common::{OWNER, Place};
use fhaim_api::Digest;
use fhaim_api::keys::{NewRun, Receipt, RunStanding};
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_crypto::decryption::{self, DecryptionCall};
use fhaim_crypto::keys::PublicPart;
use fhaim_crypto::store::audit;
use fhaim_crypto::{STEPS, State, keys, ledger};
use fhaim_platform::Failure;
use fhaim_platform::program::Program;
use fhaim_platform::store::Store;
use fhaim_platform::telemetry;
use fhaim_platform::token::{Caller, Peer};
use fhaim_protocol::crypto::chain::Freeze;
use uuid::Uuid;

async fn begin(
    state: &State,
    dataset: Uuid,
    job: u128,
    receipts: &[Receipt],
) -> Result<RunStanding, Failure> {
    let call = DecryptionCall {
        peer: Peer(Service::Computation),
        dataset,
        job: Uuid::from_u128(job),
        receipts: receipts.to_vec(),
    };
    let upload = Digest::of(b"manifest");
    decryption::begin(state, &call, &NewRun { upload }).await
}

fn kind<T: std::fmt::Debug>(result: Result<T, Failure>) -> ProblemKind {
    result.unwrap_err().kind()
}

#[tokio::test]
async fn run_is_assigned_to_one_job_permanently() {
    let place = Place::new().await;
    let state = place.open().await;
    let id = place.dataset(&state, 2).await;
    let (one, other) = tokio::join!(begin(&state, id, 7, &[]), begin(&state, id, 8, &[]));
    let mut runs = Vec::new();
    for (job, begun) in [(7, one), (8, other)] {
        // One of two concurrent appends is told to try again.
        let begun = match begun {
            Err(failure) if failure.kind() == ProblemKind::Unavailable => {
                begin(&state, id, job, &[]).await
            }
            begun => begun,
        };
        let begun = begun.unwrap();
        let again = begin(&state, id, job, &[]).await.unwrap();
        assert_eq!((again.run, &again.releases), (begun.run, &begun.releases));
        runs.push(begun.run);
    }
    runs.sort_unstable();
    assert_eq!(runs, [0, 1]);
    let third = begin(&state, id, 9, &[]).await.unwrap_err();
    assert_eq!(third.kind(), ProblemKind::BudgetSpent);
    assert!(
        third.problem.to_string().contains("resume it with"),
        "{third}"
    );
    let call = DecryptionCall {
        peer: Peer(Service::Computation),
        dataset: id,
        job: Uuid::from_u128(7),
        receipts: Vec::new(),
    };
    let upload = Digest::of(b"another");
    let other = decryption::begin(&state, &call, &NewRun { upload }).await;
    assert_eq!(kind(other), ProblemKind::Conflict);
}

/// A second computation service could otherwise bind the runs of datasets that do not name it to an upload of its
/// choice.
#[tokio::test]
async fn unnamed_second_computation_service_is_rejected() {
    let place = Place::new().await;
    let state = place.open().await;
    let id = place.dataset(&state, 1).await;
    let call = DecryptionCall {
        peer: Peer(Service::Witness),
        dataset: id,
        job: Uuid::from_u128(7),
        receipts: Vec::new(),
    };
    let upload = Digest::of(b"another");
    let begun = decryption::begin(&state, &call, &NewRun { upload }).await;
    assert_eq!(kind(begun), ProblemKind::Forbidden);
    let shown = keys::show(&state, id, Caller::Service(Service::Witness), &[]).await;
    assert_eq!(kind(shown), ProblemKind::Forbidden);
    begin(&state, id, 7, &[]).await.unwrap();
}

/// All refusals read alike, and are counted by their outcome.
#[tokio::test]
async fn refused_decryptions_are_counted() {
    let place = Place::new().await;
    let recorder = telemetry::metrics().unwrap();
    let state = place.open().await;
    let id = place.dataset(&state, 1).await;
    let call = |dataset: Uuid| DecryptionCall {
        peer: Peer(Service::Computation),
        dataset,
        job: Uuid::from_u128(7),
        receipts: Vec::new(),
    };
    let counted = |end: &str| {
        let name = format!("decryptions_refused_total{{end=\"{end}\"}} ");
        let shown = recorder.render();
        shown
            .lines()
            .find_map(|line| line.strip_prefix(&name)?.parse::<u32>().ok())
    };
    // A job without a run, and then a job with a malformed page.
    let decrypt =
        async |dataset| decryption::decrypt(&state, &call(dataset), Bytes::from_static(b"?")).await;
    assert_eq!(kind(decrypt(id).await), ProblemKind::Refused);
    assert_eq!(counted("refused"), Some(1));
    begin(&state, id, 7, &[]).await.unwrap();
    assert_eq!(kind(decrypt(id).await), ProblemKind::Refused);
    assert_eq!(counted("refused"), Some(2));
    assert_eq!(
        kind(decrypt(Uuid::from_u128(5)).await),
        ProblemKind::NotFound
    );
    assert_eq!((counted("deleted"), counted("refused")), (Some(1), Some(2)));
}

#[tokio::test]
async fn receipt_beyond_the_chain_freezes_the_dataset() {
    let place = Place::new().await;
    let state = place.open().await;
    let id = place.dataset(&state, 3).await;
    let first = begin(&state, id, 7, &[]).await.unwrap().receipt;
    let second = begin(&state, id, 8, std::slice::from_ref(&first)).await;
    let second = second.unwrap().receipt;
    assert!(second.height > first.height);

    begin(&state, id, 8, &[first.clone(), second.clone()])
        .await
        .unwrap();

    // An older copy of the store has forgotten the second job, but the receipt has not.
    place.execute("DELETE FROM chain WHERE height = 3").await;
    begin(&state, id, 7, &[first]).await.unwrap();
    let refused = begin(&state, id, 9, &[second]).await;
    assert_eq!(kind(refused), ProblemKind::Restored);
    let after = begin(&state, id, 7, &[]).await.unwrap_err();
    assert_eq!(after.kind(), ProblemKind::Restored);
    assert!(after.problem.to_string().contains("set back"), "{after}");
    assert_eq!(kind(ledger::thaw(&state, id).await), ProblemKind::Conflict);
    let shown = ledger::show(&state, id, OWNER, &[]).await.unwrap();
    assert!(shown.frozen.is_some());
    assert_eq!(frozen_and_thawed(&state, id).await, [FROZEN_FOR_A_RECEIPT]);
}

/// Otherwise a run whose act is missing would be permitted and paid for again.
#[tokio::test]
async fn damaged_chain_is_named_and_nothing_continues() {
    for change in [
        "DELETE FROM chain WHERE height = 1",
        "DELETE FROM chain WHERE height = 2",
        "UPDATE chain SET act = replace(act, '\"run\":0', '\"run\":5') WHERE height = 2",
        "UPDATE chain SET act = act || ' ' WHERE height = 2",
        "UPDATE chain SET kind = 'signed' WHERE height = 2",
        "UPDATE chain SET job = NULL WHERE height = 2",
        "UPDATE chain SET head = (SELECT MIN(head) FROM chain AS first WHERE first.height = 1) WHERE height = 2",
    ] {
        let place = Place::new().await;
        let state = place.open().await;
        let id = place.dataset(&state, 3).await;
        let other = place.dataset(&state, 1).await;
        begin(&state, id, 7, &[]).await.unwrap();
        begin(&state, id, 8, &[]).await.unwrap();
        begin(&state, other, 5, &[]).await.unwrap();
        place
            .execute(&format!("{change} AND dataset = '{id}'"))
            .await;
        for (number, refused) in [
            begin(&state, id, 9, &[]).await.map(|_| ()),
            ledger::show(&state, id, OWNER, &[]).await.map(|_| ()),
        ]
        .into_iter()
        .enumerate()
        {
            let told = refused.map_err(|failure| failure.problem.to_string());
            let expected = format!("the stored data of dataset {id} is damaged");
            let is_named = told.as_ref().is_err_and(|told| told.contains(&expected));
            assert!(is_named, "{change}, request {number}: {told:?}");
        }
        begin(&state, other, 5, &[]).await.unwrap();
    }
}

#[tokio::test]
async fn keys_of_a_damaged_dataset_are_destroyed() {
    for damage in [
        "UPDATE key_sets SET terms = '{'",
        "UPDATE key_sets SET secret = x'0011'",
        "UPDATE key_sets SET public_key = ''",
        "UPDATE chain SET act = '{}'",
    ] {
        let place = Place::new().await;
        let state = place.open().await;
        let id = place.dataset(&state, 3).await;
        place.execute(damage).await;
        let stranger = keys::destroy(&state, id, Uuid::from_u128(2)).await;
        assert_eq!(kind(stranger), ProblemKind::NotFound, "{damage}");
        keys::destroy(&state, id, OWNER).await.unwrap();
        let left = fhaim_crypto::store::keys::all(&state.base().store)
            .await
            .unwrap();
        assert!(left.is_empty(), "{damage}");
    }
}

#[tokio::test]
async fn passed_on_receipt_for_another_dataset_is_ignored() {
    let place = Place::new().await;
    let state = place.open().await;
    let id = place.dataset(&state, 1).await;
    let mut elsewhere = begin(&state, id, 7, &[]).await.unwrap().receipt;
    elsewhere.dataset = Uuid::new_v4();
    let shown = std::slice::from_ref(&elsewhere);
    let refused = ledger::show(&state, id, OWNER, shown).await;
    assert_eq!(kind(refused), ProblemKind::Invalid);
    // When a service passes the receipt on, the job still gets its run.
    begin(&state, id, 7, shown).await.unwrap();
}

/// The ledger of the earlier keys is lost, and another key signs receipts.
#[tokio::test]
async fn receipt_under_an_unknown_key_freezes_the_dataset() {
    let lost = Place::new().await;
    let id = Uuid::new_v4();
    let make = async |place: &Place, state: &State| {
        let new = place.generation.key_set(id, 1);
        keys::create(state, id, OWNER, new, &[]).await.unwrap()
    };
    let before = lost.open().await;
    let receipt = make(&lost, &before).await.0.receipt;
    let place = Place::new().await;
    let state = place.open().await;
    make(&place, &state).await;
    let shown = std::slice::from_ref(&receipt);
    assert_eq!(
        kind(begin(&state, id, 7, shown).await),
        ProblemKind::Restored
    );
    let after = begin(&state, id, 7, &[]).await.unwrap_err();
    let words = after.problem.to_string();
    assert!(words.contains("before the dataset's keys"), "{words}");
    assert_eq!(kind(ledger::thaw(&state, id).await), ProblemKind::Conflict);
    let log = frozen_and_thawed(&state, id).await;
    assert_eq!(log, ["freeze the dataset: another key signed a receipt"]);
}

#[tokio::test]
async fn receipt_for_unknown_keys_prevents_new_keys() {
    let lost = Place::new().await;
    let id = Uuid::new_v4();
    let new = lost.generation.key_set(id, 1);
    let before = lost.open().await;
    let (set, _) = keys::create(&before, id, OWNER, new.clone(), &[])
        .await
        .unwrap();
    let place = Place::new().await;
    let state = place.open().await;
    let vouched = place.generation.key_set(id, 1);
    let refused = keys::create(
        &state,
        id,
        OWNER,
        vouched,
        std::slice::from_ref(&set.receipt),
    )
    .await;
    assert_eq!(kind(refused), ProblemKind::Restored);
    assert_eq!(kind(keys::find(&state, id).await), ProblemKind::NotFound);
    // Existing keys are shown to a caller with a receipt for them.
    let shown = std::slice::from_ref(&set.receipt);
    let (_, made) = keys::create(&before, id, OWNER, new, shown).await.unwrap();
    assert!(!made);
}

const FROZEN_FOR_A_RECEIPT: &str = "freeze the dataset: the ledger does not contain a receipt";

/// Returns the service's own entries in the audit log of a dataset, oldest first.
async fn frozen_and_thawed(state: &State, dataset: Uuid) -> Vec<String> {
    let log = audit::read(&state.base().store, dataset, 0, 100)
        .await
        .unwrap();
    let own = log
        .into_iter()
        .filter(|entry| entry.actor == "service crypto");
    own.map(|entry| entry.action).collect()
}

/// The audit log records the operator's act.
#[tokio::test]
async fn freeze_and_thaw_are_in_the_audit_log() {
    let place = Place::new().await;
    let state = place.open().await;
    let id = place.dataset(&state, 1).await;
    let store = Store::open(&place.config.common.database, &STEPS).await;
    let mut tx = store.unwrap().begin().await.unwrap();
    let mut chain_state = ledger::chain_state(&mut tx, id).await.unwrap();
    let frozen = chain_state.freeze(Freeze::Noise).unwrap().unwrap();
    ledger::append(&mut tx, id, &frozen, None).await.unwrap();
    tx.commit().await.unwrap();
    ledger::thaw(&state, id).await.unwrap();
    let log = [
        "freeze the dataset: a page cannot be decrypted",
        "thaw the dataset, for the operator",
    ];
    assert_eq!(frozen_and_thawed(&state, id).await, log);
}

#[tokio::test]
async fn changed_public_keys_are_detected() {
    let place = Place::new().await;
    let state = place.open().await;
    let id = place.dataset(&state, 1).await;
    let stored = keys::find(&state, id).await.unwrap();
    for (part, name) in [
        (PublicPart::Public, "public"),
        (PublicPart::Evaluation, "evaluation"),
    ] {
        let whole = keys::part(&state, &stored, part).await.unwrap();
        let file = find(&place.folder.path().join("blobs"), name).unwrap();
        let mut other = whole.to_vec();
        other[whole.len() / 2] ^= 1;
        std::fs::write(file, other).unwrap();
        let read = keys::part(&state, &stored, part).await;
        assert_eq!(kind(read), ProblemKind::Damaged);
    }
}

/// Finds the file with a name below a folder.
fn find(folder: &std::path::Path, name: &str) -> Option<std::path::PathBuf> {
    let mut entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path());
    entries.find_map(|path| {
        if path.is_dir() {
            find(&path, name)
        } else {
            path.file_name()?.to_str()?.eq(name).then_some(path)
        }
    })
}
