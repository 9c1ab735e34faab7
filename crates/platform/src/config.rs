//! Configuration: a TOML file, and environment variables that override it.
//!
//! `FHAIM_COMPUTATION__DATABASE__URL=...` sets `url` of `[database]` for the computation service:
//! the prefix names the program, two underscores step into a table. A field that the program does
//! not know is an error, wherever it comes from.

use fhaim_api::token::Service;
use serde::{Deserialize, de::DeserializeOwned};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Why a configuration was not read.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{}: {source}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// A field is missing, unknown, or of the wrong kind.
    #[error("{place}: {}", source.message())]
    Fields {
        /// The file and the program's variables.
        place: String,
        /// Which field and why.
        source: Box<toml::de::Error>,
    },
    /// A variable steps into a field that has no fields.
    #[error("{0}: it names a field within a field that has none")]
    Variable(String),
}

/// What every service needs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Common {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The database.
    pub database: Database,
    /// Where blobs go: `file:///path` or `s3://bucket/prefix`.
    pub blobs: Blobs,
    /// Secrets at rest.
    pub sealing: Sealing,
    /// Base addresses of the other services, such as `http://127.0.0.1:8082`.
    pub peers: BTreeMap<Service, String>,
    /// Logs.
    #[serde(default)]
    pub log: Log,
    /// Tasks worked on at a time. Of two or more, one is never for an owner who has all others.
    #[serde(default = "two")]
    pub workers: usize,
    /// Seconds a worker has before another takes its work over, unless it renews.
    #[serde(default = "thirty")]
    pub lease_seconds: u64,
    /// Seconds after which a blob is deleted that nothing names: what a killed service left. Longer
    /// than any request takes.
    #[serde(default = "an_hour")]
    pub orphan_seconds: u64,
    /// Seconds after which an attempt at a task is broken off, to be begun again where it was
    /// stored last: it hangs.
    #[serde(default = "a_day")]
    pub attempt_seconds: u64,
}

fn two() -> usize {
    2
}

fn an_hour() -> u64 {
    3600
}

fn a_day() -> u64 {
    24 * 3600
}

fn thirty() -> u64 {
    30
}

/// The database.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Database {
    /// `sqlite:///path/file.db` or `postgres://user:password@host/name`.
    pub url: String,
    /// Most connections at a time.
    #[serde(default = "eight")]
    pub connections: u32,
}

fn eight() -> u32 {
    8
}

/// Where blobs go.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blobs {
    /// `file:///path` or `s3://bucket/prefix`.
    pub url: String,
    /// Address of an S3 server other than Amazon's. Credentials come from the usual variables
    /// (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`).
    #[serde(default)]
    pub endpoint: Option<String>,
    /// The bucket's region.
    #[serde(default)]
    pub region: Option<String>,
}

/// Where the sealing keys are: in a variable or a file, one a line, 64 hexadecimal digits each.
/// The first seals; all open.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealing {
    /// A file of keys.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// A variable that holds keys.
    #[serde(default)]
    pub variable: Option<String>,
}

/// Logs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// One JSON object a line rather than text for people.
    #[serde(default)]
    pub json: bool,
    /// What to log, as `tracing-subscriber` filters say it; `info` by default.
    #[serde(default)]
    pub filter: Option<String>,
}

/// Reads a program's configuration from a file (if one is named) and the environment: a service's by the service's
/// name.
///
/// # Errors
/// What is wrong, with the file or the field.
pub fn load<T: DeserializeOwned>(
    program: &'static str,
    file: Option<&Path>,
) -> Result<T, ConfigError> {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let text = file.map(|path| {
        std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        })
    });
    let table = match (file, text.transpose()?) {
        (Some(path), Some(text)) => text.parse().map_err(|source| ConfigError::Syntax {
            path: path.to_owned(),
            source: Box::new(source),
        })?,
        _ => Table::new(),
    };
    let place = match file {
        Some(path) => format!("{} or a variable {}*", path.display(), prefix(program)),
        None => format!("the variables {}*", prefix(program)),
    };
    merge(program, &place, table, variables)
}

/// How the names of a program's variables begin.
fn prefix(program: &str) -> String {
    format!("FHAIM_{}__", program.to_uppercase())
}

/// A table with what the variables override.
fn merge<T: DeserializeOwned>(
    program: &str,
    place: &str,
    mut table: Table,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<T, ConfigError> {
    let prefix = prefix(program);
    for (name, text) in variables {
        if let Some(field) = name.strip_prefix(&prefix) {
            let path: Vec<String> = field.split("__").map(str::to_lowercase).collect();
            set(&mut table, &path, &text).ok_or(ConfigError::Variable(name))?;
        }
    }
    T::deserialize(table).map_err(|source| ConfigError::Fields {
        place: place.to_owned(),
        source: Box::new(source),
    })
}

fn set(table: &mut Table, path: &[String], text: &str) -> Option<()> {
    let (last, tables) = path.split_last()?;
    let mut table = table;
    for name in tables {
        let entry = table.entry(name.as_str());
        table = entry
            .or_insert_with(|| Value::Table(Table::new()))
            .as_table_mut()?;
    }
    table.insert(last.clone(), value(text));
    Some(())
}

/// Numbers and truth values as such, everything else as text.
fn value(text: &str) -> Value {
    if let Ok(number) = text.parse() {
        return Value::Integer(number);
    }
    match text.parse() {
        Ok(truth) => Value::Boolean(truth),
        Err(_) => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        listen = "127.0.0.1:8082"
        database = { url = "sqlite://a.db" }
        blobs = { url = "file:///data" }
        sealing = { variable = "KEYS" }
        peers = { crypto = "http://127.0.0.1:8083" }
    "#;

    fn read(variables: &[(&str, &str)]) -> Result<Common, ConfigError> {
        let variables = variables
            .iter()
            .map(|(a, b)| (a.to_string(), b.to_string()));
        merge("computation", "", FILE.parse().unwrap(), variables)
    }

    #[test]
    fn variables_of_the_service_override_the_file() {
        let config = read(&[
            ("FHAIM_COMPUTATION__DATABASE__URL", "postgres://db/x"),
            ("FHAIM_COMPUTATION__WORKERS", "3"),
            ("FHAIM_CRYPTO__WORKERS", "4"),
        ])
        .unwrap();
        assert_eq!(config.database.url, "postgres://db/x");
        assert_eq!(config.workers, 3);
        assert_eq!(config.peers[&Service::Crypto], "http://127.0.0.1:8083");
    }

    #[test]
    fn unknown_fields_and_steps_into_values_are_errors() {
        let unknown = read(&[("FHAIM_COMPUTATION__WORKRES", "3")]).unwrap_err();
        assert!(unknown.to_string().contains("workres"), "{unknown}");
        let inside = read(&[("FHAIM_COMPUTATION__LISTEN__PORT", "3")]).unwrap_err();
        assert!(matches!(inside, ConfigError::Variable(_)));
    }
}
