//! Answers to `PUT`: what callers make has the identifier that they chose, so that a call whose
//! answer was lost can be made again.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// What a `PUT` left.
pub enum Put<T> {
    /// It was made: 201.
    Made(T),
    /// It was there, alike: 200.
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
