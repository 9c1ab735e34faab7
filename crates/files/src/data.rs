//! Input tables: CSV or Parquet files, pipes, and text in memory.

use std::{
    ffi::OsString,
    fmt,
    fs::{self, File},
    io::{self, BufReader, Cursor, Read},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use fhaim_intake::{Dialect, Encoding, MAX_SNIFFED, Transcoder};
use zeroize::Zeroizing;

use crate::{Error, FormatArguments, note, parquet};

/// An input table: a file, or text in the memory of a program that embeds the commands.
#[derive(Clone)]
pub enum Data {
    /// A file or a pipe.
    File(PathBuf, Piped),
    /// Text in memory: UTF-8, with commas.
    Memory {
        /// Name of the table in messages.
        name: String,
        /// The text. It is erased from memory with its last reference.
        text: Arc<Zeroizing<Vec<u8>>>,
    },
}

/// The content of a pipe after its first read.
///
/// A pipe gives its bytes only once, but a table's dialect is detected before it is read, and it may be read twice.
pub type Piped = Arc<OnceLock<Arc<Zeroizing<Vec<u8>>>>>;

impl Data {
    /// Creates a table from text in memory (UTF-8, with commas) and a name for messages.
    pub fn in_memory(name: &str, text: Vec<u8>) -> Self {
        Self::Memory {
            name: name.to_owned(),
            text: Arc::new(text.into()),
        }
    }

    /// Returns the table's name in messages.
    pub fn name(&self) -> String {
        match self {
            Self::File(path, _) => path.to_string_lossy().into_owned(),
            Self::Memory { name, .. } => name.clone(),
        }
    }

    /// Returns the path if the table is a file.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path, _) => Some(path),
            Self::Memory { .. } => None,
        }
    }

    /// Whether fhaim produced the CSV text itself: in UTF-8, with commas.
    fn is_ours(&self) -> bool {
        match self {
            Self::File(path, _) => matches!(parquet_file(path), Ok(Some(_))),
            Self::Memory { .. } => true,
        }
    }

    /// Opens the table at its first byte. A Parquet file is converted to CSV.
    ///
    /// # Errors
    /// [`Error::Read`]; [`Error::Content`] for a Parquet file that cannot be read.
    pub fn open(&self) -> Result<Box<dyn Read>, Error> {
        let text = match self {
            Self::File(path, piped) => match parquet_file(path)? {
                Some(file) => Arc::new(parquet::csv(path, file)?),
                None if is_pipe(path) => self.piped(path, piped)?,
                None => return Ok(Box::new(open(path)?)),
            },
            Self::Memory { text, .. } => text.clone(),
        };
        Ok(Box::new(MemoryReader { text, read: 0 }))
    }

    /// Returns the content of a pipe, which the first call reads.
    fn piped(&self, path: &Path, piped: &Piped) -> Result<Arc<Zeroizing<Vec<u8>>>, Error> {
        if let Some(text) = piped.get() {
            return Ok(text.clone());
        }
        let mut text = Zeroizing::new(Vec::new());
        let read = open(path)?.read_to_end(&mut text);
        read.map_err(|source| self.fault(source))?;
        Ok(piped.get_or_init(|| Arc::new(text)).clone())
    }

    /// Converts an I/O error to an [`Error::Read`] with the table's name.
    pub fn fault(&self, source: io::Error) -> Error {
        Error::Read {
            path: self.name().into(),
            source,
        }
    }
}

impl From<OsString> for Data {
    fn from(path: OsString) -> Self {
        PathBuf::from(path).into()
    }
}

impl From<PathBuf> for Data {
    fn from(path: PathBuf) -> Self {
        Self::File(path, Piped::default())
    }
}

impl From<&Path> for Data {
    fn from(path: &Path) -> Self {
        path.to_owned().into()
    }
}

impl From<&PathBuf> for Data {
    fn from(path: &PathBuf) -> Self {
        path.clone().into()
    }
}

impl From<&Data> for Data {
    fn from(data: &Data) -> Self {
        data.clone()
    }
}

/// Prints only the name, so that no message contains records.
impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// Reads a shared text.
struct MemoryReader {
    text: Arc<Zeroizing<Vec<u8>>>,
    /// Number of bytes already read.
    read: usize,
}

