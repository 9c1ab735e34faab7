//! Authentication: accounts, sessions, API keys.

mod keys;
mod limits;
mod passwords;
mod sessions;
pub mod tokens;

pub use keys::{delete_key, list_keys, make_key};
pub use limits::{Client, SignInLimits};
pub use passwords::Passwords;
pub use sessions::{check_token, end, end_all, exchange, refresh, sign_in};

use fhaim_api::account::{Account, ApiKey, Credentials, NewPassword, Secret, Session};
use fhaim_api::token::Service;
use fhaim_platform::Failure;
use fhaim_platform::security::{self, Event};
use fhaim_platform::store::lock_owner;
use uuid::Uuid;

use crate::State;
use crate::problem::Refusal;
use crate::store::{accounts as store, api_keys, limits as counts};

/// Maximum length of an email address (RFC 5321, section 4.5.3.1.3, without the angle brackets).
const MAX_EMAIL: usize = 254;

/// Characters of a password. Shorter ones can be guessed; longer ones only cost time.
const PASSWORD_LENGTH: std::ops::RangeInclusive<usize> = 12..=1024;

/// Creates an account.
///
/// # Errors
/// An invalid address or password, or an address that already has an account.
pub async fn create(state: &State, credentials: Credentials) -> Result<Account, Failure> {
    let email = normal_email(&credentials.email).ok_or(Refusal::Email)?;
    check_password(&credentials.password)?;
    let password = state.passwords.hash(credentials.password).await?;
    let account = store::insert(&state.base.store, email, password).await?;
    Ok(account.ok_or(Refusal::AccountExists)?)
}

fn check_password(password: &Secret) -> Result<(), Refusal> {
    if PASSWORD_LENGTH.contains(&password.0.chars().count()) {
        return Ok(());
    }
    let (least, most) = PASSWORD_LENGTH.into_inner();
    Err(Refusal::Password { least, most })
}

/// Checks the password of an account whose token the caller has, and returns the account.
async fn confirm(
    state: &State,
    client: Client,
    account: Uuid,
    password: Secret,
) -> Result<store::Entry, Failure> {
    let found = store::of_id(&state.base.store, account).await?;
    let found = found.ok_or_else(Failure::not_found)?;
    state.sign_ins.try_address(client)?;
    state.sign_ins.try_account(&found.email, client)?;
    let hash = Some(found.hash.clone());
    if state.passwords.verify(password, hash).await? {
        return Ok(found);
    }
    let (address, account) = (client.0, Some(account));
    security::log(
        Service::Generation,
        Event::SignInFailed { address, account },
    );
    Err(Refusal::WrongPassword.into())
}

/// Changes an account's password, ends all of its sessions and returns a new session.
///
/// # Errors
/// A wrong old password, or an invalid new one.
pub async fn change_password(
    state: &State,
    client: Client,
    account: Uuid,
    new: NewPassword,
) -> Result<Session, Failure> {
    check_password(&new.new_password)?;
    let before = confirm(state, client, account, new.password).await?;
    let hash = set_password(state, account, new.new_password).await?;
    sessions::begin(state, &store::Entry { hash, ..before }).await
}

/// Changes an account's password, ends all of its sessions and returns the password's hash.
async fn set_password(state: &State, account: Uuid, password: Secret) -> Result<String, Failure> {
    let hash = state.passwords.hash(password).await?;
    let mut tx = state.base.store.begin().await?;
    // Locks the account's row, as does code that begins or renews a session.
    store::set_password(&mut tx, account, &hash).await?;
    sessions::end_all_in(&mut tx, account).await?;
    tx.commit().await?;
    Ok(hash)
}

/// Deletes an account that has no datasets, with its sessions and API keys.
///
/// # Errors
/// A wrong password; an account that still has datasets.
pub async fn close(
    state: &State,
    client: Client,
    account: Uuid,
    password: Secret,
) -> Result<(), Failure> {
    confirm(state, client, account, password).await?;
    let mut tx = state.base.store.begin().await?;
    lock_owner(&mut tx, account).await?;
    if !api_keys::lock_account(&state.base.store, &mut tx, account).await? {
        return Err(Failure::not_found());
    }
    match counts::count(&mut tx, account).await?.datasets {
        0 => {}
        datasets => return Err(Refusal::HasDatasets(datasets).into()),
    }
    store::end_tokens(&mut tx, account).await?;
    store::delete(&mut tx, account).await?;
    state.base.store.owe_forgetting();
    tx.commit().await?;
    state.base.store.forget_deleted().await?;
    Ok(())
}

