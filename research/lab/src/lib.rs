//! The program `fhaim-lab`, which compares fhaim with other systems.
//!
//! ```sh
//! cargo run --release -p fhaim-lab -- bench mechanisms
//! ```
//!
//! It is not part of the product. It shares flags, randomness and the usage history with `fhaim`, so that
//! each of the two programs reports what the other has spent on the same records. Exit codes and output follow `fhaim`.

mod args;
mod attack;
mod bench;
mod budget;
mod common;
mod error;
mod federate;
mod gan;
mod mix;

use std::process::ExitCode;

use clap::Parser;
use fhaim_cli::{
    Randomness,
    shared::{OperatingSystem, failed, usage},
};
use fhaim_files::progress::Progress;

use crate::{
    args::{Arguments, Command},
    bench::args::BenchCommand,
    common::{input, output, randomness, size},
    error::Error,
};

/// Runs the command of the process, with randomness from the operating system only.
pub fn main() -> ExitCode {
    main_drawing_from::<OperatingSystem>()
}

/// Like [`main`], with the source of randomness that the flags of `R` select.
pub fn main_drawing_from<R: Randomness>() -> ExitCode {
    let arguments = match Arguments::<R>::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    if let Command::Fhaim(product) = &arguments.command {
        let name = std::env::args_os().take(1);
        return fhaim_cli::main_with::<R>(name.chain(product.arguments.iter().cloned()));
    }
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, error.way_out().as_deref(), error.exit_code()),
    }
}

fn dispatch<R: Randomness>(arguments: &Arguments<R>) -> Result<(), Error> {
    let progress = Progress::new(arguments.quiet);
    match &arguments.command {
        Command::Federate(command) => federate::dispatch(command, &progress),
        Command::Mix(drawing) => mix::run(&drawing.arguments, drawing.seed(), &progress),
        Command::Attack(arguments) => attack::run(arguments, &progress),
        Command::Gan(command) => Ok(gan::run(command, &progress)?),
        Command::Bench(command) => measure(command, &progress),
        // `main_drawing_from` has handled this command.
        Command::Fhaim(_) => Ok(()),
    }
}

fn measure(command: &BenchCommand, progress: &Progress) -> Result<(), Error> {
    match command {
        BenchCommand::Mechanisms(arguments) => bench::mechanisms::run(arguments, progress),
        BenchCommand::Compute(arguments) => bench::compute::run(arguments, progress),
        BenchCommand::Pgm(arguments) => bench::pgm::run(arguments, progress),
        BenchCommand::Endings(arguments) => bench::endings::run(arguments, progress),
        BenchCommand::Forecast(arguments) => bench::forecast::run(arguments, progress),
        BenchCommand::Federated(arguments) => bench::federated::run(arguments, progress),
        BenchCommand::Mix(arguments) => bench::mixing::run(arguments, progress),
        BenchCommand::Attack(arguments) => bench::attack::run(arguments, progress),
        BenchCommand::SecondDraws(arguments) => bench::second_draws::run(arguments, progress),
        BenchCommand::Paper(arguments) => bench::paper::run(arguments, progress),
        BenchCommand::EncryptedL1(arguments) => bench::encrypted_l1::run(arguments, progress),
        BenchCommand::Scale(arguments) => bench::scale::run(arguments, progress),
        BenchCommand::Load(arguments) => bench::load::run(arguments, progress),
        BenchCommand::AbuseLoad(arguments) => bench::abuse_load::run(arguments, progress),
    }
}
