//! Generators: keyed by the operating system, or by the seed that a program for tests was given.

use std::fmt;

use clap::Args;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::error::Error;

/// A seed from which a command draws its noise and its synthetic records. Whoever knows it can
/// compute the noise of every release: it is for tests and for comparing runs on public tables.
/// Only a program's own [`Randomness`] makes one, and that of `fhaim` never does.
#[derive(Clone, Copy, Debug)]
pub struct InsecureTestSeed(pub u64);

/// Flags that say where the randomness of a command comes from.
pub trait Randomness: Args + fmt::Debug {
    /// The seed, if the flags name one; without it the operating system gives randomness.
    fn insecure_test_seed(&self) -> Option<InsecureTestSeed>;
}

/// The operating system gives all randomness, and no flag says otherwise: `fhaim`.
#[derive(Debug, Args)]
pub struct OperatingSystem {}

impl Randomness for OperatingSystem {
    fn insecure_test_seed(&self) -> Option<InsecureTestSeed> {
        None
    }
}

/// The flags of a command, and where its randomness comes from.
#[derive(Debug, Args)]
pub struct Drawing<A: Args, R: Args> {
    /// What the command is asked to do.
    #[command(flatten)]
    pub arguments: A,
    /// What it draws from.
    #[command(flatten)]
    pub randomness: R,
}

impl<A: Args, R: Randomness> Drawing<A, R> {
    /// The seed that it draws from, if it names one.
    pub fn seed(&self) -> Option<InsecureTestSeed> {
        self.randomness.insecure_test_seed()
    }
}

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
pub fn generator(seed: Option<InsecureTestSeed>, purpose: Purpose) -> Result<ChaCha20Rng, Error> {
    let mut rng = match seed {
        Some(InsecureTestSeed(seed)) => ChaCha20Rng::seed_from_u64(seed),
        None => system()?,
    };
    rng.set_stream(purpose as u64);
    Ok(rng)
}

/// A generator for what no seed decides: keys, encryption, identifiers.
pub fn system() -> Result<ChaCha20Rng, Error> {
    fhaim_dp::generator().map_err(|_| Error::NoRandomness)
}
