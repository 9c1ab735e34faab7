//! `fhaim serve` and `fhaim up`: the services as programs.

mod up;
mod web;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use fhaim_api::token::Service;
use fhaim_platform::{Failure, config, config::Common, shutdown, telemetry};
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;

use crate::{args::Command, error::Error};
pub use up::UpArguments;

/// Which service to serve.
#[derive(Debug, Subcommand)]
pub enum ServeCommand {
    /// Accounts, jobs, models, synthetic tables
    #[command(after_help = SERVE_EXAMPLES)]
    Generation(ServeArguments),
    /// Ciphertexts in, sealed releases out
    #[command(after_help = SERVE_EXAMPLES)]
    Computation(ServeArguments),
    /// Keys, the privacy ledger, decryption
    #[command(after_help = SERVE_EXAMPLES)]
    Crypto(ServeArguments),
}

const SERVE_EXAMPLES: &str = "\
Examples:
  fhaim serve generation --config generation.toml
  FHAIM_CRYPTO__COMMON__DATABASE__URL=postgres://... fhaim serve crypto --config crypto.toml
  fhaim serve computation --openapi > computation.json";

/// Flags of `serve`.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Configuration; variables that begin with FHAIM_CRYPTO__ and the like override it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the OpenAPI document and end
    #[arg(long)]
    pub openapi: bool,
}

pub const UP_EXAMPLES: &str = "\
Examples:
  fhaim up
  fhaim up --data /srv/fhaim --listen 0.0.0.0:8080";

/// The runtime of everything that waits for a network.
pub fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().build();
    runtime.map_err(|error| Error::Service(error.to_string()))
}

/// Runs a command that serves.
pub fn run(command: &Command) -> Result<(), Error> {
    match command {
        Command::Up(arguments) => runtime()?.block_on(up::run(arguments)),
        Command::Serve(command) => serve(command),
        _ => Ok(()),
    }
}

fn serve(command: &ServeCommand) -> Result<(), Error> {
    match command {
        ServeCommand::Generation(arguments) => one(
            Service::Generation,
            arguments,
            fhaim_generation::openapi,
            |config: &fhaim_generation::Config| config.common.clone(),
            async |config, listener, shutdown| {
                fhaim_generation::run(&config, listener, shutdown).await
            },
        ),
        ServeCommand::Computation(arguments) => one(
            Service::Computation,
            arguments,
            fhaim_computation::openapi,
            |config: &fhaim_computation::Config| config.common.clone(),
            async |config, listener, shutdown| {
                fhaim_computation::run(&config, listener, shutdown).await
            },
        ),
        ServeCommand::Crypto(arguments) => one(
            Service::Crypto,
            arguments,
            fhaim_crypto::openapi,
            |config: &fhaim_crypto::Config| config.common.clone(),
            async |config, listener, shutdown| fhaim_crypto::run(&config, listener, shutdown).await,
        ),
    }
}

/// Runs one service until it is told to stop.
fn one<C: DeserializeOwned>(
    service: Service,
    arguments: &ServeArguments,
    openapi: fn() -> utoipa::openapi::OpenApi,
    common: fn(&C) -> Common,
    run: impl AsyncFnOnce(C, TcpListener, shutdown::Shutdown) -> Result<(), Failure>,
) -> Result<(), Error> {
    if arguments.openapi {
        let text = openapi().to_pretty_json();
        let text = text.map_err(|error| Error::Service(error.to_string()))?;
        return crate::output::print(&format!("{text}\n"));
    }
    let config: C = read(service, arguments.config.as_deref())?;
    let settings = common(&config);
    telemetry::log(&settings.log);
    runtime()?.block_on(async {
        let listener = listen(&settings.listen.to_string()).await?;
        tracing::info!(%service, address = %settings.listen, "listening");
        let (stopper, signal) = shutdown::channel();
        let stopping = stop_when_told(stopper);
        let served = run(config, listener, signal).await;
        stopping.abort();
        served.map_err(|failure| Error::Service(failure.to_string()))
    })
}

fn read<C: DeserializeOwned>(service: Service, file: Option<&Path>) -> Result<C, Error> {
    config::load(service, file).map_err(|error| Error::Usage(error.to_string()))
}

/// Listens on an address.
async fn listen(address: &str) -> Result<TcpListener, Error> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| Error::Service(format!("{address}: {error}")))
}

/// Raises the signal at an interrupt or a request to terminate.
fn stop_when_told(stopper: shutdown::Stopper) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        if let Err(error) = shutdown::interrupted().await {
            tracing::error!(%error, "there are no signals: stopping");
        }
        stopper.stop();
    })
}
