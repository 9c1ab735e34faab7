//! Columns of a Parquet table: their types, and the values of one row group.

use fhaim_domain::{Field, Output, Scalar, Schema, TickUnit, Value};
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesBuilder;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use std::io::Write;
use std::sync::Arc;

/// Digits of a decimal number that fit into 64 bits.
const PRECISION: i32 = 18;

/// A column of the table.
#[derive(Clone, Copy, Debug)]
pub struct OutputColumn<'a> {
    field: &'a Field,
    /// The field that defines the type of the values. It differs from `field` in a column that repeats another one.
    value_field: &'a Field,
    output: Output,
}

impl<'a> OutputColumn<'a> {
    /// Returns the columns of tables with this schema.
    pub fn all(schema: &'a Schema) -> Vec<Self> {
        let written = schema.fields().iter().filter(|field| field.is_written());
        let column = |field: &'a Field| {
            let value_field = schema.value_field(field);
            Self {
                field,
                value_field,
                output: value_field.output(schema.columns()),
            }
        };
        written.map(column).collect()
    }

    fn kind(&self) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = types(self.output);
        let repetition = match self.field.nullable() {
            true => Repetition::OPTIONAL,
            false => Repetition::REQUIRED,
        };
        let mut kind = Type::primitive_type_builder(self.field.name(), physical)
            .with_logical_type(logical)
            .with_repetition(repetition);
        if let Output::Decimal(decimals) = self.output {
            let scale = i32::try_from(decimals).unwrap_or(PRECISION);
            kind = kind.with_precision(PRECISION).with_scale(scale);
        }
        kind.build().map(Arc::new)
    }
}

/// Returns the type of the table.
///
/// # Errors
/// None with the columns of a valid schema.
pub fn table_type(columns: &[OutputColumn<'_>]) -> Result<TypePtr, ParquetError> {
    let kinds = columns.iter().map(OutputColumn::kind);
    let kinds = kinds.collect::<Result<_, _>>()?;
    let table = Type::group_type_builder("schema").with_fields(kinds);
    table.build().map(Arc::new)
}

/// Writes columns with a dictionary of their values, except texts such as identifiers, which are different in each
/// record.
pub fn with_dictionaries(
    properties: WriterPropertiesBuilder,
    columns: &[OutputColumn<'_>],
) -> WriterPropertiesBuilder {
    let texts = columns
        .iter()
        .filter(|column| column.output == Output::Text);
    texts.fold(properties, |properties, column| {
        let path = ColumnPath::from(column.field.name());
        properties.set_column_dictionary_enabled(path, false)
    })
}

/// Returns the types of a column in the file.
fn types(output: Output) -> (Physical, Option<LogicalType>) {
    match output {
        // Parquet has no type for durations.
        Output::Text | Output::Category | Output::Duration(_) => {
            (Physical::BYTE_ARRAY, Some(LogicalType::String))
        }
        Output::Flag => (Physical::BOOLEAN, None),
        Output::Integer => (Physical::INT64, None),
        Output::Decimal(decimals) => {
            let scale = i32::try_from(decimals).unwrap_or(PRECISION);
            let logical = LogicalType::decimal(scale, PRECISION);
            (Physical::INT64, Some(logical))
        }
        Output::Number => (Physical::DOUBLE, None),
        Output::Date => (Physical::INT32, Some(LogicalType::Date)),
        Output::TimeOfDay(unit) => {
            let physical = match unit {
                TickUnit::Millisecond => Physical::INT32,
                TickUnit::Microsecond | TickUnit::Nanosecond => Physical::INT64,
            };
            let logical = LogicalType::time(false, time_unit(unit));
            (physical, Some(logical))
        }
        Output::Timestamp { unit, is_utc } => {
            let logical = LogicalType::timestamp(is_utc, time_unit(unit));
            (Physical::INT64, Some(logical))
        }
    }
}

fn time_unit(unit: TickUnit) -> TimeUnit {
    match unit {
        TickUnit::Millisecond => TimeUnit::MILLIS,
        TickUnit::Microsecond => TimeUnit::MICROS,
        TickUnit::Nanosecond => TimeUnit::NANOS,
    }
}

/// The values of a column, without the missing ones.
enum Values {
    Texts(Vec<ByteArray>),
    Flags(Vec<bool>),
    SmallIntegers(Vec<i32>),
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
}

/// The values of a column in a row group.
pub struct Chunk<'a> {
    column: OutputColumn<'a>,
    values: Values,
    /// For each record, 1 if it has a value.
    present: Vec<i16>,
}

impl<'a> Chunk<'a> {
    /// Creates an empty chunk.
    pub fn new(column: OutputColumn<'a>) -> Self {
        let values = match types(column.output).0 {
            Physical::BOOLEAN => Values::Flags(Vec::new()),
            Physical::INT32 => Values::SmallIntegers(Vec::new()),
            Physical::INT64 => Values::Integers(Vec::new()),
            Physical::DOUBLE => Values::Numbers(Vec::new()),
            _ => Values::Texts(Vec::new()),
        };
        Self {
            column,
            values,
            present: Vec::new(),
        }
    }

    /// Adds the value of the next record.
    ///
    /// # Errors
    /// The value is not of the column's type, which a valid schema excludes.
    pub fn push(&mut self, value: &Value<'_>) -> Result<(), ParquetError> {
        self.present.push(i16::from(*value != Value::Null));
        if *value == Value::Null {
            return Ok(());
        }
        match (
            &mut self.values,
            self.column.value_field.scalar(self.column.output, value),
        ) {
            (Values::Texts(texts), _) => texts.push(match value {
                Value::Category(text) => ByteArray::from(*text),
                other => ByteArray::from(other.to_string().as_str()),
            }),
            (Values::Flags(flags), Some(Scalar::Flag(flag))) => flags.push(flag),
            (Values::SmallIntegers(integers), Some(Scalar::Integer(integer))) => {
                integers.push(i32::try_from(integer)?);
            }
            (Values::Integers(integers), Some(Scalar::Integer(integer))) => integers.push(integer),
            (Values::Numbers(numbers), Some(Scalar::Number(number))) => numbers.push(number),
            _ => {
                let name = self.column.field.name();
                let problem = format!("column {name:?} has a value of another type");
                return Err(ParquetError::General(problem));
            }
        }
        Ok(())
    }

    /// Writes the chunk as the next one of a row group.
    fn write<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        match &self.values {
            Values::Texts(texts) => self.write_as::<ByteArrayType, W>(group, texts),
            Values::Flags(flags) => self.write_as::<BoolType, W>(group, flags),
            Values::SmallIntegers(integers) => self.write_as::<Int32Type, W>(group, integers),
            Values::Integers(integers) => self.write_as::<Int64Type, W>(group, integers),
            Values::Numbers(numbers) => self.write_as::<DoubleType, W>(group, numbers),
        }
    }

    fn write_as<T: DataType, W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        values: &[T::T],
    ) -> Result<(), ParquetError> {
        let Some(mut column) = group.next_column()? else {
            return Err(ParquetError::General("a column is missing".to_owned()));
        };
        let present = self
            .column
            .field
            .nullable()
            .then_some(self.present.as_slice());
        column.typed::<T>().write_batch(values, present, None)?;
        column.close()
    }
}

