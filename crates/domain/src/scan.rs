//! Splits text into records and fields, in bounded memory.

use std::io::{self, Read};

use crate::Dialect;

/// Maximum size of a record, including the header, in bytes.
pub const MAX_RECORD_BYTES: usize = 4 << 20;

/// Number of bytes that are read at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// A record that has not ended in the buffer is tried again with more bytes at most this often.
const MAX_RETRIES: usize = 4;

/// The UTF-8 encoding of the byte order mark, which may begin a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Why text cannot be split into records.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// Something is wrong in a field.
    #[error("line {line}, field {}: {problem}", .field + 1)]
    Field {
        /// Line where the problem begins, counted from 1.
        line: u64,
        /// Field of the record, counted from 0.
        field: usize,
        /// The problem.
        #[source]
        problem: FieldProblem,
    },
    /// A record is longer than [`MAX_RECORD_BYTES`].
    #[error("a record is longer than {MAX_RECORD_BYTES} bytes")]
    Length,
    /// Reading failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A problem with a field of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldProblem {
    /// A quote is open where the text ends, or for more than [`MAX_RECORD_BYTES`].
    #[error("the quote that opens here is never closed")]
    OpenQuote,
    /// Text between the closing quote and the next delimiter.
    #[error(
        "text follows the quote that closes this field on line {line}: inside a quoted field, quotes are written twice"
    )]
    TextAfterQuote {
        /// Line of the closing quote.
        line: u64,
    },
    /// A NUL character.
    #[error("the field has a NUL character (a byte of value 0)")]
    Nul,
}

/// The meaning of each byte in a dialect.
#[derive(Clone, Copy, Debug)]
struct Syntax {
    quote: Option<u8>,
    escape: Option<u8>,
    comment: Option<u8>,
    trim: bool,
    whitespace: bool,
    /// By byte: whether it can end an unquoted field, or needs a closer look in it.
    ends_field: [bool; 256],
    /// By byte: whether it can end a quoted field, or needs a closer look in it.
    ends_quoted: [bool; 256],
    /// By byte: whether it separates fields.
    delimits: [bool; 256],
    /// By byte: whether it is a blank that does not separate fields.
    blank: [bool; 256],
}

impl Syntax {
    fn of(dialect: &Dialect) -> Self {
        let table = |bytes: &[u8]| {
            let mut table = [false; 256];
            for &byte in bytes {
                if let Some(entry) = table.get_mut(usize::from(byte)) {
                    *entry = true;
                }
            }
            table
        };
        let delimiters: Vec<u8> = match dialect.whitespace {
            true => vec![b' ', b'\t'],
            false => vec![dialect.delimiter],
        };
        let blanks = [b' ', b'\t'];
        let blanks: Vec<u8> = (blanks.into_iter())
            .filter(|blank| !delimiters.contains(blank))
            .collect();
        let common: Vec<u8> = [b'\r', b'\n', 0]
            .into_iter()
            .chain(dialect.escape)
            .collect();
        Self {
            quote: dialect.quote,
            escape: dialect.escape,
            comment: dialect.comment,
            trim: dialect.trim,
            whitespace: dialect.whitespace,
            ends_field: table(&[&common[..], &delimiters[..]].concat()),
            ends_quoted: table(&common.into_iter().chain(dialect.quote).collect::<Vec<u8>>()),
            delimits: table(&delimiters),
            blank: table(&blanks),
        }
    }

    /// Whether a byte has a meaning that an escape takes from it.
    fn is_special(&self, byte: u8) -> bool {
        let quoting = self.quote == Some(byte) || self.escape == Some(byte);
        quoting || is(&self.delimits, byte) || matches!(byte, b'\r' | b'\n')
    }
}

fn is(table: &[bool; 256], byte: u8) -> bool {
    // An index of this type is always in range.
    table.get(usize::from(byte)).copied().unwrap_or(false)
}

/// A part of the bytes of a record: where it begins, and where it ends.
type Span = (u32, u32);

/// What ended a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Delimiter,
    Record,
}

/// The outcome of an attempt to split a record without copying it.
enum Attempt {
    /// The record was split.
    Done,
    /// The record does not end in the buffer.
    Incomplete,
    /// The record has something that requires copying, or that is wrong.
    Intricate,
}

