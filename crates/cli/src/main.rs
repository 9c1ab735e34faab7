//! The program `fhaim`.

use std::process::ExitCode;

fn main() -> ExitCode {
    fhaim_cli::main()
}
