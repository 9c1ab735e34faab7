//! Connections: a limit on their number, room for new ones, and a deadline at shutdown.
//!
//! Clients that open connections and send nothing, or half a request, must not keep others out:
//! - The head of a request must arrive within twenty seconds, also that of the next request on a kept connection.
//! - The body of a request must make progress (`receiving`).
//! - If all places are taken, the connection that has been idle for longest is closed. If none is idle, the server
//!   closes the connection whose request has been arriving for longest, among those of the address that has most such
//!   connections.
//! - A request that is being answered is not interrupted, as long as the client reads the answer (`sending`).

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::receiving::{Receiving, Watched};
use crate::{sending, shutdown::Shutdown};

/// Time within which the head of a request must arrive.
const HEAD_WITHIN: Duration = Duration::from_secs(20);

/// Time that unfinished answers may take when a service is told to stop.
const GRACE: Duration = Duration::from_secs(10);

/// Pause of accepting when the process has no file descriptor left for a connection.
const PAUSE: Duration = Duration::from_millis(200);

/// Number of files that a process needs in addition to its connections: database, blobs, peers, logs.
const OTHER_FILES: u64 = 200;

/// Largest number of connections, independent of the system's limit, because each takes some memory.
const MAX_CONNECTIONS: u64 = 4000;

/// Returns the number of connections that may be open at a time: the process's limit of open files, minus the files
/// that it needs otherwise. Raises the process's own limit as far as possible.
pub fn capacity() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Fails if the limit is already at its maximum.
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
    tracing::info!(files, connections, "set the limit of open connections");
    usize::try_from(connections).unwrap_or(usize::MAX)
}

/// Answers until `shutdown` is raised, with at most `most` connections at a time. Then lets unfinished requests end,
/// for at most ten seconds. Handlers find the caller's address in [`ConnectInfo`].
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
                tracing::warn!(%error, "cannot accept a connection: raise the limit of open files (ulimit -n)");
                open.let_one_go();
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        if open.len() >= most && !open.let_one_go() {
            metrics::counter!("connections_refused_total").increment(1);
            tracing::warn!(connections = most, "refused a connection: all are busy");
            continue;
        }
        let place = open.enter(address.ip());
        let router = router.clone();
        answering.spawn(answer(stream, address, router, place, shutdown.clone()));
    }
    drop(listener);
    let ended = async { while answering.join_next().await.is_some() {} };
    if tokio::time::timeout(grace, ended).await.is_err() {
        tracing::warn!(
            requests = answering.len(),
            "stopping before all requests are answered"
        );
        answering.shutdown().await;
    }
}

/// Answers the requests of a connection until it ends, is closed to make room, or the service stops.
async fn answer(
    stream: TcpStream,
    address: SocketAddr,
    router: Router,
    place: Place,
    shutdown: Shutdown,
) {
    // Sends small answers without delay.
    let _ = stream.set_nodelay(true);
    sending::limit(&stream);
    let standing = place.standing.clone();
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let (router, busy, standing) = (router.clone(), Busy::new(&standing), standing.clone());
        async move {
            let mut request: Request = request.map(|body| watched(body, &standing));
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
    // Errors of a connection concern only its client.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = place.standing.let_go.notified() => {}
        () = shutdown.raised() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// Wraps a request's body, so that the connection is closed when no more bytes arrive.
fn watched(body: Incoming, standing: &Arc<Standing>) -> Body {
    if body.is_end_stream() {
        return Body::new(body);
    }
    let receiving = standing.receiving.begin();
    let stalled = standing.clone();
    Body::new(Watched::new(body, receiving, move || {
        tracing::info!(address = %stalled.address, "closing a connection: its request does not arrive");
        stalled.let_go.notify_one();
    }))
}

/// Keeps a connection busy until its answer has been sent.
fn while_sent(response: Response, busy: Busy) -> Response {
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _ = &busy;
            frame
        }))
    })
}

/// The state of a connection.
#[derive(Debug)]
struct Standing {
    address: IpAddr,
    /// Number of requests that are being answered, and the time since which there is none.
    state: Mutex<(usize, Instant)>,
    /// The time since which a request's body has been arriving.
    receiving: Receiving,
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
    places: Mutex<Places>,
}

impl Open {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn len(&self) -> usize {
        self.places().len()
    }

    fn enter(self: &Arc<Self>, address: IpAddr) -> Place {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let standing = Arc::new(Standing {
            address,
            state: Mutex::new((0, Instant::now())),
            receiving: Receiving::default(),
            let_go: Notify::new(),
        });
        self.places().insert(number, standing.clone());
        Place {
            open: self.clone(),
            number,
            standing,
        }
    }

    /// Closes the connection that has been idle for longest, or else one whose request is still arriving. Returns
    /// whether there was one.
    fn let_one_go(&self) -> bool {
        let mut places = self.places();
        let number = longest_idle(&places).or_else(|| longest_receiving(&places));
        match number.and_then(|number| places.remove(&number)) {
            Some(standing) => {
                metrics::counter!("connections_let_go_total").increment(1);
                standing.let_go.notify_one();
                true
            }
            None => false,
        }
    }
}

