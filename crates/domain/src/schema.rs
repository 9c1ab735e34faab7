//! The public description of a table: its columns and the values each may take.

use std::collections::HashSet;

use rand::Rng;
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::{Binning, BinningProblem, Domain, Error};

/// A schema's file may have so many bytes.
pub const MAX_SCHEMA_BYTES: usize = 16 << 20;

/// A table may have so many columns.
pub const MAX_COLUMNS: usize = 1_000;

/// A column may have so many categories.
pub const MAX_CATEGORIES: usize = 10_000;

/// All columns may have so many values together: the width of the one-hot table.
pub const MAX_ONE_HOT: usize = 100_000;

/// The name of a column or a category may have so many bytes.
pub const MAX_NAME_BYTES: usize = 1_024;

/// Why a schema is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaProblem {
    /// Not JSON of the schema's form: syntax, an unknown or repeated or missing field, a wrong
    /// type.
    #[error("not a schema: {0}")]
    Json(#[source] serde_json::Error),
    /// The file is larger than [`MAX_SCHEMA_BYTES`].
    #[error("a schema of {0} bytes is too large (at most {MAX_SCHEMA_BYTES})")]
    Bytes(usize),
    /// No columns, or more than [`MAX_COLUMNS`].
    #[error("a schema must have from 1 to {MAX_COLUMNS} columns, not {0}")]
    Columns(usize),
    /// A name that is empty, too long, or has control characters.
    #[error("{what} {name:?} must have from 1 to {MAX_NAME_BYTES} bytes and no control characters")]
    Name {
        /// What is named: the schema, a column.
        what: &'static str,
        /// The name refused, cut where it is long.
        name: String,
    },
    /// Two columns of the same name.
    #[error("column {0:?} appears twice")]
    RepeatedColumn(String),
    /// The target is not a column.
    #[error("the target {0:?} is not a column")]
    Target(String),
    /// Something is wrong in one column.
    #[error("column {column:?}: {problem}")]
    Column {
        /// The column's name.
        column: String,
        /// What is wrong.
        problem: ColumnProblem,
    },
    /// More one-hot columns than [`MAX_ONE_HOT`].
    #[error(
        "the columns have {total} values together (at most {MAX_ONE_HOT}); column {widest:?} has \
         the most: give it fewer bins or categories"
    )]
    OneHot {
        /// The sum of all sizes.
        total: usize,
        /// The column with the most values.
        widest: String,
    },
}

/// Why a column is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnProblem {
    /// A field that this kind of column needs is absent.
    #[error("a {kind} column needs `{field}`")]
    Missing {
        /// The kind of the column.
        kind: &'static str,
        /// The absent field.
        field: &'static str,
    },
    /// A field that this kind of column does not have.
    #[error("a {kind} column has no `{field}`")]
    Surplus {
        /// The kind of the column.
        kind: &'static str,
        /// The surplus field.
        field: &'static str,
    },
    /// A category that is empty, too long, or has control characters.
    #[error(
        "category {0:?} must have from 1 to {MAX_NAME_BYTES} bytes and no control characters (a \
         missing value is not a category: say `nullable`)"
    )]
    Category(String),
    /// The same category twice.
    #[error("category {0:?} appears twice")]
    RepeatedCategory(String),
    /// `other` is not one of the categories.
    #[error("`other` is {0:?}, which is not one of the categories")]
    Other(String),
    /// No categories, or more than [`MAX_CATEGORIES`].
    #[error("a categorical column must have from 1 to {MAX_CATEGORIES} categories, not {0}")]
    Categories(usize),
    /// Limits and bins that do not fit each other.
    #[error(transparent)]
    Binning(#[from] BinningProblem),
}

/// What a column holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// One of a list of categories; code c stands for `categories[c]`.
    Categorical {
        /// The categories, in the order of their codes.
        categories: Vec<String>,
        /// The code that values outside the list may be given, where the holder asks for it.
        other: Option<u32>,
    },
    /// A number in one of a few bins; code b stands for bin b.
    Numeric(Binning),
}

impl Kind {
    /// Number of values, nulls left out.
    fn len(&self) -> usize {
        match self {
            Self::Categorical { categories, .. } => categories.len(),
            Self::Numeric(binning) => binning.bins() as usize,
        }
    }
}

