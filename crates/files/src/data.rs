//! Input tables: CSV or Parquet files, pipes, and text in memory.

use std::{
    ffi::OsString,
    fmt,
    fs::{self, File},
    io::{self, BufReader, Cursor, Read},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use fhaim_domain::Dialect;
use fhaim_intake::{
    Encoding, Family, MAX_SNIFFED, Remark, TextError, encoding_remark, identify, open_text,
};
use zeroize::Zeroizing;

use crate::{
    Error, FormatArguments, LeftOut,
    excel::{self, MAX_WORKBOOK_BYTES, SheetText},
    left_out,
    memory::Sketch,
    note, note_once, parquet, shown,
};

/// An input table: a file, or text in the memory of a program that embeds the commands.
#[derive(Clone)]
pub enum Data {
    /// A file or a pipe.
    File(PathBuf, Arc<ReadBefore>),
    /// Text in memory: UTF-8, with commas.
    Memory {
        /// Name of the table in messages.
        name: String,
        /// The text. It is erased from memory with its last reference.
        text: Arc<Zeroizing<Vec<u8>>>,
        /// Columns that the text lacks.
        left_out: Arc<[LeftOut]>,
        /// Parts that are kept from an earlier read.
        before: Arc<ReadBefore>,
    },
}

/// Parts of a table that are kept from an earlier read.
#[derive(Default)]
pub struct ReadBefore {
    /// The content of a pipe. A pipe gives its bytes only once, but a table's dialect is detected before it is read, and
    /// it may be read twice.
    piped: OnceLock<Arc<Zeroizing<Vec<u8>>>>,
    /// The sketch of the records, for the usage history.
    sketch: OnceLock<Sketch>,
}

impl Data {
    /// Creates a table from text in memory (UTF-8, with commas) and a name for messages. `left_out` are columns of the
    /// original table that the text lacks.
    pub fn in_memory(name: &str, text: Vec<u8>, left_out: Vec<LeftOut>) -> Self {
        Self::Memory {
            name: name.to_owned(),
            text: Arc::new(text.into()),
            left_out: left_out.into(),
            before: Arc::default(),
        }
    }

    /// The sketch of the records, if the table has been read with one.
    pub(crate) fn sketch(&self) -> &OnceLock<Sketch> {
        match self {
            Self::File(_, before) | Self::Memory { before, .. } => &before.sketch,
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

    /// Opens the table at its first byte. A Parquet file is converted to CSV while it is read.
    ///
    /// Reports columns that are left out with [`note_once`].
    ///
    /// # Errors
    /// [`Error::Read`]; [`Error::Content`] for a Parquet file that cannot be read. Damage inside a Parquet file is an
    /// error of the reader.
    pub fn open(&self) -> Result<Box<dyn Read>, Error> {
        let text = match self {
            Self::File(path, before) => match parquet_file(path)? {
                Some(file) => return self.open_parquet(path, file),
                None if is_pipe(path) => self.piped(path, &before.piped)?,
                None => return Ok(Box::new(open(path)?)),
            },
            Self::Memory { text, left_out, .. } => {
                self.note_once(left_out::remark(left_out));
                text.clone()
            }
        };
        Ok(Box::new(MemoryReader { text, read: 0 }))
    }

    fn open_parquet(&self, path: &Path, file: File) -> Result<Box<dyn Read>, Error> {
        let table = parquet::Table::open(path, file)?;
        self.note_once(table.remarks());
        Ok(Box::new(table.rows(path)?))
    }

    fn note_once(&self, remarks: impl IntoIterator<Item = String>) {
        for remark in remarks {
            note_once(format_args!("{}: {remark}", shown(&self.name())));
        }
    }

    /// Returns the columns of the table that are not read.
    ///
    /// # Errors
    /// As [`Data::open`].
    pub fn left_out(&self) -> Result<Vec<LeftOut>, Error> {
        match self {
            Self::File(path, _) => match parquet_file(path)? {
                Some(file) => Ok(parquet::Table::open(path, file)?.left_out().to_vec()),
                None => Ok(Vec::new()),
            },
            Self::Memory { left_out, .. } => Ok(left_out.to_vec()),
        }
    }

    /// Returns the content of a pipe, which the first call reads.
    fn piped(
        &self,
        path: &Path,
        piped: &OnceLock<Arc<Zeroizing<Vec<u8>>>>,
    ) -> Result<Arc<Zeroizing<Vec<u8>>>, Error> {
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
        Self::File(path, Arc::default())
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

/// Returns a table's text as UTF-8, and its dialect. `format` states parts of it; the first lines show the others.
///
/// Reports everything that was detected and is not usual with [`note`].
///
/// # Errors
/// As [`Data::open`]; [`Error::Content`] for a file of another type, or a broken workbook.
pub fn text(
    data: impl Into<Data>,
    format: &FormatArguments,
) -> Result<(Box<dyn Read>, Dialect), Error> {
    let data = data.into();
    let name = shown(&data.name()).into_owned();
    let late = name.clone();
    let source = source(&data, format, move |encoding| {
        note_remark(&late, &encoding_remark(encoding));
    })?;
    for remark in &source.remarks {
        note_remark(&name, remark);
    }
    Ok((source.text, source.dialect))
}

fn note_remark(name: &str, remark: &Remark) {
    let text = &remark.text;
    match remark.flag {
        Some(flag) => note(format_args!("{name}: {text}; use {flag} to change that")),
        None => note(format_args!("{name}: {text}")),
    }
}

/// Like [`text`], without reports, for a table that is also read with them.
///
/// # Errors
/// As [`text`].
pub fn dialect_text(
    data: &Data,
    format: &FormatArguments,
) -> Result<(Box<dyn Read>, Dialect), Error> {
    let source = source(data, format, |_| ())?;
    Ok((source.text, source.dialect))
}

/// Returns the field delimiter for a table that is written like this one.
///
/// # Errors
/// As [`text`].
pub fn delimiter(data: impl Into<Data>, format: &FormatArguments) -> Result<u8, Error> {
    Ok(dialect_text(&data.into(), format)?
        .1
        .delimiter_for_writing())
}

/// A table's text as UTF-8, its dialect, and the remarks on its detection.
struct Source {
    text: Box<dyn Read>,
    dialect: Dialect,
    remarks: Vec<Remark>,
}

/// Opens a table's text. `late` is called if its encoding is detected after its first bytes.
fn source(
    data: &Data,
    format: &FormatArguments,
    late: impl FnOnce(Encoding) + 'static,
) -> Result<Source, Error> {
    let content = |problem: String| Error::Content {
        path: data.name().into(),
        problem,
    };
    let mut rest = data.open()?;
    if data.is_ours() {
        // The dialect is known, and free text could mislead the detection.
        return Ok(Source {
            text: rest,
            dialect: Dialect::default(),
            remarks: Vec::new(),
        });
    }
    let mut head = Vec::new();
    let read = rest
        .by_ref()
        .take(MAX_SNIFFED as u64)
        .read_to_end(&mut head);
    read.map_err(|source| data.fault(source))?;
    let family = identify(&head).map(|found| found.family);
    let whole = Cursor::new(head).chain(rest);
    let mut given = format.given();
    let mut remarks = Vec::new();
    let input: Box<dyn Read> = match family {
        Some(Family::Workbook) => {
            let sheet = sheet(data, whole, format)?;
            given.encoding = Some(Encoding::UTF_8);
            (given.delimiter, given.quote) = (Some(b','), Some(Some(b'"')));
            remarks.extend(sheet.remark.map(|text| Remark { text, flag: None }));
            Box::new(MemoryReader {
                text: Arc::new(sheet.text),
                read: 0,
            })
        }
        _ if format.sheet.is_some() => {
            let problem = "it is no workbook, so it has no sheets: leave out --sheet";
            return Err(content(problem.to_owned()));
        }
        Some(Family::Zstd) => {
            remarks.push(Remark {
                text: "decompressed with Zstandard".to_owned(),
                flag: None,
            });
            let decoder = zstd::Decoder::new(whole).map_err(|source| data.fault(source))?;
            Box::new(decoder)
        }
        _ => Box::new(whole),
    };
    let opened = open_text(input, &given, late).map_err(|error| match error {
        TextError::Io(source) => data.fault(source),
        other => content(other.to_string()),
    })?;
    remarks.extend(opened.remarks);
    Ok(Source {
        text: opened.text,
        dialect: opened.dialect,
        remarks,
    })
}

/// Converts the sheet of a workbook that `format` names, or the first one that is not empty.
fn sheet(data: &Data, workbook: impl Read, format: &FormatArguments) -> Result<SheetText, Error> {
    let content = |problem| Error::Content {
        path: data.name().into(),
        problem,
    };
    // Growing vectors leave copies of the table behind in memory.
    let mut bytes = Zeroizing::new(Vec::new());
    if let Some(size) = data.file().and_then(|path| fs::metadata(path).ok()) {
        bytes.reserve_exact(size.len().min(MAX_WORKBOOK_BYTES + 1) as usize + 1);
    }
    let read = workbook
        .take(MAX_WORKBOOK_BYTES + 1)
        .read_to_end(&mut bytes);
    read.map_err(|source| data.fault(source))?;
    excel::csv(bytes, format.sheet.as_deref()).map_err(content)
}

#[cfg(test)]
mod tests;
