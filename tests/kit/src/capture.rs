//! Proxies that forward and record all messages between parties, one for every link.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{StatusCode, header},
    response::Response,
};
use futures_util::TryStreamExt;
use tokio::{net::TcpListener, runtime::Runtime};

use crate::services::Between;

/// One HTTP call as it was on the wire.
#[derive(Clone, Debug)]
pub struct Message {
    /// Name of the caller.
    pub from: &'static str,
    /// Name of the called service.
    pub to: &'static str,
    /// Method, path and query.
    pub call: String,
    /// Headers of the request, one per line.
    pub headers: String,
    /// Body of the request.
    pub sent: Vec<u8>,
    /// Status of the response.
    pub status: StatusCode,
    /// Body of the response.
    pub received: Vec<u8>,
}

/// The proxies of a test and the messages that they have recorded.
pub struct Capture {
    runtime: Runtime,
    http: reqwest::Client,
    messages: Arc<Mutex<Vec<Message>>>,
}

#[derive(Clone)]
struct Link {
    from: &'static str,
    to: &'static str,
    base: String,
    http: reqwest::Client,
    messages: Arc<Mutex<Vec<Message>>>,
}

impl Default for Capture {
    fn default() -> Self {
        Self {
            runtime: Runtime::new().unwrap(),
            http: fhaim_platform::peer::http_client().unwrap(),
            messages: Arc::default(),
        }
    }
}

impl Capture {
    /// Returns the messages recorded so far, in the order of the calls.
    pub fn messages(&self) -> Vec<Message> {
        self.messages.lock().unwrap().clone()
    }
}

impl Between for Capture {
    /// Starts a proxy for one caller in front of the service at `base`, and returns its address.
    fn link(&self, from: &'static str, to: &'static str, base: &str) -> String {
        let link = Link {
            from,
            to,
            base: base.to_owned(),
            http: self.http.clone(),
            messages: self.messages.clone(),
        };
        let listener = self.runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(pass).with_state(link);
        self.runtime
            .spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}")
    }
}

async fn pass(State(link): State<Link>, request: Request) -> Response {
    let (mut head, body) = request.into_parts();
    let sent = to_bytes(body, usize::MAX).await.unwrap();
    for hop in [header::HOST, header::CONTENT_LENGTH, header::CONNECTION] {
        head.headers.remove(hop);
    }
    let path = head.uri.path_and_query().unwrap().as_str();
    let call = link
        .http
        .request(head.method.clone(), format!("{}{path}", link.base))
        .headers(head.headers.clone())
        .body(sent.clone());
    let Ok(answer) = call.send().await else {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        return response;
    };
    let headers = head.headers.iter();
    let message = Message {
        from: link.from,
        to: link.to,
        call: format!("{} {path}", head.method),
        headers: headers.map(|(k, v)| format!("{k}: {v:?}\n")).collect(),
        sent: sent.to_vec(),
        status: answer.status(),
        received: Vec::new(),
    };
    let number = {
        let mut messages = link.messages.lock().unwrap();
        messages.push(message);
        messages.len() - 1
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status();
    let hops = [header::TRANSFER_ENCODING, header::CONNECTION];
    for (name, value) in answer.headers() {
        if !hops.contains(name) {
            response.headers_mut().append(name, value.clone());
        }
    }
    // Streamed, so that events of an event stream arrive without delay.
    let remember = move |chunk: &axum::body::Bytes| {
        link.messages.lock().unwrap()[number].received.extend(chunk);
    };
    *response.body_mut() = Body::from_stream(answer.bytes_stream().inspect_ok(remember));
    response
}
