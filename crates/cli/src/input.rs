//! What a command reads: files, and tables in memory.

use std::{
    ffi::OsString,
    fmt,
    fs::{self, File},
    io::{self, BufReader, Cursor, Read},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use fhaim_domain::{
    Adjusted, Binning, BrokenConstraint, Dialect, Encoding, Kind, MAX_SNIFFED, ReadOptions,
    Reading, Schema, Streaming, Table, Transcoder, read_csv, stream_csv,
};
use fhaim_files::{read_options, remarks};
use zeroize::Zeroizing;

use crate::{
    args::{FormatArguments, StrictnessArguments},
    counting::Source,
    error::Error,
    parquet,
    remarks::note,
    size::{self, MAX_RECORDS},
};

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
    pub(crate) fn file(&self) -> Option<&Path> {
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
    pub(crate) fn open(&self) -> Result<Box<dyn Read>, Error> {
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
    pub(crate) fn fault(&self, source: io::Error) -> Error {
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
pub fn refuse_pipe(path: &Path) -> Result<(), Error> {
    if is_pipe(path) {
        return Err(Error::Usage(format!(
            "{} gives its records once and not again: name a file, not a pipe",
            path.display()
        )));
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
/// have it. What is not usual is said on standard error.
pub fn text(data: impl Into<Data>, format: &FormatArguments) -> Result<(Box<dyn Read>, u8), Error> {
    let data = data.into();
    let (head, dialect, rest) = sniff(&data)?;
    let asked = format.delimiter.filter(|_| !data.is_ours());
    let delimiter = asked.unwrap_or(dialect.delimiter);
    let name = data.name();
    if asked.is_none() && delimiter != b',' {
        let shown = char::from(delimiter).escape_default();
        note(format_args!(
            "{name}: fields are separated by '{shown}' (--delimiter says otherwise)"
        ));
    }
    if dialect.encoding != Encoding::Utf8 {
        note(format_args!("{name}: read as {}", dialect.encoding));
    }
    let whole = Cursor::new(head).chain(rest);
    let text = Transcoder::new(whole, dialect.encoding);
    Ok((Box::new(text), delimiter))
}

/// The byte between the fields of a table: as asked for, or as its first lines have it.
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

/// Reads a schema.
pub fn schema(path: &Path) -> Result<Schema, Error> {
    let json = fs::read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    Ok(Schema::from_json(&path.to_string_lossy(), &json)?)
}

/// Reads a table, and tells its holder on standard error what the reading changed.
pub fn table(
    data: impl Into<Data>,
    schema: Schema,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
) -> Result<Table, Error> {
    let data = data.into();
    let options = read_options(data.name(), format, strictness);
    Ok(read(&data, schema, format, options)?.table)
}

/// As [`table`], with what was noticed, and its values as they are.
pub fn reading(
    data: impl Into<Data>,
    schema: Schema,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
) -> Result<Reading, Error> {
    let data = data.into();
    let options = ReadOptions {
        keep_values: true,
        ..read_options(data.name(), format, strictness)
    };
    read(&data, schema, format, options)
}

/// As [`reading`], of a table that is only looked at: what breaks a constraint is counted.
pub fn looking(
    data: impl Into<Data>,
    schema: Schema,
    format: &FormatArguments,
    strictness: &StrictnessArguments,
) -> Result<Reading, Error> {
    let data = data.into();
    let options = ReadOptions {
        keep_values: true,
        broken: BrokenConstraint::Count,
        ..read_options(data.name(), format, strictness)
    };
    read(&data, schema, format, options)
}

fn read(
    data: &Data,
    schema: Schema,
    format: &FormatArguments,
    mut options: ReadOptions,
) -> Result<Reading, Error> {
    let (text, delimiter) = text(data, format)?;
    options.delimiter = delimiter;
    options.max_records = size::most_records(schema.columns().len());
    let reading = read_csv(schema, text, &options)?;
    remark(reading.table.schema(), &reading.left_out, &reading.adjusted);
    Ok(reading)
}

/// Reads a table a few records at a time, whose codes `take` is given, and tells its holder on standard
/// error what the reading changed.
pub fn stream(
    source: Source<'_>,
    take: impl FnMut(&[Vec<u32>]) -> Result<(), Error>,
) -> Result<Streaming, Error> {
    let (text, delimiter) = text(source.data, source.format)?;
    let streaming = stream_text(source, text, delimiter, take)?;
    remark(source.schema, &streaming.left_out, &streaming.adjusted);
    Ok(streaming)
}

/// As [`stream`], of a table that is read again, and told of then.
pub fn stream_quietly(
    source: Source<'_>,
    take: impl FnMut(&[Vec<u32>]) -> Result<(), Error>,
) -> Result<Streaming, Error> {
    let (head, dialect, rest) = sniff(source.data)?;
    let delimiter = source.format.delimiter.unwrap_or(dialect.delimiter);
    let text = Transcoder::new(Cursor::new(head).chain(rest), dialect.encoding);
    stream_text(source, text, delimiter, take)
}

fn stream_text(
    source: Source<'_>,
    text: impl Read,
    delimiter: u8,
    take: impl FnMut(&[Vec<u32>]) -> Result<(), Error>,
) -> Result<Streaming, Error> {
    let options = ReadOptions {
        delimiter,
        // A few at a time are in memory.
        max_records: MAX_RECORDS,
        ..read_options(source.data.name(), source.format, source.strictness)
    };
    stream_csv(source.schema, text, &options, take)
}

fn remark(schema: &Schema, left_out: &[String], adjusted: &[Adjusted]) {
    remarks(schema, left_out, adjusted).iter().for_each(note);
}

/// A model is told of that gives less of its mass to what a schema's constraints allow.
const LITTLE_MASS: f64 = 0.5;

/// Tells of a model that had to be asked often for records that a schema's constraints allow.
pub fn remark_on_constraints(schema: &Schema, allowed: f64) {
    if !schema.constraints().is_empty() && allowed < LITTLE_MASS {
        note(format_args!(
            "the schema's constraints allow {:.1}% of what the model draws, and only that was kept: it has \
             learnt little of what they say",
            100.0 * allowed
        ));
    }
}

/// Tells the holder of numeric columns that hold integers alone and are not said to.
pub fn remark_on_integers(reading: &Reading) {
    let columns = reading.table.schema().columns();
    for (column, adjusted) in columns.iter().zip(&reading.adjusted) {
        if adjusted.fractions == 0 && may_hold_integers(column.kind()) {
            note(format_args!(
                "column {:?}: every number is whole; synthetic ones are only where its schema says \
                 \"integer\": true",
                column.name()
            ));
        }
    }
}

/// Whether a column that is not said to hold integers could be.
fn may_hold_integers(kind: &Kind) -> bool {
    match kind {
        Kind::Numeric(binning) => {
            let (min, max) = (binning.min(), binning.max());
            !binning.integer() && Binning::new(min, max, binning.bins().into(), true).is_ok()
        }
        Kind::Categorical { .. } | Kind::Part { .. } => false,
    }
}
