//! Tells a row of totals at the end of a table from a record that has the word "Total" as a value.

/// Largest difference between a total and the sum of its column, as a share of the sum of magnitudes.
const TOLERANCE: f64 = 1e-9;

/// The sums of the columns of the records so far.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// `None` for a column with other values than plain numbers.
    columns: Vec<Option<Sum>>,
    rows: u64,
    /// Whether a record began with a word for a total.
    has_word: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    sum: f64,
    magnitude: f64,
}

/// What a cell says about its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// It is the sum of its column, or the number of records.
    Total,
    /// It is empty, or a number of a form whose sum is not known.
    Open,
    /// It is another value.
    Record,
}

impl Totals {
    /// Adds a record, which begins with a word for a total or not.
    pub(crate) fn add<'r>(&mut self, cells: impl Iterator<Item = &'r [u8]>, has_word: bool) {
        self.rows += 1;
        self.has_word |= has_word;
        for (place, cell) in cells.enumerate() {
            if place >= self.columns.len() {
                self.columns.push(Some(Sum::default()));
            }
            if let Some(column) = self.columns.get_mut(place) {
                let kept = column.and_then(|sum| sum.plus(cell.trim_ascii()));
                *column = kept;
            }
        }
    }

    /// Whether a row that begins with a word for a total is one. `first` is the place of the word. The row is a record
    /// if another one begins with such a word, or if its column has texts and its other cells are neither sums nor
    /// empty.
    pub(crate) fn has_total<'r>(
        &self,
        cells: impl Iterator<Item = &'r [u8]>,
        first: usize,
    ) -> bool {
        if self.has_word || self.rows == 0 {
            return false;
        }
        if matches!(self.columns.get(first), Some(Some(_))) {
            return true;
        }
        let others = cells.enumerate().filter(|&(place, _)| place != first);
        let evidence: Vec<Evidence> = others
            .map(|(place, cell)| self.evidence(place, cell.trim_ascii()))
            .collect();
        evidence.contains(&Evidence::Total) || !evidence.contains(&Evidence::Record)
    }

    fn evidence(&self, place: usize, cell: &[u8]) -> Evidence {
        if cell.is_empty() {
            return Evidence::Open;
        }
        let number = number(cell);
        if number == Some(self.rows as f64) {
            return Evidence::Total;
        }
        match (self.columns.get(place).copied().flatten(), number) {
            (Some(column), Some(number)) => {
                let gap = (column.sum - number).abs();
                match gap <= TOLERANCE * column.magnitude && number != 0.0 {
                    true => Evidence::Total,
                    false => Evidence::Record,
                }
            }
            (None, _) if !cell.iter().any(u8::is_ascii_alphabetic) => Evidence::Open,
            _ => Evidence::Record,
        }
    }
}

impl Sum {
    /// Adds a cell. Returns `None` if it is neither empty nor a plain number.
    fn plus(self, cell: &[u8]) -> Option<Self> {
        if cell.is_empty() {
            return Some(self);
        }
        let number = number(cell)?;
        Some(Self {
            sum: self.sum + number,
            magnitude: self.magnitude + number.abs(),
        })
    }
}

/// Reads a number of digits and at most one point.
fn number(cell: &[u8]) -> Option<f64> {
    let plain = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
    let text = std::str::from_utf8(cell)
        .ok()
        .filter(|_| cell.iter().all(plain))?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_total(text: &str) -> bool {
        let rows: Vec<Vec<&[u8]>> = text
            .lines()
            .map(|line| line.split(',').map(str::as_bytes).collect())
            .collect();
        let mut totals = Totals::default();
        let (last, records) = rows.split_last().unwrap();
        for row in records {
            totals.add(row.iter().copied(), row[0] == b"Total");
        }
        totals.has_total(last.iter().copied(), 0)
    }

    #[test]
    fn row_with_sums_or_empty_cells_is_a_total() {
        for text in [
            "a,1.5,x\nb,2.25,y\nTotal,3.75,",
            "a,1.5,x\nb,2.25,y\nTotal,,",
            "a,7,x\nb,,y\nTotal,2,",
            "a,0.1,3\nb,0.2,5\nTotal,0.3,4",
            "a,1\u{a0}000\nb,2\u{a0}000\nTotal,3\u{a0}000",
            "1,5\n2,6\nTotal,400",
        ] {
            assert!(has_total(text), "{text}");
        }
    }

    #[test]
    fn row_with_other_values_is_a_record() {
        for text in [
            "a,1.5,x\nb,2.25,y\nTotal,3.5,",
            "a,1.5,x\nb,2.25,y\nTotal,,x",
            "a,1\nTotal,4\nb,5\nTotal,10",
            "Total,1",
            "a,1\nb,0\nTotal,0",
        ] {
            assert!(!has_total(text), "{text}");
        }
    }
}
