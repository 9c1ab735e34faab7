//! Command-line options for reading tables, and remarks on changes made while reading.

use clap::Args;
use fhaim_domain::{
    Adjusted, Column, Kind, OutOfRange, ReadOptions, Schema, UnlistedColumn, counted,
};
use fhaim_intake::{Encoding, Given};

use crate::named;

/// Text format of a table.
#[derive(Clone, Debug, Default, Args)]
pub struct FormatArguments {
    /// Field delimiter, such as ; or \t for a tab [default: detected from the first lines]
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    pub delimiter: Option<u8>,
    /// Text that marks a missing value, in addition to an empty field (may be repeated)
    #[arg(long, value_name = "TEXT")]
    pub missing: Vec<String>,
    /// Encoding of the text, such as windows-1252 or shift_jis [default: detected]
    #[arg(long, value_name = "NAME", value_parser = encoding)]
    pub encoding: Option<Encoding>,
    /// Number of lines before the header [default: detected]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=MAX_SKIPPED))]
    pub skip_rows: Option<u64>,
    /// Number of rows at the end that are not records, such as totals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=MAX_FOOTER))]
    pub skip_footer: Option<u64>,
    /// Character that begins lines to skip, or `none` [default: detected]
    #[arg(long, value_name = "CHAR", value_parser = mark)]
    pub comment: Option<Mark>,
    /// Character around fields, or `none` [default: detected, usually "]
    #[arg(long, value_name = "CHAR", value_parser = mark)]
    pub quote: Option<Mark>,
    /// Sheet of a workbook, by name or number [default: the first one that is not empty]
    #[arg(long, value_name = "SHEET")]
    pub sheet: Option<String>,
}

/// Maximum number of lines before the header.
const MAX_SKIPPED: u64 = 1_000_000;

/// Maximum number of rows at the end, which are held in memory.
const MAX_FOOTER: u64 = 1_000;

/// A character with a meaning in a table's text; `None` if no character has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(pub Option<u8>);

impl FormatArguments {
    /// Returns all texts that mark a missing value.
    pub fn missing(&self) -> Vec<String> {
        let mut texts = vec![String::new()];
        texts.extend(self.missing.iter().cloned());
        texts
    }

    /// Returns the options for a table that fhaim made from a table with these: without lines, rows and marks that only
    /// the original has.
    pub fn of_output(&self) -> Self {
        Self {
            delimiter: self.delimiter,
            missing: self.missing.clone(),
            skip_footer: Some(0),
            ..Self::default()
        }
    }

    /// Whether any of the options is set.
    pub fn is_any(&self) -> bool {
        !self.missing.is_empty() || self.sheet.is_some() || self.given() != Given::default()
    }

    /// Returns everything that is not to be detected.
    pub(crate) fn given(&self) -> Given {
        Given {
            delimiter: self.delimiter,
            quote: self.quote.map(|Mark(byte)| byte),
            comment: self.comment.map(|Mark(byte)| byte),
            skip_rows: self.skip_rows,
            skip_footer: self.skip_footer.and_then(|rows| usize::try_from(rows).ok()),
            encoding: self.encoding,
        }
    }
}

/// Handling of values and columns that are not in the schema.
#[derive(Debug, Default, Args)]
pub struct StrictnessArguments {
    /// Clip numbers outside the schema's range to the nearest limit
    #[arg(long)]
    pub clamp: bool,
    /// Ignore columns that are not in the schema
    #[arg(long)]
    pub ignore_columns: bool,
}

impl StrictnessArguments {
    /// Whether any of the options is set.
    pub fn is_any(&self) -> bool {
        self.clamp || self.ignore_columns
    }
}

/// Parses the value of `--delimiter`.
///
/// # Errors
/// A description of valid values.
pub fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err("use one ASCII character, but no quote or line break (\\t for a tab)".to_owned()),
    }
}

/// Parses the value of `--encoding`.
///
/// # Errors
/// A description of valid values.
fn encoding(text: &str) -> Result<Encoding, String> {
    text.parse()
}

/// Parses the value of `--quote` or `--comment`.
///
/// # Errors
/// A description of valid values.
fn mark(text: &str) -> Result<Mark, String> {
    match text.as_bytes() {
        b"none" => Ok(Mark(None)),
        [byte] if byte.is_ascii_graphic() && !byte.is_ascii_alphanumeric() => Ok(Mark(Some(*byte))),
        _ => Err("use one character that is no letter or digit, or `none`".to_owned()),
    }
}

