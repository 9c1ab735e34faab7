//! Several holders of one dataset: no run begins before all have signed exactly these terms and keys.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use crate::common;

use common::{OWNER, Place, terms};
use fhaim_api::Digest;
use fhaim_api::dataset::WireTerms;
use fhaim_api::keys::{KeySet, NewKeySet, NewRun, RunStanding, UploadKeyRequest};
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_crypto::decryption::{self, DecryptionCall};
use fhaim_crypto::holders::{self, Consent};
use fhaim_crypto::keys::PublicPart;
use fhaim_crypto::{STEPS, State, keys, ledger, limits, upload_keys};
use fhaim_he::{EvaluationKeys, RosterShape};
use fhaim_platform::Failure;
use fhaim_platform::store::Store;
use fhaim_platform::token::{Caller, Peer};
use fhaim_protocol::crypto::chain::Freeze;
use fhaim_protocol::request::DatasetId;
use fhaim_protocol::roster::{Agreement, HolderSigningKey, Member, Partition, Roster};
use fhaim_protocol::terms::Terms;
use fhaim_protocol::upload_key::{OneTimeKey, SeedRequest, upload_key};
use uuid::Uuid;

const OTHER: Uuid = Uuid::from_u128(2);
const STRANGER: Uuid = Uuid::from_u128(3);

fn key(number: u8) -> HolderSigningKey {
    HolderSigningKey::from_bytes(&[number; 32])
}

/// Returns the account of a holder, counted from 1.
fn account(number: u8) -> Uuid {
    match number {
        1 => OWNER,
        2 => OTHER,
        _ => Uuid::from_u128(100 + u128::from(number)),
    }
}

fn of_two() -> Terms {
    of_holders(2)
}

fn of_holders(holders: u8) -> Terms {
    let member = |number: u8| Member {
        account: account(number).to_string(),
        columns: Vec::new(),
        record_bound: 600 / u64::from(holders),
        key: key(number).public(),
    };
    let roster = Roster {
        partition: Partition::Records,
        honest: 1,
        holders: (1..=holders).map(member).collect(),
    };
    let terms = Terms {
        roster: Some(roster),
        ..terms(1).choices()
    };
    terms.complete(&fhaim_synth::Mechanisms).unwrap()
}

async fn made(place: &Place, state: &State) -> KeySet {
    let id = Uuid::new_v4();
    let new = NewKeySet {
        terms: WireTerms(of_two()),
        voucher: place.generation.voucher(OWNER, id),
    };
    let (set, _) = keys::create(state, id, OWNER, new, &[]).await.unwrap();
    set
}

async fn begin(state: &State, dataset: Uuid, job: u128) -> Result<RunStanding, Failure> {
    let call = DecryptionCall {
        peer: Peer(Service::Computation),
        dataset,
        job: Uuid::from_u128(job),
        receipts: Vec::new(),
    };
    let upload = Digest::of(b"manifest");
    decryption::begin(state, &call, &NewRun { upload }).await
}

async fn sign(state: &State, set: &KeySet, holder: Uuid, number: u8) -> Result<KeySet, Failure> {
    let signature = key(number).sign(&set.agreement());
    holders::act(state, set.dataset, holder, Consent::Signed(signature)).await
}

fn stand(set: &KeySet) -> Vec<(bool, bool)> {
    let stand = set.holders.iter();
    stand
        .map(|holder| (holder.signed, holder.withdrawn))
        .collect()
}

