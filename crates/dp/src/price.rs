//! The price of a release: its cost in zero-concentrated differential privacy (rho).

use serde::{Deserialize, Serialize};

use crate::{BASE_VARIANCE, Error, Rho, gap_rho, most_pages};

/// Every release is charged for at least this number of sealed ciphertexts, even if it takes part
/// in fewer.
const MIN_CIPHERTEXTS: usize = 4;

/// The privacy cost of the residual noise of sealed ciphertexts for their decryptor, in addition to
/// the released numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leak {
    /// Cost of one ciphertext.
    pub ciphertext: Rho,
    /// Ciphertexts of a page: one for each plaintext modulus.
    pub residues: usize,
}

impl Leak {
    /// No cost, for releases in the clear.
    pub const NONE: Self = Self {
        ciphertext: Rho::ZERO,
        residues: 1,
    };

    /// Returns the cost of a release with this number of cells. It counts every ciphertext that the
    /// release may take part in, for any positions ([`most_pages`]), and at least four.
    ///
    /// # Errors
    /// [`Error::Rho`] at a cost of 2^48 or more.
    pub fn of(&self, cells: usize) -> Result<Rho, Error> {
        let ciphertexts = most_pages(cells).saturating_mul(self.residues);
        let ciphertexts = ciphertexts.max(MIN_CIPHERTEXTS);
        self.ciphertext
            .checked_mul(ciphertexts as u64)
            .ok_or(Error::Rho(self.ciphertext.to_f64() * ciphertexts as f64))
    }
}

/// The cost of a release, by item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// The Gaussian mechanism: `Delta_2^2 / (2 sigma^2)`.
    pub gaussian: Rho,
    /// Cost of the noise being a sum of ladder samples ([`gap_rho`]).
    pub gap: Rho,
    /// Cost of the residual ciphertext noise (`rho_leak`).
    pub leak: Rho,
}

impl Price {
    /// Prices `cells` integers that one record changes by at most `delta2_squared` (squared L2
    /// norm). Each of `honest` holders adds noise of variance `4 variance_units`. `leak` is the
    /// cost of the ciphertexts.
    ///
    /// # Errors
    /// [`Error::Ratio`] or [`Error::Rho`] for variance zero or a price of 2^48 or more.
    pub fn of(
        delta2_squared: u128,
        variance_units: u64,
        cells: u64,
        honest: u32,
        leak: Rho,
    ) -> Result<Self, Error> {
        Ok(Self {
            gaussian: release_rho(delta2_squared, variance_units, honest)?,
            gap: gap_rho(delta2_squared, variance_units, cells, honest)?,
            leak,
        })
    }

    /// Returns the sum of all three costs, or `None` if it reaches 2^48.
    pub fn total(&self) -> Option<Rho> {
        Rho::checked_sum([self.gaussian, self.gap, self.leak])
    }
}

/// Returns `Delta_2^2 / (2 sigma^2)` for noise of variance `sigma^2 = 4 variance_units` from each
/// of `honest` holders, rounded up (CKS20, Theorem 4: the discrete Gaussian has the cost of the
/// continuous one). Other holders add noise too, but the price does not rely on it.
///
/// # Errors
/// [`Error::Ratio`] if `variance_units` or `honest` is zero or the cost is 2^48 or more.
pub fn release_rho(delta2_squared: u128, variance_units: u64, honest: u32) -> Result<Rho, Error> {
    // At most 2^(3 + 64 + 32).
    let of_each = 2 * u128::from(BASE_VARIANCE) * u128::from(variance_units);
    Rho::ratio_up(delta2_squared, of_each * u128::from(honest))
}

/// Returns the smallest variance of every holder's noise, in units, for which a release of
/// sensitivity `delta2_squared` costs at most `budget`, without leak and gap. The price relies on
/// `honest` holders.
///
/// # Errors
/// [`Error::Ratio`] if no variance of 64 bits is large enough.
pub fn least_variance_units(delta2_squared: u128, budget: Rho, honest: u32) -> Result<u64, Error> {
    let affordable =
        |units: &u64| release_rho(delta2_squared, *units, honest).is_ok_and(|c| c <= budget);
    if !affordable(&u64::MAX) {
        return Err(Error::Ratio(delta2_squared, u128::from(u64::MAX)));
    }
    let (mut low, mut high) = (0u64, u64::MAX); // low is too small, high is large enough
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if affordable(&middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}
