//! Drafts of schemas, made from a table for its holder to correct and confirm.
//!
//! A schema is public, but facts from private records are not. A column's smallest and largest value, or a category that
//! only one person has, reveal something about the records. Therefore a draft is never made automatically, it lists only
//! values that many records share, and the holder reviews it before it is used.

use std::{
    collections::{BTreeMap, HashSet},
    io::Read,
};

use fhaim_domain::{
    Error, HeaderProblem, MAX_COLUMNS, Problems, Schema, SchemaForm, TableRecords,
    form::{ColumnForm, KindForm},
};

use crate::draft::{ColumnDraft, Draft};
use crate::kinds;
use crate::options::InferOptions;
use crate::profile::{Cell, Profile};
use crate::relations::{Drafted, Record, Relations, order::Order, valid::valid};

/// Number of records after which the columns of dates are known well enough to look at their order.
const WARM_UP: usize = 1_000;

/// Maximum size of the records that are kept for that, in bytes.
const MAX_WARM_UP_BYTES: usize = 8 << 20;

/// Drafts a schema from a CSV table, in one pass and in bounded memory.
///
/// - Numbers become bins with digits and limits that are rounded outward, or categories if there are few different ones.
/// - Dates and times keep their kind, later ones relative to earlier ones.
/// - Texts become categories, codes or identifiers.
/// - Other columns are left out, with the reason.
///
/// # Errors
/// A broken CSV file (as in [`fhaim_domain::read_csv`]), a named column that the table does not have, no records, or no
/// column left.
pub fn infer_schema(input: impl Read, options: &InferOptions) -> Result<Draft, Error> {
    let mut records = TableRecords::open(&options.file, &options.dialect, input)?;
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
    let mut look = Look::new(kept.len(), options);
    let mut problems = Problems::of(&options.file);
    loop {
        match records.advance() {
            Ok(true) => look.see(records.row(), |column| records.bytes(kept[column])),
            Ok(false) => break,
            Err(error) => problems.add_record(error)?,
        }
    }
    problems.refuse()?;
    if records.row() == 0 {
        return Err(Error::Empty {
            file: options.file.clone(),
        });
    }
    look.warm_up();
    look.profiles.iter_mut().for_each(Profile::finish);
    let names: Vec<&str> = kept
        .iter()
        .map(|&field| records.header()[field].as_str())
        .collect();
    draft(&names, &look, options)
}

fn check_named_columns(header: &[String], options: &InferOptions) -> Result<(), Error> {
    let named = options.leave_out.iter().chain(&options.target);
    let named = named
        .chain(options.kinds.keys())
        .chain(options.code_books.keys());
    let missing = named.filter(|name| !header.contains(name));
    Error::no_such_columns(&options.file, missing)
}

/// Statistics that are collected while the records are read.
struct Look<'o> {
    options: &'o InferOptions,
    profiles: Vec<Profile>,
    /// The first records, until the columns of dates are known.
    first: Vec<First>,
    first_bytes: usize,
    order: Option<Order>,
    relations: Option<Relations>,
}

/// One of the first records, by column.
struct First {
    texts: Vec<String>,
    cells: Vec<Cell>,
}

impl<'o> Look<'o> {
    fn new(columns: usize, options: &'o InferOptions) -> Self {
        Self {
            options,
            profiles: (0..columns)
                .map(|_| Profile::new(&options.missing))
                .collect(),
            first: Vec::new(),
            first_bytes: 0,
            order: None,
            relations: None,
        }
    }

