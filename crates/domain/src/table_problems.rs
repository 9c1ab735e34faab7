//! The problems of a table, collected while it is read to its end.

use std::{
    collections::HashMap,
    error::Error as StdError,
    fmt::{self, Display, Formatter},
    mem::{Discriminant, discriminant},
};

use crate::{CellProblem, Error, counted};

/// Number of places that are named for each kind of problem.
const MAX_PLACES: usize = 3;

/// Number of kinds of problems that are displayed.
const MAX_LINES: usize = 20;

/// Several problems of one table, by column and kind. Displayed in at most 22 lines: for each kind, the first cell, up
/// to three places and the number of occurrences. Like [`Error`], it quotes cells, and is for the holder of the table
/// only.
#[derive(Debug)]
pub struct TableProblems {
    file: String,
    kinds: Vec<ProblemKind>,
}

/// A kind of problem in one column.
#[derive(Debug)]
struct ProblemKind {
    first: Error,
    /// Rows and lines of the next occurrences.
    again: Vec<(u64, u64)>,
    count: u64,
}

impl TableProblems {
    /// The first error of each kind, in the order of the file.
    pub fn errors(&self) -> impl Iterator<Item = &Error> {
        self.kinds.iter().map(|kind| &kind.first)
    }
}

impl StdError for TableProblems {}

impl Display for TableProblems {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if let [kind] = self.kinds.as_slice() {
            return kind.fmt(out);
        }
        let kinds = counted(self.kinds.len(), "kind");
        write!(out, "{}: the table has {kinds} of problems:", self.file)?;
        let file = format!("{}: ", self.file);
        for kind in self.kinds.iter().take(MAX_LINES) {
            let text = kind.to_string();
            let text = text.strip_prefix(&file).unwrap_or(&text);
            write!(out, "\n  {text}")?;
        }
        match self.kinds.len().saturating_sub(MAX_LINES) {
            0 => Ok(()),
            more => write!(out, "\n  and {} of problems", counted(more, "more kind")),
        }
    }
}

impl Display for ProblemKind {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.first.fmt(out)?;
        let places = self.again.iter();
        let places: Vec<String> = places
            .map(|(row, line)| format!("row {row} (line {line})"))
            .collect();
        if places.is_empty() {
            return Ok(());
        }
        write!(out, "; again in {}", places.join(" and "))?;
        if self.count > MAX_PLACES as u64 {
            write!(out, ", {} times in all", self.count)?;
        }
        Ok(())
    }
}

/// What makes two problems of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Cell(usize, Discriminant<CellProblem>),
    Constraint(usize),
    /// Problems of whole records, by their error and number of fields.
    Record(Discriminant<Error>, usize),
}

/// Collects the problems of a table. Its memory depends on the number of columns and constraints, not on the number of
/// records.
pub struct Problems {
    file: String,
    kinds: Vec<ProblemKind>,
    places: HashMap<Key, usize>,
}

impl Problems {
    /// Creates an empty collection for a table of this name.
    pub fn of(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            kinds: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// Returns whether the table is refused.
    pub fn any(&self) -> bool {
        !self.kinds.is_empty()
    }

    /// Adds a problem that has no place, or only one.
    pub(crate) fn add(&mut self, error: Error) {
        self.kinds.push(ProblemKind {
            first: error,
            again: Vec::new(),
            count: 1,
        });
    }

    /// Adds a problem with a cell of the file's column `column`.
    pub(crate) fn add_cell(&mut self, column: usize, error: Error) {
        match &error {
            Error::Cell { problem, .. } => {
                self.add_with(Key::Cell(column, discriminant(problem)), error);
            }
            _ => self.add(error),
        }
    }

    /// Adds a violation of the schema's constraint `constraint`.
    pub(crate) fn add_constraint(&mut self, constraint: usize, error: Error) {
        self.add_with(Key::Constraint(constraint), error);
    }

    /// Adds a problem with a whole record, after which reading can continue.
    ///
    /// # Errors
    /// The table's problems, if reading cannot continue.
    pub fn add_record(&mut self, error: Error) -> Result<(), Error> {
        match &error {
            Error::Ragged { .. } | Error::Blank { .. } => {
                let found = match &error {
                    Error::Ragged { found, .. } => *found,
                    _ => 0,
                };
                self.add_with(Key::Record(discriminant(&error), found), error);
                Ok(())
            }
            _ => {
                self.add(error);
                self.refuse()
            }
        }
    }

    fn add_with(&mut self, key: Key, error: Error) {
        let known = self.places.get(&key);
        let Some(kind) = known.and_then(|&place| self.kinds.get_mut(place)) else {
            self.places.insert(key, self.kinds.len());
            return self.add(error);
        };
        kind.count += 1;
        if kind.again.len() + 1 < MAX_PLACES {
            kind.again.extend(place(&error));
        }
    }

    /// Refuses the table if it has problems.
    ///
    /// # Errors
    /// The only problem, or [`Error::Problems`]. The collection is empty afterwards.
    pub fn refuse(&mut self) -> Result<(), Error> {
        let mut kinds = std::mem::take(&mut self.kinds);
        self.places.clear();
        match kinds.pop() {
            None => Ok(()),
            Some(kind) if kinds.is_empty() && kind.count == 1 => Err(kind.first),
            Some(last) => {
                kinds.push(last);
                Err(Error::Problems(Box::new(TableProblems {
                    file: self.file.clone(),
                    kinds,
                })))
            }
        }
    }
}

/// Row and line of a problem.
fn place(error: &Error) -> Option<(u64, u64)> {
    match error {
        Error::Cell { row, line, .. }
        | Error::Ragged { row, line, .. }
        | Error::Constraint { row, line, .. }
        | Error::Blank { row, line, .. } => Some((*row, *line)),
        _ => None,
    }
}
