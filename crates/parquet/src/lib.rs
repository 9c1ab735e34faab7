#![doc = include_str!("../README.md")]

mod columns;

use std::{
    io::{self, Write},
    sync::Arc,
};

use fhaim_domain::Schema;
use fhaim_synth::{Block, Blocks};
use parquet::{
    basic::Compression,
    errors::ParquetError,
    file::{
        properties::{EnabledStatistics, WriterProperties},
        writer::SerializedFileWriter,
    },
};

use self::columns::{Chunk, OutputColumn, table_type, with_dictionaries, write_group};

/// Reason why a table cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The records cannot be drawn.
    #[error(transparent)]
    Draw(#[from] fhaim_synth::Error),
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// A value is not of its column's type, which a valid schema excludes.
    #[error("a value does not fit the type of its column in Parquet: {0}")]
    Value(ParquetError),
}

impl From<ParquetError> for Error {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(error) => Self::Write(*error),
                Err(other) => Self::Write(io::Error::other(other)),
            },
            other => Self::Value(other),
        }
    }
}

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

/// Draws a table and writes it as Parquet, with the types that its schema gives its columns. Passes each block to
/// `take` before it is written.
///
/// # Errors
/// [`Error`]; the errors of `take`.
pub fn write(
    output: impl Write + Send,
    blocks: &Blocks,
    mut take: impl FnMut(&Block) -> Result<(), Error>,
) -> Result<(), Error> {
    let schema = blocks.schema();
    let columns = OutputColumn::all(schema);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_created_by("fhaim".to_owned());
    let properties = with_dictionaries(properties, &columns).build();
    let kind = table_type(&columns)?;
    let mut file = SerializedFileWriter::new(output, kind, Arc::new(properties))?;
    // Values take many times the memory of a block's codes, so only one block has them at a time.
    blocks.each(Ok, |block| {
        take(&block)?;
        let chunks = chunks(schema, &columns, block)?;
        Ok::<_, Error>(write_group(&mut file, &chunks)?)
    })?;
    file.close()?;
    Ok(())
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
