//! The columns of a Parquet file: how each is written as text, or why it is left out.

use parquet::{
    basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical},
    file::metadata::FileMetaData,
    schema::types::{ColumnDescriptor, Type},
};

use super::arrow::{self, ArrowType};
use crate::{
    left_out::{LeftOut, is_unnamed_index},
    typed::{Clock, ValueForm, Zone},
};

/// Key of pandas' description of a table in a file's metadata.
const PANDAS: &str = "pandas";

/// Maximum number of digits of a decimal number.
const MAX_PRECISION: i32 = 76;

/// A column that is read.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// Index among the file's leaf columns.
    pub(super) leaf: usize,
    pub(super) form: ValueForm,
    /// Whether integers have no sign.
    pub(super) is_unsigned: bool,
}

/// The columns of a file.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) read: Vec<Column>,
    pub(super) left_out: Vec<LeftOut>,
    /// Columns with the names of unknown time zones.
    pub(super) unknown_zones: Vec<(String, String)>,
}

impl Columns {
    pub(super) fn of(file: &FileMetaData) -> Self {
        let entry = |key: &str| {
            let mut entries = file.key_value_metadata()?.iter();
            entries.find(|entry| entry.key == key)?.value.as_deref()
        };
        let schema = file.schema_descr();
        let fields = schema.root_schema().get_fields();
        let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
        let types = arrow::types(entry(arrow::KEY).unwrap_or_default(), &names);
        let pandas = entry(PANDAS);
        let mut columns = Self::default();
        let mut leaf = 0;
        for (field, arrow) in fields.iter().zip(types) {
            let descriptor = schema.columns().get(leaf);
            let name = field.name();
            match descriptor.filter(|_| field.is_primitive()) {
                _ if is_unnamed_index(name, pandas) => columns.left_out.push(LeftOut::index(name)),
                Some(descriptor) => columns.add(name, leaf, descriptor, &arrow),
                None => columns.left_out.push(LeftOut::new(name, group(field))),
            }
            leaf += leaves(field);
        }
        columns
    }

    fn add(&mut self, name: &str, leaf: usize, descriptor: &ColumnDescriptor, arrow: &ArrowType) {
        if let (ArrowType::Timestamp(zone), true) = (arrow, is_adjusted(descriptor))
            && Zone::of(zone).is_none()
        {
            self.unknown_zones.push((name.to_owned(), zone.clone()));
        }
        match form(descriptor, arrow) {
            Ok(form) => self.read.push(Column {
                name: name.to_owned(),
                leaf,
                form,
                is_unsigned: is_unsigned(descriptor),
            }),
            Err(holds) => self.left_out.push(LeftOut::new(name, holds)),
        }
    }
}

/// Returns the number of leaf columns of a field.
fn leaves(field: &Type) -> usize {
    if field.is_primitive() {
        return 1;
    }
    field.get_fields().iter().map(|field| leaves(field)).sum()
}

/// Describes the values of a field that has fields.
fn group(field: &Type) -> &'static str {
    let info = field.get_basic_info();
    match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::List), _) | (_, ConvertedType::LIST) => "lists",
        (Some(LogicalType::Map), _) | (_, ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE) => {
            "maps"
        }
        (Some(LogicalType::Variant(_)), _) => "values of any type",
        _ => "records",
    }
}

/// Returns how a column is written, or a description of its values if its type is not supported.
fn form(column: &ColumnDescriptor, arrow: &ArrowType) -> Result<ValueForm, &'static str> {
    if column.max_rep_level() > 0 {
        return Err("lists");
    }
    let length = column.type_length();
    match (column.physical_type(), column.logical_type_ref()) {
        (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid)) if length == 16 => {
            Ok(ValueForm::Uuid)
        }
        (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Float16)) if length == 2 => {
            Ok(ValueForm::Half)
        }
        (Physical::INT64, Some(LogicalType::Timestamp(kind))) => Ok(ValueForm::Moment(
            clock(kind.unit),
            kind.is_adjusted_to_u_t_c.then(|| zone(arrow)),
        )),
        (Physical::INT32 | Physical::INT64, Some(LogicalType::Time(kind))) => {
            Ok(ValueForm::TimeOfDay(clock(kind.unit)))
        }
        (_, Some(LogicalType::Geometry(_) | LogicalType::Geography(_))) => Err("shapes"),
        (physical, _) => older_form(column, physical, arrow),
    }
}

