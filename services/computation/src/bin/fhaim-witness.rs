//! The second computation service as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    fhaim_platform::program::main::<fhaim_computation::Witness>()
}
