//! Errors of handlers: a problem document for the caller, and a cause for the log.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use fhaim_api::problem::{MEDIA_TYPE, Problem, ProblemKind};
use fhaim_api::token::Service;
use uuid::Uuid;

use crate::blobs::BlobError;
use crate::peer::PeerError;
use crate::rows::{self, Damage};
use crate::seal::SealError;
use crate::security::{self, Event};
use crate::server::{self, Subject};
use crate::store::{self, OpenError, StoreError, Trouble};

/// Default for the seconds after which a caller should try again.
const TRY_AGAIN_AFTER: u64 = 5;

/// A failure: a problem for the caller, and a cause for the log.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The problem document that the caller gets.
    pub problem: Box<Problem>,
    cause: Option<String>,
}

impl Failure {
    /// Makes a failure of a kind. `detail` says what is wrong and what to do.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            problem: Box::new(Problem::new(kind).with_detail(detail)),
            cause: None,
        }
    }

    /// Makes a failure of a kind without details.
    pub fn bare(kind: ProblemKind) -> Self {
        Self {
            problem: Box::new(Problem::new(kind)),
            cause: None,
        }
    }

    /// Makes an internal failure. Only the log gets the cause.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        Self {
            problem: Box::new(Problem::new(ProblemKind::Internal)),
            cause: Some(cause.to_string()),
        }
    }

    /// Makes a failure for something that is temporarily not available. The caller may try again.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        let mut failure = Self::new(ProblemKind::Unavailable, detail);
        failure.problem.retry_after = Some(TRY_AGAIN_AFTER);
        failure
    }

    /// Makes a failure for something that has not arrived yet, which is not a fault. The caller may try again soon.
    pub fn not_yet(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Unavailable, detail)
    }

    /// Makes a failure for a full disk. The caller may try again.
    pub(crate) fn full() -> Self {
        let detail = "the service's disk is full: try again when its operator has made room";
        let mut failure = Self::new(ProblemKind::Full, detail);
        failure.problem.retry_after = Some(TRY_AGAIN_AFTER);
        failure
    }

    /// Makes a failure for stored data that cannot be read. It names the dataset that the request or task is about.
    pub fn damaged(what: impl std::fmt::Display) -> Self {
        Self::damaged_at(server::current_subject(), what)
    }

    /// Like [`Failure::damaged`], for data of a dataset.
    pub fn damaged_dataset(dataset: Uuid, what: impl std::fmt::Display) -> Self {
        let mut subject = server::current_subject();
        subject.dataset = Some(dataset);
        Self::damaged_at(subject, what)
    }

    fn damaged_at(subject: Subject, what: impl std::fmt::Display) -> Self {
        let place = subject
            .service
            .map(|service| format!(" at the {service} service"));
        let place = place.unwrap_or_default();
        let detail = match subject.dataset {
            Some(dataset) => format!(
                "the stored data of dataset {dataset}{place} is damaged ({what}); other datasets are not affected. \
                 The operator of the service can copy this data from a backup"
            ),
            None => format!(
                "stored data{place} is damaged ({what}). The operator of the service can copy this data from a backup"
            ),
        };
        Self::new(ProblemKind::Damaged, detail).because(what)
    }

    /// Adds a cause for the log.
    #[must_use]
    pub fn because(mut self, cause: impl std::fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    /// Makes a failure for an object that does not exist or belongs to someone else. The caller cannot tell which.
    pub fn not_found() -> Self {
        Self::bare(ProblemKind::NotFound)
    }

    /// Like [`Failure::not_found`], for an object that belongs to someone else: also writes to the security log.
    pub fn foreign(service: Service, account: Uuid, what: &'static str, id: Uuid) -> Self {
        security::log(service, Event::ForeignId { account, what, id });
        Self::not_found()
    }

    /// Passes on another service's problem.
    pub fn passed_on(problem: Box<Problem>) -> Self {
        Self {
            problem,
            cause: None,
        }
    }

    /// Makes the crypto service's only refusal of a release. Only the log gets the reason.
    pub fn refused() -> Self {
        Self::bare(ProblemKind::Refused)
    }

    /// Makes a failure for a token that does not allow the request.
    pub fn forbidden() -> Self {
        Self::bare(ProblemKind::Forbidden)
    }

    /// Makes a failure for a request whose basis was changed by someone else. The log gets the reason, and the caller
    /// may try again.
    pub fn overtaken(cause: impl std::fmt::Display) -> Self {
        Self::bare(ProblemKind::Unavailable).because(cause)
    }

    /// Returns the kind of the problem.
    pub fn kind(&self) -> ProblemKind {
        self.problem.kind
    }
}

/// For logs and operators: the description and the cause.
impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.problem.detail, &self.cause) {
            (None, Some(cause)) => f.write_str(cause),
            (Some(detail), Some(cause)) => write!(f, "{detail} ({cause})"),
            (_, None) => self.problem.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match store::trouble(&error) {
            Some(Trouble::Full) => Self::full().because(error),
            Some(Trouble::Passing) => {
                Self::unavailable("the service's database is temporarily not available")
                    .because(error)
            }
            None => match rows::damage(&error) {
                Some(Damage { what, dataset }) => match dataset {
                    Some(dataset) => Self::damaged_dataset(dataset, what),
                    None => Self::damaged(what),
                },
                None => Self::internal(error),
            },
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => error.into(),
            OpenError::OtherTables { .. } | OpenError::OtherService { .. } => Self::internal(error),
        }
    }
}

impl From<BlobError> for Failure {
    fn from(error: BlobError) -> Self {
        match error {
            BlobError::Store(_) if error.is_full() => Self::full().because(error),
            BlobError::Store(_) => {
                Self::unavailable("the service's blob store is temporarily not available")
                    .because(error)
            }
            BlobError::Absent => Self::damaged(error),
            BlobError::Address(_) | BlobError::Folder(_) => Self::internal(error),
        }
    }
}

impl From<SealError> for Failure {
    fn from(error: SealError) -> Self {
        match error {
            SealError::Unopened => Self::damaged("a sealed value").because(error),
            other => Self::internal(other),
        }
    }
}

impl From<PeerError> for Failure {
    fn from(error: PeerError) -> Self {
        let failure = match &error {
            PeerError::Unreachable { service, .. } => Self::new(
                ProblemKind::Unavailable,
                format!("the {service} service does not answer"),
            ),
            PeerError::Problem { .. } | PeerError::Unsigned => Self::bare(ProblemKind::Unavailable),
        };
        failure.because(error)
    }
}

impl From<serde_json::Error> for Failure {
    /// For JSON that the service wrote itself. `extract::Json` reads callers' JSON.
    fn from(error: serde_json::Error) -> Self {
        Self::internal(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        if let Some(cause) = &self.cause {
            tracing::error!(kind = ?self.problem.kind, cause, "request failed");
        }
        let status =
            StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = self.problem.retry_after;
        let mut response = (status, Json(self.problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            headers.insert(header::WWW_AUTHENTICATE, bearer);
        }
        response
    }
}
