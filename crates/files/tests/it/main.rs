//! Integration tests, in one program because each program takes seconds to link.

/// The checks of `fhaim-intake`'s tests, which read the same form of expectations.
#[path = "../../../intake/tests/it/check/mod.rs"]
mod check;
mod history;
mod situations;
