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

/// Who signs up or in.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// An address, compared without regard to case.
    #[schema(min_length = 3, max_length = 254, example = "ana@hospital.example")]
    pub email: String,
    /// At least 12 characters.
    #[schema(min_length = 12, max_length = 1024)]
    pub password: Secret,
}

/// An account.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Account {
    /// Its identifier: the subject of its tokens.
    pub id: Uuid,
    /// The address it signs in with.
    pub email: String,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// Tokens of a session: one for each service, which is good there and nowhere else, so that no
/// service can use elsewhere what it was shown.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// For the `Authorization: Bearer` header of calls to the generation service.
    pub access_token: Secret,
    /// The same for the computation service.
    pub computation_token: Secret,
    /// The same for the second computation service, where the operator has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub witness_token: Option<Secret>,
    /// The same for the crypto service.
    pub crypto_token: Secret,
    /// Seconds until these tokens expire.
    pub expires_in: u64,
    /// Good for one refresh, and again where its answer was lost; absent for sessions of API keys.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refresh_token: Option<Secret>,
}

impl Session {
    /// What a call to a service carries; none for a service that users do not call.
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

/// Exchanges a refresh token for a new session. Where the answer was lost, the same token again gives
/// another; once what it gave was used, or another was given in its place, a second use ends all
/// sessions that came from the same sign-in.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    /// The token of the last session.
    pub refresh_token: Secret,
}

/// Exchanges an API key for a session.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyExchange {
    /// The key, as it was shown once.
    pub api_key: Secret,
}

/// Another password for an account.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPassword {
    /// The one that it has.
    pub password: Secret,
    /// The one that it gets: at least 12 characters.
    #[schema(min_length = 12, max_length = 1024)]
    pub new_password: Secret,
}

/// Proof that an account's owner wants it gone.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CloseAccount {
    /// Its password.
    pub password: Secret,
}

/// A new API key, under an identifier of the caller's choice.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewApiKey {
    /// What the key is for.
    #[schema(min_length = 1, max_length = 100)]
    pub name: String,
}

/// An API key, without its text.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ApiKey {
    /// Its identifier.
    pub id: Uuid,
    /// What it is for.
    pub name: String,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When it was last exchanged for a session.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none",
        default
    )]
    pub last_used_at: Option<OffsetDateTime>,
}

/// An API key just made: the only time its text is shown. Until it is used, making it again gives
/// another text in its place.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ApiKeyMade {
    /// The key's entry.
    pub key: ApiKey,
    /// The text to keep.
    pub text: Secret,
}