impl Read for MemoryReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut rest = self.text.get(self.read..).unwrap_or_default();
        let bytes = rest.read(buffer)?;
        self.read += bytes;
        Ok(bytes)
    }
}

/// Rejects a pipe as an input that is read twice.
///
/// # Errors
/// [`Error::Pipe`].
pub fn refuse_pipe(path: &Path) -> Result<(), Error> {
    if is_pipe(path) {
        return Err(Error::Pipe(path.to_owned()));
    }
    Ok(())
}

/// Whether the path exists and is neither a file nor a folder.
fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Opens a file if it is Parquet; returns `None` for any other file.
fn parquet_file(path: &Path) -> Result<Option<File>, Error> {
    let refuse = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    // A pipe can be opened only once, so it must not be opened here.
    if !fs::metadata(path).map_err(refuse)?.is_file() {
        return Ok(None);
    }
    let mut file = open(path)?.into_inner();
    let is_parquet = parquet::is_parquet(&mut file).map_err(refuse)?;
    Ok(is_parquet.then_some(file))
}

/// Opens a file for reading.
///
/// # Errors
/// [`Error::Read`], also for a folder.
pub fn open(path: &Path) -> Result<BufReader<File>, Error> {
    let refuse = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(refuse)?;
    if file.metadata().map_err(refuse)?.is_dir() {
        return Err(refuse(io::ErrorKind::IsADirectory.into()));
    }
    Ok(BufReader::new(file))
}

/// Returns a table's text as UTF-8, and its field delimiter: the one in `format`, or the one detected in the first
/// lines.
///
/// If an unusual delimiter or encoding was detected, reports it with [`note`].
///
/// # Errors
/// As [`Data::open`].
pub fn text(data: impl Into<Data>, format: &FormatArguments) -> Result<(Box<dyn Read>, u8), Error> {
    let data = data.into();
    let (
        text,
        Dialect {
            delimiter,
            encoding,
        },
    ) = dialect_text(&data, format)?;
    let name = data.name();
    let asked = format.delimiter.is_some() && !data.is_ours();
    if !asked && delimiter != b',' {
        let shown = char::from(delimiter).escape_default();
        note(format_args!(
            "{name}: detected the field delimiter '{shown}'; use --delimiter to set another"
        ));
    }
    if encoding != Encoding::Utf8 {
        note(format_args!("{name}: read as {encoding}"));
    }
    Ok((text, delimiter))
}

/// Like [`text`], but returns the dialect instead of reporting it.
///
/// # Errors
/// As [`Data::open`].
pub fn dialect_text(
    data: &Data,
    format: &FormatArguments,
) -> Result<(Box<dyn Read>, Dialect), Error> {
    let (head, mut dialect, rest) = sniff(data)?;
    let asked = format.delimiter.filter(|_| !data.is_ours());
    dialect.delimiter = asked.unwrap_or(dialect.delimiter);
    let whole = Cursor::new(head).chain(rest);
    Ok((Box::new(Transcoder::new(whole, dialect.encoding)), dialect))
}

/// Returns a table's field delimiter: the one in `format`, or the one detected in the first lines.
///
/// # Errors
/// As [`Data::open`].
pub fn delimiter(data: impl Into<Data>, format: &FormatArguments) -> Result<u8, Error> {
    let data = data.into();
    match format.delimiter.filter(|_| !data.is_ours()) {
        Some(delimiter) => Ok(delimiter),
        None => Ok(sniff(&data)?.1.delimiter),
    }
}

/// The first bytes of a table, their dialect, and a reader of the remaining bytes.
type Sniffed = (Vec<u8>, Dialect, Box<dyn Read>);

/// Detects a table's dialect in its first bytes.
fn sniff(data: &Data) -> Result<Sniffed, Error> {
    let mut rest = data.open()?;
    let mut head = Vec::new();
    let read = rest
        .by_ref()
        .take(MAX_SNIFFED as u64)
        .read_to_end(&mut head);
    read.map_err(|source| data.fault(source))?;
    // The dialect is known, and free text could mislead the detection.
    let dialect = if data.is_ours() {
        Dialect {
            delimiter: b',',
            encoding: Encoding::Utf8,
        }
    } else {
        Dialect::detect(&head)
    };
    Ok((head, dialect, rest))
}
