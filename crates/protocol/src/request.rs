//! The computation service's requests to the crypto service: sealed pages and the releases that
//! they answer.

pub use crate::codec::{PageCodec, asked};
use fhaim_dp::Span;
use fhaim_he::Ciphertext;
use fhaim_release::ReleaseRequest;
use serde::{Deserialize, Serialize};

/// Identifies a dataset: its key set, its upload and its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DatasetId(pub [u8; 16]);

/// Identifies a job: one run of a mechanism over a dataset. Release numbers count within a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobId(pub [u8; 16]);

/// The positions of a page that belong to one release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageSpan {
    /// Number of the release.
    pub number: u32,
    /// Its positions, in the order of its cells.
    pub span: Span,
}

/// A sealed page: noise of one variance on the parts' positions, uniform values elsewhere.
///
/// `C` is the type of the values: ciphertexts, or clear values in simulations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedPage<C = Vec<Ciphertext>> {
    /// One ciphertext for each plaintext modulus.
    pub ciphertexts: C,
    /// Noise variance of every part, in the ladder's units.
    pub variance_units: u64,
    /// The releases that the page answers, ascending.
    pub parts: Vec<PageSpan>,
}

/// A batch of releases of one job, to be debited and decrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecryptRequest<C = Vec<Ciphertext>> {
    /// The dataset of the key and the ledger.
    pub dataset: DatasetId,
    /// The job of the release numbers.
    pub job: JobId,
    /// The releases, in the order of the batch.
    pub releases: Vec<ReleaseRequest>,
    /// The pages that carry the releases.
    pub pages: Vec<SealedPage<C>>,
}
