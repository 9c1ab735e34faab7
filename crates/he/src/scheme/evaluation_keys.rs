//! The keys that the computation service evaluates with.

use crate::error::Result;
use crate::scheme::params::Parameters;
use crate::scheme::ring::DEGREE;
use crate::scheme::secret_key::SecretKey;
use crate::scheme::switch_key::{KeySwitchKey, full_transform, permuted, squared};
use crate::scheme::upload::{
    RosterKeys, UploadKeyId, UploadSwitchKeys, packing_switches, upload_seed,
};
use rand::{CryptoRng, RngCore};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Everything the computation service needs beside ciphertexts; none of it is secret.
#[derive(Clone, Debug)]
pub struct EvaluationKeys {
    pub(crate) params: Parameters,
    /// Entry l - 1: s(X^(2^l + 1)) -> s.
    pub(crate) packing: Vec<KeySwitchKey>,
    /// Those for squared scores, which multiply under s: only sole holders have them.
    pub(crate) scores: Option<ScoreKeys>,
    /// Those of a roster's upload keys. A sole holder uploads its own.
    pub(crate) roster: Option<RosterKeys>,
}

/// Keys for the product of a page with its image under X -> X^-1.
///
/// A product of two ciphertexts that were switched to s can show s to a holder that chose one of them. So a dataset of
/// several holders has no such keys: what its holders send may be multiplied only under other keys.
#[derive(Clone, Debug)]
pub(crate) struct ScoreKeys {
    /// s^2 -> s.
    pub(crate) relinearise: KeySwitchKey,
    /// s(X^-1) -> s.
    pub(crate) inversion: KeySwitchKey,
}

impl EvaluationKeys {
    /// The switching keys of a roster's upload keys.
    pub fn roster(&self) -> Option<&RosterKeys> {
        self.roster.as_ref()
    }

    /// The switching keys of an upload key of the roster.
    pub(crate) fn upload(&self, id: UploadKeyId) -> Option<&UploadSwitchKeys> {
        let mut uploads = self.roster.iter().flat_map(|roster| &roster.uploads);
        uploads.find(|keys| keys.id == id).map(Arc::as_ref)
    }

    /// The switching keys of the joint key of holders of columns.
    pub(crate) fn joint(&self) -> Option<&UploadSwitchKeys> {
        self.roster.as_ref()?.joint.as_ref()
    }

    /// The parameter set's tables.
    pub fn params(&self) -> &Parameters {
        &self.params
    }
}

impl SecretKey {
    /// The seed of a holder's upload key, by the holder's number. Only that holder may see it.
    pub fn upload_seed(&self, holder: usize) -> Zeroizing<[u8; 32]> {
        upload_seed(self.root(), holder)
    }

    /// The keys that the computation service evaluates a sole holder's upload with.
    pub fn evaluation_keys<R: RngCore + CryptoRng>(&self, rng: &mut R) -> Result<EvaluationKeys> {
        let keys = self.packing_keys(rng)?;
        if !self.params().set().has_squares() {
            return Ok(keys);
        }
        let ring = self.params().ring();
        let secret = full_transform(ring, self.coefficients());
        let inverted = permuted(&secret, &ring.automorphism(2 * DEGREE - 1));
        let mut key = |source: &[u64]| KeySwitchKey::generate(ring, &secret, source, rng);
        let scores = ScoreKeys {
            relinearise: key(&squared(ring, &secret))?,
            inversion: key(&inverted)?,
        };
        Ok(EvaluationKeys {
            scores: Some(scores),
            ..keys
        })
    }

    fn packing_keys<R: RngCore + CryptoRng>(&self, rng: &mut R) -> Result<EvaluationKeys> {
        let ring = self.params().ring();
        let secret = full_transform(ring, self.coefficients());
        let packing = packing_switches().map(|kind| {
            let source = kind.source(ring, &secret);
            KeySwitchKey::generate(ring, &secret, &source, rng)
        });
        Ok(EvaluationKeys {
            params: self.params().clone(),
            packing: packing.collect::<Result<_>>()?,
            scores: None,
            roster: None,
        })
    }
}
