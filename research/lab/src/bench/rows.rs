//! Prints the rows of a table while they are computed. Long benches can be read before they end, and results remain if
//! a bench is interrupted.

use std::io::{self, Write};

use serde::Serialize;

use crate::error::Error;

/// A table whose rows are written as soon as they are known, as text below a heading or as elements of one JSON array.
pub struct Rows<R, W = io::Stdout> {
    output: W,
    json: bool,
    line: fn(&R) -> String,
    written: usize,
}

impl<R: Serialize> Rows<R> {
    /// Begins a table on standard output.
    ///
    /// # Errors
    /// [`Error::Write`] if standard output cannot be written to.
    pub fn begin(json: bool, heading: &str, line: fn(&R) -> String) -> Result<Self, Error> {
        Self::begin_on(io::stdout(), json, heading, line)
    }
}

impl<R: Serialize, W: Write> Rows<R, W> {
    fn begin_on(
        output: W,
        json: bool,
        heading: &str,
        line: fn(&R) -> String,
    ) -> Result<Self, Error> {
        let mut rows = Self {
            output,
            json,
            line,
            written: 0,
        };
        rows.write(if json { "[" } else { heading })?;
        Ok(rows)
    }

    /// Writes a row and flushes the output.
    ///
    /// # Errors
    /// [`Error::Write`] if standard output cannot be written to.
    pub fn push(&mut self, row: &R) -> Result<(), Error> {
        let text = if self.json {
            let comma = if self.written == 0 { "" } else { "," };
            let row = crate::output::to_json(row)?;
            let lines: Vec<_> = row.trim_end().lines().collect();
            format!("{comma}\n  {}", lines.join("\n  "))
        } else {
            (self.line)(row)
        };
        self.written += 1;
        self.write(&text)
    }

    /// Ends the table, with a note below it in text format.
    ///
    /// # Errors
    /// [`Error::Write`] if standard output cannot be written to.
    pub fn end(mut self, note: &str) -> Result<(), Error> {
        let text = match (self.json, self.written) {
            (true, 0) => "]\n",
            (true, _) => "\n]\n",
            (false, _) => note,
        };
        self.write(text)
    }

    fn write(&mut self, text: &str) -> Result<(), Error> {
        let written = self.output.write_all(text.as_bytes());
        let written = written.and_then(|()| self.output.flush());
        written.map_err(|source| Error::Write {
            path: "standard output".into(),
            source,
        })
    }
}

/// Formats a standard error in brackets with this number of digits; "(-)" with the same width if it is `None`.
pub fn bracketed(error: Option<f64>, digits: usize) -> String {
    match error {
        Some(error) => format!("({error:.digits$})"),
        None => format!("{:width$}", "(-)", width = digits + 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(row: &(u8, Option<f64>)) -> String {
        format!("{} {}\n", row.0, bracketed(row.1, 2))
    }

    #[test]
    fn row_is_written_before_the_next_is_known() {
        let mut written = Vec::new();
        let mut rows = Rows::begin_on(&mut written, false, "a b\n", line).unwrap();
        assert_eq!(rows.output.as_slice(), b"a b\n");
        rows.push(&(1, Some(0.5))).unwrap();
        assert_eq!(rows.output.as_slice(), b"a b\n1 (0.50)\n");
        rows.push(&(2, None)).unwrap();
        rows.end("note\n").unwrap();
        assert_eq!(written.as_slice(), b"a b\n1 (0.50)\n2 (-)   \nnote\n");
    }

    #[test]
    fn json_rows_equal_an_array_of_all_rows() {
        for count in [0, 1, 3] {
            let all: Vec<(u8, Option<f64>)> = (0..count).map(|row| (row, None)).collect();
            let mut written = Vec::new();
            let mut rows = Rows::begin_on(&mut written, true, "a b\n", line).unwrap();
            for row in &all {
                rows.push(row).unwrap();
            }
            rows.end("note\n").unwrap();
            let whole = crate::output::to_json(&all).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), whole);
        }
    }
}