/// Splits text into records and fields, without knowing which record is the header.
///
/// Lines that are blank, and comments, are skipped. A line ends with LF, CR LF, or CR.
pub struct Scanner<R> {
    input: R,
    syntax: Syntax,
    buffer: Vec<u8>,
    /// Place in the buffer of the next byte, and the end of the bytes that were read.
    next: usize,
    end: usize,
    has_ended: bool,
    /// Line of the next byte, counted from 1.
    line: u64,
    /// Bytes of the current record that have left the buffer.
    passed: usize,
    spans: Vec<Span>,
    /// The fields of a record that could not be split in the buffer.
    copied: Vec<u8>,
    is_copied: bool,
    record_line: u64,
    after_blank_line: bool,
}

impl<R: Read> Scanner<R> {
    /// Begins at the start of `input`, after the lines that `dialect` skips there.
    ///
    /// # Errors
    /// Reading failed.
    pub fn new(dialect: &Dialect, input: R) -> io::Result<Self> {
        let mut scanner = Self {
            input,
            syntax: Syntax::of(dialect),
            buffer: vec![0; BUFFER_BYTES],
            next: 0,
            end: 0,
            has_ended: false,
            line: 1,
            passed: 0,
            spans: Vec::new(),
            copied: Vec::new(),
            is_copied: false,
            record_line: 1,
            after_blank_line: false,
        };
        while scanner.end < BYTE_ORDER_MARK.len() && scanner.fill()? {}
        if scanner.buffered().starts_with(BYTE_ORDER_MARK) {
            scanner.next = BYTE_ORDER_MARK.len();
        }
        for _ in 0..dialect.skip_rows {
            if !scanner.skip_line()? {
                break;
            }
        }
        Ok(scanner)
    }

    /// Splits the next record. Returns false at the end of the text.
    ///
    /// # Errors
    /// A [`ScanError`].
    pub fn advance(&mut self) -> Result<bool, ScanError> {
        if !self.skip_to_record()? {
            return Ok(false);
        }
        self.record_line = self.line;
        for _ in 0..MAX_RETRIES {
            match self.split_in_buffer() {
                Attempt::Done => return Ok(true),
                Attempt::Incomplete if self.fill()? => {}
                Attempt::Incomplete | Attempt::Intricate => break,
            }
        }
        self.copy_record()?;
        Ok(true)
    }

    /// Number of fields of the record.
    pub fn fields(&self) -> usize {
        self.spans.len()
    }

