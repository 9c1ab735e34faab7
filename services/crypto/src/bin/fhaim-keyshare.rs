//! The program of the first key-share service.

use std::process::ExitCode;

fn main() -> ExitCode {
    fhaim_platform::program::main::<fhaim_crypto::Keyshare<1>>()
}
