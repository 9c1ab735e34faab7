//! Reads the records of a table with a header, and tracks their place in the file.

use std::{
    collections::{HashSet, VecDeque},
    io::Read,
};

use crate::{
    CellProblem, Dialect, Error, HeaderProblem, MAX_COLUMNS, MAX_NAME_BYTES,
    names::cut,
    scan::{MAX_RECORD_BYTES, ScanError, Scanner},
    totals::Totals,
};

/// A header with more fields is rejected before its names are checked.
const MAX_HEADER_FIELDS: usize = 10 * MAX_COLUMNS;

/// Rows at the end of a file with a wrong number of fields are taken for a footer if there are at most this many.
const MAX_FOOTER_ROWS: usize = 20;

/// Name of the column of row names, which has no field in the header.
const ROW_NAMES: &str = "row";

/// Name of a first column without one: tables from pandas begin with the index of their rows.
const INDEX: &str = "index";

/// Words that begin a row of totals, in lower case.
const TOTALS: [&str; 14] = [
    "total",
    "totals",
    "grand total",
    "subtotal",
    "sum",
    "sums",
    "summe",
    "gesamt",
    "gesamtsumme",
    "insgesamt",
    "somme",
    "suma",
    "totale",
    "totaal",
];

/// The records of a table with a header.
pub struct TableRecords<R> {
    file: String,
    scanner: Scanner<R>,
    dialect: Dialect,
    header: Vec<String>,
    remarks: Vec<String>,
    /// The next rows, if they have been looked at. They belong to the footer if no others follow.
    held: VecDeque<Row>,
    /// The error that ends the text behind these rows.
    failure: Option<Error>,
    /// The current row, if it was among them.
    current: Option<Row>,
    /// The sums of the records before the current one.
    totals: Totals,
    /// Number of records read.
    row: u64,
    /// Line where the last record began.
    line: u64,
}

/// A row that is held back.
#[derive(Default)]
struct Row {
    fields: Vec<Vec<u8>>,
    line: u64,
    is_after_blank_line: bool,
}

impl Row {
    fn field(&self, field: usize) -> &[u8] {
        self.fields.get(field).map_or(&[], Vec::as_slice)
    }
}

impl<R: Read> TableRecords<R> {
    /// Reads the header of a table that is written in `dialect`. Errors name `file`.
    ///
    /// # Errors
    /// There is no header, it has too many fields, or two of its names are equal; reading failed.
    pub fn open(file: &str, dialect: &Dialect, input: R) -> Result<Self, Error> {
        let scanner = Scanner::new(dialect, input).map_err(|source| Error::Io {
            file: file.to_owned(),
            source,
        })?;
        let mut records = Self {
            file: file.to_owned(),
            scanner,
            dialect: *dialect,
            header: Vec::new(),
            remarks: Vec::new(),
            held: VecDeque::new(),
            failure: None,
            current: None,
            totals: Totals::default(),
            row: 0,
            line: 1,
        };
        records.read_header()?;
        Ok(records)
    }

    fn read_header(&mut self) -> Result<(), Error> {
        match self.scanner.advance() {
            Ok(true) => self.line = self.scanner.record_line(),
            Ok(false) => return Err(self.refuse_header(HeaderProblem::Absent)),
            Err(error) => return Err(self.header_error(error)),
        }
        let mut found = self.scanner.fields();
        if found > MAX_HEADER_FIELDS {
            let problem = HeaderProblem::Columns {
                found,
                limit: MAX_HEADER_FIELDS,
            };
            return Err(self.refuse_header(problem));
        }
        let may_end_with_delimiter =
            self.dialect.trailing_delimiter || self.dialect.header_delimiter;
        if may_end_with_delimiter && found > 1 && self.scanner.field(found - 1).is_empty() {
            found -= 1;
        }
        let fields: Vec<&[u8]> = (0..found).map(|field| self.scanner.field(field)).collect();
        match column_names(&fields, self.dialect.row_names) {
            Ok((header, remarks)) => (self.header, self.remarks) = (header, remarks),
            Err(problem) => return Err(self.refuse_header(problem)),
        }
        Ok(())
    }

    /// An error about the header.
    pub fn refuse_header(&self, problem: HeaderProblem) -> Error {
        Error::Header {
            file: self.file.clone(),
            problem,
        }
    }

