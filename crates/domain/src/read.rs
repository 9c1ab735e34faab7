//! Strict reading of CSV into codes.

use std::{
    collections::{HashMap, HashSet},
    io::Read,
    sync::Arc,
};

use crate::{
    Error, Field, HeaderProblem, RawColumn, Schema, Table,
    derived_values::DerivedColumn,
    encode::{Encoder, Moments},
    field::Meaning,
    names::cut,
    near_unique::{ListCounts, NearUniqueList},
    options::{Adjusted, BrokenConstraint, NearUnique, ReadOptions, UnlistedColumn},
    records::TableRecords,
    table_problems::Problems,
};

/// A table, with the changes and findings of reading it.
#[derive(Clone, Debug, PartialEq)]
pub struct TableReading {
    /// The table.
    pub table: Table,
    /// Changes and counts by attribute. Those of a field with several attributes are at its first.
    pub adjusted: Vec<Adjusted>,
    /// Columns of the file that were left out.
    pub left_out: Vec<String>,
    /// Number of records that break each rule, in the order of [`Schema::rules`]. Private: these are counts of
    /// records.
    pub broken: Vec<u64>,
    /// Columns whose list is near-unique in the table.
    pub near_unique: Vec<NearUniqueList>,
    /// Original values by field, if [`ReadOptions::keep_values`] is set. Private: this is the table itself.
    pub values: Vec<RawColumn>,
}

/// Reads a CSV table with a header, record by record. Columns may be in any order. Categories must match exactly;
/// numbers may have spaces around them.
///
/// # Errors
/// A header that does not fit the schema, a record with more or fewer fields than the header, a cell that the schema
/// does not allow, no records or too many, or a failed read of `input`. Errors name file, row (counted from 1, without
/// the header), line and column. The table is read to its end: several problems are one [`Error::Problems`].
pub fn read_csv(
    schema: impl Into<Arc<Schema>>,
    input: impl Read,
    options: &ReadOptions,
) -> Result<TableReading, Error> {
    read_csv_watched(schema, input, options, |_| ())
}

/// Like [`read_csv`], and shows each record to `watch` as the file has it.
///
/// # Errors
/// The errors of [`read_csv`], possibly after `watch` has seen records.
pub fn read_csv_watched<R: Read>(
    schema: impl Into<Arc<Schema>>,
    input: R,
    options: &ReadOptions,
    mut watch: impl FnMut(&TableRecords<R>),
) -> Result<TableReading, Error> {
    let schema = schema.into();
    let mut rows = Rows::open(&schema, input, options)?;
    let mut columns = vec![Vec::new(); schema.columns().len()];
    while rows.advance(&mut columns)? {
        watch(&rows.records);
    }
    let near_unique = rows.finish()?;
    let Rows {
        left_out,
        adjusted,
        broken,
        encoders,
        ..
    } = rows;
    let values = encoders
        .into_iter()
        .filter_map(Encoder::into_values)
        .collect();
    Ok(TableReading {
        table: Table::new(schema, columns)?,
        adjusted,
        left_out,
        broken,
        near_unique,
        values,
    })
}

/// Number of records that [`stream_csv`] holds and passes on at a time, at most.
pub const STREAMED_RECORDS: usize = 4096;

/// Changes and findings of streaming a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Streaming {
    /// Number of records of the table.
    pub records: u64,
    /// The same as [`TableReading::adjusted`].
    pub adjusted: Vec<Adjusted>,
    /// The same as [`TableReading::left_out`].
    pub left_out: Vec<String>,
    /// The same as [`TableReading::broken`].
    pub broken: Vec<u64>,
    /// The same as [`TableReading::near_unique`].
    pub near_unique: Vec<NearUniqueList>,
}

/// Reads a CSV table as [`read_csv`] does, in one pass and in memory that does not depend on the table's length. Passes
/// the codes of at most [`STREAMED_RECORDS`] records at a time to `take`, one list per attribute, in the order of the
/// file. Original values are not kept.
///
/// # Errors
/// The errors of [`read_csv`], possibly after `take` has received records, and the errors of `take`.
pub fn stream_csv<E: From<Error>>(
    schema: &Schema,
    input: impl Read,
    options: &ReadOptions,
    take: impl FnMut(&[Vec<u32>]) -> Result<(), E>,
) -> Result<Streaming, E> {
    stream_csv_watched(schema, input, options, |_| (), take)
}

