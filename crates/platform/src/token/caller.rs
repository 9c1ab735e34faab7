//! The caller of a request.

use axum::extract::FromRequestParts;
use axum::http::{header, request::Parts};
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::{Role, Service};
use uuid::Uuid;

use crate::Failure;
use crate::program::Program;

/// The account that makes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User(pub Uuid);

/// The user of a request, with the session of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionUser {
    /// The account.
    pub account: Uuid,
    /// The number of the token ([`Program::check_account`]).
    pub epoch: Option<u64>,
    /// Whether an API key began the session.
    pub by_key: bool,
}

/// The service that makes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub Service);

/// The caller of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A user.
    User(Uuid),
    /// A service.
    Service(Service),
}

impl<S: Program> FromRequestParts<S> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        Ok(match verified(parts, state).await? {
            Verified::User(user) => Self::User(user.account),
            Verified::Service(service) => Self::Service(service),
        })
    }
}

/// The owner of a token that has been verified.
enum Verified {
    User(SessionUser),
    Service(Service),
}

async fn verified<S: Program>(parts: &Parts, state: &S) -> Result<Verified, Failure> {
    let refused = || Failure::bare(ProblemKind::Unauthenticated);
    let header = parts
        .headers
        .get(header::AUTHORIZATION)
        .ok_or_else(refused)?;
    let header = header.to_str().map_err(|_| refused())?;
    let token = header.strip_prefix("Bearer ").ok_or_else(refused)?;
    let claims = state.base().verifier.verify(token).await?;
    match (claims.role, claims.sub) {
        (Role::User, Some(account)) => {
            let (epoch, by_key) = (claims.epoch, claims.by_key);
            state.check_account(account, epoch).await?;
            Ok(Verified::User(SessionUser {
                account,
                epoch,
                by_key,
            }))
        }
        (Role::Service, None) => Ok(Verified::Service(claims.iss)),
        _ => Err(refused()),
    }
}

impl<S: Program> FromRequestParts<S> for SessionUser {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        match verified(parts, state).await? {
            Verified::User(user) => Ok(user),
            Verified::Service(_) => Err(Failure::bare(ProblemKind::Forbidden)),
        }
    }
}

impl<S: Program> FromRequestParts<S> for User {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let user = SessionUser::from_request_parts(parts, state).await?;
        Ok(Self(user.account))
    }
}

impl<S: Program> FromRequestParts<S> for Peer {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        match Caller::from_request_parts(parts, state).await? {
            Caller::Service(service) => Ok(Self(service)),
            Caller::User(_) => Err(Failure::bare(ProblemKind::Forbidden)),
        }
    }
}

impl Peer {
    /// Rejects every service except one.
    ///
    /// # Errors
    /// [`ProblemKind::Forbidden`].
    pub fn must_be(self, service: Service) -> Result<(), Failure> {
        if self.0 == service {
            Ok(())
        } else {
            Err(Failure::bare(ProblemKind::Forbidden))
        }
    }
}
