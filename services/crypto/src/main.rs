//! The program of the crypto service.

use std::process::ExitCode;

fn main() -> ExitCode {
    fhaim_platform::program::main::<fhaim_crypto::State>()
}
