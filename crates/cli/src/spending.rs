//! How this program enters the memory of spending.

use fhaim_dp::Rho;
use fhaim_files::memory::UseCost;

/// The name under which the memory of spending keeps what this program spends.
pub const PROGRAM: &str = "fhaim";

/// What a run of this program's own mechanisms spends, for the memory of spending.
pub fn spending(rho: Rho) -> UseCost {
    UseCost::zcdp(PROGRAM, rho)
}
