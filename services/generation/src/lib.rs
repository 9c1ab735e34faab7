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
use fhaim_platform::config::Common;
use fhaim_platform::program::Program;
use fhaim_platform::shutdown::Shutdown;
use fhaim_platform::{Failure, server};
use std::time::Duration;
use tokio::net::TcpListener;

/// How long answers under way may take once the service is told to stop.
const GRACE: Duration = Duration::from_secs(10);

/// The service as a program.
#[derive(Debug)]
pub struct GenerationService;

impl Program for GenerationService {
    type Config = Config;
    const SERVICE: Service = Service::Generation;
    const NAME: &'static str = "fhaim-generation";
    const ABOUT: &'static str = "Accounts, jobs, models, synthetic tables";

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
        let working = tokio::spawn(workers(state.clone(), shutdown.clone()));
        let grace = async {
            shutdown.raised().await;
            tokio::time::sleep(GRACE).await;
        };
        let served = tokio::select! {
            served = server::serve(listener, router(state.clone()), shutdown.clone()) => served,
            () = grace => Ok(()),
        };
        working.await.map_err(Failure::internal)?;
        state.close().await;
        served.map_err(Failure::internal)
    }
}
