//! `fhaim account ...`.

use std::collections::BTreeMap;

use fhaim_api::usage::Used;
use fhaim_domain::counted;
use fhaim_files::{ask, can_ask};

use super::{
    args::{AccountCommand, CloseArguments, ListArguments},
    login,
};
use crate::{error::Error, output};

pub async fn run(command: &AccountCommand) -> Result<(), Error> {
    match command {
        AccountCommand::Login(arguments) => login::login(arguments).await,
        AccountCommand::Logout(arguments) => login::logout(arguments).await,
        AccountCommand::Usage(arguments) => usage(arguments).await,
        AccountCommand::Password => change_password().await,
        AccountCommand::Delete(arguments) => close(arguments).await,
    }
}

async fn usage(arguments: &ListArguments) -> Result<(), Error> {
    let used = login::client()?.usage().await?;
    if arguments.json {
        return output::print_json(&used.into_iter().collect::<BTreeMap<_, _>>());
    }
    let line = |service: &str, used: &Used| {
        let (limit, used, most) = (
            &used.limit,
            amount(used, used.used),
            amount(used, used.most),
        );
        format!("{service:12} {limit:16} {used:>10} of {most}\n")
    };
    let lines = used
        .iter()
        .flat_map(|(service, limits)| limits.iter().map(|used| line(service.as_str(), used)));
    output::print(&lines.collect::<String>())
}

async fn change_password() -> Result<(), Error> {
    let client = login::client()?;
    let old = login::password()?;
    let new = login::secret("FHAIM_NEW_PASSWORD", "New password: ")?;
    client.change_password(old, new).await?;
    output::print("the password was changed, and all other sessions have ended\n")
}

async fn close(arguments: &CloseArguments) -> Result<(), Error> {
    let client = login::client()?;
    let account = client.account().await?.email;
    let datasets = client.datasets().await?;
    let datasets = datasets.items.len() + datasets.damaged.len();
    if !arguments.yes {
        if !can_ask() {
            let reason =
                "cannot ask for confirmation without a terminal: use --yes to delete the account";
            return Err(Error::Usage(reason.to_owned()));
        }
        let datasets = counted(datasets, "dataset");
        let question = format!("Delete {account} and its {datasets}? This cannot be undone.");
        if !ask(&question)? {
            return Err(Error::Usage("cancelled: nothing was deleted".to_owned()));
        }
    }
    client.close_account(login::password()?).await?;
    login::forget()?;
    output::print(&format!("{account}: deleted\n"))
}

/// Formats an amount: bytes in megabytes, and a count as a number.
fn amount(of: &Used, number: u64) -> String {
    match of.limit.ends_with("_bytes") {
        true => format!("{:.1} MB", number as f64 / 1e6),
        false => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_formatted_in_megabytes() {
        let stored = Used::new("stored_bytes", 1_500_000, 2_000_000_000);
        assert_eq!(amount(&stored, stored.used), "1.5 MB");
        let datasets = Used::new("datasets", 3, 200);
        assert_eq!(amount(&datasets, datasets.most), "200");
    }
}
