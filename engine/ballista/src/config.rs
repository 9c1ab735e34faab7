//! Configuration of the programs, and what all of them ask of Ballista.

use crate::tls::Identity;
use ballista_core::config as keys;
use ballista_core::extension::SessionConfigExt;
use datafusion::prelude::SessionConfig;
use fhaim_computation::engine::Certificates;
use fhaim_platform::config::{Blobs, ConfigError};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Bytes of a message at most: plans have all orders of a batch in them.
pub const MESSAGE_BYTES: u32 = 256 << 20;

/// Of `fhaim-executor`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Executor {
    /// Where other executors and the computation service fetch results.
    pub listen: SocketAddr,
    /// The name that others reach it by, if that is not the address it listens at. Its certificate has it.
    #[serde(default)]
    pub name: Option<String>,
    /// Who it is to the others.
    pub tls: Certificates,
    /// Host of the scheduler.
    pub scheduler_host: String,
    /// Port of the scheduler.
    pub scheduler_port: u16,
    /// A folder for what goes from stage to stage.
    pub work: PathBuf,
    /// Tasks at a time.
    pub tasks: usize,
    /// Bytes that all tasks together may take: at least `tasks` times the computation service's
    /// `task_bytes`.
    pub memory_bytes: u64,
    /// Seconds between two signs of life.
    #[serde(default = "five")]
    pub heartbeat_seconds: u64,
    /// Where the computation service keeps its blobs.
    pub blobs: Blobs,
}

/// Of `fhaim-scheduler`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduler {
    /// Where executors and the computation service reach it.
    pub listen: SocketAddr,
    /// The name that others reach it by. Its certificate has it.
    pub name: String,
    /// Who it is to the others.
    pub tls: Certificates,
    /// Seconds without a sign of life after which an executor is given up.
    #[serde(default = "twenty")]
    pub executor_timeout_seconds: u64,
    /// How often a task or a stage is tried.
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

/// Why a program did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file that the configuration names cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Certificates.
    #[error("certificates: {0}")]
    Tls(String),
    /// The blob store.
    #[error(transparent)]
    Blobs(#[from] fhaim_platform::blobs::BlobError),
    /// Threads, folders.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// Ballista.
    #[error("{0}")]
    Ballista(String),
}

/// What a batch asks of Ballista: rows of megabytes, so few at a time; ciphertexts, which do not
/// compress; a task for each order; and TLS wherever it connects.
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
    fn the_samples_are_configurations() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra/config");
        let scheduler: Scheduler = load("scheduler", Some(&folder.join("scheduler.toml"))).unwrap();
        let executor: Executor = load("executor", Some(&folder.join("executor.toml"))).unwrap();
        assert_eq!(executor.scheduler_host, scheduler.name);
        assert_eq!(executor.scheduler_port, scheduler.listen.port());
        // The computation service's default tasks fit.
        let remote: Remote = toml::from_str(
            "scheduler = \"https://scheduler:50050\"\n\
             tls = { authority = \"a\", certificate = \"b\", key = \"c\" }",
        )
        .unwrap();
        assert!(executor.memory_bytes >= (executor.tasks * remote.task_bytes) as u64);
    }
}
