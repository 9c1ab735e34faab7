//! Files that a command reads.

use std::{
    fs::{self, File},
    io::{BufReader, Cursor, Read},
    path::Path,
};

use fhaim_domain::{
    Binning, Dialect, Encoding, Kind, MAX_SNIFFED, OutOfRange, ReadOptions, Reading, Schema, Table,
    Transcoder, UnknownCategory, UnlistedColumn, counted, read_csv,
};

use crate::{
    args::{FormatArguments, StrictnessArguments},
    error::Error,
};

/// Opens a file for reading.
pub fn open(path: &Path) -> Result<BufReader<File>, Error> {
    let refuse = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(refuse)?;
    if file.metadata().map_err(refuse)?.is_dir() {
        return Err(refuse(std::io::ErrorKind::IsADirectory.into()));
    }
    Ok(BufReader::new(file))
}

/// A table's text as UTF-8, and the byte between its fields: as asked for, or as its first lines
/// have it. What is not usual is said on standard error.
pub fn text(path: &Path, format: &FormatArguments) -> Result<(impl Read, u8), Error> {
    let (head, dialect, rest) = sniff(path)?;
    let delimiter = format.delimiter.unwrap_or(dialect.delimiter);
    let name = path.display();
    if format.delimiter.is_none() && delimiter != b',' {
        let shown = char::from(delimiter).escape_default();
        eprintln!("note: {name}: fields are separated by '{shown}' (--delimiter says otherwise)");
    }
    if dialect.encoding != Encoding::Utf8 {
        eprintln!("note: {name}: read as {}", dialect.encoding);
    }
    let whole = Cursor::new(head).chain(rest);
    Ok((Transcoder::new(whole, dialect.encoding), delimiter))
}

/// The byte between the fields of a table: as asked for, or as its first lines have it.
pub fn delimiter(path: &Path, format: &FormatArguments) -> Result<u8, Error> {
    match format.delimiter {
        Some(delimiter) => Ok(delimiter),
        None => Ok(sniff(path)?.1.delimiter),
    }
}

/// The first bytes of a file, the dialect that they are in, and the rest.
fn sniff(path: &Path) -> Result<(Vec<u8>, Dialect, BufReader<File>), Error> {
    let mut file = open(path)?;
    let mut head = Vec::new();
    let read = file
        .by_ref()
        .take(MAX_SNIFFED as u64)
        .read_to_end(&mut head);
    read.map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    let dialect = Dialect::detect(&head);
    Ok((head, dialect, file))
}

/// Reads a schema.
pub fn schema(path: &Path) -> Result<Schema, Error> {
    let json = fs::read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    Ok(Schema::from_json(&path.to_string_lossy(), &json)?)
}

/// Reads a table, and tells its holder on standard error what the reading changed.
pub fn table(
    path: &Path,
    schema: Schema,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
) -> Result<Table, Error> {
    Ok(read(path, schema, format, strictness, false)?.table)
}

/// As [`table`], with what was noticed, and its values as they are.
pub fn reading(
    path: &Path,
    schema: Schema,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
) -> Result<Reading, Error> {
    read(path, schema, format, strictness, true)
}

fn read(
    path: &Path,
    schema: Schema,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
    keep_values: bool,
) -> Result<Reading, Error> {
    let (text, delimiter) = text(path, format)?;
    let options = ReadOptions {
        delimiter,
        keep_values,
        ..read_options(path, format, strictness)
    };
    let reading = read_csv(schema, text, &options)?;
    remark(&reading);
    Ok(reading)
}

fn read_options(
    path: &Path,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
) -> ReadOptions {
    let mut options = ReadOptions::new(path.to_string_lossy());
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

fn remark(reading: &Reading) {
    for column in &reading.left_out {
        eprintln!("note: column {column:?} is not in the schema and was left out");
    }
    let columns = reading.table.schema().columns();
    for (column, adjusted) in columns.iter().zip(&reading.adjusted) {
        let name = column.name();
        if adjusted.clamped > 0 {
            let numbers = counted(adjusted.clamped, "number");
            eprintln!("note: column {name:?}: {numbers} moved to the nearest limit");
        }
        if adjusted.other > 0 {
            let values = counted(adjusted.other, "value");
            eprintln!("note: column {name:?}: {values} taken for `other`");
        }
    }
}

/// Tells the holder of numeric columns that hold integers alone and are not said to.
pub fn remark_on_integers(reading: &Reading) {
    let columns = reading.table.schema().columns();
    for (column, adjusted) in columns.iter().zip(&reading.adjusted) {
        if adjusted.fractions == 0 && may_hold_integers(column.kind()) {
            eprintln!(
                "note: column {:?}: every number is whole; synthetic ones are only where its \
                 schema says \"integer\": true",
                column.name()
            );
        }
    }
}

/// Whether a column that is not said to hold integers could be.
fn may_hold_integers(kind: &Kind) -> bool {
    match kind {
        Kind::Numeric(binning) => {
            let (min, max) = (binning.min(), binning.max());
            !binning.integer() && Binning::new(min, max, binning.bins().into(), true).is_ok()
        }
        Kind::Categorical { .. } | Kind::Part { .. } => false,
    }
}
