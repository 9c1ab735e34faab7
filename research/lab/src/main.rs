//! The program `fhaim-lab`.

use std::process::ExitCode;

fn main() -> ExitCode {
    fhaim_lab::main()
}
