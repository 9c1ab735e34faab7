//! Accounts, sessions and API keys.

use serde::{Deserialize, Serialize};
use std::fmt;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::token::Service;

/// Text that must not be printed: passwords, tokens, keys.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, format = Password)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.0);
    }
}

/// The credentials for signing up or in.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// Email address. Case is ignored.
    #[schema(min_length = 3, max_length = 254, example = "ana@hospital.example")]
    pub email: String,
    /// Password of at least 12 characters.
    #[schema(min_length = 12, max_length = 1024)]
    pub password: Secret,
}

/// An account.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Account {
    /// Identifier of the account, which is the subject of its tokens.
    pub id: Uuid,
    /// Email address that it signs in with.
    pub email: String,
    /// Time of creation.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// Tokens of a session, with one token for each service. A token is valid only at its service, so
/// that no service can use a token elsewhere.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// For the `Authorization: Bearer` header of calls to the generation service.
    pub access_token: Secret,
    /// Token for the computation service.
    pub computation_token: Secret,
    /// Token for the second computation service, if the operator has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub witness_token: Option<Secret>,
    /// Token for the crypto service.
    pub crypto_token: Secret,
    /// Seconds until these tokens expire.
    pub expires_in: u64,
    /// Valid for one refresh, and again if its answer was lost. Absent for sessions of API keys.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refresh_token: Option<Secret>,
}

impl Session {
    /// Returns the token for calls to a service, or `None` for a service that users do not call.
    pub fn token(&self, service: Service) -> Option<&Secret> {
        match service {
            Service::Generation => Some(&self.access_token),
            Service::Computation => Some(&self.computation_token),
            Service::Witness => self.witness_token.as_ref(),
            Service::Crypto => Some(&self.crypto_token),
            Service::Keyshare1 | Service::Keyshare2 => None,
        }
    }
}

/// Exchanges a refresh token for a new session. If the answer was lost, the same token gives
/// another session. Once a token from an answer was used, or was replaced by another, a second use
/// of the old token ends all sessions of the same sign-in.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    /// Refresh token of the last session.
    pub refresh_token: Secret,
}

/// Exchanges an API key for a session.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyExchange {
    /// The API key, as it was shown once.
    pub api_key: Secret,
}

/// A new password for an account.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPassword {
    /// The current password.
    pub password: Secret,
    /// The new password, of at least 12 characters.
    #[schema(min_length = 12, max_length = 1024)]
    pub new_password: Secret,
}

/// Proof that the owner of an account wants to delete it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CloseAccount {
    /// Password of the account.
    pub password: Secret,
}

/// A new API key. The caller chooses its identifier.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewApiKey {
    /// Purpose of the key.
    #[schema(min_length = 1, max_length = 100)]
    pub name: String,
}

/// An API key, without its text.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ApiKey {
    /// Identifier of the key.
    pub id: Uuid,
    /// Purpose of the key.
    pub name: String,
    /// Time of creation.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Time of the last exchange for a session.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none",
        default
    )]
    pub last_used_at: Option<OffsetDateTime>,
}

/// A new API key. This is the only time that its text is shown. Until the key is used, creating it
/// again replaces its text.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ApiKeyMade {
    /// The key, without its text.
    pub key: ApiKey,
    /// The text of the key, to be kept by the caller.
    pub text: Secret,
}
