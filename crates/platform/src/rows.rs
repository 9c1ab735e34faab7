//! Conversions between columns of rows and the types that they stand for.
//!
//! A column that cannot be read is damaged. The failure names the dataset that the request is about, so that its holders
//! and the operator know what to restore. In queries over several datasets, [`of_dataset`] names it.

use futures_util::{Stream, StreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row as _;
use std::error::Error;
use std::str::FromStr;
use uuid::Uuid;

use crate::store::{Row, StoreError};

fn damaged(column: &str, source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
    StoreError::ColumnDecode {
        index: column.to_owned(),
        source: source.into(),
    }
}

/// The damage of a row of a dataset, in a query over several datasets.
#[derive(Debug, thiserror::Error)]
#[error("dataset {dataset}: {what}")]
struct DamagedRow {
    dataset: Uuid,
    what: String,
}

/// Names the dataset of a row that cannot be read, for queries over several datasets.
///
/// # Errors
/// The given error, with the dataset if it is the damage of a row.
pub fn of_dataset<T>(dataset: Uuid, read: Result<T, StoreError>) -> Result<T, StoreError> {
    read.map_err(|error| match damage(&error) {
        Some(Damage {
            what,
            dataset: None,
        }) => StoreError::Decode(Box::new(DamagedRow { dataset, what })),
        _ => error,
    })
}

/// Data in a row that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The column, or the reason.
    pub what: String,
    /// The dataset, if [`of_dataset`] has named it.
    pub dataset: Option<Uuid>,
}

/// Returns the damage of a row, unless the error has another cause.
pub fn damage(error: &StoreError) -> Option<Damage> {
    match error {
        StoreError::ColumnDecode { index, .. } => Some(Damage {
            what: format!("column {index}"),
            dataset: None,
        }),
        StoreError::Decode(source) => Some(match source.downcast_ref::<DamagedRow>() {
            Some(row) => Damage {
                what: row.what.clone(),
                dataset: Some(row.dataset),
            },
            None => Damage {
                what: source.to_string(),
                dataset: None,
            },
        }),
        _ => None,
    }
}

/// The rows of a query that can be read.
#[derive(Default)]
pub struct Readable {
    /// The rows.
    pub rows: Vec<Row>,
    /// Number of the other rows.
    pub left_out: usize,
}

/// Collects the rows of a query that can be read. The others are logged, with the table's name.
///
/// # Errors
/// An error other than the damage of a row.
pub async fn readable(
    table: &'static str,
    rows: impl Stream<Item = Result<Row, StoreError>>,
) -> Result<Readable, StoreError> {
    let mut readable = Readable::default();
    let mut rows = std::pin::pin!(rows);
    while let Some(row) = rows.next().await {
        match row {
            Err(StoreError::Decode(error)) => {
                tracing::error!(table, %error, "a damaged row is left out");
                readable.left_out += 1;
            }
            row => readable.rows.push(row?),
        }
    }
    Ok(readable)
}

/// Returns the result of reading a row, or `None` if the row is damaged, which is logged.
///
/// # Errors
/// An error other than the damage of a row.
pub fn undamaged<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) if damage(&error).is_some() => {
            tracing::error!(%error, "a damaged row is left out of a list");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn unwritten(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
    StoreError::Encode(source.into())
}

/// Reads a value that is stored as text, such as an identifier or a digest.
///
/// # Errors
/// [`StoreError`] if the column does not exist or cannot be parsed.
pub fn parsed<T>(row: &Row, column: &str) -> Result<T, StoreError>
where
    T: FromStr<Err: Into<Box<dyn Error + Send + Sync>>>,
{
    let text: String = row.try_get(column)?;
    text.parse().map_err(|error| damaged(column, error))
}

/// Reads an optional value that is stored as text.
///
/// # Errors
/// The same as for [`parsed`].
pub fn some_parsed<T>(row: &Row, column: &str) -> Result<Option<T>, StoreError>
where
    T: FromStr<Err: Into<Box<dyn Error + Send + Sync>>>,
{
    let text: Option<String> = row.try_get(column)?;
    let parsed = text.map(|text| text.parse().map_err(|error| damaged(column, error)));
    parsed.transpose()
}

/// Reads a JSON value.
///
/// # Errors
/// The same as for [`parsed`].
pub fn json<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T, StoreError> {
    let text: String = row.try_get(column)?;
    serde_json::from_str(&text).map_err(|error| damaged(column, error))
}

/// Reads an optional JSON value.
///
/// # Errors
/// The same as for [`parsed`].
pub fn some_json<T: DeserializeOwned>(row: &Row, column: &str) -> Result<Option<T>, StoreError> {
    let text: Option<String> = row.try_get(column)?;
    let read = text.as_deref().map(serde_json::from_str).transpose();
    read.map_err(|error| damaged(column, error))
}

/// Reads a value by its name in JSON: a unit variant without quotes, or a number written as text.
///
/// # Errors
/// The same as for [`parsed`].
pub fn named<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T, StoreError> {
    let name: String = row.try_get(column)?;
    serde_json::from_value(name.into()).map_err(|error| damaged(column, error))
}

/// Reads a number into a smaller type.
///
/// # Errors
/// [`StoreError`] if the column does not exist or the number is out of range.
pub fn number<T>(row: &Row, column: &str) -> Result<T, StoreError>
where
    T: TryFrom<i64, Error: Into<Box<dyn Error + Send + Sync>>>,
{
    let number: i64 = row.try_get(column)?;
    T::try_from(number).map_err(|error| damaged(column, error))
}

/// Converts a number to a column's type.
///
/// # Errors
/// [`StoreError`] for a number that does not fit in 64 bits.
pub fn stored(
    number: impl TryInto<i64, Error: Into<Box<dyn Error + Send + Sync>>>,
) -> Result<i64, StoreError> {
    number.try_into().map_err(unwritten)
}

/// Converts a value to JSON.
///
/// # Errors
/// [`StoreError`] for a value that JSON cannot represent.
pub fn to_json(value: &(impl Serialize + ?Sized)) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(unwritten)
}

/// Converts a unit variant to its name in JSON, without quotes.
///
/// # Errors
/// [`StoreError`] for a value that is not a string in JSON.
pub fn name(value: impl Serialize) -> Result<String, StoreError> {
    match serde_json::to_value(value).map_err(unwritten)? {
        serde_json::Value::String(name) => Ok(name),
        other => Err(unwritten(format!("{other} is not a string"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;
    use fhaim_api::problem::ProblemKind;

    #[test]
    fn damaged_rows_are_named_and_left_out_of_lists() {
        let dataset = Uuid::from_u128(7);
        let damaged_row = || of_dataset(dataset, Err::<u8, _>(damaged("terms", "not JSON")));
        let failure = Failure::from(damaged_row().unwrap_err());
        assert_eq!(failure.kind(), ProblemKind::Damaged);
        let told = failure.problem.detail.clone().unwrap();
        assert!(told.contains(&dataset.to_string()), "{told}");
        assert!(told.contains("column terms"), "{told}");
        assert_eq!(undamaged(damaged_row()).unwrap(), None);
        assert_eq!(undamaged(Ok(1)).unwrap(), Some(1));
        let failed = undamaged::<u8>(Err(StoreError::PoolTimedOut));
        assert!(matches!(failed, Err(StoreError::PoolTimedOut)));
    }
}
