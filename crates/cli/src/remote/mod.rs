//! Commands that talk to the services.

mod account;
pub mod args;
pub mod dataset;
mod forecast;
mod holders;
pub mod job;
pub mod link;
pub mod login;
pub mod verify;

use fhaim_files::progress::Progress;

use crate::{args::Command, error::Error, randomness::Randomness};

/// Runs a command that talks to the services.
pub fn run<R: Randomness>(command: &Command<R>, progress: &Progress) -> Result<(), Error> {
    let runtime = super::serve::runtime()?;
    runtime.block_on(async {
        match command {
            Command::Account(command) => account::run(command).await,
            Command::Dataset(command) => dataset::run(command, progress).await,
            Command::Job(command) => job::run(command, progress).await,
            Command::Download(arguments) => job::download(arguments, progress).await,
            Command::Link(command) => link::run(command).await,
            Command::Ledger(arguments) => dataset::ledger(arguments).await,
            Command::Verify(arguments) => verify::run(arguments, progress).await,
            _ => Ok(()),
        }
    })
}
