//! HTTP: addresses, the session, and calls with retries.

use fhaim_api::account::{Account, Credentials, KeyExchange, Refresh, Secret, Session};
use fhaim_api::problem::{Problem, ProblemKind};
use fhaim_api::token::Service;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::receipts::InMemory;
use crate::{Endpoints, Error, ReceiptStore};

/// First and longest wait between attempts of a call.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// Maximum number of attempts of a call, for about a minute in total.
const TRIES: u32 = 10;

/// Time before its expiry at which a session is renewed.
const MARGIN: Duration = Duration::from_secs(30);

/// Credentials that renew a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Login {
    /// A refresh token, valid until its successor is used. [`Client::login`] returns the successor.
    Refresh(Secret),
    /// An API key.
    ApiKey(Secret),
}

#[derive(Debug, Default)]
struct Current {
    login: Option<Login>,
    /// The session, and the time until which its tokens are valid.
    access: Option<(Session, Instant)>,
}

/// Stores the login between programs. A refresh token is valid until its successor is used.
/// Programs that share a login must therefore renew it one at a time, each from the login that was
/// stored last.
pub trait Keeper: Send + Sync {
    /// Waits until no other program renews the login. Dropping the guard lets the next program
    /// renew it.
    fn exclusive(&self) -> Box<dyn std::any::Any + Send>;

    /// Returns the login that was stored last, by any program.
    fn load(&self) -> Option<Login>;

    /// Stores a login.
    fn keep(&self, login: &Login);
}

/// A client of all three services. It is cheap to clone, and clones share the session.
#[derive(Clone)]
pub struct Client {
    endpoints: Arc<Endpoints>,
    http: reqwest::Client,
    current: Arc<Mutex<Current>>,
    keeper: Option<Arc<dyn Keeper>>,
    receipts: Arc<dyn ReceiptStore>,
    waiting: Option<Waiting>,
}

/// Receives the reason for which a call is made again.
pub type Waiting = Arc<dyn Fn(&Error) + Send + Sync>;

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({:?})", self.endpoints)
    }
}

/// The body of a call.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Empty,
    Json(Vec<u8>),
    Bytes(bytes::Bytes),
}

impl Body {
    pub(crate) fn json(value: &impl Serialize) -> Self {
        // Wire types have text keys and derive Serialize: writing them cannot fail.
        Self::Json(serde_json::to_vec(value).unwrap_or_default())
    }
}

impl Client {
    /// Creates a client that is not signed in.
    ///
    /// # Errors
    /// The system's certificates cannot be used.
    pub fn new(endpoints: Endpoints) -> Result<Self, Error> {
        // Fails only if a provider is already installed, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(5))
            .read_timeout(Duration::from_secs(120))
            .build()
            .map_err(|error| Error::unreachable("TLS", error))?;
        Ok(Self {
            endpoints: Arc::new(endpoints),
            http,
            current: Arc::default(),
            keeper: None,
            receipts: Arc::new(InMemory::default()),
            waiting: None,
        })
    }

    /// Uses a login from an earlier session.
    #[must_use]
    pub fn with_login(self, login: Login) -> Self {
        Self {
            current: Arc::new(Mutex::new(Current {
                login: Some(login),
                access: None,
            })),
            ..self
        }
    }

    /// Uses a keeper that stores the login.
    #[must_use]
    pub fn with_keeper(self, keeper: Arc<dyn Keeper>) -> Self {
        Self {
            keeper: Some(keeper),
            ..self
        }
    }

    /// Calls `waiting` before a call is made again, which can take about a minute in total.
    #[must_use]
    pub fn with_waiting(self, waiting: Waiting) -> Self {
        Self {
            waiting: Some(waiting),
            ..self
        }
    }

    /// Uses a store for the receipts of ledgers. Receipts must outlive logins and programs: without
    /// them, nobody notices a crypto service that was set back between two programs.
    #[must_use]
    pub fn with_receipts(self, receipts: Arc<dyn ReceiptStore>) -> Self {
        Self { receipts, ..self }
    }

    pub(crate) fn receipts(&self) -> &dyn ReceiptStore {
        &*self.receipts
    }

