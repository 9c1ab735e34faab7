//! Sessions: short-lived access tokens and single-use refresh tokens.
//!
//! All refresh tokens from one sign-in are a family. A response may be lost, so a client may show a
//! token again as long as its successor has not been used. The client then gets a new successor, and
//! the lost one becomes void. Any other repeated use means that a token has been copied, so the
//! whole family ends (RFC 9700, section 4.14.2). If a thief and the owner hold the same token, the
//! second of them to use it shows a void or used token, which ends the family.

use fhaim_api::account::{Credentials, Secret, Session};
use fhaim_api::token::Service;
use fhaim_platform::Failure;
use fhaim_platform::clock::Millis;
use fhaim_platform::security::{self, Event};
use fhaim_platform::store::Tx;
use fhaim_platform::token::TokenSession;
use std::time::Duration;
use uuid::Uuid;

use super::limits::Client;
use super::tokens;
use crate::State;
use crate::problem::Refusal;
use crate::store::accounts::{self, Entry};
use crate::store::api_keys;
use crate::store::sessions::{self as store, Use};

const ACCESS_LIFETIME: Duration = Duration::from_secs(15 * 60);

const REFRESH_LIFETIME: Millis = 30 * 24 * 3600 * 1000;

/// Signs in.
///
/// # Errors
/// Wrong credentials, without saying which part is wrong; too many attempts.
pub async fn sign_in(
    state: &State,
    client: Client,
    credentials: Credentials,
) -> Result<Session, Failure> {
    state.sign_ins.try_address(client)?;
    // An invalid address belongs to no account and is not stored.
    let email = super::normal_email(&credentials.email).unwrap_or_default();
    state.sign_ins.try_account(&email, client)?;
    let found = accounts::of_email(&state.base.store, &email).await?;
    let hash = found.as_ref().map(|found| found.hash.clone());
    let right = state.passwords.verify(credentials.password, hash).await?;
    match found {
        Some(found) if right => begin(state, &found).await,
        found => {
            let (address, account) = (client.0, found.map(|found| found.id));
            security::log(
                Service::Generation,
                Event::SignInFailed { address, account },
            );
            Err(Refusal::Credentials.into())
        }
    }
}

/// Exchanges a refresh token for a session. Showing the token again before its successor is used
/// replaces the successor.
///
/// # Errors
/// A token that is unknown, expired or void, or that has been used together with its successor. Void
/// and used tokens end their family.
pub async fn refresh(state: &State, token: &Secret) -> Result<Session, Failure> {
    let digest = tokens::digest(token);
    let mut tx = state.base.store.begin().await?;
    let account = store::account(&mut tx, &digest).await?;
    let account = account.ok_or_else(|| refused(None))?;
    // Locks the account before the token, in the order of code that ends the account's sessions.
    let entry = accounts::lock(&state.base.store, &mut tx, account).await?;
    let found = store::lock(&state.base.store, &mut tx, &digest).await?;
    let found = found.ok_or_else(|| refused(Some(account)))?;
    let entry = entry.filter(|entry| !entry.disabled);
    let entry = entry.ok_or_else(|| refused(Some(account)))?;
    let exchanged = match found.used {
        Use::Good => store::mark_used(&mut tx, &digest).await?,
        // The response may have been lost: the successor that it carried becomes void.
        Use::Used => store::void_successor(&mut tx, &digest).await?,
        Use::Void => false,
    };
    let family = found.family;
    if !exchanged {
        store::end_family(&mut tx, &family).await?;
        tx.commit().await?;
        tracing::warn!(%account, "refresh token used twice: all sessions of this sign-in end");
        return Err(refused(Some(account)).into());
    }
    let next = add_token(&mut tx, &family, account, Some(&digest)).await?;
    tx.commit().await?;
    session(state, &entry, Some(next))
}

/// Exchanges an API key for a session.
///
/// # Errors
/// An unknown key, or a key of a disabled account.
pub async fn exchange(state: &State, key: &Secret) -> Result<Session, Failure> {
    let account = api_keys::used(&state.base.store, &tokens::digest(key)).await?;
    let account = account.ok_or_else(|| refused(None))?;
    let entry = accounts::of_id(&state.base.store, account).await?;
    let entry = entry.filter(|entry| !entry.disabled);
    session(state, &entry.ok_or_else(|| refused(Some(account)))?, None)
}

