//! The layers around a service's routes: request ids, logs, metrics, health checks, and the answer to panics.

use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{DefaultBodyLimit, MatchedPath, RawPathParams, Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use futures_util::future::BoxFuture;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument;
use uuid::Uuid;

use crate::{Failure, leftover, peers, telemetry};

/// Header with the request id, which is passed on from service to service.
pub const REQUEST_ID: &str = "x-request-id";

/// Default of the largest request body that a route reads.
pub const BODY_LIMIT: usize = 4 << 20;

/// Routes for monitoring a service.
const PROBES: [&str; 4] = ["/healthz", "/readyz", "/readyz/peers", "/metrics"];

/// Time within which a healthy service answers.
const HEALTHY_WITHIN: Duration = Duration::from_secs(2);

tokio::task_local! {
    static CURRENT: Current;
}

/// The request or task that is being worked on.
#[derive(Clone)]
struct Current {
    id: HeaderValue,
    subject: Subject,
}

/// The place and the dataset of a request or task, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The service that answers a request.
    pub service: Option<Service>,
    /// The dataset that the request or task is about.
    pub dataset: Option<Uuid>,
}

/// Returns the id of the request that is being answered.
pub fn current_request_id() -> Option<HeaderValue> {
    CURRENT.try_with(|current| current.id.clone()).ok()
}

/// Returns the subject of the request that is being answered, or of the task that is being done.
pub fn current_subject() -> Subject {
    let subject = CURRENT.try_with(|current| current.subject);
    subject.unwrap_or_default()
}

/// Does a task, about a dataset if one is given, under a new request id, so that the calls it makes can be traced.
pub async fn with_request_id<F: Future>(dataset: Option<Uuid>, work: F) -> F::Output {
    let id = new_id();
    let span = tracing::info_span!("work", id = id.to_str().unwrap_or(""));
    let subject = Subject {
        service: None,
        dataset,
    };
    let current = Current { id, subject };
    CURRENT.scope(current, work.instrument(span)).await
}

fn new_id() -> HeaderValue {
    let id = Uuid::new_v4().to_string();
    // A UUID is printable ASCII.
    HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("none"))
}

/// A check whether a service can do its work.
pub type Ready = Arc<dyn Fn() -> BoxFuture<'static, Result<(), Failure>> + Send + Sync>;

/// Puts all layers around a service's routes, and adds the routes for monitoring.
pub fn around(service: Service, routes: Router, ready: Ready, peers_ready: Ready) -> Router {
    let health = Router::new()
        .route("/healthz", get(healthz).with_state(service))
        .route("/readyz", get(readyz).with_state(ready))
        .route("/readyz/peers", get(readyz_peers).with_state(peers_ready))
        .route("/metrics", get(metrics));
    // Installs the recorder before the first request is counted.
    let _ = telemetry::metrics();
    health
        .merge(routes)
        .fallback(|| async { Failure::not_found() })
        .method_not_allowed_fallback(|| async { Failure::bare(ProblemKind::MethodNotAllowed) })
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(CatchPanicLayer::custom(
            |_: Box<dyn std::any::Any + Send>| {
                Failure::internal("a handler panicked").into_response()
            },
        ))
        .layer(middleware::from_fn_with_state(service, observe))
        .layer(middleware::from_fn(leftover::read_out))
}

async fn healthz(State(service): State<Service>) -> impl IntoResponse {
    ([(peers::SERVICE, service.as_str())], "ok\n")
}

async fn readyz(State(ready): State<Ready>) -> Result<&'static str, Failure> {
    match ready().await {
        Ok(()) => Ok("ready\n"),
        Err(failure) => Err(Failure::bare(ProblemKind::Unavailable).because(failure)),
    }
}

/// Checks whether the services that this one calls, or is called by, answer. This is separate from the service's own
/// readiness: services that waited for each other to be ready would never be ready.
async fn readyz_peers(State(peers): State<Ready>) -> Result<&'static str, Failure> {
    peers().await.map(|()| "ready\n")
}

async fn metrics() -> Result<impl IntoResponse, Failure> {
    let handle = telemetry::metrics().ok_or_else(|| Failure::internal("no metrics"))?;
    let text = (header::CONTENT_TYPE, "text/plain; version=0.0.4");
    Ok(([text], handle.render()))
}

