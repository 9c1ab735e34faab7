//! The program of the generation service.

use std::process::ExitCode;

fn main() -> ExitCode {
    fhaim_platform::program::main::<fhaim_generation::State>()
}
