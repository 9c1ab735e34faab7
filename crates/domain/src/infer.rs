//! A first draft of a schema, read off a table for the holder to correct and confirm.
//!
//! A schema is public, and what is read off private records is not: the smallest and largest
//! value of a column, or a category that one person has, says something about them. So this
//! never runs by itself, and what it drafts is the holder's to judge before it is used.

use std::{collections::HashSet, fmt, io::Read};

use crate::{
    Binning, BinningProblem, Error, HeaderProblem, MAX_COLUMNS, Schema,
    read::{is_missing, parse_number},
    records::Records,
    schema::{ColumnForm, KindForm, SchemaForm},
};

/// What the holder must be told with every draft.
pub const DRAFT_STATEMENT: &str = "This is a draft. Its categories and limits were read off the \
records, so they may tell something about a person in them. A schema is public and must not \
depend on the records. Correct it from public knowledge (the questionnaire, the code book, the \
physical range of a measurement), remove what only the records could have told, and confirm that \
it may be public before you use it.";

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
    /// Fields that stand for a missing value.
    pub missing: Vec<String>,
    /// Columns to leave out.
    pub leave_out: Vec<String>,
    /// Most categories of a column of texts.
    pub max_categories: usize,
    /// Most different numbers of a column that is taken for categorical.
    pub max_number_categories: usize,
    /// Bins of a numeric column (fewer where it has fewer integers).
    pub bins: u32,
}

impl InferOptions {
    /// Commas; only an empty field is missing; up to 100 categories, up to 10 different numbers
    /// as categories, 10 bins. `file` is named in errors.
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
    /// What to look at, column by column.
    pub notes: Vec<Note>,
}

impl Draft {
    /// What the holder must be told with the draft: [`DRAFT_STATEMENT`].
    pub fn statement(&self) -> &'static str {
        DRAFT_STATEMENT
    }
}

/// Something for the holder to look at in a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Name of the column.
    pub column: String,
    /// What to look at, as a sentence.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "column {:?}: {}", self.column, self.text)
    }
}

/// Why a column cannot be drafted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InferProblem {
    /// Every value is missing.
    #[error("column {0:?} has no values: leave it out")]
    NoValues(String),
    /// Too many different texts: names, identifiers, addresses.
    #[error(
        "column {column:?} has more than {limit} different texts, as identifiers and free text \
         have: leave it out, or recode it into few categories"
    )]
    TooManyTexts {
        /// Name of the column.
        column: String,
        /// The bound.
        limit: usize,
    },
    /// A column asked to be left out, or the target, is not there.
    #[error("there is no column {0:?}")]
    NoColumn(String),
    /// Numbers that no bins can hold.
    #[error("column {column:?}: {problem}")]
    Binning {
        /// Name of the column.
        column: String,
        /// What is wrong.
        problem: BinningProblem,
    },
}

/// Drafts a schema from a CSV table. Numbers become numeric columns with limits rounded
/// outward, or categories where there are few different ones; texts become categories, sorted.
///
/// # Errors
/// A column whose texts are too many or which has no value (all such columns are named in one
/// error), a broken CSV file (as in [`crate::read_csv`]), no records.
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
    let limit = options.max_categories.max(options.max_number_categories);
    let mut profiles: Vec<Profile> = kept.iter().map(|_| Profile::new(limit)).collect();
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
    let problems: Vec<InferProblem> = options
        .leave_out
        .iter()
        .chain(&options.target)
        .filter(|name| !header.contains(name))
        .map(|name| InferProblem::NoColumn(name.clone()))
        .collect();
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::Infer {
        file: options.file.clone(),
        problems,
    })
}

