//! The crypto-service entity: makes keys, keeps the privacy ledger, decrypts what it has debited.
//!
//! | module | for |
//! |---|---|
//! | [`routes`] | the HTTP surface |
//! | [`keys`] | key sets: made once, sealed, destroyed |
//! | [`decryption`] | a release: checked, debited, and only then answered |
//! | [`ledger`] | stored debits and runs |
//! | [`audit`] | everything that was asked |
//!
//! It calls no one. It refuses past a dataset's budget whatever the other services say, and says
//! the same whatever the reason.

pub mod audit;
pub mod decryption;
pub mod keys;
pub mod ledger;
pub mod routes;

use axum::extract::FromRef;
use fhaim_api::token::Service;
use fhaim_platform::blobs::Blobs;
use fhaim_platform::config::Common;
use fhaim_platform::program::Program;
use fhaim_platform::seal::Sealer;
use fhaim_platform::shutdown::Shutdown;
use fhaim_platform::store::{COMMON, Step, Store};
use fhaim_platform::token::{Signer, Verifier};
use fhaim_platform::{Failure, peer, server, step};
use serde::Deserialize;
use std::sync::Arc;
use tokio::net::TcpListener;

/// The service's tables.
pub const STEPS: [Step; 2] = [COMMON, step!("crypto", 2, "key_sets")];

/// Configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What every service needs.
    pub common: Common,
}

/// Everything a handler needs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct State {
    pub(crate) store: Store,
    pub(crate) sealer: Arc<Sealer>,
    pub(crate) blobs: Blobs,
    pub(crate) signer: Arc<Signer>,
    verifier: Arc<Verifier>,
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
        let signer = Signer::open(Service::Crypto, store.clone(), sealer.clone()).await?;
        let signer = Arc::new(signer);
        let http = peer::http_client().map_err(Failure::internal)?;
        Ok(Self {
            verifier: Arc::new(Verifier::new(signer.clone(), &common.peers, http)),
            blobs: Blobs::open(&common.blobs)?,
            store,
            sealer,
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
    server::around(Service::Crypto, routes.with_state(state), ready)
}

/// The OpenAPI document.
pub fn openapi() -> utoipa::openapi::OpenApi {
    routes::documented().split_for_parts().1
}

/// Rotates the token signing key when it is due, until `shutdown`.
pub async fn workers(state: State, shutdown: Shutdown) {
    state.signer.rotate_when_due(&shutdown).await;
}

/// The service as a program.
#[derive(Debug)]
pub struct CryptoService;

impl Program for CryptoService {
    type Config = Config;
    const SERVICE: Service = Service::Crypto;
    const NAME: &'static str = "fhaim-crypto";
    const ABOUT: &'static str = "Keys, the privacy ledger, decryption";

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
