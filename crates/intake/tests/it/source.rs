//! Texts of tables as people have them: detection of encoding, compression and dialect.
#![allow(clippy::unwrap_used)]

use std::io::{Cursor, Read, Write};

use fhaim_domain::TableRecords;
use fhaim_intake::{Given, MAX_SNIFFED, TableText, TextError, open_text};
use proptest::prelude::*;

/// What became of a file: the header and the records with bars between fields, and the remarks.
#[derive(Debug, PartialEq)]
struct Seen {
    rows: Vec<String>,
    remarks: Vec<String>,
    error: Option<String>,
}

fn open<'a>(bytes: &'a [u8], given: &Given) -> TableText<'a> {
    open_text(bytes, given, |_| ()).unwrap()
}

fn see_given(bytes: &[u8], given: &Given) -> Seen {
    let table = open(bytes, given);
    let remarks = table
        .remarks
        .into_iter()
        .map(|remark| remark.text)
        .collect();
    let mut seen = Seen {
        rows: Vec::new(),
        remarks,
        error: None,
    };
    let mut records = match TableRecords::open("t.csv", &table.dialect, table.text) {
        Ok(records) => records,
        Err(error) => {
            seen.error = Some(error.to_string());
            return seen;
        }
    };
    seen.rows.push(records.header().join("|"));
    loop {
        match records.advance() {
            Ok(true) => {}
            Ok(false) => return seen,
            Err(error) => {
                seen.error = Some(error.to_string());
                return seen;
            }
        }
        let fields: Vec<_> = (0..records.header().len())
            .map(|field| String::from_utf8_lossy(records.bytes(field)))
            .collect();
        seen.rows.push(fields.join("|"));
    }
}

fn see(text: &str) -> Seen {
    see_given(text.as_bytes(), &Given::default())
}

/// Checks the rows and the remarks of a text that is read as meant.
#[track_caller]
fn assert_seen(text: &str, rows: &[&str], remarks: &[&str]) {
    let seen = see(text);
    assert_eq!(seen.error, None, "{text}");
    assert_eq!(seen.rows, rows, "{text}");
    assert_eq!(seen.remarks, remarks, "{text}");
}

