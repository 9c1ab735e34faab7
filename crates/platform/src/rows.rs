//! Conversions between columns of rows and the types that they stand for.
//!
//! A column that cannot be read is damaged, which is an error of the store and so an internal error of the service.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row as _;
use std::error::Error;
use std::str::FromStr;

use crate::store::{Row, StoreError};

fn damaged(column: &str, source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
    StoreError::ColumnDecode {
        index: column.to_owned(),
        source: source.into(),
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
