//! API keys, which programs exchange for sessions.

use fhaim_api::account::{ApiKey, ApiKeyMade, NewApiKey, Secret};
use fhaim_api::token::Service;
use fhaim_api::{Page, Paging};
use fhaim_platform::clock::Millis;
use fhaim_platform::store::Tx;
use fhaim_platform::token::SessionUser;
use fhaim_platform::{Failure, clock};
use uuid::Uuid;

use super::{checked_name, tokens};
use crate::paging::Cut;
use crate::problem::Refusal;
use crate::put::Put;
use crate::store::api_keys as store;
use crate::{State, limits};

/// Prefix of every key, by which people and secret scanners recognise it.
const PREFIX: &str = "fhaim_";

const MAX_NAME: usize = 100;

/// Makes a key under the identifier that its owner chose. Repeating the call before the key is first
/// used replaces its text, which may have been lost with the response.
///
/// # Errors
/// A session from an API key, which could outlive that key by making another; an invalid name; too many
/// keys; a key with this identifier that has another name, has been used, or belongs to another account.
pub async fn make_key(
    state: &State,
    user: SessionUser,
    id: Uuid,
    new: NewApiKey,
) -> Result<Put<ApiKeyMade>, Failure> {
    if user.by_key {
        return Err(Refusal::KeyByKey.into());
    }
    let account = user.account;
    let name = checked_name("name", new.name, MAX_NAME)?;
    let text = Secret(format!("{PREFIX}{}", tokens::random()?.0));
    let mut tx = state.base.store.begin().await?;
    // The account's row is locked, so that no key is added to an account that is being deleted.
    if !store::lock_account(&state.base.store, &mut tx, account).await? {
        return Err(Failure::not_found());
    }
    let made = match renew(&mut tx, account, id, &name, &text).await? {
        Some(created_at) => Put::Found(made(id, name, created_at, text)),
        None => {
            limits::check_key(state, &mut tx, account).await?;
            let now = add(&mut tx, account, id, &name, &text).await?;
            Put::Made(made(id, name, now, text))
        }
    };
    tx.commit().await?;
    Ok(made)
}

fn made(id: Uuid, name: String, created_at: Millis, text: Secret) -> ApiKeyMade {
    let key = ApiKey {
        id,
        name,
        created_at: clock::date(created_at),
        last_used_at: None,
    };
    ApiKeyMade { key, text }
}

/// Replaces the text of a key that was never used and returns its creation time, or `None` if the
/// key does not exist.
async fn renew(
    tx: &mut Tx,
    account: Uuid,
    id: Uuid,
    name: &str,
    text: &Secret,
) -> Result<Option<Millis>, Failure> {
    let Some(found) = store::find(tx, id).await? else {
        return Ok(None);
    };
    if found.account != account {
        return Err(Failure::foreign(
            Service::Generation,
            account,
            "API key",
            id,
        ));
    }
    if found.name != name {
        return Err(Refusal::OtherKey.into());
    }
    if !store::renew(tx, id, &tokens::digest(text)).await? {
        return Err(Refusal::UsedKey.into());
    }
    Ok(Some(found.created_at))
}

/// Adds a key and returns its creation time.
async fn add(
    tx: &mut Tx,
    account: Uuid,
    id: Uuid,
    name: &str,
    text: &Secret,
) -> Result<Millis, Failure> {
    let digest = tokens::digest(text);
    let added = store::insert(tx, (account, id), name, &digest).await?;
    // Another account created this key at the same moment: only this account's row is locked.
    added.ok_or_else(Failure::not_found)
}

/// Lists an account's keys without their texts.
///
/// # Errors
/// Invalid paging parameters.
pub async fn list_keys(
    state: &State,
    account: Uuid,
    paging: &Paging,
) -> Result<Page<ApiKey>, Failure> {
    let cut = Cut::new(paging)?;
    let keys = store::list(&state.base.store, account, &cut).await?;
    Ok(keys.page(&cut))
}

/// Deletes a key, so that it can no longer be exchanged.
///
/// # Errors
/// No such key.
pub async fn delete_key(state: &State, account: Uuid, id: Uuid) -> Result<(), Failure> {
    if store::delete(&state.base.store, account, id).await? {
        Ok(())
    } else {
        Err(Failure::not_found())
    }
}
