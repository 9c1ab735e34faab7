//! Problem documents (RFC 9457) for all errors that a service returns.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Media type of a problem document.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// The kind of a problem. Programs should use the kind, not the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemKind {
    /// The request is malformed.
    Malformed,
    /// The request is well-formed but cannot be met.
    Invalid,
    /// The token is missing or not accepted.
    Unauthenticated,
    /// The token does not permit the request.
    Forbidden,
    /// The resource does not exist, or belongs to another account.
    NotFound,
    /// The method is not allowed for this route.
    MethodNotAllowed,
    /// The request conflicts with the current state.
    Conflict,
    /// The body is too large.
    TooLarge,
    /// The route does not support the body's media type.
    UnsupportedMediaType,
    /// The body does not match its announced digest.
    DigestMismatch,
    /// The dataset's budget is promised or spent.
    BudgetSpent,
    /// The crypto service's only refusal of a release.
    Refused,
    /// The dataset is frozen: nothing is released until an operator of the crypto service has
    /// investigated.
    Frozen,
    /// The crypto service was set back to an older copy of the dataset's ledger.
    Restored,
    /// A limit of the account is reached.
    Quota,
    /// Too many requests.
    TooManyRequests,
    /// The service is out of space. Retry after its operator has added some.
    Full,
    /// Another service did not answer. Retry later.
    Unavailable,
    /// Stored data of the service is damaged. Its operator can restore it from a backup.
    Damaged,
    /// An internal error of the service.
    Internal,
}

impl ProblemKind {
    /// Returns the HTTP status.
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
            Self::Damaged | Self::Internal => 500,
            Self::Unavailable => 503,
            Self::Full => 507,
        }
    }

    /// Returns the name of the kind in a problem document.
    pub fn name(self) -> String {
        let name = serde_json::to_value(self).ok();
        let name = name.as_ref().and_then(|name| name.as_str());
        name.unwrap_or("internal").to_owned()
    }

    /// Returns the title, which is the same for every problem of the kind.
    pub fn title(self) -> &'static str {
        match self {
            Self::Malformed => "The request is malformed",
            Self::Invalid => "The request cannot be met",
            Self::Unauthenticated => "Sign in first",
            Self::Forbidden => "Not allowed",
            Self::NotFound => "Not found",
            Self::MethodNotAllowed => "The method is not allowed for this address",
            Self::Conflict => "The request conflicts with the current state",
            Self::TooLarge => "The body is too large",
            Self::UnsupportedMediaType => "The body's media type is not supported",
            Self::DigestMismatch => "The body does not match its digest",
            Self::BudgetSpent => "The privacy budget is spent",
            Self::Refused => "Refused",
            Self::Frozen => "The dataset is frozen",
            Self::Restored => "The key service was set back",
            Self::Quota => "A limit of the account is reached",
            Self::TooManyRequests => "Too many requests",
            Self::Full => "The service is out of space",
            Self::Unavailable => "A service is not available",
            Self::Damaged => "Stored data is damaged",
            Self::Internal => "Internal error of the service",
        }
    }
}

/// A problem document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `urn:fhaim:problem:<kind>`.
    #[schema(example = "urn:fhaim:problem:not-found")]
    pub r#type: String,
    /// The kind of the problem.
    pub kind: ProblemKind,
    /// Title, the same for every problem of the kind.
    pub title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// Description of this problem, and how to solve it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
    /// Identifier of the request in the services' logs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request_id: Option<String>,
    /// Seconds to wait before a retry.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retry_after: Option<u64>,
}

impl Problem {
    /// Creates a problem of a kind, without details.
    pub fn new(kind: ProblemKind) -> Self {
        Self {
            r#type: format!("urn:fhaim:problem:{}", kind.name()),
            kind,
            title: kind.title().to_owned(),
            status: kind.status(),
            detail: None,
            request_id: None,
            retry_after: None,
        }
    }

    /// Adds a description of this problem.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

/// The description of the problem or, without one, its title.
impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.detail.as_ref().unwrap_or(&self.title))
    }
}

impl std::error::Error for Problem {}
