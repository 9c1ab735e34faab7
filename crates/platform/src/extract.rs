//! Extractors whose refusals are problem documents.

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use fhaim_api::problem::ProblemKind;
use serde::de::DeserializeOwned;

use crate::Failure;

/// A JSON body.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

/// Parameters of the path.
#[derive(Clone, Copy, Debug)]
pub struct Path<T>(pub T);

/// Parameters of the query.
#[derive(Clone, Copy, Debug)]
pub struct Query<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let json = axum::Json::from_request(request, state).await;
        json.map(|axum::Json(value)| Self(value)).map_err(|error| {
            let kind = match &error {
                JsonRejection::JsonDataError(_) => ProblemKind::Invalid,
                JsonRejection::MissingJsonContentType(_) => ProblemKind::UnsupportedMediaType,
                JsonRejection::BytesRejection(error) if error.status() == 413 => {
                    ProblemKind::TooLarge
                }
                _ => ProblemKind::Malformed,
            };
            Failure::new(kind, error.body_text())
        })
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let path = axum::extract::Path::from_request_parts(parts, state).await;
        path.map(|axum::extract::Path(value)| Self(value))
            .map_err(|error: PathRejection| Failure::new(ProblemKind::NotFound, error.body_text()))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let query = axum::extract::Query::from_request_parts(parts, state).await;
        query
            .map(|axum::extract::Query(value)| Self(value))
            .map_err(|error: QueryRejection| Failure::new(ProblemKind::Invalid, error.body_text()))
    }
}
