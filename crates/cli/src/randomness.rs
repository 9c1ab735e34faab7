//! Random generators, seeded by the operating system or, in programs for tests, by a given seed.

use std::fmt;

use clap::Args;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::error::Error;

/// Seed of a command's noise and synthetic records.
///
/// Anyone who knows the seed can compute the noise of every release. It is meant for tests and for comparing runs on
/// public tables. Only a program's own [`Randomness`] creates a seed, and that of `fhaim` never does.
#[derive(Clone, Copy, Debug)]
pub struct InsecureTestSeed(pub u64);

/// Flags that choose the source of a command's randomness.
pub trait Randomness: Args + fmt::Debug {
    /// Returns the seed, if the flags have one. Without it, randomness is from the operating system.
    fn insecure_test_seed(&self) -> Option<InsecureTestSeed>;
}

/// Randomness from the operating system, without flags. `fhaim` uses this.
#[derive(Debug, Args)]
pub struct OperatingSystem {}

impl Randomness for OperatingSystem {
    fn insecure_test_seed(&self) -> Option<InsecureTestSeed> {
        None
    }
}

/// The flags of a command, and of its source of randomness.
#[derive(Debug, Args)]
pub struct Drawing<A: Args, R: Args> {
    /// The flags of the command.
    #[command(flatten)]
    pub arguments: A,
    /// The flags of the source of randomness.
    #[command(flatten)]
    pub randomness: R,
}

impl<A: Args, R: Randomness> Drawing<A, R> {
    /// Returns the seed, if the flags have one.
    pub fn seed(&self) -> Option<InsecureTestSeed> {
        self.randomness.insecure_test_seed()
    }
}

/// Purpose of a generator. With a seed, each purpose has its own stream, so that drawing more for one purpose does not
/// change another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The noise of releases.
    Noise = 1,
    /// Synthetic records and their values.
    Records = 2,
}

/// Returns a generator for `purpose`.
pub fn generator(seed: Option<InsecureTestSeed>, purpose: Purpose) -> Result<ChaCha20Rng, Error> {
    let mut rng = match seed {
        Some(InsecureTestSeed(seed)) => ChaCha20Rng::seed_from_u64(seed),
        None => system()?,
    };
    rng.set_stream(purpose as u64);
    Ok(rng)
}

/// Returns a generator seeded by the operating system, for keys, encryption and identifiers, which no test seed
/// affects.
pub fn system() -> Result<ChaCha20Rng, Error> {
    fhaim_dp::generator().map_err(|_| Error::NoRandomness)
}
