//! A service as a program: its configuration, its log, its listener, the signals that stop it.

use crate::Failure;
use crate::base::Base;
use crate::config::{self, Common, ConfigError};
use crate::shutdown::{self, Shutdown, Stopper};
use crate::{connections, server, telemetry};
use axum::Router;
use clap::{CommandFactory, FromArgMatches, Parser};
use fhaim_api::token::Service;
use serde::de::DeserializeOwned;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

/// A service that can be run as a program: what its handlers and workers share. Cheap to clone.
pub trait Program: Clone + Send + Sync + 'static {
    /// Its configuration.
    type Config: DeserializeOwned;
    /// What its handlers share: itself, but where two services have the same handlers.
    type Handlers: Clone + Send + Sync + 'static;
    /// Which service it is.
    const SERVICE: Service;
    /// Name of the program.
    const NAME: &'static str;
    /// What it is for, in a line.
    const ABOUT: &'static str;

    /// What every service's configuration has.
    fn common(config: &Self::Config) -> &Common;

    /// What every service's state has.
    fn base(&self) -> &Base;

    /// Opens the database, the blobs and the keys that a configuration names.
    ///
    /// # Errors
    /// What cannot be opened, or the missing address of another service.
    fn open(config: &Self::Config) -> impl Future<Output = Result<Self, Failure>>;

    /// What its handlers share.
    fn handlers(self) -> Self::Handlers;

    /// Its routes, documented.
    fn routes() -> OpenApiRouter<Self::Handlers>;

    /// Works, and rotates the token signing key when it is due, until `shutdown`.
    fn work(self, shutdown: Shutdown) -> impl Future<Output = ()> + Send + 'static;

    /// Its routes with everything around them.
    fn router(self) -> Router {
        let (ready, peers) = (self.base().readiness(), self.base().peers_readiness());
        let (routes, _) = Self::routes().split_for_parts();
        server::around(
            Self::SERVICE,
            routes.with_state(self.handlers()),
            ready,
            peers,
        )
    }

    /// The OpenAPI document.
    fn openapi() -> OpenApi {
        Self::routes().split_for_parts().1
    }
}

/// How long work under way may take once a service is told to stop: its lease passes it on.
const GRACE: Duration = Duration::from_secs(10);

/// Why a service ended other than by being told to.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// Its configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Nobody can listen at the address.
    #[error("{address}: {source}")]
    Listen {
        /// Where it was to listen.
        address: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// There are no threads or signals to be had.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// What the service could not open or do.
    #[error(transparent)]
    Service(#[from] Failure),
}

#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Configuration file; variables such as FHAIM_CRYPTO__COMMON__LISTEN override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the OpenAPI document and end
    #[arg(long)]
    openapi: bool,
    /// Ask the service that runs with this configuration whether it is well, and end
    #[arg(long)]
    ask_healthy: bool,
}

/// The whole program: arguments in, exit code out.
pub fn main<P: Program>() -> ExitCode {
    let command = Arguments::command().name(P::NAME).about(P::ABOUT);
    let arguments = match Arguments::from_arg_matches(&command.get_matches()) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    let config = arguments.config.as_deref();
    let done = if arguments.openapi {
        print_document::<P>()
    } else if arguments.ask_healthy {
        ask_healthy::<P>(config)
    } else {
        serve::<P>(config)
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_document<P: Program>() -> Result<(), ProgramError> {
    let document = P::openapi().to_pretty_json();
    let document = document.map_err(std::io::Error::from)?;
    Ok(writeln!(std::io::stdout(), "{document}")?)
}

fn ask_healthy<P: Program>(file: Option<&Path>) -> Result<(), ProgramError> {
    let config: P::Config = config::load(P::SERVICE.as_str(), file)?;
    let asking = server::ask_healthy(P::common(&config).listen);
    runtime()?.block_on(asking)?;
    Ok(())
}

fn runtime() -> std::io::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build()
}

/// Runs a service until it is told to stop.
///
/// # Errors
/// A configuration that cannot be read, an address that is taken, what the service needs and does
/// not find.
pub fn serve<P: Program>(file: Option<&Path>) -> Result<(), ProgramError> {
    let config: P::Config = config::load(P::SERVICE.as_str(), file)?;
    let common = P::common(&config);
    telemetry::log(&common.log);
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let listener = listen(&common.listen.to_string()).await?;
        tracing::info!(service = %P::SERVICE, address = %listener.local_addr()?, "listening");
        let (stopper, signal) = shutdown::channel();
        let stopping = stop_when_told(stopper);
        let served = run::<P>(&config, listener, signal).await;
        stopping.abort();
        Ok(served?)
    });
    leave(runtime);
    served
}

/// Leaves a runtime whose program is about to end. A batch or a fit may go on for long on a thread of
/// its own, and nobody takes what it would give: its task was given back.
///
/// The runtime is never shut down: such a thread would panic at the next timer that it waits for, and the
/// log would call a quiet stop a fault. All of it ends with the process.
pub fn leave(runtime: Runtime) {
    std::mem::forget(runtime);
}

/// Answers on `listener` and works until `shutdown`.
async fn run<P: Program>(
    config: &P::Config,
    listener: TcpListener,
    shutdown: Shutdown,
) -> Result<(), Failure> {
    let state = P::open(config).await?;
    let working = tokio::spawn(state.clone().work(shutdown.clone()));
    let most = connections::capacity();
    connections::serve(listener, state.clone().router(), most, shutdown).await;
    match tokio::time::timeout(GRACE, working).await {
        Ok(worked) => worked.map_err(Failure::internal)?,
        Err(_) => tracing::warn!("stopping with work under way: it is taken up again"),
    }
    state.base().store.close().await;
    Ok(())
}

/// Listens on an address.
///
/// # Errors
/// [`ProgramError::Listen`].
pub async fn listen(address: &str) -> Result<TcpListener, ProgramError> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|source| ProgramError::Listen {
        address: address.to_owned(),
        source,
    })
}

/// Raises the signal at an interrupt or a request to terminate.
pub fn stop_when_told(stopper: Stopper) -> JoinHandle<()> {
    tokio::spawn(async move {
        if let Err(error) = shutdown::interrupted().await {
            tracing::error!(%error, "there are no signals: stopping");
        }
        stopper.stop();
    })
}
