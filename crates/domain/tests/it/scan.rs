//! Splitting of text into records: all dialects, and the places that errors name.
#![allow(clippy::unwrap_used)]

use std::io::{self, Read};

use fhaim_domain::{Dialect, Error, FieldProblem, ScanError, Scanner, TableRecords};
use proptest::prelude::*;

/// The records of a text, and the line where each begins.
/// A record: its line and its fields.
type Split = (u64, Vec<Vec<u8>>);

fn split(dialect: &Dialect, input: impl Read) -> Result<Vec<Split>, ScanError> {
    let mut scanner = Scanner::new(dialect, input)?;
    let mut records = Vec::new();
    while scanner.advance()? {
        let fields = (0..scanner.fields()).map(|field| scanner.field(field).to_vec());
        records.push((scanner.record_line(), fields.collect()));
    }
    Ok(records)
}

/// The header and the records of a table, with bars between fields.
fn table(dialect: &Dialect, text: &str) -> Result<Vec<String>, String> {
    let mut records =
        TableRecords::open("t.csv", dialect, text.as_bytes()).map_err(|e| e.to_string())?;
    let mut rows = vec![records.header().join("|")];
    loop {
        match records.advance() {
            Ok(true) => {}
            Ok(false) => return Ok(rows),
            Err(error) => return Err(error.to_string()),
        }
        let fields = 0..records.header().len();
        let fields: Vec<&str> = fields.map(|field| records.text(field).unwrap()).collect();
        rows.push(fields.join("|"));
    }
}

fn plain() -> Dialect {
    Dialect::default()
}

/// A reader that returns one byte at a time.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(1);
        self.0.read(&mut buffer[..length])
    }
}

#[test]
fn lines_before_the_header_are_skipped() {
    let dialect = Dialect {
        skip_rows: 3,
        ..plain()
    };
    let text = "Export, of \"May\n# unit\r\n\na,b\n1,2\n";
    assert_eq!(table(&dialect, text).unwrap(), ["a|b", "1|2"]);
    let beyond = Dialect {
        skip_rows: 9,
        ..plain()
    };
    assert!(table(&beyond, text).unwrap_err().contains("empty"));
}

#[test]
fn comments_are_skipped_wherever_they_are() {
    let dialect = Dialect {
        comment: Some(b'#'),
        ..plain()
    };
    let text = "# one\na,b\n# two, three, four\n1,#2\n#";
    assert_eq!(table(&dialect, text).unwrap(), ["a|b", "1|#2"]);
}

#[test]
fn rows_of_a_footer_are_not_records() {
    let dialect = Dialect {
        skip_footer: 2,
        ..plain()
    };
    let text = "a,b\n1,2\n3,4\nTotal,6\nSource: registry, 2024, May\n";
    assert_eq!(table(&dialect, text).unwrap(), ["a|b", "1|2", "3|4"]);
    assert_eq!(table(&dialect, "a,b\n1,2\n").unwrap(), ["a|b"]);
}

#[test]
fn short_rows_at_the_end_are_refused_as_a_footer() {
    let error = table(&plain(), "a,b\n1,2\n3,4\nend\nSource: x, y, z\n").unwrap_err();
    assert_eq!(
        error,
        "t.csv: row 3 (line 4): 1 field where the header has 2; the last 2 rows all have a wrong number: they \
         are a footer, or the file was cut off"
    );
    let error = table(&plain(), "a,b\n1,2\n3").unwrap_err();
    assert!(
        error.ends_with("in the last row: it is a footer, or the file was cut off"),
        "{error}"
    );
    let error = table(&plain(), "a,b\n1,2\n3\n4,5\n").unwrap_err();
    assert_eq!(
        error,
        "t.csv: row 2 (line 3): 1 field where the header has 2"
    );
    // The footer has one row more than the dialect states.
    let one = Dialect {
        skip_footer: 1,
        ..plain()
    };
    let error = table(&one, "a,b\n1,2\n3,4\nend\nSource: x, y, z\n").unwrap_err();
    assert!(
        error.starts_with("t.csv: row 3 (line 4)") && error.contains("last 2 rows"),
        "{error}"
    );
}