fn draft<'a>(
    columns: impl Iterator<Item = (&'a str, &'a Profile)>,
    options: &InferOptions,
) -> Result<Draft, Error> {
    let (mut forms, mut notes, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for (name, profile) in columns {
        match profile.form(name, options) {
            Ok((form, text)) => {
                forms.push(form);
                notes.extend(text.map(|text| Note {
                    column: name.to_owned(),
                    text,
                }));
            }
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(Error::Infer {
            file: options.file.clone(),
            problems,
        });
    }
    let form = SchemaForm {
        name: options.name.clone(),
        source: None,
        target: options.target.clone(),
        columns: forms,
    };
    let schema = Schema::try_from(form).map_err(|problem| Error::Schema {
        file: options.file.clone(),
        problem,
    })?;
    Ok(Draft { schema, notes })
}

/// These texts often stand for a missing value.
const MISSING_LOOKALIKES: [&str; 12] = [
    "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "none", "-", ".",
];

/// What is remembered of a column while it is read.
struct Profile {
    /// Different texts seen, up to one more than `limit`.
    texts: HashSet<String>,
    limit: usize,
    missing: bool,
    /// Whether every value so far is a number, and every one an integer.
    numbers: bool,
    integers: bool,
    min: f64,
    max: f64,
    /// The last number, and whether each was one more than the one before.
    last: Option<f64>,
    counting: bool,
}

impl Profile {
    fn new(limit: usize) -> Self {
        Self {
            texts: HashSet::new(),
            limit,
            missing: false,
            numbers: true,
            integers: true,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            last: None,
            counting: true,
        }
    }

    fn see(&mut self, text: &str, missing: &[String]) {
        if is_missing(text, missing) {
            self.missing = true;
            return;
        }
        if self.texts.len() <= self.limit && !self.texts.contains(text) {
            self.texts.insert(text.to_owned());
        }
        match parse_number(text).filter(|_| !is_padded(text)) {
            None => self.numbers = false,
            Some(value) => {
                self.integers &= value.fract() == 0.0;
                self.min = self.min.min(value);
                self.max = self.max.max(value);
                self.counting &= self.last.is_none_or(|last| value - last == 1.0);
                self.last = Some(value);
            }
        }
    }

    /// The column's form and, where there is something to look at, a sentence.
    fn form(
        &self,
        name: &str,
        options: &InferOptions,
    ) -> Result<(ColumnForm, Option<String>), InferProblem> {
        let column = || name.to_owned();
        if self.texts.is_empty() {
            return Err(InferProblem::NoValues(column()));
        }
        let mut form = ColumnForm::empty(column(), self.missing);
        if self.numbers && !self.few_numbers(options) {
            let note = self.numeric(&mut form, options)?;
            return Ok((form, Some(note)));
        }
        if self.texts.len() > options.max_categories {
            let limit = options.max_categories;
            return Err(InferProblem::TooManyTexts {
                column: column(),
                limit,
            });
        }
        let note = self.missing_lookalike();
        form.kind = KindForm::Categorical;
        form.categories = Some(self.sorted_texts());
        Ok((form, note))
    }

    /// Whether a column of numbers is better taken for categorical: few different ones, each
    /// always written the same way.
    fn few_numbers(&self, options: &InferOptions) -> bool {
        if self.min >= self.max {
            return true;
        }
        let few = self.texts.len() <= options.max_number_categories;
        let values = || self.texts.iter().filter_map(|text| parse_number(text));
        // Adding zero makes the bits of -0 those of 0.
        few && values()
            .map(|value| (value + 0.0).to_bits())
            .collect::<HashSet<_>>()
            .len()
            == self.texts.len()
    }

    fn numeric(
        &self,
        form: &mut ColumnForm,
        options: &InferOptions,
    ) -> Result<String, InferProblem> {
        let (min, max) = round_outward(self.min, self.max, self.integers);
        let bins = u64::from(options.bins);
        let bins = if self.integers {
            bins.min((max - min) as u64 + 1)
        } else {
            bins
        };
        Binning::new(min, max, bins, self.integers).map_err(|problem| InferProblem::Binning {
            column: form.name.clone(),
            problem,
        })?;
        form.kind = KindForm::Numeric;
        form.min = Some(min);
        form.max = Some(max);
        form.bins = Some(bins);
        form.integer = self.integers.then_some(true);
        if self.counting {
            return Ok("it counts the rows: leave it out".to_owned());
        }
        Ok(format!(
            "the limits {min} and {max} were read off the records and rounded outward: put the \
             range that is publicly known"
        ))
    }

    fn missing_lookalike(&self) -> Option<String> {
        let found = MISSING_LOOKALIKES
            .iter()
            .find(|&&token| self.texts.contains(token))?;
        Some(format!(
            "if {found:?} stands for a missing value, say so and draft again"
        ))
    }

    /// Numbers by value, other texts by their characters.
    fn sorted_texts(&self) -> Vec<String> {
        let mut texts: Vec<String> = self.texts.iter().cloned().collect();
        texts.sort();
        if self.numbers {
            let value = |text: &String| parse_number(text).unwrap_or(f64::INFINITY);
            texts.sort_by(|one, two| value(one).total_cmp(&value(two)));
        }
        texts
    }
}

/// Whether a text of digits begins with a zero that a number would lose, as postal codes do.
fn is_padded(text: &str) -> bool {
    let text = text.trim();
    text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Limits that are multiples of 1, 2 or 5 times a power of ten near a tenth of the range, the
/// lower one at most `min` and the upper one at least `max`.
fn round_outward(min: f64, max: f64, integers: bool) -> (f64, f64) {
    let target = (max - min) / 10.0;
    let power = 10f64.powf(target.log10().floor());
    let factor = match target / power {
        ratio if ratio < 1.5 => 1.0,
        ratio if ratio < 3.5 => 2.0,
        ratio if ratio < 7.5 => 5.0,
        _ => 10.0,
    };
    let step = if integers {
        (factor * power).max(1.0).round()
    } else {
        factor * power
    };
    // Division by the inverse keeps decimals short: 3 * 0.1 is not 0.3, but 3 / 10 is.
    let multiple = |count: f64| {
        if step < 1.0 {
            count / (1.0 / step).round()
        } else {
            count * step
        }
    };
    let (low, high) = (
        multiple((min / step).floor()),
        multiple((max / step).ceil()),
    );
    (low.min(min), high.max(max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_rounded_outward() {
        assert_eq!(round_outward(0.0, 17.0, true), (0.0, 18.0));
        assert_eq!(round_outward(0.0, 199.0, true), (0.0, 200.0));
        assert_eq!(round_outward(0.0, 67.1, false), (0.0, 70.0));
        assert_eq!(round_outward(0.078, 2.42, false), (0.0, 2.6));
        assert_eq!(round_outward(21.0, 81.0, true), (20.0, 85.0));
        assert_eq!(round_outward(-0.31, 0.29, false), (-0.35, 0.3));
        assert_eq!(round_outward(3.0, 4.0, true), (3.0, 4.0));
    }

    #[test]
    fn padded_digits_are_not_numbers() {
        assert!(is_padded("01234"));
        assert!(!is_padded("0"));
        assert!(!is_padded("0.5"));
    }
}
