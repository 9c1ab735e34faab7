//! Calls from service to service: signed, retried with back-off, and with the caller's request id.
//!
//! Every call is idempotent, so a lost answer can be fetched by repeating the call.

use fhaim_api::problem::{Problem, ProblemKind};
use fhaim_api::token::Service;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

use crate::Failure;
use crate::token::{FETCH_EVERY, MAX_SKEW, Signer};

/// Lifetime of a token, which is made for one try. The peer's clock may be ahead by as much.
const TOKEN_LIFETIME: Duration = Duration::from_secs(MAX_SKEW);

/// First and longest wait between tries.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Time for which a refused call is repeated with new tokens: longer than the peer may take to look for a key that it
/// does not know.
const REFUSED_FOR: Duration = FETCH_EVERY.saturating_add(Duration::from_secs(1));

/// The reason why a call has no good answer. [`PeerError::refusal`] separates final answers from temporary ones.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The service answered with a problem.
    #[error("the {service} service: {problem}")]
    Problem {
        /// The service that answered.
        service: Service,
        /// The problem.
        problem: Box<Problem>,
    },
    /// There was no readable answer after all tries.
    #[error("the {service} service does not answer: {reason}")]
    Unreachable {
        /// The service that did not answer.
        service: Service,
        /// The result of the last try.
        reason: String,
    },
    /// The call cannot be signed.
    #[error("a call cannot be signed")]
    Unsigned,
}

impl PeerError {
    /// Returns the service that was called, if a call was sent.
    pub fn service(&self) -> Option<Service> {
        match self {
            Self::Problem { service, .. } | Self::Unreachable { service, .. } => Some(*service),
            Self::Unsigned => None,
        }
    }

    /// Returns the peer's refusal if it is final, so that the same call would be refused again. Returns `None` for
    /// temporary failures: no answer, a fault or an outage of the peer, or a token that the peer could not check or
    /// whose time it does not accept.
    pub fn refusal(&self) -> Option<&Problem> {
        match self {
            Self::Problem { problem, .. } if is_final(problem) => Some(problem),
            _ => None,
        }
    }
}

fn is_final(problem: &Problem) -> bool {
    // Unauthorized, Request Timeout, Too Early, Too Many Requests.
    let passing = [401, 408, 425, 429].contains(&problem.status);
    problem.kind == ProblemKind::Damaged || (400..500).contains(&problem.status) && !passing
}

/// A client of one other service.
#[derive(Clone)]
pub struct PeerClient {
    peer: Service,
    base: String,
    signer: Arc<Signer>,
    http: reqwest::Client,
    tries: u32,
    /// The user for whom it calls, with the user's token. Otherwise it calls with the service's token.
    user: Option<Uuid>,
    /// Headers of every call in addition to its token.
    headers: Vec<(&'static str, String)>,
}

impl fmt::Debug for PeerClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerClient({} at {})", self.peer, self.base)
    }
}

/// A body to send.
#[derive(Clone, Debug)]
pub enum Body {
    /// No body.
    Empty,
    /// JSON, already written.
    Json(Vec<u8>),
    /// Bytes.
    Bytes(bytes::Bytes),
}

impl PeerClient {
    /// Makes a client of the service at a base address. It signs its calls with its own service's key.
    pub fn new(peer: Service, base: &str, signer: Arc<Signer>, http: reqwest::Client) -> Self {
        Self {
            peer,
            base: base.trim_end_matches('/').to_owned(),
            signer,
            http,
            tries: 8,
            user: None,
            headers: Vec::new(),
        }
    }

    /// Returns a client with at most the given number of tries, for calls whose caller waits for the answer.
    #[must_use]
    pub fn with_tries(&self, tries: u32) -> Self {
        Self {
            tries,
            ..self.clone()
        }
    }

    /// Returns a client that calls for a user who asked for the call. Only the generation service signs users' tokens.
    #[must_use]
    pub fn for_user(&self, user: Uuid) -> Self {
        Self {
            user: Some(user),
            ..self.clone()
        }
    }

