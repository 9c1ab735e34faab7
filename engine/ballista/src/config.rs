//! Configurations of the programs, and their common settings for Ballista.

use crate::tls::Identity;
use ballista_core::config as keys;
use ballista_core::extension::SessionConfigExt;
use datafusion::prelude::SessionConfig;
use fhaim_computation::engine::Certificates;
use fhaim_platform::config::{Blobs, ConfigError};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Largest size of a message in bytes. A plan has all orders of a batch.
pub const MESSAGE_BYTES: u32 = 256 << 20;

/// Configuration of `fhaim-executor`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Executor {
    /// Address at which other executors and the computation service fetch results.
    pub listen: SocketAddr,
    /// Host name for others, if it is not the address in `listen`. The certificate must have it.
    #[serde(default)]
    pub name: Option<String>,
    /// Certificate and key of this program, and the authority.
    pub tls: Certificates,
    /// Host of the scheduler.
    pub scheduler_host: String,
    /// Port of the scheduler.
    pub scheduler_port: u16,
    /// Folder for data between stages.
    pub work: PathBuf,
    /// Number of tasks at a time.
    pub tasks: usize,
    /// Memory for all tasks together in bytes: at least `tasks` times the computation service's `task_bytes`.
    pub memory_bytes: u64,
    /// Seconds between two heartbeats.
    #[serde(default = "five")]
    pub heartbeat_seconds: u64,
    /// Blob store of the computation service.
    pub blobs: Blobs,
}

/// Configuration of `fhaim-scheduler`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduler {
    /// Address at which executors and the computation service reach it.
    pub listen: SocketAddr,
    /// Host name for others. The certificate must have it.
    pub name: String,
    /// Certificate and key of this program, and the authority.
    pub tls: Certificates,
    /// Seconds without a heartbeat after which an executor is removed.
    #[serde(default = "twenty")]
    pub executor_timeout_seconds: u64,
    /// Number of tries of a task or a stage.
    #[serde(default = "twenty_times")]
    pub tries: usize,
}

fn five() -> u64 {
    5
}

fn twenty() -> u64 {
    20
}

fn twenty_times() -> usize {
    20
}

/// Reason why a program did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file that the configuration names cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The certificates or the scheduler's address are invalid.
    #[error("invalid TLS configuration: {0}")]
    Tls(String),
    /// The blob store cannot be opened.
    #[error(transparent)]
    Blobs(#[from] fhaim_platform::blobs::BlobError),
    /// The system cannot create a thread or a folder.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// An error of Ballista.
    #[error("{0}")]
    Ballista(String),
}

/// Returns the session settings for a batch: one row at a time because rows have megabytes, no compression because
/// ciphertexts do not compress, one task per order, and TLS for all connections.
pub fn session(identity: &Identity) -> SessionConfig {
    let bytes = MESSAGE_BYTES.to_string();
    let session = SessionConfig::new_with_ballista()
        .with_batch_size(1)
        .with_ballista_use_tls(true)
        .with_ballista_override_create_grpc_client_endpoint(identity.everywhere());
    [
        (keys::BALLISTA_SHUFFLE_SORT_BASED_BATCH_SIZE, "1"),
        (keys::BALLISTA_SHUFFLE_COMPRESSION_CODEC, "none"),
        (keys::BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK, "1"),
        (keys::BALLISTA_CLIENT_GRPC_MAX_MESSAGE_SIZE, bytes.as_str()),
    ]
    .into_iter()
    .fold(session, |session, (key, value)| session.set_str(key, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_computation::engine::Remote;
    use fhaim_platform::config::load;
    use std::path::Path;

    #[test]
    fn sample_configurations_are_valid_and_agree() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra/config");
        let scheduler: Scheduler = load("scheduler", Some(&folder.join("scheduler.toml"))).unwrap();
        let executor: Executor = load("executor", Some(&folder.join("executor.toml"))).unwrap();
        assert_eq!(executor.scheduler_host, scheduler.name);
        assert_eq!(executor.scheduler_port, scheduler.listen.port());
        // The memory is enough for the computation service's default size of tasks.
        let remote: Remote = toml::from_str(
            "scheduler = \"https://scheduler:50050\"\n\
             tls = { authority = \"a\", certificate = \"b\", key = \"c\" }",
        )
        .unwrap();
        assert!(executor.memory_bytes >= (executor.tasks * remote.task_bytes) as u64);
    }
}