/// One column of a [`Schema`].
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    name: String,
    kind: Kind,
    nullable: bool,
}

/// A value as it stands in a table, decoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// A category.
    Category(&'a str),
    /// A number.
    Number(f64),
}

impl Column {
    /// The column's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the column holds.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Whether values may be missing.
    pub fn nullable(&self) -> bool {
        self.nullable
    }

    /// Number of codes: categories or bins, and one more for nulls in a nullable column.
    pub fn size(&self) -> usize {
        self.kind.len() + usize::from(self.nullable)
    }

    /// The code of a missing value, the last one, in a nullable column.
    pub fn null_code(&self) -> Option<u32> {
        // At most MAX_CATEGORIES or MAX_BINS.
        self.nullable.then(|| self.kind.len() as u32)
    }

    /// The value `code` stands for, a number drawn from its bin (see [`Binning::sample`]);
    /// `None` if there is no such code.
    pub fn decode(&self, code: u32, rng: &mut (impl Rng + ?Sized)) -> Option<Value<'_>> {
        if self.null_code() == Some(code) {
            return Some(Value::Null);
        }
        match &self.kind {
            Kind::Categorical { categories, .. } => {
                let category = categories.get(code as usize)?;
                Some(Value::Category(category))
            }
            Kind::Numeric(binning) => {
                (code < binning.bins()).then(|| Value::Number(binning.sample(code, rng)))
            }
        }
    }

    /// What `code` stands for, in words for a person: a category, the limits of a bin (its
    /// integers, in a column of integers), `(missing)`, or `(none)` if there is no such code.
    pub fn label(&self, code: u32) -> String {
        if self.null_code() == Some(code) {
            return "(missing)".to_owned();
        }
        match &self.kind {
            Kind::Categorical { categories, .. } => match categories.get(code as usize) {
                Some(category) => category.clone(),
                None => "(none)".to_owned(),
            },
            Kind::Numeric(binning) if code >= binning.bins() => "(none)".to_owned(),
            Kind::Numeric(binning) if binning.integer() => match binning.numbers(code) {
                (first, last) if first == last => first.to_string(),
                (first, last) => format!("{first} to {last}"),
            },
            Kind::Numeric(binning) => {
                let (low, high) = binning.edges(code);
                // Three digits past the width's first: exact for any limits a person would write.
                let decimals = binning.decimals() as usize + 1;
                format!("{} to {}", short(low, decimals), short(high, decimals))
            }
        }
    }
}

/// `value` with at most `decimals` decimals and no zeros at the end of them.
fn short(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// The columns of a table, their domains and, if there is one, the target column. Public: it
/// must not depend on the records. Always valid once built.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SchemaForm", into = "SchemaForm")]
pub struct Schema {
    name: String,
    source: Option<String>,
    target: Option<usize>,
    columns: Vec<Column>,
    domain: Domain,
}

impl Schema {
    /// Reads a schema from JSON; `file` is named in errors.
    ///
    /// # Errors
    /// [`Error::Schema`] with the [`SchemaProblem`].
    pub fn from_json(file: &str, json: &[u8]) -> Result<Self, Error> {
        Self::parse(json).map_err(|problem| Error::Schema {
            file: file.to_owned(),
            problem,
        })
    }

    fn parse(json: &[u8]) -> Result<Self, SchemaProblem> {
        if json.len() > MAX_SCHEMA_BYTES {
            return Err(SchemaProblem::Bytes(json.len()));
        }
        let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
        let form: SchemaForm = serde_json::from_slice(json).map_err(SchemaProblem::Json)?;
        Self::try_from(form)
    }

    /// The schema as indented JSON, with a newline at the end. [`Schema::from_json`] reads it
    /// back equal.
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self)
            // Fails only for maps with keys that are no strings, or a failing Serialize: neither.
            .unwrap_or_default();
        json.push('\n');
        json
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the table comes from, in words.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// Index of the target column.
    pub fn target(&self) -> Option<usize> {
        self.target
    }

    /// The columns; their order is that of the attributes.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Number of values of each attribute.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Index of the column named `name`.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// SHA-256 of everything that gives codes their meaning: columns in order, their values, the
    /// target. The table's name and source are left out. It binds ciphertexts to a schema.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"fhaim schema v1\0");
        let target = self.target.map_or(0, |index| index as u64 + 1);
        hash.update(target.to_le_bytes());
        hash_length(&mut hash, self.columns.len());
        for column in &self.columns {
            hash_column(&mut hash, column);
        }
        hash.finalize().into()
    }
}

