#![doc = include_str!("../README.md")]

mod dialect;
mod infer;
mod numbers;
mod texts;

pub use dialect::{Dialect, Encoding, MAX_SNIFFED, Transcoder};
pub use infer::{DRAFT_STATEMENT, Draft, InferOptions, Note, infer_schema, time_formats};
pub use numbers::{Limit, Reading, Readings, ScannedNumber, Sign, scan_number};
pub use texts::{TextCounts, count_texts};
