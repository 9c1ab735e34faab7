//! A service as a program: its configuration, log and listener, and the signals that stop it.

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
use uuid::Uuid;

/// A service that can be run as a program. The type is the state that its handlers and workers share, and is cheap to
/// clone.
pub trait Program: Clone + Send + Sync + 'static {
    /// The configuration.
    type Config: DeserializeOwned;
    /// The state of the handlers: `Self`, unless two services share their handlers.
    type Handlers: Clone + Send + Sync + 'static;
    /// The service.
    const SERVICE: Service;
    /// The program's name.
    const NAME: &'static str;
    /// The program's purpose, in one line.
    const ABOUT: &'static str;

    /// Returns the part of the configuration that every service has.
    fn common(config: &Self::Config) -> &Common;

    /// Returns the part of the state that every service has.
    fn base(&self) -> &Base;

    /// Opens the database, the blobs and the keys that a configuration names.
    ///
    /// # Errors
    /// [`Failure`] if a resource cannot be opened, or the address of another service is missing.
    fn open(config: &Self::Config) -> impl Future<Output = Result<Self, Failure>>;

    /// Returns the state of the handlers.
    fn handlers(self) -> Self::Handlers;

    /// Returns the documented routes.
    fn routes() -> OpenApiRouter<Self::Handlers>;

    /// Runs the service's work, and rotates the token signing key when it is due, until `shutdown`.
    fn work(self, shutdown: Shutdown) -> impl Future<Output = ()> + Send + 'static;

    /// Checks that the account of a valid token has not ended it: see `Claims::epoch`. Only the generation service knows
    /// accounts, and the others ask it for ended tokens.
    ///
    /// # Errors
    /// The account has ended the token.
    fn check_account(
        &self,
        account: Uuid,
        epoch: Option<u64>,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        self.base().verifier.check_ended(account, epoch)
    }

    /// Returns the routes with all layers around them.
    fn router(self) -> Router {
        let (ready, peers) = (self.base().readiness(), self.base().peers_readiness());
        let (routes, _) = Self::routes().split_for_parts();
        let reserve = self.base().reserve.clone();
        let routes = reserve.around(routes.with_state(self.handlers()));
        server::around(Self::SERVICE, routes, ready, peers)
    }

    /// Returns the OpenAPI document.
    fn openapi() -> OpenApi {
        Self::routes().split_for_parts().1
    }
}

/// Time that unfinished work may take when a service is told to stop. Another worker then takes the lease over.
const GRACE: Duration = Duration::from_secs(10);

/// The reason why a service ended without being told to.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The configuration cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The service cannot listen on the address.
    #[error("{address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The system provides no threads or signals.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// The service failed to open or do something.
    #[error(transparent)]
    Service(#[from] Failure),
}

#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Configuration file; variables such as FHAIM_CRYPTO__COMMON__LISTEN override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the OpenAPI document and exit
    #[arg(long)]
    openapi: bool,
    /// Check whether the service that runs with this configuration is healthy, and exit
    #[arg(long)]
    ask_healthy: bool,
}

/// Runs the whole program, from its arguments to its exit code.
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
/// [`ProgramError`] for a configuration that cannot be read, an address that is taken, and resources that the service
/// needs and cannot open.
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

/// Leaves a runtime whose program is about to end. A batch or a fit may continue for a long time on a separate
/// thread. Its result is not used, because its task was given back.
///
/// The runtime is never shut down: such a thread would panic at the next timer that it waits for, and the log would
/// show a fault at a regular stop. Everything ends with the process.
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
        Err(_) => tracing::warn!("stopping before all work is done: a worker will continue it"),
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
            tracing::error!(%error, "cannot wait for signals: stopping");
        }
        stopper.stop();
    })
}
