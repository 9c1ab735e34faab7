//! The JSON form of a schema, before it is validated.

use serde::{Deserialize, Serialize};

use crate::{
    Constraint,
    form::{Claim, ColumnForm},
};

/// A schema as it stands in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaForm {
    /// Format 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<u64>,
    /// The former name of `format`. A schema that has it is rejected with an explanation.
    #[serde(default, skip_serializing)]
    pub version: Option<serde_json::Value>,
    /// Cost of a private draft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// Name of the table.
    pub name: String,
    /// Origin of the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Column that the table is meant to predict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Columns.
    pub columns: Vec<ColumnForm>,
    /// Rules that every record satisfies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
}
