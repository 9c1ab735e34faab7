//! `fhaim link ...`: shares results with other accounts.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::{Args, Subcommand};
use fhaim_api::account::Secret;
use fhaim_api::link::{DEFAULT_DAYS, Link, LinkedResult, MAX_DAYS};
use fhaim_domain::Field;
use fhaim_sdk::LinkAddress;
use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{
    args::{JobArguments, identifier},
    login,
};
use crate::{error::Error, output};

/// Subcommands of `link`.
#[derive(Debug, Subcommand)]
pub enum LinkCommand {
    /// Make a link to a finished job's result, which any other account can open
    #[command(after_help = LINK_MAKE_EXAMPLES)]
    Make(LinkMakeArguments),
    /// List all links to a job's result, newest first, with the time when each was last opened
    #[command(after_help = LINK_LIST_EXAMPLES)]
    List(JobArguments),
    /// Revoke a link, so that nobody can open it any more
    #[command(after_help = LINK_REVOKE_EXAMPLES)]
    Revoke(LinkRevokeArguments),
    /// Show the data card of the result that a link opens
    #[command(after_help = LINK_SHOW_EXAMPLES)]
    Show(LinkShowArguments),
}

const LINK_MAKE_EXAMPLES: &str = "\
Examples:
  fhaim link make 0198c0de-0000-7000-8000-000000000001 --name \"Ben, statistics\" > link.txt
  fhaim link make 0198c0de-0000-7000-8000-000000000001 --name \"our page\" --expires never > link.txt

Anyone with the link and an account on this server can see a data card and draw synthetic tables, on the
web page or with `fhaim download --link-file`. The link does not give access to the releases, or to
anything else of the dataset.

The link is shown only once: the service stores only a digest of its secret. Send it as you would send a
password.";

const LINK_LIST_EXAMPLES: &str = "\
Examples:
  fhaim link list 0198c0de-0000-7000-8000-000000000001";

const LINK_REVOKE_EXAMPLES: &str = "\
Examples:
  fhaim link revoke 0198c0de-0000-7000-8000-000000000001 0198c0de-0000-7000-8000-000000000002

`fhaim link list` shows the identifiers of links. Tables that were already downloaded are not affected.";

const LINK_SHOW_EXAMPLES: &str = "\
Examples:
  fhaim link show --link-file link.txt
  fhaim link show --link-file link.txt --json > card.json";

/// Flags of `link make`.
#[derive(Debug, Args)]
pub struct LinkMakeArguments {
    /// Identifier of the job
    #[arg(value_parser = identifier)]
    pub job: Uuid,
    /// Name of the recipient, which only the dataset's holders can see
    #[arg(long)]
    pub name: String,
    /// Number of days until the link expires, or `never`
    #[arg(long, value_name = "DAYS", default_value_t = Expiry(Some(DEFAULT_DAYS)))]
    pub expires: Expiry,
    /// Print the link's entry as JSON, with the link itself as `address`
    #[arg(long)]
    pub json: bool,
}

/// Number of days for which a link is valid; `None` for a link without expiry.
#[derive(Clone, Copy, Debug)]
pub struct Expiry(Option<u16>);

const NEVER: &str = "never";

impl fmt::Display for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(days) => write!(f, "{days}"),
            None => f.write_str(NEVER),
        }
    }
}

impl FromStr for Expiry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let days = text
            .parse()
            .ok()
            .filter(|days| (1..=MAX_DAYS).contains(days));
        match days {
            None if text != NEVER => Err(format!(
                "use a number of days from 1 to {MAX_DAYS}, or `{NEVER}`"
            )),
            days => Ok(Self(days)),
        }
    }
}

/// Flags of `link revoke`.
#[derive(Debug, Args)]
pub struct LinkRevokeArguments {
    /// Identifier of the job
    #[arg(value_parser = identifier)]
    pub job: Uuid,
    /// Identifier of the link
    #[arg(value_parser = identifier)]
    pub link: Uuid,
}

/// Flags of `link show`.
#[derive(Debug, Args)]
pub struct LinkShowArguments {
    /// File with the link
    #[arg(long, value_name = "FILE")]
    pub link_file: PathBuf,
    /// Print the data card as JSON
    #[arg(long)]
    pub json: bool,
}

/// Maximum number of labels of a column on a data card.
const MAX_LABELS: usize = 8;

pub async fn run(command: &LinkCommand) -> Result<(), Error> {
    match command {
        LinkCommand::Make(arguments) => make(arguments).await,
        LinkCommand::List(arguments) => {
            let links = login::client()?.links(arguments.job).await?;
            if arguments.json {
                return output::print_json(&links);
            }
            output::print(&links.iter().map(line).collect::<String>())
        }
        LinkCommand::Revoke(arguments) => {
            let client = login::client()?;
            client.revoke_link(arguments.job, arguments.link).await?;
            output::print(&format!("{}: revoked\n", arguments.link))
        }
        LinkCommand::Show(arguments) => show(arguments).await,
    }
}

/// Output of `link make --json`.
#[derive(Serialize)]
struct Made<'a> {
    #[serde(flatten)]
    link: &'a Link,
    address: Secret,
}

