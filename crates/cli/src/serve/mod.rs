//! `fhaim serve`, `fhaim up` and `fhaim admin`: run the services, and operate them.

mod admin;
mod backup;
mod up;
mod web;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fhaim_platform::program::{self, Program, ProgramError};

use crate::error::Error;
pub use admin::args::AdminCommand;
pub use up::UpArguments;

/// Subcommands of `serve`.
#[derive(Debug, Subcommand)]
pub enum ServeCommand {
    /// Run the generation service: accounts, jobs, models and synthetic tables
    #[command(after_help = SERVE_EXAMPLES)]
    Generation(ServeArguments),
    /// Run the computation service, which computes sealed releases from ciphertexts
    #[command(after_help = SERVE_EXAMPLES)]
    Computation(ServeArguments),
    /// Run the second computation service, which repeats the first one's computations for comparison
    #[command(after_help = SERVE_EXAMPLES)]
    Witness(ServeArguments),
    /// Run the crypto service: keys, the privacy ledger and decryption
    #[command(after_help = SERVE_EXAMPLES)]
    Crypto(ServeArguments),
    /// Run a key service that has a share of the keys and its own ledger
    #[command(after_help = KEYSHARE_EXAMPLES)]
    Keyshare(KeyshareArguments),
}

const KEYSHARE_EXAMPLES: &str = "\
Examples:
  fhaim serve keyshare --config keyshare.toml
  fhaim serve keyshare --number 2 --config third.toml

The service has one of two or three shares of every key that it creates together with the crypto service.
Nothing is decrypted without it. Its configuration names the crypto service and, if there is one, the
second computation service as peers.";

const SERVE_EXAMPLES: &str = "\
Examples:
  fhaim serve generation --config generation.toml
  FHAIM_CRYPTO__COMMON__DATABASE__URL=postgres://... fhaim serve crypto --config crypto.toml
  fhaim serve witness --config witness.toml
  fhaim serve computation --openapi > computation.json";

/// Flags of `serve`.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Configuration file. Environment variables override it; their names begin with the service's name,
    /// such as FHAIM_CRYPTO__
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the OpenAPI document and exit
    #[arg(long)]
    pub openapi: bool,
}

/// Flags of `serve keyshare`.
#[derive(Debug, Args)]
pub struct KeyshareArguments {
    /// Number of this service among those that share keys with the crypto service
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub number: u8,
    /// Flags of all services.
    #[command(flatten)]
    pub serve: ServeArguments,
}

pub const UP_EXAMPLES: &str = "\
Examples:
  fhaim up
  fhaim up --data-dir /srv/fhaim --listen 0.0.0.0:8080
  fhaim up --witness --keys 2";

/// Returns the asynchronous runtime for network input and output.
pub fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().build();
    runtime.map_err(|error| Error::Service(error.to_string()))
}

/// Runs `fhaim up`.
///
/// # Errors
/// If a service cannot start.
pub fn up(arguments: &UpArguments) -> Result<(), Error> {
    let runtime = runtime()?;
    let done = runtime.block_on(up::run(arguments));
    program::leave(runtime);
    done
}

/// Runs `fhaim admin`.
///
/// # Errors
/// If the subcommand fails.
pub fn admin(command: &AdminCommand) -> Result<(), Error> {
    admin::run(command)
}

/// Runs `fhaim serve`.
///
/// # Errors
/// If a service cannot start.
pub fn serve(command: &ServeCommand) -> Result<(), Error> {
    match command {
        ServeCommand::Generation(arguments) => one::<fhaim_generation::State>(arguments),
        ServeCommand::Computation(arguments) => one::<fhaim_computation::State>(arguments),
        ServeCommand::Witness(arguments) => one::<fhaim_computation::Witness>(arguments),
        ServeCommand::Crypto(arguments) => one::<fhaim_crypto::State>(arguments),
        ServeCommand::Keyshare(arguments) => match arguments.number {
            1 => one::<fhaim_crypto::Keyshare<1>>(&arguments.serve),
            _ => one::<fhaim_crypto::Keyshare<2>>(&arguments.serve),
        },
    }
}

/// Runs one service until the process is signalled to stop, or prints its OpenAPI document.
fn one<P: Program>(arguments: &ServeArguments) -> Result<(), Error> {
    if arguments.openapi {
        let text = P::openapi().to_pretty_json();
        let text = text.map_err(|error| Error::Service(error.to_string()))?;
        return crate::output::print(&format!("{text}\n"));
    }
    program::serve::<P>(arguments.config.as_deref()).map_err(|error| match error {
        ProgramError::Config(error) => Error::Usage(error.to_string()),
        other => Error::Service(other.to_string()),
    })
}
