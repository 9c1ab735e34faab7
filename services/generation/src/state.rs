//! Everything the service's handlers and workers share.

use axum::extract::FromRef;
use fhaim_api::account::{Account, Credentials};
use fhaim_api::token::Service;
use fhaim_platform::base::Base;
use fhaim_platform::lease::Tasks;
use fhaim_platform::peer::PeerClient;
use fhaim_platform::shutdown::{self, Shutdown, Stopper};
use fhaim_platform::store::{COMMON, Step};
use fhaim_platform::token::Verifier;
use fhaim_platform::{Failure, step};
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
    pub(crate) base: Base,
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
        state.base.verifier.clone()
    }
}

impl State {
    /// Opens the database, the blobs and the keys that a configuration names.
    ///
    /// # Errors
    /// What cannot be opened, or no address of the computation service.
    pub async fn open(config: &Config) -> Result<Self, Failure> {
        let common = &config.common;
        // No other service calls this one: it accepts its own users' tokens alone.
        let base = Base::open(Service::Generation, common, &STEPS, &[]).await?;
        let (stopper, stopping) = shutdown::channel();
        Ok(Self(Arc::new(Inner {
            computation: base.peer(Service::Computation)?,
            tasks: Tasks::new(base.store.clone(), "jobs", common.lease_seconds),
            passwords: Passwords::new().await?,
            sign_ins: SignInLimits::new(&config.limits),
            models: Models::new(config.limits.cached_model_bytes),
            plans: Semaphore::new(PLANS_AT_ONCE),
            tables: Arc::new(Semaphore::new(config.limits.synthetic_tables)),
            wake: Notify::new(),
            config: config.clone(),
            base,
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
        self.base.store.close().await;
    }
}