type Places = HashMap<u64, Arc<Standing>>;

/// Returns the connection that has been without a request for longest.
fn longest_idle(places: &Places) -> Option<u64> {
    let idle = places
        .iter()
        .filter_map(|(number, standing)| Some((standing.idle_since()?, *number)));
    idle.min().map(|(_, number)| number)
}

/// Returns the connection on which a request has been arriving for longest, among those of the address with the most
/// arriving requests. An address with many half-sent requests therefore makes room for others, and not the reverse.
fn longest_receiving(places: &Places) -> Option<u64> {
    let mut of_address: HashMap<IpAddr, (usize, Option<(Instant, u64)>)> = HashMap::new();
    for (&number, standing) in places {
        if let Some(since) = standing.receiving.since() {
            let (count, longest) = of_address.entry(standing.address).or_default();
            *count += 1;
            let this = (since, number);
            *longest = Some(longest.map_or(this, |longest| longest.min(this)));
        }
    }
    let most = of_address.into_values().max_by_key(|(count, _)| *count);
    most.and_then(|(_, longest)| longest)
        .map(|(_, number)| number)
}

/// The place of a connection among the open ones, until it is dropped.
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
            .route("/slow", get(slow))
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

    async fn slow() -> &'static str {
        tokio::time::sleep(Duration::from_millis(600)).await;
        "slow"
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
    async fn idle_connections_make_room_for_new_ones() {
        let (address, _stopper, _serving) = started(8).await;
        let mut idle = Vec::new();
        for _ in 0..50 {
            idle.push(TcpStream::connect(address).await.unwrap());
            assert!(ask(address).await.unwrap().ends_with("well"));
        }
        // The first connection was closed.
        let mut byte = [0];
        assert_eq!(idle[0].read(&mut byte).await.unwrap_or(0), 0);
    }

    /// Opens a connection and sends a request with half of its body.
    async fn half_sent(address: SocketAddr) -> TcpStream {
        let mut half = TcpStream::connect(address).await.unwrap();
        let head = b"POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nha";
        half.write_all(head).await.unwrap();
        half
    }

    /// A client with half a request on every connection must not shut others out.
    #[tokio::test]
    async fn half_sent_requests_make_room_for_new_connections() {
        let (address, _stopper, _serving) = started(8).await;
        let mut half = Vec::new();
        for _ in 0..20 {
            half.push(half_sent(address).await);
        }
        for _ in 0..20 {
            assert!(ask(address).await.unwrap().ends_with("well"));
        }
        // The first connection was closed, and the server still waits for the last.
        let mut byte = [0];
        assert_eq!(half[0].read(&mut byte).await.unwrap_or(0), 0);
        let mut last = half.pop().unwrap();
        last.write_all(b"lf").await.unwrap();
        let mut answer = [0; 12];
        last.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }

    /// An address with many half-sent requests must not cost another address its only one.
    #[test]
    fn address_with_most_half_sent_requests_makes_room() {
        let open = Arc::new(Open::default());
        let [eve, ana] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        let enter = |address| {
            let place = open.enter(address);
            let standing = place.standing.clone();
            let busy = Busy::new(&standing);
            let under = standing.receiving.begin();
            (place, busy, under)
        };
        let ana = enter(ana);
        let eve = [(); 3].map(|()| enter(eve));
        assert!(open.let_one_go());
        assert!(
            !open.places().contains_key(&eve[0].0.number),
            "the oldest request of the address with the most"
        );
        assert!(open.places().contains_key(&ana.0.number));
        // Complete requests are answered without interruption.
        for (_, _, under) in eve {
            drop(under);
        }
        drop(ana.2);
        assert!(!open.let_one_go());
    }

    /// Collects the log lines of a service while some code runs.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// If no connection can make room, the caller is refused, and the log has the reason.
    #[tokio::test]
    async fn refused_connection_is_logged() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .finish();
        // All of the test runs on this thread.
        let _guard = tracing::subscriber::set_default(subscriber);
        let (address, _stopper, _serving) = started(2).await;
        let mut slow = Vec::new();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let head = b"GET /slow HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
            stream.write_all(head).await.unwrap();
            slow.push(stream);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(ask(address).await.unwrap_or_default(), "");
        let said = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(
            said.contains("WARN") && said.contains("all are busy"),
            "{said}"
        );
        for mut stream in slow {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.ends_with("slow"), "{answer}");
        }
    }

    #[tokio::test]
    async fn busy_connections_are_not_closed() {
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
    async fn half_sent_request_does_not_delay_shutdown() {
        let (address, stopper, serving) = started(8).await;
        let _half = half_sent(address).await;
        assert!(ask(address).await.unwrap().ends_with("well"));
        stopper.stop();
        serving.await.unwrap();
        let refused = ask(address).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    }
}
