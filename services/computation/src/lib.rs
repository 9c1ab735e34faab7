//! The computation entity: ciphertexts in, sealed releases out.
//!
//! | module | for |
//! |---|---|
//! | [`routes`] | the HTTP surface |
//! | [`uploads`] | what holders send: registered, checked object by object, sealed |
//! | [`limits`] | what an account may have |
//! | [`batches`] | releases that jobs ask for, and then look at |
//! | [`runs`] | which window of the noise a job has: assigned by the crypto service |
//! | [`datasets`] | complete uploads, ready to compute on |
//! | [`engine`] | who computes: this process, or other machines |
//! | [`worker`] | a batch: computed, sealed durably, and only then sent to be decrypted |
//! | [`store`] | all statements |
//! | [`problem`] | all refusals |
//!
//! No route returns a ciphertext, but to a [second computation service](Witness) where the terms of a
//! dataset have one, and none of what it holds can be decrypted here.

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

/// The service's tables.
pub const STEPS: [Step; 1] = [step!(Step::FIRST_OF_SERVICE, "computation")];

/// Configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What every service needs.
    pub common: Common,
    /// Datasets kept ready.
    #[serde(default = "two")]
    pub datasets_in_memory: usize,
    /// The largest upload accepted, in bytes.
    #[serde(default = "most_upload_bytes")]
    pub upload_bytes: u64,
    /// Bytes that all uploads of one account may take together, once they are complete.
    #[serde(default = "most_stored_bytes")]
    pub stored_bytes: u64,
    /// What batches may take.
    #[serde(default)]
    pub memory: Memory,
    /// Other machines that compute, for the program that has an engine.
    #[serde(default)]
    pub engine: Option<engine::Remote>,
}

/// What a dataset takes in memory, beside its noise and keys.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// Columns that take more bytes than this, those of all holders together, are not kept: every
    /// batch reads them anew, some record chunks at a time.
    pub dataset_bytes: u64,
    /// Counts that take more bytes than this are not accepted: a batch needs all of them, the sum of
    /// all holders', so they are always kept.
    pub counts_bytes: u64,
    /// About what a batch takes for record chunks that it read, for what it computes from them,
    /// and for sums over them. Each worker has a batch of its own.
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

/// Everything a handler or a worker needs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct State {
    /// What every service has.
    pub base: Base,
    /// What batches may take.
    pub memory: Memory,
    /// Who computes.
    pub(crate) engine: Arc<dyn Engine>,
    /// Which of the two computation services it is.
    pub(crate) role: Role,
    pub(crate) crypto: PeerClient,
    pub(crate) tasks: Tasks,
    pub(crate) datasets: Arc<datasets::Cache>,
    /// Raised when a batch was queued.
    pub(crate) queued: Arc<Notify>,
    /// Raised when a batch came to an end.
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
    /// What a configuration that says nothing more has.
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

/// Which of two computation services one is.
#[derive(Clone, Debug)]
pub(crate) enum Role {
    /// The one that holders upload to, and that has decrypted what it computes.
    First,
    /// The one that has copies of that, computes the same, and says what came of it.
    Second {
        /// Where it copies from.
        first: PeerClient,
        /// The services that share keys with the crypto service, in the order of their numbers: each waits for its
        /// word.
        keyshares: Vec<PeerClient>,
    },
}

/// The second computation service: the same program under another name, in another role.
#[derive(Clone, Debug)]
pub struct Witness(State);

impl Program for Witness {
    type Config = Config;
    type Handlers = State;
    const SERVICE: Service = Service::Witness;
    const NAME: &'static str = "fhaim-witness";
    const ABOUT: &'static str =
        "Computes what the computation service does, and says what came of it";

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

/// Clients of the services that share keys, as far as the configuration names them.
fn keyshares(base: &Base, common: &Common) -> Result<Vec<PeerClient>, Failure> {
    let named = Service::KEYSHARES.into_iter();
    let named = named.filter(|service| common.peers.contains_key(service));
    named.map(|service| base.peer(service)).collect()
}

/// The threads of this process; refuses a configuration that names other machines.
fn local(config: &Config) -> Result<Arc<dyn Engine>, Failure> {
    if config.engine.is_some() {
        let refused = "this program has no engine: fhaim-computation-ballista does";
        return Err(Failure::internal(refused));
    }
    let task_bytes = usize::try_from(config.memory.working_bytes).unwrap_or(usize::MAX);
    Ok(Arc::new(engine::Local { task_bytes }))
}

impl State {
    /// The computation service with an engine.
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

    /// What it keeps of each dataset.
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
