//! A table of tasks, for tests of stores.
#![allow(dead_code, clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_platform::store::{Step, Store};

/// The migration of a table of tasks, like the one of a service.
pub const TASKS: Step = Step {
    version: Step::FIRST_OF_SERVICE,
    name: "tasks",
    sqlite: TABLE,
    postgres: TABLE,
};

const TABLE: &str = "CREATE TABLE tasks (id TEXT PRIMARY KEY, owner TEXT NOT NULL DEFAULT '', \
     dataset TEXT NOT NULL DEFAULT '', state TEXT NOT NULL, lease_token TEXT NOT NULL DEFAULT '', lease_expires BIGINT NOT NULL, \
     lease_beat BIGINT NOT NULL DEFAULT 0, attempts BIGINT NOT NULL, \
     faults BIGINT NOT NULL DEFAULT 0, outages BIGINT NOT NULL DEFAULT 0, \
     created_at BIGINT NOT NULL)";

/// Adds a task to the table.
pub async fn queue(store: &Store, id: &str) {
    sqlx::query(
        "INSERT INTO tasks (id, state, lease_expires, attempts, created_at) \
         VALUES ($1, 'queued', 0, 0, 0)",
    )
    .bind(id)
    .execute(store.pool())
    .await
    .unwrap();
}
