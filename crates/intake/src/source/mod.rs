//! Text of a table in any encoding, compression and dialect.

mod dialect;
mod encoding;
mod file_type;
mod way_out;

use std::io::{self, Cursor, Read};

use fhaim_domain::{Dialect, TableRecords};
use flate2::read::MultiGzDecoder;

pub use encoding::{Encoding, Transcoder};
pub use file_type::{Family, FileType, identify};
pub use way_out::way_out;

/// Number of bytes at the beginning of a file that detection inspects, before and after decompression.
pub const MAX_SNIFFED: usize = 1 << 16;

/// Maximum number of records in [`TableText::samples`].
const MAX_SAMPLES: usize = 500;

/// What the holder stated about a table's text. Everything else is detected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Byte between fields.
    pub delimiter: Option<u8>,
    /// Byte around fields; `Some(None)` if no byte has this meaning.
    pub quote: Option<Option<u8>>,
    /// Byte that begins comments; `Some(None)` if no byte has this meaning.
    pub comment: Option<Option<u8>>,
    /// Number of lines before the header.
    pub skip_rows: Option<u64>,
    /// Number of rows at the end that are no records.
    pub skip_footer: Option<usize>,
    /// Encoding of the text.
    pub encoding: Option<Encoding>,
}

/// A detected property of a table's text, for its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// A sentence without capital letter and full stop.
    pub text: String,
    /// The command's flag that states it instead.
    pub flag: Option<&'static str>,
}

/// Why a table's text cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The file is of another type.
    #[error("{0}")]
    Type(FileType),
    /// The first line is a record.
    #[error(
        "line {0} looks like a record, not like a header: add a line with the names of the columns above it, or \
         use --skip-rows {1} if it is the header"
    )]
    NoHeader(u64, u64),
    /// Reading failed, or a compressed file is broken.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The text of a table, as UTF-8, and how it is written.
pub struct TableText<'a> {
    /// The text from its first byte. Bytes that are not text are invalid UTF-8.
    pub text: Box<dyn Read + 'a>,
    /// How it is written.
    pub dialect: Dialect,
    /// Its encoding. `None` if all inspected bytes are ASCII.
    pub encoding: Option<Encoding>,
    /// Unusual properties that were detected.
    pub remarks: Vec<Remark>,
    /// The names of the columns; none if the header is broken.
    pub header: Vec<String>,
    /// The first records; none from the first broken one on. Private: this is a part of the table.
    pub samples: Vec<Vec<String>>,
}

/// Opens a table's text at its first byte: decompresses gzip, converts it to UTF-8, and detects its dialect from its
/// first [`MAX_SNIFFED`] bytes. Memory does not depend on the length of the text.
///
/// `late` is called while the text is read, if its first byte that is not ASCII comes later and is not UTF-8.
///
/// ```
/// use std::io::Read;
///
/// use fhaim_intake::{Given, open_text};
///
/// let file = b"sep=;\nstadt;alter\nK\xf6ln;41\n";
/// let mut table = open_text(&file[..], &Given::default(), |_| ())?;
/// let mut text = String::new();
/// table.text.read_to_string(&mut text)?;
/// assert!(text.ends_with("Köln;41\n"));
/// assert_eq!((table.dialect.delimiter, table.dialect.skip_rows), (b';', 1));
/// # Ok::<(), fhaim_intake::TextError>(())
/// ```
///
/// # Errors
/// The file is of another type, it cannot be read, or its compression is broken.
pub fn open_text<'a>(
    input: impl Read + 'a,
    given: &Given,
    late: impl FnOnce(Encoding) + 'a,
) -> Result<TableText<'a>, TextError> {
    let mut remarks = Vec::new();
    let (mut head, mut input) = peek(Box::new(input))?;
    if identify(&head).is_some_and(|found| found.family == Family::Gzip) {
        (head, input) = peek(Box::new(Unzipped(MultiGzDecoder::new(input))))?;
        remarks.push(Remark {
            text: "decompressed with gzip".to_owned(),
            flag: None,
        });
    }
    let encoding = Encoding::of_start(&head);
    if encoding.is_none()
        && given.encoding.is_none()
        && let Some(file_type) = identify(&head)
    {
        return Err(TextError::Type(file_type));
    }
    let encoding = given.encoding.or(encoding);
    let found = std::rc::Rc::new(std::cell::Cell::new(encoding));
    let in_head = std::rc::Rc::new(std::cell::Cell::new(true));
    let (tell, early) = (found.clone(), in_head.clone());
    let text = Transcoder::new(input, encoding, move |detected| {
        tell.set(Some(detected));
        if !early.get() && detected != Encoding::UTF_8 {
            late(detected);
        }
    });
    let (head, text) = peek(Box::new(text))?;
    in_head.set(false);
    let encoding = found.get();
    if let Some(detected) =
        encoding.filter(|&detected| detected != Encoding::UTF_8 && given.encoding.is_none())
    {
        remarks.push(encoding_remark(detected));
    }
    let is_whole = head.len() < MAX_SNIFFED;
    let (dialect, found) = dialect::detect(&head, is_whole, given)?;
    remarks.extend(found);
    let (header, samples, named) = first_records(&head, is_whole, &dialect);
    remarks.extend(named.into_iter().map(|text| Remark { text, flag: None }));
    Ok(TableText {
        text,
        dialect,
        encoding,
        remarks,
        header,
        samples,
    })
}

/// Returns the remark on a detected encoding other than UTF-8.
pub fn encoding_remark(encoding: Encoding) -> Remark {
    Remark {
        text: format!("read as {encoding}"),
        flag: Some("--encoding"),
    }
}

/// Reads the first bytes of an input. Returns them, and the whole input from its first byte.
fn peek<'a>(mut input: Box<dyn Read + 'a>) -> io::Result<(Vec<u8>, Box<dyn Read + 'a>)> {
    let mut head = Vec::new();
    input
        .by_ref()
        .take(MAX_SNIFFED as u64)
        .read_to_end(&mut head)?;
    let whole = Cursor::new(head.clone()).chain(input);
    Ok((head, Box::new(whole)))
}

/// Returns the names of the columns, the first records, and remarks on the names.
fn first_records(
    head: &[u8],
    is_whole: bool,
    dialect: &Dialect,
) -> (Vec<String>, Vec<Vec<String>>, Vec<String>) {
    let Ok(mut records) = TableRecords::open("", dialect, head) else {
        return Default::default();
    };
    let mut samples = Vec::new();
    while samples.len() < MAX_SAMPLES && matches!(records.advance(), Ok(true)) {
        let fields = 0..records.header().len();
        let text = |field| String::from_utf8_lossy(records.bytes(field)).into_owned();
        samples.push(fields.map(text).collect());
    }
    if !is_whole && samples.len() < MAX_SAMPLES {
        // The last record may be cut off.
        samples.pop();
    }
    (
        records.header().to_vec(),
        samples,
        records.remarks().to_vec(),
    )
}

/// Decompressed bytes, with errors that name the compression.
struct Unzipped<R>(MultiGzDecoder<R>);

impl<R: Read> Read for Unzipped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput
            | io::ErrorKind::InvalidData
            | io::ErrorKind::UnexpectedEof => {
                let words =
                    format!("the gzip compression is broken ({error}): transfer the file again");
                io::Error::new(error.kind(), words)
            }
            _ => error,
        })
    }
}
