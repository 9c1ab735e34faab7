//! Proxies on all links, between services and from the command. They lose and delay requests and answers. A proxy's
//! port is open only while the service's port is.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use fhaim_kit::Between;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    runtime::Runtime,
    sync::Notify,
};

/// Interval at which a link checks whether its service is up again.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A link is in use if its last call is more recent than this.
const RECENT: Duration = Duration::from_secs(3);

/// A fault of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trouble {
    /// Requests arrive and are processed, but their answers are lost.
    LostAnswers,
    /// Requests are lost.
    LostRequests,
    /// Requests and answers are delayed.
    Delays(Duration),
}

/// Proxies on all links.
pub struct Proxies {
    runtime: Runtime,
    links: Mutex<Vec<Arc<Link>>>,
}

/// A proxy on one link.
pub struct Link {
    /// Name of the caller.
    pub from: &'static str,
    /// Name of the called service.
    pub to: &'static str,
    service: SocketAddr,
    listens: SocketAddr,
    /// Notified when the service has been killed.
    away: Notify,
    now: Mutex<Now>,
}

/// Current state of a link.
#[derive(Default)]
struct Now {
    trouble: Option<(Trouble, Instant)>,
    /// Calls that the fault affected, with their times.
    struck: Vec<(Instant, String)>,
    /// Answers with a status that no service may return.
    faulty: BTreeSet<String>,
    called: Option<Instant>,
}

/// The current call on a connection.
#[derive(Default)]
struct Call {
    line: String,
    answered: bool,
}

impl Proxies {
    pub fn new() -> Self {
        Self {
            runtime: Runtime::new().unwrap(),
            links: Mutex::default(),
        }
    }

    /// Returns the links in use, or all links if none is.
    pub fn used(&self) -> Vec<Arc<Link>> {
        let links = self.links.lock().unwrap();
        let used = links.iter().filter(|link| {
            let called = link.now.lock().unwrap().called;
            called.is_some_and(|called| called.elapsed() < RECENT)
        });
        let used: Vec<_> = used.cloned().collect();
        if used.is_empty() { links.clone() } else { used }
    }

    /// Closes the ports of the links to a killed service until it is up again.
    pub fn away(&self, service: &str) {
        for link in self.links.lock().unwrap().iter() {
            if link.to == service {
                link.away.notify_waiters();
            }
        }
    }

    /// Returns the answers with a status that no service may return: 5xx other than 503 and 507.
    pub fn faulty(&self) -> BTreeSet<String> {
        let links = self.links.lock().unwrap();
        let faulty = links
            .iter()
            .map(|link| link.now.lock().unwrap().faulty.clone());
        faulty.flatten().collect()
    }
}

impl Between for Proxies {
    fn link(&self, from: &'static str, to: &'static str, base: &str) -> String {
        let mut links = self.links.lock().unwrap();
        if let Some(link) = links.iter().find(|link| (link.from, link.to) == (from, to)) {
            return format!("http://{}", link.listens);
        }
        let listener = self.runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.unwrap();
        let link = Arc::new(Link {
            from,
            to,
            service: base.trim_start_matches("http://").parse().unwrap(),
            listens: listener.local_addr().unwrap(),
            away: Notify::new(),
            now: Mutex::default(),
        });
        self.runtime.spawn(link.clone().listen(listener));
        links.push(link.clone());
        format!("http://{}", link.listens)
    }
}

impl Link {
    /// Starts a fault on this link, for this long.
    pub fn trouble(&self, trouble: Trouble, length: Duration) {
        let mut now = self.now.lock().unwrap();
        now.trouble = Some((trouble, Instant::now() + length));
        now.struck.clear();
    }

    /// Returns the calls that the last fault affected.
    pub fn struck(&self) -> Vec<(Instant, String)> {
        self.now.lock().unwrap().struck.clone()
    }

    fn troubled(&self) -> Option<Trouble> {
        let (trouble, until) = self.now.lock().unwrap().trouble?;
        (Instant::now() < until).then_some(trouble)
    }

    fn strike(&self, call: &Mutex<Call>) {
        let line = call.lock().unwrap().line.clone();
        let met = (Instant::now(), line);
        self.now.lock().unwrap().struck.push(met);
    }

    async fn listen(self: Arc<Self>, first: TcpListener) {
        let mut listener = first;
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted.ok(),
                () = self.away.notified() => {
                    drop(listener);
                    listener = self.listen_again().await;
                    None
                }
            };
            if let Some((caller, _)) = accepted {
                tokio::spawn(self.clone().relay(caller));
            }
        }
    }

    /// Waits for the service, and listens on the link's port again.
    async fn listen_again(&self) -> TcpListener {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if TcpStream::connect(self.service).await.is_err() {
                continue;
            }
            if let Ok(listener) = TcpListener::bind(self.listens).await {
                return listener;
            }
        }
    }

    /// Forwards bytes in both directions until either side closes or a message is lost. Then closes both connections.
    async fn relay(self: Arc<Self>, caller: TcpStream) {
        let Ok(service) = TcpStream::connect(self.service).await else {
            return;
        };
        // Avoids delays of small calls. Errors can be ignored.
        let _ = (caller.set_nodelay(true), service.set_nodelay(true));
        let (from_caller, to_caller) = caller.into_split();
        let (from_service, to_service) = service.into_split();
        let call = Mutex::default();
        tokio::select! {
            () = self.requests(&call, from_caller, to_service) => {}
            () = self.answers(&call, from_service, to_caller) => {}
        }
    }

    async fn requests(&self, call: &Mutex<Call>, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut bytes).await {
            let begins = request_line(&bytes[..length]);
            if let Some(line) = &begins {
                self.now.lock().unwrap().called = Some(Instant::now());
                *call.lock().unwrap() = Call {
                    line: line.clone(),
                    answered: false,
                };
            }
            match self.troubled() {
                Some(Trouble::LostRequests) => return self.strike(call),
                Some(Trouble::Delays(time)) if begins.is_some() => {
                    self.strike(call);
                    tokio::time::sleep(time).await;
                }
                _ => {}
            }
            if to.write_all(&bytes[..length]).await.is_err() {
                return;
            }
        }
    }

    async fn answers(&self, call: &Mutex<Call>, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut bytes).await {
            let (line, begins) = {
                let mut call = call.lock().unwrap();
                (
                    call.line.clone(),
                    !std::mem::replace(&mut call.answered, true),
                )
            };
            if begins && let Some(status) = faulty_status(&bytes[..length]) {
                let met = format!("{} to {}: {line}: {status}", self.from, self.to);
                self.now.lock().unwrap().faulty.insert(met);
            }
            match self.troubled() {
                Some(Trouble::LostAnswers) => return self.strike(call),
                Some(Trouble::Delays(time)) if begins => tokio::time::sleep(time).await,
                _ => {}
            }
            if to.write_all(&bytes[..length]).await.is_err() {
                return;
            }
        }
    }
}

/// Returns the method and path, without the query, if these bytes begin a request.
fn request_line(bytes: &[u8]) -> Option<String> {
    let line = bytes.split(|&byte| byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?.strip_suffix(" HTTP/1.1")?;
    line.split('?').next().map(str::to_owned)
}

/// Returns the status of an answer if no service may return it.
fn faulty_status(bytes: &[u8]) -> Option<&str> {
    let status = std::str::from_utf8(bytes.get(9..12)?).ok()?;
    (status.starts_with('5') && !["503", "507"].contains(&status)).then_some(status)
}
