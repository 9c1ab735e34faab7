//! A packed ciphertext with its expected noise.

use crate::scheme::ciphertext::Ciphertext;

/// Expected noise of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageNoise {
    /// Deviation of the noisiest coefficient.
    pub(crate) deviation: f64,
    /// Squared norm over all coefficients.
    pub(crate) norm_squared: f64,
}

/// A packed ciphertext with its expected noise.
#[derive(Clone, Debug)]
pub struct PackedPage {
    pub(crate) ciphertext: Ciphertext,
    pub(crate) noise: PageNoise,
}

impl PackedPage {
    /// Returns the ciphertext. Its noise is not masked, so only a sealed page may leave the service.
    pub fn ciphertext(&self) -> &Ciphertext {
        &self.ciphertext
    }

    /// Returns the expected deviation of the noisiest coefficient's noise.
    pub fn deviation(&self) -> f64 {
        self.noise.deviation
    }
}
