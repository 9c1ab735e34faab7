//! Conversions between columns of rows and the types that they stand for.
//!
//! A column that cannot be read is damaged, which is an error of the store and so an internal error of the service.
//! [`of_dataset`] names the dataset of a damaged row, so that its holders and the operator know what to restore.

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

/// A row of a dataset that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "the stored data of dataset {dataset} is damaged ({column}); other datasets are not affected. The operator of the \
     service can restore the database from a backup"
)]
pub struct DamagedRow {
    /// The dataset.
    pub dataset: Uuid,
    /// The column that cannot be read, and why.
    pub column: String,
}

/// Names the dataset of a row that cannot be read.
///
/// # Errors
/// The given error, with a [`DamagedRow`] in place of the damage of a column.
pub fn of_dataset<T>(dataset: Uuid, read: Result<T, StoreError>) -> Result<T, StoreError> {
    read.map_err(|error| match error {
        StoreError::ColumnDecode { index, .. } => damaged_row(dataset, format!("column {index}")),
        StoreError::Decode(source) if source.downcast_ref::<DamagedRow>().is_none() => {
            damaged_row(dataset, source.to_string())
        }
        other => other,
    })
}

fn damaged_row(dataset: Uuid, column: String) -> StoreError {
    StoreError::Decode(Box::new(DamagedRow { dataset, column }))
}

/// Collects the rows of a query that can be read. The others are logged, with the table's name.
///
/// # Errors
/// An error other than the damage of a row.
pub async fn readable(
    table: &'static str,
    rows: impl Stream<Item = Result<Row, StoreError>>,
) -> Result<Vec<Row>, StoreError> {
    let mut kept = Vec::new();
    let mut rows = std::pin::pin!(rows);
    while let Some(row) = rows.next().await {
        match row {
            Err(StoreError::Decode(error)) => {
                tracing::error!(table, %error, "a damaged row is left out");
            }
            row => kept.push(row?),
        }
    }
    Ok(kept)
}

/// Returns the damage of a row that [`of_dataset`] has named.
pub fn damage(error: &StoreError) -> Option<&DamagedRow> {
    match error {
        StoreError::Decode(source) => source.downcast_ref(),
        _ => None,
    }
}

/// Keeps the rows of a list that can be read. The others are logged.
///
/// # Errors
/// An error other than the damage of a row.
pub fn undamaged<T>(
    read: impl IntoIterator<Item = Result<T, StoreError>>,
) -> Result<Vec<T>, StoreError> {
    let mut kept = Vec::new();
    for row in read {
        match row {
            Err(error) if damage(&error).is_some() => {
                tracing::error!(%error, "a damaged row is left out of a list");
            }
            row => kept.push(row?),
        }
    }
    Ok(kept)
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

    #[test]
    fn damaged_rows_are_named_and_left_out_of_lists() {
        let dataset = Uuid::from_u128(7);
        let damaged_row = || of_dataset(dataset, Err::<u8, _>(damaged("terms", "not JSON")));
        let failure = Failure::from(damaged_row().unwrap_err());
        let told = failure.problem.detail.clone().unwrap();
        assert!(told.contains(&dataset.to_string()), "{told}");
        assert!(told.contains("column terms"), "{told}");
        let kept = undamaged([Ok(1), damaged_row(), Ok(2)]).unwrap();
        assert_eq!(kept, [1, 2]);
        let failed = undamaged([Ok(1), Err(StoreError::PoolTimedOut)]);
        assert!(matches!(failed, Err(StoreError::PoolTimedOut)));
    }
}
