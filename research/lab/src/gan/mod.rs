//! The program `fhaim-gan`: GANs, private and federated, to compare `fhaim` with.
//!
//! It is apart from `fhaim`, which stays without them. Results go to files and standard output, remarks to standard
//! error. Exit code 0 is success, 2 a request that cannot be carried out as it stands (arguments, schema, table, size), 1 any
//! other failure.

mod args;
mod attack;
mod bench;
mod data;
mod failure;
mod method;
mod sample;
mod train;

use std::process::ExitCode;

use clap::Parser;
use fhaim_files::progress::Progress;

use crate::args::{Arguments, Command};

fn main() -> ExitCode {
    let Arguments { quiet, command } = Arguments::parse();
    let progress = Progress::new(quiet);
    let done = match command {
        Command::Train(arguments) => train::run(&arguments, &progress),
        Command::Sample(arguments) => sample::run(&arguments),
        Command::Attack(arguments) => attack::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments, &progress),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
