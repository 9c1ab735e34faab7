//! What handlers fail with: a problem document for the caller, the cause for the log.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use fhaim_api::problem::{MEDIA_TYPE, Problem, ProblemKind};

use crate::blobs::BlobError;
use crate::peer::PeerError;
use crate::seal::SealError;
use crate::store::StoreError;

/// A failure: what the caller is told, and what the log is.
#[derive(Debug)]
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
        match error {
            StoreError::PoolTimedOut => Self::bare(ProblemKind::Unavailable).because(error),
            other => Self::internal(other),
        }
    }
}

impl From<BlobError> for Failure {
    fn from(error: BlobError) -> Self {
        Self::internal(error)
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
