//! The computation entity: ciphertexts in, sealed releases out.
//!
//! | module | for |
//! |---|---|
//! | [`routes`] | the HTTP surface |
//! | [`uploads`] | what holders send: registered, checked object by object, sealed |
//! | [`batches`] | releases that jobs ask for, as tasks under a lease |
//! | [`datasets`] | complete uploads in memory, ready to compute on |
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
use fhaim_platform::seal::Sealer;
use fhaim_platform::shutdown::Shutdown;
use fhaim_platform::store::{COMMON, Step, Store};
use fhaim_platform::token::{Signer, Verifier};
use fhaim_platform::{Failure, server, step};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
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
    /// Complete uploads kept in memory.
    #[serde(default = "two")]
    pub datasets_in_memory: usize,
}

fn two() -> usize {
    2
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
    running.spawn(rotate(state, shutdown));
    while running.join_next().await.is_some() {}
}

async fn rotate(state: State, shutdown: Shutdown) {
    loop {
        tokio::select! {
            () = shutdown.raised() => return,
            () = tokio::time::sleep(Duration::from_secs(3600)) => {}
        }
        if let Err(failure) = state.signer.rotate().await {
            tracing::error!(%failure, "the signing keys were not rotated");
        }
    }
}

/// Answers on `listener` until `shutdown`.
///
/// # Errors
/// What cannot be opened, or a failure of the listener.
pub async fn run(
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