/// A length, so that no two lists of fields hash as the same bytes.
fn hash_length(hash: &mut Sha256, length: usize) {
    hash.update((length as u64).to_le_bytes());
}

fn hash_text(hash: &mut Sha256, text: &str) {
    hash_length(hash, text.len());
    hash.update(text);
}

fn hash_column(hash: &mut Sha256, column: &Column) {
    hash_text(hash, &column.name);
    hash.update([u8::from(column.nullable)]);
    match &column.kind {
        Kind::Categorical { categories, other } => {
            hash.update([0]);
            hash.update(other.map_or(0, |code| u64::from(code) + 1).to_le_bytes());
            hash_length(hash, categories.len());
            for category in categories {
                hash_text(hash, category);
            }
        }
        Kind::Numeric(binning) => {
            hash.update([1, u8::from(binning.integer())]);
            hash.update(binning.min().to_bits().to_le_bytes());
            hash.update(binning.max().to_bits().to_le_bytes());
            hash.update(binning.bins().to_le_bytes());
        }
    }
}

/// The JSON form of a schema, field for field, before it is validated.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchemaForm {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    pub(crate) columns: Vec<ColumnForm>,
}

impl ColumnForm {
    /// A numeric column with nothing said about it yet.
    pub(crate) fn empty(name: String, nullable: bool) -> Self {
        Self {
            name,
            kind: KindForm::Numeric,
            categories: None,
            other: None,
            min: None,
            max: None,
            bins: None,
            integer: None,
            nullable,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KindForm {
    Categorical,
    Numeric,
}

/// The JSON form of a column. All kinds' fields are here, so that a field of the wrong kind can
/// be refused with the column's name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ColumnForm {
    pub(crate) name: String,
    pub(crate) kind: KindForm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) categories: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) other: Option<String>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "plain_number"
    )]
    pub(crate) min: Option<f64>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "plain_number"
    )]
    pub(crate) max: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bins: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) integer: Option<bool>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) nullable: bool,
}

