//! The crypto service: makes keys, keeps the privacy ledger, and decrypts only debited releases.
//!
//! | module | contents |
//! |---|---|
//! | [`routes`] | HTTP routes |
//! | [`keys`] | key sets: made once, sealed, destroyed with the dataset |
//! | [`limits`] | limits of an account |
//! | [`decryption`] | assigns runs; judges, debits and then answers releases |
//! | [`witness`] | digests that a second computation service reports |
//! | [`shares`] | keys that several services share |
//! | [`ledger`] | each dataset's chain of acts, and receipts for it |
//! | [`audit`] | a log of all requests for keys and releases |
//! | [`store`] | SQL statements |
//! | [`problem`] | refusals and their problem documents |
//!
//! The service calls only the services that [share keys](shares) with it. It refuses releases beyond a
//! dataset's budget even if the other services ask for them, and all its refusals that depend on a release's pages
//! read alike.
//!
//! # Example
//!
//! ```sh
//! fhaim serve crypto --config crypto.toml    # and `--openapi` prints the routes
//! ```
//!
//! # Neighbours
//!
//! It builds on `fhaim-dp` (prices), `fhaim-protocol` (decisions) and `fhaim-platform`. The computation service and the
//! generation service call it.

pub mod answers;
pub mod audit;
pub mod decryption;
pub mod holders;
pub mod keys;
pub mod ledger;
pub mod limits;
pub mod problem;
pub mod routes;
pub mod shares;
pub mod store;
pub mod upload_keys;
pub mod witness;

use fhaim_api::token::Service;
use fhaim_platform::base::Base;
use fhaim_platform::config::Common;
use fhaim_platform::housekeeping::{self, Counter, Housekeeping};
use fhaim_platform::program::Program;
use fhaim_platform::shutdown::Shutdown;
use fhaim_platform::store::Step;
use fhaim_platform::threads::Shared;
use fhaim_platform::{Failure, step};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;

/// The steps that create the service's tables.
pub const STEPS: [Step; 1] = [step!(Step::FIRST_OF_SERVICE, "crypto")];

/// Configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Settings common to all services. `peers` must name the generation service, which vouches for
    /// datasets, and the computation service. If it also names a `witness`, datasets can have a second
    /// computation service.
    pub common: Common,
    /// Limits of one account.
    #[serde(default)]
    pub limits: Limits,
    /// How the service shares keys. The crypto service shares them with the key-share services among its peers.
    #[serde(default)]
    pub sharing: shares::Settings,
}

/// Limits of one account.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Number of key sets that are not destroyed. Every 16 MB of a dataset's keys count as one.
    pub key_sets: u64,
    /// Number of key sets made within 24 hours, including destroyed ones, because their ledgers remain.
    pub key_sets_a_day: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            key_sets: 200,
            key_sets_a_day: 400,
        }
    }
}

/// Number of key sets made at the same time. Each takes tens of megabytes; an account makes only one at a time.
const KEY_SETS_AT_ONCE: usize = 2;

/// Shared state of the handlers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct State {
    pub(crate) base: Base,
    pub(crate) limits: Limits,
    pub(crate) making: Arc<Shared>,
    /// Datasets whose keys are being made.
    pub(crate) in_the_making: keys::InTheMaking,
    /// Whether a second computation service is configured, so that its tokens can be checked.
    pub(crate) has_witness: bool,
    /// The name of this service among those that share keys.
    pub(crate) service: Service,
    pub(crate) sharing: Arc<shares::KeySharing>,
}

impl Program for State {
    type Config = Config;
    type Handlers = Self;
    const SERVICE: Service = Service::Crypto;
    const NAME: &'static str = "fhaim-crypto";
    const ABOUT: &'static str = "Keys, the privacy ledger, decryption";

    fn common(config: &Config) -> &Common {
        &config.common
    }

    fn base(&self) -> &Base {
        &self.base
    }

    async fn open(config: &Config) -> Result<Self, Failure> {
        Self::open_as(Self::SERVICE, config).await
    }

    fn handlers(self) -> Self {
        self
    }

    fn routes() -> OpenApiRouter<Self> {
        routes::documented()
    }

    async fn work(self, shutdown: Shutdown) {
        housekeeping::keep(&self, &shutdown).await;
    }
}

/// The key-share service with number `N`, which shares keys with the crypto service. It is the same program. The crypto
/// service asks it for shares, and it has no accounts.
#[derive(Clone, Debug)]
pub struct Keyshare<const N: usize>(State);

impl<const N: usize> Program for Keyshare<N> {
    type Config = Config;
    type Handlers = State;
    const SERVICE: Service = Service::KEYSHARES[N - 1];
    const NAME: &'static str = "fhaim-keyshare";
    const ABOUT: &'static str = "Holds a share of keys and its own ledger";

    fn common(config: &Config) -> &Common {
        &config.common
    }

    fn base(&self) -> &Base {
        &self.0.base
    }

    async fn open(config: &Config) -> Result<Self, Failure> {
        Ok(Self(State::open_as(Self::SERVICE, config).await?))
    }

    fn handlers(self) -> State {
        self.0
    }

    fn routes() -> OpenApiRouter<State> {
        shares::routes::documented()
    }

    async fn work(self, shutdown: Shutdown) {
        self.0.work(shutdown).await;
    }
}

impl State {
    async fn open_as(service: Service, config: &Config) -> Result<Self, Failure> {
        let common = &config.common;
        let trusted = match service {
            Service::Crypto => [Service::Generation, Service::Computation, Service::Witness],
            _ => [Service::Crypto, Service::Crypto, Service::Witness],
        };
        let base = Base::open(service, common, &STEPS, &trusted).await?;
        let mut peers = Vec::new();
        for peer in Service::KEYSHARES {
            if service == Service::Crypto && common.peers.contains_key(&peer) {
                peers.push((peer, base.peer(peer)?));
            }
        }
        let sharing = shares::KeySharing::open(service, &base, &config.sharing, peers).await?;
        let state = Self {
            base,
            limits: config.limits,
            making: Arc::new(Shared::new(KEY_SETS_AT_ONCE)),
            in_the_making: keys::InTheMaking::default(),
            has_witness: common.peers.contains_key(&Service::Witness),
            service,
            sharing: Arc::new(sharing),
        };
        Ok(state)
    }
}

impl From<Common> for Config {
    /// Returns a configuration with defaults for everything but `common`.
    fn from(common: Common) -> Self {
        Self {
            common,
            limits: Limits::default(),
            sharing: shares::Settings::default(),
        }
    }
}

impl Housekeeping for State {
    const FOLDER: &'static str = "keys";
    const COUNTERS: &'static [Counter] = decryption::COUNTERS;

    async fn folders(&self) -> Result<BTreeSet<String>, Failure> {
        Ok(store::keys::folders(&self.base.store).await?)
    }

    async fn tidy(&self) -> Result<(), Failure> {
        shares::first::tell(self).await;
        Ok(())
    }

    async fn measure(&self) -> Result<(), Failure> {
        let ledgers = store::chain::ledgers(&self.base.store).await?;
        metrics::gauge!("key_sets").set(ledgers.key_sets as f64);
        metrics::gauge!("datasets_frozen").set(ledgers.frozen as f64);
        metrics::gauge!("ledger_acts").set(ledgers.acts as f64);
        metrics::gauge!("datasets_debited").set(ledgers.debited as f64);
        Ok(())
    }
}
