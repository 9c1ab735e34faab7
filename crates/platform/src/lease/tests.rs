//! Leases with clocks that jump, owners that take turns, and the counting of faults.

use super::*;
use crate::config::Database;
use crate::store::Step;
use std::time::Instant;
use tempfile::TempDir;

const TABLE: &str = "CREATE TABLE tasks (id TEXT PRIMARY KEY, owner TEXT NOT NULL, \
     dataset TEXT NOT NULL DEFAULT '', state TEXT NOT NULL, lease_token TEXT NOT NULL DEFAULT '', lease_expires BIGINT NOT NULL, \
     lease_beat BIGINT NOT NULL DEFAULT 0, attempts BIGINT NOT NULL, \
     faults BIGINT NOT NULL DEFAULT 0, outages BIGINT NOT NULL DEFAULT 0, \
     created_at BIGINT NOT NULL)";

/// The time of day at the beginning of a test.
const NOON: Millis = 1_800_000_000_000;

const HOUR: Millis = 3_600_000;

/// A store with a queued task.
async fn store() -> (Store, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let config = Database {
        url: format!("sqlite://{}/store.db", folder.path().display()),
        connections: 2,
    };
    let step = Step {
        version: Step::FIRST_OF_SERVICE,
        name: "tasks",
        sqlite: TABLE,
        postgres: TABLE,
    };
    let store = Store::open(&config, &[step]).await.unwrap();
    add(&store, "a", "ana", 0).await;
    (store, folder)
}

async fn add(store: &Store, id: &str, owner: &str, created_at: i64) {
    let add = "INSERT INTO tasks (id, owner, state, lease_expires, attempts, created_at) \
               VALUES ($1, $2, 'queued', 0, 0, $3)";
    let add = sqlx::query(add).bind(id).bind(owner).bind(created_at);
    add.execute(store.pool()).await.unwrap();
}

fn process(store: &Store) -> Tasks {
    Tasks::new(store.clone(), "tasks", 30)
}

/// Looks for a task, at a given time of day and a given number of seconds of a steady clock.
async fn look(tasks: &Tasks, now: Millis, seconds: u64, start: Instant) -> Option<Lease> {
    let steady = || start + Duration::from_secs(seconds);
    tasks.take_at(&[], now, steady).await.unwrap()
}

#[tokio::test]
async fn task_is_taken_over_only_after_watching_its_lease() {
    let (store, _folder) = store().await;
    let (first, second) = (process(&store), process(&store));
    let start = Instant::now();
    let lease = look(&first, NOON, 0, start).await.unwrap();
    assert_eq!((lease.id.as_str(), lease.attempt), ("a", 1));
    // The lease is renewed between any two looks.
    for seconds in (1..200).step_by(20) {
        let now = NOON + seconds * 1000;
        let seconds = u64::try_from(seconds).unwrap();
        assert_eq!(look(&second, now, seconds, start).await, None);
        assert_eq!(first.renew(&lease).await.unwrap(), Ok(()));
    }
    // The lease is no longer renewed. The first look without a renewal is at 200 s.
    for seconds in [200, 215, 229] {
        assert_eq!(look(&second, NOON, seconds, start).await, None);
    }
    // Another process has not watched for long enough.
    assert_eq!(look(&process(&store), NOON, 231, start).await, None);
    let taken = look(&second.clone(), NOON, 231, start).await.unwrap();
    assert_eq!((taken.id.as_str(), taken.attempt), ("a", 2));
    assert_eq!(first.renew(&lease).await.unwrap(), Err(Lost));
    assert_eq!(first.give_back(&lease).await.unwrap(), Err(Lost));
    assert_eq!(second.renew(&taken).await.unwrap(), Ok(()));
}

#[tokio::test]
async fn jumps_of_the_clock_do_not_affect_a_lease() {
    for jump in [HOUR, -HOUR] {
        let (store, _folder) = store().await;
        let (first, second) = (process(&store), process(&store));
        let start = Instant::now();
        let lease = look(&first, NOON, 0, start).await.unwrap();
        for (seconds, now) in [(1, NOON + jump), (20, NOON), (25, NOON - jump)] {
            assert_eq!(look(&second, now, seconds, start).await, None, "{jump}");
        }
        assert_eq!(first.renew(&lease).await.unwrap(), Ok(()));
        assert_eq!(look(&second, NOON + jump, 40, start).await, None, "{jump}");
        let taken = look(&second, NOON + jump, 71, start).await;
        assert!(taken.is_some(), "{jump}: the task hangs");
    }
}