/// Gives the request an id, logs and measures it, and adds the id to the answer.
async fn observe(
    State(service): State<Service>,
    parameters: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let id = request.headers().get(REQUEST_ID);
    let id = id.filter(|id| is_id(id)).cloned().unwrap_or_else(new_id);
    let path = request.extensions().get::<MatchedPath>();
    let route = path.map_or("none", MatchedPath::as_str).to_owned();
    let method = request.method().clone();
    let span = tracing::info_span!(
        "request", %service, %method, route, id = id.to_str().unwrap_or("")
    );
    let subject = Subject {
        service: Some(service),
        dataset: parameters.as_ref().ok().and_then(dataset_of),
    };
    let current = Current { id, subject };
    let answer = next.run(request).instrument(span.clone());
    let mut response = CURRENT.scope(current.clone(), answer).await;
    response.headers_mut().insert(REQUEST_ID, current.id);
    let status = response.status().as_u16();
    let seconds = started.elapsed().as_secs_f64();
    span.in_scope(|| match PROBES.contains(&&*route) {
        // Probes come every few seconds, and their lines have no information.
        true => tracing::debug!(status, seconds, "answered"),
        false => tracing::info!(status, seconds, "answered"),
    });
    // A caller that may see a token may see more than the users of a cache.
    let headers = response.headers_mut();
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    let labels = [
        ("service", service.to_string()),
        ("method", method_label(&method).to_owned()),
        ("route", route),
        ("status", status.to_string()),
    ];
    metrics::counter!("http_requests_total", &labels).increment(1);
    metrics::histogram!("http_request_seconds", &labels).record(seconds);
    response
}

/// Returns the dataset that a path names.
fn dataset_of(parameters: &RawPathParams) -> Option<Uuid> {
    let (_, id) = parameters.iter().find(|(name, _)| *name == "dataset")?;
    id.parse().ok()
}

/// Returns the label of a method in metrics. Only methods that routes use have their own label, because every label
/// is kept forever and callers can invent methods.
fn method_label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        _ => "other",
    }
}

/// Returns whether an id has the form of our own ids. Other values from callers must not enter our logs.
fn is_id(id: &HeaderValue) -> bool {
    id.to_str().is_ok_and(|id| Uuid::try_parse(id).is_ok())
}

/// Asks a service on this machine whether it is healthy. This is the health check of containers that have no other
/// program for it.
///
/// # Errors
/// An I/O error if the connection fails, or if the answer is not that the service is healthy.
pub async fn ask_healthy(listens: SocketAddr) -> std::io::Result<()> {
    let address = match listens.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let ask = async {
        let mut stream = TcpStream::connect((address, listens.port())).await?;
        stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").await?;
        let mut answer = Vec::new();
        stream.take(4096).read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = tokio::time::timeout(HEALTHY_WITHIN, ask).await;
    let answer = answer.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))?;
    let status = answer.split(|&byte| byte == b' ').nth(1);
    if status == Some(b"200".as_slice()) {
        Ok(())
    } else {
        Err(std::io::Error::other(
            "the service does not answer that it is healthy",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections;
    use tokio::net::TcpListener;

    #[test]
    fn unknown_methods_share_a_label() {
        let label = |name: &str| method_label(&Method::from_bytes(name.as_bytes()).unwrap());
        assert_eq!(label("PUT"), "PUT");
        for made_up in ["X1", "PATCH", "TRACE", "GET2"] {
            assert_eq!(label(made_up), "other");
        }
    }

    #[tokio::test]
    async fn answers_forbid_caching_by_default() {
        use axum::body::Body;
        use tower::ServiceExt;
        let kept = || async { ([(header::CACHE_CONTROL, "max-age=5")], "") };
        let routes = Router::new()
            .route("/token", get(|| async { "secret" }))
            .route("/kept", get(kept));
        let routes = around(
            Service::Crypto,
            routes,
            Arc::new(|| Box::pin(async { Ok(()) })),
            Arc::new(|| Box::pin(async { Ok(()) })),
        );
        for (path, says) in [
            ("/token", "no-store"),
            ("/none", "no-store"),
            ("/kept", "max-age=5"),
        ] {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let response = routes.clone().oneshot(request).await.unwrap();
            assert_eq!(response.headers()[header::CACHE_CONTROL], says, "{path}");
        }
    }

    #[tokio::test]
    async fn health_check_reaches_a_service_that_listens_on_all_addresses() {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = around(
            Service::Crypto,
            Router::new(),
            Arc::new(|| Box::pin(async { Ok(()) })),
            Arc::new(|| Box::pin(async { Ok(()) })),
        );
        let (stopper, signal) = crate::shutdown::channel();
        let serving = tokio::spawn(connections::serve(listener, routes, 8, signal));
        ask_healthy(address).await.unwrap();
        stopper.stop();
        serving.await.unwrap();
        let refused = ask_healthy(address).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    }

    #[tokio::test]
    async fn another_program_at_the_address_is_not_healthy() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let other = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            // A connection that is closed before its request is read would be reset.
            let mut request = [0; b"GET /healthz HTTP/1.0\r\n\r\n".len()];
            stream.read_exact(&mut request).await.unwrap();
            stream.write_all(b"HTTP/1.1 404 Not Found\r\n\r\n").await
        });
        let refused = ask_healthy(address).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the service does not answer that it is healthy"
        );
        other.await.unwrap().unwrap();
    }
}
