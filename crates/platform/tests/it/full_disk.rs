//! On a full disk, services refuse writes, report the problem, and damage nothing. They continue without a restart
//! when there is room again.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use crate::common;

use bytes::Bytes;
use common::{TASKS, queue};
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_kit::config::{in_folder, sqlite};
use fhaim_platform::Failure;
use fhaim_platform::base::Base;
use fhaim_platform::store::{Store, StoreError};
use std::path::{Path, PathBuf};
use std::process::Command;

/// More bytes than a test leaves free.
const LARGE: usize = 4 << 20;

/// Writes a large row in a transaction.
async fn write(store: &Store, id: &str) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    sqlx::query(
        "INSERT INTO tasks (id, state, lease_token, lease_expires, attempts, created_at) \
         VALUES ($1, 'queued', $2, 0, 0, 0)",
    )
    .bind(id)
    .bind("x".repeat(LARGE))
    .execute(&mut *tx)
    .await?;
    tx.commit().await
}

/// Checks that a failure tells the caller to try again.
fn assert_passing(failure: &Failure) {
    let kinds = [ProblemKind::Full, ProblemKind::Unavailable];
    assert!(kinds.contains(&failure.kind()), "{failure}");
    assert!(failure.problem.retry_after.is_some(), "{failure}");
}

/// Opens a store with one connection, whose database must not grow.
async fn one_full_connection(folder: &Path) -> Store {
    let mut config = sqlite(folder);
    config.connections = 1;
    let store = Store::open(&config, &[TASKS]).await.unwrap();
    sqlx::query("PRAGMA max_page_count = 32")
        .execute(store.pool())
        .await
        .unwrap();
    store
}

#[tokio::test]
async fn full_database_works_again_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = one_full_connection(folder.path()).await;
    let full = write(&store, "a").await.unwrap_err();
    assert!(full.to_string().contains("full"), "{full}");
    // The limit belongs to the connection, so another one can write.
    write(&store, "b").await.unwrap();
    queue(&store, "c").await;
}

#[tokio::test]
async fn full_database_asks_callers_to_try_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = one_full_connection(folder.path()).await;
    let full = write(&store, "a").await.unwrap_err();
    let failure = Failure::from(full);
    assert_passing(&failure);
    assert_eq!(failure.problem.status, 507);
    assert!(
        failure.problem.to_string().contains("disk is full"),
        "{failure}"
    );
}

/// A database that answers reads but takes no writes is not ready.
#[tokio::test]
async fn readiness_of_a_database_without_writes_fails() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = sqlite(folder.path());
    config.connections = 1;
    let store = Store::open(&config, &[TASKS]).await.unwrap();
    store.check().await.unwrap();
    sqlx::query("PRAGMA query_only = ON")
        .execute(store.pool())
        .await
        .unwrap();
    store.check().await.unwrap_err();
}

/// Anyone may check readiness, so the checks must not keep the disk busy.
#[tokio::test]
async fn frequent_readiness_checks_write_rarely() {
    use sqlx::Row;
    let folder = tempfile::tempdir().unwrap();
    let config = in_folder(folder.path());
    let base = Base::open(Service::Crypto, &config, &[], &[]);
    let base = base.await.unwrap();
    let ready = base.readiness();
    for _ in 0..500 {
        ready().await.unwrap();
    }
    let row = sqlx::query("SELECT checks FROM readiness")
        .fetch_one(base.store.pool())
        .await
        .unwrap();
    let checks: i64 = row.try_get("checks").unwrap();
    assert!((1..100).contains(&checks), "{checks}");
}

/// A file system of limited size, unmounted when dropped.
struct Small(PathBuf);

impl Small {
    fn mount(folder: &Path) -> Self {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"])
            .arg(folder)
            .output()
            .unwrap();
        assert!(
            mounted.status.success(),
            "this user cannot mount file systems"
        );
        Self(folder.to_owned())
    }

    fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }

    /// Fills the file system to the last byte.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.ballast()).unwrap();
        let full = std::io::copy(&mut std::io::repeat(1), &mut file).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    }

    fn make_room(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let done = Command::new("umount").arg("-l").arg(&self.0).output();
        assert!(done.unwrap().status.success());
    }
}

async fn write_row(store: Store) -> Result<(), Failure> {
    let mut tx = store.begin().await?;
    sqlx::query("UPDATE readiness SET checks = checks + 1")
        .execute(&mut *tx)
        .await?;
    Ok(tx.commit().await?)
}

/// Routes that write a row, like those of a service.
fn routes(base: &Base) -> axum::Router {
    use axum::routing::{post, put};
    let write = || {
        let store = base.store.clone();
        move || write_row(store)
    };
    let routes = axum::Router::new()
        .route("/v1/sessions", post(write()))
        .route("/v1/datasets/a", put(write()).delete(write()));
    base.reserve.around(routes)
}

async fn status(routes: &axum::Router, method: &str, path: &str) -> u16 {
    use tower::ServiceExt;
    let request = http::Request::builder().method(method).uri(path);
    let request = request.body(axum::body::Body::empty()).unwrap();
    routes
        .clone()
        .oneshot(request)
        .await
        .unwrap()
        .status()
        .as_u16()
}

#[tokio::test]
#[ignore = "needs mount"]
async fn deletion_and_sign_in_work_on_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let small = Small::mount(folder.path());
    let config = in_folder(folder.path());
    let base = Base::open(Service::Crypto, &config, &[TASKS], &[])
        .await
        .unwrap();
    let routes = routes(&base);
    assert_eq!(status(&routes, "PUT", "/v1/datasets/a").await, 200);
    small.fill();
    let full = base.store.check().await.unwrap_err();
    assert_passing(&full.into());
    for _ in 0..3 {
        assert_eq!(status(&routes, "DELETE", "/v1/datasets/a").await, 200);
        assert_eq!(status(&routes, "POST", "/v1/sessions").await, 200);
        // The reserved space is not for uploads.
        assert_eq!(status(&routes, "PUT", "/v1/datasets/a").await, 507);
    }
    small.make_room();
    assert_eq!(status(&routes, "PUT", "/v1/datasets/a").await, 200);
    base.store.close().await;
}

#[tokio::test]
#[ignore = "needs mount"]
async fn full_disk_is_reported_and_works_again_with_room() {
    let folder = tempfile::tempdir().unwrap();
    let small = Small::mount(folder.path());
    let config = in_folder(folder.path());
    let base = Base::open(Service::Crypto, &config, &[TASKS], &[])
        .await
        .unwrap();
    let ready = base.readiness();
    ready().await.unwrap();
    small.fill();
    for round in 0..10 {
        let full = write(&base.store, &format!("{round}")).await.unwrap_err();
        assert_passing(&full.into());
        let full = base.blobs.put("object", Bytes::from(vec![1; LARGE])).await;
        assert_passing(&full.unwrap_err().into());
    }
    let full = base.readiness()().await.unwrap_err();
    assert_passing(&full);
    small.make_room();
    base.readiness()().await.unwrap();
    write(&base.store, "after").await.unwrap();
    base.blobs.put("object", Bytes::from("1")).await.unwrap();
    assert_eq!(base.blobs.get("object").await.unwrap(), "1");
    base.store.close().await;
}
