//! Who may ask: accounts, sessions, API keys.

mod keys;
mod limits;
mod passwords;
mod sessions;
mod tokens;

pub use keys::{delete_key, list_keys, make_key};
pub use limits::{Client, SignInLimits};
pub use passwords::Passwords;
pub use sessions::{end, exchange, refresh, sign_in};

use fhaim_api::account::{Account, Credentials};
use fhaim_platform::Failure;
use uuid::Uuid;

use crate::State;
use crate::problem::Refusal;
use crate::store::accounts as store;

/// Upper bound on the characters of an address (RFC 5321, section 4.5.3.1.3, without the angle brackets).
const MAX_EMAIL: usize = 254;

/// Characters of a password: fewer are guessed, more only cost time.
const PASSWORD_LENGTH: std::ops::RangeInclusive<usize> = 12..=1024;

/// Makes an account.
///
/// # Errors
/// An address or a password that cannot be used, an address that has an account.
pub async fn create(state: &State, credentials: Credentials) -> Result<Account, Failure> {
    let email = normal_email(&credentials.email).ok_or(Refusal::Email)?;
    if !PASSWORD_LENGTH.contains(&credentials.password.0.chars().count()) {
        let (least, most) = PASSWORD_LENGTH.into_inner();
        return Err(Refusal::Password { least, most }.into());
    }
    let password = state.passwords.hash(credentials.password).await?;
    let account = store::insert(&state.base.store, email, password).await?;
    Ok(account.ok_or(Refusal::AccountExists)?)
}

/// An account.
///
/// # Errors
/// There is none.
pub async fn show(state: &State, id: Uuid) -> Result<Account, Failure> {
    let account = store::find(&state.base.store, id).await?;
    account.ok_or_else(Failure::not_found)
}

/// An address as it is stored, if it looks like one: what is beyond this only a message to it
/// could tell.
fn normal_email(text: &str) -> Option<String> {
    let (name, host) = text.split_once('@')?;
    let sound = !name.is_empty()
        && !host.is_empty()
        && !host.contains('@')
        && text.len() <= MAX_EMAIL
        && !text.chars().any(|c| c.is_whitespace() || c.is_control());
    sound.then(|| text.to_lowercase())
}

/// Text that people name things by: some characters, none of them control characters.
///
/// # Errors
/// Says what the text must be.
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
    fn addresses_are_compared_without_regard_to_case() {
        let ana = normal_email("Ana@Hospital.Example").unwrap();
        assert_eq!(ana, "ana@hospital.example");
        let long = format!("{}@b", "a".repeat(253));
        for wrong in ["", "ana", "@b", "a@", "a@b@c", "a b@c", "a@b\0", &long] {
            assert_eq!(normal_email(wrong), None, "{wrong:?}");
        }
    }
}