#[tokio::test]
async fn run_before_all_holders_have_signed_is_rejected() {
    let place = Place::new().await;
    let state = place.open().await;
    let set = made(&place, &state).await;
    let id = set.dataset;
    assert_eq!(stand(&set), [(false, false); 2]);
    let refused = begin(&state, id, 7).await.unwrap_err();
    assert_eq!(refused.kind(), ProblemKind::Conflict);
    let set = sign(&state, &set, OWNER, 1).await.unwrap();
    assert_eq!(stand(&set), [(true, false), (false, false)]);
    let refused = begin(&state, id, 7).await.unwrap_err().to_string();
    assert!(refused.contains(&OTHER.to_string()), "{refused}");
    assert!(!refused.contains(&OWNER.to_string()), "{refused}");
    // Signatures with another holder's key, by a stranger, and for another dataset's keys.
    let kind = |result: Result<KeySet, Failure>| result.unwrap_err().kind();
    assert_eq!(
        kind(sign(&state, &set, OTHER, 1).await),
        ProblemKind::Invalid
    );
    assert_eq!(
        kind(sign(&state, &set, STRANGER, 2).await),
        ProblemKind::NotFound
    );
    let other = made(&place, &state).await;
    let signature = key(2).sign(&other.agreement());
    let replayed = holders::act(&state, id, OTHER, Consent::Signed(signature)).await;
    assert_eq!(kind(replayed), ProblemKind::Invalid);
    // Signatures survive a restart, and a repeated signature adds nothing to the chain.
    drop(state);
    let state = place.open().await;
    let signed = sign(&state, &set, OTHER, 2).await.unwrap();
    assert_eq!(stand(&signed), [(true, false); 2]);
    let again = sign(&state, &set, OTHER, 2).await.unwrap();
    assert_eq!(again.receipt.height, signed.receipt.height);
    assert_eq!(begin(&state, id, 7).await.unwrap().run, 0);
}

/// Returns the agreement of a holder who was shown other terms than the stored ones.
fn over_other_terms(set: &KeySet, change: fn(&mut Terms)) -> Agreement {
    let mut other = set.clone();
    change(&mut other.terms.0);
    assert_ne!(other.terms, set.terms);
    other.agreement()
}

/// A signature with the right key over terms, a roster or keys that differ in one bit is invalid.
#[tokio::test]
async fn signature_of_a_differing_bit_is_rejected() {
    let place = Place::new().await;
    let state = place.open().await;
    let set = made(&place, &state).await;
    let stored = set.agreement();
    let flips: [fn(&mut Agreement); 4] = [
        |other| other.dataset.0[15] ^= 1,
        |other| other.terms[31] ^= 1,
        |other| other.public_key[0] ^= 0x80,
        |other| other.evaluation_keys[17] ^= 4,
    ];
    let changes: [fn(&mut Terms); 5] = [
        |terms| terms.epsilon = f64::from_bits(terms.epsilon.to_bits() ^ 1),
        |terms| terms.record_bound ^= 1,
        |terms| terms.roster.as_mut().unwrap().honest ^= 3,
        |terms| terms.roster.as_mut().unwrap().holders[1].key[3] ^= 2,
        |terms| terms.roster.as_mut().unwrap().holders[1].record_bound ^= 1,
    ];
    let flipped = flips.map(|flip| {
        let mut other = stored;
        flip(&mut other);
        other
    });
    let changed = changes.map(|change| over_other_terms(&set, change));
    for other in flipped.iter().chain(&changed) {
        assert_ne!(*other, stored);
        let consent = Consent::Signed(key(1).sign(other));
        let refused = holders::act(&state, set.dataset, OWNER, consent).await;
        assert_eq!(refused.unwrap_err().kind(), ProblemKind::Invalid);
    }
    let shown = keys::show(&state, set.dataset, Caller::User(OWNER), &[]).await;
    let shown = shown.unwrap();
    assert_eq!(stand(&shown), [(false, false); 2]);
    assert_eq!(shown.receipt.height, set.receipt.height);
    let signed = sign(&state, &set, OWNER, 1).await.unwrap();
    assert_eq!(stand(&signed)[0], (true, false));
}

