//! Claims of the tokens that users and services present.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Digest;

/// A service, with its name in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// Accounts, jobs and models.
    Generation,
    /// Ciphertexts.
    Computation,
    /// Ciphertexts too: the second computation service, which repeats the computation of the first
    /// one.
    Witness,
    /// Keys and the ledger.
    Crypto,
    /// A share of keys, and its own ledger: the second of the key services that share a key.
    Keyshare1,
    /// The third key service.
    Keyshare2,
}

impl Service {
    /// The key services after the first one, in the order of their numbers.
    pub const KEYSHARES: [Self; 2] = [Self::Keyshare1, Self::Keyshare2];

    /// Returns the name in configurations, tokens and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Generation => "generation",
            Self::Computation => "computation",
            Self::Witness => "witness",
            Self::Crypto => "crypto",
            Self::Keyshare1 => "keyshare1",
            Self::Keyshare2 => "keyshare2",
        }
    }
}

impl std::fmt::Display for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The party that a token speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A user: `sub` is the account.
    User,
    /// A service: `sub` is absent, `iss` names it.
    Service,
    /// No party: the token only states that dataset `dataset` belongs to account `sub`.
    Voucher,
}

/// The claims of an access token (RFC 7519), signed with Ed25519.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The service that issued it.
    pub iss: Service,
    /// The services that accept it.
    pub aud: Vec<Service>,
    /// The party that it speaks for.
    pub role: Role,
    /// The account, for users and vouchers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sub: Option<Uuid>,
    /// The dataset, for vouchers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dataset: Option<Uuid>,
    /// For users who have signed in, the number of times that all tokens of the account had been ended. The generation
    /// service accepts only tokens with the account's present number, and publishes the ended ones ([`EndedTokens`]).
    /// Absent if the generation service itself calls another service for a user.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub epoch: Option<u64>,
    /// Whether an API key, instead of a password, began the session.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub by_key: bool,
    /// Issued at, seconds since 1970.
    pub iat: u64,
    /// Expires at, seconds since 1970.
    pub exp: u64,
    /// Identifier of the token.
    pub jti: Uuid,
}

/// Tokens that ended before their expiry: those of accounts whose password was changed, that were disabled or deleted,
/// or whose sessions were ended. The list is public and names no account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndedTokens {
    /// The accounts.
    pub accounts: Vec<AccountTokens>,
}

/// The ended tokens of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountTokens {
    /// Digest of the account's identifier ([`AccountTokens::digest`]).
    pub account: Digest,
    /// Tokens with a smaller number ([`Claims::epoch`]) have ended.
    pub epoch: u64,
}

impl AccountTokens {
    /// Returns the digest of an account's identifier.
    pub fn digest(account: Uuid) -> Digest {
        Digest::of(&[b"fhaim ended tokens", account.as_bytes().as_slice()].concat())
    }
}
