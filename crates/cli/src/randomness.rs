//! Generators: keyed by the operating system, or by the seed of a build for tests.

use rand::{SeedableRng, TryRngCore, rngs::OsRng};
use rand_chacha::ChaCha20Rng;

use crate::error::Error;

/// What a generator is for: with a seed, each purpose has its own stream, so that one purpose
/// drawing more changes nothing for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The noise of releases.
    Noise = 1,
    /// Synthetic records and their values.
    Records = 2,
}

/// A generator for `purpose`.
pub fn generator(seed: Option<u64>, purpose: Purpose) -> Result<ChaCha20Rng, Error> {
    let mut rng = match seed {
        Some(seed) => ChaCha20Rng::seed_from_u64(seed),
        None => {
            let mut key = [0; 32];
            OsRng
                .try_fill_bytes(&mut key)
                .map_err(|_| Error::NoRandomness)?;
            ChaCha20Rng::from_seed(key)
        }
    };
    rng.set_stream(purpose as u64);
    Ok(rng)
}