/// Returns how a column is written that has a type of the format's first versions.
fn older_form(
    column: &ColumnDescriptor,
    physical: Physical,
    arrow: &ArrowType,
) -> Result<ValueForm, &'static str> {
    use ConvertedType as C;
    match (physical, column.converted_type()) {
        (_, C::DECIMAL) => decimal(column),
        (Physical::INT32, C::DATE) => Ok(ValueForm::Date),
        (Physical::INT32, C::TIME_MILLIS) => Ok(ValueForm::TimeOfDay(Clock::new(1_000))),
        (Physical::INT64, C::TIME_MICROS) => Ok(ValueForm::TimeOfDay(Clock::new(1_000_000))),
        // These do not state whether they are in universal time. Arrow takes them for local times.
        (Physical::INT64, C::TIMESTAMP_MILLIS) => Ok(ValueForm::Moment(Clock::new(1_000), None)),
        (Physical::INT64, C::TIMESTAMP_MICROS) => {
            Ok(ValueForm::Moment(Clock::new(1_000_000), None))
        }
        (Physical::INT96, _) => Ok(ValueForm::Moment(Clock::new(1_000_000_000), None)),
        (Physical::INT64, C::NONE) => Ok(match arrow {
            ArrowType::Duration(per_second) => ValueForm::Duration(Clock::new(*per_second)),
            ArrowType::DateInMillis => ValueForm::Moment(Clock::new(1_000), None),
            _ => ValueForm::Plain,
        }),
        (Physical::INT32 | Physical::INT64, _)
        | (Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE, _)
        | (Physical::BYTE_ARRAY, C::UTF8 | C::ENUM | C::JSON) => Ok(ValueForm::Plain),
        (Physical::FIXED_LEN_BYTE_ARRAY, C::INTERVAL) => Err("intervals"),
        (Physical::BYTE_ARRAY, C::BSON) => Err("BSON documents"),
        (Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY, _) => Err("bytes"),
    }
}

fn decimal(column: &ColumnDescriptor) -> Result<ValueForm, &'static str> {
    let (scale, precision) = (column.type_scale(), column.type_precision());
    let is_number = !matches!(
        column.physical_type(),
        Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE | Physical::INT96
    );
    match u32::try_from(scale) {
        Ok(decimals) if is_number && scale <= precision && precision <= MAX_PRECISION => {
            Ok(ValueForm::Decimal(decimals))
        }
        _ => Err("decimal numbers of more than 76 digits"),
    }
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    use ConvertedType as C;
    let is_unsigned = matches!(
        column.logical_type_ref(),
        Some(LogicalType::Integer(kind)) if !kind.is_signed
    );
    is_unsigned
        || matches!(
            column.converted_type(),
            C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64
        )
}

/// Whether a column has moments in universal time.
fn is_adjusted(column: &ColumnDescriptor) -> bool {
    matches!(
        column.logical_type_ref(),
        Some(LogicalType::Timestamp(kind)) if kind.is_adjusted_to_u_t_c
    )
}

/// Returns the zone that moments in universal time are shown in.
fn zone(arrow: &ArrowType) -> Zone {
    match arrow {
        ArrowType::Timestamp(zone) => Zone::of(zone).unwrap_or(Zone::Utc),
        _ => Zone::Utc,
    }
}

fn clock(unit: TimeUnit) -> Clock {
    Clock::new(match unit {
        TimeUnit::MILLIS => 1_000,
        TimeUnit::MICROS => 1_000_000,
        TimeUnit::NANOS => 1_000_000_000,
    })
}
