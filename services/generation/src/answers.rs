//! Problem documents as the OpenAPI document lists them: one type a status.

use fhaim_api::problem::Problem;
use utoipa::IntoResponses;

macro_rules! problems {
    ($($(#[$meta:meta])* $name:ident = $status:tt;)*) => {$(
        $(#[$meta])*
        #[derive(IntoResponses)]
        #[response(status = $status, content_type = "application/problem+json")]
        pub struct $name(#[expect(dead_code, reason = "for the document alone")] Problem);
    )*};
}

problems! {
    /// The request cannot be understood
    Malformed = 400;
    /// No token, or one that is not accepted
    Unauthenticated = 401;
    /// The token does not allow it
    Forbidden = 403;
    /// There is no such thing, or it is someone else's
    NotFound = 404;
    /// It contradicts what is there
    Conflict = 409;
    /// The body is too large
    TooLarge = 413;
    /// The body is not JSON
    UnsupportedMediaType = 415;
    /// The request is understood and cannot be met as it is
    Invalid = 422;
    /// Too many requests; `retry_after` says when to try again
    TooManyRequests = 429;
    /// A fault of the service
    Internal = 500;
    /// Worth another try
    Unavailable = 503;
}
