//! Columns of rows as the types they stand for.

use fhaim_dp::Rho;
use fhaim_platform::Failure;
use fhaim_platform::store::Row;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row as _;
use uuid::Uuid;

/// An identifier.
pub fn uuid(row: &Row, column: &str) -> Result<Uuid, Failure> {
    let text: String = row.try_get(column)?;
    Uuid::try_parse(&text).map_err(Failure::internal)
}

/// A cost: a decimal count of 2^-80.
pub fn rho(row: &Row, column: &str) -> Result<Rho, Failure> {
    let count: String = row.try_get(column)?;
    Ok(serde_json::from_value(count.into())?)
}

/// A JSON value.
pub fn json<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T, Failure> {
    let text: String = row.try_get(column)?;
    Ok(serde_json::from_str(&text)?)
}

/// A JSON value, if there is one.
pub fn some_json<T: DeserializeOwned>(row: &Row, column: &str) -> Result<Option<T>, Failure> {
    let text: Option<String> = row.try_get(column)?;
    Ok(text.as_deref().map(serde_json::from_str).transpose()?)
}

/// A value as a column holds it: a unit variant's name, without quotes.
pub fn name(value: impl Serialize) -> Result<String, Failure> {
    match serde_json::to_value(value)? {
        serde_json::Value::String(name) => Ok(name),
        other => Err(Failure::internal(format!("{other} is no name"))),
    }
}

/// The value that a column names.
pub fn named<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T, Failure> {
    let name: String = row.try_get(column)?;
    Ok(serde_json::from_value(name.into())?)
}
