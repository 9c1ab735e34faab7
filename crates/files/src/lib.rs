#![doc = include_str!("../README.md")]

mod distinct;
mod error;
mod staged;
mod target;

pub use distinct::check_distinct;
pub use error::Error;
pub use staged::{Staged, commit_all};