    /// Returns a client whose calls also carry these headers.
    #[must_use]
    pub fn with_headers(&self, headers: Vec<(&'static str, String)>) -> Self {
        Self {
            headers,
            ..self.clone()
        }
    }

    /// Makes a call whose answer is JSON.
    ///
    /// # Errors
    /// See [`PeerError`].
    pub async fn json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<T, PeerError> {
        let bytes = self.bytes(method, path, body).await?;
        serde_json::from_slice(&bytes).map_err(|error| self.unreachable(error))
    }

    /// Makes a call whose answer is bytes.
    ///
    /// # Errors
    /// See [`PeerError`].
    pub async fn bytes(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<bytes::Bytes, PeerError> {
        let (mut wait, longest) = BACKOFF;
        let mut waited = Duration::ZERO;
        let mut last = self.unreachable("the call was not tried");
        for attempt in 0..self.tries {
            if attempt > 0 {
                tokio::time::sleep(wait).await;
                waited += wait;
                wait = (wait * 2).min(longest);
            }
            // Signs again for each try: the token may have expired, or its key may have been replaced.
            let token = match self.user {
                Some(user) => self.signer.token_for_user(self.peer, user, TOKEN_LIFETIME),
                None => self.signer.service_token(self.peer, TOKEN_LIFETIME),
            };
            let token = token.map_err(|_: Failure| PeerError::Unsigned)?;
            let response = match self.send(&method, path, &body, &token).await {
                Ok(response) => response,
                Err(error) => {
                    last = self.unreachable(error.without_url());
                    continue;
                }
            };
            let status = response.status();
            if let Some(seconds) = retry_after(&response) {
                wait = Duration::from_secs(seconds).min(longest);
            }
            let received = match response.bytes().await {
                Ok(bytes) => bytes,
                Err(error) => {
                    last = self.unreachable(error.without_url());
                    continue;
                }
            };
            if status.is_success() {
                return Ok(received);
            }
            last = self.problem(status, &received);
            let refused = status == StatusCode::UNAUTHORIZED && waited < REFUSED_FOR;
            if !refused && !worth_another_try(status) {
                break;
            }
        }
        Err(last)
    }

    async fn send(
        &self,
        method: &Method,
        path: &str,
        body: &Body,
        token: &str,
    ) -> Result<reqwest::Response, reqwest::Error> {
        let address = format!("{}{path}", self.base);
        let mut request = self
            .http
            .request(method.clone(), address)
            .header(AUTHORIZATION, format!("Bearer {token}"));
        if let Some(id) = crate::server::current_request_id() {
            request = request.header(crate::server::REQUEST_ID, id);
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        request = match body {
            Body::Empty => request,
            Body::Json(json) => request
                .header(CONTENT_TYPE, "application/json")
                .body(json.clone()),
            Body::Bytes(bytes) => request
                .header(CONTENT_TYPE, "application/octet-stream")
                .body(bytes.clone()),
        };
        request.send().await
    }

    fn problem(&self, status: StatusCode, received: &[u8]) -> PeerError {
        match serde_json::from_slice(received) {
            Ok(problem) => PeerError::Problem {
                service: self.peer,
                problem: Box::new(problem),
            },
            Err(_) => self.unreachable(status),
        }
    }

    fn unreachable(&self, reason: impl fmt::Display) -> PeerError {
        PeerError::Unreachable {
            service: self.peer,
            reason: reason.to_string(),
        }
    }
}

fn worth_another_try(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::BAD_GATEWAY
        || status == StatusCode::SERVICE_UNAVAILABLE
        || status == StatusCode::GATEWAY_TIMEOUT
}

fn retry_after(response: &reqwest::Response) -> Option<u64> {
    response
        .headers()
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// Makes the HTTP client that all calls share. It uses rustls, and no call takes longer than a minute.
///
/// # Errors
/// [`reqwest::Error`] if the system's certificates cannot be used.
pub fn http_client() -> Result<reqwest::Client, reqwest::Error> {
    // Fails if a provider is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(5))
        .timeout(Duration::from_secs(60))
        .build()
}
