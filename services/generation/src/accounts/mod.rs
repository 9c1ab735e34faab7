//! Who may ask: accounts, sessions, API keys.

mod keys;
mod limits;
mod passwords;
mod sessions;
mod tokens;

pub use keys::{delete_key, list_keys, make_key};
pub use limits::{Client, SignInLimits};
pub use passwords::Passwords;
pub use sessions::{end, exchange, forget_expired, refresh, sign_in};

use fhaim_api::account::{Account, Credentials};
use fhaim_api::problem::ProblemKind;
use fhaim_platform::{Failure, clock, store};
use sqlx::Row;
use uuid::Uuid;

use crate::State;

/// Longest address (RFC 5321, section 4.5.3.1.3, without the angle brackets).
const LONGEST_EMAIL: usize = 254;

/// Characters of a password: fewer are guessed, more only cost time.
const PASSWORD_LENGTH: std::ops::RangeInclusive<usize> = 12..=1024;

/// Makes an account.
///
/// # Errors
/// An address or a password that cannot be used, an address that has an account.
pub async fn create(state: &State, credentials: Credentials) -> Result<Account, Failure> {
    let email = normal_email(&credentials.email)
        .ok_or_else(|| Failure::new(ProblemKind::Invalid, "email: this is not an address"))?;
    if !PASSWORD_LENGTH.contains(&credentials.password.0.chars().count()) {
        let (least, most) = PASSWORD_LENGTH.into_inner();
        let detail = format!("password: it must have {least} to {most} characters");
        return Err(Failure::new(ProblemKind::Invalid, detail));
    }
    let password = state.passwords.hash(credentials.password).await?;
    let (id, now) = (Uuid::new_v4(), clock::now());
    let inserted = sqlx::query(
        "INSERT INTO accounts (id, email, password, created_at) VALUES ($1, $2, $3, $4)",
    )
    .bind(id.to_string())
    .bind(&email)
    .bind(password)
    .bind(now)
    .execute(state.base.store.pool())
    .await;
    match inserted {
        Ok(_) => Ok(Account {
            id,
            email,
            created_at: clock::date(now),
        }),
        Err(error) if store::is_duplicate(&error) => {
            let detail = "there is an account of this address: sign in";
            Err(Failure::new(ProblemKind::Conflict, detail))
        }
        Err(error) => Err(error.into()),
    }
}

/// An account.
///
/// # Errors
/// There is none.
pub async fn show(state: &State, id: Uuid) -> Result<Account, Failure> {
    let row = sqlx::query("SELECT email, created_at FROM accounts WHERE id = $1")
        .bind(id.to_string())
        .fetch_optional(state.base.store.pool())
        .await?
        .ok_or_else(Failure::not_found)?;
    Ok(Account {
        id,
        email: row.try_get("email")?,
        created_at: clock::date(row.try_get("created_at")?),
    })
}

/// An address as it is stored, if it looks like one: what is beyond this only a message to it
/// could tell.
fn normal_email(text: &str) -> Option<String> {
    let (name, host) = text.split_once('@')?;
    let sound = !name.is_empty()
        && !host.is_empty()
        && !host.contains('@')
        && text.len() <= LONGEST_EMAIL
        && !text.chars().any(|c| c.is_whitespace() || c.is_control());
    sound.then(|| text.to_lowercase())
}

/// Text that people name things by: some characters, none of them control characters.
///
/// # Errors
/// Says what the text must be.
pub fn checked_name(field: &str, text: String, longest: usize) -> Result<String, Failure> {
    let length = text.chars().count();
    if (1..=longest).contains(&length) && !text.chars().any(char::is_control) {
        return Ok(text);
    }
    let detail = format!("{field}: it must have 1 to {longest} characters, none of them control");
    Err(Failure::new(ProblemKind::Invalid, detail))
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