/// Logs a rejected refresh token or key in the security log and returns the refusal.
fn refused(account: Option<Uuid>) -> Refusal {
    security::log(Service::Generation, Event::KeyRefused { account });
    Refusal::Token
}

/// Ends the sessions that come from the same sign-in as a refresh token. Does nothing if there are
/// none.
///
/// # Errors
/// A failure of the store.
pub async fn end(state: &State, token: &Secret) -> Result<(), Failure> {
    let mut tx = state.base.store.begin().await?;
    if let Some(family) = store::family(&mut tx, &tokens::digest(token)).await? {
        store::end_family(&mut tx, &family).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Ends all sessions of an account. API keys stay valid. Access tokens end at this service at once, and at the others
/// within seconds.
///
/// # Errors
/// A failure of the store.
pub async fn end_all(state: &State, account: Uuid) -> Result<(), Failure> {
    let mut tx = state.base.store.begin().await?;
    accounts::lock(&state.base.store, &mut tx, account).await?;
    end_all_in(&mut tx, account).await?;
    Ok(tx.commit().await?)
}

/// Ends all refresh and access tokens of an account.
///
/// # Errors
/// A failure of the store.
pub(super) async fn end_all_in(tx: &mut Tx, account: Uuid) -> Result<(), Failure> {
    store::end_all(tx, account).await?;
    Ok(accounts::end_tokens(tx, account).await?)
}

/// Checks that an access token with this number may still be used: its account exists and is not disabled, and its
/// tokens were not ended since.
///
/// # Errors
/// [`Refusal::Token`].
pub async fn check_token(state: &State, account: Uuid, epoch: Option<u64>) -> Result<(), Failure> {
    let present = accounts::epoch(&state.base.store, account).await?;
    if present.is_some() && present == epoch {
        return Ok(());
    }
    let reason = "its account has ended it";
    security::log(Service::Generation, Event::TokenRefused { reason });
    Err(Refusal::Token.into())
}

/// Begins a session of the account `shown`, whose password has been verified. Checks that the
/// password is still the same, because the owner or an operator may have changed it meanwhile.
///
/// # Errors
/// The password has changed, or the operator has disabled the account.
pub(super) async fn begin(state: &State, shown: &Entry) -> Result<Session, Failure> {
    let account = shown.id;
    let mut tx = state.base.store.begin().await?;
    let now = accounts::lock(&state.base.store, &mut tx, account).await?;
    let now = match now {
        Some(now) if now.hash == shown.hash && now.disabled => return Err(Refusal::Disabled.into()),
        Some(now) if now.hash == shown.hash => now,
        _ => return Err(Refusal::Credentials.into()),
    };
    let family = Uuid::new_v4().to_string();
    let token = add_token(&mut tx, &family, account, None).await?;
    tx.commit().await?;
    session(state, &now, Some(token))
}

/// Adds a fresh token to a family. `parent` is the digest of the token that it replaces.
async fn add_token(
    tx: &mut Tx,
    family: &str,
    account: Uuid,
    parent: Option<&str>,
) -> Result<Secret, Failure> {
    let token = tokens::random()?;
    let digest = tokens::digest(&token);
    store::insert(tx, &digest, (family, account), REFRESH_LIFETIME, parent).await?;
    Ok(token)
}

/// Makes a session. One from an API key has no refresh token.
fn session(state: &State, account: &Entry, refresh: Option<Secret>) -> Result<Session, Failure> {
    let signer = &state.base.signer;
    let of = TokenSession {
        account: account.id,
        epoch: account.epoch,
        by_key: refresh.is_none(),
    };
    let token = |service| {
        let token = signer.session_token(service, of, ACCESS_LIFETIME);
        token.map(Secret)
    };
    Ok(Session {
        access_token: token(Service::Generation)?,
        computation_token: token(Service::Computation)?,
        witness_token: match state.witness {
            Some(_) => Some(token(Service::Witness)?),
            None => None,
        },
        crypto_token: token(Service::Crypto)?,
        expires_in: ACCESS_LIFETIME.as_secs(),
        refresh_token: refresh,
    })
}
