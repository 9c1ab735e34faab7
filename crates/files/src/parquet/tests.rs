//! Tests of tables as pyarrow, polars, pandas and the library itself write them.

use std::{io::Write, path::PathBuf};

use parquet::{
    basic::{Compression, Encoding, PageType},
    column::{
        page::{CompressedPage, Page, PageWriter},
        writer::ColumnCloseResult,
    },
    data_type::{
        ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type, Int96, Int96Type,
    },
    file::{
        metadata::ColumnChunkMetaData,
        properties::WriterProperties,
        writer::{
            SerializedFileWriter, SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite,
        },
    },
    schema::parser::parse_message_type,
};

use super::*;
use crate::{data::Data, refuse_left_out};

const DAYS: i64 = 19_723; // 2024-01-01

const DAY: i64 = fhaim_domain::DAY;

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
    group: &mut SerializedRowGroupWriter<'_, File>,
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
    read_path(file.path())
}

fn open(path: &Path) -> Result<Table, String> {
    let mut file = File::open(path).unwrap();
    assert!(is_parquet(&mut file).unwrap());
    Table::open(path, file).map_err(|error| error.to_string())
}

fn read_path(path: &Path) -> Result<String, String> {
    let rows = open(path)?.rows(path);
    let mut text = String::new();
    let read = rows
        .map_err(|error| error.to_string())?
        .read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    Ok(text)
}

#[test]
fn table_is_converted_to_csv() {
    let message = "message t {
        optional int32 age; required double weight; optional binary ward (UTF8);
        required int32 born (DATE); required int64 seen (TIMESTAMP(MICROS,true));
        required int64 left (TIMESTAMP(NANOS,false)); required int64 id; }";
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
         7,70,\"S\u{fc}d, alt\",2024-01-01,2024-01-01T01:02:03Z,2024-01-01,9223372036854775807\n\
         ,61.5,,1969-12-31,1970-01-01T00:00:00Z,1970-01-01,-5\n"
    );
}

/// Returns the path of a file in `tests/parquet` or `tests/tables`.
fn path(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let paths = ["parquet", "tables"].map(|folder| tests.join(format!("{folder}/{name}.parquet")));
    let mut paths = paths.into_iter();
    paths.find(|path| path.exists()).unwrap()
}

/// Converts a file.
fn kept(name: &str) -> Result<String, String> {
    read_path(&path(name))
}