#[tokio::test]
async fn withdrawal_stops_further_runs_and_leaves_the_ledger_readable() {
    let place = Place::new().await;
    let state = place.open().await;
    let set = made(&place, &state).await;
    for (holder, number) in [(OWNER, 1), (OTHER, 2)] {
        sign(&state, &set, holder, number).await.unwrap();
    }
    let id = set.dataset;
    let set = holders::act(&state, id, OTHER, Consent::Withdrawn)
        .await
        .unwrap();
    assert_eq!(stand(&set), [(true, false), (true, true)]);
    let refused = begin(&state, id, 7).await.unwrap_err();
    assert_eq!(refused.kind(), ProblemKind::Conflict);
    for holder in [OWNER, OTHER] {
        assert!(ledger::show(&state, id, holder, &[]).await.is_ok());
        assert!(
            keys::show(&state, id, Caller::User(holder), &[])
                .await
                .is_ok()
        );
    }
    let refused = ledger::show(&state, id, STRANGER, &[]).await.unwrap_err();
    assert_eq!(refused.kind(), ProblemKind::NotFound);
    // One holder of several cannot destroy the keys of all.
    let refused = keys::destroy(&state, id, OTHER).await.unwrap_err();
    assert_eq!(refused.kind(), ProblemKind::NotFound);
    keys::destroy(&state, id, OWNER).await.unwrap();
    let gone = holders::act(&state, id, OTHER, Consent::Withdrawn).await;
    assert_eq!(gone.unwrap_err().kind(), ProblemKind::NotFound);
}

/// The first holder of the roster must make the keys, because other services count the dataset as that account's.
#[tokio::test]
async fn keys_made_by_another_than_the_first_holder_are_rejected() {
    let place = Place::new().await;
    let state = place.open().await;
    let make = async |user: Uuid, terms: Terms| {
        let id = Uuid::new_v4();
        let new = NewKeySet {
            terms: WireTerms(terms),
            voucher: place.generation.voucher(user, id),
        };
        keys::create(&state, id, user, new, &[]).await
    };
    for user in [OTHER, STRANGER] {
        let refused = make(user, of_two()).await.unwrap_err();
        assert_eq!(refused.kind(), ProblemKind::Invalid);
        let words = refused.problem.to_string();
        assert!(words.contains("first holder"), "{words}");
    }
    let mut upper = of_two();
    let other = Uuid::new_v4();
    upper.roster.as_mut().unwrap().holders[1].account = other.to_string().to_uppercase();
    let refused = make(OWNER, upper).await.unwrap_err();
    let words = refused.problem.to_string();
    assert!(words.contains("holder 2"), "{words}");
    make(OWNER, of_two()).await.unwrap();
}

/// One of the holders can cause a page that cannot be decrypted, so the operator cannot thaw the dataset.
#[tokio::test]
async fn dataset_of_two_holders_frozen_over_noise_is_not_thawed() {
    let place = Place::new().await;
    let state = place.open().await;
    let set = made(&place, &state).await;
    let store = Store::open(&place.config.common.database, &STEPS).await;
    let store = store.unwrap();
    for (reason, thaws) in [(Freeze::Witness, true), (Freeze::Noise, false)] {
        let mut tx = store.begin().await.unwrap();
        let mut chain_state = ledger::chain_state(&mut tx, set.dataset).await.unwrap();
        let frozen = chain_state.freeze(reason).unwrap().unwrap();
        ledger::append(&mut tx, set.dataset, &frozen, None)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let thawed = ledger::thaw(&state, set.dataset).await;
        assert_eq!(thawed.is_ok(), thaws, "{reason:?}");
        if let Err(refused) = thawed {
            assert_eq!(refused.kind(), ProblemKind::Conflict);
            let words = refused.problem.to_string();
            assert!(
                words.contains("make a new dataset with the same holders"),
                "{words}"
            );
        }
    }
}

/// Returns a holder's request for its upload key with the one-time key that decrypts the answer.
fn seed_request(set: &KeySet, holder: u32) -> (SeedRequest, OneTimeKey) {
    let one_time_key = OneTimeKey::random();
    let request = SeedRequest {
        dataset: DatasetId(set.dataset.into_bytes()),
        holder,
        evaluation_keys: set.evaluation_keys.0,
        one_time_key: one_time_key.public(),
    };
    (request, one_time_key)
}

