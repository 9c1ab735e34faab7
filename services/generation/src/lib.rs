//! The generation entity as a service: accounts, datasets, jobs, models, synthetic tables.
//!
//! | module | for |
//! |---|---|
//! | `worker` | the database and the computation service around it, under a lease |
//! | `accounts` | sign-up, sessions, API keys, rate limits |
//! | `limits` | what an account may have |
//! | `datasets`, `jobs`, `events` | what a user sees of the work |
//! | `results`, `synthetic` | releases, models, and tables drawn from them |
//! | `links` | results that other accounts may see |
//! | `routes` | the HTTP surface |
//! | `store` | all statements |
//! | `problem` | all refusals |
//!
//! It holds nothing about the records that is not already differentially private: it asks the
//! computation service for releases and gets integers.

mod accounts;
mod answers;
mod attachment;
mod config;
mod datasets;
mod events;
mod jobs;
mod limits;
mod links;
mod models;
mod paging;
mod problem;
mod put;
mod results;
mod routes;
mod state;
mod store;
mod synthetic;
mod worker;

pub use accounts::Change;
pub use config::{Config, Limits};
pub use state::{STEPS, State};
