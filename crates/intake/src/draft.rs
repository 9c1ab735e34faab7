//! A drafted schema, and everything that its holder must know about it.

use std::fmt::{self, Display, Formatter};

use fhaim_domain::{
    Constraint, Error, Schema, SchemaForm, SchemaProblem, counted,
    form::{ColumnForm, KindForm},
};
use serde::{Deserialize, Serialize};

use crate::Shape;

/// Warning that must accompany every draft.
pub const DRAFT_STATEMENT: &str = "This is a draft. Its categories and limits were read from the \
records, so they may reveal something about a person in them. A schema is public and must not \
depend on the records. Replace its ranges and lists by publicly known ones (from the questionnaire, \
the code book, the physical range of a measurement), remove everything that only the records can \
reveal, and confirm that it may be public before you use it.";

/// Warning that must accompany the proposed rules of a draft.
pub const RULES_STATEMENT: &str = "These rules hold in all records. A rule that holds in the data is a statistic of \
the data: accept it only if public knowledge says the same of every possible table.";

/// A schema that its owner has not confirmed yet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Draft {
    /// The draft.
    pub schema: Schema,
    /// Number of records of the table. Private: it is not a part of the schema.
    pub records: u64,
    /// Remarks on the file as a whole, as sentences.
    pub remarks: Vec<String>,
    /// One entry for each column of the schema, in its order.
    pub columns: Vec<ColumnDraft>,
    /// Relations between columns that hold in all records. They are not in the schema until the holder accepts them.
    pub rules: Vec<ProposedRule>,
    /// The columns as drafted, without accepted rules.
    #[serde(skip)]
    pub(crate) drafted: Vec<ColumnForm>,
}

/// A relation between columns that holds in all records of the table.
///
/// A rule that holds in the data is a statistic of the data. The holder accepts it if public knowledge says the same
/// of every possible table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProposedRule {
    /// The columns that the rule is about.
    pub columns: Vec<String>,
    /// The rule, as a sentence without a full stop.
    pub rule: String,
    /// Number of records that support the rule: those that could break it.
    pub records: u64,
    /// The change to the schema.
    pub change: RuleChange,
}

/// The change to a schema that makes a rule hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleChange {
    /// A constraint is added.
    Constraint(Constraint),
    /// The column of this name becomes a derived one.
    Column(Box<ColumnForm>),
}

impl RuleChange {
    /// Makes the change.
    pub(crate) fn apply(&self, form: &mut SchemaForm) {
        match self {
            Self::Constraint(constraint) => form.constraints.push(constraint.clone()),
            Self::Column(column) => {
                let mut columns = form.columns.iter_mut();
                if let Some(old) = columns.find(|old| old.name == column.name) {
                    *old = column.as_ref().clone();
                }
            }
        }
    }
}

/// Whether a column of a draft may be public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// Nothing in it was read from the records, apart from their form.
    Safe,
    /// It has a range or a list that was read from the records. The holder must confirm it.
    FromRecords,
    /// The column's values are near-unique. They are not in the draft, and must not be listed.
    NearUnique,
}

/// What a draft took from the records of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum RecordUse {
    /// Only the form of the values.
    Nothing,
    /// A range, rounded outward, and the edges of its bins.
    Range,
    /// A list of values.
    List {
        /// Number of listed values.
        values: usize,
        /// Each listed value occurs in at least this many records.
        shared_by: u64,
    },
}

/// Cells of a column that have no value of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Exception {
    /// Number of such cells.
    pub cells: u64,
    /// The first of them, as a record counted from 1 without the header.
    pub row: u64,
    /// The form of the first of them, in words.
    pub shape: String,
    /// How the draft reads them, in words.
    pub read_as: String,
}

/// What a draft says about a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnDraft {
    /// Name of the column.
    pub column: String,
    /// Kind of the column, as in the schema.
    pub kind: &'static str,
    /// Whether it may be public.
    pub flag: Flag,
    /// The information taken from the records.
    pub taken: RecordUse,
    /// Why the column has this kind, as a sentence.
    pub evidence: String,
    /// Cells that do not fit.
    pub exceptions: Vec<Exception>,
    /// Decisions that the draft proposes, as sentences.
    pub proposals: Vec<String>,
    /// Questions that only the holder can answer, as sentences.
    pub questions: Vec<String>,
}

impl Draft {
    /// Returns the warning that must accompany the draft: [`DRAFT_STATEMENT`].
    pub fn statement(&self) -> &'static str {
        DRAFT_STATEMENT
    }

    /// Returns all remarks as sentences, each with the column that it is about.
    pub fn notes(&self) -> Vec<Note> {
        let columns = self.columns.iter();
        columns
            .flat_map(|column| {
                column.sentences().into_iter().map(|text| Note {
                    column: column.column.clone(),
                    text,
                })
            })
            .collect()
    }
}

impl Draft {
    /// Returns the values that a column of the draft lists.
    pub fn listed(&self, column: &str) -> Vec<String> {
        let forms = SchemaForm::from(self.schema.clone()).columns;
        let form = forms.into_iter().find(|form| form.name == column);
        form.and_then(|form| form.categories.or(form.codes))
            .unwrap_or_default()
    }