/// Like [`stream_csv`], and shows each record to `watch` as the file has it.
///
/// # Errors
/// The errors of [`stream_csv`], possibly after `watch` has seen records.
pub fn stream_csv_watched<R: Read, E: From<Error>>(
    schema: &Schema,
    input: R,
    options: &ReadOptions,
    mut watch: impl FnMut(&TableRecords<R>),
    mut take: impl FnMut(&[Vec<u32>]) -> Result<(), E>,
) -> Result<Streaming, E> {
    let options = ReadOptions {
        keep_values: false,
        ..options.clone()
    };
    let mut rows = Rows::open(schema, input, &options)?;
    let list = || Vec::with_capacity(STREAMED_RECORDS);
    let mut columns: Vec<Vec<u32>> = schema.columns().iter().map(|_| list()).collect();
    let mut held = 0;
    while rows.advance(&mut columns)? {
        watch(&rows.records);
        if rows.problems.any() {
            continue;
        }
        held += 1;
        if held == STREAMED_RECORDS {
            take(&columns)?;
            columns.iter_mut().for_each(Vec::clear);
            held = 0;
        }
    }
    let near_unique = rows.finish()?;
    if held > 0 {
        take(&columns)?;
    }
    Ok(Streaming {
        records: rows.records.row(),
        adjusted: rows.adjusted,
        left_out: rows.left_out,
        broken: rows.broken,
        near_unique,
    })
}

/// A table that is being read, a record at a time.
struct Rows<'a, R> {
    records: TableRecords<R>,
    encoders: Vec<Encoder<'a>>,
    derived: Vec<DerivedColumn<'a>>,
    moments: Moments,
    adjusted: Vec<Adjusted>,
    left_out: Vec<String>,
    broken: Vec<u64>,
    lists: ListCounts,
    problems: Problems,
    /// Whether the file has every column that is read.
    is_whole: bool,
    schema: &'a Schema,
    options: &'a ReadOptions,
}

impl<'a, R: Read> Rows<'a, R> {
    /// Reads the header.
    fn open(schema: &'a Schema, input: R, options: &'a ReadOptions) -> Result<Self, Error> {
        let records = TableRecords::open(&options.file, &options.dialect, input)?;
        let mut problems = Problems::of(&options.file);
        let places = match_header(schema, &records, options, &mut problems);
        let derived = DerivedColumn::all(schema, &places, &options.missing);
        let rules = schema.constraints().len() + schema.derivations.len();
        let encoders = (schema.fields().iter().zip(places))
            .filter_map(|(field, place)| Encoder::new(schema, field, place?, options));
        Ok(Self {
            encoders: encoders.collect(),
            moments: Moments::of(schema),
            adjusted: vec![Adjusted::default(); schema.columns().len()],
            left_out: unlisted(schema, records.header()),
            derived,
            broken: vec![0; rules],
            lists: ListCounts::of(schema),
            is_whole: !problems.any(),
            problems,
            schema,
            records,
            options,
        })
    }

    /// Adds the codes of the next record to `columns`. Returns false at the end. Once the table has a problem, it is
    /// only read to find more of them, and `columns` has at most one record.
    fn advance(&mut self, columns: &mut [Vec<u32>]) -> Result<bool, Error> {
        if self.problems.any() {
            columns.iter_mut().for_each(Vec::clear);
        }
        match self.records.advance() {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => {
                self.problems.add_record(error)?;
                return Ok(true);
            }
        }
        if self.records.row() > self.options.max_records as u64 {
            self.problems.add_record(Error::Records {
                file: self.options.file.clone(),
                limit: self.options.max_records,
            })?;
        }
        if self.encode(columns) {
            self.lists
                .add(&|attribute| columns.get(attribute)?.last().copied());
            if self.is_whole {
                self.hold_to_rules(columns);
            }
        }
        Ok(true)
    }

