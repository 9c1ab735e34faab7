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

/// The keys that the computation service needs in addition to ciphertexts. None of them is secret.
#[derive(Clone, Debug)]
pub struct EvaluationKeys {
    pub(crate) params: Parameters,
    /// Entry l - 1: s(X^(2^l + 1)) -> s.
    pub(crate) packing: Vec<KeySwitchKey>,
    /// Keys for squared scores, which multiply under s. Only datasets with a sole holder have them.
    pub(crate) scores: Option<ScoreKeys>,
    /// Switching keys of a roster's upload keys. A sole holder uploads its own.
    pub(crate) roster: Option<RosterKeys>,
}

/// Keys for the product of a page with its image under X -> X^-1.
///
/// If a holder chooses one of two ciphertexts that were switched to s, their product can show s to that holder. So a
/// dataset of several holders has no such keys: its holders' ciphertexts may be multiplied only under other keys.
#[derive(Clone, Debug)]
pub(crate) struct ScoreKeys {
    /// s^2 -> s.
    pub(crate) relinearise: KeySwitchKey,
    /// s(X^-1) -> s.
    pub(crate) inversion: KeySwitchKey,
}

impl EvaluationKeys {
    /// Returns the switching keys of the roster's upload keys, if the dataset has a roster.
    pub fn roster(&self) -> Option<&RosterKeys> {
        self.roster.as_ref()
    }

    /// Returns the switching keys of one upload key of the roster.
    pub(crate) fn upload(&self, id: UploadKeyId) -> Option<&UploadSwitchKeys> {
        let mut uploads = self.roster.iter().flat_map(|roster| &roster.uploads);
        uploads.find(|keys| keys.id == id).map(Arc::as_ref)
    }

    /// Returns the switching keys of the joint key, which only holders of columns have.
    pub(crate) fn joint(&self) -> Option<&UploadSwitchKeys> {
        self.roster.as_ref()?.joint.as_ref()
    }

    /// Returns the parameter set's tables.
    pub fn params(&self) -> &Parameters {
        &self.params
    }
}

impl SecretKey {
    /// Returns the seed of a holder's upload key, by the holder's number. Only that holder may see it.
    pub fn upload_seed(&self, holder: usize) -> Zeroizing<[u8; 32]> {
        upload_seed(self.root(), holder)
    }

    /// Generates the keys that the computation service evaluates a sole holder's upload with.
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
