//! The problems of a table, collected while it is read to its end.

use std::{
    collections::HashMap,
    mem::{Discriminant, discriminant},
};

use crate::{
    CellProblem, Error, TableProblems,
    error::{MAX_PLACES, ProblemKind},
};

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
                if let Error::Total { row, .. } = &error {
                    self.forget(*row);
                }
                self.add(error);
                self.refuse()
            }
        }
    }

    /// Drops the problems of a row that is no record, before the table is refused.
    fn forget(&mut self, row: u64) {
        let is_row = |place: Option<(u64, u64)>| place.is_some_and(|(found, _)| found == row);
        self.kinds
            .retain(|kind| kind.count > 1 || !is_row(place(&kind.first)));
        for kind in &mut self.kinds {
            if is_row(kind.again.last().copied()) {
                kind.again.pop();
                kind.count -= 1;
            }
        }
        self.places.clear();
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
