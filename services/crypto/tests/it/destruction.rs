//! No file contains the sealed bytes of a destroyed key.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use crate::common;

use common::{OWNER, Place};
use fhaim_crypto::keys;
use fhaim_platform::program::Program;
use sqlx::{Connection, Row, SqliteConnection};
use std::collections::HashSet;
use std::task::{Context, Poll};
use std::time::Duration;
use uuid::Uuid;

/// Returns the stored bytes of a secret key.
async fn sealed(place: &Place, dataset: Uuid) -> Vec<u8> {
    let url = format!("sqlite://{}/store.db", place.folder.path().display());
    let mut connection = SqliteConnection::connect(&url).await.unwrap();
    let row = sqlx::query("SELECT secret FROM key_sets WHERE dataset = $1")
        .bind(dataset.to_string())
        .fetch_one(&mut connection)
        .await
        .unwrap();
    let secret: Vec<u8> = row.get("secret");
    connection.close().await.unwrap();
    secret
}

/// Counts the places of the database and its log that contain 16 bytes of a secret at an offset that is a multiple of
/// 16. Any place with 32 bytes of the secret contains such a piece.
fn places(place: &Place, secrets: &[Vec<u8>]) -> usize {
    let pieces = secrets.iter().flat_map(|secret| secret.chunks_exact(16));
    let pieces: HashSet<&[u8]> = pieces.collect();
    let files = ["store.db", "store.db-wal", "store.db-shm"]
        .map(|name| std::fs::read(place.folder.path().join(name)).unwrap_or_default());
    let found = files.iter().flat_map(|file| file.windows(16));
    found.filter(|window| pieces.contains(window)).count()
}

#[tokio::test]
async fn destroyed_key_is_in_no_file() {
    let place = Place::new().await;
    let state = place.open().await;
    let mut made = Vec::new();
    for _ in 0..6 {
        let dataset = place.dataset(&state, 1).await;
        made.push((dataset, sealed(&place, dataset).await));
    }
    let all: Vec<Vec<u8>> = made.iter().map(|(_, secret)| secret.clone()).collect();
    assert!(
        places(&place, &all) >= 6,
        "the keys are not in the searched files"
    );
    // Destroys every other key, so that rows move between those that stay.
    let (mut gone, mut kept) = (Vec::new(), Vec::new());
    for (number, (dataset, secret)) in made.into_iter().enumerate() {
        if number % 2 == 0 {
            keys::destroy(&state, dataset, OWNER).await.unwrap();
            gone.push(secret);
        } else {
            kept.push((dataset, secret));
        }
        assert_eq!(places(&place, &gone), 0, "after {number}");
    }
    for (dataset, secret) in kept {
        assert_eq!(sealed(&place, dataset).await, secret);
    }
}

/// The service is killed between the destruction and the truncation of the log; the next start truncates it.
#[tokio::test]
async fn destroyed_key_in_the_log_is_removed_at_the_next_start() {
    let place = Place::new().await;
    let state = place.open().await;
    let dataset = place.dataset(&state, 1).await;
    let secret = vec![sealed(&place, dataset).await];
    let store = state.base().store.clone();
    let forget = sqlx::query("UPDATE key_sets SET secret = NULL");
    forget.execute(store.pool()).await.unwrap();
    assert!(places(&place, &secret) > 0, "nothing to forget");
    let _again = place.open().await;
    assert_eq!(places(&place, &secret), 0);
}

/// Guards against a key that stays in the log because the caller disconnected after the commit.
#[tokio::test]
async fn destroyed_key_of_a_disconnected_caller_is_removed_later() {
    let place = Place::new().await;
    let state = place.open().await;
    let dataset = place.dataset(&state, 1).await;
    let secret = vec![sealed(&place, dataset).await];
    let mut destroying = Box::pin(keys::destroy(&state, dataset, OWNER));
    // Disconnects after the commit, before the handler learns of it.
    loop {
        let poll = |context: &mut Context<'_>| Poll::Ready(destroying.as_mut().poll(context));
        let step = std::future::poll_fn(poll).await;
        assert!(
            step.is_pending(),
            "the call ended before its caller disconnected"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
        let kept = "SELECT COUNT(secret) AS kept FROM key_sets";
        let kept = sqlx::query(kept).fetch_one(state.base().store.pool()).await;
        if kept.unwrap().get::<i64, _>("kept") == 0 {
            break;
        }
    }
    drop(destroying);
    assert!(places(&place, &secret) > 0, "nothing to forget");
    state.base().store.forget_deleted_if_due().await.unwrap();
    assert_eq!(places(&place, &secret), 0);
}