/// Reading can continue after a row with a wrong number of fields.
#[test]
fn rows_after_a_refused_one_are_read() {
    let text = "a,b\n1\n2,x\n3\n4,y\n5\n6\n";
    for skip_footer in [0, 1] {
        let dialect = Dialect {
            skip_footer,
            ..plain()
        };
        let mut records = TableRecords::open("t.csv", &dialect, text.as_bytes()).unwrap();
        let mut seen = Vec::new();
        loop {
            match records.advance() {
                Ok(false) => break,
                Ok(true) => seen.push(format!("{}: {:?}", records.row(), records.text(1).unwrap())),
                Err(Error::Ragged { row, footer, .. }) => seen.push(format!("{row}: {footer:?}")),
                Err(other) => panic!("{other}"),
            }
        }
        let all = [
            "1: None",
            "2: \"x\"",
            "3: None",
            "4: \"y\"",
            "5: Some(2)",
            "6: Some(1)",
        ];
        assert_eq!(seen, all.get(..6 - skip_footer).unwrap());
    }
    let mut records =
        TableRecords::open("t.csv", &plain(), "a,b\n1\n2,x\n3,\0".as_bytes()).unwrap();
    assert!(matches!(
        records.advance(),
        Err(Error::Ragged { row: 1, .. })
    ));
    assert!(records.advance().unwrap());
    assert!(
        records
            .advance()
            .unwrap_err()
            .to_string()
            .contains("row 3 (line 4), column \"b\": the field has a NUL")
    );
}

#[test]
fn last_row_that_is_a_total_is_refused_on_request() {
    let dialect = Dialect {
        refuse_total: true,
        ..plain()
    };
    for last in ["Total,400", " total: ,400", "Summe,", ",TOTAL"] {
        let text = format!("a,b\n1,2\n3,4\n{last}\n\n");
        let error = table(&dialect, &text).unwrap_err();
        assert!(
            error.starts_with("t.csv: row 3 (line 4), the last one, begins with"),
            "{error}"
        );
        assert_eq!(table(&plain(), &text).unwrap().len(), 4);
    }
    for text in [
        "a,b\n1,2\ntotal,2\n3,4\n",
        "a,b\ntotal,1\n",
        "a,b\n1,2\nTotal cholesterol,2\n",
    ] {
        assert!(table(&dialect, text).is_ok(), "{text}");
    }
}

#[test]
fn blanks_around_fields_and_quotes_are_trimmed() {
    let dialect = Dialect {
        trim: true,
        ..plain()
    };
    let text = "age, city ,x\n29 , \"Bonn, Rhein\" ,\t3\n  \n 1,\" Ulm \", \n";
    let rows = ["age|city|x", "29|Bonn, Rhein|3", "1| Ulm |"];
    assert_eq!(table(&dialect, text).unwrap(), rows);
    assert_eq!(table(&plain(), "a, b\n1, 2\n").unwrap(), ["a| b", "1| 2"]);
}

#[test]
fn delimiter_at_the_end_of_rows_is_no_field() {
    let dialect = Dialect {
        trailing_delimiter: true,
        ..plain()
    };
    for header in ["a,b", "a,b,"] {
        let text = format!("{header}\n1,2,\n3,,\n");
        assert_eq!(table(&dialect, &text).unwrap(), ["a|b", "1|2", "3|"]);
    }
    let error = table(&dialect, "a,b\n1,2,\n3,4,5\n6,7,\n").unwrap_err();
    assert!(
        error.contains("row 2 (line 3): 3 fields where the header has 3"),
        "{error}"
    );
}

#[test]
fn delimiter_at_the_end_of_the_header_is_no_name() {
    let dialect = Dialect {
        header_delimiter: true,
        ..plain()
    };
    assert_eq!(table(&dialect, "a,b,\n1,2\n").unwrap(), ["a|b", "1|2"]);
}

#[test]
fn row_names_get_a_column() {
    let dialect = Dialect {
        row_names: true,
        ..plain()
    };
    let rows = ["row|a|b", "x|1|2"];
    assert_eq!(table(&dialect, "a,b\nx,1,2\n").unwrap(), rows);
    assert_eq!(
        table(&dialect, "row\nx,1\n").unwrap(),
        ["row (2)|row", "x|1"]
    );
}

#[test]
fn runs_of_blanks_separate_fields() {
    let dialect = Dialect {
        whitespace: true,
        ..plain()
    };
    let text = "age  smoker\tldl\n 41   yes 7.6 \n\t\n\"6 3\" no\t\t\"\"\r\n7 no 1";
    let rows = ["age|smoker|ldl", "41|yes|7.6", "6 3|no|", "7|no|1"];
    assert_eq!(table(&dialect, text).unwrap(), rows);
}

