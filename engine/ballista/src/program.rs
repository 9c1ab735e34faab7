//! The common parts of the two programs: arguments, log and runtime.

use crate::config::Trouble;
use clap::{CommandFactory, FromArgMatches, Parser};
use fhaim_platform::config::load;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Configuration file; see docs/ENGINE.md for an example
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Runs a program: reads its arguments and configuration, calls `serve`, and returns the exit code. Environment
/// variables override the configuration file, as for the services: `FHAIM_EXECUTOR__NAME=...` overrides the `name` of
/// `fhaim-executor`.
pub fn main<C: DeserializeOwned, F: Future<Output = Result<(), Trouble>>>(
    name: &'static str,
    about: &'static str,
    serve: impl FnOnce(C) -> F,
) -> ExitCode {
    let command = Arguments::command().name(name).about(about);
    let arguments = match Arguments::from_arg_matches(&command.get_matches()) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    let filter = EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| EnvFilter::new("warn,fhaim_ballista=info"));
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .with_env_filter(filter)
        .init();
    match run(name, &arguments, serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run<C: DeserializeOwned, F: Future<Output = Result<(), Trouble>>>(
    name: &'static str,
    arguments: &Arguments,
    serve: impl FnOnce(C) -> F,
) -> Result<(), Trouble> {
    let short = name.strip_prefix("fhaim-").unwrap_or(name);
    let config = load(short, Some(&arguments.config))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(config))
}
