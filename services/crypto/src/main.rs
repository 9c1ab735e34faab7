//! The crypto service as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    fhaim_platform::program::main::<fhaim_crypto::State>()
}