    /// The names of the columns, all different.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Changes to the names of the columns, in sentences for the holder.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Reads the next record, which must have as many fields as the header. Returns false at the end.
    ///
    /// # Errors
    /// A record that cannot be split, or with a wrong number of fields; a last row that is a total, if
    /// [`Dialect::refuse_total`] is set; a failed read.
    pub fn advance(&mut self) -> Result<bool, Error> {
        let is_blank_before = if self.dialect.skip_footer == 0 && self.held.is_empty() {
            // A row that begins like a total is looked at before the next one replaces it.
            let total = match self.dialect.refuse_total && self.row > 0 {
                true => self.see_total(),
                false => None,
            };
            if !self.scan()? {
                return total.map_or(Ok(false), |word| Err(self.refuse_total(word)));
            }
            self.current = None;
            self.line = self.scanner.record_line();
            self.scanner.is_after_blank_line()
        } else {
            let Some(row) = self.next_held()? else {
                return Ok(false);
            };
            self.line = row.line;
            let is_blank_before = row.is_after_blank_line;
            self.current = Some(row);
            is_blank_before
        };
        self.row += 1;
        if is_blank_before && self.header.len() == 1 {
            return Err(Error::Blank {
                file: self.file.clone(),
                row: self.row,
                line: self.line,
            });
        }
        match self.has_right_shape() {
            true => Ok(true),
            false => Err(self.refuse_shape()),
        }
    }

    /// Splits the next record of the text.
    fn scan(&mut self) -> Result<bool, Error> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let row = self.row + self.held.len() as u64 + 1;
        self.scanner.advance().map_err(|error| match error {
            ScanError::Field {
                line,
                field,
                problem,
            } => Error::Cell {
                file: self.file.clone(),
                row,
                line,
                column: self.column(field),
                problem: CellProblem::Syntax(problem),
            },
            ScanError::Length => Error::Length {
                file: self.file.clone(),
                row: row - 1,
                limit: MAX_RECORD_BYTES,
            },
            ScanError::Io(source) => Error::Io {
                file: self.file.clone(),
                source,
            },
        })
    }

    /// Returns the next row that enough others follow. The others are not data if none follows them.
    fn next_held(&mut self) -> Result<Option<Row>, Error> {
        while self.held.len() <= self.dialect.skip_footer {
            if !self.hold()? {
                return Ok(None);
            }
        }
        Ok(self.held.pop_front())
    }

    /// Splits the next record of the text, and keeps it as the last one of the next rows.
    fn hold(&mut self) -> Result<bool, Error> {
        if !self.scan()? {
            return Ok(false);
        }
        let fields = 0..self.scanner.fields();
        self.held.push_back(Row {
            fields: fields
                .map(|field| self.scanner.field(field).to_vec())
                .collect(),
            line: self.scanner.record_line(),
            is_after_blank_line: self.scanner.is_after_blank_line(),
        });
        Ok(true)
    }

    fn has_right_shape(&self) -> bool {
        match &self.current {
            Some(row) => self.fits(row.fields.len(), row.field(self.header.len())),
            None => self.fits(self.scanner.fields(), self.scanner.field(self.header.len())),
        }
    }

    /// Whether a row of `found` fields has one for each column, and behind them only a trailing delimiter. `surplus` is
    /// its first field that has no column.
    fn fits(&self, found: usize, surplus: &[u8]) -> bool {
        let expected = self.header.len();
        match self.dialect.trailing_delimiter {
            true => found == expected + 1 && surplus.is_empty(),
            false => found == expected,
        }
    }

    /// Returns an error about the number of fields. It looks at the next rows, because rows at the end of the table
    /// may be a footer.
    fn refuse_shape(&mut self) -> Error {
        let expected = self.header.len();
        let found = match &self.current {
            Some(row) => row.fields.len(),
            None => self.scanner.fields(),
        };
        // Looking at the next rows replaces the record.
        if self.current.is_none() {
            self.current = Some(Row::default());
        }
        let footer = loop {
            let has_record =
                (self.held.iter()).any(|row| self.fits(row.fields.len(), row.field(expected)));
            if has_record || self.held.len() >= MAX_FOOTER_ROWS {
                break None;
            }
            match self.hold() {
                Ok(true) => {}
                Ok(false) => break Some(1 + self.held.len() as u64),
                Err(failure) => {
                    self.failure = Some(failure);
                    break None;
                }
            }
        };
        Error::Ragged {
            file: self.file.clone(),
            row: self.row,
            line: self.line,
            found,
            expected: expected + usize::from(self.dialect.trailing_delimiter),
            footer,
        }
    }

    /// Returns the word of a row that may be a total of the rows above, and adds the row to their sums.
    fn see_total(&mut self) -> Option<&'static str> {
        let found = self.total_word();
        let columns = self.header.len();
        let mut totals = std::mem::take(&mut self.totals);
        let cells = || (0..columns).map(|field| self.bytes(field));
        let is_total =
            |&(place, _): &(usize, &str)| self.row > 1 && totals.has_total(cells(), place);
        let total = found.filter(is_total);
        totals.add(cells(), found.is_some());
        self.totals = totals;
        total.map(|(_, word)| word)
    }

    /// Returns the word for a total that the row begins with, and its place.
    fn total_word(&self) -> Option<(usize, &'static str)> {
        let mut fields = (0..self.header.len()).map(|field| (field, self.bytes(field)));
        let (place, first) = fields.find(|(_, field)| !field.is_empty())?;
        let first = first.trim_ascii();
        if !first.first()?.is_ascii_alphabetic() {
            return None;
        }
        let first = first.strip_suffix(b":").unwrap_or(first);
        let mut words = TOTALS.into_iter();
        let word = words.find(|word| first.eq_ignore_ascii_case(word.as_bytes()))?;
        Some((place, word))
    }

    fn refuse_total(&self, word: &'static str) -> Error {
        Error::Total {
            file: self.file.clone(),
            row: self.row,
            line: self.line,
            word,
        }
    }

    /// Number of records read so far.
    pub fn row(&self) -> u64 {
        self.row
    }

    /// Line where the record begins, counted from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The bytes of a field of the record.
    pub fn bytes(&self, field: usize) -> &[u8] {
        match &self.current {
            Some(row) => row.field(field),
            None => self.scanner.field(field),
        }
    }

    /// The text of a field of the record.
    ///
    /// # Errors
    /// [`CellProblem::NotUtf8`].
    pub fn text(&self, field: usize) -> Result<&str, CellProblem> {
        std::str::from_utf8(self.bytes(field)).map_err(|_| CellProblem::NotUtf8)
    }

    /// An error about a field of the record.
    pub fn refuse(&self, field: usize, problem: CellProblem) -> Error {
        Error::Cell {
            file: self.file.clone(),
            row: self.row,
            line: self.line,
            column: self.column(field),
            problem,
        }
    }

    /// An error about a record that breaks a rule of the schema, which is in words.
    pub(crate) fn refuse_record(&self, rule: String) -> Error {
        Error::Constraint {
            file: self.file.clone(),
            row: self.row,
            line: self.line,
            constraint: rule,
        }
    }

    /// Returns the name of a field, or its place if the header has no such field.
    fn column(&self, field: usize) -> String {
        let name = self.header.get(field).cloned();
        name.unwrap_or_else(|| nameless(field))
    }

    fn header_error(&self, error: ScanError) -> Error {
        match error {
            ScanError::Field {
                line,
                field,
                problem,
            } => self.refuse_header(HeaderProblem::Syntax {
                column: field + 1,
                line,
                problem,
            }),
            ScanError::Length => Error::Length {
                file: self.file.clone(),
                row: 0,
                limit: MAX_RECORD_BYTES,
            },
            ScanError::Io(source) => Error::Io {
                file: self.file.clone(),
                source,
            },
        }
    }
}

