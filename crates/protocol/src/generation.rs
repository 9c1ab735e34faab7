//! The generation entity's view: a source of releases that it cannot look behind.

use crate::Error;
use crate::computation::{Answer, Computation, JobState};
use crate::crypto::CryptoService;
use crate::request::DecryptRequest;
use fhaim_domain::Clique;
use fhaim_synth::{ReleaseRequest, Source, SourceError, Statistic};
use rand::TryRngCore;
use rand::rngs::OsRng;

/// All entities in one process: requests go to the computation entity, its sealed pages to the
/// crypto service, and the released integers come back.
#[derive(Debug)]
pub struct EncryptedSource {
    computation: Computation,
    crypto: CryptoService,
    state: JobState,
    /// Batches sealed so far.
    sealed: Vec<DecryptRequest>,
    /// Seconds spent computing and decrypting.
    pub seconds: Seconds,
}

/// Where an encrypted run's time goes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seconds {
    /// Computation entity.
    pub computation: f64,
    /// Crypto service.
    pub crypto: f64,
}

impl EncryptedSource {
    /// A source over both services, for one job.
    pub fn new(computation: Computation, crypto: CryptoService, state: JobState) -> Self {
        Self {
            computation,
            crypto,
            state,
            sealed: Vec::new(),
            seconds: Seconds::default(),
        }
    }

    /// Index of the sealed batch for `requests`: that of before, if they were asked for before.
    fn seal(&mut self, requests: &[ReleaseRequest]) -> Result<usize, Error> {
        for (index, sealed) in self.sealed.iter().enumerate() {
            if sealed.answers(requests)? {
                return Ok(index);
            }
        }
        let mut rng = OsRng.unwrap_err();
        let Answer { request, state } = self.computation.answer(&self.state, requests, &mut rng)?;
        self.state = state;
        self.sealed.push(request);
        Ok(self.sealed.len() - 1)
    }

    /// Has the computation entity compute the squares of pairs ahead of their first scores.
    ///
    /// # Errors
    /// As [`Computation::compute_squares`].
    pub fn compute_squares(&mut self, pairs: &[Clique]) -> Result<(), Error> {
        let started = std::time::Instant::now();
        self.computation.compute_squares(pairs)?;
        self.seconds.computation += started.elapsed().as_secs_f64();
        Ok(())
    }

    /// The computation entity.
    pub fn computation(&self) -> &Computation {
        &self.computation
    }

    /// The crypto service.
    pub fn crypto(&self) -> &CryptoService {
        &self.crypto
    }
}

impl Source for EncryptedSource {
    fn release(&mut self, requests: &[ReleaseRequest]) -> Result<Vec<Vec<i64>>, SourceError> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let started = std::time::Instant::now();
        let sealed = self.seal(requests).map_err(SourceError::backend)?;
        self.seconds.computation += started.elapsed().as_secs_f64();
        let started = std::time::Instant::now();
        let answers = self.crypto.decrypt(&self.sealed[sealed]);
        let mut answers = answers.map_err(SourceError::backend)?;
        self.seconds.crypto += started.elapsed().as_secs_f64();
        for (request, answer) in requests.iter().zip(&mut answers) {
            add_public_part(&request.statistic, answer)
                .ok_or_else(|| SourceError::backend("a score is too large"))?;
        }
        Ok(answers)
    }
}

/// A squared score comes back without weight * ||target||^2, which is public.
fn add_public_part(statistic: &Statistic, answer: &mut [i64]) -> Option<()> {
    let Statistic::SquaredScores(terms) = statistic else {
        return Some(());
    };
    for (term, value) in terms.iter().zip(answer) {
        let norm = term
            .target
            .iter()
            .try_fold(0i64, |sum, &t| sum.checked_add(t.checked_mul(t)?))?;
        *value = value.checked_add(term.weight.checked_mul(norm)?)?;
    }
    Some(())
}
