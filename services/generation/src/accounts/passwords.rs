//! Password hashes: Argon2id (RFC 9106), computed outside the asynchronous threads.

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::password_hash::{CustomizedPasswordHasher, Error, PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use fhaim_api::account::Secret;
use fhaim_platform::Failure;
use fhaim_platform::threads::{Few, blocking};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of hashes computed at the same time, each in 19 MiB.
const AT_ONCE: usize = 4;

/// Hashes and verifies passwords.
pub struct Passwords {
    /// The hash of a random password, which no account has.
    decoy: String,
    few: Few,
    hasher: Hasher,
}

impl Passwords {
    /// Computes the decoy hash for unknown addresses.
    ///
    /// # Errors
    /// The system has no randomness.
    pub async fn new() -> Result<Self, Failure> {
        let nobody = Secret(super::tokens::random()?.0.clone());
        let hasher = Hasher::default();
        let of_nobody = hasher.clone();
        Ok(Self {
            decoy: blocking(move || of_nobody.hash(&nobody)).await??,
            few: Few::new(AT_ONCE),
            hasher,
        })
    }

    /// Returns a password's hash with its salt and parameters (a PHC string).
    ///
    /// # Errors
    /// The system has no randomness.
    pub async fn hash(&self, password: Secret) -> Result<String, Failure> {
        let hasher = self.hasher.clone();
        self.few.blocking(move || hasher.hash(&password)).await?
    }

    /// Checks a password against a hash. Without a hash the result is `false`, after the same amount
    /// of work, so that response times do not reveal which addresses have accounts.
    ///
    /// # Errors
    /// The hash cannot be parsed.
    pub async fn verify(&self, password: Secret, hash: Option<String>) -> Result<bool, Failure> {
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.decoy.clone());
        let hasher = self.hasher.clone();
        let same = self.few.blocking(move || hasher.verify(&password, &hash));
        Ok(same.await?? && known)
    }

    /// Frees the memory that is kept for the next hash.
    pub fn release_memory(&self) {
        self.hasher.kept().clear();
    }
}

/// Argon2id in memory that is used again for the next hash. Otherwise, the memory of a hash would stay in the heap of its
/// thread, and each of many threads would keep as much.
#[derive(Clone, Default)]
struct Hasher {
    memory: Arc<Mutex<Vec<Vec<Block>>>>,
}

impl Hasher {
    fn kept(&self) -> MutexGuard<'_, Vec<Vec<Block>>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hash(&self, password: &Secret) -> Result<String, Failure> {
        let hash: PasswordHash = self
            .hash_password(password.0.as_bytes())
            .map_err(Failure::internal)?;
        Ok(hash.to_string())
    }

    fn verify(&self, password: &Secret, hash: &str) -> Result<bool, Failure> {
        let hash = PasswordHash::new(hash)
            .map_err(|_| Failure::damaged("the password hash of the account"))?;
        match self.verify_password(password.0.as_bytes(), &hash) {
            Ok(()) => Ok(true),
            Err(Error::PasswordInvalid) => Ok(false),
            Err(error) => Err(Failure::internal(error)),
        }
    }
}

impl PasswordHasher<PasswordHash> for Hasher {
    fn hash_password_with_salt(&self, password: &[u8], salt: &[u8]) -> Result<PasswordHash, Error> {
        self.hash_password_customized(password, salt, None, None, Params::default())
    }
}

impl CustomizedPasswordHasher<PasswordHash> for Hasher {
    type Params = Params;

    fn hash_password_customized(
        &self,
        password: &[u8],
        salt: &[u8],
        algorithm: Option<&str>,
        version: Option<u32>,
        params: Params,
    ) -> Result<PasswordHash, Error> {
        let algorithm = algorithm.map(Algorithm::try_from).transpose()?;
        let version = version.map(Version::try_from).transpose()?;
        let (algorithm, version) = (algorithm.unwrap_or_default(), version.unwrap_or_default());
        let length = params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN);
        let mut computed = [0; Output::MAX_LENGTH];
        let computed = computed.get_mut(..length).ok_or(Error::OutputSize)?;
        let mut memory = self.kept().pop().unwrap_or_default();
        memory.resize(params.block_count(), Block::new());
        Argon2::new(algorithm, version, params.clone()).hash_password_into_with_memory(
            password,
            salt,
            computed,
            &mut memory,
        )?;
        self.kept().push(memory);
        Ok(PasswordHash {
            algorithm: algorithm.ident(),
            version: Some(version.into()),
            params: ParamsString::try_from(&params)?,
            salt: Some(Salt::new(salt)?),
            hash: Some(Output::new(computed)?),
        })
    }
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
        assert_eq!(unreadable.kind(), ProblemKind::Damaged);
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