/// Fetches an upload key with holder number `signer`'s signature of a request, which may differ from the sent one.
async fn fetch(
    state: &State,
    set: &KeySet,
    caller: Uuid,
    request: &SeedRequest,
    signer: u8,
) -> Result<Vec<Vec<u8>>, Failure> {
    let asked = UploadKeyRequest {
        one_time_key: request.one_time_key,
        signature: request.sign(&key(signer)),
    };
    let seeds = upload_keys::fetch(state, set.dataset, caller, &asked).await?;
    Ok(seeds.bytes().unwrap())
}

/// The fetched upload key is the one for which the key service made switching keys.
#[tokio::test]
async fn each_holder_fetches_the_upload_key_of_its_switching_keys() {
    let place = Place::new().await;
    let state = place.open().await;
    let set = made(&place, &state).await;
    let params = of_two().plan().unwrap().parameters().unwrap();
    let stored = keys::find(&state, set.dataset).await.unwrap();
    let bytes = keys::part(&state, &stored, PublicPart::Evaluation)
        .await
        .unwrap();
    let evaluation = EvaluationKeys::from_bytes(&params, &bytes).unwrap();
    let roster = evaluation.roster().unwrap();
    assert_eq!(roster.shape(), RosterShape::Records(2));
    for (holder, caller) in [(0, OWNER), (1, OTHER)] {
        let mut sealed = Vec::new();
        // Every answer has the same key, encrypted again.
        for _ in 0..2 {
            let (request, one_time_key) = seed_request(&set, holder);
            let signer = holder as u8 + 1;
            let seeds = fetch(&state, &set, caller, &request, signer).await.unwrap();
            let [seed] = &seeds[..] else {
                panic!("{} seeds", seeds.len());
            };
            let opened = one_time_key.open(&request, 0, seed).unwrap();
            let upload_key = upload_key(&params, vec![opened]).unwrap();
            let made = roster.upload(holder as usize).unwrap();
            assert_eq!(upload_key.id(), made.id());
            sealed.push(seed.clone());
        }
        assert_ne!(sealed[0], sealed[1]);
    }
}

/// An access token is not sufficient, because another service issues tokens.
#[tokio::test]
async fn upload_key_is_given_only_to_its_holder() {
    let place = Place::new().await;
    let state = place.open().await;
    let set = made(&place, &state).await;
    let other_set = made(&place, &state).await;
    let kind = |fetched: Result<Vec<Vec<u8>>, Failure>| fetched.unwrap_err().kind();
    let (request, _) = seed_request(&set, 1);
    // An account that is not a holder, and the other holder with this holder's token or its own.
    let stranger = fetch(&state, &set, STRANGER, &request, 2).await;
    assert_eq!(kind(stranger), ProblemKind::NotFound);
    let with_token = fetch(&state, &set, OTHER, &request, 1).await;
    assert_eq!(kind(with_token), ProblemKind::Invalid);
    let with_signature = fetch(&state, &set, OWNER, &request, 2).await;
    assert_eq!(kind(with_signature), ProblemKind::Invalid);
    // A signature over another request: of another holder's key, dataset, keys or one-time key.
    let (first, _) = seed_request(&set, 0);
    let (of_other_set, _) = seed_request(&other_set, 1);
    let of_other_keys = SeedRequest {
        evaluation_keys: other_set.evaluation_keys.0,
        ..request
    };
    for other in [first, of_other_set, of_other_keys] {
        let refused = fetch(&state, &set, OTHER, &other, 2).await;
        assert_eq!(kind(refused), ProblemKind::Invalid, "{other:?}");
    }
    let swapped = UploadKeyRequest {
        one_time_key: OneTimeKey::random().public(),
        signature: request.sign(&key(2)),
    };
    let refused = upload_keys::fetch(&state, set.dataset, OTHER, &swapped).await;
    assert_eq!(refused.unwrap_err().kind(), ProblemKind::Invalid);
    assert!(fetch(&state, &set, OTHER, &request, 2).await.is_ok());
    // A sole holder draws its own upload key, and destroyed keys have none.
    let sole = place.dataset(&state, 1).await;
    let asked = UploadKeyRequest {
        one_time_key: request.one_time_key,
        signature: request.sign(&key(1)),
    };
    let refused = upload_keys::fetch(&state, sole, OWNER, &asked).await;
    assert_eq!(refused.unwrap_err().kind(), ProblemKind::NotFound);
    keys::destroy(&state, set.dataset, OWNER).await.unwrap();
    let gone = fetch(&state, &set, OTHER, &request, 2).await;
    assert_eq!(kind(gone), ProblemKind::NotFound);
}

