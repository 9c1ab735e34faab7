//! Where random numbers come from: generators with a key each, keyed once.
//!
//! Noise, keys and masks take millions of values, and a call to the operating system costs more
//! than the value it brings. So the system is asked for one key, and ChaCha20 makes the values:
//! as good as the system's own, which are made by the same cipher.

use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, OsRng, SeedableRng, TryCryptoRng};
use zeroize::Zeroizing;

use crate::Error;

/// A generator keyed by 32 bytes from the operating system.
///
/// # Errors
/// [`Error::NoRandomness`] where the system gives none.
pub fn generator() -> Result<ChaCha20Rng, Error> {
    keyed(&mut OsRng).map_err(|_| Error::NoRandomness)
}

/// A generator of its own, keyed by 32 bytes from another: for threads, and for whatever is not
/// to depend on how much others draw.
pub fn fork<R: CryptoRng + ?Sized>(parent: &mut R) -> ChaCha20Rng {
    let Ok(generator) = keyed(parent);
    generator
}

/// The key is wiped; the generator's own state is not: `rand_chacha` has no way to.
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
    fn every_generator_has_a_key_of_its_own() {
        let mut first = generator().unwrap();
        let mut second = generator().unwrap();
        assert_ne!(first.get_seed(), second.get_seed());
        let forks = [fork(&mut first), fork(&mut first)];
        assert_ne!(forks[0].get_seed(), forks[1].get_seed());
        assert_ne!(first.next_u64(), second.next_u64());
    }

    /// A fork is a function of its parent's stream: seeded runs stay what they are.
    #[test]
    fn a_fork_takes_one_key_from_its_parent() {
        let mut parent = ChaCha20Rng::seed_from_u64(1);
        let mut key = [0; 32];
        parent.clone().fill_bytes(&mut key);
        assert_eq!(fork(&mut parent).get_seed(), key);
        assert_eq!(parent.get_word_pos(), 8);
    }
}
