//! `fhaim admin`: what an operator does to a service's own store.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fhaim_api::token::Service;
use fhaim_platform::config;
use fhaim_platform::program::Program;
use uuid::Uuid;

use super::{runtime, up};
use crate::{error::Error, output};

/// What to do.
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Let a dataset go on that the crypto service froze over a page it could not decrypt
    #[command(after_help = THAW_EXAMPLES)]
    Thaw(ThawArguments),
}

const THAW_EXAMPLES: &str = "\
A service that follows the protocol never sends such a page: find out where it came from before you
let the dataset go on. What it was frozen for otherwise stays frozen.

Examples:
  fhaim admin thaw DATASET --config crypto.toml
  fhaim admin thaw DATASET --data fhaim-data";

/// Flags of `admin thaw`.
#[derive(Debug, Args)]
pub struct ThawArguments {
    /// Identifier of the dataset
    pub dataset: Uuid,
    /// Configuration of the crypto service
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    pub config: Option<PathBuf>,
    /// Folder of `fhaim up`
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// Runs a command of an operator.
pub fn run(command: &AdminCommand) -> Result<(), Error> {
    match command {
        AdminCommand::Thaw(arguments) => runtime()?.block_on(thaw(arguments)),
    }
}

async fn thaw(arguments: &ThawArguments) -> Result<(), Error> {
    let config = match &arguments.data {
        Some(data) => fhaim_crypto::Config {
            common: up::stored(data, Service::Crypto)?,
            limits: fhaim_crypto::Limits::default(),
        },
        None => config::load(Service::Crypto, arguments.config.as_deref())
            .map_err(|error| Error::Usage(error.to_string()))?,
    };
    let state = fhaim_crypto::State::open(&config).await?;
    fhaim_crypto::ledger::thaw(&state, arguments.dataset).await?;
    output::print(&format!("{} goes on\n", arguments.dataset))
}
