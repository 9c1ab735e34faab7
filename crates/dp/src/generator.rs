//! Random number generators, each keyed once.
//!
//! Noise, keys and masks take millions of values, and a call to the operating system costs more
//! than computing a value. So the system is called for one key only, and ChaCha20 makes the values.
//! They are as good as the system's own, which come from the same cipher.

use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, OsRng, SeedableRng, TryCryptoRng};
use zeroize::Zeroizing;

use crate::Error;

/// Returns a generator keyed with 32 bytes from the operating system.
///
/// # Errors
/// [`Error::NoRandomness`] if the system's generator fails.
pub fn generator() -> Result<ChaCha20Rng, Error> {
    keyed(&mut OsRng).map_err(|_| Error::NoRandomness)
}

/// Returns a new generator, keyed with 32 bytes from another one: for threads, and for code that
/// must not depend on the number of other draws.
pub fn fork<R: CryptoRng + ?Sized>(parent: &mut R) -> ChaCha20Rng {
    let Ok(generator) = keyed(parent);
    generator
}

/// Wipes the key. The generator's own state is not wiped, since `rand_chacha` cannot do that.
fn keyed<R: TryCryptoRng + ?Sized>(source: &mut R) -> Result<ChaCha20Rng, R::Error> {
    let mut key = Zeroizing::new([0; 32]);
    source.try_fill_bytes(key.as_mut())?;
    Ok(ChaCha20Rng::from_seed(*key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::RngCore;

    #[test]
    fn generators_have_distinct_keys() {
        let mut first = generator().unwrap();
        let mut second = generator().unwrap();
        assert_ne!(first.get_seed(), second.get_seed());
        let forks = [fork(&mut first), fork(&mut first)];
        assert_ne!(forks[0].get_seed(), forks[1].get_seed());
        assert_ne!(first.next_u64(), second.next_u64());
    }

    /// A fork is a function of its parent's stream, so seeded runs are reproducible.
    #[test]
    fn fork_takes_one_key_from_its_parent() {
        let mut parent = ChaCha20Rng::seed_from_u64(1);
        let mut key = [0; 32];
        parent.clone().fill_bytes(&mut key);
        assert_eq!(fork(&mut parent).get_seed(), key);
        assert_eq!(parent.get_word_pos(), 8);
    }
}
