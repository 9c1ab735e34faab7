//! The inputs of prices in addition to the statistic and its noise.

use fhaim_dp::Leak;

use crate::Holders;

/// The tariff that prices all releases of a dataset. It is public, and the same for every party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tariff {
    /// N: the most records in a table of the dataset, over all holders together.
    pub record_bound: u64,
    /// Privacy cost of the residual ciphertext noise.
    pub leak: Leak,
    /// Holders of the dataset: how many holders' noise prices rely on, and which attributes each
    /// holder has.
    pub holders: Holders,
}

impl Tariff {
    /// Returns the tariff of one holder's table in the clear.
    pub fn new(record_bound: u64) -> Self {
        Self {
            record_bound,
            leak: Leak::NONE,
            holders: Holders::one(),
        }
    }
}
