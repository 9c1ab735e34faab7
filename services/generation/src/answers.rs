//! Problem documents for the OpenAPI document: one type for each status.

use fhaim_api::problem::Problem;
use utoipa::IntoResponses;

macro_rules! problems {
    ($($(#[$meta:meta])* $name:ident = $status:tt;)*) => {$(
        $(#[$meta])*
        #[derive(IntoResponses)]
        #[response(status = $status, content_type = "application/problem+json")]
        pub struct $name(#[expect(dead_code, reason = "only for the OpenAPI document")] Problem);
    )*};
}

problems! {
    /// The request cannot be parsed
    Malformed = 400;
    /// The token is missing or not accepted
    Unauthenticated = 401;
    /// The token does not allow this call
    Forbidden = 403;
    /// The object does not exist, or belongs to another account
    NotFound = 404;
    /// The request conflicts with the current state
    Conflict = 409;
    /// The body is too large
    TooLarge = 413;
    /// The body's media type is not supported
    UnsupportedMediaType = 415;
    /// The request is well formed but cannot be carried out
    Invalid = 422;
    /// Too many requests; `retry_after` is the number of seconds to wait
    TooManyRequests = 429;
    /// Internal error of the service
    Internal = 500;
    /// A service is temporarily unavailable; try again later
    Unavailable = 503;
}
