//! Connections: so many at most, the longest idle let go for a new one, and an end by a deadline.
//!
//! Whoever opens connections and sends nothing, or half a request, must not keep others out. A
//! request's head has to come within twenty seconds, and so has the next one's on a connection
//! that is kept; where all places are taken, the connection that has been without a request for
//! longest makes room.

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::shutdown::Shutdown;

/// A request's head must come so soon.
const HEAD_WITHIN: Duration = Duration::from_secs(20);

/// How long answers under way may take once a service is told to stop.
const GRACE: Duration = Duration::from_secs(10);

/// How long nothing is accepted when the process has no file to spare for a connection.
const PAUSE: Duration = Duration::from_millis(200);

/// Files that a process needs beside its connections: database, blobs, peers, logs.
const OTHER_FILES: u64 = 200;

/// Most connections whatever the system allows: each takes some memory.
const MAX_CONNECTIONS: u64 = 4000;

/// How many connections may be open at a time: as many as the process may have files, but for
/// those that it needs otherwise. The process' own limit is raised as far as it may be.
pub fn capacity() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Refused where it is at its most already.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let connections = files
        .saturating_sub(OTHER_FILES)
        .clamp(OTHER_FILES / 4, MAX_CONNECTIONS);
    tracing::info!(files, connections, "as many connections may be open");
    usize::try_from(connections).unwrap_or(usize::MAX)
}

/// Answers until `shutdown` is raised, with at most `most` connections at a time; then lets what
/// is under way end, for ten seconds at most. Handlers find the caller's address in
/// [`ConnectInfo`].
pub async fn serve(listener: TcpListener, router: Router, most: usize, shutdown: Shutdown) {
    accept(listener, router, most, shutdown, GRACE).await;
}

async fn accept(
    listener: TcpListener,
    router: Router,
    most: usize,
    shutdown: Shutdown,
    grace: Duration,
) {
    let open = Arc::new(Open::default());
    let mut answering = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = answering.join_next() => continue,
            () = shutdown.raised() => break,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted: more open files (ulimit -n) help");
                open.let_one_go();
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        if open.len() >= most && !open.let_one_go() {
            tracing::warn!(connections = most, "a connection is refused: all are busy");
            continue;
        }
        let place = open.enter();
        let router = router.clone();
        answering.spawn(answer(stream, address, router, place, shutdown.clone()));
    }
    drop(listener);
    let ended = async { while answering.join_next().await.is_some() {} };
    if tokio::time::timeout(grace, ended).await.is_err() {
        tracing::warn!(
            requests = answering.len(),
            "stopping with requests under way"
        );
        answering.shutdown().await;
    }
}

/// Answers the requests of a connection until it ends, is let go, or the service stops.
async fn answer(
    stream: TcpStream,
    address: SocketAddr,
    router: Router,
    place: Place,
    shutdown: Shutdown,
) {
    // Small answers wait for nothing.
    let _ = stream.set_nodelay(true);
    let standing = place.standing.clone();
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let (router, busy) = (router.clone(), Busy::new(&standing));
        async move {
            let mut request: Request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(address));
            let Ok(response) = router.oneshot(request).await;
            Ok::<_, Infallible>(while_sent(response, busy))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    // What goes wrong with a connection is its other end's affair.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = place.standing.let_go.notified() => {}
        () = shutdown.raised() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// Keeps a connection busy until its answer is sent.
fn while_sent(response: Response, busy: Busy) -> Response {
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _ = &busy;
            frame
        }))
    })
}

/// How a connection stands.
#[derive(Debug)]
struct Standing {
    /// Requests that are being answered, and since when there are none.
    state: Mutex<(usize, Instant)>,
    let_go: Notify,
}

impl Standing {
    fn state(&self) -> MutexGuard<'_, (usize, Instant)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle_since(&self) -> Option<Instant> {
        let (requests, since) = *self.state();
        (requests == 0).then_some(since)
    }
}

/// A request that is being answered.
struct Busy(Arc<Standing>);

impl Busy {
    fn new(standing: &Arc<Standing>) -> Self {
        standing.state().0 += 1;
        Self(standing.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.0 -= 1;
        state.1 = Instant::now();
    }
}

/// All open connections.
#[derive(Debug, Default)]
struct Open {
    next: AtomicU64,
    places: Mutex<HashMap<u64, Arc<Standing>>>,
}

impl Open {
    fn places(&self) -> MutexGuard<'_, HashMap<u64, Arc<Standing>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn len(&self) -> usize {
        self.places().len()
    }

    fn enter(self: &Arc<Self>) -> Place {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let standing = Arc::new(Standing {
            state: Mutex::new((0, Instant::now())),
            let_go: Notify::new(),
        });
        self.places().insert(number, standing.clone());
        Place {
            open: self.clone(),
            number,
            standing,
        }
    }

    /// Lets the connection go that has been idle for longest; whether there was one.
    fn let_one_go(&self) -> bool {
        let mut places = self.places();
        let idle = places
            .iter()
            .filter_map(|(number, standing)| Some((standing.idle_since()?, *number)));
        let longest = idle.min().map(|(_, number)| number);
        match longest.and_then(|number| places.remove(&number)) {
            Some(standing) => {
                standing.let_go.notify_one();
                true
            }
            None => false,
        }
    }
}

/// A connection's place among the open ones, until it is dropped.
#[derive(Debug)]
struct Place {
    open: Arc<Open>,
    number: u64,
    standing: Arc<Standing>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.places().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn started(
        most: usize,
    ) -> (
        SocketAddr,
        crate::shutdown::Stopper,
        tokio::task::JoinHandle<()>,
    ) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = Router::new()
            .route("/", get(|| async { "well" }))
            .route("/body", post(|body: String| async move { body }));
        let (stopper, signal) = crate::shutdown::channel();
        (
            address,
            stopper,
            tokio::spawn(accept(
                listener,
                routes,
                most,
                signal,
                Duration::from_millis(300),
            )),
        )
    }

    async fn ask(address: SocketAddr) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address).await?;
        stream
            .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            .await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    #[tokio::test]
    async fn idle_connections_make_room_for_those_that_ask() {
        let (address, _stopper, _serving) = started(8).await;
        let mut idle = Vec::new();
        for _ in 0..50 {
            idle.push(TcpStream::connect(address).await.unwrap());
            assert!(ask(address).await.unwrap().ends_with("well"));
        }
        // The first of them was let go.
        let mut byte = [0];
        assert_eq!(idle[0].read(&mut byte).await.unwrap_or(0), 0);
    }

    #[tokio::test]
    async fn busy_connections_are_not_let_go() {
        let (address, _stopper, _serving) = started(2).await;
        let mut busy = TcpStream::connect(address).await.unwrap();
        let head =
            b"POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\nconnection: close\r\n\r\nha";
        busy.write_all(head).await.unwrap();
        for _ in 0..20 {
            assert!(ask(address).await.unwrap().ends_with("well"));
        }
        busy.write_all(b"lf").await.unwrap();
        let mut answer = String::new();
        busy.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("half"), "{answer}");
    }

    #[tokio::test]
    async fn a_half_sent_request_does_not_keep_a_service_from_ending() {
        let (address, stopper, serving) = started(8).await;
        let mut half = TcpStream::connect(address).await.unwrap();
        let head = b"POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nha";
        half.write_all(head).await.unwrap();
        assert!(ask(address).await.unwrap().ends_with("well"));
        stopper.stop();
        serving.await.unwrap();
        assert!(ask(address).await.is_err());
    }
}
