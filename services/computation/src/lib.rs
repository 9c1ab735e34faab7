//! The computation entity: ciphertexts in, sealed releases out.
//!
//! | module | for |
//! |---|---|
//! | [`routes`] | the HTTP surface |
//! | [`uploads`] | what holders send: registered, checked object by object, sealed |
//! | [`batches`] | releases that jobs ask for, as tasks under a lease |
//! | [`datasets`] | complete uploads, ready to compute on |
//! | [`worker`] | a batch: computed, sealed durably, and only then sent to be decrypted |
//!
//! No route returns a ciphertext, and none of what it holds can be decrypted here.

pub mod batches;
pub mod datasets;
pub mod routes;
pub mod uploads;
pub mod worker;

use axum::extract::FromRef;
use fhaim_api::token::Service;
use fhaim_platform::blobs::Blobs;
use fhaim_platform::config::Common;
use fhaim_platform::lease::Tasks;
use fhaim_platform::peer::{self, PeerClient};
use fhaim_platform::program::Program;
use fhaim_platform::seal::Sealer;
use fhaim_platform::shutdown::Shutdown;
use fhaim_platform::store::{COMMON, Step, Store};
use fhaim_platform::token::{Signer, Verifier};
use fhaim_platform::{Failure, server, step};
use serde::Deserialize;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// The service's tables.
pub const STEPS: [Step; 2] = [COMMON, step!("computation", 2, "uploads")];

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
    /// What batches may take.
    #[serde(default)]
    pub memory: Memory,
}

/// What a dataset takes in memory, beside its noise and keys.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// Columns that take more bytes than this are not kept: every batch reads them anew, some
    /// record chunks at a time.
    pub dataset_bytes: u64,
    /// About what a batch takes for record chunks that it read, for what it computes from them,
    /// and for sums over them.
    pub working_bytes: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            dataset_bytes: 1 << 30,
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

/// Everything a handler or a worker needs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct State {
    pub(crate) store: Store,
    pub(crate) blobs: Blobs,
    pub(crate) signer: Arc<Signer>,
    verifier: Arc<Verifier>,
    pub(crate) crypto: PeerClient,
    pub(crate) tasks: Tasks,
    pub(crate) datasets: Arc<datasets::Cache>,
    /// Raised when a batch was queued.
    pub(crate) queued: Arc<Notify>,
    /// Raised when a batch came to an end.
    pub(crate) ended: Arc<Notify>,
    pub(crate) upload_bytes: u64,
    pub(crate) memory: Memory,
    workers: usize,
}

impl FromRef<State> for Arc<Verifier> {
    fn from_ref(state: &State) -> Self {
        state.verifier.clone()
    }
}

impl State {
    /// Opens the database, the blobs and the keys that a configuration names.
    ///
    /// # Errors
    /// What cannot be opened.
    pub async fn open(config: &Config) -> Result<Self, Failure> {
        let common = &config.common;
        let store = Store::open(&common.database, &STEPS).await?;
        let sealer = Arc::new(Sealer::from_config(&common.sealing)?);
        let signer = Signer::open(Service::Computation, store.clone(), sealer).await?;
        let signer = Arc::new(signer);
        let http = peer::http_client().map_err(Failure::internal)?;
        let address = common.peers.get(&Service::Crypto);
        let address = address.ok_or_else(|| Failure::internal("peers: crypto is missing"))?;
        let crypto = PeerClient::new(Service::Crypto, address, signer.clone(), http.clone());
        Ok(Self {
            verifier: Arc::new(Verifier::new(signer.clone(), &common.peers, http)),
            blobs: Blobs::open(&common.blobs)?,
            tasks: Tasks::new(store.clone(), "batches", common.lease_seconds),
            datasets: Arc::new(datasets::Cache::new(config.datasets_in_memory)),
            crypto,
            queued: Arc::default(),
            ended: Arc::default(),
            upload_bytes: config.upload_bytes,
            memory: config.memory,
            workers: common.workers.max(1),
            store,
            signer,
        })
    }

    async fn ready(self) -> Result<(), Failure> {
        self.store.check().await?;
        Ok(self.blobs.check().await?)
    }
}

/// The service's routes with everything around them.
pub fn router(state: State) -> axum::Router {
    let ready = state.clone();
    let ready: server::Ready = Arc::new(move || Box::pin(ready.clone().ready()));
    let (routes, _) = routes::documented().split_for_parts();
    server::around(Service::Computation, routes.with_state(state), ready)
}

/// The OpenAPI document.
pub fn openapi() -> utoipa::openapi::OpenApi {
    routes::documented().split_for_parts().1
}

/// Works on batches and rotates the token signing key when it is due, until `shutdown`.
pub async fn workers(state: State, shutdown: Shutdown) {
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..state.workers {
        running.spawn(worker::run(state.clone(), shutdown.clone()));
    }
    running.spawn(async move { state.signer.rotate_when_due(&shutdown).await });
    while running.join_next().await.is_some() {}
}

/// The service as a program.
#[derive(Debug)]
pub struct ComputationService;

impl Program for ComputationService {
    type Config = Config;
    const SERVICE: Service = Service::Computation;
    const NAME: &'static str = "fhaim-computation";
    const ABOUT: &'static str = "Ciphertexts in, sealed releases out";

    fn common(config: &Config) -> &Common {
        &config.common
    }

    fn document() -> serde_json::Result<String> {
        openapi().to_pretty_json()
    }

    async fn run(
        config: &Config,
        listener: TcpListener,
        shutdown: Shutdown,
    ) -> Result<(), Failure> {
        let state = State::open(config).await?;
        let workers = tokio::spawn(workers(state.clone(), shutdown.clone()));
        let served = server::serve(listener, router(state.clone()), shutdown).await;
        workers.await.map_err(Failure::internal)?;
        state.store.close().await;
        served.map_err(Failure::internal)
    }
}
