//! The computation service with Ballista behind it.

use crate::driver::{Ballista, Settings};
use fhaim_api::token::Service;
use fhaim_computation::engine::{Engine, Remote};
use fhaim_computation::{Config, State};
use fhaim_he::{Backend, Place};
use fhaim_platform::Failure;
use fhaim_platform::base::Base;
use fhaim_platform::config::Common;
use fhaim_platform::program::Program;
use fhaim_platform::shutdown::Shutdown;
use std::sync::Arc;
use std::time::Duration;
use utoipa_axum::router::OpenApiRouter;

/// The computation service, whose batches run on Ballista.
#[derive(Clone, Debug)]
pub struct Distributed(State);

/// Ballista, for every dataset.
#[derive(Debug)]
struct Cluster(Settings);

impl Engine for Cluster {
    fn reads_blobs(&self) -> bool {
        true
    }

    fn backend(&self, keys: Place) -> Arc<dyn Backend> {
        Arc::new(Ballista::new(self.0.clone(), keys))
    }
}

impl From<&Remote> for Settings {
    fn from(remote: &Remote) -> Self {
        Self {
            scheduler: remote.scheduler.clone(),
            task_bytes: remote.task_bytes,
            packers: remote.packers,
            attempts: remote.attempts,
            pause: Duration::from_secs(remote.pause_seconds),
        }
    }
}

impl Program for Distributed {
    type Config = Config;
    type Handlers = State;
    const SERVICE: Service = Service::Computation;
    const NAME: &'static str = "fhaim-computation-ballista";
    const ABOUT: &'static str = "Ciphertexts in, sealed releases out; computed on other machines";

    fn common(config: &Config) -> &Common {
        &config.common
    }

    fn base(&self) -> &Base {
        self.0.base()
    }

    async fn open(config: &Config) -> Result<Self, Failure> {
        let remote = config.engine.as_ref();
        let remote = remote.ok_or_else(|| Failure::internal("the configuration lacks [engine]"))?;
        let engine = Arc::new(Cluster(remote.into()));
        Ok(Self(State::open_with(config, engine).await?))
    }

    fn handlers(self) -> State {
        self.0
    }

    fn routes() -> OpenApiRouter<State> {
        State::routes()
    }

    async fn work(self, shutdown: Shutdown) {
        self.0.work(shutdown).await;
    }
}
