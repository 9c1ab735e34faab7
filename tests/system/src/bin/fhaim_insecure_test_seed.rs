//! `fhaim` with an additional flag for the seed of a run. With the same seed, an encrypted run, a clear run
//! and a job at the services release the same integers. Such releases are not private. The flag exists only in this
//! program, so that no build of `fhaim` has it.

use std::process::ExitCode;

use clap::Args;
use fhaim_cli::{InsecureTestSeed, Randomness};

/// Randomness from a seed, if the flag is given.
#[derive(Debug, Args)]
struct Seeded {
    /// Draw all randomness from this seed. NOT private; for tests only
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
