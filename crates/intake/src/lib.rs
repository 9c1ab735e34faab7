#![doc = include_str!("../README.md")]

mod draft;
mod infer;
mod kinds;
mod markers;
mod numbers;
mod options;
mod profile;
mod relations;
mod shape;
mod source;
mod texts;
mod times;

pub use draft::{
    ColumnDraft, DRAFT_STATEMENT, Draft, Exception, Flag, Note, ProposedRule, RULES_STATEMENT,
    RecordUse, RuleChange, with_rules,
};
pub use infer::{code_book, infer_schema};
pub use numbers::{Limit, Reading, Readings, ScannedNumber, Sign, scan_number};
pub use options::{InferOptions, SHARED_BY};
pub use shape::Shape;
pub use source::{
    Encoding, Family, FileType, Given, MAX_SNIFFED, Remark, TableText, TextError, Transcoder,
    encoding_remark, identify, open_text, way_out,
};
pub use texts::{TextCounts, count_texts};
pub use times::time_formats;