    /// Adds the codes of the record to `columns`, and its problems to the table's. Returns whether every field has its
    /// codes.
    fn encode(&mut self, columns: &mut [Vec<u32>]) -> bool {
        let mut is_complete = true;
        self.moments.clear();
        for encoder in &mut self.encoders {
            let place = encoder.place;
            let cell = self.records.bytes(place);
            let encoded = encoder.encode(cell, &mut self.moments, columns, &mut self.adjusted);
            if let Err(problem) = encoded {
                let error = self.records.refuse(place, problem);
                self.problems.add_cell(place, error);
                is_complete = false;
            }
        }
        is_complete
    }

    /// Rejects or counts the constraints that the last record breaks, and the derived columns that do not follow in it.
    fn hold_to_rules(&mut self, columns: &[Vec<u32>]) {
        // Every column has the record's code by now.
        let code = |attribute: usize| {
            let codes = columns.get(attribute).and_then(|codes| codes.last());
            codes.copied().unwrap_or(0)
        };
        let numbers = self.moments.numbers();
        let mut broken = numbers.map_or_else(Vec::new, |numbers| {
            self.schema.broken(&code, numbers, self.moments.readings())
        });
        let first = self.schema.constraints().len();
        for (derived, rule) in self.derived.iter().zip(first..) {
            if !derived.holds(|place| self.records.bytes(place), &code) {
                broken.push(rule);
            }
        }
        for rule in broken {
            if self.options.broken == BrokenConstraint::Refuse {
                let text = self.schema.rule(rule).map(|rule| rule.text);
                let error = self.records.refuse_record(text.unwrap_or_default());
                self.problems.add_constraint(rule, error);
            } else if let Some(count) = self.broken.get_mut(rule) {
                *count += 1;
            }
        }
    }

    /// Refuses the table if it has problems or no records. Returns its near-unique lists.
    fn finish(&mut self) -> Result<Vec<NearUniqueList>, Error> {
        let file = &self.options.file;
        let near_unique = self.lists.near_unique(self.schema);
        if self.options.near_unique == NearUnique::Refuse {
            for list in &near_unique {
                self.problems.add(Error::NearUnique {
                    file: file.clone(),
                    column: list.column.clone(),
                    values: list.values,
                });
            }
        }
        self.problems.refuse()?;
        if self.records.row() == 0 {
            return Err(Error::Empty { file: file.clone() });
        }
        Ok(near_unique)
    }
}

/// Returns the place of each field in the file, or `None` for a field that is not read. Adds missing and unlisted
/// columns to the table's problems.
fn match_header<R: Read>(
    schema: &Schema,
    records: &TableRecords<R>,
    options: &ReadOptions,
    problems: &mut Problems,
) -> Vec<Option<usize>> {
    let header = records.header();
    let position: HashMap<&str, usize> = (header.iter().map(String::as_str)).zip(0..).collect();
    let sources: HashSet<usize> = schema.derivations.iter().map(|one| one.from).collect();
    let mut places = Vec::with_capacity(schema.fields().len());
    for (index, field) in schema.fields().iter().enumerate() {
        // A synthetic table lacks left-out fields, and may lack identifiers that no other field follows from.
        let read = match field.meaning {
            Meaning::LeftOut => false,
            Meaning::Identifier(_) => sources.contains(&index),
            _ => true,
        };
        let place = position.get(field.name()).copied().filter(|_| read);
        if read && place.is_none() {
            let problem = HeaderProblem::Missing(cut(field.name()));
            problems.add(records.refuse_header(problem));
        }
        places.push(place);
    }
    if options.unlisted == UnlistedColumn::Refuse {
        for name in unlisted(schema, header) {
            problems.add(records.refuse_header(HeaderProblem::Unlisted(cut(&name))));
        }
    }
    places
}

fn unlisted(schema: &Schema, header: &[String]) -> Vec<String> {
    let known: HashSet<&str> = schema.fields().iter().map(Field::name).collect();
    let unlisted = header.iter().filter(|name| !known.contains(name.as_str()));
    unlisted.cloned().collect()
}
