//! Values of a column, a few at a time.

use std::{fs::File, sync::Arc};

use parquet::{
    column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader},
    data_type::{ByteArray, DataType, FixedLenByteArray, Int96},
    errors::ParquetError,
    file::{metadata::RowGroupMetaData, serialized_reader::SerializedPageReader},
};

use super::columns::Column;
use crate::typed::{TypedCell, ValueForm};

/// Maximum number of bytes of a decimal number or UUID.
const MAX_NUMBER_BYTES: usize = 64;

/// Julian day of 1970-01-01.
const JULIAN_DAY: i128 = 2_440_588;

const NANOS_OF_DAY: i128 = 86_400_000_000_000;

/// Reads the values of a column in a row group.
pub(super) struct Values {
    reader: ColumnReader,
    is_unsigned: bool,
    /// Whether each record has a value; empty if all have one.
    levels: Vec<i16>,
    batch: Batch,
    /// Record and value that are next.
    record: usize,
    value: usize,
}

/// Values without the missing ones.
enum Batch {
    Flags(Vec<bool>),
    Integers(Vec<i128>),
    Singles(Vec<f32>),
    Doubles(Vec<f64>),
    Bytes(Vec<ByteArray>),
}

impl Values {
    pub(super) fn open(
        file: &Arc<File>,
        group: &RowGroupMetaData,
        column: &Column,
    ) -> Result<Self, ParquetError> {
        let chunk = group.columns().get(column.leaf).ok_or_else(shorter)?;
        let rows = usize::try_from(group.num_rows())?;
        let pages = SerializedPageReader::new(file.clone(), chunk, rows, None)?;
        Ok(Self {
            reader: get_column_reader(chunk.column_descr_ptr(), Box::new(pages)),
            is_unsigned: column.is_unsigned,
            levels: Vec::new(),
            batch: Batch::Flags(Vec::new()),
            record: 0,
            value: 0,
        })
    }

    /// Reads the next `records` records.
    ///
    /// # Errors
    /// A damaged file, or one that has fewer.
    pub(super) fn advance(&mut self, records: usize, form: &ValueForm) -> Result<(), ParquetError> {
        (self.record, self.value) = (0, 0);
        self.levels.clear();
        let levels = &mut self.levels;
        let is_unsigned = self.is_unsigned;
        self.batch = match &mut self.reader {
            ColumnReader::BoolColumnReader(reader) => Batch::Flags(read(reader, records, levels)?),
            ColumnReader::Int32ColumnReader(reader) => {
                let all = read(reader, records, levels)?.into_iter();
                Batch::Integers(all.map(|number| widened(number, is_unsigned)).collect())
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let all = read(reader, records, levels)?.into_iter();
                let wide = |number: i64| match is_unsigned {
                    true => i128::from(number.cast_unsigned()),
                    false => number.into(),
                };
                Batch::Integers(all.map(wide).collect())
            }
            ColumnReader::Int96ColumnReader(reader) => {
                let all = read(reader, records, levels)?;
                Batch::Integers(all.iter().map(nanos).collect())
            }
            ColumnReader::FloatColumnReader(reader) => {
                Batch::Singles(read(reader, records, levels)?)
            }
            ColumnReader::DoubleColumnReader(reader) => {
                Batch::Doubles(read(reader, records, levels)?)
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                Batch::Bytes(read(reader, records, levels)?)
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                let all: Vec<FixedLenByteArray> = read(reader, records, levels)?;
                Batch::Bytes(all.into_iter().map(ByteArray::from).collect())
            }
        };
        self.check(form)
    }

    /// Rejects numbers that are too long to be converted.
    fn check(&self, form: &ValueForm) -> Result<(), ParquetError> {
        match (&self.batch, form) {
            (Batch::Bytes(all), ValueForm::Decimal(_))
                if all.iter().any(|bytes| bytes.len() > MAX_NUMBER_BYTES) =>
            {
                Err(ParquetError::General(
                    "a decimal number is too long".to_owned(),
                ))
            }
            _ => Ok(()),
        }
    }

    /// Returns the value of the next record that [`Values::advance`] has read.
    pub(super) fn next(&mut self) -> TypedCell<'_> {
        let is_present = self.levels.get(self.record).is_none_or(|&level| level > 0);
        self.record += 1;
        if !is_present {
            return TypedCell::Missing;
        }
        let index = self.value;
        self.value += 1;
        let cell = match &self.batch {
            Batch::Flags(all) => all.get(index).copied().map(TypedCell::Flag),
            Batch::Integers(all) => all.get(index).copied().map(TypedCell::Integer),
            Batch::Singles(all) => all.get(index).copied().map(TypedCell::Single),
            Batch::Doubles(all) => all.get(index).copied().map(TypedCell::Double),
            Batch::Bytes(all) => all.get(index).map(|bytes| TypedCell::Bytes(bytes.data())),
        };
        cell.unwrap_or(TypedCell::Missing)
    }
}

/// Reads the next values, without the missing ones.
fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    records: usize,
    levels: &mut Vec<i16>,
) -> Result<Vec<T::T>, ParquetError> {
    let mut values = Vec::new();
    let (read, _, _) = reader.read_records(records, Some(levels), None, &mut values)?;
    if read == records {
        Ok(values)
    } else {
        Err(shorter())
    }
}

fn shorter() -> ParquetError {
    ParquetError::General("a column has fewer values than the table has records".to_owned())
}

fn widened(number: i32, is_unsigned: bool) -> i128 {
    match is_unsigned {
        true => number.cast_unsigned().into(),
        false => number.into(),
    }
}

/// Converts the oldest form of moments, a Julian day and the nanoseconds of the day, to nanoseconds since 1970.
fn nanos(moment: &Int96) -> i128 {
    let &[low, high, day] = moment.data() else {
        return 0;
    };
    let day = i128::from(day) - JULIAN_DAY;
    day * NANOS_OF_DAY + i128::from(u64::from(high) << 32 | u64::from(low))
}
