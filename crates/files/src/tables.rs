//! How tables are read: what a user says of them, and what reading changed.

use clap::Args;
use fhaim_domain::{
    Adjusted, OutOfRange, ReadOptions, Schema, UnknownCategory, UnlistedColumn, counted,
};

/// How a table is written.
#[derive(Debug, Default, Args)]
pub struct FormatArguments {
    /// Character between fields [default: that of the first lines]
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    pub delimiter: Option<u8>,
    /// Field that stands for a missing value, beside the empty one (may be repeated)
    #[arg(long, value_name = "TEXT")]
    pub missing: Vec<String>,
}

impl FormatArguments {
    /// All fields that stand for a missing value.
    pub fn missing(&self) -> Vec<String> {
        let mut texts = vec![String::new()];
        texts.extend(self.missing.iter().cloned());
        texts
    }
}

/// What to do with values that a schema does not have.
#[derive(Debug, Default, Args)]
pub struct StrictnessArguments {
    /// Take categories that the schema lacks for the one it declares as `other`
    #[arg(long)]
    pub use_other: bool,
    /// Take numbers outside the schema's range for the nearest limit
    #[arg(long)]
    pub clamp: bool,
    /// Leave out columns that the schema lacks
    #[arg(long)]
    pub ignore_columns: bool,
}

impl StrictnessArguments {
    /// Whether anything was asked for.
    pub fn is_any(&self) -> bool {
        self.use_other || self.clamp || self.ignore_columns
    }
}

/// The byte between fields, as a flag has it.
///
/// # Errors
/// What is expected, where it is something else.
pub fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err("one ASCII character that is no quote or line end (\\t for a tab)".to_owned()),
    }
}

/// How a table of this name is read; its delimiter is that of its first lines, and not known here.
pub fn read_options(
    name: String,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
) -> ReadOptions {
    let mut options = ReadOptions::new(name);
    options.missing = format.missing();
    if strictness.use_other {
        options.unknown = UnknownCategory::Other;
    }
    if strictness.clamp {
        options.out_of_range = OutOfRange::Clamp;
    }
    if strictness.ignore_columns {
        options.unlisted = UnlistedColumn::LeaveOut;
    }
    options
}

/// What reading a table changed, a line each, for its holder.
pub fn remarks(schema: &Schema, left_out: &[String], adjusted: &[Adjusted]) -> Vec<String> {
    let left_out = left_out
        .iter()
        .map(|column| format!("column {column:?} is not in the schema and was left out"));
    let mut remarks: Vec<String> = left_out.collect();
    for (column, adjusted) in schema.columns().iter().zip(adjusted) {
        let name = column.name();
        if adjusted.clamped > 0 {
            let numbers = counted(adjusted.clamped, "number");
            remarks.push(format!(
                "column {name:?}: {numbers} moved to the nearest limit"
            ));
        }
        if adjusted.other > 0 {
            let values = counted(adjusted.other, "value");
            remarks.push(format!("column {name:?}: {values} taken for `other`"));
        }
    }
    remarks
}
