//! Columns of typed tables that are left out, because their values have no text or no meaning.

use fhaim_domain::Schema;
use serde_json::Value;

use crate::{Error, data::Data};

/// Content of a column that is an index of pandas and no column of the table.
const INDEX: &str = "pandas' index without a name";

/// A column that is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Name of the column.
    pub column: String,
    /// What the column holds, such as `lists`.
    pub holds: &'static str,
}

impl LeftOut {
    /// Creates a column that holds `holds`.
    pub fn new(column: &str, holds: &'static str) -> Self {
        Self {
            column: column.to_owned(),
            holds,
        }
    }

    /// Creates an index of pandas without a name.
    pub fn index(column: &str) -> Self {
        Self::new(column, INDEX)
    }
}

/// Describes for the holder which columns were left out, and why. `None` if all columns were read.
pub(crate) fn remark(left_out: &[LeftOut]) -> Option<String> {
    if left_out.is_empty() {
        return None;
    }
    let are_all_indexes = left_out.iter().all(|column| column.holds == INDEX);
    let reason = match are_all_indexes {
        true => "",
        false => "; only numbers, texts, booleans, dates, times and durations are read",
    };
    Some(format!("left out {}{reason}", listed(left_out)))
}

/// Lists columns with their content: `"codes" (lists), "raw" (bytes)`.
pub(crate) fn listed(left_out: &[LeftOut]) -> String {
    let columns = left_out
        .iter()
        .map(|column| format!("{:?} ({})", column.column, column.holds));
    columns.collect::<Vec<_>>().join(", ")
}

/// Rejects a schema that has a column which is left out of the table.
///
/// # Errors
/// [`Error::Content`] with all such columns; the errors of opening the table.
pub fn refuse_left_out(data: &Data, schema: &Schema) -> Result<(), Error> {
    let mut left_out = data.left_out()?;
    left_out.retain(|column| {
        let fields = schema.fields().iter();
        let mut read = fields.filter(|field| field.is_written() && !field.is_identifier());
        read.any(|field| field.name() == column.column)
    });
    if left_out.is_empty() {
        return Ok(());
    }
    let problem = format!(
        "the schema has columns that cannot be read from this table: {}. Convert them to numbers, texts, booleans, \
         dates, times or durations, or give them the kind \"left-out\" in the schema",
        listed(&left_out)
    );
    Err(Error::Content {
        path: data.name().into(),
        problem,
    })
}

/// Whether a column is an index of pandas without a name, by its own name or by `metadata`, the entry `pandas` in the
/// metadata of the table's schema.
pub fn is_unnamed_index(column: &str, metadata: Option<&str>) -> bool {
    if is_reserved(column) {
        return true;
    }
    let metadata: Option<Value> = metadata.and_then(|text| serde_json::from_str(text).ok());
    let list = |key: &str| metadata.as_ref()?.get(key)?.as_array();
    let is_index =
        list("index_columns").is_some_and(|names| names.iter().any(|name| name == column));
    let has_no_name = |entry: &Value| {
        entry.get("field_name").is_some_and(|name| name == column)
            && entry.get("name").is_some_and(Value::is_null)
    };
    is_index && list("columns").is_some_and(|entries| entries.iter().any(has_no_name))
}

/// Whether pandas gives this name to an index without one: `__index_level_0__`. Programs that write the table again
/// keep the name, but not the metadata.
fn is_reserved(column: &str) -> bool {
    let level = column.strip_prefix("__index_level_");
    let level = level.and_then(|rest| rest.strip_suffix("__"));
    level.is_some_and(|level| !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_is_recognised_by_its_name_or_by_metadata() {
        let metadata = r#"{"index_columns": ["patient", "idx", {"kind": "range", "name": null}], "columns": [
            {"name": "patient", "field_name": "patient"}, {"name": null, "field_name": "idx"},
            {"name": null, "field_name": "ward"}]}"#;
        for (column, metadata, is_unnamed) in [
            ("__index_level_0__", None, true),
            ("__index_level_12__", Some(metadata), true),
            ("__index_level___", None, false),
            ("__index_level_x__", None, false),
            ("idx", Some(metadata), true),
            ("idx", None, false),
            ("patient", Some(metadata), false),
            ("ward", Some(metadata), false),
            ("idx", Some("no JSON"), false),
            ("idx", Some("[]"), false),
        ] {
            assert_eq!(is_unnamed_index(column, metadata), is_unnamed, "{column}");
        }
    }
}