#[tokio::test]
async fn postponed_task_does_not_wait_for_a_clock_that_was_set_back() {
    let (store, _folder) = store().await;
    let tasks = process(&store);
    let start = Instant::now();
    let mut lease = look(&tasks, NOON, 0, start).await.unwrap();
    // By the true clock, which `put_off` uses.
    for (after, later, taken) in [
        (Duration::from_secs(20), 0, false),
        (Duration::from_secs(20), 50_000, true),
        (Duration::from_secs(3600), 30_000, false),
        (Duration::from_secs(3600), 90_000, true),
        (Duration::from_secs(20), -HOUR, true),
        (Duration::ZERO, -HOUR, true),
    ] {
        let before = now();
        let mut tx = store.begin().await.unwrap();
        let put_off = tasks.put_off(&mut tx, &lease, Cause::Outage, after).await;
        let put_off = put_off.unwrap();
        assert_eq!(put_off, Ok(()));
        tx.commit().await.unwrap();
        assert_eq!(tasks.renew(&lease).await.unwrap(), Err(Lost));
        let looked = look(&tasks, before + later, 0, start).await;
        assert_eq!(
            looked.is_some(),
            taken,
            "{after:?}, looked {later} ms later"
        );
        lease = match looked {
            Some(lease) => lease,
            None => look(&tasks, before + 100 * HOUR, 0, start).await.unwrap(),
        };
    }
}

#[tokio::test]
async fn lease_of_an_ended_or_restarted_task_is_lost() {
    let (store, _folder) = store().await;
    let tasks = process(&store);
    let start = Instant::now();
    let lease = look(&tasks, NOON, 0, start).await.unwrap();
    let become_ = |state: &'static str| {
        let change = AssertSqlSafe(format!("UPDATE tasks SET state = '{state}'"));
        sqlx::query(change).execute(store.pool())
    };
    become_("cancelled").await.unwrap();
    assert_eq!(tasks.renew(&lease).await.unwrap(), Err(Lost));
    for seconds in [1, 40, 80] {
        assert_eq!(look(&tasks, NOON, seconds, start).await, None);
    }
    become_("queued").await.unwrap();
    let again = look(&tasks, NOON, 81, start).await.unwrap();
    assert_eq!(again.attempt, 2);
    assert_eq!(tasks.renew(&lease).await.unwrap(), Err(Lost));
}

#[tokio::test]
async fn owners_take_turns_and_served_owners_wait() {
    let (store, _folder) = store().await;
    for (id, owner, at) in [
        ("b", "ana", 1),
        ("c", "ana", 2),
        ("d", "eve", 3),
        ("e", "eve", 4),
    ] {
        add(&store, id, owner, at).await;
    }
    let tasks = process(&store);
    let take = async |served: &[&str]| {
        let served: Vec<String> = served.iter().map(|&owner| owner.to_owned()).collect();
        tasks.take(&served).await.unwrap().map(|lease| lease.id)
    };
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.push(take(&[]).await.unwrap());
    }
    assert_eq!(taken, ["a", "d", "b"]);
    assert_eq!(take(&["ana"]).await.as_deref(), Some("e"));
    assert_eq!(take(&["ana", "eve"]).await, None);
    assert_eq!(take(&[]).await.as_deref(), Some("c"));
    assert_eq!(take(&[]).await, None);
}

#[tokio::test]
async fn attempts_without_a_step_count_as_faults_and_outages_do_not() {
    let (store, _folder) = store().await;
    let tasks = process(&store);
    let start = Instant::now();
    let put_off = async |lease: &Lease, cause| {
        let mut tx = store.begin().await.unwrap();
        let counters = tasks.counters(&mut tx, lease).await.unwrap().unwrap();
        let after = Duration::ZERO;
        assert!(
            tasks
                .put_off(&mut tx, lease, cause, after)
                .await
                .unwrap()
                .is_ok()
        );
        tx.commit().await.unwrap();
        counters
    };
    let take = async || look(&tasks, now() + 1, 0, start).await.unwrap();
    for faults in 0..3 {
        let lease = take().await;
        assert_eq!(lease.faults, faults);
        assert_eq!(put_off(&lease, Cause::Fault).await, (faults + 1, 0));
    }
    let lease = take().await;
    assert_eq!(lease.faults, 3);
    assert_eq!(put_off(&lease, Cause::Outage).await, (4, 0));
    let lease = take().await;
    assert_eq!(lease.faults, 0);
    let mut tx = store.begin().await.unwrap();
    assert_eq!(tasks.counters(&mut tx, &lease).await.unwrap(), Ok((1, 1)));
    assert_eq!(tasks.step(&mut tx, &lease).await.unwrap(), Ok(()));
    assert_eq!(tasks.counters(&mut tx, &lease).await.unwrap(), Ok((0, 0)));
    tx.commit().await.unwrap();
    assert_eq!(put_off(&lease, Cause::Fault).await, (0, 0));
    let lease = take().await;
    assert_eq!(tasks.give_back(&lease).await.unwrap(), Ok(()));
    assert_eq!(take().await.faults, 0);
}

#[tokio::test]
async fn damaged_task_does_not_stop_the_others() {
    let (store, _folder) = store().await;
    add(&store, "b", "eve", 1).await;
    sqlx::query("UPDATE tasks SET owner = CAST(x'ff' AS TEXT) WHERE id = 'a'")
        .execute(store.pool())
        .await
        .unwrap();
    let lease = process(&store).take(&[]).await.unwrap().unwrap();
    assert_eq!(lease.id, "b");
}
