//! Transactions whose callers stop waiting, as when a client closes its connection.

#![allow(clippy::unwrap_used)]

use fhaim_kit::config::postgres;
use fhaim_platform::config::Database;
use fhaim_platform::store::Store;
use sqlx::Row;
use tokio::task::yield_now;

/// Returns the number of checks of a database that are committed.
async fn committed(store: &Store) -> i64 {
    let checks = sqlx::query("SELECT checks FROM readiness").fetch_one(store.pool());
    checks.await.unwrap().get(0)
}

/// A connection that a cancelled call leaves in a transaction would not commit the statements of later calls.
#[tokio::test]
#[ignore = "needs FHAIM_TEST_POSTGRES"]
async fn cancelled_begin_leaves_no_open_transaction() {
    let database = postgres().await;
    let other = Store::open(&database, &[]).await.unwrap();
    let single = Database {
        connections: 1,
        ..database
    };
    let store = Store::open(&single, &[]).await.unwrap();
    for turns in (0..14).flat_map(|power| [1 << power; 10]) {
        let before = committed(&other).await;
        let waiting = async {
            for _ in 0..turns {
                yield_now().await;
            }
        };
        tokio::select! {
            biased;
            begun = store.begin() => drop(begun),
            () = waiting => {}
        }
        store.check().await.unwrap();
        assert_eq!(committed(&other).await, before + 1, "after {turns} turns");
    }
}
