//! Converts Parquet tables to CSV: UTF-8, commas, and an empty field for a missing value.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use parquet::{
    basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical},
    errors::ParquetError,
    file::reader::{FileReader, SerializedFileReader},
    record::{Field, Row},
    schema::types::ColumnDescriptor,
};
use zeroize::Zeroizing;

use crate::Error;

/// First bytes of a Parquet file.
const MAGIC: &[u8] = b"PAR1";

const DAY: i64 = 86_400;

/// How the values of a column are converted to text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Without conversion.
    Plain,
    /// From days since 1970.
    Date,
    /// From ticks since 1970, `per_second` of them in a second. A date without time if every value is `midnight`.
    Moment { per_second: i64, midnight: bool },
}

/// Whether a file begins like a Parquet file. Rewinds it to the first byte.
pub fn is_parquet(file: &mut File) -> io::Result<bool> {
    let mut head = Vec::new();
    file.by_ref()
        .take(MAGIC.len() as u64)
        .read_to_end(&mut head)?;
    // Pipes do not get here. They cannot rewind, and a Parquet file has its directory at the end.
    let is_parquet = head == MAGIC;
    file.seek(SeekFrom::Start(0))?;
    Ok(is_parquet)
}

/// Returns the table of a Parquet file as CSV, in memory.
///
/// # Errors
/// [`Error::Content`] for a broken file, a compression other than Snappy, Zstandard, gzip or LZ4, or a column of lists,
/// records or bytes.
pub fn csv(path: &Path, file: File) -> Result<Zeroizing<Vec<u8>>, Error> {
    let content = |problem: String| Error::Content {
        path: path.to_owned(),
        problem,
    };
    let broken = |error: ParquetError| content(problem(&error));
    let reader = SerializedFileReader::new(file).map_err(broken)?;
    let columns = reader.metadata().file_metadata().schema_descr_ptr();
    let mut forms = Vec::with_capacity(columns.num_columns());
    for column in columns.columns() {
        forms.push(form(column).ok_or_else(|| {
            content(format!(
                "column {:?} holds {}, but only numbers, texts, dates and booleans are supported: remove it from the file",
                column.path().string(),
                held(column)
            ))
        })?);
    }
    if forms.iter().any(|form| matches!(form, Form::Moment { .. })) {
        for row in reader.get_row_iter(None).map_err(broken)? {
            look(&row.map_err(broken)?, &mut forms);
        }
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    let unwritten = |error: csv::Error| content(error.to_string());
    let names = columns.columns().iter().map(|column| column.name());
    writer.write_record(names).map_err(unwritten)?;
    for row in reader.get_row_iter(None).map_err(broken)? {
        let row = row.map_err(broken)?;
        for ((_, field), &form) in row.get_column_iter().zip(&forms) {
            writer.write_field(text(field, form)).map_err(unwritten)?;
        }
        writer.write_record(None::<&[u8]>).map_err(unwritten)?;
    }
    let text = writer
        .into_inner()
        .map_err(|error| content(error.to_string()))?;
    Ok(text.into())
}

/// Describes the problem of a file and, where known, its solution.
fn problem(error: &ParquetError) -> String {
    let text = error.to_string();
    if text.contains("Disabled feature at compile time") {
        return format!("{text}: write the file with Snappy or Zstandard compression, or as CSV");
    }
    format!("this Parquet file cannot be read: {text}")
}

/// Describes the content of an unsupported column.
fn held(column: &ColumnDescriptor) -> String {
    if column.max_rep_level() > 0 || column.path().parts().len() > 1 {
        return "lists or records".to_owned();
    }
    match column.converted_type() {
        ConvertedType::NONE => format!("{} values", column.physical_type()),
        converted => format!("{converted} values"),
    }
}

/// Returns how a column is converted to text, or `None` if its type is not supported.
fn form(column: &ColumnDescriptor) -> Option<Form> {
    use ConvertedType as C;
    if column.max_rep_level() > 0 || column.path().parts().len() > 1 {
        return None;
    }
    let moment = |per_second| {
        Some(Form::Moment {
            per_second,
            midnight: true,
        })
    };
    match (column.physical_type(), column.converted_type()) {
        (Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE, _) => Some(Form::Plain),
        (Physical::INT32, C::DATE) => Some(Form::Date),
        (Physical::INT64, C::TIMESTAMP_MILLIS) => moment(1_000),
        (Physical::INT64, C::TIMESTAMP_MICROS) => moment(1_000_000),
        (Physical::INT64, C::NONE) if is_nanos(column) => moment(1_000_000_000),
        // The library converts these to milliseconds.
        (Physical::INT96, _) => moment(1_000),
        (
            Physical::INT32,
            C::NONE | C::INT_8 | C::INT_16 | C::INT_32 | C::UINT_8 | C::UINT_16 | C::UINT_32,
        )
        | (Physical::INT64, C::NONE | C::INT_64 | C::UINT_64)
        | (Physical::BYTE_ARRAY, C::UTF8 | C::ENUM | C::JSON)
        | (
            Physical::INT32
            | Physical::INT64
            | Physical::BYTE_ARRAY
            | Physical::FIXED_LEN_BYTE_ARRAY,
            C::DECIMAL,
        ) => Some(Form::Plain),
        _ => None,
    }
}

fn is_nanos(column: &ColumnDescriptor) -> bool {
    matches!(
        column.logical_type_ref(),
        Some(LogicalType::Timestamp(kind)) if kind.unit == TimeUnit::NANOS
    )
}

/// Clears `midnight` for columns with a time of day.
fn look(row: &Row, forms: &mut [Form]) {
    for ((_, field), form) in row.get_column_iter().zip(forms) {
        if let (
            Form::Moment {
                per_second,
                midnight,
            },
            Some(count),
        ) = (form, ticks(field))
        {
            *midnight &= count.rem_euclid(DAY * *per_second) == 0;
        }
    }
}

fn ticks(field: &Field) -> Option<i64> {
    match field {
        Field::Long(count) | Field::TimestampMillis(count) | Field::TimestampMicros(count) => {
            Some(*count)
        }
        _ => None,
    }
}

fn text(field: &Field, form: Form) -> String {
    match (field, form) {
        (Field::Null, _) => String::new(),
        (Field::Str(text), _) => text.clone(),
        (Field::Double(number), _) if number.is_nan() => String::new(),
        (Field::Float(number), _) if number.is_nan() => String::new(),
        // Prints whole numbers without a fraction: integer columns with missing values are often stored as floats.
        (Field::Double(number), _) => number.to_string(),
        (Field::Float(number), _) => number.to_string(),
        (Field::Date(days), _) => date(i64::from(*days)),
        (
            field,
            Form::Moment {
                per_second,
                midnight,
            },
        ) => match ticks(field) {
            Some(count) => moment(count.div_euclid(per_second), midnight),
            None => String::new(),
        },
        (field, _) => field.to_string(),
    }
}

fn moment(seconds: i64, midnight: bool) -> String {
    let day = date(seconds.div_euclid(DAY));
    let rest = seconds.rem_euclid(DAY);
    if midnight {
        return day;
    }
    format!(
        "{day} {:02}:{:02}:{:02}",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

/// Formats a number of days since 1970 as a Gregorian date. Without one of four-digit years, the
/// days follow `day `, so that the text is read as no date.
fn date(days: i64) -> String {
    match fhaim_domain::date_from_days(days) {
        Some((year, month, day)) => format!("{year:04}-{month:02}-{day:02}"),
        None => format!("day {days}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::{
        basic::Compression,
        data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type},
        file::{properties::WriterProperties, writer::SerializedFileWriter},
        schema::parser::parse_message_type,
    };
    use std::{io::Write, sync::Arc};

    const DAYS: i64 = 19_723; // 2024-01-01

    /// Writes a Parquet file with this message type; `fill` writes its columns one by one.
    fn write(
        message: &str,
        fill: impl FnOnce(&mut SerializedFileWriter<File>),
    ) -> tempfile::NamedTempFile {
        write_by(Compression::SNAPPY, message, fill)
    }

    fn write_by(
        compression: Compression,
        message: &str,
        fill: impl FnOnce(&mut SerializedFileWriter<File>),
    ) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let schema = Arc::new(parse_message_type(message).unwrap());
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .build();
        let handle = file.reopen().unwrap();
        let mut writer = SerializedFileWriter::new(handle, schema, Arc::new(properties)).unwrap();
        fill(&mut writer);
        writer.close().unwrap();
        file
    }

    fn column<T: DataType>(
        group: &mut parquet::file::writer::SerializedRowGroupWriter<'_, File>,
        values: &[T::T],
        there: Option<&[i16]>,
    ) {
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<T>()
            .write_batch(values, there, None)
            .unwrap();
        column.close().unwrap();
    }

    fn read(file: &tempfile::NamedTempFile) -> Result<String, String> {
        let mut open = file.reopen().unwrap();
        assert!(is_parquet(&mut open).unwrap());
        let text = csv(file.path(), open).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(text.to_vec()).unwrap())
    }

    #[test]
    fn table_is_converted_to_csv() {
        let message = "message t {
            optional int32 age; required double weight; optional binary ward (UTF8);
            required int32 born (DATE); required int64 seen (TIMESTAMP(MICROS,true));
            required int64 left (TIMESTAMP(NANOS,true)); required int64 id; }";
        let file = write(message, |writer| {
            let mut group = writer.next_row_group().unwrap();
            column::<Int32Type>(&mut group, &[7], Some(&[1, 0]));
            column::<DoubleType>(&mut group, &[70.0, 61.5], None);
            column::<ByteArrayType>(
                &mut group,
                &[ByteArray::from("S\u{fc}d, alt")],
                Some(&[1, 0]),
            );
            column::<Int32Type>(&mut group, &[DAYS as i32, -1], None);
            let second = DAYS * DAY + 3_600 + 120 + 3;
            column::<Int64Type>(&mut group, &[second * 1_000_000, 0], None);
            column::<Int64Type>(&mut group, &[DAYS * DAY * 1_000_000_000, 0], None);
            column::<Int64Type>(&mut group, &[i64::MAX, -5], None);
            group.close().unwrap();
        });
        assert_eq!(
            read(&file).unwrap(),
            "age,weight,ward,born,seen,left,id\n\
             7,70,\"S\u{fc}d, alt\",2024-01-01,2024-01-01 01:02:03,2024-01-01,9223372036854775807\n\
             ,61.5,,1969-12-31,1970-01-01 00:00:00,1970-01-01,-5\n"
        );
    }

    /// Converts a file of `tests/parquet`.
    fn kept(name: &str) -> Result<String, String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parquet");
        let path = folder.join(format!("{name}.parquet"));
        let mut file = File::open(&path).unwrap();
        assert!(is_parquet(&mut file).unwrap());
        let text = csv(&path, file).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(text.to_vec()).unwrap())
    }

    /// The same table, as pyarrow and polars write it.
    #[test]
    fn files_of_other_programs_are_read_with_every_compression() {
        let row = |row: i64| {
            let age = match row % 7 {
                3 => String::new(),
                _ => (row % 90).to_string(),
            };
            let weight = (row % 50) as f64 / 2.0;
            let ward = ["\"S\u{fc}d, alt\"", "Nord"][(row % 2) as usize];
            format!("{age},{weight},{ward},{}\n", date(DAYS + row % 30))
        };
        let table: String = (0..400).map(row).collect();
        let table = format!("age,weight,ward,seen\n{table}");
        for compression in ["none", "snappy", "zstd", "gzip", "lz4"] {
            let read = kept(&format!("pyarrow-{compression}"));
            assert_eq!(read.as_ref(), Ok(&table), "{compression}");
        }
        assert_eq!(kept("polars"), Ok(table));
        let refused = kept("pyarrow-brotli").unwrap_err();
        let way_out = "write the file with Snappy or Zstandard compression, or as CSV";
        assert!(refused.contains(way_out), "{refused}");
    }

    /// This is the older of two LZ4 framings; pyarrow no longer writes it.
    #[test]
    fn older_lz4_framing_is_read() {
        let message = "message t { required int64 id; }";
        let file = write_by(Compression::LZ4, message, |writer| {
            let mut group = writer.next_row_group().unwrap();
            column::<Int64Type>(&mut group, &[7; 1000], None);
            group.close().unwrap();
        });
        assert_eq!(read(&file).unwrap(), format!("id\n{}", "7\n".repeat(1000)));
    }

    #[test]
    fn unsupported_column_is_rejected_with_its_type() {
        for (column, words) in [
            ("repeated int32 visits;", "lists or records"),
            (
                "required group at { required int32 x; }",
                "lists or records",
            ),
            ("required int32 at (TIME(MILLIS,true));", "TIME_MILLIS"),
            ("required binary photo;", "BYTE_ARRAY"),
        ] {
            let file = write(&format!("message t {{ {column} }}"), |_| ());
            let error = read(&file).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn broken_file_is_rejected() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"PAR1 and then nothing of the kind")
            .unwrap();
        assert!(read(&file).unwrap_err().contains("cannot be read"));
        let mut other = tempfile::NamedTempFile::new().unwrap();
        other.write_all(b"a,b\n").unwrap();
        assert!(!is_parquet(&mut other.reopen().unwrap()).unwrap());
    }
}
