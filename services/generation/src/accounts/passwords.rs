//! Password hashes: Argon2id (RFC 9106), computed outside the asynchronous threads.

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{Error, PasswordHasher, PasswordVerifier};
use fhaim_api::account::Secret;
use fhaim_platform::Failure;
use fhaim_platform::threads::{Few, blocking};

/// Number of hashes computed at the same time, each in 19 MiB.
const AT_ONCE: usize = 4;

/// Hashes and verifies passwords.
pub struct Passwords {
    /// The hash of a random password, which no account has.
    decoy: String,
    few: Few,
}

impl Passwords {
    /// Computes the decoy hash for unknown addresses.
    ///
    /// # Errors
    /// The system has no randomness.
    pub async fn new() -> Result<Self, Failure> {
        let nobody = Secret(super::tokens::random()?.0.clone());
        Ok(Self {
            decoy: blocking(move || hash(&nobody)).await??,
            few: Few::new(AT_ONCE),
        })
    }

    /// Returns a password's hash with its salt and parameters (a PHC string).
    ///
    /// # Errors
    /// The system has no randomness.
    pub async fn hash(&self, password: Secret) -> Result<String, Failure> {
        self.few.blocking(move || hash(&password)).await?
    }

    /// Checks a password against a hash. Without a hash the result is `false`, after the same amount
    /// of work, so that response times do not reveal which addresses have accounts.
    ///
    /// # Errors
    /// The hash cannot be parsed.
    pub async fn verify(&self, password: Secret, hash: Option<String>) -> Result<bool, Failure> {
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.decoy.clone());
        let same = self.few.blocking(move || {
            match Argon2::default().verify_password(password.0.as_bytes(), hash.as_str()) {
                Ok(()) => Ok(true),
                Err(Error::PasswordInvalid) => Ok(false),
                Err(error) => Err(Failure::internal(error)),
            }
        });
        Ok(same.await?? && known)
    }
}

fn hash(password: &Secret) -> Result<String, Failure> {
    let hash: PasswordHash = Argon2::default()
        .hash_password(password.0.as_bytes())
        .map_err(Failure::internal)?;
    Ok(hash.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_api::problem::ProblemKind;
    use std::time::{Duration, Instant};

    #[tokio::test]
    async fn only_the_right_password_is_accepted() {
        let passwords = Passwords::new().await.unwrap();
        let secret = |text: &str| Secret(text.to_owned());
        let hash = passwords.hash(secret("correct horse")).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        let verify = |text, hash| passwords.verify(secret(text), hash);
        assert!(verify("correct horse", Some(hash.clone())).await.unwrap());
        assert!(!verify("correct house", Some(hash)).await.unwrap());
        assert!(!verify("correct horse", None).await.unwrap());
        let unreadable = verify("a", Some("no hash".into())).await.unwrap_err();
        assert_eq!(unreadable.kind(), ProblemKind::Internal);
    }

    #[tokio::test]
    async fn unknown_addresses_take_as_much_time_as_known_ones() {
        let passwords = Passwords::new().await.unwrap();
        let secret = || Secret("correct horse".to_owned());
        let hash = passwords.hash(secret()).await.unwrap();
        // The minimum of several runs, so that a busy machine does not affect the result.
        let mut least = [Duration::MAX; 2];
        for _ in 0..5 {
            for (least, hash) in least.iter_mut().zip([Some(hash.clone()), None]) {
                let started = Instant::now();
                passwords.verify(secret(), hash).await.unwrap();
                *least = started.elapsed().min(*least);
            }
        }
        let [known, unknown] = least.map(|least| least.as_secs_f64());
        assert!(unknown > 0.5 * known && known > 0.5 * unknown, "{least:?}");
    }
}
