//! The generation service: accounts, datasets, jobs, models and synthetic tables.
//!
//! | module | contents |
//! |---|---|
//! | `worker` | runs jobs under a lease: fits models to releases from the computation service |
//! | `accounts` | sign-up, sessions, API keys, rate limits |
//! | `limits` | limits on the number of objects of an account |
//! | `datasets`, `jobs`, `events` | the users' view of their work |
//! | `results`, `synthetic` | releases, models, and tables drawn from models |
//! | `links` | results that other accounts may open |
//! | `routes` | HTTP routes |
//! | `store` | SQL statements |
//! | `problem` | refusals and their problem documents |
//!
//! Everything that this service knows about the records is already differentially private: it asks
//! the computation service for releases and gets integers.
//!
//! # Example
//!
//! ```sh
//! fhaim serve generation --config generation.toml    # and `--openapi` prints the routes
//! ```
//!
//! # Neighbours
//!
//! It builds on `fhaim-synth` (mechanisms), `fhaim-pgm` (models) and `fhaim-platform`, and calls the computation
//! service and the crypto service.

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
