//! Configuration.

use fhaim_platform::config::Common;
use serde::Deserialize;
use std::num::NonZeroU32;

/// Configuration of the generation service.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Settings common to all services. `peers` must name the computation service and the crypto
    /// service.
    pub common: Common,
    /// Whether anyone may sign up. If not, only [`crate::State::create_account`] creates accounts.
    #[serde(default = "open")]
    pub sign_up: bool,
    /// Limits on each account and caller.
    #[serde(default)]
    pub limits: Limits,
}

fn open() -> bool {
    true
}

impl From<Common> for Config {
    /// Returns a configuration with defaults for everything but `common`.
    fn from(common: Common) -> Self {
        Self {
            common,
            sign_up: open(),
            limits: Limits::default(),
        }
    }
}

/// Limits on each account and caller.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Sign-ins and sign-ups per minute from one address (for IPv6, from one /64).
    pub sign_ins_per_address: NonZeroU32,
    /// Sign-ins per minute to one account from one address (for IPv6, from one /64).
    pub sign_ins_per_email: NonZeroU32,
    /// Header whose last entry is the caller's address, such as `x-forwarded-for`, for a service
    /// behind a reverse proxy. Leave it out where callers connect directly: they could forge it.
    pub address_header: Option<String>,
    /// The largest model that a dataset's terms may allow, in bytes of its junction tree.
    pub model_bytes: usize,
    /// Models kept in memory between requests, in bytes.
    pub cached_model_bytes: usize,
    /// Number of synthetic tables drawn at the same time. A table in Parquet takes up to 70 MB.
    pub synthetic_tables: usize,
    /// Number of synthetic tables drawn at the same time by one account.
    pub synthetic_tables_per_account: usize,
    /// Number of datasets of one account.
    pub datasets: u64,
    /// Number of jobs of one account in any state. Deleting a dataset deletes its jobs.
    pub jobs: u64,
    /// Number of queued or running jobs of one account.
    pub jobs_under_way: u64,
    /// Number of API keys of one account.
    pub api_keys: u64,
    /// Number of links of one account that open results for other accounts.
    pub links: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sign_ins_per_address: NonZeroU32::MIN.saturating_add(59),
            sign_ins_per_email: NonZeroU32::MIN.saturating_add(9),
            address_header: None,
            model_bytes: 256 << 20,
            cached_model_bytes: 512 << 20,
            synthetic_tables: 8,
            synthetic_tables_per_account: 2,
            datasets: 200,
            jobs: 10_000,
            jobs_under_way: 100,
            api_keys: 100,
            links: 1_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_api::token::Service;
    use fhaim_platform::config::{ConfigError, load};

    const FILE: &str = r#"
        sign_up = false

        [limits]
        sign_ins_per_email = 5
        address_header = "x-forwarded-for"

        [common]
        listen = "127.0.0.1:8081"
        database = { url = "sqlite://generation.db" }
        blobs = { url = "file:///var/lib/fhaim/generation" }
        sealing = { file = "/etc/fhaim/keys" }
        peers = { computation = "http://127.0.0.1:8082" }
    "#;

    fn read(text: &str) -> Result<Config, ConfigError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        load(Service::Generation.as_str(), Some(file.path()))
    }

    #[test]
    fn omitted_fields_have_defaults() {
        let config = read(FILE).unwrap();
        assert!(!config.sign_up);
        assert_eq!(config.limits.sign_ins_per_email.get(), 5);
        assert_eq!(config.limits.sign_ins_per_address.get(), 60);
        assert_eq!(config.common.workers, 2);
    }

    #[test]
    fn unknown_and_invalid_fields_are_rejected() {
        for (right, wrong) in [("sign_up", "signup"), ("sign_ins_per", "logins_per")] {
            let error = read(&FILE.replace(right, wrong)).unwrap_err().to_string();
            assert!(error.contains(wrong), "{error}");
        }
        assert!(matches!(
            read(&FILE.replace("= 5", "= 0")),
            Err(ConfigError::Fields { .. })
        ));
    }
}
