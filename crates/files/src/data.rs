//! Tables as they come: files of CSV or Parquet, pipes, text in memory.

use std::{
    ffi::OsString,
    fmt,
    fs::{self, File},
    io::{self, BufReader, Cursor, Read},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use fhaim_domain::{Dialect, Encoding, MAX_SNIFFED, Transcoder};
use zeroize::Zeroizing;

use crate::{Error, FormatArguments, note, parquet};

/// A table as it comes: a file, or text that a program which has linked the commands has in memory.
#[derive(Clone)]
pub enum Data {
    /// A file.
    File(PathBuf, Piped),
    /// Text in memory: UTF-8, with commas.
    Memory {
        /// What messages call it.
        name: String,
        /// The text, gone from memory with its last holder.
        text: Arc<Zeroizing<Vec<u8>>>,
    },
}

/// What came out of a pipe, once it was read: a table is looked at before it is read, and may be read twice,
/// and a pipe gives its bytes once.
pub type Piped = Arc<OnceLock<Arc<Zeroizing<Vec<u8>>>>>;

impl Data {
    /// Text in memory (UTF-8, with commas), under a name for messages.
    pub fn in_memory(name: &str, text: Vec<u8>) -> Self {
        Self::Memory {
            name: name.to_owned(),
            text: Arc::new(text.into()),
        }
    }

    /// What messages call it.
    pub fn name(&self) -> String {
        match self {
            Self::File(path, _) => path.to_string_lossy().into_owned(),
            Self::Memory { name, .. } => name.clone(),
        }
    }

    /// Its file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path, _) => Some(path),
            Self::Memory { .. } => None,
        }
    }

    /// Whether its text was written here: in UTF-8, with commas.
    fn is_ours(&self) -> bool {
        match self {
            Self::File(path, _) => matches!(parquet_file(path), Ok(Some(_))),
            Self::Memory { .. } => true,
        }
    }

    /// Its bytes, from the first; those of the CSV that a Parquet file would be.
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

    /// What comes out of a pipe, or came out of it before.
    fn piped(&self, path: &Path, piped: &Piped) -> Result<Arc<Zeroizing<Vec<u8>>>, Error> {
        if let Some(text) = piped.get() {
            return Ok(text.clone());
        }
        let mut text = Zeroizing::new(Vec::new());
        let read = open(path)?.read_to_end(&mut text);
        read.map_err(|source| self.fault(source))?;
        Ok(piped.get_or_init(|| Arc::new(text)).clone())
    }

    /// An error of reading it.
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

/// Its name alone: records are in no message.
impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// Reads a text that others hold as well.
struct MemoryReader {
    text: Arc<Zeroizing<Vec<u8>>>,
    /// Bytes that were read.
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

/// Refuses a pipe, for what is read twice.
///
/// # Errors
/// [`Error::Pipe`].
pub fn refuse_pipe(path: &Path) -> Result<(), Error> {
    if is_pipe(path) {
        return Err(Error::Pipe(path.to_owned()));
    }
    Ok(())
}

/// Whether there is something of this name that is neither a file nor a folder.
fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// A Parquet file; nothing where the file is none.
fn parquet_file(path: &Path) -> Result<Option<File>, Error> {
    let refuse = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    // A pipe is opened once alone.
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
/// [`Error::Read`], for a folder too.
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

/// A table's text as UTF-8, and the byte between its fields: as asked for, or as its first lines
/// have it. What is not usual is told ([`note`]).
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
            "{name}: fields are separated by '{shown}' (--delimiter says otherwise)"
        ));
    }
    if encoding != Encoding::Utf8 {
        note(format_args!("{name}: read as {encoding}"));
    }
    Ok((text, delimiter))
}

/// As [`text`], of a table that is told of at another time.
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

/// The byte between the fields of a table: as asked for, or as its first lines have it.
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

/// The first bytes of a table, the dialect that they are in, and the rest.
type Sniffed = (Vec<u8>, Dialect, Box<dyn Read>);

/// Looks at the first bytes of a table.
fn sniff(data: &Data) -> Result<Sniffed, Error> {
    let mut rest = data.open()?;
    let mut head = Vec::new();
    let read = rest
        .by_ref()
        .take(MAX_SNIFFED as u64)
        .read_to_end(&mut head);
    read.map_err(|source| data.fault(source))?;
    // A look could take free text for another dialect.
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
