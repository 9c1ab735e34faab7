//! Supervision of a request's body while it arrives: since when, and whether it makes progress.
//!
//! A connection with a half-sent request is neither idle nor busy. No client, with or without a token, may hold a
//! place with one for long. A body of which nothing arrives, or next to nothing, is therefore abandoned.

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// Time within which more bytes of a body must arrive.
const MAX_SILENCE: Duration = Duration::from_secs(20);

/// Total waiting time after which a body must have arrived at [`MIN_RATE`].
const MAX_SLOW: Duration = Duration::from_secs(30);

/// Bytes per second: a tenth of the slowest line that an upload would use.
const MIN_RATE: f64 = 1024.0;

/// The time since which a connection's request has been arriving. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Receiving(Arc<Mutex<Option<Instant>>>);

impl Receiving {
    fn state(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns that time, or `None` if the whole request has arrived or there is none.
    pub fn since(&self) -> Option<Instant> {
        *self.state()
    }

    /// Marks the beginning of a request's body. Its end is the drop of the returned value.
    pub fn begin(&self) -> Under {
        *self.state() = Some(Instant::now());
        Under(self.clone())
    }
}

/// A body that is arriving.
#[derive(Debug)]
pub struct Under(Receiving);

impl Drop for Under {
    fn drop(&mut self) {
        *self.0.state() = None;
    }
}

/// Limits on how slowly a body may arrive.
#[derive(Clone, Copy, Debug)]
struct Pace {
    silence: Duration,
    slow: Duration,
}

/// A body that reports when it makes no progress, and then fails.
pub struct Watched<B, F> {
    body: B,
    under: Option<Under>,
    stalled: F,
    pace: Pace,
    /// The time since which the next bytes have been waited for, and the timer that ends the wait.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
    waited: Duration,
    bytes: u64,
}

impl<B, F: Fn()> Watched<B, F> {
    /// Wraps a body. Calls `stalled` if the body stalls.
    pub fn new(body: B, under: Under, stalled: F) -> Self {
        let pace = Pace {
            silence: MAX_SILENCE,
            slow: MAX_SLOW,
        };
        Self {
            body,
            under: Some(under),
            stalled,
            pace,
            waiting: None,
            waited: Duration::ZERO,
            bytes: 0,
        }
    }

    /// Ends the wait for bytes that have arrived. Returns whether they arrived too slowly.
    fn came(&mut self, bytes: usize) -> bool {
        if let Some((since, _)) = self.waiting.take() {
            self.waited += since.elapsed();
        }
        self.bytes = self.bytes.saturating_add(bytes as u64);
        // The time that a handler takes before it asks for more does not count.
        let seconds = self.waited.as_secs_f64();
        self.waited > self.pace.slow && (self.bytes as f64) < seconds * MIN_RATE
    }

    /// Returns whether nothing has arrived for too long. Otherwise the task is woken when that time is over.
    fn is_silent(&mut self, context: &mut Context<'_>) -> bool {
        let silence = self.pace.silence;
        let begin = || (Instant::now(), Box::pin(tokio::time::sleep(silence)));
        let (_, sleep) = self.waiting.get_or_insert_with(begin);
        sleep.as_mut().poll(context).is_ready()
    }

    fn give_up(&mut self) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        (self.stalled)();
        let error = std::io::Error::from(std::io::ErrorKind::TimedOut);
        Poll::Ready(Some(Err(axum::Error::new(error))))
    }
}

impl<B, F> HttpBody for Watched<B, F>
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin,
    F: Fn() + Unpin,
{
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => frame,
            Poll::Pending if self.is_silent(context) => return self.give_up(),
            Poll::Pending => return Poll::Pending,
        };
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            _ => 0,
        };
        if self.came(bytes) {
            return self.give_up();
        }
        if frame.is_none() || self.body.is_end_stream() {
            self.under = None;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use futures_util::{StreamExt, stream};
    use http_body_util::BodyExt;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const PACE: Pace = Pace {
        silence: Duration::from_millis(150),
        slow: Duration::from_millis(300),
    };

    /// Reads a body of pieces with pauses before them. Returns whether all arrived, how often the body stalled, and
    /// whether it still counted as arriving at the end.
    async fn read(pieces: Vec<(u64, usize)>) -> (bool, usize, bool) {
        let pieces = stream::iter(pieces).then(|(pause, bytes)| async move {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            Ok::<_, std::io::Error>(Bytes::from(vec![7; bytes]))
        });
        let receiving = Receiving::default();
        let stalls = AtomicUsize::new(0);
        let count = || {
            stalls.fetch_add(1, Ordering::SeqCst);
        };
        let body = Body::from_stream(pieces);
        let mut watched = Watched::new(body, receiving.begin(), count);
        watched.pace = PACE;
        assert!(receiving.since().is_some());
        let mut whole = true;
        while let Some(frame) = watched.frame().await {
            if frame.is_err() {
                whole = false;
                break;
            }
        }
        let coming = receiving.since().is_some();
        drop(watched);
        assert!(receiving.since().is_none());
        (whole, stalls.load(Ordering::SeqCst), coming)
    }

    #[tokio::test]
    async fn body_without_progress_is_abandoned() {
        assert_eq!(
            read(vec![(0, 10), (400, 10)]).await,
            (false, 1, true),
            "silent"
        );
        assert_eq!(
            read(vec![(60, 1); 20]).await,
            (false, 1, true),
            "a byte at a time"
        );
        assert_eq!(
            read(vec![(60, 4000); 10]).await,
            (true, 0, false),
            "slow, but it arrives"
        );
        assert_eq!(read(vec![]).await, (true, 0, false), "empty");
    }

    /// The time that a handler takes between reads does not count as the sender's.
    #[tokio::test]
    async fn time_of_the_handler_does_not_count_as_stalling() {
        let body = Body::from_stream(stream::iter([(); 4].map(|()| Ok::<_, std::io::Error>("x"))));
        let receiving = Receiving::default();
        let mut watched = Watched::new(body, receiving.begin(), || panic!("the body stalled"));
        watched.pace = PACE;
        while let Some(frame) = watched.frame().await {
            assert!(frame.is_ok());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}
