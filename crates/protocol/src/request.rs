//! What the computation entity sends the crypto service: sealed pages and the releases they answer.

pub use crate::codec::{PageCodec, asked};
use fhaim_dp::Span;
use fhaim_he::Ciphertext;
use fhaim_release::ReleaseRequest;
use serde::{Deserialize, Serialize};

/// Names a dataset: its key set, its upload, its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DatasetId(pub [u8; 16]);

/// Names a job: one run of a mechanism over a dataset. Release numbers count within a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobId(pub [u8; 16]);

/// Positions of a page that belong to one release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageSpan {
    /// The release.
    pub number: u32,
    /// Its positions, in the order of its cells.
    pub span: Span,
}

/// A sealed page: noise of one variance on the parts' positions, uniform values elsewhere.
///
/// What carries the values is `C`: ciphertexts, but for simulations, which put clear values there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedPage<C = Vec<Ciphertext>> {
    /// One ciphertext a plaintext modulus.
    pub ciphertexts: C,
    /// Noise variance of every part, in the ladder's units.
    pub variance_units: u64,
    /// Which releases the page answers, ascending.
    pub parts: Vec<PageSpan>,
}

/// A batch of releases of one job, to be debited and decrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecryptRequest<C = Vec<Ciphertext>> {
    /// The dataset whose key and ledger are meant.
    pub dataset: DatasetId,
    /// The job that the releases' numbers belong to.
    pub job: JobId,
    /// The releases, in the order asked.
    pub releases: Vec<ReleaseRequest>,
    /// The pages that carry them.
    pub pages: Vec<SealedPage<C>>,
}