    /// The addresses of the services.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// Returns the credentials that renew the session, to be stored for the next time.
    pub async fn login(&self) -> Option<Login> {
        self.current.lock().await.login.clone()
    }

    /// Creates an account.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn sign_up(&self, credentials: &Credentials) -> Result<Account, Error> {
        self.endpoints.check_transport()?;
        let address = format!("{}/v1/accounts", self.endpoints.generation);
        let body = Body::json(credentials);
        self.read(Method::POST, &address, &body, HeaderMap::new())
            .await
    }

    /// Signs in.
    ///
    /// # Errors
    /// [`Error::WrongCredentials`]; the errors of the service.
    pub async fn sign_in(&self, credentials: &Credentials) -> Result<(), Error> {
        let session = self.session_of(credentials).await?;
        self.keep(&mut *self.current.lock().await, session, None);
        Ok(())
    }

    /// Signs in with an API key.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn sign_in_with_key(&self, api_key: Secret) -> Result<(), Error> {
        let body = Body::json(&KeyExchange {
            api_key: api_key.clone(),
        });
        let session = self.session("/api-key", &body).await?;
        let login = Login::ApiKey(api_key);
        self.keep(&mut *self.current.lock().await, session, Some(login));
        Ok(())
    }

    /// Begins a session with a password.
    pub(crate) async fn session_of(&self, credentials: &Credentials) -> Result<Session, Error> {
        let session = self.session("", &Body::json(credentials)).await;
        session.map_err(|error| match error.kind() {
            Some(ProblemKind::Unauthenticated) => Error::WrongCredentials,
            _ => error,
        })
    }

    async fn session(&self, path: &str, body: &Body) -> Result<Session, Error> {
        self.endpoints.check_transport()?;
        let address = format!("{}/v1/sessions{path}", self.endpoints.generation);
        self.read(Method::POST, &address, body, HeaderMap::new())
            .await
    }

    fn keep(&self, current: &mut Current, session: Session, login: Option<Login>) {
        let lifetime = Duration::from_secs(session.expires_in);
        let until = Instant::now() + lifetime.saturating_sub(MARGIN);
        let mut session = session;
        let refresh_token = session.refresh_token.take();
        current.access = Some((session, until));
        if let Some(login) = login.or(refresh_token.map(Login::Refresh)) {
            if let Some(keeper) = &self.keeper {
                keeper.keep(&login);
            }
            current.login = Some(login);
        }
    }

    /// Returns the access token for a service. Renews the session first if it is about to expire.
    pub(crate) async fn token(&self, service: Service) -> Result<Secret, Error> {
        let mut current = self.current.lock().await;
        if let Some((session, until)) = &current.access
            && Instant::now() < *until
        {
            return own(session, service);
        }
        let _exclusive = self.keeper.as_ref().map(|keeper| keeper.exclusive());
        let kept = self.keeper.as_ref().and_then(|keeper| keeper.load());
        let login = kept.or_else(|| current.login.clone());
        let (session, login) = match login.ok_or(Error::SignedOut)? {
            Login::Refresh(refresh_token) => {
                let body = Body::json(&Refresh { refresh_token });
                (self.session("/refresh", &body).await?, None)
            }
            Login::ApiKey(api_key) => {
                let body = Body::json(&KeyExchange {
                    api_key: api_key.clone(),
                });
                let session = self.session("/api-key", &body).await?;
                (session, Some(Login::ApiKey(api_key)))
            }
        };
        let token = own(&session, service);
        self.keep(&mut current, session, login);
        token
    }

    /// Continues with a session that the service issued in place of the previous one.
    pub(crate) async fn take_over(&self, session: Session) {
        self.keep(&mut *self.current.lock().await, session, None);
    }

    /// Discards the session, here and at the service.
    ///
    /// # Errors
    /// The errors of the service.
    pub async fn sign_out(&self) -> Result<(), Error> {
        let login = {
            let mut current = self.current.lock().await;
            current.access = None;
            current.login.take()
        };
        match login {
            Some(Login::Refresh(token)) => self.end_session(Some(token)).await,
            _ => Ok(()),
        }
    }

    /// Ends the session of a refresh token at the service.
    pub(crate) async fn end_session(&self, token: Option<Secret>) -> Result<(), Error> {
        if let Some(refresh_token) = token {
            let address = format!("{}/v1/sessions", self.endpoints.generation);
            let body = Body::json(&Refresh { refresh_token });
            self.send(Method::DELETE, &address, &body, HeaderMap::new())
                .await?;
        }
        Ok(())
    }

    /// Returns all pages of a list.
    pub(crate) async fn list<T: DeserializeOwned>(&self, address: &str) -> Result<List<T>, Error> {
        let (mut items, mut damaged) = (Vec::new(), Vec::new());
        let mut next: Option<String> = None;
        loop {
            let page = match &next {
                Some(after) => format!("{address}?after={after}"),
                None => address.to_owned(),
            };
            let page: fhaim_api::Page<T> = self.json(Method::GET, &page, Body::Empty).await?;
            items.extend(page.items);
            damaged.extend(page.damaged);
            match page.next {
                Some(after) => next = Some(after),
                None => return Ok(List { items, damaged }),
            }
        }
    }

    /// Makes a call as the signed-in user and reads its answer as JSON.
    pub(crate) async fn json<T: DeserializeOwned>(
        &self,
        method: Method,
        address: &str,
        body: Body,
    ) -> Result<T, Error> {
        self.json_with(method, address, body, &HeaderMap::new())
            .await
    }

    /// Makes a call with more headers as the signed-in user and reads its answer as JSON.
    pub(crate) async fn json_with<T: DeserializeOwned>(
        &self,
        method: Method,
        address: &str,
        body: Body,
        more: &HeaderMap,
    ) -> Result<T, Error> {
        self.signed(address, more, |headers| {
            self.read(method.clone(), address, &body, headers)
        })
        .await
    }

    /// Makes a call as the signed-in user.
    pub(crate) async fn call(
        &self,
        method: Method,
        address: &str,
        body: Body,
    ) -> Result<Response, Error> {
        self.call_with(method, address, body, &HeaderMap::new())
            .await
    }

    /// Makes a call with more headers as the signed-in user.
    pub(crate) async fn call_with(
        &self,
        method: Method,
        address: &str,
        body: Body,
        more: &HeaderMap,
    ) -> Result<Response, Error> {
        self.signed(address, more, |headers| {
            self.send(method.clone(), address, &body, headers)
        })
        .await
    }

    /// Makes a call with the token of its service. If the service refuses a token that has not expired, such as after
    /// the operator ended the account's tokens, the call is made once more with a new token: nothing was done.
    async fn signed<T, F>(
        &self,
        address: &str,
        more: &HeaderMap,
        call: impl Fn(HeaderMap) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let service = self.endpoints.at(address);
        let token = self.token(service).await?;
        let headers = authorized(address, &token, more)?;
        match call(headers).await {
            Err(error) if error.kind() == Some(ProblemKind::Unauthenticated) => {
                self.discard(service, &token).await;
                let token = self.token(service).await?;
                call(authorized(address, &token, more)?).await
            }
            answered => answered,
        }
    }

    /// Discards the session if it still has this token.
    async fn discard(&self, service: Service, token: &Secret) {
        let mut current = self.current.lock().await;
        let has = |(session, _): &(Session, Instant)| session.token(service) == Some(token);
        if current.access.as_ref().is_some_and(has) {
            current.access = None;
        }
    }

    /// Sends a call until it is answered. Calls can be repeated: the caller chose the identifier of
    /// everything that a call creates or spends.
    async fn send(
        &self,
        method: Method,
        address: &str,
        body: &Body,
        headers: HeaderMap,
    ) -> Result<Response, Error> {
        self.repeat(|| self.once(&method, address, body, &headers))
            .await
    }

    /// Sends a call until its complete answer has arrived, and reads it as JSON.
    async fn read<T: DeserializeOwned>(
        &self,
        method: Method,
        address: &str,
        body: &Body,
        headers: HeaderMap,
    ) -> Result<T, Error> {
        let whole = || async {
            let response = self.once(&method, address, body, &headers).await?;
            let bytes = response.bytes().await;
            bytes.map_err(|error| Miss::again(Error::unreachable(address, error)))
        };
        let bytes = self.repeat(whole).await?;
        serde_json::from_slice(&bytes).map_err(|error| Error::Answer {
            address: address.to_owned(),
            reason: error.to_string(),
        })
    }

    /// Makes one attempt of a call.
    async fn once(
        &self,
        method: &Method,
        address: &str,
        body: &Body,
        headers: &HeaderMap,
    ) -> Result<Response, Miss> {
        let mut request = self.http.request(method.clone(), address);
        request = match body {
            Body::Empty => request,
            Body::Json(json) => request
                .header(CONTENT_TYPE, "application/json")
                .body(json.clone()),
            Body::Bytes(bytes) => request
                .header(CONTENT_TYPE, "application/octet-stream")
                .body(bytes.clone()),
        };
        match request.headers(headers.clone()).send().await {
            Ok(response) if response.status().is_success() => Ok(response),
            Ok(response) => {
                let again = worth_another_try(response.status());
                let after = response.headers().get(RETRY_AFTER);
                let after = after.and_then(|v| v.to_str().ok()?.parse().ok());
                Err(Miss {
                    again,
                    after: after.map(Duration::from_secs),
                    error: problem(address, response).await,
                })
            }
            Err(error) => Err(Miss {
                again: !error.is_builder(),
                after: None,
                error: Error::unreachable(address, error),
            }),
        }
    }
}