    /// Returns a field of the record. A field that the record does not have is empty.
    pub fn field(&self, field: usize) -> &[u8] {
        let Some(&(start, end)) = self.spans.get(field) else {
            return &[];
        };
        let bytes = match self.is_copied {
            true => &self.copied,
            false => &self.buffer,
        };
        bytes.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Line where the record begins, counted from 1.
    pub fn record_line(&self) -> u64 {
        self.record_line
    }

    /// Whether blank lines preceded the record.
    pub fn is_after_blank_line(&self) -> bool {
        self.after_blank_line
    }

    fn buffered(&self) -> &[u8] {
        self.buffer.get(self.next..self.end).unwrap_or_default()
    }

    /// Reads more bytes, behind those in the buffer. Returns false at the end of the input, or if the buffer has no
    /// room.
    fn fill(&mut self) -> io::Result<bool> {
        if self.has_ended {
            return Ok(false);
        }
        if self.next > 0 {
            self.buffer.copy_within(self.next..self.end, 0);
            self.end -= self.next;
            self.next = 0;
        }
        let Some(room) = self
            .buffer
            .get_mut(self.end..)
            .filter(|room| !room.is_empty())
        else {
            return Ok(false);
        };
        let read = loop {
            match self.input.read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.end += read.min(room.len());
        self.has_ended = read == 0;
        Ok(read > 0)
    }

    /// Returns the next byte without consuming it.
    fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.next == self.end {
            let passed = self.next;
            if !self.fill()? {
                return Ok(None);
            }
            self.passed += passed;
        }
        Ok(self.buffer.get(self.next).copied())
    }

    /// Consumes a line end whose first byte is the next one.
    fn end_line(&mut self, first: u8) -> io::Result<()> {
        self.next += 1;
        self.line += 1;
        if first == b'\r' && self.peek()? == Some(b'\n') {
            self.next += 1;
        }
        Ok(())
    }

    /// Consumes the rest of the line. Returns false at the end of the text.
    fn skip_line(&mut self) -> io::Result<bool> {
        while let Some(byte) = self.peek()? {
            if matches!(byte, b'\r' | b'\n') {
                self.end_line(byte)?;
                return Ok(true);
            }
            self.next += 1;
        }
        Ok(false)
    }

    /// Consumes blank lines and comments. Returns false at the end of the text.
    fn skip_to_record(&mut self) -> io::Result<bool> {
        self.after_blank_line = false;
        let skips_blanks = self.syntax.trim || self.syntax.whitespace;
        while let Some(byte) = self.peek()? {
            if matches!(byte, b'\r' | b'\n') {
                self.end_line(byte)?;
                self.after_blank_line = true;
            } else if self.syntax.comment == Some(byte) {
                self.skip_line()?;
            } else if skips_blanks && self.is_blank(byte) {
                self.next += 1;
            } else {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_blank(&self, byte: u8) -> bool {
        let delimits = self.syntax.whitespace && is(&self.syntax.delimits, byte);
        delimits || is(&self.syntax.blank, byte)
    }

    /// Splits a record that is in the buffer as a whole, and has no field that must be copied.
    fn split_in_buffer(&mut self) -> Attempt {
        if self.syntax.whitespace {
            return Attempt::Intricate;
        }
        self.spans.clear();
        let bytes = self.buffer.get(..self.end).unwrap_or_default();
        let syntax = &self.syntax;
        let mut at = self.next;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let Some((span, length)) = split_field(rest, syntax) else {
                return Attempt::Intricate;
            };
            let ended = at + length;
            self.spans.push((at as u32 + span.0, at as u32 + span.1));
            match (bytes.get(ended), bytes.get(ended + 1)) {
                (Some(b'\n'), _) => at = ended + 1,
                (Some(b'\r'), Some(b'\n')) => at = ended + 2,
                (Some(b'\r'), Some(_)) => at = ended + 1,
                (Some(b'\r'), None) if self.has_ended => at = ended + 1,
                (None, _) if self.has_ended => at = ended,
                (None, _) | (Some(b'\r'), None) => return Attempt::Incomplete,
                (Some(&byte), _) if is(&syntax.delimits, byte) => {
                    at = ended + 1;
                    continue;
                }
                (Some(_), _) => return Attempt::Intricate,
            }
            self.line += u64::from(at > ended);
            self.next = at;
            self.is_copied = false;
            return Attempt::Done;
        }
    }

    /// Splits a record of any kind, and copies its fields.
    fn copy_record(&mut self) -> Result<(), ScanError> {
        self.passed = 0;
        let begin = self.next;
        self.spans.clear();
        self.copied.clear();
        self.is_copied = true;
        loop {
            let start = self.copied.len();
            let end = self.copy_field()?;
            self.spans.push((start as u32, self.copied.len() as u32));
            if (self.passed + self.next).saturating_sub(begin) > MAX_RECORD_BYTES {
                return Err(ScanError::Length);
            }
            if end == End::Record {
                return Ok(());
            }
        }
    }

    fn copy_field(&mut self) -> Result<End, ScanError> {
        if self.syntax.trim || self.syntax.whitespace {
            self.skip_blanks()?;
        }
        let quote = self.peek()?.filter(|&byte| self.syntax.quote == Some(byte));
        match quote {
            Some(quote) => self.copy_quoted(quote),
            None => self.copy_unquoted(),
        }
    }

    fn skip_blanks(&mut self) -> Result<(), ScanError> {
        while self.peek()?.is_some_and(|byte| self.is_blank(byte)) {
            self.next += 1;
            if self.passed > MAX_RECORD_BYTES {
                return Err(ScanError::Length);
            }
        }
        Ok(())
    }

    fn copy_unquoted(&mut self) -> Result<End, ScanError> {
        let start = self.copied.len();
        let line = self.line;
        while let Some(byte) = self.peek()? {
            if !is(&self.syntax.ends_field, byte) {
                self.copied.push(byte);
                self.next += 1;
            } else if self.syntax.escape == Some(byte) {
                self.copy_escaped(byte)?;
            } else if byte == 0 {
                return Err(self.refuse(line, FieldProblem::Nul));
            } else {
                break;
            }
            if self.passed > MAX_RECORD_BYTES {
                return Err(ScanError::Length);
            }
        }
        if self.syntax.trim {
            let field = self.copied.get(start..).unwrap_or_default();
            let blanks = field.iter().rev().take_while(|&&byte| self.is_blank(byte));
            let length = field.len() - blanks.count();
            self.copied.truncate(start + length);
        }
        Ok(self.end_field()?.unwrap_or(End::Record))
    }

    fn copy_quoted(&mut self, quote: u8) -> Result<End, ScanError> {
        let opened = self.line;
        self.next += 1;
        loop {
            let Some(byte) = self.peek()?.filter(|_| self.passed <= MAX_RECORD_BYTES) else {
                return Err(self.refuse(opened, FieldProblem::OpenQuote));
            };
            if !is(&self.syntax.ends_quoted, byte) {
                self.copied.push(byte);
                self.next += 1;
            } else if self.syntax.escape == Some(byte) {
                self.copy_escaped(byte)?;
            } else if byte == 0 {
                return Err(self.refuse(self.line, FieldProblem::Nul));
            } else if byte == quote {
                self.next += 1;
                if self.peek()? != Some(quote) {
                    break;
                }
                self.copied.push(quote);
                self.next += 1;
            } else {
                self.copy_line_end(byte)?;
            }
        }
        let line = self.line;
        if !self.syntax.whitespace {
            self.skip_blanks()?;
        }
        match self.end_field()? {
            Some(end) => Ok(end),
            None => Err(self.refuse(opened, FieldProblem::TextAfterQuote { line })),
        }
    }

    /// Copies a line end inside a field unchanged.
    fn copy_line_end(&mut self, first: u8) -> io::Result<()> {
        self.copied.push(first);
        self.next += 1;
        self.line += 1;
        if first == b'\r' && self.peek()? == Some(b'\n') {
            self.copied.push(b'\n');
            self.next += 1;
        }
        Ok(())
    }

    /// Copies the byte after an escape, or the escape itself if it has no meaning there.
    fn copy_escaped(&mut self, escape: u8) -> io::Result<()> {
        self.next += 1;
        match self.peek()? {
            Some(byte @ (b'\r' | b'\n')) => self.copy_line_end(byte)?,
            Some(byte) if self.syntax.is_special(byte) => {
                self.copied.push(byte);
                self.next += 1;
            }
            _ => self.copied.push(escape),
        }
        Ok(())
    }

    /// Consumes the end of a field. Returns `None` if another byte is next.
    fn end_field(&mut self) -> Result<Option<End>, ScanError> {
        if self.syntax.whitespace {
            let delimited = self.peek()?.is_some_and(|byte| self.is_blank(byte));
            self.skip_blanks()?;
            return match self.peek()? {
                Some(byte) if !matches!(byte, b'\r' | b'\n') => {
                    Ok(delimited.then_some(End::Delimiter))
                }
                end => self.end_record(end),
            };
        }
        match self.peek()? {
            Some(byte) if is(&self.syntax.delimits, byte) => {
                self.next += 1;
                Ok(Some(End::Delimiter))
            }
            Some(byte) if !matches!(byte, b'\r' | b'\n') => Ok(None),
            end => self.end_record(end),
        }
    }

    /// Consumes the end of a record: a line end that begins with this byte, or the end of the text.
    fn end_record(&mut self, first: Option<u8>) -> Result<Option<End>, ScanError> {
        if let Some(byte) = first {
            self.end_line(byte)?;
        }
        Ok(Some(End::Record))
    }

    fn refuse(&self, line: u64, problem: FieldProblem) -> ScanError {
        ScanError::Field {
            line,
            field: self.spans.len(),
            problem,
        }
    }
}

/// Splits a field off the beginning of `bytes`. Returns its place and the place where it ends, which is that of the
/// next delimiter or line end, or the end of `bytes`. Returns `None` if the field must be looked at closely.
fn split_field(bytes: &[u8], syntax: &Syntax) -> Option<(Span, usize)> {
    let blanks = |bytes: &[u8]| match syntax.trim {
        true => bytes
            .iter()
            .take_while(|&&byte| is(&syntax.blank, byte))
            .count(),
        false => 0,
    };
    let start = blanks(bytes);
    let field = bytes.get(start..).unwrap_or_default();
    if field
        .first()
        .is_some_and(|&byte| syntax.quote == Some(byte))
    {
        let inside = field.get(1..).unwrap_or_default();
        let length = inside
            .iter()
            .position(|&byte| is(&syntax.ends_quoted, byte))?;
        let closed = start + 1 + length;
        if inside.get(length).copied() != syntax.quote {
            return None;
        }
        let after = bytes.get(closed + 1..).unwrap_or_default();
        let ended = closed + 1 + blanks(after);
        // Another quote may be the second half of a doubled one, or the buffer may end between the two.
        let next = bytes.get(ended)?;
        let ends = is(&syntax.delimits, *next) || matches!(next, b'\r' | b'\n');
        return ends.then_some(((start as u32 + 1, closed as u32), ended));
    }
    let length = field.iter().position(|&byte| is(&syntax.ends_field, byte));
    let length = length.unwrap_or(field.len());
    let mut end = start + length;
    if syntax.trim {
        let field = field.get(..length).unwrap_or_default();
        end -= field
            .iter()
            .rev()
            .take_while(|&&byte| is(&syntax.blank, byte))
            .count();
    }
    Some(((start as u32, end as u32), start + length))
}
