//! Commands that work with a server, or run one. They need the feature `server`.

use clap::Subcommand;
use fhaim_files::progress::Progress;

use crate::error::Error;
use crate::randomness::Randomness;
use crate::remote::args::{
    AccountCommand, DatasetCommand, JobCommand, LEDGER_EXAMPLES, ShowArguments,
};
use crate::remote::job::{DOWNLOAD_EXAMPLES, DownloadArguments};
use crate::remote::link::LinkCommand;
use crate::remote::verify::{VERIFY_EXAMPLES, VerifyArguments};
use crate::remote::{account, dataset, job, ledger, link, verify};
use crate::serve::{self, AdminCommand, ServeCommand, UP_EXAMPLES, UpArguments};

/// Commands that work with a server, or run one.
#[derive(Debug, Subcommand)]
pub enum ServerCommand<R: Randomness> {
    /// Run all services in this process, with one data folder
    #[command(after_help = UP_EXAMPLES)]
    Up(UpArguments),
    /// Run one service with its own configuration
    #[command(subcommand)]
    Serve(ServeCommand),
    /// Back up and restore services, and manage accounts, jobs and frozen datasets
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Sign in or out, and manage your account
    #[command(subcommand)]
    Account(AccountCommand),
    /// Create, upload, list, show, sign, rename or delete datasets
    #[command(subcommand)]
    Dataset(DatasetCommand<R>),
    /// Run, watch, list, show, annotate, cancel or retry jobs
    #[command(subcommand)]
    Job(JobCommand),
    /// Download a synthetic table or the model of a finished job
    #[command(after_help = DOWNLOAD_EXAMPLES)]
    Download(DownloadArguments),
    /// Make, list, show or revoke links that share a result with other accounts
    #[command(subcommand)]
    Link(LinkCommand),
    /// Print the privacy ledger of a dataset
    #[command(after_help = LEDGER_EXAMPLES)]
    Ledger(ShowArguments),
    /// Check every released integer against your table and its noise
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArguments),
}

impl<R: Randomness> ServerCommand<R> {
    /// Runs the command.
    pub fn run(&self, progress: &Progress) -> Result<(), Error> {
        match self {
            Self::Up(arguments) => serve::up(arguments),
            Self::Serve(command) => serve::serve(command),
            Self::Admin(command) => serve::admin(command),
            command => serve::runtime()?.block_on(command.run_remotely(progress)),
        }
    }

    async fn run_remotely(&self, progress: &Progress) -> Result<(), Error> {
        match self {
            Self::Account(command) => account::run(command).await,
            Self::Dataset(command) => dataset::run(command, progress).await,
            Self::Job(command) => job::run(command, progress).await,
            Self::Download(arguments) => job::download(arguments, progress).await,
            Self::Link(command) => link::run(command).await,
            Self::Ledger(arguments) => ledger::run(arguments).await,
            Self::Verify(arguments) => verify::run(arguments, progress).await,
            Self::Up(_) | Self::Serve(_) | Self::Admin(_) => Ok(()),
        }
    }
}
