//! Tables as Parquet: a block of records is a row group.

use fhaim_domain::{Column, Kind, Schema, Value};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::io::{self, Write};
use std::sync::Arc;

use super::blocks::{Block, Blocks};

/// Upper bound on the column chunks of a file: its footer has an entry for each, in memory until the
/// end.
const MAX_CHUNKS: u64 = 1 << 18;

/// A table that does not fit a Parquet file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rows: a Parquet file of this table can have {0} at most; ask for CSV")]
pub struct TooLong(u64);

/// Whether a file of all blocks has a footer that fits in memory.
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

/// Writes a table.
///
/// # Errors
/// Those of the output.
pub fn write(output: impl Write + Send, schema: &Schema, blocks: Blocks) -> io::Result<()> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_created_by("fhaim".to_owned())
        .build();
    let kind = file_type(schema).map_err(plain)?;
    let file = SerializedFileWriter::new(output, kind, Arc::new(properties));
    let mut file = file.map_err(plain)?;
    for block in blocks {
        write_group(&mut file, schema, block?).map_err(plain)?;
    }
    file.close().map_err(plain)?;
    Ok(())
}

/// The input-output error within an error of the writer.
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
    let columns = schema.columns().iter().map(|column| {
        let (physical, logical) = match column.kind() {
            Kind::Categorical { .. } => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Numeric(binning) if binning.integer() => (Physical::INT64, None),
            Kind::Numeric(_) => (Physical::DOUBLE, None),
        };
        let repetition = if column.nullable() {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        let column = Type::primitive_type_builder(column.name(), physical)
            .with_logical_type(logical)
            .with_repetition(repetition);
        column.build().map(Arc::new)
    });
    let columns = columns.collect::<Result<_, _>>()?;
    let table = Type::group_type_builder("schema").with_fields(columns);
    table.build().map(Arc::new)
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
    /// Categories by code.
    categories: Vec<ByteArray>,
}

impl Chunk {
    fn new(column: &Column) -> Self {
        let mut categories = Vec::new();
        let values = match column.kind() {
            Kind::Categorical {
                categories: names, ..
            } => {
                categories.extend(names.iter().map(|name| ByteArray::from(name.as_str())));
                Values::Texts(Vec::new())
            }
            Kind::Numeric(binning) if binning.integer() => Values::Integers(Vec::new()),
            Kind::Numeric(_) => Values::Doubles(Vec::new()),
        };
        Self {
            values,
            present: Vec::new(),
            categories,
        }
    }

    fn push(&mut self, code: u32, value: Value<'_>) {
        match (&mut self.values, value) {
            (Values::Texts(texts), Value::Category(_)) => {
                texts.push(self.categories[code as usize].clone());
            }
            // Whole: the column holds integers.
            (Values::Integers(integers), Value::Number(number)) => integers.push(number as i64),
            (Values::Doubles(doubles), Value::Number(number)) => doubles.push(number),
            _ => {}
        }
        self.present.push(i16::from(value != Value::Null));
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

fn write_group(
    file: &mut SerializedFileWriter<impl Write + Send>,
    schema: &Schema,
    mut block: Block,
) -> Result<(), ParquetError> {
    let columns = schema.columns();
    let mut chunks: Vec<Chunk> = columns.iter().map(Chunk::new).collect();
    // Row by row, so that numbers are those of the CSV with the same seed.
    for row in 0..block.table.records() {
        for (attribute, column) in columns.iter().enumerate() {
            let code = block.table.column(attribute)[row];
            let value = column.decode(code, &mut block.values);
            chunks[attribute].push(code, value.unwrap_or(Value::Null));
        }
    }
    let mut group = file.next_row_group()?;
    for (chunk, column) in chunks.iter().zip(columns) {
        let Some(writer) = group.next_column()? else {
            return Err(ParquetError::General("a column is missing".to_owned()));
        };
        chunk.write(writer, column.nullable())?;
    }
    group.close()?;
    Ok(())
}
