//! Drafts of schemas, their costs, and all their problems.

use fhaim_domain::{Error, Schema, SchemaCost, SchemaProblem, check_schema};
use fhaim_intake::{ColumnDraft, Draft, Note, ProposedRule, RULES_STATEMENT, with_rules};
use serde::Serialize;
use serde_json::{Value, json};

use crate::table::labels;

/// A draft of a schema.
#[derive(Debug, Serialize)]
pub(crate) struct Drafted {
    schema: Schema,
    statement: &'static str,
    /// Number of records of the table.
    records: u64,
    /// Remarks on the file as a whole.
    remarks: Vec<String>,
    /// One entry for each column of the schema, in its order.
    columns: Vec<ColumnDraft>,
    /// All remarks on single columns, as sentences.
    notes: Vec<Note>,
    /// Proposed rules, which are not in the schema.
    rules: Vec<ProposedRule>,
    /// Warning that must accompany the rules.
    rules_statement: &'static str,
}

/// A problem of a column.
#[derive(Debug, Serialize)]
pub(crate) struct Remark {
    column: String,
    text: String,
}

impl From<Draft> for Drafted {
    fn from(draft: Draft) -> Self {
        Self {
            statement: draft.statement(),
            notes: draft.notes(),
            schema: draft.schema,
            records: draft.records,
            remarks: draft.remarks,
            columns: draft.columns,
            rules: draft.rules,
            rules_statement: RULES_STATEMENT,
        }
    }
}

/// The cost and the labels of a schema, or its problems.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Checked {
    /// A valid schema.
    Sound {
        /// Its cost.
        cost: SchemaCost,
        /// The meaning of each code, by attribute.
        labels: Vec<Vec<String>>,
    },
    /// An invalid schema.
    Refused {
        /// The first problem found, as a sentence.
        refused: String,
        /// All problems of single columns.
        problems: Vec<Remark>,
    },
}

impl Checked {
    pub(crate) fn of(schema: &Value) -> Self {
        match parsed(schema) {
            Ok(schema) => Self::Sound {
                cost: check_schema(&schema, None),
                labels: labels(&schema),
            },
            Err(problem) => Self::Refused {
                refused: problem.to_string(),
                problems: problems(schema),
            },
        }
    }
}

/// Returns a schema with accepted rules. The schema may be a draft that the page's user has edited.
///
/// # Errors
/// The schema is invalid, or cannot have these rules together.
pub(crate) fn accepted(schema: &Value, rules: &[ProposedRule]) -> Result<Schema, Error> {
    let schema = Schema::from_json("schema", schema.to_string().as_bytes())?;
    with_rules(schema, rules)
}

fn parsed(schema: &Value) -> Result<Schema, SchemaProblem> {
    match Schema::from_json("schema", schema.to_string().as_bytes()) {
        Ok(schema) => Ok(schema),
        Err(Error::Schema { problem, .. }) => Err(problem),
        // A schema has no other errors.
        Err(_) => Err(SchemaProblem::Nothing),
    }
}

/// Returns the column at `place` after the columns that it needs: the one that it is derived from, and those that it
/// is relative to.
fn with_needed(columns: &[Value], place: usize) -> Vec<&Value> {
    let other = columns.get(place).and_then(|column| column.get("from"));
    let from = other.filter(|other| other.is_string()).and_then(|other| {
        let mut named = columns.iter();
        named.position(|column| column.get("name") == Some(other))
    });
    let from = from.filter(|&from| from != place);
    let mut some = from.map_or_else(Vec::new, |from| with_bases(columns, from));
    some.extend(with_bases(columns, place));
    some
}

/// Returns the column at `place` after the column that it is relative to, and those that this one is
/// relative to.
fn with_bases(columns: &[Value], place: usize) -> Vec<&Value> {
    let (mut some, mut place) = (Vec::new(), Some(place));
    while let Some((at, column)) = place.and_then(|at| Some((at, columns.get(at)?))) {
        some.insert(0, column);
        let base = column.get("relative_to").filter(|base| base.is_string());
        let mut earlier = columns.iter().take(at);
        place = base.and_then(|base| earlier.position(|other| other.get("name") == Some(base)));
    }
    some
}

/// Finds the problems of each column separately. Next to the column, the checked schema has only
/// the columns that it depends on.
fn problems(schema: &Value) -> Vec<Remark> {
    let columns = schema.get("columns").and_then(Value::as_array);
    let columns = columns.map_or(&[][..], Vec::as_slice);
    let name = |column: &Value| {
        column
            .get("name")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let mut problems = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        let some = with_needed(columns, place);
        // The only format of schemas, which has all kinds of columns.
        let alone = json!({"name": "column", "columns": some});
        let text = match parsed(&alone) {
            Err(SchemaProblem::Column {
                column: of,
                problem,
            }) => {
                // A problem of a column that it depends on is reported with that column.
                (Some(of) == name(column)).then(|| problem.to_string())
            }
            // A schema of only left-out columns is invalid, but the column itself is not wrong.
            Ok(_) | Err(SchemaProblem::Nothing) => None,
            Err(problem) => Some(problem.to_string()),
        };
        problems.extend(text.map(|text| Remark {
            column: name(column).unwrap_or_default(),
            text,
        }));
    }
    problems
}
