//! `fhaim` as it is, but for a flag that names the seed of a run: with one, a run under encryption, a
//! run in the clear and a job at the services release the same integers. Such releases are not
//! private. The flag is here and nowhere else, so that no way of building `fhaim` gives it one.

use std::process::ExitCode;

use clap::Args;
use fhaim_cli::{InsecureTestSeed, Randomness};

/// Randomness from a seed, where the flag names one.
#[derive(Debug, Args)]
struct Seeded {
    /// Draw everything from this seed: NOT private, for tests only
    #[arg(long)]
    seed: Option<u64>,
}

impl Randomness for Seeded {
    fn insecure_test_seed(&self) -> Option<InsecureTestSeed> {
        self.seed.map(InsecureTestSeed)
    }
}

fn main() -> ExitCode {
    fhaim_cli::main_drawing_from::<Seeded>()
}
