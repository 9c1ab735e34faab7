//! The order of date columns, collected while the records are read.

use std::collections::BTreeMap;

use fhaim_domain::{DAY, TimeFormat};

use crate::profile::Quantiles;

/// Maximum number of columns of dates whose order is looked at.
const MAX_COLUMNS: usize = 24;

/// Maximum number of different distances that are counted exactly.
const MAX_DISTANCES: usize = 4_096;

/// Dates of this year and later stand for no date, such as 9999-12-31: seconds since 1970.
const NEVER: i64 = 29_379_542_400;

/// How often one column's date precedes another's, and by how much.
#[derive(Debug, Default)]
pub(crate) struct Pair {
    /// Records in which both columns have a date.
    pub(crate) both: u64,
    /// Records in which the later column of the table has the earlier date.
    pub(crate) before: u64,
    /// Records in which the later column of the table has the later date.
    pub(crate) after: u64,
    /// Records in which only the later column of the table has a date.
    pub(crate) alone: u64,
    /// Smallest and largest distance in seconds, from the earlier column of the table to the later one.
    pub(crate) least: i64,
    pub(crate) most: i64,
    exact: BTreeMap<i64, u64>,
    sketch: Quantiles,
}

impl Pair {
    fn see(&mut self, base: Option<i64>, later: Option<i64>) {
        let (Some(base), Some(later)) = (base, later) else {
            self.alone += u64::from(base.is_none() && later.is_some());
            return;
        };
        let distance = later - base;
        if self.both == 0 {
            (self.least, self.most) = (distance, distance);
        }
        self.both += 1;
        self.before += u64::from(distance < 0);
        self.after += u64::from(distance > 0);
        (self.least, self.most) = (self.least.min(distance), self.most.max(distance));
        if let Some(count) = self.exact.get_mut(&distance) {
            *count += 1;
        } else if self.exact.len() < MAX_DISTANCES {
            self.exact.insert(distance, 1);
        } else {
            self.sketch.add(distance as f64);
        }
    }

    /// Returns how often each distance occurs, in units of `unit` seconds rounded down.
    pub(crate) fn units(&self, unit: i64) -> BTreeMap<i64, u64> {
        let exact = self
            .exact
            .iter()
            .map(|(&distance, &count)| (distance, count));
        let sketch = self
            .sketch
            .weighted()
            .map(|(distance, weight)| (distance as i64, weight));
        let mut units = BTreeMap::new();
        for (distance, count) in exact.chain(sketch) {
            *units.entry(distance.div_euclid(unit)).or_default() += count;
        }
        if self.both > 0 {
            for limit in [self.least, self.most] {
                units.entry(limit.div_euclid(unit)).or_insert(1);
            }
        }
        units
    }
}

/// A column of dates in one format.
#[derive(Debug)]
struct Dated {
    /// Index among the drafted columns.
    column: usize,
    text: String,
    format: TimeFormat,
    moment: Option<i64>,
}

impl Dated {
    /// The beginning of the moment's day.
    fn day(&self) -> Option<i64> {
        self.moment.map(|moment| self.format.day(moment) * DAY)
    }
}

/// The order of all pairs of date columns.
#[derive(Debug, Default)]
pub(crate) struct Order {
    dated: Vec<Dated>,
    /// By the places of the earlier and the later column in `dated`.
    pairs: BTreeMap<(usize, usize), Pair>,
}

impl Order {
    /// Looks at the columns with these formats: index among the drafted columns, format as in a schema, and format. A
    /// column may have several formats.
    pub(crate) fn of(columns: impl IntoIterator<Item = (usize, String, TimeFormat)>) -> Self {
        let dated = columns.into_iter().take(MAX_COLUMNS);
        let dated: Vec<Dated> = dated
            .map(|(column, text, format)| Dated {
                column,
                text,
                format,
                moment: None,
            })
            .collect();
        let places = 0..dated.len();
        let pairs = places.flat_map(|later| (0..later).map(move |base| (base, later)));
        let apart = |&(base, later): &(usize, usize)| dated[base].column != dated[later].column;
        Self {
            pairs: pairs
                .filter(apart)
                .map(|pair| (pair, Pair::default()))
                .collect(),
            dated,
        }
    }

    /// Looks at a record, of which `text` gives the cells of drafted columns.
    pub(crate) fn see<'t>(&mut self, text: impl Fn(usize) -> &'t str) {
        for dated in &mut self.dated {
            let moment = dated.format.read(text(dated.column));
            dated.moment = moment.filter(|&moment| moment < NEVER);
        }
        for (&(base, later), pair) in &mut self.pairs {
            if let (Some(base), Some(later)) = (self.dated.get(base), self.dated.get(later)) {
                // Between a date and a datetime, whole days count.
                let is_date = |dated: &Dated| dated.format.grain() >= DAY;
                match is_date(base) || is_date(later) {
                    true => pair.see(base.day(), later.day()),
                    false => pair.see(base.moment, later.moment),
                }
            }
        }
    }

    /// Returns the order of two columns that were drafted with these formats, if it was looked at.
    pub(crate) fn pair(&self, base: (usize, &str), later: (usize, &str)) -> Option<&Pair> {
        let place = |(column, text): (usize, &str)| {
            let is = |dated: &Dated| dated.column == column && dated.text == text;
            self.dated.iter().position(is)
        };
        self.pairs.get(&(place(base)?, place(later)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::form::KindForm;

    #[test]
    fn distances_of_two_columns_are_counted() {
        let format = || TimeFormat::parse("%Y-%m-%d", KindForm::Date).unwrap();
        let columns = [0, 1].map(|column| (column, "%Y-%m-%d".to_owned(), format()));
        let mut order = Order::of(columns);
        let rows = [
            ["2024-01-01", "2024-01-03"],
            ["2024-01-05", "2024-01-05"],
            ["2024-01-05", "9999-12-31"],
            ["", "2024-01-05"],
        ];
        rows.iter().for_each(|row| order.see(|column| row[column]));
        let pair = order.pair((0, "%Y-%m-%d"), (1, "%Y-%m-%d")).unwrap();
        assert_eq!(
            (pair.both, pair.before, pair.after, pair.alone),
            (2, 0, 1, 1)
        );
        assert_eq!(pair.units(86_400), BTreeMap::from([(0, 1), (2, 1)]));
        assert!(order.pair((1, "%Y-%m-%d"), (0, "%Y-%m-%d")).is_none());
    }
}
