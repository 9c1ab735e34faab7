//! Streaming of tables: the same records as reading, in bounded memory.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::io::{self, Read};

use fhaim_domain::{
    Error, OutOfRange, ReadOptions, STREAMED_RECORDS, Schema, Streaming, UnlistedColumn, read_csv,
    stream_csv,
};
use serde_json::json;

fn schema() -> Schema {
    let schema = json!({"name": "t", "columns": [
        {"name": "age", "kind": "number", "integer": true, "min": 0, "max": 100, "bins": 10, "digits": 10},
        {"name": "town", "kind": "categorical", "categories": ["A", "B", "rest"], "other": "rest",
         "nullable": true},
        {"name": "born", "kind": "identifier", "pattern": "P[0-9]{5}"},
    ]});
    Schema::from_json("t.json", schema.to_string().as_bytes()).unwrap()
}

fn row(number: usize) -> String {
    let town = ["A", "B", "rest", "", "elsewhere"][number % 5];
    // Some ages exceed the limits, to be clamped.
    format!("{},x{number},{}\n", town, number * 7 % 103)
}

fn text(records: usize) -> String {
    let rows: String = (0..records).map(row).collect();
    format!("town,surplus,age\n{rows}")
}

fn options() -> ReadOptions {
    ReadOptions {
        out_of_range: OutOfRange::Clamp,
        unlisted: UnlistedColumn::LeaveOut,
        ..ReadOptions::new("t.csv")
    }
}

/// Codes of all records, number of records of each piece, and the summary.
type Streamed = (Vec<Vec<u32>>, Vec<usize>, Streaming);

/// Streams a table and collects all codes and the length of each piece.
fn stream(input: impl Read, options: &ReadOptions) -> Result<Streamed, Error> {
    let schema = schema();
    let mut whole = vec![Vec::new(); schema.columns().len()];
    let mut pieces = Vec::new();
    let streaming = stream_csv(&schema, input, options, |columns| {
        pieces.push(columns[0].len());
        for (whole, piece) in whole.iter_mut().zip(columns) {
            assert_eq!(piece.len(), columns[0].len());
            whole.extend_from_slice(piece);
        }
        Ok::<_, Error>(())
    })?;
    Ok((whole, pieces, streaming))
}

#[test]
fn streamed_table_equals_read_table() {
    let most = STREAMED_RECORDS;
    for records in [1, most - 1, most, most + 1, 2 * most, 3 * most + 7] {
        let text = text(records);
        let read = read_csv(schema(), text.as_bytes(), &options()).unwrap();
        let (columns, pieces, streaming) = stream(text.as_bytes(), &options()).unwrap();
        assert_eq!(columns, read.table.columns(), "{records}");
        assert_eq!(streaming.records, records as u64);
        assert_eq!(streaming.adjusted, read.adjusted);
        assert_eq!(streaming.left_out, read.left_out);
        assert_eq!(pieces.len(), records.div_ceil(most));
        assert!(pieces.iter().all(|&piece| piece > 0 && piece <= most));
    }
}

/// A file that is generated while it is read, and counts the bytes read.
struct Made<'a> {
    records: usize,
    next: usize,
    pending: Vec<u8>,
    bytes: &'a Cell<usize>,
}

impl Read for Made<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.pending.is_empty() && self.next <= self.records {
            self.pending = match self.next {
                0 => text(0).into_bytes(),
                number => row(number - 1).into_bytes(),
            };
            self.next += 1;
        }
        let length = self.pending.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.pending[..length]);
        self.pending.drain(..length);
        self.bytes.set(self.bytes.get() + length);
        Ok(length)
    }
}

/// The bytes read but not yet passed on fit into one piece and one buffer, for a table of any
/// length. The reader can hold nothing else of it.
#[test]
fn memory_does_not_depend_on_the_length_of_a_table() {
    // The read-ahead of the CSV reader, and more bytes than any row has.
    let (ahead, longest) = (8 << 10, 32);
    let most = STREAMED_RECORDS * longest + ahead;
    let bytes = Cell::new(0);
    let made = Made {
        records: 40 * STREAMED_RECORDS + 1,
        next: 0,
        pending: Vec::new(),
        bytes: &bytes,
    };
    let (mut before, mut peak, mut records) = (0, 0, 0);
    let streaming = stream_csv(&schema(), made, &options(), |columns| {
        peak = peak.max(bytes.get() - before);
        before = bytes.get();
        records += columns[0].len();
        assert!(
            columns
                .iter()
                .all(|codes| codes.capacity() == STREAMED_RECORDS)
        );
        Ok::<_, Error>(())
    });
    assert_eq!(streaming.unwrap().records, records as u64);
    assert!(
        bytes.get() > 10 * most,
        "the table must be longer than a piece"
    );
    assert!(peak <= most, "{peak} bytes at once, of {}", bytes.get());
}

#[test]
fn streaming_errors_equal_reading_errors() {
    let long = text(2 * STREAMED_RECORDS);
    let wrong = format!("{long}A,x,old\n");
    let ragged = format!("{long}A\n");
    let few = ReadOptions {
        max_records: STREAMED_RECORDS + 1,
        ..options()
    };
    for (text, options) in [
        (wrong.as_str(), options()),
        (ragged.as_str(), options()),
        ("town,surplus,age\n", options()),
        ("town,age\n", ReadOptions::new("t.csv")),
        ("town,surplus\n", options()),
        ("", options()),
        (long.as_str(), few),
    ] {
        let read = read_csv(schema(), text.as_bytes(), &options).unwrap_err();
        let streamed = stream(text.as_bytes(), &options).unwrap_err();
        assert_eq!(streamed.to_string(), read.to_string());
    }
}

/// The callback can end the reading with its own error.
#[test]
fn callback_error_ends_streaming() {
    #[derive(Debug)]
    enum Refused {
        Read,
        Taken,
    }
    impl From<Error> for Refused {
        fn from(_: Error) -> Self {
            Self::Read
        }
    }
    let text = text(STREAMED_RECORDS + 1);
    let mut taken = 0;
    let refused = stream_csv(&schema(), text.as_bytes(), &options(), |_| {
        taken += 1;
        Err(Refused::Taken)
    });
    assert!(matches!(refused, Err(Refused::Taken)) && taken == 1);
    let refused = stream_csv(&schema(), &b""[..], &options(), |_| Ok::<_, Refused>(()));
    assert!(matches!(refused, Err(Refused::Read)));
}
