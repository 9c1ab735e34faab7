//! Columns whose text follows from the text of another column.
//!
//! A pair of columns is dropped at the first record that contradicts an earlier one. A column that has had one text
//! only follows from every column and is not looked at before it has a second.

use crate::profile::Cell;

/// Maximum number of different texts of a column that others may follow from: more than the codes of a drafted list.
const MAX_TEXTS: usize = 1 << 13;

/// Maximum number of remembered texts of all pairs of columns together (16 MiB).
const MAX_ENTRIES: usize = 1 << 21;

/// Maximum number of pairs of columns that are looked at after the first records: all pairs of 128 columns. Each costs
/// about a nanosecond in each record.
const MAX_PAIRS: usize = 1 << 14;

/// The columns that follow from others in the records so far.
#[derive(Debug)]
pub(crate) struct Follows {
    sources: Vec<Source>,
    /// By column: the cell of all records so far, if it is the same in all.
    constant: Vec<Option<Cell>>,
}

/// A column from which others may follow.
#[derive(Debug, Default)]
struct Source {
    /// By the place of a cell: whether it occurred.
    seen: Vec<bool>,
    followers: Vec<Follower>,
    is_dropped: bool,
}

/// A column that follows from a source so far.
#[derive(Debug)]
struct Follower {
    column: usize,
    /// By the place of the source's cell: the cell that goes with it.
    cells: Vec<Option<Cell>>,
}

impl Follower {
    /// Whether the cell is the one that went with the source's cell at `place` before, if any. Remembers it.
    fn fits(&mut self, place: usize, cell: Cell) -> bool {
        if self.cells.len() <= place {
            self.cells.resize(place + 1, None);
        }
        match self.cells.get_mut(place) {
            Some(Some(before)) => *before == cell,
            Some(free) => {
                *free = Some(cell);
                true
            }
            None => false,
        }
    }
}

impl Follows {
    /// Looks at the first records, which have the same columns.
    pub(crate) fn new(columns: usize, first: &[Vec<Cell>]) -> Self {
        let mut follows = Self {
            sources: (0..columns).map(|_| Source::default()).collect(),
            constant: first.first().map_or(vec![None; columns], |cells| {
                cells.iter().copied().map(Some).collect()
            }),
        };
        for cells in first {
            follows.note_cells(cells);
        }
        follows.limit_sources();
        for column in 0..columns {
            follows.add_source(column, first);
        }
        follows.limit_pairs();
        follows
    }

    /// Notes which cells occur, and which columns are constant.
    fn note_cells(&mut self, cells: &[Cell]) {
        for (source, &cell) in self.sources.iter_mut().zip(cells) {
            source.see(cell);
        }
        for (constant, cell) in self.constant.iter_mut().zip(cells) {
            *constant = constant.filter(|before| before == cell && *cell != Cell::Unknown);
        }
    }

    /// Drops columns with the most texts if the pairs of all columns need too much memory.
    fn limit_sources(&mut self) {
        let columns = self.sources.len();
        let mut by_texts: Vec<&mut Source> = self.sources.iter_mut().collect();
        by_texts.sort_by_key(|source| source.seen.len());
        let mut entries = 0usize;
        for source in by_texts {
            entries = entries.saturating_add(source.seen.len().saturating_mul(columns));
            if entries > MAX_ENTRIES {
                source.drop_all();
            }
        }
    }

    /// Finds the columns that follow from a source in the first records.
    fn add_source(&mut self, column: usize, first: &[Vec<Cell>]) {
        let Some(source) = self.sources.get_mut(column) else {
            return;
        };
        if source.is_dropped {
            return;
        }
        for (other, constant) in self.constant.iter().enumerate() {
            if other == column || constant.is_some() {
                continue;
            }
            let mut follower = Follower {
                column: other,
                cells: Vec::new(),
            };
            let fits = |cells: &Vec<Cell>| match (cells.get(column), cells.get(other)) {
                (Some(cell), Some(&other)) => {
                    other != Cell::Unknown
                        && cell
                            .place()
                            .is_some_and(|place| follower.fits(place, other))
                }
                _ => false,
            };
            if first.iter().all(fits) {
                source.followers.push(follower);
            }
        }
    }

    /// Looks at a record after the first ones.
    pub(crate) fn see(&mut self, cells: &[Cell]) {
        self.add_varied(cells);
        for (source, &cell) in self.sources.iter_mut().zip(cells) {
            if source.followers.is_empty() {
                continue;
            }
            match cell.place().filter(|&place| place < MAX_TEXTS) {
                Some(place) => source.keep_fitting(place, cells),
                None => source.drop_all(),
            }
        }
        self.note_cells(cells);
        self.limit_pairs();
    }

