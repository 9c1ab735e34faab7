//! `fhaim admin`: an operator's work on the stores of the services.

pub mod args;
mod compare;
mod orphans;

use fhaim_api::account::{ApiKey, Secret};
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_computation::store::batches::Name;
use fhaim_domain::counted;
use fhaim_generation::Change;
use fhaim_platform::Failure;
use fhaim_platform::config::{self, Common, ConfigError};
use fhaim_platform::program::Program;
use fhaim_platform::runner::Work;
use fhaim_platform::seal::Sealer;
use serde::de::DeserializeOwned;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use self::args::{
    AccountArguments, AdminCommand, BatchArguments, KeysArguments, LeaseArguments, Named, Place,
    ThawArguments,
};
use super::{backup, runtime, up};
use crate::{error::Error, output};

/// Runs a subcommand of `fhaim admin`.
pub fn run(command: &AdminCommand) -> Result<(), Error> {
    runtime()?.block_on(async {
        match command {
            AdminCommand::Backup(arguments) => backup::backup(arguments).await,
            AdminCommand::Restore(arguments) => backup::restore(arguments).await,
            AdminCommand::Thaw(arguments) => thaw(arguments).await,
            AdminCommand::Release(arguments) => release_lease(arguments).await,
            AdminCommand::Reopen(arguments) => reopen_batch(arguments).await,
            AdminCommand::Orphans(arguments) => orphans::run(arguments).await,
            AdminCommand::Compare(arguments) => compare::run(arguments).await,
            AdminCommand::Keys(arguments) => keys(arguments).await,
            AdminCommand::Password(arguments) => reset_password(arguments).await,
            AdminCommand::Disable(arguments) => {
                change(arguments, Change::Disable, "disabled").await
            }
            AdminCommand::Enable(arguments) => change(arguments, Change::Enable, "enabled").await,
        }
    })
}

/// Opens a service's store.
async fn open<P>(place: &Place) -> Result<P, Error>
where
    P: Program,
    P::Config: From<Common> + DeserializeOwned,
{
    let config = match &place.data_dir {
        Some(data) => P::Config::from(up::stored(data, P::SERVICE)?),
        None => config::load(P::SERVICE.as_str(), place.config.as_deref()).map_err(|error| {
            Error::Usage(match error {
                ConfigError::None(_) => {
                    format!("{error}, or name the data folder of `fhaim up` with --data-dir")
                }
                _ => error.to_string(),
            })
        })?,
    };
    Ok(P::open(&config).await?)
}

async fn thaw(arguments: &ThawArguments) -> Result<(), Error> {
    let (place, dataset) = (&arguments.place, arguments.dataset);
    let state = match arguments.keyshare {
        None => open::<fhaim_crypto::State>(place).await?,
        Some(1) => open::<fhaim_crypto::Keyshare<1>>(place).await?.handlers(),
        Some(_) => open::<fhaim_crypto::Keyshare<2>>(place).await?.handlers(),
    };
    let thawed = fhaim_crypto::ledger::thaw(&state, dataset).await;
    thawed.map_err(|failure| unknown_or(failure, &format!("dataset {dataset}")))?;
    output::print(&format!("{dataset} is resumed\n"))
}

async fn release_lease(arguments: &LeaseArguments) -> Result<(), Error> {
    let (place, task) = (&arguments.place, &arguments.task);
    let released = match arguments.service {
        Named::Generation => {
            let state: fhaim_generation::State = open(place).await?;
            state.tasks().release(task).await
        }
        Named::Computation => {
            let state: fhaim_computation::State = open(place).await?;
            state.tasks().release(task).await
        }
        Named::Crypto => {
            let reason = "the crypto service has no leases: use generation or computation";
            return Err(Error::Usage(reason.to_owned()));
        }
    };
    match released.map_err(Failure::from)? {
        true => output::print(&format!("{task} is free\n")),
        false => Err(Error::Service(format!(
            "{task}: no worker has a lease of it"
        ))),
    }
}