/// An operator's change to an account.
#[derive(Clone, Debug)]
pub enum Change {
    /// Sets a password and ends all sessions. API keys stay valid.
    Password(Secret),
    /// Rejects sign-ins, ends all sessions and revokes all API keys.
    Disable,
    /// Permits sign-ins again.
    Enable,
    /// Revokes the API key with an identifier, or all API keys, and ends all access tokens.
    Revoke(Option<Uuid>),
}

/// Applies an operator's change to the account with an address and returns the account's identifier.
///
/// # Errors
/// No account with this address; an invalid password; no API key with this identifier.
pub async fn change(state: &State, email: &str, change: Change) -> Result<Uuid, Failure> {
    let account = account_of(state, email).await?;
    let mut tx = match change {
        Change::Password(password) => {
            check_password(&password)?;
            set_password(state, account, password).await?;
            return Ok(account);
        }
        _ => state.base.store.begin().await?,
    };
    // Locks the account's row before its sessions, as code that begins or renews a session does.
    store::lock(&state.base.store, &mut tx, account).await?;
    match change {
        Change::Password(_) => {}
        Change::Enable => store::set_disabled(&mut tx, account, false).await?,
        Change::Disable => {
            store::set_disabled(&mut tx, account, true).await?;
            sessions::end_all_in(&mut tx, account).await?;
            api_keys::revoke(&mut tx, account, None).await?;
        }
        Change::Revoke(one) => {
            let revoked = api_keys::revoke(&mut tx, account, one).await?;
            if one.is_some() && revoked == 0 {
                return Err(Failure::not_found());
            }
            store::end_tokens(&mut tx, account).await?;
        }
    }
    tx.commit().await?;
    Ok(account)
}

/// Lists the API keys of the account with an address.
///
/// # Errors
/// No account with this address.
pub async fn keys_of(state: &State, email: &str) -> Result<Vec<ApiKey>, Failure> {
    let account = account_of(state, email).await?;
    Ok(api_keys::all(&state.base.store, account).await?)
}

async fn account_of(state: &State, email: &str) -> Result<Uuid, Failure> {
    let email = normal_email(email).ok_or(Refusal::Email)?;
    let found = store::of_email(&state.base.store, &email).await?;
    Ok(found.ok_or_else(Failure::not_found)?.id)
}

/// Returns an account.
///
/// # Errors
/// The account does not exist.
pub async fn show(state: &State, id: Uuid) -> Result<Account, Failure> {
    let account = store::find(&state.base.store, id).await?;
    account.ok_or_else(Failure::not_found)
}

/// Returns an address in the form in which it is stored, or `None` if it is not an address. Only a
/// message could prove that an address exists.
fn normal_email(text: &str) -> Option<String> {
    let (name, host) = text.split_once('@')?;
    let sound = !name.is_empty()
        && !host.is_empty()
        && !host.contains('@')
        && text.len() <= MAX_EMAIL
        && !text.chars().any(|c| c.is_whitespace() || c.is_control());
    sound.then(|| text.to_lowercase())
}

/// Checks that a name has 1 to `longest` characters and no control characters.
///
/// # Errors
/// [`Refusal::Name`], which states the rule.
pub fn checked_name(field: &'static str, text: String, longest: usize) -> Result<String, Refusal> {
    let length = text.chars().count();
    if (1..=longest).contains(&length) && !text.chars().any(char::is_control) {
        return Ok(text);
    }
    Err(Refusal::Name {
        field,
        most: longest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_normalised_to_lower_case_and_invalid_ones_rejected() {
        let ana = normal_email("Ana@Hospital.Example").unwrap();
        assert_eq!(ana, "ana@hospital.example");
        let long = format!("{}@b", "a".repeat(253));
        for wrong in ["", "ana", "@b", "a@", "a@b@c", "a b@c", "a@b\0", &long] {
            assert_eq!(normal_email(wrong), None, "{wrong:?}");
        }
    }
}