    /// Adds columns that have their second text in this record to all sources that they still follow from: those with
    /// a new text in this record.
    fn add_varied(&mut self, cells: &[Cell]) {
        let columns = self.constant.iter().zip(cells).enumerate();
        let varied = columns.filter_map(|(column, (constant, cell))| {
            let before = constant.filter(|before| before != cell)?;
            (*cell != Cell::Unknown).then_some((column, before))
        });
        for (column, before) in varied {
            for (place, (source, cell)) in self.sources.iter_mut().zip(cells).enumerate() {
                if place == column || source.is_dropped || source.has_seen(*cell) {
                    continue;
                }
                let known = source.seen.iter().map(|&seen| seen.then_some(before));
                let follower = Follower {
                    column,
                    cells: known.collect(),
                };
                source.followers.push(follower);
            }
        }
    }

    /// Drops the sources with the most followers while there are too many, and those with the most texts while they
    /// need too much memory.
    fn limit_pairs(&mut self) {
        loop {
            let sum = |size: fn(&Source) -> usize| self.sources.iter().map(size).sum::<usize>();
            let size: fn(&Source) -> usize = match (sum(Source::pairs), sum(Source::entries)) {
                (pairs, _) if pairs > MAX_PAIRS => Source::pairs,
                (_, entries) if entries > MAX_ENTRIES => Source::entries,
                _ => return,
            };
            if let Some(largest) = self.sources.iter_mut().max_by_key(|source| size(source)) {
                largest.drop_all();
            }
        }
    }

    /// Returns the cells of `column` that go with each cell of `source`, by the place of the source's cell, if the column
    /// follows from the source in all records.
    pub(crate) fn cells(&self, source: usize, column: usize) -> Option<&[Option<Cell>]> {
        let followers = &self.sources.get(source)?.followers;
        let follower = followers
            .iter()
            .find(|follower| follower.column == column)?;
        Some(&follower.cells)
    }
}

impl Source {
    fn see(&mut self, cell: Cell) {
        match cell.place().filter(|&place| place < MAX_TEXTS) {
            Some(place) => {
                if self.seen.len() <= place {
                    self.seen.resize(place + 1, false);
                }
                if let Some(seen) = self.seen.get_mut(place) {
                    *seen = true;
                }
            }
            None => self.drop_all(),
        }
    }

    fn has_seen(&self, cell: Cell) -> bool {
        cell.place()
            .is_none_or(|place| self.seen.get(place).copied().unwrap_or(false))
    }

    fn pairs(&self) -> usize {
        self.followers.len()
    }

    /// Maximum number of texts that the followers remember.
    fn entries(&self) -> usize {
        self.followers.len() * self.seen.len()
    }

    fn keep_fitting(&mut self, place: usize, cells: &[Cell]) {
        self.followers.retain_mut(|follower| {
            let cell = cells.get(follower.column).copied();
            let cell = cell.filter(|&cell| cell != Cell::Unknown);
            cell.is_some_and(|cell| follower.fits(place, cell))
        });
    }

    fn drop_all(&mut self) {
        self.followers = Vec::new();
        self.is_dropped = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(texts: [u32; 3]) -> Vec<Cell> {
        texts.map(Cell::Text).to_vec()
    }

    #[test]
    fn column_follows_until_a_record_contradicts() {
        let mut follows = Follows::new(3, &[cells([0, 0, 0]), cells([1, 1, 1])]);
        follows.see(&cells([2, 1, 2]));
        let known = [None, Some(0), Some(1), Some(1)].map(|cell| cell.map(Cell::Text));
        assert_eq!(follows.cells(0, 1), Some(&known[..]));
        assert!(follows.cells(1, 0).is_none() && follows.cells(2, 0).is_some());
        follows.see(&[Cell::Text(2), Cell::Missing, Cell::Text(2)]);
        assert!(follows.cells(0, 1).is_none() && follows.cells(0, 2).is_some());
        follows.see(&[Cell::Unknown, Cell::Missing, Cell::Text(2)]);
        assert!(follows.cells(0, 2).is_none() && follows.cells(2, 0).is_none());
    }

    #[test]
    fn constant_column_is_looked_at_from_its_second_text() {
        let mut follows = Follows::new(3, &[cells([0, 0, 0]), cells([1, 0, 0])]);
        assert!(follows.cells(0, 1).is_none());
        follows.see(&cells([2, 1, 0]));
        let known = [None, Some(0), Some(0), Some(1)].map(|cell| cell.map(Cell::Text));
        assert_eq!(follows.cells(0, 1), Some(&known[..]));
        assert!(follows.cells(2, 1).is_none());
        follows.see(&cells([2, 0, 0]));
        assert!(follows.cells(0, 1).is_none());
    }

    #[test]
    fn pairs_of_wide_tables_are_limited() {
        let columns = 200;
        let record = |text| vec![Cell::Text(text); columns];
        let mut follows = Follows::new(columns, &[record(0), record(1)]);
        follows.see(&record(2));
        let pairs: usize = follows.sources.iter().map(Source::pairs).sum();
        assert!(pairs > MAX_PAIRS / 2 && pairs <= MAX_PAIRS, "{pairs}");
        (3..20_000).for_each(|text| follows.see(&record(text)));
        assert!(follows.sources.iter().all(|source| source.is_dropped));
    }
}
