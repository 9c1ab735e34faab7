//! Synthetic tables as Parquet. Each block of records is one row group.

mod columns;

use fhaim_domain::Schema;
use fhaim_synth::{Block, Blocks};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use std::io::{self, Write};
use std::sync::Arc;

use self::columns::{Chunk, OutputColumn, table_type, with_dictionaries, write_group};
use super::Failed;

/// Maximum number of column chunks in a file. The footer has an entry for each and stays in memory
/// until the end.
const MAX_CHUNKS: u64 = 1 << 18;

/// A table that is too long for a Parquet file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rows: must be at most {0} for a Parquet file of this table; request fewer rows or CSV")]
pub struct TooLong(u64);

/// Checks that the footer of a file of all blocks fits in memory.
///
/// # Errors
/// [`TooLong`].
pub fn check(blocks: &Blocks) -> Result<(), TooLong> {
    let groups = MAX_CHUNKS / blocks.schema().columns().len().max(1) as u64;
    let rows = groups * blocks.records() as u64;
    if blocks.rows() <= rows {
        Ok(())
    } else {
        Err(TooLong(rows))
    }
}

/// Writes a table as Parquet, with the types that its schema gives its columns.
///
/// # Errors
/// An error of the output.
pub fn write(output: impl Write + Send, schema: &Schema, blocks: &Blocks) -> io::Result<()> {
    let columns = OutputColumn::all(schema);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_created_by("fhaim".to_owned());
    let properties = with_dictionaries(properties, &columns).build();
    let kind = table_type(&columns).map_err(plain)?;
    let file = SerializedFileWriter::new(output, kind, Arc::new(properties));
    let mut file = file.map_err(plain)?;
    // Values take many times the memory of a block's codes, so only one block has them at a time.
    let written = blocks.each(Ok, |block| {
        let chunks = chunks(schema, &columns, block).map_err(plain)?;
        Ok(write_group(&mut file, &chunks).map_err(plain)?)
    });
    written.map_err(Failed::into_io)?;
    file.close().map_err(plain)?;
    Ok(())
}

/// Extracts the I/O error from an error of the Parquet writer.
fn plain(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

/// The values of a block's columns.
fn chunks<'a>(
    schema: &Schema,
    columns: &[OutputColumn<'a>],
    mut block: Block,
) -> Result<Vec<Chunk<'a>>, ParquetError> {
    let mut chunks: Vec<Chunk<'a>> = columns.iter().copied().map(Chunk::new).collect();
    let mut values = Vec::with_capacity(chunks.len());
    // Row by row, so that random values equal those of the CSV with the same seed.
    for row in 0..block.table.records() {
        let code = |attribute: usize| block.table.column(attribute)[row];
        schema.values(
            &code,
            block.first + row as u64,
            &mut block.values,
            &mut values,
        );
        for (chunk, value) in chunks.iter_mut().zip(&values) {
            chunk.push(value)?;
        }
    }
    Ok(chunks)
}
