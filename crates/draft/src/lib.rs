#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! Only three mechanisms read the records, and all of them use exact integers:
//!
//! * a choice among public candidates ([`fhaim_dp::Selection`]);
//! * a histogram over public cells with discrete Gaussian noise;
//! * the texts whose noisy counts pass a threshold.
//!
//! Everything else is computed from their outcomes. docs/PRIVACY.md lists the prices.
#![deny(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod budget;
mod error;
mod kinds;
mod numbers;
mod texts;
mod times;

use std::io::Read;

use fhaim_domain::{Claim, Dialect, Schema};
use fhaim_dp::Rho;
use fhaim_intake::{Note, TextCounts, count_texts};
use rand_core::RngCore;
use serde_json::{Map, Value, json};

pub use budget::{CountNoise, DraftBudget};
pub use error::Error;
pub use kinds::{ChosenFormat, TextReading, readings, scores};
pub use numbers::{Ranked, Style, bounds, by_magnitude, cells, grid, lower_scores, upper_scores};
pub use texts::threshold;

use kinds::choose;

/// The table to draft a schema from, and the budget.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftOptions {
    /// Name of the table's file, for error messages.
    pub file: String,
    /// Name of the schema.
    pub name: String,
    /// Name of the target column, if any.
    pub target: Option<String>,
    /// How the table is written.
    pub dialect: Dialect,
    /// Fields that stand for a missing value.
    pub missing: Vec<String>,
    /// Columns to leave out.
    pub leave_out: Vec<String>,
    /// Largest number of categories of a text column.
    pub max_categories: usize,
    /// Number of bins of a column of numbers or dates.
    pub bins: u32,
    /// Epsilon of the draft.
    pub epsilon: f64,
    /// Delta of the draft. Half is spent on thresholds, half on converting rho to epsilon.
    pub delta: f64,
}

impl DraftOptions {
    /// Returns options with defaults: plain CSV, only an empty field is missing, at most 100
    /// categories, 10 bins.
    pub fn new(file: impl Into<String>, name: impl Into<String>, epsilon: f64, delta: f64) -> Self {
        Self {
            file: file.into(),
            name: name.into(),
            target: None,
            dialect: Dialect::default(),
            missing: vec![String::new()],
            leave_out: Vec::new(),
            max_categories: 100,
            bins: 10,
            epsilon,
            delta,
        }
    }
}

/// A schema that may be published, and its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct PrivateDraft {
    /// The schema, including the claim of its cost.
    pub schema: Schema,
    /// A remark on each column for the owner's review.
    pub notes: Vec<Note>,
    /// The rho (zCDP) that the draft spent.
    pub spent: Rho,
    /// The rho that epsilon and delta were worth.
    pub budget: Rho,
}

/// Values that all columns share.
pub(crate) struct Common<'a> {
    pub(crate) options: &'a DraftOptions,
    /// The number of records, with noise.
    pub(crate) records: i64,
    /// The rho that each column may spend.
    pub(crate) share: Rho,
    /// Each column's part of delta.
    pub(crate) delta: f64,
}

/// A column's JSON form, and a remark on it.
pub(crate) type Drafted = (Map<String, Value>, String);

/// Drafts a schema from a CSV table, one column at a time.
///
/// Neighbouring tables differ in one record, added or removed. The result is
/// ([`DraftOptions::epsilon`], [`DraftOptions::delta`])-differentially private.
///
/// # Errors
/// * [`Error::Table`] if the CSV file is broken or a named column does not exist.
/// * [`Error::Privacy`] if a parameter is out of range.
/// * [`Error::TooLittle`] if epsilon is too small for the number of columns.
/// * [`Error::Guess`] if epsilon is too small for the number of records, which has then been paid
///   for.
pub fn draft(
    input: impl Read,
    options: &DraftOptions,
    rng: &mut (impl RngCore + ?Sized),
) -> Result<PrivateDraft, Error> {
    let mut draft_budget = DraftBudget::new(options.epsilon, options.delta / 2.0)?;
    let columns = count_texts(
        input,
        &options.file,
        &options.dialect,
        &options.missing,
        &options.leave_out,
    )?;
    // One share for each column, and one for the number of records.
    let shares = columns.len() as u64 + 1;
    let share = draft_budget.share(shares)?;
    let noise = CountNoise::of(share)?;
    draft_budget.pay(noise.rho()?)?;
    let records = columns.first().map_or(0, |column| count(column.records()));
    let common = Common {
        options,
        records: records.saturating_add(noise.sample(rng)),
        share,
        delta: options.delta / 2.0 / columns.len().max(1) as f64,
    };
    let (mut forms, mut notes) = (Vec::new(), Vec::new());
    if budget::is_guess(&budget::selection(share.share(8))?, common.records) {
        return Err(Error::Guess {
            epsilon: options.epsilon,
            records: common.records.max(0),
            columns: columns.len(),
            enough: budget::enough(shares, common.records, options.delta / 2.0)?,
            spent: draft_budget.spent(),
        });
    }
    for column in &columns {
        let (form, text) = draft_column(column, &common, &mut draft_budget, rng)?;
        forms.push(Value::Object(form));
        notes.push(Note {
            column: column.name.clone(),
            text,
        });
    }
    let schema = schema(&forms, options, draft_budget.spent())?;
    Ok(PrivateDraft {
        schema,
        notes,
        spent: draft_budget.spent(),
        budget: draft_budget.budget(),
    })
}

/// Converts a number of records to the integer type that noise is added to.
pub(crate) fn count(records: u64) -> i64 {
    i64::try_from(records).unwrap_or(i64::MAX)
}

fn draft_column(
    column: &TextCounts,
    common: &Common<'_>,
    draft_budget: &mut DraftBudget,
    rng: &mut (impl RngCore + ?Sized),
) -> Result<Drafted, Error> {
    let reading = choose(column, common, draft_budget, rng)?;
    let (mut form, note) = match &reading {
        TextReading::Number(style) => numbers::form(column, style, common, draft_budget, rng)?,
        TextReading::Time(chosen) => times::form(column, chosen, common, draft_budget, rng)?,
        TextReading::Text => texts::form(column, common, draft_budget, rng)?,
    };
    form.insert("name".to_owned(), column.name.clone().into());
    // The budget pays for no look at missing values, so every column is nullable.
    if form.get("kind") != Some(&Value::from("left-out")) {
        form.insert("nullable".to_owned(), true.into());
    }
    Ok((form, note))
}

fn schema(columns: &[Value], options: &DraftOptions, spent: Rho) -> Result<Schema, Error> {
    let claim = Claim {
        epsilon: options.epsilon,
        delta: options.delta,
        rho: spent.count(),
    };
    let mut form = json!({"name": options.name, "columns": columns, "claim": claim});
    if let (Some(target), Some(form)) = (&options.target, form.as_object_mut()) {
        form.insert("target".to_owned(), target.clone().into());
    }
    let text = form.to_string();
    Ok(Schema::from_json(&options.file, text.as_bytes())?)
}
