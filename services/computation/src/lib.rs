//! The computation service: receives encrypted tables and computes sealed releases.
//!
//! | module | contents |
//! |---|---|
//! | [`routes`] | HTTP routes |
//! | [`uploads`] | holders' uploads: registration, checks of each object, completion |
//! | [`limits`] | limits of an account |
//! | [`batches`] | batches of releases: requests and status |
//! | [`runs`] | each job's window of the noise, assigned by the crypto service |
//! | [`datasets`] | complete uploads, loaded to compute on |
//! | [`engine`] | backends: this process, or other machines |
//! | [`worker`] | computes a batch, stores the sealed result, then sends it for decryption |
//! | [`store`] | SQL statements |
//! | [`problem`] | refusals and their problem documents |
//!
//! Routes return ciphertexts only to a [second computation service](Witness), and only if the terms of
//! the dataset name one. This service cannot decrypt anything that it has.
//!
//! # Example
//!
//! ```sh
//! fhaim serve computation --config computation.toml    # and `--openapi` prints the routes
//! ```
//!
//! # Neighbours
//!
//! It builds on `fhaim-he` (encryption), `fhaim-protocol` (placement and sealing of releases) and `fhaim-platform`. The
//! generation service calls it, and it calls the crypto service.

pub mod batches;
pub mod datasets;
pub mod engine;
pub mod limits;
pub mod problem;
pub mod routes;
pub mod runs;
pub mod store;
pub mod uploads;
pub mod worker;

use crate::engine::Engine;
use fhaim_api::token::Service;
use fhaim_platform::base::Base;
use fhaim_platform::config::Common;
use fhaim_platform::housekeeping::{self, Counter, Held, Housekeeping};
use fhaim_platform::lease::Tasks;
use fhaim_platform::peer::PeerClient;
use fhaim_platform::program::Program;
use fhaim_platform::runner::{self, Work};
use fhaim_platform::shutdown::Shutdown;
use fhaim_platform::store::Step;
use fhaim_platform::{Failure, step, telemetry};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::Notify;
use utoipa_axum::router::OpenApiRouter;

/// The steps that create the service's tables.
pub const STEPS: [Step; 1] = [step!(Step::FIRST_OF_SERVICE, "computation")];

/// Configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Settings common to all services.
    pub common: Common,
    /// Number of datasets kept loaded.
    #[serde(default = "two")]
    pub datasets_in_memory: usize,
    /// Largest upload that is accepted, in bytes.
    #[serde(default = "most_upload_bytes")]
    pub upload_bytes: u64,
    /// Limit on the bytes of all uploads of one account together, counted at their complete size.
    #[serde(default = "most_stored_bytes")]
    pub stored_bytes: u64,
    /// Memory limits of batches.
    #[serde(default)]
    pub memory: Memory,
    /// Other machines that compute; only for the program that has an engine.
    #[serde(default)]
    pub engine: Option<engine::Remote>,
}

/// Memory limits of a dataset and its batches, in addition to its noise and keys.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// Columns of all holders together are kept in memory up to this number of bytes. Larger ones are
    /// read again for every batch, some record chunks at a time.
    pub dataset_bytes: u64,
    /// Counts that take more than this number of bytes are not accepted. A batch needs the sum of all
    /// holders' counts, so they are always kept in memory.
    pub counts_bytes: u64,
    /// Approximate memory of a batch for the record chunks that it read, for values computed from
    /// them, and for sums over them. Each worker has its own batch.
    pub working_bytes: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            dataset_bytes: 1 << 30,
            counts_bytes: 2 << 30,
            working_bytes: fhaim_he::WORKING_BYTES as u64,
        }
    }
}

fn two() -> usize {
    2
}

fn most_upload_bytes() -> u64 {
    64 << 30
}

fn most_stored_bytes() -> u64 {
    256 << 30
}

/// Shared state of handlers and workers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct State {
    /// The parts that every service has.
    pub base: Base,
    /// Memory limits of batches.
    pub memory: Memory,
    /// Makes the backends that compute.
    pub(crate) engine: Arc<dyn Engine>,
    /// Role among the two computation services.
    pub(crate) role: Role,
    pub(crate) crypto: PeerClient,
    pub(crate) tasks: Tasks,
    pub(crate) datasets: Arc<datasets::Cache>,
    /// Raised when a batch is queued.
    pub(crate) queued: Arc<Notify>,
    /// Raised when a batch ends.
    pub(crate) ended: Arc<Notify>,
    pub(crate) upload_bytes: u64,
    pub(crate) stored_bytes: u64,
    common: Arc<Common>,
}

impl Program for State {
    type Config = Config;
    type Handlers = Self;
    const SERVICE: Service = Service::Computation;
    const NAME: &'static str = "fhaim-computation";
    const ABOUT: &'static str = "Ciphertexts in, sealed releases out";

    fn common(config: &Config) -> &Common {
        &config.common
    }

    fn base(&self) -> &Base {
        &self.base
    }

    async fn open(config: &Config) -> Result<Self, Failure> {
        Self::open_as(Self::SERVICE, config, local(config)?).await
    }

    fn handlers(self) -> Self {
        self
    }

    fn routes() -> OpenApiRouter<Self> {
        routes::documented()
    }

    async fn work(self, shutdown: Shutdown) {
        let common = self.common.clone();
        telemetry::announce_histogram("batch_compute_seconds");
        tokio::join!(
            runner::run(self.clone(), &common, shutdown.clone()),
            housekeeping::keep(&self, &shutdown),
        );
    }
}