/// Returns headers with a token.
fn authorized(address: &str, token: &Secret, more: &HeaderMap) -> Result<HeaderMap, Error> {
    let value = format!("Bearer {}", token.0).parse();
    let mut value: HeaderValue = value.map_err(|_| Error::Answer {
        address: address.to_owned(),
        reason: "the access token is not a valid header value".to_owned(),
    })?;
    value.set_sensitive(true);
    let mut headers = more.clone();
    headers.insert(AUTHORIZATION, value);
    Ok(headers)
}

/// A list of a service, newest items first.
#[derive(Clone, Debug)]
pub struct List<T> {
    /// The items.
    pub items: Vec<T>,
    /// Identifiers of items that are left out because the service's stored data of them is damaged.
    pub damaged: Vec<Uuid>,
}

/// A failed attempt of a call.
struct Miss {
    error: Error,
    /// Whether another attempt may succeed.
    again: bool,
    /// How long to wait before it, if the service says so.
    after: Option<Duration>,
}

impl Miss {
    fn again(error: Error) -> Self {
        Self {
            error,
            again: true,
            after: None,
        }
    }
}

impl Client {
    /// Repeats a call until it succeeds, cannot succeed, or runs out of attempts.
    async fn repeat<T, F>(&self, call: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Miss>>,
    {
        let (mut wait, longest) = BACKOFF;
        for attempt in 1.. {
            match call().await {
                Ok(answer) => return Ok(answer),
                Err(miss) if !miss.again || attempt >= TRIES => return Err(miss.error),
                Err(miss) => {
                    if let Some(waiting) = &self.waiting {
                        waiting(&miss.error);
                    }
                    wait = miss.after.unwrap_or(wait).min(longest);
                }
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(longest);
        }
        Err(Error::Interrupted)
    }
}

fn worth_another_try(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
            | StatusCode::INSUFFICIENT_STORAGE
    )
}

async fn problem(address: &str, response: Response) -> Error {
    let status = response.status();
    match response.json::<Problem>().await {
        Ok(problem) => Error::Problem {
            problem: Box::new(problem),
        },
        Err(_) => Error::Answer {
            address: address.to_owned(),
            reason: status.to_string(),
        },
    }
}

/// Returns a session's token for a service.
fn own(session: &Session, service: Service) -> Result<Secret, Error> {
    let token = session.token(service).cloned();
    token.ok_or(Error::NoToken(service))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_without_a_token_is_an_error() {
        let text =
            r#"{"access_token":"a","computation_token":"b","crypto_token":"c","expires_in":9}"#;
        let session: Session = serde_json::from_str(text).unwrap();
        let tokens = [Service::Generation, Service::Computation, Service::Crypto]
            .map(|service| own(&session, service).unwrap().0.clone());
        assert_eq!(tokens, ["a", "b", "c"]);
        for service in [Service::Witness, Service::Keyshare1] {
            let error = own(&session, service).unwrap_err();
            assert!(
                matches!(error, Error::NoToken(of) if of == service),
                "{error}"
            );
        }
    }
}