#[test]
fn escapes_work_before_special_bytes_only() {
    let dialect = Dialect {
        escape: Some(b'\\'),
        ..plain()
    };
    let text = "a,b\n\"5\\\" pipe\",\\N\n\"x\\\\\",y\\,z\n\"C:\\dir\",\"q\"\"q\"\n";
    let rows = ["a|b", "5\" pipe|\\N", "x\\|y,z", "C:\\dir|q\"q"];
    assert_eq!(table(&dialect, text).unwrap(), rows);
}

#[test]
fn other_quotes_and_none_are_read() {
    let single = Dialect {
        quote: Some(b'\''),
        ..plain()
    };
    let text = "a,b\n'x, y',\"\n'it''s',2\n";
    assert_eq!(table(&single, text).unwrap(), ["a|b", "x, y|\"", "it's|2"]);
    let none = Dialect {
        quote: None,
        ..plain()
    };
    assert_eq!(table(&none, "a,b\n5\",\"6\n").unwrap(), ["a|b", "5\"|\"6"]);
}

#[test]
fn open_quote_is_reported_where_it_opens() {
    for (text, place) in [
        ("a,b\n1,\"x\n2,y\n", "t.csv: row 1 (line 2), column \"b\""),
        (
            "a,b\n1,2\n\n\"x\n2,y",
            "t.csv: row 2 (line 4), column \"a\"",
        ),
        ("a,b\n\"1\n2\",\"x\n", "t.csv: row 1 (line 3), column \"b\""),
        (
            "a,b\n1,2,\"x\n",
            "t.csv: row 1 (line 2), column \"column 3\"",
        ),
        ("a,\"b\n1,2\n", "t.csv: the name of column 2 (line 1)"),
    ] {
        let error = table(&plain(), text).unwrap_err();
        let words = format!("{place}: the quote that opens here is never closed");
        assert_eq!(error, words);
    }
}

/// An open quote that a later quote seems to close does not take in the rows between the two.
#[test]
fn text_after_a_quote_is_refused() {
    let error = table(&plain(), "a,b\n1,\"x\n2,y\n3,\"z\"\n").unwrap_err();
    assert_eq!(
        error,
        "t.csv: row 1 (line 2), column \"b\": text follows the quote that closes this field on line 4: inside a \
         quoted field, quotes are written twice"
    );
    let error = table(&plain(), "a,b\n1,\"say \"hi\" now\"\n").unwrap_err();
    assert!(
        error.contains("row 1 (line 2), column \"b\": text follows"),
        "{error}"
    );
    assert_eq!(
        table(&plain(), "a,b\n\"1\" ,\"2\" \n").unwrap(),
        ["a|b", "1|2"]
    );
}

#[test]
fn nul_characters_are_refused_with_their_place() {
    for cell in ["y\0es", "\"y\n\0es\"", "\0"] {
        let error = table(&plain(), &format!("a,b\n1,2\n3,{cell}\n")).unwrap_err();
        assert!(error.starts_with("t.csv: row 2 (line "), "{error}");
        assert!(
            error.contains("column \"b\": the field has a NUL character"),
            "{error}"
        );
    }
    let error = table(&plain(), "a,\0b\n").unwrap_err();
    assert!(
        error.starts_with("t.csv: the name of column 2 (line 1): the field has a NUL"),
        "{error}"
    );
}

#[test]
fn name_with_line_break_is_refused_with_its_place() {
    let error = table(&plain(), "a,\"line\r\nbreak\"\n1,2\n").unwrap_err();
    assert!(
        error.contains("line 1, column 2") && error.contains("has a line break"),
        "{error}"
    );
}

#[test]
fn columns_without_a_name_are_named() {
    let named = |text: &str| {
        let records = TableRecords::open("t.csv", &plain(), text.as_bytes()).unwrap();
        (records.header().join("|"), records.remarks().len())
    };
    assert_eq!(named(",age\n"), ("index|age".to_owned(), 1));
    assert_eq!(named(",age,index\n"), ("index (2)|age|index".to_owned(), 1));
    assert_eq!(
        named("age,,x,\n"),
        ("age|column 2|x|column 4".to_owned(), 2)
    );
    assert_eq!(named("\"\"\n"), ("column 1".to_owned(), 1));
    assert_eq!(named("a,A, a\n"), ("a|A| a".to_owned(), 0));
}

#[test]
fn long_name_is_refused_with_its_place() {
    let error = table(&plain(), &format!("a,{}\n", "x".repeat(1025))).unwrap_err();
    assert_eq!(
        error,
        "t.csv: the name of column 2 has 1025 bytes (at most 1024)"
    );
}

