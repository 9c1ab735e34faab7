//! All entities in one process, as in `fhaim run`.

use crate::Error;
use crate::computation::{Computation, SealedBatch};
use crate::crypto::CryptoService;
use crate::request::JobId;
use crate::sealing::SealingKey;
use crate::window::Window;
use fhaim_domain::Clique;
use fhaim_release::{ReleaseRequest, ReleaseSource, SourceError};

/// Takes the place of the manifest's digest, since nothing is uploaded.
const NO_MANIFEST: [u8; 32] = [0; 32];

/// A source of releases that computes on encrypted data. Requests go to the computation service,
/// its sealed pages go to the crypto service, and the released integers come back.
#[derive(Debug)]
pub struct EncryptedSource {
    computation: Computation,
    crypto: CryptoService,
    key: SealingKey,
    window: Window,
    /// Seconds spent computing and decrypting.
    pub seconds: Seconds,
}

/// The time that an encrypted run takes, by entity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seconds {
    /// Seconds of the computation service.
    pub computation: f64,
    /// Seconds of the crypto service.
    pub crypto: f64,
}

impl EncryptedSource {
    /// Creates a source over both services for one job, which takes the dataset's next run.
    ///
    /// # Errors
    /// [`Error::NoRunLeft`].
    pub fn new(
        computation: Computation,
        mut crypto: CryptoService,
        job: JobId,
        key: SealingKey,
    ) -> Result<Self, Error> {
        let window = crypto.begin(job, NO_MANIFEST)?.window().clone();
        Ok(Self {
            computation,
            crypto,
            key,
            window,
            seconds: Seconds::default(),
        })
    }

    /// Computes the squares of pairs in advance, before their first scores.
    ///
    /// # Errors
    /// As [`Computation::compute_squares`].
    pub fn compute_squares(&mut self, pairs: &[Clique]) -> Result<(), Error> {
        let started = std::time::Instant::now();
        self.computation.compute_squares(pairs)?;
        self.seconds.computation += started.elapsed().as_secs_f64();
        Ok(())
    }

    /// Returns the computation service.
    pub fn computation(&self) -> &Computation {
        &self.computation
    }

    /// Returns the crypto service.
    pub fn crypto(&self) -> &CryptoService {
        &self.crypto
    }
}

impl ReleaseSource for EncryptedSource {
    fn release(&mut self, requests: &[ReleaseRequest]) -> Result<Vec<Vec<i64>>, SourceError> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let started = std::time::Instant::now();
        let sealed = self.computation.answer(&self.window, requests, &self.key);
        let SealedBatch { request, window } = sealed.map_err(SourceError::backend)?;
        self.window = window;
        self.seconds.computation += started.elapsed().as_secs_f64();
        let started = std::time::Instant::now();
        let answers = self.crypto.decrypt(&request);
        let mut answers = answers.map_err(SourceError::backend)?;
        self.seconds.crypto += started.elapsed().as_secs_f64();
        for (request, answer) in requests.iter().zip(&mut answers) {
            let whole = request.statistic.add_public_part(answer);
            whole.ok_or_else(|| SourceError::backend("a score is too large"))?;
        }
        Ok(answers)
    }
}
