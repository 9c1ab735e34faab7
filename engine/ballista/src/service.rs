//! The computation service that runs its large batches on Ballista.

use crate::choice::BySize;
use crate::config::Trouble;
use crate::driver::{Ballista, Settings};
use crate::tls::Identity;
use fhaim_api::token::Service;
use fhaim_computation::engine::{Engine, Remote};
use fhaim_computation::{Config, State};
use fhaim_he::{Backend, BlobPlace};
use fhaim_platform::Failure;
use fhaim_platform::base::Base;
use fhaim_platform::config::Common;
use fhaim_platform::program::Program;
use fhaim_platform::shutdown::Shutdown;
use std::sync::Arc;
use std::time::Duration;
use utoipa_axum::router::OpenApiRouter;

/// The computation service with large batches on Ballista.
#[derive(Clone, Debug)]
pub struct Distributed(State);

/// Runs large batches of every dataset on Ballista, and all others on the threads of this process.
#[derive(Debug)]
struct Cluster {
    settings: Settings,
    least_products: u64,
}

impl Engine for Cluster {
    fn backend(&self, keys: BlobPlace) -> Arc<dyn Backend> {
        let large = Ballista::new(self.settings.clone(), keys);
        Arc::new(BySize::new(large, self.least_products))
    }
}

impl TryFrom<&Remote> for Settings {
    type Error = Trouble;

    fn try_from(remote: &Remote) -> Result<Self, Trouble> {
        if !remote.scheduler.starts_with("https://") {
            let wanted = "the scheduler's address in [engine] must begin with https://";
            return Err(Trouble::Tls(wanted.to_owned()));
        }
        Ok(Self {
            scheduler: remote.scheduler.clone(),
            identity: Identity::read(&remote.tls)?,
            task_bytes: remote.task_bytes,
            packers: remote.packers,
            attempts: remote.attempts,
            pause: Duration::from_secs(remote.pause_seconds),
        })
    }
}

impl Program for Distributed {
    type Config = Config;
    type Handlers = State;
    const SERVICE: Service = Service::Computation;
    const NAME: &'static str = "fhaim-computation-ballista";
    const ABOUT: &'static str = "Compute sealed releases from ciphertexts on several machines";

    fn common(config: &Config) -> &Common {
        &config.common
    }

    fn base(&self) -> &Base {
        self.0.base()
    }

    async fn open(config: &Config) -> Result<Self, Failure> {
        let remote = config.engine.as_ref();
        let remote = remote.ok_or_else(|| {
            Failure::internal("the configuration must have a section [engine]; see docs/ENGINE.md")
        })?;
        let engine = Arc::new(Cluster {
            settings: Settings::try_from(remote).map_err(Failure::internal)?,
            least_products: remote.least_products,
        });
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
