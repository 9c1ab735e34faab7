//! What handlers fail with: a problem document for the caller, the cause for the log.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use fhaim_api::problem::{MEDIA_TYPE, Problem, ProblemKind};
use fhaim_api::token::Service;
use uuid::Uuid;

use crate::blobs::BlobError;
use crate::peer::PeerError;
use crate::seal::SealError;
use crate::security::{self, Event};
use crate::store::{self, OpenError, StoreError, Trouble};

/// Seconds after which another try is worth it where nothing better is known.
const TRY_AGAIN_AFTER: u64 = 5;

/// A failure: what the caller is told, and what the log is.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What the caller is told.
    pub problem: Box<Problem>,
    cause: Option<String>,
}

impl Failure {
    /// A failure of a kind, with what is wrong and the way out.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            problem: Box::new(Problem::new(kind).with_detail(detail)),
            cause: None,
        }
    }

    /// A failure of a kind with nothing more to say.
    pub fn bare(kind: ProblemKind) -> Self {
        Self {
            problem: Box::new(Problem::new(kind)),
            cause: None,
        }
    }

    /// A fault of the service: the cause goes to the log alone.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        Self {
            problem: Box::new(Problem::new(ProblemKind::Internal)),
            cause: Some(cause.to_string()),
        }
    }

    /// What may be there again soon is not there now: worth another try.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        let mut failure = Self::new(ProblemKind::Unavailable, detail);
        failure.problem.retry_after = Some(TRY_AGAIN_AFTER);
        failure
    }

    /// What is on its way is not here yet, which is no fault of anyone's: worth another try soon.
    pub fn not_yet(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Unavailable, detail)
    }

    fn full() -> Self {
        let detail = "the service's disk is full: it goes on when its operator has made room";
        let mut failure = Self::new(ProblemKind::Full, detail);
        failure.problem.retry_after = Some(TRY_AGAIN_AFTER);
        failure
    }

    /// With a cause for the log.
    #[must_use]
    pub fn because(mut self, cause: impl std::fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    /// There is no such thing, or it is someone else's: the two are not told apart.
    pub fn not_found() -> Self {
        Self::bare(ProblemKind::NotFound)
    }

    /// The same, where it is someone else's: that goes to the security log.
    pub fn foreign(service: Service, account: Uuid, what: &'static str, id: Uuid) -> Self {
        security::log(service, Event::ForeignId { account, what, id });
        Self::not_found()
    }

    /// Another service's problem, as it said it.
    pub fn passed_on(problem: Box<Problem>) -> Self {
        Self {
            problem,
            cause: None,
        }
    }

    /// The crypto service's only refusal of a release: the reason goes to the log alone.
    pub fn refused() -> Self {
        Self::bare(ProblemKind::Refused)
    }

    /// The token does not allow it.
    pub fn forbidden() -> Self {
        Self::bare(ProblemKind::Forbidden)
    }

    /// Someone else changed what this rested on, for the reason in the log: worth another try.
    pub fn overtaken(cause: impl std::fmt::Display) -> Self {
        Self::bare(ProblemKind::Unavailable).because(cause)
    }

    /// The kind.
    pub fn kind(&self) -> ProblemKind {
        self.problem.kind
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.problem.fmt(f)?;
        match &self.cause {
            Some(cause) => write!(f, " ({cause})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match store::trouble(&error) {
            Some(Trouble::Full) => Self::full().because(error),
            Some(Trouble::Passing) => {
                Self::unavailable("the service's database does not work at the moment")
                    .because(error)
            }
            None => Self::internal(error),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => error.into(),
            OpenError::OtherTables { .. } => Self::internal(error),
        }
    }
}

impl From<BlobError> for Failure {
    fn from(error: BlobError) -> Self {
        match error {
            BlobError::Store(_) if error.is_full() => Self::full().because(error),
            BlobError::Store(_) => {
                Self::unavailable("the service's blob store does not work at the moment")
                    .because(error)
            }
            BlobError::Address(_) | BlobError::Folder(_) | BlobError::Absent => {
                Self::internal(error)
            }
        }
    }
}

impl From<SealError> for Failure {
    fn from(error: SealError) -> Self {
        Self::internal(error)
    }
}

impl From<PeerError> for Failure {
    fn from(error: PeerError) -> Self {
        Self::bare(ProblemKind::Unavailable).because(error)
    }
}

impl From<serde_json::Error> for Failure {
    /// Of what the service wrote itself; a caller's JSON is read by `extract::Json`.
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