impl From<Common> for Config {
    /// Returns a configuration with defaults for everything but `common`.
    fn from(common: Common) -> Self {
        Self {
            common,
            datasets_in_memory: two(),
            upload_bytes: most_upload_bytes(),
            stored_bytes: most_stored_bytes(),
            memory: Memory::default(),
            engine: None,
        }
    }
}

/// Role of a computation service.
#[derive(Clone, Debug)]
pub(crate) enum Role {
    /// Receives the holders' uploads and sends its results for decryption.
    First,
    /// The witness: has copies of the uploads, computes the same batches and reports their digests.
    Second {
        /// The service from which it copies.
        first: PeerClient,
        /// The services that share keys with the crypto service, in the order of their numbers. Each
        /// waits for the witness's digest.
        keyshares: Vec<PeerClient>,
    },
}

/// The second computation service: the same program under another name and in another role.
#[derive(Clone, Debug)]
pub struct Witness(State);

impl Program for Witness {
    type Config = Config;
    type Handlers = State;
    const SERVICE: Service = Service::Witness;
    const NAME: &'static str = "fhaim-witness";
    const ABOUT: &'static str = "Computes every batch a second time and reports its digest";

    fn common(config: &Config) -> &Common {
        &config.common
    }

    fn base(&self) -> &Base {
        &self.0.base
    }

    async fn open(config: &Config) -> Result<Self, Failure> {
        Ok(Self(
            State::open_as(Self::SERVICE, config, local(config)?).await?,
        ))
    }

    fn handlers(self) -> State {
        self.0
    }

    fn routes() -> OpenApiRouter<State> {
        routes::documented()
    }

    async fn work(self, shutdown: Shutdown) {
        self.0.work(shutdown).await;
    }
}

/// Returns clients of the configured services that share keys.
fn keyshares(base: &Base, common: &Common) -> Result<Vec<PeerClient>, Failure> {
    let named = Service::KEYSHARES.into_iter();
    let named = named.filter(|service| common.peers.contains_key(service));
    named.map(|service| base.peer(service)).collect()
}

/// Returns the threads of this process as the engine. Refuses a configuration of other machines.
fn local(config: &Config) -> Result<Arc<dyn Engine>, Failure> {
    if config.engine.is_some() {
        let refused = "engine: this program has none; use fhaim-computation-ballista";
        return Err(Failure::internal(refused));
    }
    let task_bytes = usize::try_from(config.memory.working_bytes).unwrap_or(usize::MAX);
    Ok(Arc::new(engine::Local { task_bytes }))
}

impl State {
    /// Opens the computation service with an engine.
    ///
    /// # Errors
    /// As [`Program::open`].
    pub async fn open_with(config: &Config, engine: Arc<dyn Engine>) -> Result<Self, Failure> {
        Self::open_as(Self::SERVICE, config, engine).await
    }

    async fn open_as(
        service: Service,
        config: &Config,
        engine: Arc<dyn Engine>,
    ) -> Result<Self, Failure> {
        let common = &config.common;
        let trusted = [Service::Generation, Service::Crypto, Service::Witness];
        let base = Base::open(service, common, &STEPS, &trusted).await?;
        Ok(Self {
            role: match service {
                Service::Witness => Role::Second {
                    first: base.peer(Service::Computation)?,
                    keyshares: keyshares(&base, common)?,
                },
                _ => Role::First,
            },
            crypto: base.peer(Service::Crypto)?,
            tasks: Tasks::new(
                base.store.clone(),
                store::batches::TABLE,
                common.lease_seconds,
            ),
            datasets: Arc::new(datasets::Cache::new(config.datasets_in_memory)),
            queued: Arc::default(),
            ended: Arc::default(),
            upload_bytes: config.upload_bytes,
            stored_bytes: config.stored_bytes,
            memory: config.memory,
            engine,
            common: Arc::new(common.clone()),
            base,
        })
    }

    /// Lists the datasets of this service with their receipts.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn holdings(&self) -> Result<Vec<Held>, Failure> {
        let store = &self.base.store;
        let mut all = Vec::new();
        for dataset in store::uploads::all(store).await? {
            let receipts = store::uploads::receipts(store, dataset).await?;
            all.push(Held {
                dataset,
                complete: store::uploads::is_complete(store, dataset).await?,
                receipts: receipts.unwrap_or_default(),
            });
        }
        Ok(all)
    }
}

impl Housekeeping for State {
    const FOLDER: &'static str = "uploads";
    const COUNTERS: &'static [Counter] = &[("objects_received_total", &[])];

    async fn folders(&self) -> Result<BTreeSet<String>, Failure> {
        Ok(store::uploads::folders(&self.base.store).await?)
    }

    async fn tidy(&self) -> Result<(), Failure> {
        uploads::finish_deletions(self).await
    }

    async fn unnamed(&self, folder: &str, blobs: &[String]) -> Result<BTreeSet<String>, Failure> {
        let named = store::uploads::blobs(&self.base.store, folder).await?;
        let keys = ["public", "evaluation"].map(|key| format!("{folder}/{key}"));
        let unnamed = blobs
            .iter()
            .filter(|blob| !named.contains(*blob) && !keys.contains(*blob));
        Ok(unnamed.cloned().collect())
    }

    fn queue(&self) -> Option<(&'static str, &Tasks)> {
        Some((Self::TASK, &self.tasks))
    }
}
