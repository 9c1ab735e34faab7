//! The computation service as a program, with Ballista behind it.

use std::process::ExitCode;

fn main() -> ExitCode {
    fhaim_platform::program::main::<fhaim_ballista::service::Distributed>()
}
