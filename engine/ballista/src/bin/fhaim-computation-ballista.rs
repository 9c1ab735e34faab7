//! The computation service as a program that runs its large batches on Ballista.

use std::process::ExitCode;

fn main() -> ExitCode {
    fhaim_platform::program::main::<fhaim_ballista::service::Distributed>()
}
