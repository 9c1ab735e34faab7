//! Everything the service's handlers and workers share.

use fhaim_api::account::{Account, ApiKey, Credentials};
use fhaim_api::token::Service;
use fhaim_platform::base::Base;
use fhaim_platform::config::Common;
use fhaim_platform::housekeeping::Held;
use fhaim_platform::lease::Tasks;
use fhaim_platform::memory;
use fhaim_platform::peer::PeerClient;
use fhaim_platform::program::Program;
use fhaim_platform::shutdown::{self, Shutdown, Stopper};
use fhaim_platform::store::Step;
use fhaim_platform::threads::Few;
use fhaim_platform::{Failure, step};
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::Notify;
use utoipa_axum::router::OpenApiRouter;
use uuid::Uuid;

use crate::accounts::{self, Change, Passwords, SignInLimits};
use crate::models::Models;
use crate::store::{datasets, jobs};
use crate::synthetic::Places;
use crate::{Config, routes, worker};

/// The steps that create the service's tables.
pub const STEPS: [Step; 1] = [step!(Step::FIRST_OF_SERVICE, "generation")];

/// Number of plans of new datasets computed at the same time.
const PLANS_AT_ONCE: usize = 2;

/// Shared state of the service's handlers and workers. Cheap to clone.
#[derive(Clone)]
pub struct State(Arc<Inner>);

/// The contents of a [`State`].
pub struct Inner {
    pub(crate) config: Config,
    pub(crate) base: Base,
    pub(crate) computation: PeerClient,
    /// The crypto service. Deletions that an owner began are continued there.
    pub(crate) crypto: PeerClient,
    /// The second computation service, if one is configured.
    pub(crate) witness: Option<PeerClient>,
    pub(crate) tasks: Tasks,
    pub(crate) passwords: Passwords,
    pub(crate) sign_ins: SignInLimits,
    pub(crate) models: Models,
    pub(crate) plans: Few,
    pub(crate) tables: Places,
    /// Wakes a worker when a job is queued.
    pub(crate) wake: Notify,
    stopper: Stopper,
    /// Raised when event streams must end.
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

impl Program for State {
    type Config = Config;
    type Handlers = Self;
    const SERVICE: Service = Service::Generation;
    const NAME: &'static str = "fhaim-generation";
    const ABOUT: &'static str = "Accounts, jobs, models, synthetic tables";

    fn common(config: &Config) -> &Common {
        &config.common
    }

    fn base(&self) -> &Base {
        &self.base
    }

    async fn open(config: &Config) -> Result<Self, Failure> {
        memory::keep_little();
        let common = &config.common;
        // No other service calls this one, so it accepts only its own users' tokens.
        let base = Base::open(Self::SERVICE, common, &STEPS, &[]).await?;
        let (stopper, stopping) = shutdown::channel();
        Ok(Self(Arc::new(Inner {
            computation: base.peer(Service::Computation)?,
            witness: match common.peers.contains_key(&Service::Witness) {
                true => Some(base.peer(Service::Witness)?),
                false => None,
            },
            crypto: base.peer(Service::Crypto)?,
            tasks: Tasks::new(base.store.clone(), jobs::TABLE, common.lease_seconds),
            passwords: Passwords::new().await?,
            sign_ins: SignInLimits::new(&config.limits),
            models: Models::new(config.limits.cached_model_bytes),
            plans: Few::new(PLANS_AT_ONCE),
            tables: Places::new(
                config.limits.synthetic_tables,
                config.limits.synthetic_tables_per_account,
            ),
            wake: Notify::new(),
            config: config.clone(),
            base,
            stopper,
            stopping,
        })))
    }

    fn handlers(self) -> Self {
        self
    }

    async fn check_account(&self, account: Uuid, epoch: Option<u64>) -> Result<(), Failure> {
        accounts::check_token(self, account, epoch).await
    }

    fn routes() -> OpenApiRouter<Self> {
        routes::documented()
    }

    async fn work(self, shutdown: Shutdown) {
        worker::work(self, shutdown).await;
    }
}

impl State {
    /// Creates an account, even if sign-up is closed.
    ///
    /// # Errors
    /// An invalid address or password, or an address that already has an account.
    pub async fn create_account(&self, credentials: Credentials) -> Result<Account, Failure> {
        accounts::create(self, credentials).await
    }

    /// Lists the API keys of the account with an address, the newest first.
    ///
    /// # Errors
    /// No account with this address.
    pub async fn api_keys(&self, email: &str) -> Result<Vec<ApiKey>, Failure> {
        accounts::keys_of(self, email).await
    }

    /// Applies an operator's change to the account with an address and returns the account's
    /// identifier.
    ///
    /// # Errors
    /// No account with this address; an invalid password; no API key with this identifier.
    pub async fn change_account(&self, email: &str, change: Change) -> Result<Uuid, Failure> {
        accounts::change(self, email, change).await
    }

    /// Lists the datasets of this service with their receipts.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn holdings(&self) -> Result<Vec<Held>, Failure> {
        let mut all = Vec::new();
        for (dataset, ready) in datasets::all_states(&self.base.store).await? {
            let receipts = datasets::receipts(&self.base.store, dataset, "").await?;
            all.push(Held {
                dataset,
                complete: ready,
                receipts,
            });
        }
        Ok(all)
    }

    /// Ends event streams, so that a server can stop. [`Program::work`] calls it on shutdown.
    pub fn stop(&self) {
        self.stopper.stop();
    }

    /// Closes the database.
    pub async fn close(&self) {
        self.base.store.close().await;
    }
}
