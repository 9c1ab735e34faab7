//! A request's body on its way: since when it has been coming in, and whether it gets on.
//!
//! A connection whose request is half sent is neither idle nor worked on. Nobody without a token, nor
//! anyone with one, may hold a place by it for long: a body of which nothing comes, or next to nothing,
//! is given up.

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// Some of a body must come so soon.
const MAX_SILENCE: Duration = Duration::from_secs(20);

/// Waited for so long altogether, a body must have come at [`MIN_RATE`].
const MAX_SLOW: Duration = Duration::from_secs(30);

/// Bytes a second: a tenth of what the slowest line sends that an upload would be sent over.
const MIN_RATE: f64 = 1024.0;

/// Since when a connection's request has been coming in. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Receiving(Arc<Mutex<Option<Instant>>>);

impl Receiving {
    fn state(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since when; nothing where all of it is there, or there is no request.
    pub fn since(&self) -> Option<Instant> {
        *self.state()
    }

    /// Begins with a request's body; over when the value is dropped.
    pub fn begin(&self) -> Under {
        *self.state() = Some(Instant::now());
        Under(self.clone())
    }
}

/// A body that is coming in.
#[derive(Debug)]
pub struct Under(Receiving);

impl Drop for Under {
    fn drop(&mut self) {
        *self.0.state() = None;
    }
}

/// Bounds on how slowly a body may come.
#[derive(Clone, Copy, Debug)]
struct Pace {
    silence: Duration,
    slow: Duration,
}

/// A body that says when it does not get on, and then fails.
pub struct Watched<B, F> {
    body: B,
    under: Option<Under>,
    stalled: F,
    pace: Pace,
    /// Since when the next bytes have been waited for, and until when they are.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
    waited: Duration,
    bytes: u64,
}

impl<B, F: Fn()> Watched<B, F> {
    /// A body, and what is called where it stalls.
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

    /// Ends the wait for the bytes that came; whether they came too slowly.
    fn came(&mut self, bytes: usize) -> bool {
        if let Some((since, _)) = self.waiting.take() {
            self.waited += since.elapsed();
        }
        self.bytes = self.bytes.saturating_add(bytes as u64);
        // Time that a handler takes before it asks for more is its own.
        let seconds = self.waited.as_secs_f64();
        self.waited > self.pace.slow && (self.bytes as f64) < seconds * MIN_RATE
    }

    /// Whether nothing has come for too long; whoever polls is woken when it will have been.
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

    /// Reads a body of pieces with pauses before them; whether all came, how often it stalled, and
    /// whether it still counts as coming in.
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
    async fn a_body_that_does_not_get_on_is_given_up() {
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
            "slow, but it comes"
        );
        assert_eq!(read(vec![]).await, (true, 0, false), "empty");
    }

    /// What a handler does before it reads on is not the sender's slowness.
    #[tokio::test]
    async fn a_handler_takes_its_time() {
        let body = Body::from_stream(stream::iter([(); 4].map(|()| Ok::<_, std::io::Error>("x"))));
        let receiving = Receiving::default();
        let mut watched = Watched::new(body, receiving.begin(), || panic!("it did not stall"));
        watched.pace = PACE;
        while let Some(frame) = watched.frame().await {
            assert!(frame.is_ok());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}
