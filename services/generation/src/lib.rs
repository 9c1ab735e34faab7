//! The generation entity as a service: accounts, datasets, jobs, models, synthetic tables.
//!
//! | module | for |
//! |---|---|
//! | [`mod@run`] | a job as a state machine without I/O |
//! | `worker` | the database and the computation service around it, under a lease |
//! | `accounts` | sign-up, sessions, API keys, rate limits |
//! | `datasets`, `jobs`, `events` | what a user sees of the work |
//! | `results`, `synthetic` | releases, models, and tables drawn from them |
//! | `routes` | the HTTP surface |
//!
//! It holds nothing about the records that is not already differentially private: it asks the
//! computation service for releases and gets integers.

mod accounts;
mod answers;
mod config;
mod datasets;
mod events;
mod jobs;
mod models;
mod paging;
mod results;
mod routes;
mod rows;
pub mod run;
mod state;
mod synthetic;
mod worker;

pub use config::{Config, Limits};
pub use routes::{openapi, router};
pub use state::{STEPS, State};
pub use worker::workers;

use fhaim_api::token::Service;
use fhaim_platform::Failure;
use fhaim_platform::base::Base;
use fhaim_platform::config::Common;
use fhaim_platform::program::Program;
use fhaim_platform::shutdown::Shutdown;

/// The service as a program.
#[derive(Debug)]
pub struct GenerationService;

impl Program for GenerationService {
    type Config = Config;
    type State = State;
    const SERVICE: Service = Service::Generation;
    const NAME: &'static str = "fhaim-generation";
    const ABOUT: &'static str = "Accounts, jobs, models, synthetic tables";

    fn common(config: &Config) -> &Common {
        &config.common
    }

    fn base(state: &State) -> &Base {
        &state.base
    }

    async fn open(config: &Config) -> Result<State, Failure> {
        State::open(config).await
    }

    fn router(state: State) -> axum::Router {
        router(state)
    }

    async fn workers(state: State, shutdown: Shutdown) {
        workers(state, shutdown).await;
    }

    fn document() -> serde_json::Result<String> {
        openapi().to_pretty_json()
    }
}
