//! Who computes batches: the threads of this process, or an engine on other machines that a program
//! with one gives it.

use fhaim_he::{Backend, Place, Threads};
use serde::Deserialize;
use std::fmt::Debug;
use std::sync::Arc;

/// Makes the backend of each dataset.
pub trait Engine: Debug + Send + Sync {
    /// Whether it reads columns from the blob store itself: they are then not kept in memory here.
    fn reads_blobs(&self) -> bool;

    /// The backend for a dataset with these evaluation keys.
    fn backend(&self, keys: Place) -> Arc<dyn Backend>;
}

/// The threads of this process.
#[derive(Clone, Copy, Debug)]
pub struct Local {
    /// About what a task may take, in bytes.
    pub task_bytes: usize,
}

impl Engine for Local {
    fn reads_blobs(&self) -> bool {
        false
    }

    fn backend(&self, _: Place) -> Arc<dyn Backend> {
        Arc::new(Threads::with_memory(self.task_bytes))
    }
}

/// An engine on other machines, as a configuration names it. `fhaim-computation` has none;
/// `fhaim-computation-ballista` (crates/ballista) does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remote {
    /// Address of the scheduler: `http://host:port`.
    pub scheduler: String,
    /// About how many bytes a task may take on an executor.
    #[serde(default = "quarter_gib")]
    pub task_bytes: usize,
    /// Tasks that pack, at least: as many as the executors have cores.
    #[serde(default = "sixteen")]
    pub packers: usize,
    /// How often a batch is submitted before its attempt ends.
    #[serde(default = "four")]
    pub attempts: u32,
    /// Seconds between two.
    #[serde(default = "five")]
    pub pause_seconds: u64,
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
