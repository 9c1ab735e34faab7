#![doc = include_str!("../README.md")]

mod distinct;
mod error;
mod staged;
mod tables;
mod target;

pub use distinct::check_distinct;
pub use error::Error;
pub use staged::{Staged, commit_all};
pub use tables::{FormatArguments, StrictnessArguments, delimiter, read_options, remarks};
