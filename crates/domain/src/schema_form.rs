//! The JSON form of a schema, before it is validated.

use serde::{Deserialize, Serialize};

use crate::{
    Constraint,
    form::{Claim, ColumnForm},
};

/// A schema as it stands in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchemaForm {
    /// Format 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<u64>,
    /// The former name of `format`. A schema that has it is rejected with an explanation.
    #[serde(default, skip_serializing)]
    pub(crate) version: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) claim: Option<Claim>,
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    pub(crate) columns: Vec<ColumnForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) constraints: Vec<Constraint>,
}
