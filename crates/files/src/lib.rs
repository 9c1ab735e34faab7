#![doc = include_str!("../README.md")]

mod distinct;
mod error;
mod output;
mod staged;
mod tables;
mod target;

pub use distinct::check_distinct;
pub use error::Error;
pub use output::print;
pub use staged::{Staged, Whole, commit_all, rename_all};
pub use tables::{FormatArguments, StrictnessArguments, delimiter, read_options, remarks};
