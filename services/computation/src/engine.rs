//! Engines that compute batches: the threads of this process, or other machines for a program that
//! brings such an engine.

use fhaim_he::{Backend, BlobPlace, Threads};
use serde::Deserialize;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

/// A factory of backends for datasets.
pub trait Engine: Debug + Send + Sync {
    /// Returns a backend for the dataset with these evaluation keys.
    fn backend(&self, keys: BlobPlace) -> Arc<dyn Backend>;
}

/// The threads of this process.
#[derive(Clone, Copy, Debug)]
pub struct Local {
    /// Approximate memory of a task in bytes.
    pub task_bytes: usize,
}

impl Engine for Local {
    fn backend(&self, _: BlobPlace) -> Arc<dyn Backend> {
        Arc::new(Threads::with_memory(self.task_bytes))
    }
}

/// Paths of the PEM files that identify a program of an engine. All certificates of an engine come
/// from one authority of the operator, which is used for nothing else.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificates {
    /// The authority's certificate.
    pub authority: PathBuf,
    /// The program's own certificate for client and server, with the name or address of its host.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// An engine on other machines. `fhaim-computation` does not support it, but
/// `fhaim-computation-ballista` (engine/ballista) does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remote {
    /// Address of the scheduler: `https://host:port`.
    pub scheduler: String,
    /// Certificates that identify this service to the scheduler and the executors.
    pub tls: Certificates,
    /// Batches with fewer ciphertext products run on the threads of this process.
    #[serde(default = "hundred_thousand")]
    pub least_products: u64,
    /// Approximate memory of a task on an executor, in bytes.
    #[serde(default = "quarter_gib")]
    pub task_bytes: usize,
    /// Minimum number of tasks that multiply and of tasks that pack; set it to the executors' cores.
    #[serde(default = "sixteen")]
    pub packers: usize,
    /// Number of times that a batch is submitted before its attempt ends.
    #[serde(default = "four")]
    pub attempts: u32,
    /// Seconds between two submissions.
    #[serde(default = "five")]
    pub pause_seconds: u64,
}

/// Two cores compute about this many products in ten seconds (docs/ENGINE.md). A batch of any size takes one
/// second more on other machines.
fn hundred_thousand() -> u64 {
    100_000
}

fn quarter_gib() -> usize {
    1 << 28
}

fn sixteen() -> usize {
    16
}

fn four() -> u32 {
    4
}

fn five() -> u64 {
    5
}