#[test]
fn quote_that_stays_open_is_refused_before_it_fills_the_memory() {
    let endless = b"a,b\n1,\"".chain(io::repeat(b'x'));
    let mut records = TableRecords::open("t.csv", &plain(), endless).unwrap();
    assert!(matches!(
        records.advance(),
        Err(Error::Cell {
            row: 1,
            line: 2,
            problem: fhaim_domain::CellProblem::Syntax(FieldProblem::OpenQuote),
            ..
        })
    ));
    let endless = b"a,b\n1,".chain(io::repeat(b'x'));
    let mut records = TableRecords::open("t.csv", &plain(), endless).unwrap();
    assert!(matches!(
        records.advance(),
        Err(Error::Length { row: 0, .. })
    ));
    let trimmed = Dialect {
        trim: true,
        ..plain()
    };
    let endless = b"a,b\n1,".chain(io::repeat(b' '));
    let mut records = TableRecords::open("t.csv", &trimmed, endless).unwrap();
    assert!(matches!(
        records.advance(),
        Err(Error::Length { row: 0, .. })
    ));
}

fn any_dialect() -> impl Strategy<Value = Dialect> {
    let delimiters = prop_oneof![Just(b','), Just(b';'), Just(b'\t'), Just(b'|'), Just(b' ')];
    let quotes = prop_oneof![Just(Some(b'"')), Just(Some(b'\'')), Just(None)];
    let flags = any::<[bool; 6]>();
    (delimiters, quotes, flags, 0u64..3, 0usize..3).prop_map(
        |(delimiter, quote, flags, skip_rows, skip_footer)| Dialect {
            delimiter,
            quote,
            escape: flags[0].then_some(b'\\'),
            comment: flags[1].then_some(b'#'),
            skip_rows,
            skip_footer,
            refuse_total: true,
            trim: flags[2],
            trailing_delimiter: flags[3],
            header_delimiter: flags[0] && flags[4],
            row_names: flags[4],
            whitespace: flags[5],
        },
    )
}

/// Bytes of which many have a meaning in a dialect.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let special = proptest::sample::select(b",;\t| \"'\\#\r\n\n\0ab".to_vec());
    proptest::collection::vec(prop_oneof![8 => special, 1 => any::<u8>()], 0..200)
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_split_in_every_dialect(bytes in bytes(), dialect in any_dialect()) {
        if let Ok(mut records) = TableRecords::open("t.csv", &dialect, &bytes[..]) {
            while let Ok(true) = records.advance() {}
        }
    }

    /// The same text gives the same records when it arrives byte by byte, and most fields are copied.
    #[test]
    fn records_do_not_depend_on_the_size_of_reads(bytes in bytes(), dialect in any_dialect()) {
        let whole = split(&dialect, &bytes[..]).map_err(|error| error.to_string());
        let slow = split(&dialect, Slow(&bytes)).map_err(|error| error.to_string());
        prop_assert_eq!(whole, slow);
    }

    /// The crate `csv` reads the same from text without the mistakes that it tolerates.
    #[test]
    fn records_equal_those_of_another_reader(bytes in bytes(), flags: [bool; 2]) {
        let dialect = Dialect { escape: flags[0].then_some(b'!'), quote: flags[1].then_some(b'"'), ..plain() };
        let text: Vec<u8> = bytes.iter().copied().filter(|&byte| byte != b'!').collect();
        let Ok(records) = split(&dialect, &text[..]) else { return Ok(()) };
        let mut reader = csv::ReaderBuilder::new();
        let reader = reader.has_headers(false).flexible(true).quoting(flags[1]).escape(dialect.escape);
        let others = reader.from_reader(&text[..]);
        let others: Vec<Vec<Vec<u8>>> = others
            .into_byte_records()
            .map(|record| record.unwrap().iter().map(<[u8]>::to_vec).collect())
            .collect();
        // It keeps blanks after a quote.
        let without_blanks = |fields: &[Vec<u8>]| -> Vec<Vec<u8>> {
            fields.iter().map(|field| field.trim_ascii_end().to_vec()).collect()
        };
        let records: Vec<_> = records.iter().map(|(_, fields)| without_blanks(fields)).collect();
        let others: Vec<_> = others.iter().map(|fields| without_blanks(fields)).collect();
        prop_assert_eq!(records, others);
    }
}
