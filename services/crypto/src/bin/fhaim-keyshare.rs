//! The first of the services that share keys with the crypto service, as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    fhaim_platform::program::main::<fhaim_crypto::Keyshare<1>>()
}
