//! A job's events: written with the state they tell of, streamed to whoever watches.

use axum::response::sse::{Event, KeepAlive, Sse};
use fhaim_api::job::{Happening, JobEvent, JobState};
use fhaim_platform::store::Tx;
use fhaim_platform::{Failure, clock};
use futures_util::stream::{self, Stream};
use sqlx::Row;
use std::collections::VecDeque;
use std::time::Duration;
use uuid::Uuid;

use crate::{State, rows};

/// How often a stream looks for new events.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// A comment is sent after so long without an event, so that proxies keep the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Events fetched at a time.
const BATCH: i64 = 100;

/// Adds an event to a job, in the transaction that makes it true.
///
/// # Errors
/// A failure of the store.
pub async fn record(tx: &mut Tx, job: &str, what: &Happening) -> Result<(), Failure> {
    // The update locks the job's row: events become visible in the order of their numbers.
    let row = sqlx::query("UPDATE jobs SET events = events + 1 WHERE id = $1 RETURNING events")
        .bind(job)
        .fetch_one(&mut **tx)
        .await?;
    sqlx::query("INSERT INTO job_events (job, number, at, what) VALUES ($1, $2, $3, $4)")
        .bind(job)
        .bind(row.try_get::<i64, _>("events")?)
        .bind(clock::now())
        .bind(serde_json::to_string(what)?)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// The events of a job after number `last`, as they happen, until the job is at its end.
pub fn watch(
    state: State,
    job: Uuid,
    last: i64,
) -> Sse<impl Stream<Item = Result<Event, Failure>>> {
    let watcher = Watcher {
        state,
        job: job.to_string(),
        last,
        waiting: VecDeque::new(),
    };
    let events = stream::try_unfold(watcher, |mut watcher| async move {
        Ok(watcher.next().await?.map(|event| (event, watcher)))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

struct Watcher {
    state: State,
    job: String,
    /// Number of the last event fetched.
    last: i64,
    waiting: VecDeque<JobEvent>,
}

impl Watcher {
    /// The next event; `None` after the last, or when the service stops.
    async fn next(&mut self) -> Result<Option<Event>, Failure> {
        while self.waiting.is_empty() {
            if !self.look().await? {
                return Ok(None);
            }
            if self.waiting.is_empty() {
                tokio::select! {
                    () = self.state.stopping.raised() => return Ok(None),
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                }
            }
        }
        let event = self.waiting.pop_front();
        event
            .map(|event| {
                let line = Event::default().id(event.number.to_string());
                line.json_data(event).map_err(Failure::internal)
            })
            .transpose()
    }

    /// Fetches new events. Returns whether there can be more, now or later.
    async fn look(&mut self) -> Result<bool, Failure> {
        let row = sqlx::query("SELECT state, events FROM jobs WHERE id = $1")
            .bind(&self.job)
            .fetch_optional(self.state.base.store.pool())
            .await?;
        let Some(row) = row else {
            return Ok(false);
        };
        if row.try_get::<i64, _>("events")? <= self.last {
            return Ok(!rows::named::<JobState>(&row, "state")?.is_final());
        }
        let rows = sqlx::query(
            "SELECT number, at, what FROM job_events WHERE job = $1 AND number > $2 \
             ORDER BY number LIMIT $3",
        )
        .bind(&self.job)
        .bind(self.last)
        .bind(BATCH)
        .fetch_all(self.state.base.store.pool())
        .await?;
        for row in rows {
            self.last = row.try_get("number")?;
            self.waiting.push_back(JobEvent {
                number: u64::try_from(self.last).map_err(Failure::internal)?,
                at: clock::date(row.try_get("at")?),
                what: rows::json(&row, "what")?,
            });
        }
        Ok(true)
    }
}
