//! Tables of all kinds, opened as text.

use std::io::Write;

use fhaim_domain::TableRecords;

use super::*;
use crate::{Mark, keeping};

/// Writes a file, and returns its rows with bars between fields, and the remarks on it.
fn see(bytes: &[u8], format: &FormatArguments) -> Result<(Vec<String>, Vec<String>), String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let (rows, remarks) = keeping(|| rows(file.path(), format));
    let quiet = rows_of(dialect_text(&file.path().into(), format));
    assert_eq!(rows.is_ok(), quiet.is_ok());
    let name = format!("{}: ", file.path().display());
    let plain = |text: String| text.replace(&name, "");
    let rows = rows.map_err(plain)?;
    Ok((rows, remarks.into_iter().map(plain).collect()))
}

fn rows(path: &Path, format: &FormatArguments) -> Result<Vec<String>, String> {
    rows_of(text(path, format))
}

fn rows_of(opened: Result<(Box<dyn Read>, Dialect), Error>) -> Result<Vec<String>, String> {
    let (text, dialect) = opened.map_err(|error| error.to_string())?;
    let mut records = TableRecords::open("t", &dialect, text).map_err(|error| error.to_string())?;
    let mut rows = vec![records.header().join("|")];
    while records.advance().map_err(|error| error.to_string())? {
        let fields = (0..records.header().len()).map(|field| records.text(field).unwrap());
        rows.push(fields.collect::<Vec<&str>>().join("|"));
    }
    Ok(rows)
}

#[test]
fn compressed_tables_are_read() {
    let table = b"a;b\n1;x\n";
    let format = FormatArguments::default();
    let zstd = zstd::encode_all(&table[..], 1).unwrap();
    let (rows, remarks) = see(&zstd, &format).unwrap();
    assert_eq!(rows, ["a|b", "1|x"]);
    assert_eq!(remarks[0], "decompressed with Zstandard");
    assert_eq!(
        remarks[1],
        "detected the field delimiter ';'; use --delimiter to change that"
    );
    let error = see(&zstd[..zstd.len() / 2], &format).unwrap_err();
    assert!(!error.is_empty());
}

#[test]
fn stated_format_is_used() {
    let format = FormatArguments {
        delimiter: Some(b';'),
        encoding: Some("windows-1252".parse().unwrap()),
        skip_rows: Some(1),
        skip_footer: Some(1),
        comment: Some(Mark(Some(b'%'))),
        quote: Some(Mark(None)),
        ..FormatArguments::default()
    };
    assert!(format.is_any() && !FormatArguments::default().is_any());
    let (rows, remarks) = see(b"title\n% x\na;b\n1;\"K\xf6ln\nend\n", &format).unwrap();
    assert_eq!(rows, ["a|b", "1|\"K\u{f6}ln"]);
    assert_eq!(remarks, [""; 0]);
}

#[test]
fn files_of_other_types_are_refused_by_name() {
    let format = FormatArguments::default();
    let error = see(b"$FL2@(#) SPSS", &format).unwrap_err();
    assert!(
        error.starts_with("this is an SPSS file (.sav), not a table in text"),
        "{error}"
    );
    let sheet = FormatArguments {
        sheet: Some("1".to_owned()),
        ..FormatArguments::default()
    };
    assert!(
        see(b"a,b\n1,2\n", &sheet)
            .unwrap_err()
            .contains("leave out --sheet")
    );
    assert!(
        see(b"PK\x03\x04 xl/ and nothing else", &format)
            .unwrap_err()
            .contains("save the table as CSV")
    );
}

#[test]
fn late_encoding_is_noted_once() {
    let text = [
        &b"a,b\n"[..],
        &b"1,2\n".repeat(50_000),
        b"K\xf6ln,M\xfcnchen\n",
    ]
    .concat();
    let (rows, remarks) = see(&text, &FormatArguments::default()).unwrap();
    assert_eq!(rows.last().unwrap(), "K\u{f6}ln|M\u{fc}nchen");
    assert_eq!(
        remarks,
        ["read as windows-1252; use --encoding to change that"]
    );
}