async fn reopen_batch(arguments: &BatchArguments) -> Result<(), Error> {
    let state: fhaim_computation::State = open(&arguments.place).await?;
    let name = Name {
        dataset: arguments.dataset,
        job: arguments.job,
        first: arguments.first,
    };
    let reopened = fhaim_computation::batches::reopen(&state, name).await;
    reopened.map_err(|failure| {
        let (dataset, job, first) = (name.dataset, name.job, name.first);
        unknown_or(
            failure,
            &format!("batch {first} of job {job} of dataset {dataset}"),
        )
    })?;
    output::print(&format!(
        "{}/{} is queued\n",
        arguments.job, arguments.first
    ))
}

/// Sets and prints a new password: half a sealing key, which has 128 random bits as text.
async fn reset_password(arguments: &AccountArguments) -> Result<(), Error> {
    let drawn = Sealer::new_key().map_err(Failure::from)?;
    let password = drawn.get(..32).unwrap_or(&drawn).to_owned();
    let state: fhaim_generation::State = open(&arguments.place).await?;
    let change = Change::Password(Secret(password.clone()));
    let changed = state.change_account(&arguments.email, change).await;
    changed.map_err(|failure| unknown_or(failure, &of_address(arguments)))?;
    output::print(&format!("{password}\n"))
}

/// Lists the API keys of an account, or revokes some.
async fn keys(arguments: &KeysArguments) -> Result<(), Error> {
    let account = &arguments.account;
    let state: fhaim_generation::State = open(&account.place).await?;
    let keys = state.api_keys(&account.email).await;
    let keys = keys.map_err(|failure| unknown_or(failure, &of_address(account)))?;
    if arguments.revoke_all || arguments.revoke.is_some() {
        return revoke(&state, arguments, keys.len()).await;
    }
    if keys.is_empty() {
        let email = &account.email;
        fhaim_files::tell_line(format_args!("note: {email} has no API keys"));
    }
    let date = |at: OffsetDateTime| at.format(&Rfc3339).unwrap_or_default();
    let line = |key: ApiKey| {
        let used = key.last_used_at.map_or("never used".to_owned(), date);
        let (id, made, name) = (key.id, date(key.created_at), key.name);
        format!("{id}  {made}  {used:20}  {name}\n")
    };
    output::print(&keys.into_iter().map(line).collect::<String>())
}

/// Revokes one key of an account, or all of its `count` keys.
async fn revoke(
    state: &fhaim_generation::State,
    arguments: &KeysArguments,
    count: usize,
) -> Result<(), Error> {
    let email = &arguments.account.email;
    let what = match arguments.revoke {
        Some(key) => format!("API key {key} of {email}"),
        None => format!("{} of {email}", counted(count, "API key")),
    };
    let revoked = state.change_account(email, Change::Revoke(arguments.revoke));
    revoked
        .await
        .map_err(|failure| unknown_or(failure, &what))?;
    output::print(&format!("{what}: revoked\n"))
}

/// Changes an account, and prints its new state.
async fn change(arguments: &AccountArguments, change: Change, is: &str) -> Result<(), Error> {
    let state: fhaim_generation::State = open(&arguments.place).await?;
    let changed = state.change_account(&arguments.email, change).await;
    let account = changed.map_err(|failure| unknown_or(failure, &of_address(arguments)))?;
    output::print(&format!("account {account} of {}: {is}\n", arguments.email))
}

fn of_address(arguments: &AccountArguments) -> String {
    format!("an account of {}", arguments.email)
}

/// Says what does not exist in place of a bare "Not found".
fn unknown_or(failure: Failure, what: &str) -> Error {
    match failure.kind() {
        ProblemKind::NotFound => Error::Service(format!("this store does not have {what}")),
        _ => failure.into(),
    }
}

/// Converts a service's name on the command line.
impl From<Named> for Service {
    fn from(named: Named) -> Self {
        match named {
            Named::Generation => Self::Generation,
            Named::Computation => Self::Computation,
            Named::Crypto => Self::Crypto,
        }
    }
}
