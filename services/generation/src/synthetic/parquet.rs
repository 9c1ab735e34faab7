//! Synthetic tables as Parquet. Each block of records is one row group.

use fhaim_domain::{Field, Output, Schema, Value};
use fhaim_synth::{Block, Blocks};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::io::{self, Write};
use std::sync::Arc;

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

/// Writes a table as Parquet.
///
/// # Errors
/// An error of the output.
pub fn write(output: impl Write + Send, schema: &Schema, blocks: &Blocks) -> io::Result<()> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_created_by("fhaim".to_owned())
        .build();
    let kind = file_type(schema).map_err(plain)?;
    let file = SerializedFileWriter::new(output, kind, Arc::new(properties));
    let mut file = file.map_err(plain)?;
    // Values take many times the memory of a block's codes, so only one block has them at a time.
    let written = blocks.each(Ok, |block| {
        let group = write_group(&mut file, schema, &chunks(schema, block));
        Ok(group.map_err(plain)?)
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

fn file_type(schema: &Schema) -> Result<TypePtr, ParquetError> {
    let columns = written(schema).map(|field| {
        let (physical, logical) = match field.output(schema.columns()) {
            Output::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Output::Integer => (Physical::INT64, None),
            Output::Number => (Physical::DOUBLE, None),
        };
        let repetition = if field.nullable() {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        let column = Type::primitive_type_builder(field.name(), physical)
            .with_logical_type(logical)
            .with_repetition(repetition);
        column.build().map(Arc::new)
    });
    let columns = columns.collect::<Result<_, _>>()?;
    let table = Type::group_type_builder("schema").with_fields(columns);
    table.build().map(Arc::new)
}

/// Returns the fields that a table contains.
fn written(schema: &Schema) -> impl Iterator<Item = &Field> {
    schema.fields().iter().filter(|field| field.is_written())
}

/// The values of one column of a block.
enum Values {
    Texts(Vec<ByteArray>),
    Integers(Vec<i64>),
    Doubles(Vec<f64>),
}

struct Chunk {
    values: Values,
    /// For each record, 1 if it has a value; empty in a column that is not nullable.
    present: Vec<i16>,
}

impl Chunk {
    fn new(field: &Field, schema: &Schema) -> Self {
        let values = match field.output(schema.columns()) {
            Output::Text => Values::Texts(Vec::new()),
            Output::Integer => Values::Integers(Vec::new()),
            Output::Number => Values::Doubles(Vec::new()),
        };
        Self {
            values,
            present: Vec::new(),
        }
    }

    fn push(&mut self, value: Value<'_>) {
        self.present.push(i16::from(value != Value::Null));
        if value == Value::Null {
            return;
        }
        match &mut self.values {
            Values::Texts(texts) => texts.push(ByteArray::from(value.to_string().as_str())),
            // Exact: the column holds integers.
            Values::Integers(integers) => integers.extend(value.number().map(|n| n as i64)),
            Values::Doubles(doubles) => doubles.extend(value.number()),
        }
    }

    fn write(
        &self,
        mut column: SerializedColumnWriter<'_>,
        nullable: bool,
    ) -> Result<(), ParquetError> {
        let present = nullable.then_some(self.present.as_slice());
        match &self.values {
            Values::Texts(texts) => {
                let writer = column.typed::<ByteArrayType>();
                writer.write_batch(texts, present, None)?;
            }
            Values::Integers(integers) => {
                column
                    .typed::<Int64Type>()
                    .write_batch(integers, present, None)?;
            }
            Values::Doubles(doubles) => {
                column
                    .typed::<DoubleType>()
                    .write_batch(doubles, present, None)?;
            }
        }
        column.close()
    }
}

/// The values of a block's columns.
fn chunks(schema: &Schema, mut block: Block) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = written(schema)
        .map(|field| Chunk::new(field, schema))
        .collect();
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
        for (chunk, &value) in chunks.iter_mut().zip(&values) {
            chunk.push(value);
        }
    }
    chunks
}

fn write_group(
    file: &mut SerializedFileWriter<impl Write + Send>,
    schema: &Schema,
    chunks: &[Chunk],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for (chunk, field) in chunks.iter().zip(written(schema)) {
        let Some(writer) = group.next_column()? else {
            return Err(ParquetError::General("a column is missing".to_owned()));
        };
        chunk.write(writer, field.nullable())?;
    }
    group.close()?;
    Ok(())
}
