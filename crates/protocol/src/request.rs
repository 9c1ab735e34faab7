//! What the computation entity sends the crypto service: sealed pages and the releases they answer.

use crate::Error;
use fhaim_dp::Span;
use fhaim_he::Ciphertext;
use fhaim_synth::ReleaseRequest;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Names a dataset: its key set, its upload, its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DatasetId(pub [u8; 16]);

/// Names a job: one run of a mechanism over a dataset. Release numbers count within a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobId(pub [u8; 16]);

/// Positions of a page that belong to one release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The release.
    pub number: u32,
    /// Its positions, in the order of its cells.
    pub span: Span,
}

/// A sealed page: noise of one variance on the parts' positions, uniform values elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedPage {
    /// One ciphertext a plaintext modulus.
    pub ciphertexts: Vec<Ciphertext>,
    /// Noise variance of every part, in the ladder's units.
    pub variance_units: u64,
    /// Which releases the page answers, ascending.
    pub parts: Vec<Part>,
}

impl SealedPage {
    /// SHA-256 of the ciphertexts' residues.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for ciphertext in &self.ciphertexts {
            ciphertext.digest_into(|bytes| hash.update(bytes));
        }
        hash.finalize().into()
    }
}

/// A batch of releases of one job, to be debited and decrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecryptRequest {
    /// The dataset whose key and ledger are meant.
    pub dataset: DatasetId,
    /// The job that the releases' numbers belong to.
    pub job: JobId,
    /// The releases, in the order asked.
    pub releases: Vec<ReleaseRequest>,
    /// The pages that carry them.
    pub pages: Vec<SealedPage>,
}

impl DecryptRequest {
    /// Whether this batch, sealed before, is the answer to `requests`: then it is sent again as
    /// it is, since noise is used once.
    ///
    /// # Errors
    /// [`fhaim_dp::Error::Conflict`] where it shares a release number with them, but differs.
    pub fn answers(&self, requests: &[ReleaseRequest]) -> Result<bool, Error> {
        if self.releases == requests {
            return Ok(true);
        }
        let shared = |r: &&ReleaseRequest| self.releases.iter().any(|own| own.number == r.number);
        match requests.iter().find(shared) {
            Some(request) => Err(fhaim_dp::Error::Conflict(request.number).into()),
            None => Ok(false),
        }
    }
}
