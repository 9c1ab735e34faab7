//! Costs of this program's runs for the usage history.

use fhaim_dp::Rho;
use fhaim_files::memory::UseCost;

/// Name of this program in the usage history.
pub const PROGRAM: &str = "fhaim";

/// Returns the cost of a run of this program's mechanisms.
pub fn spending(rho: Rho) -> UseCost {
    UseCost::zcdp(PROGRAM, rho)
}