/// Names a column that has no name.
fn nameless(field: usize) -> String {
    format!("column {}", field + 1)
}

/// Returns the names of the columns, and sentences on those that differ from the header's fields.
fn column_names(
    fields: &[&[u8]],
    row_names: bool,
) -> Result<(Vec<String>, Vec<String>), HeaderProblem> {
    let mut names: Vec<Option<String>> = Vec::with_capacity(fields.len() + 1);
    let mut remarks = Vec::new();
    if row_names {
        names.push(None);
    }
    let mut seen = HashSet::new();
    for (place, field) in fields.iter().enumerate() {
        let place = place + 1;
        let written = std::str::from_utf8(field).map_err(|_| HeaderProblem::NotUtf8(place))?;
        if written.len() > MAX_NAME_BYTES {
            return Err(HeaderProblem::LongName {
                column: place,
                bytes: written.len(),
                limit: MAX_NAME_BYTES,
            });
        }
        if written.contains(char::is_control) {
            return Err(HeaderProblem::LineBreak {
                column: place,
                name: cut(written),
            });
        }
        let name = written.to_owned();
        if !name.is_empty() && !seen.insert(name.clone()) {
            return Err(HeaderProblem::Repeated(cut(&name)));
        }
        names.push(Some(name).filter(|name| !name.is_empty()));
    }
    let nameless_columns = names.iter().filter(|name| name.is_none()).count();
    let mut header = Vec::with_capacity(names.len());
    for (place, name) in names.into_iter().enumerate() {
        let Some(name) = name else {
            let wanted = match (row_names, place, nameless_columns) {
                (true, 0, _) => ROW_NAMES.to_owned(),
                (false, 0, 1) if fields.len() > 1 => INDEX.to_owned(),
                _ => nameless(place),
            };
            let name = unused(&wanted, &mut seen);
            remarks.push(format!(
                "column {} has no name; it is named {name:?}",
                place + 1
            ));
            header.push(name);
            continue;
        };
        header.push(name);
    }
    Ok((header, remarks))
}

/// Returns a name that no other column has.
fn unused(wanted: &str, seen: &mut HashSet<String>) -> String {
    let mut name = wanted.to_owned();
    let mut number = 2;
    while !seen.insert(name.clone()) {
        name = format!("{wanted} ({number})");
        number += 1;
    }
    name
}
