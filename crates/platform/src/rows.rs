//! Columns of rows as the types they stand for, and these as columns hold them.
//!
//! What cannot be read is damaged: an error of the store, and so a fault of the service.

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

/// A value that is written as text, such as an identifier or a digest.
///
/// # Errors
/// Another column, or another text.
pub fn parsed<T>(row: &Row, column: &str) -> Result<T, StoreError>
where
    T: FromStr<Err: Into<Box<dyn Error + Send + Sync>>>,
{
    let text: String = row.try_get(column)?;
    text.parse().map_err(|error| damaged(column, error))
}

/// As [`parsed`], if there is one.
///
/// # Errors
/// Another column, or another text.
pub fn some_parsed<T>(row: &Row, column: &str) -> Result<Option<T>, StoreError>
where
    T: FromStr<Err: Into<Box<dyn Error + Send + Sync>>>,
{
    let text: Option<String> = row.try_get(column)?;
    let parsed = text.map(|text| text.parse().map_err(|error| damaged(column, error)));
    parsed.transpose()
}

/// A JSON value.
///
/// # Errors
/// Another column, or another text.
pub fn json<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T, StoreError> {
    let text: String = row.try_get(column)?;
    serde_json::from_str(&text).map_err(|error| damaged(column, error))
}

/// A JSON value, if there is one.
///
/// # Errors
/// Another column, or another text.
pub fn some_json<T: DeserializeOwned>(row: &Row, column: &str) -> Result<Option<T>, StoreError> {
    let text: Option<String> = row.try_get(column)?;
    let read = text.as_deref().map(serde_json::from_str).transpose();
    read.map_err(|error| damaged(column, error))
}

/// The value that a column names: a unit variant without quotes, or a number written as text.
///
/// # Errors
/// Another column, or another name.
pub fn named<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T, StoreError> {
    let name: String = row.try_get(column)?;
    serde_json::from_value(name.into()).map_err(|error| damaged(column, error))
}

/// A number that fits its type.
///
/// # Errors
/// Another column, or a number out of range.
pub fn number<T>(row: &Row, column: &str) -> Result<T, StoreError>
where
    T: TryFrom<i64, Error: Into<Box<dyn Error + Send + Sync>>>,
{
    let number: i64 = row.try_get(column)?;
    T::try_from(number).map_err(|error| damaged(column, error))
}

/// A number as a column holds it.
///
/// # Errors
/// A number past 64 bits.
pub fn stored(
    number: impl TryInto<i64, Error: Into<Box<dyn Error + Send + Sync>>>,
) -> Result<i64, StoreError> {
    number.try_into().map_err(unwritten)
}

/// A value as JSON.
///
/// # Errors
/// A value that JSON cannot write.
pub fn to_json(value: &(impl Serialize + ?Sized)) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(unwritten)
}

/// A value as a column names it: a unit variant without quotes.
///
/// # Errors
/// A value that is no name.
pub fn name(value: impl Serialize) -> Result<String, StoreError> {
    match serde_json::to_value(value).map_err(unwritten)? {
        serde_json::Value::String(name) => Ok(name),
        other => Err(unwritten(format!("{other} is no name"))),
    }
}
