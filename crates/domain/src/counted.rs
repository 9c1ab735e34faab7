//! Numbers of things in messages.

use std::fmt::Display;

/// A number of things, as people write it: "1 field", "3 fields".
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(number: N, thing: &str) -> String {
    let s = if number == N::from(1) { "" } else { "s" };
    format!("{number} {thing}{s}")
}
