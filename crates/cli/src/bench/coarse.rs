//! The published tables in fewer categories, as some of the published figures seem to have had
//! them.

use fhaim_domain::{Kind, ReadOptions, Schema, Table, read_csv};
use serde_json::{Value, json};
use std::path::Path;

use crate::{error::Error, input};

/// Bins that a numeric column has at most.
const BINS: u64 = 8;

/// Reads a table with at most [`BINS`] bins a column, without the categories that never occur, and
/// missing values as the first category. The domain then depends on the records: for
/// comparisons only.
pub fn read(schema: &Schema, path: &Path) -> Result<Table, Error> {
    let narrow = edited(schema, |_, column| {
        if let Some(bins) = column["bins"].as_u64() {
            column["bins"] = json!(bins.min(BINS));
        }
    })?;
    let options = ReadOptions::new(path.to_string_lossy());
    let table = read_csv(narrow, input::open(path)?, &options)?.table;
    let kept: Vec<Vec<u32>> = (0..table.columns().len())
        .map(|k| kept_codes(&table, k))
        .collect();
    let schema = edited(table.schema(), |k, column| {
        column["nullable"] = json!(false);
        if let Some(categories) = column["categories"].as_array_mut() {
            let mut code = 0..;
            categories.retain(|_| code.next().is_some_and(|code| kept[k].contains(&code)));
        }
    })?;
    let columns = table.columns().iter().zip(&kept);
    let recoded = columns.map(|(codes, kept)| {
        // A missing value's, the one code that occurs and is not kept, becomes the first.
        let recode = |code: &u32| kept.iter().position(|kept| kept == code).unwrap_or(0) as u32;
        codes.iter().map(recode).collect()
    });
    let table = Table::new(schema, recoded.collect());
    table.map_err(|error| Error::Usage(error.to_string()))
}

/// The codes of a column that stay, in order.
fn kept_codes(table: &Table, attribute: usize) -> Vec<u32> {
    let column = &table.schema().columns()[attribute];
    let values = (0..column.size() as u32).filter(|&v| Some(v) != column.null_code());
    match column.kind() {
        Kind::Numeric(_) | Kind::Part { .. } => values.collect(),
        Kind::Categorical { .. } => values
            .filter(|v| table.column(attribute).contains(v))
            .collect(),
    }
}

/// A schema with its columns' JSON edited.
fn edited(schema: &Schema, mut edit: impl FnMut(usize, &mut Value)) -> Result<Schema, Error> {
    let unreadable = |error: serde_json::Error| Error::Usage(error.to_string());
    let mut form: Value = serde_json::from_str(&schema.to_json()).map_err(unreadable)?;
    let columns = form["columns"].as_array_mut();
    for (k, column) in columns.into_iter().flatten().enumerate() {
        edit(k, column);
    }
    Ok(Schema::from_json(
        schema.name(),
        form.to_string().as_bytes(),
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_joined_and_what_never_occurs_is_left_out() {
        let schema = r#"{"name": "t", "columns": [
            {"name": "x", "kind": "numeric", "min": 0, "max": 20, "bins": 20},
            {"name": "y", "kind": "numeric", "min": 0, "max": 4, "bins": 4, "nullable": true},
            {"name": "z", "kind": "categorical", "categories": ["a", "b", "c"], "nullable": true}
        ]}"#;
        let schema = Schema::from_json("t", schema.as_bytes()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, "x,y,z\n0,3.5,c\n19.5,,b\n10,0.5,\n").unwrap();
        let table = read(&schema, &path).unwrap();
        assert_eq!(table.domain().sizes(), [8, 4, 2]);
        assert_eq!(table.column(0), [0, 7, 4]);
        // Numeric bins stay, occurring or not; a missing value is the first.
        assert_eq!(table.column(1), [3, 0, 0]);
        // "a" never occurs: "b" is the first.
        assert_eq!(table.column(2), [1, 0, 0]);
    }
}
