//! Numbers as people write them, before the style of their column is known.

mod reading;
mod scan;

pub use reading::{Reading, Readings};
pub use scan::{Limit, ScannedNumber, Sign, scan_number};
