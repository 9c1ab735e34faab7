//! Configuration: a TOML file, and environment variables that override it.
//!
//! `FHAIM_COMPUTATION__DATABASE__URL=...` sets `url` of `[database]` for the computation service. The prefix names the
//! program, and two underscores step into a table. An unknown field is an error, in the file and in variables.

use fhaim_api::token::Service;
use serde::{Deserialize, de::DeserializeOwned};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The reason why a configuration cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is neither a file nor a variable.
    #[error("no configuration: name its file with --config, or set the variables {0}*")]
    None(String),
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{}: {source}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Position and reason.
        source: Box<toml::de::Error>,
    },
    /// A field is missing, unknown, or of the wrong kind.
    #[error("{place}: {}", source.message())]
    Fields {
        /// The file and the prefix of the program's variables.
        place: String,
        /// Field and reason.
        source: Box<toml::de::Error>,
    },
    /// A variable names a field of a value that is not a table.
    #[error("{0}: the variable names a field of a value that is not a table")]
    Variable(String),
}

/// The configuration that every service needs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Common {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The database.
    pub database: Database,
    /// The blob store: `file:///path` or `s3://bucket/prefix`.
    pub blobs: Blobs,
    /// The keys for secrets at rest.
    pub sealing: Sealing,
    /// Base addresses of the other services, such as `http://127.0.0.1:8082`.
    pub peers: BTreeMap<Service, String>,
    /// Logs.
    #[serde(default)]
    pub log: Log,
    /// Number of tasks worked on at a time. With two or more, one worker is reserved so that a single owner cannot
    /// occupy all of them.
    #[serde(default = "two")]
    pub workers: usize,
    /// Seconds after which another worker takes a task over, unless its worker renews the lease.
    #[serde(default = "thirty")]
    pub lease_seconds: u64,
    /// Seconds after which a blob without a row is deleted. A killed service leaves such blobs. Must be longer than
    /// any request takes.
    #[serde(default = "an_hour")]
    pub orphan_seconds: u64,
    /// Bytes that are kept free on the disk of a SQLite database, for deletions and sign-ins when the disk is full.
    #[serde(default = "reserved")]
    pub reserve_bytes: u64,
    /// Seconds after which an attempt at a task is aborted because it hangs. The next attempt continues from the last
    /// stored state.
    #[serde(default = "a_day")]
    pub attempt_seconds: u64,
}

fn two() -> usize {
    2
}

fn an_hour() -> u64 {
    3600
}

fn reserved() -> u64 {
    64 << 20
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
    /// Largest number of connections at a time.
    #[serde(default = "eight")]
    pub connections: u32,
}

fn eight() -> u32 {
    8
}

/// The blob store.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blobs {
    /// `file:///path` or `s3://bucket/prefix`.
    pub url: String,
    /// Address of an S3 server other than Amazon's. Credentials are read from the usual variables
    /// (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`).
    #[serde(default)]
    pub endpoint: Option<String>,
    /// The bucket's region.
    #[serde(default)]
    pub region: Option<String>,
}

/// The place of the sealing keys: a variable or a file with one key per line, 64 hexadecimal digits each. The first
/// key seals, and all keys open.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealing {
    /// File with the keys.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// Environment variable with the keys.
    #[serde(default)]
    pub variable: Option<String>,
}

/// Logs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// Whether to write one JSON object per line instead of text.
    #[serde(default)]
    pub json: bool,
    /// Filter in the syntax of `tracing-subscriber`; `info` by default.
    #[serde(default)]
    pub filter: Option<String>,
}

/// Reads a program's configuration from a file, if one is named, and from the environment. A service's program has
/// the name of the service.
///
/// # Errors
/// [`ConfigError`] with the file or the field.
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

/// Returns the prefix of a program's variables.
fn prefix(program: &str) -> String {
    format!("FHAIM_{}__", program.to_uppercase())
}

/// Overrides a table with the variables, and deserializes it.
fn merge<T: DeserializeOwned>(
    program: &str,
    place: &str,
    mut table: Table,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<T, ConfigError> {
    let prefix = prefix(program);
    let mut is_empty = table.is_empty();
    for (name, text) in variables {
        if let Some(field) = name.strip_prefix(&prefix) {
            is_empty = false;
            let path: Vec<String> = field.split("__").map(str::to_lowercase).collect();
            set(&mut table, &path, &text).ok_or(ConfigError::Variable(name))?;
        }
    }
    if is_empty {
        return Err(ConfigError::None(prefix));
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

/// Parses numbers and truth values. Everything else is text.
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
    fn unknown_fields_and_fields_of_values_are_rejected() {
        let unknown = read(&[("FHAIM_COMPUTATION__WORKRES", "3")]).unwrap_err();
        assert!(unknown.to_string().contains("workres"), "{unknown}");
        let inside = read(&[("FHAIM_COMPUTATION__LISTEN__PORT", "3")]).unwrap_err();
        assert!(matches!(inside, ConfigError::Variable(_)));
    }
}
