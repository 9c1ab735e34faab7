//! The crypto-service entity: makes keys, keeps the privacy ledger, decrypts what it has debited.
//!
//! | module | for |
//! |---|---|
//! | [`routes`] | the HTTP surface |
//! | [`keys`] | key sets: made once, sealed, destroyed |
//! | [`decryption`] | runs assigned, releases judged and debited, and only then answered |
//! | [`ledger`] | each dataset's chain of acts, and receipts for it |
//! | [`landed`] | ledgers of the release before |
//! | [`audit`] | everything that was asked |
//! | [`store`] | all statements |
//! | [`problem`] | all refusals |
//!
//! It calls no one. It refuses past a dataset's budget whatever the other services say, and says
//! the same whatever the reason.

pub mod audit;
pub mod decryption;
pub mod keys;
pub mod landed;
pub mod ledger;
pub mod problem;
pub mod routes;
pub mod store;

use fhaim_api::token::Service;
use fhaim_platform::base::Base;
use fhaim_platform::config::Common;
use fhaim_platform::program::Program;
use fhaim_platform::shutdown::Shutdown;
use fhaim_platform::store::{COMMON, Step};
use fhaim_platform::{Failure, step};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;

/// The service's tables.
pub const STEPS: [Step; 3] = [
    COMMON,
    step!("crypto", 2, "key_sets"),
    step!("crypto", 3, "chain"),
];

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
    pub(crate) base: Base,
}

impl Program for State {
    type Config = Config;
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
        let trusted = [Service::Generation, Service::Computation];
        let base = Base::open(Self::SERVICE, &config.common, &STEPS, &trusted).await?;
        let state = Self { base };
        landed::adopt(&state).await?;
        Ok(state)
    }

    fn routes() -> OpenApiRouter<Self> {
        routes::documented()
    }

    async fn work(self, shutdown: Shutdown) {
        self.base.signer.rotate_when_due(&shutdown).await;
    }
}
