//! A packed ciphertext, and what is expected of its noise.

use crate::scheme::ciphertext::Ciphertext;

/// What is expected of a page's noise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageNoise {
    /// Deviation of the noisiest coefficient.
    pub(crate) deviation: f64,
    /// Squared norm over all coefficients.
    pub(crate) norm_squared: f64,
}

/// A packed ciphertext with what is expected of its noise.
#[derive(Clone, Debug)]
pub struct PackedPage {
    pub(crate) ciphertext: Ciphertext,
    pub(crate) noise: PageNoise,
}

impl PackedPage {
    /// The ciphertext. It carries unmasked noise: only a sealed page may leave the service.
    pub fn ciphertext(&self) -> &Ciphertext {
        &self.ciphertext
    }

    /// Expected deviation of the noisiest coefficient's noise.
    pub fn deviation(&self) -> f64 {
        self.noise.deviation
    }
}
