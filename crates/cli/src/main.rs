//! The fhaim command: synthetic data from tables nobody but their holder reads.
//!
//! Results go to files and, with `--json`, to standard output; progress and remarks to standard
//! error. Exit code 0 is success, 2 a request that cannot be carried out as it stands (arguments,
//! schema, table, size), 1 any other failure.

mod args;
mod bench;
mod demo;
mod encrypted;
mod error;
mod evaluate;
mod generate;
mod input;
mod output;
mod progress;
mod randomness;
mod schema;
mod size;
mod wine;

use std::process::ExitCode;

use clap::Parser;

use crate::{
    args::{Arguments, BenchCommand, Command, SchemaCommand},
    error::Error,
    progress::Progress,
};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn dispatch(arguments: &Arguments) -> Result<(), Error> {
    let progress = Progress::new(arguments.quiet);
    match &arguments.command {
        Command::Schema(SchemaCommand::Infer(arguments)) => schema::infer(arguments),
        Command::Schema(SchemaCommand::Check(arguments)) => schema::check(arguments),
        Command::Demo(arguments) => demo::run(arguments, &progress),
        Command::Run(arguments) => generate::run(arguments, &progress),
        Command::Evaluate(arguments) => evaluate::run(arguments, &progress),
        Command::Local(arguments) => generate::local(arguments, &progress),
        Command::Bench(BenchCommand::Compute(arguments)) => {
            bench::compute::run(arguments, &progress)
        }
        Command::Bench(BenchCommand::Mechanisms(arguments)) => {
            bench::mechanisms::run(arguments, &progress)
        }
        Command::Bench(BenchCommand::Pgm(arguments)) => bench::pgm::run(arguments, &progress),
    }
}