    fn see<'r>(&mut self, row: u64, bytes: impl Fn(usize) -> &'r [u8]) {
        let columns = self.profiles.len();
        let (mut texts, mut cells) = (Vec::with_capacity(columns), Vec::with_capacity(columns));
        for (column, profile) in self.profiles.iter_mut().enumerate() {
            let text = std::str::from_utf8(bytes(column));
            texts.push(text.unwrap_or(""));
            cells.push(match text {
                Ok(text) => profile.see(text, row),
                Err(_) => profile.see_bad_bytes(row),
            });
        }
        if self.relations.is_some() {
            self.relate(&texts, &cells);
            return;
        }
        let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        self.first_bytes += texts.iter().map(String::len).sum::<usize>();
        self.first.push(First { texts, cells });
        if self.first.len() >= WARM_UP || self.first_bytes >= MAX_WARM_UP_BYTES {
            self.warm_up();
        }
    }

    /// Looks at the relations between the columns of a record.
    fn relate(&mut self, texts: &[&str], cells: &[Cell]) {
        if let Some(order) = &mut self.order {
            order.see(|column| texts.get(column).copied().unwrap_or(""));
        }
        if let Some(relations) = &mut self.relations {
            relations.see(&Record { texts, cells });
        }
    }

    /// Finds the columns of dates among the first records, and looks at the relations between the columns of these
    /// records.
    fn warm_up(&mut self) {
        if self.relations.is_some() {
            return;
        }
        let columns = self.profiles.iter().enumerate();
        let formats = columns.flat_map(|(column, profile)| {
            let formats = profile.likely_dates().into_iter();
            formats.map(move |dates| (column, dates))
        });
        self.order = Some(Order::of(formats));
        let first = std::mem::take(&mut self.first);
        let (texts, cells): (Vec<Vec<String>>, Vec<Vec<Cell>>) = first
            .into_iter()
            .map(|record| (record.texts, record.cells))
            .unzip();
        self.relations = Some(Relations::new(&self.profiles, &cells, self.options));
        for (texts, cells) in texts.iter().zip(&cells) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            self.relate(&texts, cells);
        }
    }
}

fn draft(names: &[&str], look: &Look<'_>, options: &InferOptions) -> Result<Draft, Error> {
    let columns = names.iter().zip(&look.profiles);
    let last_year = look.profiles.iter().filter_map(kinds::last_year).max();
    let decided = columns.map(|(name, profile)| kinds::decide(name, profile, last_year, options));
    let mut decided: Vec<kinds::Decided> = decided.collect();
    if let Some(relations) = &look.relations {
        take_numbers(relations, &mut decided, look, options);
    }
    if let Some(order) = &look.order {
        kinds::relate(order, &mut decided, options);
    }
    let (forms, about): (Vec<ColumnForm>, Vec<ColumnDraft>) =
        decided.into_iter().map(kinds::Decided::parts).unzip();
    let drafted = Drafted {
        forms: &forms,
        profiles: &look.profiles,
        order: look.order.as_ref(),
        options,
    };
    let relations = look.relations.as_ref();
    let rules = relations.map(|relations| relations.propose(&drafted));
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
    let rules = valid(&schema, rules.unwrap_or_default());
    Ok(Draft {
        drafted: SchemaForm::from(schema.clone()).columns,
        schema,
        records: look.profiles.first().map_or(0, |profile| profile.records),
        remarks: Vec::new(),
        columns: about,
        rules,
    })
}

/// Turns categories into numbers where a sum or an age depends on them.
fn take_numbers(
    relations: &Relations,
    decided: &mut [kinds::Decided],
    look: &Look<'_>,
    options: &InferOptions,
) {
    let mut numbers: BTreeMap<usize, kinds::Decided> = BTreeMap::new();
    for (column, (own, profile)) in decided.iter().zip(&look.profiles).enumerate() {
        if own.form.kind == KindForm::Categorical {
            let number = kinds::as_number(&own.form.name, profile, options);
            numbers.extend(number.map(|number| (column, number)));
        }
    }
    let may_be = |column: usize| {
        let own = decided.get(column);
        let is_number = own.is_some_and(|own| own.form.kind == KindForm::Number);
        is_number || numbers.contains_key(&column)
    };
    for column in relations.numbers(may_be) {
        if let (Some(own), Some(number)) = (decided.get_mut(column), numbers.remove(&column)) {
            *own = number;
        }
    }
}

/// Returns the codes of a code book: the first field of each line, without blanks around it. Empty lines are skipped.
pub fn code_book(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let code = |line: &str| {
        let field = line.split([',', ';', '\t']).next().unwrap_or("");
        field.trim().trim_matches('"').to_owned()
    };
    let codes = text.trim_start_matches('\u{feff}').lines().map(code);
    codes
        .filter(|code| !code.is_empty() && seen.insert(code.clone()))
        .collect()
}
