//! `fhaim account ...`.

use std::collections::BTreeMap;

use fhaim_api::usage::Used;

use super::{
    args::{AccountCommand, ListArguments},
    login,
};
use crate::{error::Error, output};

pub async fn run(command: &AccountCommand) -> Result<(), Error> {
    match command {
        AccountCommand::Usage(arguments) => usage(arguments).await,
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

/// Bytes in megabytes; a count as it is.
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
    fn bytes_are_told_in_megabytes() {
        let stored = Used::new("stored_bytes", 1_500_000, 2_000_000_000);
        assert_eq!(amount(&stored, stored.used), "1.5 MB");
        let datasets = Used::new("datasets", 3, 200);
        assert_eq!(amount(&datasets, datasets.most), "200");
    }
}
