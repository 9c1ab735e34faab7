#![doc = include_str!("../README.md")]
// `eprintln!` panics if standard error is closed.
#![deny(clippy::print_stderr)]

mod ask;
mod consent;
pub mod data;
mod error;
mod excel;
mod guard;
pub mod home;
mod left_out;
pub mod memory;
mod output;
mod output_format;
mod parquet;
mod parties;
mod path_conflicts;
pub mod progress;
mod remarks;
mod staged;
mod tables;
mod target;
mod tell;
pub mod typed;

pub use ask::{ask, can_ask};
pub use consent::{EarlierUse, UseConsent};
pub use error::Error;
pub use left_out::{LeftOut, is_unnamed_index, refuse_left_out};
pub use output::print;
pub use output_format::OutputFormat;
pub use parties::{check_apart, part_files};
pub use path_conflicts::check_distinct;
pub use remarks::{keeping, named, note, note_once, shown, shown_path};
pub use staged::{
    Existing, OverwriteArguments, StagedFile, Whole, commit_all, remove_output, rename_all,
};
pub use tables::{FormatArguments, Mark, StrictnessArguments, delimiter, read_options, remarks};
pub use target::is_regular_output;
pub use tell::{tell, tell_line, tell_part};