    /// Accepts proposed rules, by their indices in [`Draft::rules`]. They become a part of the schema.
    ///
    /// # Errors
    /// The schema cannot have these rules together. The draft does not change.
    pub fn accept(&mut self, rules: &[usize]) -> Result<(), Error> {
        let all = self.rules.iter().enumerate();
        let chosen = all.filter_map(|(index, rule)| rules.contains(&index).then_some(rule));
        self.schema = with_rules(self.schema.clone(), chosen)?;
        let kept = |index: &usize| !rules.contains(index);
        let left = (0..self.rules.len()).filter(kept);
        self.rules = left
            .filter_map(|index| self.rules.get(index).cloned())
            .collect();
        self.name_kinds();
        Ok(())
    }

    /// Says which kinds the columns of the schema have.
    fn name_kinds(&mut self) {
        let forms = SchemaForm::from(self.schema.clone()).columns;
        for (about, form) in self.columns.iter_mut().zip(forms) {
            about.kind = form.kind.word();
        }
    }

    /// Leaves columns out of the draft, with the accepted rules that name them. A column that was derived from one of
    /// them is drafted as before the rule.
    ///
    /// # Errors
    /// No column is left, or another column is relative to one of them.
    pub fn leave_out(&mut self, names: &[String]) -> Result<(), Error> {
        let mut whole = SchemaForm::from(self.schema.clone());
        let is_named = |columns: &[&str]| names.iter().any(|name| columns.contains(&name.as_str()));
        whole
            .constraints
            .retain(|constraint| !is_named(&constraint.columns()));
        for form in &mut whole.columns {
            let from = form.from.as_deref();
            let mut drafted = self.drafted.iter();
            if from.is_some_and(|from| is_named(&[from]))
                && let Some(drafted) = drafted.find(|drafted| drafted.name == form.name)
            {
                *form = drafted.clone();
            }
        }
        for form in whole
            .columns
            .iter_mut()
            .filter(|form| names.contains(&form.name))
        {
            let name = std::mem::take(&mut form.name);
            *form = ColumnForm {
                reason: Some("its list may not be public".to_owned()),
                ..ColumnForm::empty(name, KindForm::LeftOut, false)
            };
        }
        let kept = |name: &String| !names.contains(name);
        whole.target = whole.target.filter(kept);
        self.schema = Schema::try_from(whole).map_err(|problem| Error::Schema {
            file: self.schema.name().to_owned(),
            problem,
        })?;
        self.name_kinds();
        for column in self
            .columns
            .iter_mut()
            .filter(|column| names.contains(&column.column))
        {
            (column.flag, column.taken) = (Flag::Safe, RecordUse::Nothing);
        }
        self.rules
            .retain(|rule| !rule.columns.iter().any(|column| names.contains(column)));
        Ok(())
    }
}

/// Returns a schema with accepted rules. The schema may be a draft that its owner has edited.
///
/// # Errors
/// The schema cannot have these rules together.
pub fn with_rules<'a>(
    schema: Schema,
    rules: impl IntoIterator<Item = &'a ProposedRule>,
) -> Result<Schema, Error> {
    let file = schema.name().to_owned();
    let mut form = SchemaForm::from(schema);
    for rule in rules {
        let lacks = |name: &String| form.columns.iter().all(|column| column.name != *name);
        if rule.columns.iter().any(lacks) {
            let problem = SchemaProblem::Constraint {
                constraint: rule.rule.clone(),
                problem: "the schema lacks one of its columns",
            };
            return Err(Error::Schema { file, problem });
        }
        rule.change.apply(&mut form);
    }
    Schema::try_from(form).map_err(|problem| Error::Schema { file, problem })
}

impl ColumnDraft {
    /// Returns everything that the holder should read about the column.
    fn sentences(&self) -> Vec<String> {
        let mut all = vec![format!("{}; {}", self.evidence, self.taken)];
        all.extend(self.exceptions.iter().map(ToString::to_string));
        all.extend(self.proposals.iter().cloned());
        all.extend(self.questions.iter().cloned());
        all
    }
}

impl Display for RecordUse {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => out.write_str("no value was taken from the records"),
            Self::Range => out.write_str("range and bins were read from the records and rounded"),
            Self::List { values, shared_by } => write!(
                out,
                "{} {} listed, each shared by at least {shared_by} records",
                counted(*values, "value"),
                if *values == 1 { "is" } else { "are" },
            ),
        }
    }
}

impl Exception {
    pub(crate) fn new(cells: u64, row: u64, shape: &Shape, read_as: impl Into<String>) -> Self {
        Self {
            cells,
            row,
            shape: shape.to_string(),
            read_as: read_as.into(),
        }
    }
}

impl Exception {
    /// Cells whose bytes are no text in the file's encoding.
    pub(crate) fn bad_bytes(cells: u64, row: u64) -> Self {
        Self {
            cells,
            row,
            shape: "bytes that are no text in the file's encoding".to_owned(),
            read_as: "proposed as missing".to_owned(),
        }
    }
}

impl Display for Exception {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            cells,
            row,
            shape,
            read_as,
        } = self;
        let cells = counted(*cells, "other cell");
        write!(out, "{cells}, first in row {row} ({shape}): {read_as}")
    }
}

/// A point of a draft for the holder to check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Name of the column.
    pub column: String,
    /// What to check, as a sentence.
    pub text: String,
}

impl Display for Note {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "column {:?}: {}", self.column, self.text)
    }
}
