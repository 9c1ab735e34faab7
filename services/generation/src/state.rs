//! Everything the service's handlers and workers share.

use axum::extract::FromRef;
use fhaim_api::account::{Account, Credentials};
use fhaim_api::token::Service;
use fhaim_platform::blobs::Blobs;
use fhaim_platform::lease::Tasks;
use fhaim_platform::peer::{self, PeerClient};
use fhaim_platform::seal::Sealer;
use fhaim_platform::shutdown::{self, Shutdown, Stopper};
use fhaim_platform::store::{COMMON, Step, Store};
use fhaim_platform::token::{Signer, Verifier};
use fhaim_platform::{Failure, step};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::{Notify, Semaphore};

use crate::Config;
use crate::accounts::{self, Passwords, SignInLimits};
use crate::models::Models;

/// The service's tables.
pub const STEPS: [Step; 3] = [
    COMMON,
    step!("generation", 2, "accounts"),
    step!("generation", 3, "jobs"),
];

/// Plans of new datasets worked out at a time.
const PLANS_AT_ONCE: usize = 2;

/// Everything the service's handlers and workers share. Cheap to clone.
#[derive(Clone)]
pub struct State(Arc<Inner>);

/// What [`State`] points to.
pub struct Inner {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) blobs: Blobs,
    pub(crate) signer: Arc<Signer>,
    verifier: Arc<Verifier>,
    pub(crate) computation: PeerClient,
    pub(crate) tasks: Tasks,
    pub(crate) passwords: Passwords,
    pub(crate) sign_ins: SignInLimits,
    pub(crate) models: Models,
    pub(crate) plans: Semaphore,
    pub(crate) tables: Arc<Semaphore>,
    /// Wakes a worker when there is something to do.
    pub(crate) wake: Notify,
    stopper: Stopper,
    /// Raised when event streams have to end.
    pub(crate) stopping: Shutdown,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("State(generation)")
    }
}

impl Deref for State {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
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
    /// What cannot be opened, or no address of the computation service.
    pub async fn open(config: &Config) -> Result<Self, Failure> {
        let common = &config.common;
        let store = Store::open(&common.database, &STEPS).await?;
        let sealer = Arc::new(Sealer::from_config(&common.sealing)?);
        let signer = Signer::open(Service::Generation, store.clone(), sealer).await?;
        let signer = Arc::new(signer);
        let http = peer::http_client().map_err(Failure::internal)?;
        let address = common.peers.get(&Service::Computation);
        let address = address.ok_or_else(|| Failure::internal("peers: computation is missing"))?;
        let computation =
            PeerClient::new(Service::Computation, address, signer.clone(), http.clone());
        let (stopper, stopping) = shutdown::channel();
        Ok(Self(Arc::new(Inner {
            // No other service calls this one: it accepts its own users' tokens alone.
            verifier: Arc::new(Verifier::new(signer.clone(), &BTreeMap::new(), http)),
            blobs: Blobs::open(&common.blobs)?,
            computation,
            tasks: Tasks::new(store.clone(), "jobs", common.lease_seconds),
            passwords: Passwords::new().await?,
            sign_ins: SignInLimits::new(&config.limits),
            models: Models::new(config.limits.cached_model_bytes),
            plans: Semaphore::new(PLANS_AT_ONCE),
            tables: Arc::new(Semaphore::new(config.limits.synthetic_tables)),
            wake: Notify::new(),
            config: config.clone(),
            store,
            signer,
            stopper,
            stopping,
        })))
    }

    /// Makes an account, whether or not sign-up is open.
    ///
    /// # Errors
    /// An address or a password that cannot be used, an address that has an account.
    pub async fn create_account(&self, credentials: Credentials) -> Result<Account, Failure> {
        accounts::create(self, credentials).await
    }

    /// Ends event streams, so that a server can stop. [`crate::workers`] does so when it is told
    /// to stop.
    pub fn stop(&self) {
        self.stopper.stop();
    }

    /// Closes the database.
    pub async fn close(&self) {
        self.store.close().await;
    }

    pub(crate) async fn ready(self) -> Result<(), Failure> {
        self.store.check().await?;
        Ok(self.blobs.check().await?)
    }
}
