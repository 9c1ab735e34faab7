//! Connections: so many at most, the longest idle let go for a new one, and an end by a deadline.
//!
//! Whoever opens connections and sends nothing, or half a request, must not keep others out. A
//! request's head has to come within twenty seconds, and so has the next one's on a connection
//! that is kept. A request's body has to get on (`receiving`). Where all places are taken, the
//! connection that has been without a request for longest makes room, and where there is none, the one
//! whose request has been coming in for longest, of whichever address has most of those. What is
//! being answered is left alone, as long as it is taken in (`sending`).

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
            metrics::counter!("connections_refused_total").increment(1);
            tracing::warn!(connections = most, "a connection is refused: all are busy");
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

/// A request's body, whose connection is let go when nothing comes any more.
fn watched(body: Incoming, standing: &Arc<Standing>) -> Body {
    if body.is_end_stream() {
        return Body::new(body);
    }
    let receiving = standing.receiving.begin();
    let stalled = standing.clone();
    Body::new(Watched::new(body, receiving, move || {
        tracing::info!(address = %stalled.address, "a connection is let go: its request does not come");
        stalled.let_go.notify_one();
    }))
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
    address: IpAddr,
    /// Requests that are being answered, and since when there are none.
    state: Mutex<(usize, Instant)>,
    /// Of a request whose body has not ended, since when it has been coming in.
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

    /// Lets the connection go that has been idle for longest, or else one whose request is still coming
    /// in; whether there was one.
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

/// The connection that has been without a request for longest.
fn longest_idle(places: &Places) -> Option<u64> {
    let idle = places
        .iter()
        .filter_map(|(number, standing)| Some((standing.idle_since()?, *number)));
    idle.min().map(|(_, number)| number)
}

/// Of the address that sends most requests at a time, the connection on which one has been coming in
/// for longest: whoever sends many in halves makes room for others, and not they for each other.
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

    /// A request whose body has come halfway.
    async fn half_sent(address: SocketAddr) -> TcpStream {
        let mut half = TcpStream::connect(address).await.unwrap();
        let head = b"POST /body HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nha";
        half.write_all(head).await.unwrap();
        half
    }

    /// Whoever sends half a request on every connection there is shut everybody else out.
    #[tokio::test]
    async fn half_sent_requests_make_room_for_those_that_ask() {
        let (address, _stopper, _serving) = started(8).await;
        let mut half = Vec::new();
        for _ in 0..20 {
            half.push(half_sent(address).await);
        }
        for _ in 0..20 {
            assert!(ask(address).await.unwrap().ends_with("well"));
        }
        // The first of them was let go, the last is waited for.
        let mut byte = [0];
        assert_eq!(half[0].read(&mut byte).await.unwrap_or(0), 0);
        let mut last = half.pop().unwrap();
        last.write_all(b"lf").await.unwrap();
        let mut answer = [0; 12];
        last.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }

    /// One address that sends many in halves does not cost another its one.
    #[test]
    fn who_has_most_half_sent_makes_room() {
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
            "the first of the most"
        );
        assert!(open.places().contains_key(&ana.0.number));
        // What has come is answered in peace.
        for (_, _, under) in eve {
            drop(under);
        }
        drop(ana.2);
        assert!(!open.let_one_go());
    }

    /// What a service says of connections while some code runs.
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

    /// Where nobody can make room the caller is refused, and the log says why.
    #[tokio::test]
    async fn a_refused_connection_is_in_the_log() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .finish();
        // On this thread, which all of the test runs on.
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
        let _half = half_sent(address).await;
        assert!(ask(address).await.unwrap().ends_with("well"));
        stopper.stop();
        serving.await.unwrap();
        let refused = ask(address).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    }
}
