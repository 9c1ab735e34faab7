//! Problem documents (RFC 9457): every error a service answers with.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Media type of a problem document.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// What kind of problem it is; programs go by this, not by the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemKind {
    /// The request cannot be understood.
    Malformed,
    /// The request is understood and cannot be met as it is.
    Invalid,
    /// No token, or one that is not accepted.
    Unauthenticated,
    /// The token does not allow it.
    Forbidden,
    /// There is no such thing, or it is someone else's.
    NotFound,
    /// The method is not for this route.
    MethodNotAllowed,
    /// It contradicts what is there.
    Conflict,
    /// The body is too large.
    TooLarge,
    /// The body's media type is not one this route reads.
    UnsupportedMediaType,
    /// The body's digest is not the one announced.
    DigestMismatch,
    /// The dataset's budget is promised or spent.
    BudgetSpent,
    /// The crypto service's only refusal of a release.
    Refused,
    /// Nothing is released of the dataset until an operator of the crypto service has looked.
    Frozen,
    /// The crypto service was set back to an older copy of the dataset's ledger.
    Restored,
    /// A limit of the account is reached.
    Quota,
    /// Too many requests.
    TooManyRequests,
    /// The service has no room left; worth trying again when its operator has made some.
    Full,
    /// Another service did not answer; worth trying again.
    Unavailable,
    /// A fault of the service.
    Internal,
}

impl ProblemKind {
    /// The HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::Unauthenticated => 401,
            Self::Forbidden | Self::Refused | Self::Quota => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict | Self::BudgetSpent | Self::Frozen | Self::Restored => 409,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid | Self::DigestMismatch => 422,
            Self::TooManyRequests => 429,
            Self::Internal => 500,
            Self::Unavailable => 503,
            Self::Full => 507,
        }
    }

    /// The same for every problem of the kind.
    pub fn title(self) -> &'static str {
        match self {
            Self::Malformed => "The request cannot be understood",
            Self::Invalid => "The request cannot be met as it is",
            Self::Unauthenticated => "Sign in first",
            Self::Forbidden => "Not allowed",
            Self::NotFound => "There is no such thing",
            Self::MethodNotAllowed => "The method is not for this address",
            Self::Conflict => "It contradicts what is there",
            Self::TooLarge => "The body is too large",
            Self::UnsupportedMediaType => "The body's media type is not read here",
            Self::DigestMismatch => "The body is not what its digest says",
            Self::BudgetSpent => "The privacy budget is spent",
            Self::Refused => "Refused",
            Self::Frozen => "The dataset is frozen",
            Self::Restored => "The key service was set back",
            Self::Quota => "A limit of the account is reached",
            Self::TooManyRequests => "Too many requests",
            Self::Full => "The service has no room left",
            Self::Unavailable => "A service is not available",
            Self::Internal => "A fault of the service",
        }
    }
}

/// A problem document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `urn:fhaim:problem:<kind>`.
    #[schema(example = "urn:fhaim:problem:not-found")]
    pub r#type: String,
    /// The kind.
    pub kind: ProblemKind,
    /// The same for every problem of the kind.
    pub title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// What is wrong this time, and the way out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
    /// The request, as the services' logs know it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request_id: Option<String>,
    /// Seconds to wait before another try.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retry_after: Option<u64>,
}

impl Problem {
    /// A problem of a kind, with nothing more to say.
    pub fn new(kind: ProblemKind) -> Self {
        let name = serde_json::to_value(kind).ok();
        let name = name.as_ref().and_then(|v| v.as_str()).unwrap_or("internal");
        Self {
            r#type: format!("urn:fhaim:problem:{name}"),
            kind,
            title: kind.title().to_owned(),
            status: kind.status(),
            detail: None,
            request_id: None,
            retry_after: None,
        }
    }

    /// With what is wrong this time.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.detail {
            Some(detail) => write!(f, "{}: {detail}", self.title),
            None => f.write_str(&self.title),
        }
    }
}

impl std::error::Error for Problem {}
