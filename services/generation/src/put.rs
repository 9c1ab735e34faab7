//! Responses to `PUT`. Clients choose the identifier of a new object, so that they can repeat a
//! call whose response was lost.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Outcome of a `PUT`.
pub enum Put<T> {
    /// The object was created: 201.
    Made(T),
    /// The same object already existed: 200.
    Found(T),
}

impl<T: Serialize> IntoResponse for Put<T> {
    fn into_response(self) -> Response {
        let (status, body) = match self {
            Self::Made(body) => (StatusCode::CREATED, body),
            Self::Found(body) => (StatusCode::OK, body),
        };
        (status, axum::Json(body)).into_response()
    }
}
