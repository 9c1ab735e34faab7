//! The generation service as a program of its own.

use clap::Parser;
use fhaim_api::token::Service;
use fhaim_generation::Config;
use fhaim_platform::{config, server, shutdown, telemetry};
use std::path::PathBuf;
use std::process::ExitCode;

/// Accounts, jobs, models, synthetic tables.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Configuration file; FHAIM_GENERATION__... variables override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the OpenAPI document and end.
    #[arg(long)]
    openapi: bool,
    /// Ask the service that runs with this configuration whether it is well, and end.
    #[arg(long)]
    ask_healthy: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match start(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn start(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    if arguments.openapi {
        println!("{}", fhaim_generation::openapi().to_pretty_json()?);
        return Ok(());
    }
    let config: Config = config::load(Service::Generation, arguments.config.as_deref())?;
    if arguments.ask_healthy {
        return Ok(server::ask_healthy(config.common.listen).await?);
    }
    telemetry::log(&config.common.log);
    let listener = tokio::net::TcpListener::bind(config.common.listen).await?;
    tracing::info!(address = %listener.local_addr()?, "listening");
    let (stopper, signal) = shutdown::channel();
    let stop = tokio::spawn(async move {
        if let Err(error) = shutdown::interrupted().await {
            tracing::error!(%error, "no signals");
        }
        stopper.stop();
    });
    fhaim_generation::run(&config, listener, signal).await?;
    stop.abort();
    Ok(())
}