fn delimiter(text: &str) -> u8 {
    open(text.as_bytes(), &Given::default()).dialect.delimiter
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn delimiter_with_equal_count_in_every_line_is_detected() {
    assert_eq!(delimiter("a,b\n1,2\n"), b',');
    assert_eq!(delimiter("a;b\n1,5;2,5\n"), b';');
    assert_eq!(delimiter("a;b;c\n\"x;y\";2,5;3\n1;2;3\n"), b';');
    assert_eq!(delimiter("a\tb, c\n1\t2\n"), b'\t');
    assert_eq!(delimiter("a|b\r\n1|2\r\n"), b'|');
    assert_eq!(delimiter("name\nx;y\n"), b',');
    assert_eq!(delimiter(""), b',');
    assert_eq!(delimiter("a;b\n1;\"x\n2;y\n"), b';');
}

#[test]
fn plain_csv_has_no_remarks() {
    assert_seen("a,b\n1,x\n2,\"y, z\"\n", &["a|b", "1|x", "2|y, z"], &[]);
}

#[test]
fn line_with_the_separator_is_used_and_skipped() {
    let said = [
        "the first line states the field delimiter, and was skipped",
        "detected the field delimiter ';'",
    ];
    assert_seen("sep=;\nage;x\n41;yes\n", &["age|x", "41|yes"], &said);
    assert_seen(
        "\u{feff}\"SEP=;\"\r\nage;x\r\n41;1,5\r\n",
        &["age|x", "41|1,5"],
        &said,
    );
}

#[test]
fn lines_before_the_header_are_skipped_with_a_remark() {
    let rows = ["age|smoker|ldl", "41|yes|7.6", "63|no|3.7"];
    let table = "age,smoker,ldl\n41,yes,7.6\n63,no,3.7\n";
    let text = format!("Export of 2024-05-01; station 12\n# unit: mmol/l\n\n{table}");
    assert_seen(&text, &rows, &["skipped 3 lines before the header"]);
    let text = format!("Study,ABC\nDate,2024-05-01\n\n{table}");
    assert_seen(&text, &rows, &["skipped 3 lines before the header"]);
    let text = format!(
        "##fileformat=VCFv4\n{}",
        table.replace(',', "\t").replace("age", "#age")
    );
    let said = [
        "skipped 1 line before the header",
        "detected the field delimiter '\\t'",
    ];
    assert_seen(
        &text,
        &["#age|smoker|ldl", "41|yes|7.6", "63|no|3.7"],
        &said,
    );
}

#[test]
fn titles_of_a_spreadsheet_above_the_header_are_skipped() {
    let text = "Statistical office;;\nTable 12;;\n;;\nyear;district;number\n2001;north;780\n2002;south;177\n\
                2003;north;186\n";
    let said = [
        "skipped 3 lines before the header",
        "detected the field delimiter ';'",
    ];
    let rows = [
        "year|district|number",
        "2001|north|780",
        "2002|south|177",
        "2003|north|186",
    ];
    assert_seen(text, &rows, &said);
    // Without a header of words, the first line is the header.
    let text = "year;;\n2001;north;780\n2002;south;177\n2003;north;186\n";
    assert_eq!(see(text).rows.len(), 4);
}

/// A record must never become the header: its values would be published as names of columns.
#[test]
fn records_never_become_the_header() {
    for text in [
        "a,b\n41,yes,7.6\n63,no,3.7\n70,no,1.0\n",
        "a,b,c,d,e\n41,yes,7.6\n63,no,3.7\n70,no,1.0\n",
        "# age,smoker,ldl\n41,yes,7.6\n63,no,3.7\n",
        "title\nanna,yes,bonn\nberta,no,ulm\nclara,no,kiel\n",
        "title\nNA,yes,7.6\n63,no,3.7\n41,yes,7.6\n63,no,3.7\n",
        "x\n1 2 3\n4 5 6\n7 8 9\n",
    ] {
        let seen = see(text);
        let first = text.lines().next().unwrap().replace([',', ' '], "|");
        assert_eq!(
            seen.rows.first().map(|row| row.replace([',', ' '], "|")),
            Some(first),
            "{text}"
        );
    }
}

#[test]
fn comments_between_records_are_skipped() {
    let said = ["lines that begin with # are comments, and were skipped"];
    assert_seen(
        "age,x\n41,yes\n# checked\n63,no\n",
        &["age|x", "41|yes", "63|no"],
        &said,
    );
    // Such a line may be a record.
    assert_eq!(see("id,x\n#1,yes\n#2,no\n").rows.len(), 3);
}

#[test]
fn delimiter_at_the_end_of_rows_is_left_out() {
    let said = ["each row ends with a delimiter, which was left out"];
    for header in ["A,B,C", "A,B,C,"] {
        let text = format!("{header}\n20,yes,4.4,\n49,,5.9,\n");
        assert_seen(&text, &["A|B|C", "20|yes|4.4", "49||5.9"], &said);
    }
    assert_seen("A,B,C\n20,yes,\n49,,\n", &["A|B|C", "20|yes|", "49||"], &[]);
}

#[test]
fn delimiter_at_the_end_of_the_header_is_left_out() {
    let said = ["the header ends with a delimiter, which was left out"];
    assert_seen("A,B,\n20,yes\n49,\n", &["A|B", "20|yes", "49|"], &said);
}

#[test]
fn table_without_a_header_is_refused() {
    let text = b"blade 1,2007,1994-10-01,Thesis\nblade 2,1991,2003-04-09,Report\nblade 3,1987,2001-03-26,Thesis\n";
    let error = open_text(&text[..], &Given::default(), |_| ())
        .map(drop)
        .unwrap_err();
    assert!(
        error.to_string().starts_with("line 1 looks like a record"),
        "{error}"
    );
    let given = Given {
        skip_rows: Some(0),
        ..Given::default()
    };
    assert_eq!(see_given(text, &given).rows.len(), 3);
    // Numbers may be names.
    assert_eq!(
        see("country,1990,1991\nde,1,2\nfr,1990,3\nit,4,5\n")
            .rows
            .len(),
        4
    );
    assert_eq!(see("age,1\n41,1\n63,0\n").rows.len(), 3);
}

#[test]
fn blanks_after_delimiters_are_trimmed() {
    let text = "age, city, ldl\n29, \"Bonn, Rhein\", 3.8\n75, \"Ulm\", 4.5\n";
    assert_seen(
        text,
        &["age|city|ldl", "29|Bonn, Rhein|3.8", "75|Ulm|4.5"],
        &["blanks around fields were left out"],
    );
    let text = "age, city\n29, Bonn\n75, Ulm\n";
    assert_seen(
        text,
        &["age|city", "29|Bonn", "75|Ulm"],
        &["blanks around fields were left out"],
    );
    assert_seen(
        "age,  padded ,x\n29, ,3\n75,Ulm,4\n",
        &["age|  padded |x", "29| |3", "75|Ulm|4"],
        &[],
    );
}

#[test]
fn single_quotes_are_detected() {
    let text = "age,city,ldl\n47,'Bonn, Rhein',4.1\n66,'Ulm, Donau',6.1\n";
    let said = ["fields are enclosed in single quotes"];
    assert_seen(
        text,
        &["age|city|ldl", "47|Bonn, Rhein|4.1", "66|Ulm, Donau|6.1"],
        &said,
    );
    assert_seen(
        "age,city\n47,'Bonn'\n66,'Ulm'\n",
        &["age|city", "47|Bonn", "66|Ulm"],
        &said,
    );
    let text = "name,x\n't Hart,1\nO'Neill,2\nD'Arcy,3\n";
    assert_seen(text, &["name|x", "'t Hart|1", "O'Neill|2", "D'Arcy|3"], &[]);
}

#[test]
fn backslashes_before_quotes_are_escapes() {
    let text = "qty,note,paid\n249,\"5\\\" pipe\",304.86\n\\N,\"ok\",726.89\n";
    let said = ["a backslash before a quote makes the quote a part of the field"];
    assert_seen(
        text,
        &["qty|note|paid", "249|5\" pipe|304.86", "\\N|ok|726.89"],
        &said,
    );
    let text = "path,x\n\"C:\\data\\\",1\n\"D:\\\",2\n";
    assert_seen(text, &["path|x", "C:\\data\\|1", "D:\\|2"], &[]);
}

#[test]
fn runs_of_blanks_are_detected() {
    let said = ["runs of blanks separate the fields"];
    let text = "age  smoker  ldl\n41  yes  7.6\n 63 no   3.7\n";
    assert_seen(text, &["age|smoker|ldl", "41|yes|7.6", "63|no|3.7"], &said);
    for text in [
        "first name\nJohn Smith\nJane Doe\nJim Beam\n",
        "admission time\n2024-01-01 10:00\n2024-01-02 11:00\n",
    ] {
        assert_eq!(see(text).remarks, [""; 0], "{text}");
    }
}

#[test]
fn blank_as_given_delimiter_may_be_a_run_of_blanks() {
    let given = Given {
        delimiter: Some(b' '),
        ..Given::default()
    };
    let text = b"age  smoker  ldl\n41  yes  7.6\n63  no  3.7\n";
    let found = open(text, &Given::default()).dialect;
    assert_eq!(open(text, &given).dialect, found);
    assert!(
        !open(b"age smoker\n41 yes\n63 \n", &given)
            .dialect
            .whitespace
    );
}

#[test]
fn row_names_of_r_are_read() {
    let said = [
        "the rows begin with a field without a name: it was read as the name of the row",
        "column 1 has no name; it is named \"row\"",
    ];
    let rows = ["row|age|x", "1|41|yes", "2|63|no"];
    assert_seen(
        "\"age\",\"x\"\n\"1\",41,\"yes\"\n\"2\",63,\"no\"\n",
        &rows,
        &said,
    );
    let text = "\"age\" \"x\"\n\"1\" 41 \"yes\"\n\"2\" 63 \"no\"\n";
    assert_seen(
        text,
        &rows,
        &["runs of blanks separate the fields", said[0], said[1]],
    );
    // Decimal commas also add a field to each record.
    let seen = see("name,weight\nanna,71,5\nberta,63,2\n");
    assert!(
        seen.error
            .unwrap()
            .contains("row 1 (line 2): 3 fields where the header has 2")
    );
}

#[test]
fn index_of_pandas_is_named() {
    let said = ["column 1 has no name; it is named \"index\""];
    assert_seen(",age\n0,69\n1,62\n", &["index|age", "0|69", "1|62"], &said);
}

#[test]
fn footers_are_refused_with_their_row() {
    let seen = see("age,x\n41,yes\n63,no\nTotal,2\n");
    assert!(
        seen.error
            .unwrap()
            .starts_with("t.csv: row 3 (line 4), the last one, begins with \"total\"")
    );
    let given = Given {
        skip_footer: Some(1),
        ..Given::default()
    };
    let seen = see_given(b"age,x\n41,yes\n63,no\nTotal,2\n", &given);
    assert_eq!((seen.rows.len(), seen.error), (3, None));
    let given = Given {
        skip_footer: Some(0),
        ..Given::default()
    };
    let seen = see_given(b"age,x\n41,yes\n63,no\nTotal,2\n", &given);
    assert_eq!((seen.rows.len(), seen.error), (4, None));
}

#[test]
fn last_row_with_a_total_in_each_column_is_refused() {
    for last in ["Total;12.5;3", "Summe;12.5;", "Gesamt;;", "insgesamt:;;3"] {
        let seen = see(&format!(
            "ward;dose;days\nnorth;10;1\nsouth;2.5;2\n{last}\n"
        ));
        let error = seen.error.unwrap();
        assert!(
            error.starts_with("t.csv: row 3 (line 4), the last one, begins with"),
            "{error}"
        );
    }
}

#[test]
fn last_row_with_total_as_a_value_is_a_record() {
    for text in [
        "size,doses,seen\npartial,3,yes\ntotal,1,no\npartial,2,yes\ntotal,5,no\n",
        "size,doses,seen\npartial,3,yes\npartial,2,yes\ntotal,1,no\n",
    ] {
        assert_eq!(see(text).error, None, "{text}");
    }
}

#[test]
fn open_quotes_and_nul_are_not_explained_away() {
    let seen = see("a,b\n1,\"x\n2,y\n");
    assert_eq!(
        seen.error.unwrap(),
        "t.csv: row 1 (line 2), column \"b\": the quote that opens here is never closed"
    );
    let seen = see("age,smoker\n44,y\0es\n");
    assert!(
        seen.error
            .unwrap()
            .starts_with("t.csv: row 1 (line 2), column \"smoker\": the field has a NUL")
    );
}

#[test]
fn given_dialect_is_not_detected() {
    let given = Given {
        delimiter: Some(b';'),
        quote: Some(None),
        comment: Some(Some(b'%')),
        skip_rows: Some(1),
        ..Given::default()
    };
    let seen = see_given(b"x\n% y\na,b;'c'\n1;\"2\"\n", &given);
    assert_eq!(seen.rows, ["a,b|'c'", "1|\"2\""]);
    assert_eq!(seen.remarks, [""; 0]);
}

#[test]
fn header_of_numbers_is_remarked() {
    let seen = see("41,7.6\n63,3.7\n");
    assert!(seen.remarks[0].starts_with("the first line has only numbers"));
}

#[test]
fn shift_jis_is_read() {
    let rows = b"\x8b\x9e\x93s,63,19\n\x93\x8c\x8b\x9e,88,30\n\x91\xe5\x8d\xe3,28,0\n".repeat(20);
    let bytes = [&b"\x8es,\x94N\x97\xee,x\n"[..], &rows].concat();
    let seen = see_given(&bytes, &Given::default());
    assert_eq!(seen.rows[0], "\u{5e02}|\u{5e74}\u{9f62}|x");
    assert_eq!(seen.remarks, ["read as Shift_JIS"]);
}

#[test]
fn late_encoding_is_reported_while_reading() {
    let text = format!("a;b\n{}", "1;2\n".repeat(100_000));
    let bytes = [text.as_bytes(), b"K\xf6ln;M\xfcnchen\n"].concat();
    let mut told = None;
    let mut table = open_text(&bytes[..], &Given::default(), |encoding| {
        told = Some(encoding);
    })
    .unwrap();
    assert_eq!(table.encoding, None);
    let mut read = String::new();
    table.text.read_to_string(&mut read).unwrap();
    assert!(read.ends_with("K\u{f6}ln;M\u{fc}nchen\n"));
    drop(table);
    assert_eq!(told.unwrap().name(), "windows-1252");
}

#[test]
fn gzip_is_decompressed_in_bounded_memory() {
    let row = "1;x\n".repeat(1000);
    let text = format!("a;b\n{}", row.repeat(100));
    // Two members in one file, as `cat a.gz b.gz` writes them.
    let (one, two) = text.split_at(text.len() / 2);
    let bytes = [gzip(one.as_bytes()), gzip(two.as_bytes())].concat();
    let seen = see_given(&bytes, &Given::default());
    assert_eq!((seen.rows.len(), seen.error), (100_001, None));
    assert_eq!(
        seen.remarks,
        ["decompressed with gzip", "detected the field delimiter ';'"]
    );
    let broken = bytes.get(..bytes.len() / 3).unwrap();
    let seen = see_given(broken, &Given::default());
    assert!(seen.error.unwrap().contains("gzip compression is broken"));
    // A gigabyte of one open quote is refused after a few megabytes.
    let bomb = std::io::repeat(b'x').take(1 << 30);
    let mut encoder =
        flate2::read::GzEncoder::new(b"a,b\n1,\"".chain(bomb), flate2::Compression::fast());
    {
        let table = open_text(&mut encoder, &Given::default(), |_| ()).unwrap();
        let mut records = TableRecords::open("t.csv", &table.dialect, table.text).unwrap();
        let error = records.advance().unwrap_err();
        assert!(error.to_string().contains("never closed"), "{error}");
    }
    assert!(encoder.get_ref().get_ref().1.limit() > 1 << 29);
}

#[test]
fn other_files_are_refused_by_name() {
    for (bytes, words) in [
        (&b"%PDF-1.7"[..], "a PDF document"),
        (&gzip(b"RDX3\nX\n\0\0"), "an R data file"),
        (&gzip(&gzip(b"a,b\n")), "a gzip file"),
    ] {
        match open_text(bytes, &Given::default(), |_| ()) {
            Err(TextError::Type(found)) => assert!(found.to_string().contains(words), "{found}"),
            other => panic!("{words}: {:?}", other.map(|table| table.dialect)),
        }
    }
}

#[test]
fn first_records_are_returned_for_display() {
    let table = open(b"sep=;\na;b\n1;x\n2;y\n", &Given::default());
    assert_eq!(table.header, ["a", "b"]);
    assert_eq!(table.samples, [["1", "x"], ["2", "y"]]);
}

/// A table to be written in some dialect.
#[derive(Clone, Debug)]
struct Written {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

fn written() -> impl Strategy<Value = Written> {
    let cell = prop_oneof![
        "[a-z]{1,6}",
        "[0-9]{1,4}",
        "[a-zäöü]{2} [a-z,;'\"\\\\#|]{0,4}",
        "[0-9]{1,2},[0-9]",
        "[a-z]{1,3}\n[a-z]",
    ];
    (2usize..6).prop_flat_map(move |width| {
        let row = proptest::collection::vec(cell.clone(), width - 1);
        let rows = proptest::collection::vec(row, 8..30);
        rows.prop_map(move |rows| {
            let header = (0..width).map(|column| format!("name{column}")).collect();
            // The first column has numbers.
            let number = |(place, row): (usize, Vec<String>)| {
                [(100 + place * 7 % 90).to_string()]
                    .into_iter()
                    .chain(row)
                    .collect()
            };
            Written {
                header,
                rows: rows.into_iter().enumerate().map(number).collect(),
            }
        })
    })
}

/// How a program writes a table.
#[derive(Clone, Debug)]
struct Habits {
    delimiter: char,
    quote: char,
    escapes: bool,
    blank_after_delimiter: bool,
    trailing_delimiter: bool,
    preamble: bool,
    line_end: &'static str,
    mark: &'static str,
}

fn habits() -> impl Strategy<Value = Habits> {
    let delimiter = prop_oneof![Just(','), Just(';'), Just('\t'), Just('|')];
    let quote = prop_oneof![Just('"'), Just('\'')];
    let line_end = prop_oneof![Just("\n"), Just("\r\n")];
    let mark = prop_oneof![Just(""), Just("\u{feff}")];
    (delimiter, quote, any::<[bool; 4]>(), line_end, mark).prop_map(
        |(delimiter, quote, flags, line_end, mark)| Habits {
            delimiter,
            quote,
            escapes: flags[0] && quote == '"',
            blank_after_delimiter: flags[1] && delimiter != '\t',
            trailing_delimiter: flags[2],
            preamble: flags[3],
            line_end,
            mark,
        },
    )
}

impl Habits {
    fn write(&self, table: &Written) -> String {
        let mut text = self.mark.to_owned();
        if self.preamble {
            text.push_str("Export of May");
            text.push_str(self.line_end);
            text.push_str(self.line_end);
        }
        for row in [&table.header].into_iter().chain(&table.rows) {
            let cells: Vec<String> = row.iter().map(|cell| self.cell(cell)).collect();
            let between = if self.blank_after_delimiter {
                format!("{} ", self.delimiter)
            } else {
                self.delimiter.to_string()
            };
            text.push_str(&cells.join(&between));
            if self.trailing_delimiter {
                text.push(self.delimiter);
            }
            text.push_str(self.line_end);
        }
        text
    }

    /// Quotes all texts, as many programs do.
    fn cell(&self, cell: &str) -> String {
        let quote = self.quote;
        if cell.bytes().all(|byte| byte.is_ascii_digit()) {
            return cell.to_owned();
        }
        let inside = match self.escapes {
            true => cell
                .replace('\\', "\\\\")
                .replace(quote, &format!("\\{quote}")),
            false => cell.replace(quote, &format!("{quote}{quote}")),
        };
        format!("{quote}{inside}{quote}")
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Records of a table come back from every dialect.
    #[test]
    fn written_records_are_read_in_every_dialect(table in written(), habits in habits()) {
        let text = habits.write(&table);
        // Without an escaped quote, backslashes mean themselves.
        prop_assume!(!habits.escapes || table.rows.iter().flatten().any(|cell| cell.contains('"'))
            || !table.rows.iter().flatten().any(|cell| cell.contains('\\')));
        let seen = see(&text);
        prop_assert_eq!(&seen.error, &None, "{}", text);
        let rows: Vec<String> = [&table.header].into_iter().chain(&table.rows).map(|row| row.join("|")).collect();
        prop_assert_eq!(seen.rows, rows, "{}\n{:?}", text, seen.remarks);
    }

    /// A dialect that was detected is detected again when its delimiter is given.
    #[test]
    fn given_delimiter_changes_nothing_if_it_was_detected(table in written(), habits in habits()) {
        let text = habits.write(&table);
        let found = open(text.as_bytes(), &Given::default()).dialect;
        let given = Given { delimiter: Some(found.delimiter), ..Given::default() };
        prop_assert_eq!(open(text.as_bytes(), &given).dialect, found);
    }

    #[test]
    fn arbitrary_bytes_are_opened(bytes in proptest::collection::vec(
        prop_oneof![4 => proptest::sample::select(b",;\t| \"'\\#\r\n\nab12".to_vec()), 1 => any::<u8>()], 0..300,
    )) {
        if let Ok(table) = open_text(Cursor::new(&bytes), &Given::default(), |_| ())
            && let Ok(mut records) = TableRecords::open("t.csv", &table.dialect, table.text)
        {
            while let Ok(true) = records.advance() {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    /// The first bytes decide, and what follows them does not change the dialect.
    #[test]
    fn dialect_depends_on_the_first_bytes_only(table in written(), habits in habits(), end in "[a-z,;]{0,40}") {
        let text = habits.write(&table);
        let long = text.repeat(2 + MAX_SNIFFED / text.len());
        let found = open(long.as_bytes(), &Given::default()).dialect;
        let longer = format!("{long}{end}");
        prop_assert_eq!(open(longer.as_bytes(), &Given::default()).dialect, found);
    }
}
