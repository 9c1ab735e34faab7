//! Reads Parquet tables as CSV: UTF-8, commas, and an empty field for a missing value. `typed` has the texts of values.

mod arrow;
mod columns;
mod footer;
mod pages;
mod rows;
#[cfg(test)]
mod tests;
mod thrift;
mod values;

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
    sync::Arc,
};

use parquet::{
    errors::ParquetError,
    file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData},
};

use self::{columns::Columns, pages::Needs, rows::Rows, values::Values};
use crate::{
    Error, guard,
    left_out::{self, LeftOut},
};

/// First bytes of a Parquet file.
const MAGIC: &[u8] = b"PAR1";

/// Number of values that are looked at at a time.
const LOOKED_AT: usize = 1_024;

/// Whether a file begins like a Parquet file. Rewinds it to the first byte.
pub fn is_parquet(file: &mut File) -> io::Result<bool> {
    let mut head = Vec::new();
    file.by_ref()
        .take(MAGIC.len() as u64)
        .read_to_end(&mut head)?;
    // Pipes do not get here. They cannot rewind, and a Parquet file has its directory at the end.
    let is_parquet = head == MAGIC;
    file.seek(SeekFrom::Start(0))?;
    Ok(is_parquet)
}

/// A table in a Parquet file.
pub struct Table {
    file: Arc<File>,
    metadata: Arc<ParquetMetaData>,
    columns: Columns,
}

impl Table {
    /// Reads the description of a table in a file.
    ///
    /// # Errors
    /// [`Error::Content`] for a broken file, or if no column has a supported type.
    pub fn open(path: &Path, file: File) -> Result<Self, Error> {
        let described = guarded(|| {
            footer::check(&file)?;
            let metadata = ParquetMetaDataReader::new().parse_and_finish(&file)?;
            Ok((Columns::of(metadata.file_metadata()), metadata))
        });
        let (columns, metadata) = described.map_err(|error| content(path, problem(&error)))?;
        let table = Self {
            file: Arc::new(file),
            metadata: Arc::new(metadata),
            columns,
        };
        if table.columns.read.is_empty() {
            let problem = match table.left_out() {
                [] => "the table has no columns".to_owned(),
                left_out => format!(
                    "no column can be read: {}. Only numbers, texts, booleans, dates, times and durations are \
                     supported: convert a column to one of them",
                    left_out::listed(left_out)
                ),
            };
            return Err(content(path, problem));
        }
        Ok(table)
    }

    /// The columns that are left out.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.columns.left_out
    }

    /// Remarks for the holder on the table's columns.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = left_out::remark(self.left_out()).into_iter().collect();
        for (column, zone) in &self.columns.unknown_zones {
            remarks.push(format!(
                "column {column:?}: the time zone {zone:?} is unknown, so its times are read in universal time (UTC)"
            ));
        }
        remarks
    }

    /// Returns a reader of the table as CSV.
    ///
    /// # Errors
    /// [`Error::Content`] for a broken file, one whose pages need too much memory, or a compression other than Snappy,
    /// Zstandard, gzip or LZ4. Damage inside pages is found while they are read.
    pub fn rows(self, path: &Path) -> Result<impl Read + use<>, Error> {
        guarded(|| self.into_rows()).map_err(|error| content(path, problem(&error)))
    }

    fn into_rows(mut self) -> Result<Rows, ParquetError> {
        let longest = self.check()?;
        self.look()?;
        Rows::new(
            self.file,
            self.metadata,
            self.columns.read,
            rows::batch(longest),
        )
    }

    /// Checks the pages of all row groups. Returns the bytes of the longest value.
    fn check(&self) -> Result<u64, ParquetError> {
        let limit = pages::limit(self.file.metadata()?.len());
        let mut longest = 0;
        for group in self.metadata.row_groups() {
            let needs = self.needs(group, limit)?;
            if needs.memory > limit {
                return Err(pages::too_large());
            }
            longest = needs.longest.max(longest);
        }
        Ok(longest)
    }

    fn needs(&self, group: &RowGroupMetaData, limit: u64) -> Result<Needs, ParquetError> {
        let mut needs = Needs::default();
        for column in &self.columns.read {
            let chunk = group.columns().get(column.leaf);
            let chunk = chunk.filter(|chunk| chunk.num_values() == group.num_rows());
            let chunk = chunk.ok_or_else(|| {
                ParquetError::General("columns have different numbers of records".to_owned())
            })?;
            let own = pages::check(&self.file, chunk, limit)?;
            needs.memory = needs.memory.saturating_add(own.memory);
            needs.longest = needs.longest.max(own.longest);
        }
        Ok(needs)
    }

    /// Finds out how the columns with times are written, which depends on all of their values.
    fn look(&mut self) -> Result<(), ParquetError> {
        for column in &mut self.columns.read {
            for group in self.metadata.row_groups() {
                if !column.form.needs_look() || column.form.is_settled() {
                    break;
                }
                let mut values = Values::open(&self.file, group, column)?;
                let mut left = usize::try_from(group.num_rows())?;
                while left > 0 {
                    let records = left.min(LOOKED_AT);
                    values.advance(records, &column.form)?;
                    (0..records).for_each(|_| column.form.look(values.next()));
                    left -= records;
                }
            }
        }
        Ok(())
    }
}

/// Runs the library, and returns its panic as an error.
fn guarded<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let damaged = || ParquetError::General("damaged content".to_owned());
    guard::guarded(work).unwrap_or_else(|| Err(damaged()))
}

fn content(path: &Path, problem: String) -> Error {
    Error::Content {
        path: path.to_owned(),
        problem,
    }
}

/// Describes the problem of a file and, where known, its solution.
fn problem(error: &ParquetError) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("Parquet error: ").unwrap_or(&text);
    if text.contains("Disabled feature at compile time") {
        return format!("{text}: write the file with Snappy or Zstandard compression, or as CSV");
    }
    format!("this Parquet file cannot be read: {text}")
}
