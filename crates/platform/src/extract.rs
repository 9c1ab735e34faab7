//! Extractors that reject requests with problem documents.

use axum::body::Bytes;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use fhaim_api::keys::{RECEIPT_HEADER, Receipt};
use fhaim_api::problem::ProblemKind;
use serde::de::DeserializeOwned;
use std::time::Duration;

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

/// A JSON body from any caller, signed in or not. It must be short and arrive soon, so that half-sent bodies hold
/// little memory, and not for long.
#[derive(Clone, Copy, Debug)]
pub struct Brief<T>(pub T);

/// Largest size of such a body in bytes.
const BRIEF: usize = 16 << 10;

/// Time within which such a body must arrive.
const BRIEF_WITHIN: Duration = Duration::from_secs(10);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Brief<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        brief(request, state, BRIEF_WITHIN).await.map(Self)
    }
}

async fn brief<S: Send + Sync, T: DeserializeOwned>(
    mut request: Request,
    state: &S,
    within: Duration,
) -> Result<T, Failure> {
    DefaultBodyLimit::max(BRIEF).apply(&mut request);
    let body = tokio::time::timeout(within, Json::from_request(request, state)).await;
    let late = |_| {
        Failure::new(
            ProblemKind::Malformed,
            "the body did not arrive in time: send the request again",
        )
    };
    let Json(value) = body.map_err(late)??;
    Ok(value)
}

/// A body of bytes.
#[derive(Clone, Debug)]
pub struct Octets(pub Bytes);

impl<S: Send + Sync> FromRequest<S> for Octets {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let bytes = Bytes::from_request(request, state).await;
        bytes.map(Self).map_err(|error| {
            let kind = match error.status().as_u16() {
                413 => ProblemKind::TooLarge,
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

/// The receipts that a caller shows, one in each header.
#[derive(Clone, Debug)]
pub struct ShownReceipts(pub Vec<Receipt>);

/// Largest number of receipts of one call: the caller's own, and one of each job of the holders that it represents.
const MAX_RECEIPTS: usize = 80;

impl<S: Send + Sync> FromRequestParts<S> for ShownReceipts {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let unreadable = || {
            let detail =
                format!("{RECEIPT_HEADER}: not a receipt, or more than {MAX_RECEIPTS} receipts");
            Failure::new(ProblemKind::Invalid, detail)
        };
        let values = parts.headers.get_all(RECEIPT_HEADER).iter();
        let read = values.map(|value| Receipt::from_header(value.as_bytes()));
        let receipts: Option<Vec<_>> = read.take(MAX_RECEIPTS + 1).collect();
        let receipts = receipts.filter(|receipts| receipts.len() <= MAX_RECEIPTS);
        receipts.map(Self).ok_or_else(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use futures_util::{StreamExt, stream};

    fn post(body: Body) -> Request {
        let request = Request::post("/").header("content-type", "application/json");
        request.body(body).unwrap()
    }

    async fn read(body: Body) -> Result<String, ProblemKind> {
        let read = brief(post(body), &(), Duration::from_millis(200)).await;
        read.map_err(|failure| failure.kind())
    }

    #[tokio::test]
    async fn brief_bodies_must_be_short_and_arrive_soon() {
        assert_eq!(read(Body::from(r#""a""#)).await, Ok("a".to_owned()));
        let long = format!("{:?}", "a".repeat(BRIEF));
        assert_eq!(read(Body::from(long)).await, Err(ProblemKind::TooLarge));
        let half = stream::iter([Ok::<_, std::io::Error>("\"a")]).chain(stream::pending());
        let half = Body::from_stream(half);
        assert_eq!(read(half).await, Err(ProblemKind::Malformed));
    }

    #[tokio::test]
    async fn bodies_over_the_limit_are_rejected_with_a_problem_document() {
        let mut request = post(Body::from("12345"));
        DefaultBodyLimit::max(4).apply(&mut request);
        let failure = Octets::from_request(request, &()).await.unwrap_err();
        assert_eq!(failure.kind(), ProblemKind::TooLarge);
    }
}