/// Returns the options for reading a table of this name.
///
/// Does not set the dialect: it may depend on the first lines of the table.
pub fn read_options(
    name: String,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
) -> ReadOptions {
    let mut options = ReadOptions::new(name);
    options.missing = format.missing();
    if strictness.clamp {
        options.out_of_range = OutOfRange::Clamp;
    }
    if strictness.ignore_columns {
        options.unlisted = UnlistedColumn::LeaveOut;
    }
    options
}

/// Describes for the holder what reading a table changed, one line per change.
pub fn remarks(schema: &Schema, left_out: &[String], adjusted: &[Adjusted]) -> Vec<String> {
    let ignored: Vec<&str> = left_out.iter().map(String::as_str).collect();
    let mut remarks = Vec::new();
    match ignored.len() {
        0 => {}
        1 => remarks.push(format!(
            "{} is not in the schema and was ignored",
            named(&ignored)
        )),
        _ => remarks.push(format!(
            "{} are not in the schema and were ignored",
            named(&ignored)
        )),
    }
    for (column, adjusted) in schema.columns().iter().zip(adjusted) {
        let name = column.name();
        if adjusted.clamped > 0 {
            let numbers = counted(adjusted.clamped, "number");
            remarks.push(format!(
                "column {name:?}: {numbers} clipped to the nearest limit"
            ));
        }
        if adjusted.other > 0 {
            let values = counted(adjusted.other, "value");
            let other = other(column).map_or_else(String::new, |other| format!(", {other:?}"));
            remarks.push(format!(
                "column {name:?}: {values} outside the schema's list read as `other`{other}"
            ));
        }
        if adjusted.invalid > 0 {
            let cells = counted(adjusted.invalid, "cell");
            remarks.push(format!(
                "column {name:?}: {cells} without a valid value read as missing"
            ));
        }
    }
    remarks
}

/// Returns the category that stands for values outside the list.
fn other(column: &Column) -> Option<&str> {
    match column.kind() {
        Kind::Categorical { categories, other } => {
            let other = categories.get((*other)? as usize)?;
            Some(other)
        }
        Kind::Numeric(_) | Kind::Part { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::read_csv;

    #[test]
    fn options_of_the_original_are_not_those_of_the_output() {
        let original = FormatArguments {
            delimiter: Some(b';'),
            skip_rows: Some(3),
            skip_footer: Some(1),
            sheet: Some("Data".to_owned()),
            ..FormatArguments::default()
        };
        let output = original.of_output();
        assert_eq!(
            (output.delimiter, output.skip_footer),
            (Some(b';'), Some(0))
        );
        assert_eq!((output.skip_rows, output.sheet), (None, None));
    }

    #[test]
    fn remarks_count_changed_values() {
        let schema = r#"{"name": "t", "columns": [
            {"name": "town", "kind": "categorical", "categories": ["Ulm", "rest"], "other": "rest"},
            {"name": "icd", "kind": "code", "codes": ["A00", "X"], "prefix": 1, "other": "X"},
            {"name": "age", "kind": "number", "integer": true, "min": 0, "max": 99, "bins": 10,
             "nullable": true, "invalid": "missing"}]}"#;
        let schema = Schema::from_json("t.json", schema.as_bytes()).unwrap();
        let csv = "town,icd,age,id\nBonn,Q,4o,1\nKiel,A00,120,2\nUlm,A00,,3\n";
        let strictness = StrictnessArguments {
            clamp: true,
            ignore_columns: true,
        };
        let options = read_options("t.csv".to_owned(), &FormatArguments::default(), &strictness);
        let found = read_csv(schema, csv.as_bytes(), &options).unwrap();
        let told = remarks(found.table.schema(), &found.left_out, &found.adjusted);
        assert_eq!(
            told,
            [
                "column \"id\" is not in the schema and was ignored",
                "column \"town\": 2 values outside the schema's list read as `other`, \"rest\"",
                "column \"icd\": 1 value outside the schema's list read as `other`",
                "column \"age\": 1 number clipped to the nearest limit",
                "column \"age\": 1 cell without a valid value read as missing",
            ]
        );
    }
}
