//! Reads CSV records in bounded memory and tracks their place in the file.

use std::{
    cell::Cell,
    collections::HashSet,
    io::{self, Read},
    rc::Rc,
};

use csv::ByteRecord;

use crate::{CellProblem, Constraint, Error, HeaderProblem, MAX_COLUMNS, names::cut};

/// Maximum size of a record, including the header, in bytes.
pub const MAX_RECORD_BYTES: usize = 4 << 20;

/// A header with more fields is rejected before its names are checked.
const MAX_HEADER_FIELDS: usize = 10 * MAX_COLUMNS;

/// A reader that fails once its allowance is used up. The allowance is shared with [`Records`],
/// which renews it after every record, so that no record grows without bound.
struct Bounded<R> {
    input: R,
    allowance: Rc<Cell<usize>>,
    /// Whether the input has reached its end.
    ended: Rc<Cell<bool>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let allowance = self.allowance.get();
        if allowance == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "record too long",
            ));
        }
        let length = buffer.len().min(allowance);
        let read = self.input.read(&mut buffer[..length])?;
        self.allowance.set(allowance.saturating_sub(read));
        self.ended.set(read == 0 && length > 0);
        Ok(read)
    }
}

/// The records of a CSV file with a header.
pub struct Records<R> {
    file: String,
    reader: csv::Reader<Bounded<R>>,
    allowance: Rc<Cell<usize>>,
    ended: Rc<Cell<bool>>,
    header: Vec<String>,
    record: ByteRecord,
    /// Number of records read.
    row: u64,
    /// Line where the last record began.
    line: u64,
    /// The reader's line count after a record, less the line after the record: 0 with LF line ends,
    /// -1 (stored as 1) with CRLF, whose LF the reader counts with the next record.
    lag: u64,
}

impl<R: Read> Records<R> {
    /// Reads the header.
    pub fn open(file: &str, delimiter: u8, input: R) -> Result<Self, Error> {
        let allowance = Rc::new(Cell::new(MAX_RECORD_BYTES));
        let ended = Rc::new(Cell::new(false));
        let bounded = Bounded {
            input,
            allowance: Rc::clone(&allowance),
            ended: Rc::clone(&ended),
        };
        let reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(bounded);
        let mut records = Self {
            file: file.to_owned(),
            reader,
            allowance,
            ended,
            header: Vec::new(),
            record: ByteRecord::new(),
            row: 0,
            line: 1,
            lag: 0,
        };
        records.read_header()?;
        Ok(records)
    }

    fn read_header(&mut self) -> Result<(), Error> {
        if !self.read_record()? {
            return Err(self.refuse_header(HeaderProblem::Absent));
        }
        self.lag = u64::from(self.reader.position().line() == 1 + self.line_breaks());
        let found = self.record.len();
        if found > MAX_HEADER_FIELDS {
            let problem = HeaderProblem::Columns {
                found,
                limit: MAX_HEADER_FIELDS,
            };
            return Err(self.refuse_header(problem));
        }
        let mut seen = HashSet::new();
        let mut header = Vec::with_capacity(found);
        for (index, field) in self.record.iter().enumerate() {
            let Ok(name) = std::str::from_utf8(field) else {
                return Err(self.refuse_header(HeaderProblem::NotUtf8(index + 1)));
            };
            if !seen.insert(name) {
                return Err(self.refuse_header(HeaderProblem::Repeated(cut(name))));
            }
            header.push(name.to_owned());
        }
        self.header = header;
        Ok(())
    }

    /// An error about the header.
    pub fn refuse_header(&self, problem: HeaderProblem) -> Error {
        Error::Header {
            file: self.file.clone(),
            problem,
        }
    }

    /// The names in the header, all different.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Reads the next record, which must have as many fields as the header. Returns false at the
    /// end.
    pub fn advance(&mut self) -> Result<bool, Error> {
        let line_before = self.reader.position().line();
        if !self.read_record()? {
            return Ok(false);
        }
        self.row += 1;
        let line_after = self.reader.position().line();
        let breaks = self.line_breaks();
        // A record that ends with the file has no line end to count.
        let (own, counted) = if self.ended.get() {
            (0, self.lag)
        } else {
            (1 - self.lag, 1)
        };
        self.line = line_after.saturating_sub(own + breaks);
        if self.header.len() == 1 && line_after - line_before > counted + breaks {
            return Err(Error::Blank {
                file: self.file.clone(),
                row: self.row,
                line: self.line,
            });
        }
        let (found, expected) = (self.record.len(), self.header.len());
        if found != expected {
            let file = self.file.clone();
            return Err(Error::Ragged {
                file,
                row: self.row,
                line: self.line,
                found,
                expected,
            });
        }
        Ok(true)
    }

    /// Number of records read so far.
    pub fn row(&self) -> u64 {
        self.row
    }

    /// The bytes of a field of the record.
    pub fn bytes(&self, field: usize) -> &[u8] {
        self.record.get(field).unwrap_or_default()
    }

    /// The text of a field of the record.
    pub fn text(&self, field: usize) -> Result<&str, CellProblem> {
        std::str::from_utf8(self.bytes(field)).map_err(|_| CellProblem::NotUtf8)
    }

    /// An error about a field of the record.
    pub fn refuse(&self, field: usize, problem: CellProblem) -> Error {
        Error::Cell {
            file: self.file.clone(),
            row: self.row,
            line: self.line,
            column: self.header.get(field).cloned().unwrap_or_default(),
            problem,
        }
    }

    /// An error about the record as a whole.
    pub(crate) fn refuse_record(&self, constraint: &Constraint) -> Error {
        Error::Constraint {
            file: self.file.clone(),
            row: self.row,
            line: self.line,
            constraint: constraint.to_string(),
        }
    }

    fn read_record(&mut self) -> Result<bool, Error> {
        self.allowance.set(MAX_RECORD_BYTES);
        self.reader
            .read_byte_record(&mut self.record)
            .map_err(|error| {
                let file = self.file.clone();
                if self.allowance.get() == 0 {
                    Error::Length {
                        file,
                        row: self.row,
                        limit: MAX_RECORD_BYTES,
                    }
                } else {
                    Error::Io {
                        file,
                        source: error.into(),
                    }
                }
            })
    }

    /// Line breaks inside the record's quoted fields.
    fn line_breaks(&self) -> u64 {
        self.record
            .as_slice()
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count() as u64
    }
}
