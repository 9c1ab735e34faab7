//! Drafts of schemas, made from a table for its holder to correct and confirm.
//!
//! A schema is public, but facts from private records are not. A column's smallest and largest value, or a category that
//! only one person has, reveal something about the records. Therefore a draft is never made automatically, it lists only
//! values that many records share, and the holder reviews it before it is used.

use std::{collections::HashSet, io::Read};

use fhaim_domain::{
    Error, HeaderProblem, MAX_COLUMNS, Problems, Schema, SchemaForm, TableRecords, form::ColumnForm,
};

use crate::draft::{ColumnDraft, Draft};
use crate::kinds;
use crate::options::InferOptions;
use crate::profile::Profile;
use crate::relations::order::Order;

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
    let (schema, columns) = draft(&names, &look, options)?;
    Ok(Draft {
        schema,
        records: records.row(),
        remarks: Vec::new(),
        columns,
        rules: Vec::new(),
    })
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
struct Look {
    profiles: Vec<Profile>,
    /// The first records, until the columns of dates are known.
    first: Vec<Vec<String>>,
    first_bytes: usize,
    order: Option<Order>,
}

impl Look {
    fn new(columns: usize, options: &InferOptions) -> Self {
        Self {
            profiles: (0..columns)
                .map(|_| Profile::new(&options.missing))
                .collect(),
            first: Vec::new(),
            first_bytes: 0,
            order: None,
        }
    }

    fn see<'r>(&mut self, row: u64, bytes: impl Fn(usize) -> &'r [u8]) {
        let text = |column| std::str::from_utf8(bytes(column));
        for (column, profile) in self.profiles.iter_mut().enumerate() {
            match text(column) {
                Ok(text) => profile.see(text, row),
                Err(_) => profile.see_bad_bytes(row),
            }
        }
        match &mut self.order {
            Some(order) => order.see(|column| text(column).unwrap_or("")),
            None => {
                let texts =
                    (0..self.profiles.len()).map(|column| text(column).unwrap_or("").to_owned());
                let texts: Vec<String> = texts.collect();
                self.first_bytes += texts.iter().map(String::len).sum::<usize>();
                self.first.push(texts);
                if self.first.len() >= WARM_UP || self.first_bytes >= MAX_WARM_UP_BYTES {
                    self.warm_up();
                }
            }
        }
    }

    /// Finds the columns of dates among the first records, and looks at their order.
    fn warm_up(&mut self) {
        if self.order.is_some() {
            return;
        }
        let columns = self.profiles.iter().enumerate();
        let formats = columns.flat_map(|(column, profile)| {
            let formats = profile.likely_dates().into_iter();
            formats.map(move |(text, format)| (column, text, format))
        });
        let mut order = Order::of(formats);
        for texts in std::mem::take(&mut self.first) {
            order.see(|column| texts.get(column).map_or("", String::as_str));
        }
        self.order = Some(order);
    }
}

fn draft(
    names: &[&str],
    look: &Look,
    options: &InferOptions,
) -> Result<(Schema, Vec<ColumnDraft>), Error> {
    let columns = names.iter().zip(&look.profiles);
    let decided = columns.map(|(name, profile)| kinds::decide(name, profile, options));
    let mut decided: Vec<kinds::Decided> = decided.collect();
    if let Some(order) = &look.order {
        kinds::relate(order, &mut decided, options);
    }
    let (forms, about): (Vec<ColumnForm>, Vec<ColumnDraft>) =
        decided.into_iter().map(kinds::Decided::parts).unzip();
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
    Ok((schema, about))
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
