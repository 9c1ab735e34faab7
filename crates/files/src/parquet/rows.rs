//! The rows of a Parquet file as CSV, row group by row group, with a few rows in memory at a time.

use std::{
    fs::File,
    io::{self, Read},
    sync::Arc,
};

use parquet::{errors::ParquetError, file::metadata::ParquetMetaData};
use zeroize::Zeroizing;

use super::{columns::Column, guarded, problem, values::Values};

/// Maximum number of rows that are decoded at a time.
const BATCH: usize = 1_024;

/// Bytes of text after which no further row is written before the text is read.
const TEXT: usize = 1 << 16;

/// Bytes of the longest values that are decoded at a time, if a page can have values of this length in few bytes.
const LONG_VALUES: u64 = 64 << 20;

/// Returns how many rows are decoded at a time if a value may have `longest` bytes.
pub(super) fn batch(longest: u64) -> usize {
    let fit = LONG_VALUES.checked_div(longest).unwrap_or(u64::MAX);
    usize::try_from(fit).unwrap_or(BATCH).clamp(1, BATCH)
}

/// A reader of CSV.
pub(super) struct Rows {
    pub(super) file: Arc<File>,
    pub(super) metadata: Arc<ParquetMetaData>,
    pub(super) columns: Vec<Column>,
    /// Maximum number of rows that are decoded at a time.
    batch: usize,
    /// The next row group.
    group: usize,
    /// Rows of the current row group that are not decoded, and decoded rows that are not written.
    encoded: usize,
    decoded: usize,
    values: Vec<Values>,
    text: Zeroizing<Vec<u8>>,
    /// Number of bytes of the text that were read.
    read: usize,
    failure: Option<String>,
}

impl Rows {
    pub(super) fn new(
        file: Arc<File>,
        metadata: Arc<ParquetMetaData>,
        columns: Vec<Column>,
        batch: usize,
    ) -> Result<Self, ParquetError> {
        let mut rows = Self {
            file,
            metadata,
            columns,
            batch,
            group: 0,
            encoded: 0,
            decoded: 0,
            values: Vec::new(),
            text: Zeroizing::default(),
            read: 0,
            failure: None,
        };
        let names = rows.columns.iter().map(|column| column.name.as_str());
        let mut header = csv::Writer::from_writer(Vec::new());
        header.write_record(names).map_err(unwritten)?;
        rows.text = header.into_inner().map_err(external)?.into();
        Ok(rows)
    }

    /// Writes some rows. Writes none at the end of the table.
    fn fill(&mut self) -> Result<(), ParquetError> {
        self.read = 0;
        let mut text = std::mem::take(&mut *self.text);
        text.clear();
        let mut writer = csv::Writer::from_writer(text);
        let mut field = Zeroizing::new(Vec::new());
        let mut bytes = 0;
        while bytes < TEXT && self.prepare()? {
            for (column, values) in self.columns.iter().zip(&mut self.values) {
                field.clear();
                column.form.write(values.next(), &mut field);
                bytes += field.len() + 1;
                writer.write_field(&*field).map_err(unwritten)?;
            }
            writer.write_record(None::<&[u8]>).map_err(unwritten)?;
            self.decoded -= 1;
        }
        self.text = writer.into_inner().map_err(external)?.into();
        Ok(())
    }

    /// Decodes rows if none is left. Returns false at the end of the table.
    fn prepare(&mut self) -> Result<bool, ParquetError> {
        while self.decoded == 0 {
            if self.encoded == 0 && !self.open_group()? {
                return Ok(false);
            }
            let rows = self.batch.min(self.encoded);
            for (column, values) in self.columns.iter().zip(&mut self.values) {
                values.advance(rows, &column.form)?;
            }
            self.encoded -= rows;
            self.decoded = rows;
        }
        Ok(true)
    }

    /// Opens the next row group. Returns false after the last one.
    fn open_group(&mut self) -> Result<bool, ParquetError> {
        let Some(group) = self.metadata.row_groups().get(self.group) else {
            return Ok(false);
        };
        self.group += 1;
        self.encoded = usize::try_from(group.num_rows())?;
        let columns = self.columns.iter();
        let opened = columns.map(|column| Values::open(&self.file, group, column));
        self.values = opened.collect::<Result<_, _>>()?;
        Ok(true)
    }
}

impl Read for Rows {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.text.len() && self.failure.is_none() {
            let filled = guarded(|| self.fill());
            self.failure = filled.err().map(|error| problem(&error));
        }
        // A failed read must not look like the end of the table when it is repeated.
        if let Some(problem) = &self.failure {
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem.clone()));
        }
        let mut rest = self.text.get(self.read..).unwrap_or_default();
        let bytes = rest.read(buffer)?;
        self.read += bytes;
        Ok(bytes)
    }
}

fn unwritten(error: csv::Error) -> ParquetError {
    external(error)
}

fn external(error: impl std::error::Error + Send + Sync + 'static) -> ParquetError {
    ParquetError::External(Box::new(error))
}
