//! Keys are made only for existing datasets, and only within the account's limits.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use crate::common;

use common::{OWNER, Place, terms};
use fhaim_api::dataset::WireTerms;
use fhaim_api::keys::NewKeySet;
use fhaim_api::problem::ProblemKind;
use fhaim_crypto::{State, keys, limits};
use fhaim_platform::Failure;
use uuid::Uuid;

async fn make(place: &Place, state: &State) -> Result<Uuid, Failure> {
    let id = Uuid::new_v4();
    let new = place.generation.key_set(id, 1);
    keys::create(state, id, OWNER, new, &[]).await.map(|_| id)
}

#[tokio::test]
async fn keys_without_a_valid_voucher_are_rejected() {
    let place = Place::new().await;
    let state = place.open().await;
    let (id, other) = (Uuid::new_v4(), Uuid::new_v4());
    let generation = &place.generation;
    for (what, voucher) in [
        ("none", None),
        ("of another dataset", generation.voucher(OWNER, other)),
        ("of another account", generation.voucher(other, id)),
        ("a user's token", generation.user_token(OWNER)),
        (
            "no token",
            Some(fhaim_api::account::Secret("a.b.c".to_owned())),
        ),
    ] {
        let terms = WireTerms(terms(1));
        let new = NewKeySet { terms, voucher };
        let refused = keys::create(&state, id, OWNER, new, &[]).await.unwrap_err();
        assert_eq!(refused.kind(), ProblemKind::Forbidden, "{what}");
        let words = refused.problem.to_string();
        assert!(words.contains("/voucher"), "{what}: {words}");
    }
    let blobs = place.folder.path().join("blobs/keys");
    assert!(!blobs.exists(), "something was made");
    let new = generation.key_set(id, 1);
    let (_, made) = keys::create(&state, id, OWNER, new, &[]).await.unwrap();
    assert!(made);
    // Existing keys can be requested again without a voucher.
    let again = NewKeySet {
        terms: WireTerms(terms(1)),
        voucher: None,
    };
    let (_, made) = keys::create(&state, id, OWNER, again, &[]).await.unwrap();
    assert!(!made);
}

#[tokio::test]
async fn key_sets_are_limited_per_account_and_per_day() {
    let mut place = Place::new().await;
    place.config.limits.key_sets = 2;
    place.config.limits.key_sets_a_day = 3;
    let state = place.open().await;
    // Concurrent calls do not exceed the limit.
    let made = tokio::join!(
        make(&place, &state),
        make(&place, &state),
        make(&place, &state)
    );
    let made: Vec<_> = [made.0, made.1, made.2].into_iter().collect();
    let refused = made.iter().filter_map(|made| made.as_ref().err());
    let refused: Vec<_> = refused.collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0].kind(), ProblemKind::Quota);
    let words = refused[0].problem.to_string();
    assert!(
        words.contains("key_sets: ") && words.contains("delete a dataset"),
        "{words}"
    );
    let folders = std::fs::read_dir(place.folder.path().join("blobs/keys")).unwrap();
    let blobs = folders.map(|dataset| std::fs::read_dir(dataset.unwrap().path()).unwrap());
    let public = blobs
        .flatten()
        .filter(|set| set.as_ref().unwrap().path().join("public").exists());
    assert_eq!(public.count(), 2, "the refused key set left its keys");

    let first = made.iter().find_map(|made| made.as_ref().ok()).unwrap();
    keys::destroy(&state, *first, OWNER).await.unwrap();
    make(&place, &state).await.unwrap();
    let third = made.iter().filter_map(|made| made.as_ref().ok()).nth(1);
    keys::destroy(&state, *third.unwrap(), OWNER).await.unwrap();
    let refused = make(&place, &state).await.unwrap_err();
    assert_eq!(refused.kind(), ProblemKind::Quota);
    let words = refused.problem.to_string();
    assert!(words.contains("key_sets_a_day: "), "{words}");

    let used = limits::usage(&state, OWNER).await.unwrap();
    let used = used
        .limits
        .iter()
        .map(|used| (&*used.limit, used.used, used.most));
    assert_eq!(
        used.collect::<Vec<_>>(),
        [("key_sets", 1, 2), ("key_sets_a_day", 3, 3)]
    );
    // Other accounts have their own limits.
    let (eve, id) = (Uuid::from_u128(2), Uuid::new_v4());
    let new = NewKeySet {
        terms: WireTerms(terms(1)),
        voucher: place.generation.voucher(eve, id),
    };
    keys::create(&state, id, eve, new, &[]).await.unwrap();
}
