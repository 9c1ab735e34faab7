//! Drafts of schemas, made from a table for its holder to correct and confirm.
//!
//! A schema is public, but facts from private records are not. A column's smallest and largest
//! value, or a category that only one person has, reveal something about the records. Therefore a
//! draft is never made automatically, and the holder reviews it before it is used.

mod kinds;
mod numbers;
mod profile;
mod times;

use std::{fmt, io::Read};

use fhaim_domain::{Error, HeaderProblem, MAX_COLUMNS, Records, Schema, SchemaForm};
use profile::Profile;
pub use profile::time_formats;

/// Warning that must accompany every draft.
pub const DRAFT_STATEMENT: &str = "This is a draft. Its categories and limits were read from the \
records, so they may reveal something about a person in them. A schema is public and must not \
depend on the records. Correct it from public knowledge (the questionnaire, the code book, the \
physical range of a measurement), remove everything that only the records can reveal, and confirm \
that it may be public before you use it.";

/// How to draft a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferOptions {
    /// Name of the table's file, for errors.
    pub file: String,
    /// Name of the schema.
    pub name: String,
    /// Name of the target column, if there is one.
    pub target: Option<String>,
    /// Byte between fields.
    pub delimiter: u8,
    /// Texts that stand for a missing value.
    pub missing: Vec<String>,
    /// Columns to leave out.
    pub leave_out: Vec<String>,
    /// Maximum number of categories of a column of texts.
    pub max_categories: usize,
    /// Maximum number of different numbers in a column that is drafted as categorical.
    pub max_number_categories: usize,
    /// Number of bins of a column of numbers or dates (fewer if it has fewer values).
    pub bins: u32,
}

impl InferOptions {
    /// Returns the defaults: commas as delimiters, only an empty field is missing, up to 100
    /// categories, up to 10 different numbers as categories, 10 bins. Errors name `file`.
    pub fn new(file: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            name: name.into(),
            target: None,
            delimiter: b',',
            missing: vec![String::new()],
            leave_out: Vec::new(),
            max_categories: 100,
            max_number_categories: 10,
            bins: 10,
        }
    }
}

/// A schema that its owner has not confirmed yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The draft.
    pub schema: Schema,
    /// Points for the holder to check, by column.
    pub notes: Vec<Note>,
}

impl Draft {
    /// Returns the warning that must accompany the draft: [`DRAFT_STATEMENT`].
    pub fn statement(&self) -> &'static str {
        DRAFT_STATEMENT
    }
}

/// A point of a draft for the holder to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Name of the column.
    pub column: String,
    /// What to check, as a sentence.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "column {:?}: {}", self.column, self.text)
    }
}

/// Drafts a schema from a CSV table.
///
/// - Numbers become bins with digits and limits that are rounded outward, or categories if there
///   are few different ones.
/// - Dates and times keep their kind, later ones relative to earlier ones.
/// - Texts become categories, codes or identifiers.
/// - Other columns are left out, with the reason.
///
/// # Errors
/// A broken CSV file (as in [`fhaim_domain::read_csv`]), a named column that the table does not have, no
/// records, or no column left.
pub fn infer_schema(input: impl Read, options: &InferOptions) -> Result<Draft, Error> {
    let mut records = Records::open(&options.file, options.delimiter, input)?;
    check_named_columns(records.header(), options)?;
    let kept: Vec<usize> = (0..records.header().len())
        .filter(|&field| !options.leave_out.contains(&records.header()[field]))
        .collect();
    if !(1..=MAX_COLUMNS).contains(&kept.len()) {
        let problem = HeaderProblem::Columns {
            found: kept.len(),
            limit: MAX_COLUMNS,
        };
        return Err(records.refuse_header(problem));
    }
    let mut profiles: Vec<Profile> = kept.iter().map(|_| Profile::new()).collect();
    while records.advance()? {
        for (profile, &field) in profiles.iter_mut().zip(&kept) {
            let text = records
                .text(field)
                .map_err(|problem| records.refuse(field, problem))?;
            profile.see(text, &options.missing);
        }
    }
    if records.row() == 0 {
        return Err(Error::Empty {
            file: options.file.clone(),
        });
    }
    let names = kept.iter().map(|&field| records.header()[field].as_str());
    draft(names.zip(&profiles), options)
}

fn check_named_columns(header: &[String], options: &InferOptions) -> Result<(), Error> {
    let named = options.leave_out.iter().chain(&options.target);
    let missing = named.filter(|name| !header.contains(name));
    Error::no_such_columns(&options.file, missing)
}

fn draft<'a>(
    columns: impl Iterator<Item = (&'a str, &'a Profile)>,
    options: &InferOptions,
) -> Result<Draft, Error> {
    let columns: Vec<(&str, &Profile)> = columns.collect();
    let (mut forms, mut notes) = (Vec::new(), Vec::new());
    for &(name, profile) in &columns {
        let (form, text) = kinds::form(name, profile, options);
        forms.push(form);
        notes.extend(text.map(|text| Note {
            column: name.to_owned(),
            text,
        }));
    }
    times::relate(&columns, &mut forms, &mut notes);
    let form = SchemaForm {
        format: None,
        version: None,
        claim: None,
        name: options.name.clone(),
        source: None,
        target: options.target.clone(),
        columns: forms,
        constraints: Vec::new(),
    };
    let schema = Schema::try_from(form).map_err(|problem| Error::Schema {
        file: options.file.clone(),
        problem,
    })?;
    Ok(Draft { schema, notes })
}