/// Returns the first record of a file, value by value with the names of the columns.
fn first(name: &str) -> Vec<(String, String)> {
    let text = kept(name).unwrap();
    let mut table = csv::Reader::from_reader(text.as_bytes());
    let names = table.headers().unwrap().clone();
    let record = table.records().next().unwrap().unwrap();
    let pairs = names.iter().zip(&record);
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = expected.iter();
    pairs
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The same table, as pyarrow and polars write it.
#[test]
fn files_of_other_programs_are_read_with_every_compression() {
    let date = |day: i64| {
        let (year, month, day) = fhaim_domain::date_from_days(DAYS + day).unwrap();
        format!("{year}-{month:02}-{day:02}")
    };
    let row = |row: i64| {
        let age = match row % 7 {
            3 => String::new(),
            _ => (row % 90).to_string(),
        };
        let weight = (row % 50) as f64 / 2.0;
        let ward = ["\"S\u{fc}d, alt\"", "Nord"][(row % 2) as usize];
        format!("{age},{weight},{ward},{}\n", date(row % 30))
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
fn table_without_a_supported_column_is_rejected_with_their_types() {
    for (columns, words) in [
        ("repeated int32 visits;", "\"visits\" (lists)"),
        (
            "required group at { required int32 x; } required binary photo;",
            "\"at\" (records), \"photo\" (bytes)",
        ),
        (
            "required fixed_len_byte_array(12) stay (INTERVAL);",
            "\"stay\" (intervals)",
        ),
    ] {
        let file = write(&format!("message t {{ {columns} }}"), |_| ());
        let error = read(&file).unwrap_err();
        assert!(error.contains("no column can be read"), "{error}");
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn unsupported_columns_are_left_out_in_one_remark() {
    for (name, header, remark) in [
        (
            "nested",
            "n,ward\n",
            "left out \"codes\" (lists), \"adr\" (records);",
        ),
        ("duration-binary", "n,stay\n", "left out \"raw\" (bytes);"),
        (
            "kinds",
            "u64,f16,f64,d32,d256,time,stay,naive,utc,berlin,east,uuid,big,word,flag,none,after\n",
            "left out \"list\" (lists), \"map\" (maps), \"record\" (records), \"fixed\" (bytes);",
        ),
    ] {
        assert!(kept(name).unwrap().starts_with(header), "{name}");
        let remarks = open(&path(name)).unwrap().remarks();
        assert_eq!(remarks.len(), 1);
        assert!(remarks[0].starts_with(remark), "{remarks:?}");
    }
}

#[test]
fn values_of_every_type_of_pyarrow_are_read() {
    let whole = format!("-1{}.1", "0".repeat(50));
    let expected = [
        ("u64", "18446744073709551615"),
        ("f16", "0.1"),
        ("f64", "7"),
        ("d32", "1.50"),
        ("d256", whole.as_str()),
        ("time", "07:05:00"),
        ("stay", "36:00:05"),
        ("naive", "2024-07-15 12:00:00.250"),
        ("utc", "2024-07-15T12:00:00.250Z"),
        ("berlin", "2024-07-15T14:00:00.250+02:00"),
        ("east", "2024-07-15T17:30:00.250+05:30"),
        ("uuid", "00000000-0000-0000-0000-000000000007"),
        ("big", "a, b"),
        ("word", "x"),
        ("flag", "true"),
        ("none", ""),
        ("after", "1"),
    ];
    assert_eq!(first("kinds"), pairs(&expected));
    let last = kept("kinds").unwrap();
    assert!(last.ends_with(&format!("\n{}\n", ",".repeat(16))));
    assert_eq!(
        kept("int96").unwrap(),
        "at\n2024-07-15 12:00:00.250\n\"\"\n"
    );
}

#[test]
fn values_of_polars_are_read() {
    let expected = [
        ("time", "07:05:00.250"),
        ("stay", "36:00:05"),
        ("tokyo", "2024-07-15T21:00:00.250+09:00"),
        ("word", "x"),
        ("level", "low"),
        ("price", "1.50"),
    ];
    assert_eq!(first("polars-kinds"), pairs(&expected));
}

#[test]
fn zones_and_fractions_are_kept() {
    let expected = [
        ("at", "2024-04-29T22:02:05.205+02:00"),
        ("naive", "2024-04-29 20:02:05.205"),
        ("ward", "north"),
    ];
    assert_eq!(first("zone"), pairs(&expected));
    let expected = [("n", "89"), ("stay", "216:00:00")];
    assert_eq!(first("duration-binary"), pairs(&expected));
}

#[test]
fn types_are_read_exactly() {
    let expected = [
        ("amount", "9906.30"),
        ("n", "17"),
        ("ward", "north"),
        ("f32", "1.4659009"),
        ("flag", "true"),
        ("big", "y"),
        ("u8", "91"),
        ("nothing", ""),
        ("d64", "2024-04-29"),
    ];
    assert_eq!(first("types"), pairs(&expected));
}

#[test]
fn index_of_pandas_without_a_name_is_left_out() {
    for (name, header, is_left_out) in [
        ("pandas-index", "n,ward,k,at\n", true),
        ("pandas-names", "n,patient\n", true),
        ("pandas-range", "n\n", false),
    ] {
        assert!(kept(name).unwrap().starts_with(header), "{name}");
        let remarks = open(&path(name)).unwrap().remarks();
        let has_remark = remarks
            .iter()
            .any(|remark| remark.contains("pandas' index without a name"));
        assert_eq!(has_remark, is_left_out, "{name}");
    }
}

#[test]
fn schema_with_a_left_out_column_is_rejected_with_the_reason() {
    let schema = |columns: &str| {
        let json = format!("{{\"name\": \"t\", \"columns\": [{columns}]}}");
        fhaim_domain::Schema::from_json("s.json", json.as_bytes()).unwrap()
    };
    let data = Data::from(path("nested"));
    let number =
        r#"{"name": "n", "kind": "number", "integer": true, "min": 0, "max": 9, "bins": 2}"#;
    let kind = |name, kind| format!(r#"{{"name": "{name}", "kind": {kind}}}"#);
    let fine = [number, &kind("adr", r#""left-out""#)].join(",");
    assert!(refuse_left_out(&data, &schema(&fine)).is_ok());
    let list = r#""categorical", "categories": ["a", "b"]"#;
    let wrong = [&fine, kind("codes", list).as_str()].join(",");
    let error = refuse_left_out(&data, &schema(&wrong)).unwrap_err();
    assert!(error.to_string().contains("\"codes\" (lists)"), "{error}");
}

#[test]
fn unsigned_and_older_types_are_read() {
    let message = "message t {
        required int32 small (UINT_32); required int64 large (UINT_64); required int32 time (TIME_MILLIS);
        required int64 at (TIMESTAMP_MILLIS); required int96 old; required int64 cents (DECIMAL(9,2));
        required binary price (DECIMAL(9,2)); required binary word (ENUM); }";
    let file = write(message, |writer| {
        let mut group = writer.next_row_group().unwrap();
        column::<Int32Type>(&mut group, &[-1], None);
        column::<Int64Type>(&mut group, &[-1], None);
        column::<Int32Type>(&mut group, &[25_500_250], None);
        column::<Int64Type>(&mut group, &[-1], None);
        let mut old = Int96::new();
        old.set_data(1, 0, 2_440_587);
        column::<Int96Type>(&mut group, &[old], None);
        column::<Int64Type>(&mut group, &[-5], None);
        column::<ByteArrayType>(&mut group, &[ByteArray::from(vec![0xff, 0x38])], None);
        column::<ByteArrayType>(&mut group, &[ByteArray::from("a\nb")], None);
        group.close().unwrap();
    });
    assert_eq!(
        read(&file).unwrap(),
        "small,large,time,at,old,cents,price,word\n\
         4294967295,18446744073709551615,07:05:00.250,1969-12-31 23:59:59.999,1969-12-31 00:00:00.000000001,-0.05,\
         -2.00,\"a\nb\"\n"
    );
}

#[test]
fn decimals_of_a_second_are_those_of_all_row_groups() {
    let message = "message t { required int64 at (TIMESTAMP(MICROS,false)); }";
    let file = write(message, |writer| {
        for moment in [0, 1_500_000] {
            let mut group = writer.next_row_group().unwrap();
            column::<Int64Type>(&mut group, &[moment], None);
            group.close().unwrap();
        }
    });
    assert_eq!(
        read(&file).unwrap(),
        "at\n1970-01-01 00:00:00.000\n1970-01-01 00:00:01.500\n"
    );
}

#[test]
fn long_tables_are_read_in_pieces() {
    let message = "message t { optional int64 id; required binary word (UTF8); }";
    let word = "x".repeat(50);
    let file = write(message, |writer| {
        for first in [0, 5_000] {
            let mut group = writer.next_row_group().unwrap();
            let ids: Vec<i64> = (first..first + 5_000).filter(|id| id % 3 > 0).collect();
            let there: Vec<i16> = (first..first + 5_000)
                .map(|id| i16::from(id % 3 > 0))
                .collect();
            column::<Int64Type>(&mut group, &ids, Some(&there));
            column::<ByteArrayType>(
                &mut group,
                &vec![ByteArray::from(word.as_str()); 5_000],
                None,
            );
            group.close().unwrap();
        }
    });
    let row = |id: i64| match id % 3 {
        0 => format!(",{word}\n"),
        _ => format!("{id},{word}\n"),
    };
    let expected: String = (0..10_000).map(row).collect();
    assert_eq!(read(&file).unwrap(), format!("id,word\n{expected}"));
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

/// Reads a file with these bytes. Returns its text, or the error.
fn read_bytes(bytes: &[u8]) -> Result<String, String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    read(&file)
}

#[test]
fn damaged_files_are_errors_and_no_panics() {
    for name in ["polars-kinds", "pyarrow-gzip"] {
        let bytes = std::fs::read(path(name)).unwrap();
        for place in MAGIC.len()..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] = [0x00, 0x7f, 0xff, bytes[place] ^ 1][place % 4];
            let _ = read_bytes(&damaged);
        }
        for end in (MAGIC.len()..bytes.len()).step_by(7) {
            assert_eq!(read_bytes(&bytes[..end]).ok(), None, "{name} {end}");
        }
    }
}

/// Writes a file with a column `word` of texts, whose pages are given with the sizes that they claim to have.
fn with_pages(compression: Compression, pages: Vec<CompressedPage>) -> tempfile::NamedTempFile {
    let message = "message t { required binary word (UTF8); }";
    write_by(compression, message, |writer| {
        let mut sink = TrackedWrite::new(Vec::new());
        let mut has_dictionary = false;
        let mut rows = 0;
        for page in pages {
            let is_dictionary = page.page_type() == PageType::DICTIONARY_PAGE;
            has_dictionary |= is_dictionary;
            rows += if is_dictionary { 0 } else { page.num_values() };
            SerializedPageWriter::new(&mut sink)
                .write_page(page)
                .unwrap();
        }
        let bytes = bytes::Bytes::from(sink.into_inner().unwrap());
        let descriptor = writer.schema_descr().column(0);
        let metadata = ColumnChunkMetaData::builder(descriptor)
            .set_compression(compression)
            .set_num_values(rows.into())
            .set_total_compressed_size(bytes.len() as i64)
            .set_dictionary_page_offset(has_dictionary.then_some(0))
            .set_data_page_offset(0)
            .build()
            .unwrap();
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: rows.into(),
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        let mut group = writer.next_row_group().unwrap();
        group.append_column(&bytes, close).unwrap();
        group.close().unwrap();
    })
}

fn data_page(bytes: &[u8], values: u32, encoding: Encoding) -> Page {
    Page::DataPage {
        buf: bytes::Bytes::copy_from_slice(bytes),
        num_values: values,
        encoding,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    }
}

#[test]
fn small_files_that_claim_to_be_huge_are_rejected() {
    const HUGE: u32 = i32::MAX as u32;
    let word = b"\x01\x00\x00\x00x";
    let huge = HUGE as usize;
    let dictionary = Page::DictionaryPage {
        buf: bytes::Bytes::from_static(word),
        num_values: HUGE,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    };
    for pages in [
        vec![CompressedPage::new(
            data_page(word, 1, Encoding::PLAIN),
            huge,
        )],
        vec![
            CompressedPage::new(dictionary, word.len()),
            CompressedPage::new(data_page(word, 1, Encoding::RLE_DICTIONARY), word.len()),
        ],
        vec![CompressedPage::new(
            data_page(word, HUGE, Encoding::DELTA_LENGTH_BYTE_ARRAY),
            word.len(),
        )],
        vec![CompressedPage::new(
            data_page(word, HUGE, Encoding::DELTA_BYTE_ARRAY),
            word.len(),
        )],
    ] {
        let file = with_pages(Compression::SNAPPY, pages);
        let error = read(&file).unwrap_err();
        assert!(error.contains("too much memory"), "{error}");
    }
    let fine = CompressedPage::new(data_page(word, 1, Encoding::PLAIN), word.len());
    let file = with_pages(Compression::UNCOMPRESSED, vec![fine]);
    assert_eq!(read(&file).unwrap(), "word\nx\n");
}

#[test]
fn gzip_pages_that_expand_beyond_their_claim_are_rejected() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&vec![0; 1 << 21]).unwrap();
    let bytes = gzip.finish().unwrap();
    let page = CompressedPage::new(data_page(&bytes, 1, Encoding::PLAIN), 5);
    let file = with_pages(Compression::GZIP(Default::default()), vec![page]);
    let file = file.reopen().unwrap();
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&file)
        .unwrap();
    let chunk = metadata.row_group(0).column(0);
    let check = |limit| pages::check(&file, chunk, limit);
    assert!(check(1 << 22).is_ok());
    let error = check(1 << 20).unwrap_err().to_string();
    assert!(error.contains("too much memory"), "{error}");
}

#[test]
fn long_equal_values_are_written_one_by_one() {
    let long = "x".repeat(100_000);
    let message = "message t { required binary word (UTF8); }";
    let file = write(message, |writer| {
        let mut group = writer.next_row_group().unwrap();
        column::<ByteArrayType>(
            &mut group,
            &vec![ByteArray::from(long.as_str()); 1_000],
            None,
        );
        group.close().unwrap();
    });
    let mut rows = open(file.path()).unwrap().rows(file.path()).unwrap();
    let mut text = vec![0; 1_000_000];
    rows.read_exact(&mut text).unwrap();
    assert!(text.starts_with(b"word\nxxx"));
}

#[test]
fn deep_and_wide_schemas_are_rejected() {
    for (message, is_fine) in [
        (nested(60), true),
        (nested(70), false),
        (nested(300), false),
    ] {
        let file = write(&message, |_| ());
        let error = read(&file).unwrap_err();
        assert_eq!(error.contains("(records)"), is_fine, "{error}");
    }
    let name = "x".repeat(1 << 16);
    let columns: String = (0..300)
        .map(|number| format!("required int32 a{number}; "))
        .collect();
    let wide = format!("message t {{ required group {name} {{ {columns} }} }}");
    let error = read(&write(&wide, |_| ())).unwrap_err();
    assert!(error.contains("not complete, or damaged"), "{error}");
}

/// Returns a schema with a column in this many groups.
fn nested(groups: usize) -> String {
    let (open, close) = ("required group g { ".repeat(groups), "} ".repeat(groups));
    format!("message t {{ {open} required int32 x; {close} }}")
}