/// Writes chunks of all columns as a row group.
///
/// # Errors
/// An error of the output.
pub fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    chunks: &[Chunk<'_>],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for chunk in chunks {
        chunk.write(&mut group)?;
    }
    group.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::{ReadOptions, Table, read_csv};
    use parquet::file::properties::WriterProperties;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Row;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    const SCHEMA: &str = r#"{"name": "t", "columns": [
        {"name": "id", "kind": "identifier", "pattern": "P[0-9]{3}"},
        {"name": "sick", "kind": "categorical", "categories": ["false", "true"], "nullable": true},
        {"name": "ward", "kind": "categorical", "categories": ["north", "south"]},
        {"name": "code", "kind": "code", "codes": ["A00", "A01", "B20"], "prefix": 1},
        {"name": "age", "kind": "number", "integer": true, "min": 0, "max": 99, "bins": 10, "digits": 10},
        {"name": "weight", "kind": "number", "decimals": 1, "min": 30, "max": 200, "bins": 10, "digits": 1024},
        {"name": "cost", "kind": "number", "decimals": 2, "trailing_zeros": true, "decimal_comma": true,
         "min": 0, "max": 9.99, "bins": 1, "digits": 1000},
        {"name": "born", "kind": "date", "format": "%d.%m.%Y", "min": "2024-01-01", "max": "2024-01-31",
         "bins": 1, "digits": 31, "nullable": true},
        {"name": "seen", "kind": "datetime", "format": "%Y-%m-%dT%H:00:00Z", "unit": "hour",
         "min": "2024-01-01", "max": "2024-01-31", "bins": 1, "digits": 31},
        {"name": "bed", "kind": "time", "format": "%H:%M", "min": "20:00", "max": "23:00", "bins": 1, "digits": 181},
        {"name": "stay", "kind": "duration", "format": "%-H:%M", "min": "36:00", "max": "40:00", "bins": 1,
         "digits": 241},
        {"name": "level", "kind": "number", "decimals": 1, "min": 0, "max": 9, "bins": 1, "digits": 91,
         "special": ["<0.5"]},
        {"name": "again", "kind": "derived", "from": "born", "nullable": true},
        {"name": "well", "kind": "derived", "from": "ward", "values": {"north": "True", "south": ""}, "nullable": true}]}"#;

    const CSV: &str = "id,sick,ward,code,age,weight,cost,born,seen,bed,stay,level,again,well\n\
        P007,true,north,A01,47,70.5,\"7,50\",31.01.2024,2024-01-02T07:00:00Z,22:15,36:05,<0.5,31.01.2024,True\n\
        P008,,south,B20,5,61,\"0,05\",,2024-01-31T23:00:00Z,20:00,36:01,1.5,,\n";

    fn table() -> Table {
        let schema = Schema::from_json("t.json", SCHEMA.as_bytes()).unwrap();
        let options = ReadOptions::new("t.csv");
        read_csv(schema, CSV.as_bytes(), &options).unwrap().table
    }

    /// Writes a table in one row group.
    fn written(table: &Table) -> Vec<u8> {
        let schema = table.schema();
        let columns = OutputColumn::all(schema);
        let mut chunks: Vec<Chunk<'_>> = columns.iter().copied().map(Chunk::new).collect();
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut values = Vec::new();
        for row in 0..table.records() {
            let code = |attribute: usize| table.column(attribute)[row];
            schema.values(&code, row as u64, &mut rng, &mut values);
            for (chunk, value) in chunks.iter_mut().zip(&values) {
                chunk.push(value).unwrap();
            }
        }
        let properties = with_dictionaries(WriterProperties::builder(), &columns).build();
        let kind = table_type(&columns).unwrap();
        let mut bytes = Vec::new();
        let mut file = SerializedFileWriter::new(&mut bytes, kind, Arc::new(properties)).unwrap();
        write_group(&mut file, &chunks).unwrap();
        file.close().unwrap();
        bytes
    }

    #[test]
    fn types_of_a_schema_are_kept() {
        let file = SerializedFileReader::new(bytes::Bytes::from(written(&table()))).unwrap();
        let schema = file.metadata().file_metadata().schema_descr_ptr();
        let types: Vec<String> = schema
            .columns()
            .iter()
            .map(|column| {
                let logical = column.logical_type_ref();
                let logical = logical.map_or(String::new(), |logical| format!(" {logical:?}"));
                format!("{} {}{logical}", column.name(), column.physical_type())
            })
            .collect();
        assert_eq!(
            types,
            [
                "id BYTE_ARRAY String",
                "sick BOOLEAN",
                "ward BYTE_ARRAY String",
                "code BYTE_ARRAY String",
                "age INT64",
                "weight DOUBLE",
                "cost INT64 Decimal(DecimalType { scale: 2, precision: 18 })",
                "born INT32 Date",
                "seen INT64 Timestamp(TimestampType { is_adjusted_to_u_t_c: true, unit: MILLIS })",
                "bed INT32 Time(TimestampType { is_adjusted_to_u_t_c: false, unit: MILLIS })",
                "stay BYTE_ARRAY String",
                "level BYTE_ARRAY String",
                "again INT32 Date",
                "well BOOLEAN",
            ]
        );
        let chunks = file.metadata().row_group(0).columns().iter();
        let has_dictionary = chunks.map(|chunk| chunk.dictionary_page_offset().is_some());
        // Booleans are bits, and have none.
        let without = ["id", "sick", "level", "well"];
        let columns = schema.columns().iter();
        let expected = columns.map(|column| !without.contains(&column.name()));
        assert!(has_dictionary.eq(expected));
    }

    #[test]
    fn values_are_those_of_the_table() {
        let file = SerializedFileReader::new(bytes::Bytes::from(written(&table()))).unwrap();
        let rows: Vec<Row> = file
            .get_row_iter(None)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let row = |index: usize| {
            let fields = rows[index].get_column_iter().skip(1);
            fields
                .map(|(_, field)| field.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            row(0),
            [
                "true",
                "\"north\"",
                "\"A01\"",
                "47",
                "70.5",
                "7.50",
                "2024-01-31",
                "2024-01-02 07:00:00.000 +00:00",
                "22:15:00.000",
                "\"36:05\"",
                "\"<0.5\"",
                "2024-01-31",
                "true"
            ]
        );
        assert_eq!(
            row(1),
            [
                "null",
                "\"south\"",
                "\"B20\"",
                "5",
                "61.0",
                "0.05",
                "null",
                "2024-01-31 23:00:00.000 +00:00",
                "20:00:00.000",
                "\"36:01\"",
                "\"1.5\"",
                "null",
                "null"
            ]
        );
    }

    #[test]
    fn value_of_another_type_is_an_error() {
        let table = table();
        let columns = OutputColumn::all(table.schema());
        let mut age = Chunk::new(columns[4]);
        assert_eq!(age.push(&Value::Category("old")).ok(), None);
    }
}