async fn make(arguments: &LinkMakeArguments) -> Result<(), Error> {
    let client = login::client()?;
    let id = Uuid::now_v7();
    let made = client.create_link(arguments.job, id, &arguments.name, arguments.expires.0);
    let made = made.await?;
    let address = LinkAddress::new(client.endpoints(), &made).text();
    if arguments.json {
        let link = &made.link;
        return output::print_json(&Made { link, address });
    }
    output::print(&Zeroizing::new(format!("{}\n", address.0)))
}

fn line(link: &Link) -> String {
    let opened = match link.last_opened_at {
        Some(at) => format!("last opened {}", minute(at)),
        None => "never opened".to_owned(),
    };
    let ends = match link.expires_at {
        Some(at) if at <= OffsetDateTime::now_utc() => format!("expired {}", minute(at)),
        Some(at) => format!("expires {}", minute(at)),
        None => "never expires".to_owned(),
    };
    let (made, name) = (minute(link.created_at), &link.name);
    format!("{}  made {made}, {opened}, {ends}  {name}\n", link.id)
}

fn minute(at: OffsetDateTime) -> String {
    let (date, hour, minute) = (at.date(), at.hour(), at.minute());
    format!("{date} {hour:02}:{minute:02}")
}

/// Reads a link from a file.
pub fn read(path: &Path) -> Result<LinkAddress, Error> {
    let text = fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    Ok(LinkAddress::parse(&Zeroizing::new(text))?)
}

async fn show(arguments: &LinkShowArguments) -> Result<(), Error> {
    let link = read(&arguments.link_file)?;
    let result = login::client()?.open(&link).await?;
    if arguments.json {
        return output::print_json(&result);
    }
    output::print(&card(&result))
}

/// Formats the data card of a result.
fn card(result: &LinkedResult) -> String {
    let mut text = format!(
        "Synthetic table: {}\n\n\
         Made with fhaim by job {}, which ended {}.\n\
         Differential privacy: epsilon {} at delta {:e} for all jobs of the dataset together (number of \
         jobs: {}), each with the mechanism {}; this job spent rho {:.3e}.\n\
         Number of records estimated by the model: {:.0}. Any number of records can be drawn.\n\n\
         Before you use this table\n",
        result.name,
        result.job,
        result.made_at.date(),
        result.epsilon,
        result.delta,
        result.runs,
        result.mechanism,
        result.spent.rho,
        result.total,
    );
    text.extend(result.caveats.iter().map(|caveat| format!("- {caveat}\n")));
    text.push_str("\nColumns\n");
    let fields = result.schema.fields().iter();
    for field in fields.filter(|field| field.is_written()) {
        text.push_str(&format!("- {}: {}\n", field.name(), values(result, field)));
    }
    text
}

/// Describes a column's values by the first few labels.
fn values(result: &LinkedResult, field: &Field) -> String {
    if field.is_identifier() {
        return "newly generated identifiers".to_owned();
    }
    if let Some(from) = field.derived_from() {
        return format!("derived from {from}");
    }
    // For a column with digits, these are the coarse labels.
    let coarse = result.attributes.get(field.attributes().start);
    let labels = coarse.map_or(&[][..], |attribute| &attribute.labels);
    let shown = labels[..labels.len().min(MAX_LABELS)].join(", ");
    match labels.len().saturating_sub(MAX_LABELS) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_api::link::LinkedAttribute;
    use fhaim_domain::Schema;

    #[test]
    fn data_card_describes_privacy_caveats_and_columns() {
        let categories: Vec<String> = (0..10).map(|n| format!("c{n}")).collect();
        let schema = serde_json::json!({ "name": "t", "columns": [
            { "name": "ward", "kind": "categorical", "categories": ["S\u{fc}d, alt", "Nord"] },
            { "name": "code", "kind": "categorical", "categories": categories },
            { "name": "id", "kind": "identifier", "pattern": "P[0-9]{5}" },
            { "name": "ward again", "kind": "derived", "from": "ward" },
        ] });
        let schema: Schema = serde_json::from_value(schema).unwrap();
        let attribute = |column: &fhaim_domain::Column| LinkedAttribute {
            name: column.name().to_owned(),
            labels: (0..column.size() as u32).map(|c| column.label(c)).collect(),
        };
        let text = card(&LinkedResult {
            job: Uuid::nil(),
            name: "Admissions".to_owned(),
            attributes: schema.columns().iter().map(attribute).collect(),
            schema,
            total: 1999.6,
            epsilon: 0.5,
            delta: 1e-9,
            runs: 2,
            mechanism: "staged".to_owned(),
            spent: fhaim_dp::Rho::ZERO.into(),
            made_at: OffsetDateTime::UNIX_EPOCH,
            caveats: vec!["Mind the gap.".to_owned()],
        });
        for words in [
            "Synthetic table: Admissions\n",
            "which ended 1970-01-01.",
            "epsilon 0.5 at delta 1e-9 for all jobs of the dataset together (number of jobs: 2)",
            "Number of records estimated by the model: 2000.",
            "- Mind the gap.\n",
            "- ward: S\u{fc}d, alt, Nord\n",
            "- code: c0, c1, c2, c3, c4, c5, c6, c7 and 2 more\n",
            "- id: newly generated identifiers\n",
            "- ward again: derived from ward\n",
        ] {
            assert!(text.contains(words), "{words:?}: {text}");
        }
    }
}
