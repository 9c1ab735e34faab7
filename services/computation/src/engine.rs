//! Who computes batches: the threads of this process, or an engine on other machines that a program
//! with one gives it.

use fhaim_he::{Backend, BlobPlace, Threads};
use serde::Deserialize;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

/// Makes the backend of each dataset.
pub trait Engine: Debug + Send + Sync {
    /// The backend for a dataset with these evaluation keys.
    fn backend(&self, keys: BlobPlace) -> Arc<dyn Backend>;
}

/// The threads of this process.
#[derive(Clone, Copy, Debug)]
pub struct Local {
    /// About what a task may take, in bytes.
    pub task_bytes: usize,
}

impl Engine for Local {
    fn backend(&self, _: BlobPlace) -> Arc<dyn Backend> {
        Arc::new(Threads::with_memory(self.task_bytes))
    }
}

/// Who a program of an engine is to the others: PEM files. All of an engine's certificates are of one
/// authority, which is the operator's and vouches for nothing else.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificates {
    /// The authority's certificate.
    pub authority: PathBuf,
    /// The program's own, for client and server, with the name or address that others reach it by.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// An engine on other machines, as a configuration names it. `fhaim-computation` has none;
/// `fhaim-computation-ballista` (engine/ballista) does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remote {
    /// Address of the scheduler: `https://host:port`.
    pub scheduler: String,
    /// Who this service is to scheduler and executors.
    pub tls: Certificates,
    /// Batches of fewer products of ciphertexts run on the threads of this process.
    #[serde(default = "hundred_thousand")]
    pub least_products: u64,
    /// About how many bytes a task may take on an executor.
    #[serde(default = "quarter_gib")]
    pub task_bytes: usize,
    /// Tasks that multiply, and tasks that pack, at least: as many as the executors have cores.
    #[serde(default = "sixteen")]
    pub packers: usize,
    /// How often a batch is submitted before its attempt ends.
    #[serde(default = "four")]
    pub attempts: u32,
    /// Seconds between two.
    #[serde(default = "five")]
    pub pause_seconds: u64,
}

/// What two cores take about ten seconds for (docs/ENGINE.md): a batch on other machines takes a second more whatever
/// its size.
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
