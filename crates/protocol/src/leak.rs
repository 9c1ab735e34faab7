//! The privacy cost of the noise in ciphertexts.

use crate::Error;
use fhaim_dp::Rho;
use fhaim_he::LEAK_BITS;

/// Returns the cost of the residual noise of one sealed ciphertext: 2^-30
/// (`he::noise::check_page`).
///
/// # Errors
/// Never: the ratio is a constant within range.
pub fn ciphertext_leak() -> Result<Rho, Error> {
    Ok(Rho::ratio_up(1, 1 << LEAK_BITS)?)
}
