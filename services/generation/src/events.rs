//! Streams a job's events to its watchers.

use axum::response::sse::{Event, KeepAlive, Sse};
use fhaim_api::job::JobEvent;
use fhaim_platform::Failure;
use fhaim_platform::token::SessionUser;
use futures_util::stream::{self, Stream};
use std::collections::VecDeque;
use std::time::Duration;
use uuid::Uuid;

use crate::State;
use crate::store::{accounts, events as store};

/// Time between two looks for new events.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// A stream without events sends a comment after this time, so that proxies keep the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Events fetched at a time.
const BATCH: i64 = 100;

/// Streams the events of a job after number `last` until the job ends, the service stops, or the
/// account's tokens end: its account is disabled, its password changes, or it ends all sessions.
pub fn watch(
    state: State,
    user: SessionUser,
    job: Uuid,
    last: i64,
) -> Sse<impl Stream<Item = Result<Event, Failure>>> {
    let watcher = Watcher {
        state,
        user,
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
    user: SessionUser,
    job: String,
    /// Number of the last event fetched.
    last: i64,
    waiting: VecDeque<JobEvent>,
}

impl Watcher {
    /// Returns the next event, or `None` after the last event, when the account's tokens end, or when the
    /// service stops.
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

    /// Fetches new events. Returns whether more may follow, now or later.
    async fn look(&mut self) -> Result<bool, Failure> {
        let store = &self.state.base.store;
        let epoch = accounts::epoch(store, self.user.account).await?;
        if epoch.is_none() || epoch != self.user.epoch {
            return Ok(false);
        }
        let Some((state, last)) = store::last(store, &self.job).await? else {
            return Ok(false);
        };
        if last <= self.last {
            return Ok(!state.is_final());
        }
        for event in store::after(store, &self.job, self.last, BATCH).await? {
            self.last = i64::try_from(event.number).map_err(Failure::internal)?;
            self.waiting.push_back(event);
        }
        Ok(true)
    }
}