/// The audit log keeps each request, so their number is bounded. Simultaneous requests are all recorded.
#[tokio::test]
async fn upload_key_requests_are_limited_per_day() {
    let place = Place::new().await;
    let state = place.open().await;
    let set = made(&place, &state).await;
    let (request, _) = seed_request(&set, 0);
    let (second, _) = seed_request(&set, 1);
    let mut most = upload_keys::UPLOAD_KEYS_A_DAY;
    while most > 0 {
        let at_once = most.min(8);
        let fetched = (0..at_once).map(|_| fetch(&state, &set, OWNER, &request, 1));
        for fetched in futures_util::future::join_all(fetched).await {
            fetched.unwrap();
        }
        most -= at_once;
    }
    let refused = fetch(&state, &set, OWNER, &request, 1).await.unwrap_err();
    assert_eq!(refused.kind(), ProblemKind::Quota);
    assert!(fetch(&state, &set, OTHER, &second, 2).await.is_ok());
}

#[tokio::test]
async fn keys_of_a_roster_count_as_several_key_sets() {
    let counted = limits::counted_as(&of_holders(6)).unwrap();
    assert!(counted > 1, "{counted}");
    let mut place = Place::new().await;
    place.config.limits.key_sets = 2 * counted - 1;
    let state = place.open().await;
    let make = async || {
        let id = Uuid::new_v4();
        let new = NewKeySet {
            terms: WireTerms(of_holders(6)),
            voucher: place.generation.voucher(OWNER, id),
        };
        keys::create(&state, id, OWNER, new, &[]).await
    };
    make().await.unwrap();
    let used = limits::usage(&state, OWNER).await.unwrap();
    assert_eq!(used.limits[0].used, counted);
    let refused = make().await.unwrap_err();
    assert_eq!(refused.kind(), ProblemKind::Quota);
    // The remaining limit suffices for a sole holder.
    place.dataset(&state, 1).await;
}

#[tokio::test]
async fn signature_after_withdrawal_is_refused() {
    let place = Place::new().await;
    let state = place.open().await;
    let set = made(&place, &state).await;
    sign(&state, &set, OTHER, 2).await.unwrap();
    holders::act(&state, set.dataset, OTHER, Consent::Withdrawn)
        .await
        .unwrap();
    let refused = sign(&state, &set, OTHER, 2).await.unwrap_err();
    assert_eq!(refused.kind(), ProblemKind::Conflict);
    let words = refused.to_string();
    assert!(words.contains("withdrew"), "{words}");
    assert!(sign(&state, &set, OWNER, 1).await.is_ok());
}

#[tokio::test]
async fn one_time_key_of_low_order_is_refused() {
    let place = Place::new().await;
    let state = place.open().await;
    let set = made(&place, &state).await;
    let (request, _) = seed_request(&set, 0);
    let request = SeedRequest {
        one_time_key: [0; 32],
        ..request
    };
    let refused = fetch(&state, &set, OWNER, &request, 1).await;
    assert_eq!(refused.unwrap_err().kind(), ProblemKind::Invalid);
}
