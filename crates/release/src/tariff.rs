//! What prices depend on beside the statistic and its noise.

use fhaim_dp::Leak;

use crate::Holders;

/// What all releases of a dataset are priced by: public, and the same for whoever asks, pays and
/// judges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tariff {
    /// N: no table of the dataset has more records, its holders' taken together.
    pub record_bound: u64,
    /// What residual ciphertext noise may tell.
    pub leak: Leak,
    /// Whose noise is relied upon, and what of a record is one holder's.
    pub holders: Holders,
}

impl Tariff {
    /// The tariff of one holder's table, in the clear.
    pub fn new(record_bound: u64) -> Self {
        Self {
            record_bound,
            leak: Leak::NONE,
            holders: Holders::one(),
        }
    }
}