/// Writes whole numbers without a decimal point, as a person would.
fn plain_number<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match *value {
        Some(value) if value.fract() == 0.0 && value.abs() <= crate::MAX_MAGNITUDE => {
            serializer.serialize_i64(value as i64)
        }
        Some(value) => serializer.serialize_f64(value),
        None => serializer.serialize_none(),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

impl TryFrom<SchemaForm> for Schema {
    type Error = SchemaProblem;

    fn try_from(form: SchemaForm) -> Result<Self, SchemaProblem> {
        check_name("the schema's name", &form.name)?;
        if !(1..=MAX_COLUMNS).contains(&form.columns.len()) {
            return Err(SchemaProblem::Columns(form.columns.len()));
        }
        let columns = build_columns(form.columns)?;
        let target = match form.target {
            None => None,
            Some(target) => Some(
                columns
                    .iter()
                    .position(|column| column.name == target)
                    .ok_or_else(|| SchemaProblem::Target(cut(&target)))?,
            ),
        };
        let domain = Domain::new(columns.iter().map(Column::size).collect());
        check_one_hot_width(&columns, &domain)?;
        Ok(Self {
            name: form.name,
            source: form.source,
            target,
            columns,
            domain,
        })
    }
}

fn build_columns(forms: Vec<ColumnForm>) -> Result<Vec<Column>, SchemaProblem> {
    let mut names = HashSet::new();
    let mut columns = Vec::with_capacity(forms.len());
    for form in forms {
        check_name("a column's name", &form.name)?;
        if !names.insert(form.name.clone()) {
            return Err(SchemaProblem::RepeatedColumn(form.name));
        }
        let kind = build_kind(&form).map_err(|problem| SchemaProblem::Column {
            column: form.name.clone(),
            problem,
        })?;
        columns.push(Column {
            name: form.name,
            kind,
            nullable: form.nullable,
        });
    }
    Ok(columns)
}

fn check_one_hot_width(columns: &[Column], domain: &Domain) -> Result<(), SchemaProblem> {
    let total = domain.columns();
    if total <= MAX_ONE_HOT {
        return Ok(());
    }
    let widest = columns.iter().max_by_key(|column| column.size());
    Err(SchemaProblem::OneHot {
        total,
        widest: widest.map_or_else(String::new, |column| column.name.clone()),
    })
}

fn build_kind(form: &ColumnForm) -> Result<Kind, ColumnProblem> {
    match form.kind {
        KindForm::Categorical => build_categorical(form),
        KindForm::Numeric => build_numeric(form),
    }
}

fn build_categorical(form: &ColumnForm) -> Result<Kind, ColumnProblem> {
    let kind = "categorical";
    refuse(kind, "min", form.min.is_some())?;
    refuse(kind, "max", form.max.is_some())?;
    refuse(kind, "bins", form.bins.is_some())?;
    refuse(kind, "integer", form.integer.is_some())?;
    let categories = form.categories.as_ref().ok_or(ColumnProblem::Missing {
        kind,
        field: "categories",
    })?;
    if !(1..=MAX_CATEGORIES).contains(&categories.len()) {
        return Err(ColumnProblem::Categories(categories.len()));
    }
    let mut seen = HashSet::with_capacity(categories.len());
    for category in categories {
        if !is_name(category) {
            return Err(ColumnProblem::Category(cut(category)));
        }
        if !seen.insert(category.as_str()) {
            return Err(ColumnProblem::RepeatedCategory(category.clone()));
        }
    }
    let other = match &form.other {
        None => None,
        Some(other) => Some(
            categories
                .iter()
                .position(|category| category == other)
                .ok_or_else(|| ColumnProblem::Other(cut(other)))? as u32,
        ),
    };
    Ok(Kind::Categorical {
        categories: categories.clone(),
        other,
    })
}

fn build_numeric(form: &ColumnForm) -> Result<Kind, ColumnProblem> {
    let kind = "numeric";
    refuse(kind, "categories", form.categories.is_some())?;
    refuse(kind, "other", form.other.is_some())?;
    let min = form
        .min
        .ok_or(ColumnProblem::Missing { kind, field: "min" })?;
    let max = form
        .max
        .ok_or(ColumnProblem::Missing { kind, field: "max" })?;
    let bins = form.bins.ok_or(ColumnProblem::Missing {
        kind,
        field: "bins",
    })?;
    let binning = Binning::new(min, max, bins, form.integer.unwrap_or(false))?;
    Ok(Kind::Numeric(binning))
}

fn refuse(kind: &'static str, field: &'static str, present: bool) -> Result<(), ColumnProblem> {
    if present {
        Err(ColumnProblem::Surplus { kind, field })
    } else {
        Ok(())
    }
}

fn check_name(what: &'static str, name: &str) -> Result<(), SchemaProblem> {
    if is_name(name) {
        Ok(())
    } else {
        Err(SchemaProblem::Name {
            what,
            name: cut(name),
        })
    }
}

/// Whether `name` is neither empty nor too long and has no control characters, which would
/// break lines of a report or log.
fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control)
}

/// The first characters of a text of any length, for an error.
pub(crate) fn cut(text: &str) -> String {
    const MAX_CHARACTERS: usize = 60;
    match text.char_indices().nth(MAX_CHARACTERS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

impl From<Schema> for SchemaForm {
    fn from(schema: Schema) -> Self {
        let target = schema
            .target
            .map(|index| schema.columns[index].name.clone());
        Self {
            name: schema.name,
            source: schema.source,
            target,
            columns: schema.columns.into_iter().map(ColumnForm::from).collect(),
        }
    }
}

impl From<Column> for ColumnForm {
    fn from(column: Column) -> Self {
        let mut form = Self::empty(column.name, column.nullable);
        match column.kind {
            Kind::Categorical { categories, other } => {
                form.kind = KindForm::Categorical;
                form.other = other.map(|code| categories[code as usize].clone());
                form.categories = Some(categories);
            }
            Kind::Numeric(binning) => {
                form.min = Some(binning.min());
                form.max = Some(binning.max());
                form.bins = Some(u64::from(binning.bins()));
                form.integer = binning.integer().then_some(true);
            }
        }
        form
    }
}
