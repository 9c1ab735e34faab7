//! The order of date columns, collected while the records are read.

use std::collections::BTreeMap;

use fhaim_domain::{
    Constraint, DAY, TimeFormat, TimeNames, TimeOptions, date_from_days,
    form::{Bound, ColumnForm, KindForm},
};

use super::Drafted;
use crate::draft::{ProposedRule, RuleChange};
use crate::kinds;
use crate::profile::{LikelyDates, Profile, Quantiles};

/// Number of texts on which two formats are compared.
const COMPARED: usize = 2_000;

/// A rule is proposed if at least this many records have both dates.
const MIN_RECORDS: u64 = 20;

/// Maximum number of columns of dates whose order is looked at.
const MAX_COLUMNS: usize = 24;

/// Maximum number of different distances that are counted exactly.
const MAX_DISTANCES: usize = 4_096;

/// Dates of this year and later stand for no date, such as 9999-12-31: seconds since 1970.
const NEVER: i64 = 29_379_542_400;

/// Unit of distances between months, in seconds: that of the longest month.
pub(crate) const MONTH: i64 = 31 * DAY;

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
    /// Records in which only the earlier, or only the later column of the table has a date that stands for no date, and the
    /// other column has a date.
    endless: [u64; 2],
    /// Records in which the later column of the table has the earlier, and the later moment in universal time; `None` if
    /// not all offsets are known.
    universal: Option<[u64; 2]>,
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
        if self.both == 0 {
            self.universal = Some([0, 0]);
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

    /// Counts the order of the moments of a record in universal time.
    fn see_universal(&mut self, base: &Dated, later: &Dated) {
        if base.moment.is_none() || later.moment.is_none() {
            return;
        }
        self.universal = match (self.universal, base.universal, later.universal) {
            (Some([before, after]), Some(base), Some(later)) => Some([
                before + u64::from(later < base),
                after + u64::from(later > base),
            ]),
            _ => None,
        };
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
    likely: LikelyDates,
    moment: Option<i64>,
    /// The moment in universal time, if its offset is known.
    universal: Option<i64>,
    /// Whether the cell has a date that stands for no date.
    is_endless: bool,
}

impl Dated {
    /// The beginning of the moment's day.
    fn day(&self) -> Option<i64> {
        self.moment
            .map(|moment| self.likely.format.day(moment) * DAY)
    }

    /// The number of the moment's month, in units of [`MONTH`].
    fn month(&self) -> Option<i64> {
        let (year, month, _) = date_from_days(self.likely.format.day(self.moment?))?;
        Some((12 * year + month) * MONTH)
    }

    /// Whether the format has months and no days.
    fn is_month(&self) -> bool {
        !kinds::has_day(&self.likely.text)
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
    /// Looks at the columns with these formats: index among the drafted columns, and format. A column may have several
    /// formats.
    pub(crate) fn of(columns: impl IntoIterator<Item = (usize, LikelyDates)>) -> Self {
        let dated = columns.into_iter().take(MAX_COLUMNS);
        let dated: Vec<Dated> = dated
            .map(|(column, likely)| Dated {
                column,
                likely,
                moment: None,
                universal: None,
                is_endless: false,
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
            let moment = dated.likely.format.read(text(dated.column));
            dated.moment = moment.filter(|&moment| moment < NEVER);
            dated.is_endless = moment.is_some() && dated.moment.is_none();
            let universal = dated.likely.format.read_universal(text(dated.column));
            dated.universal = universal.filter(|_| dated.moment.is_some());
        }
        for (&(base, later), pair) in &mut self.pairs {
            if let (Some(base), Some(later)) = (self.dated.get(base), self.dated.get(later)) {
                let [first, second] = &mut pair.endless;
                *first += u64::from(base.is_endless && later.moment.is_some());
                *second += u64::from(later.is_endless && base.moment.is_some());
                // The parts that both have are compared.
                let is_date = |dated: &Dated| dated.likely.format.grain() >= DAY;
                if base.is_month() || later.is_month() {
                    pair.see(base.month(), later.month());
                } else if is_date(base) || is_date(later) {
                    pair.see(base.day(), later.day());
                } else {
                    pair.see(base.moment, later.moment);
                    pair.see_universal(base, later);
                }
            }
        }
    }

    /// Returns the place of a column that was drafted with a format, if its order was looked at.
    pub(crate) fn place(
        &self,
        column: usize,
        format: &str,
        first_year: Option<i64>,
    ) -> Option<usize> {
        let is = |dated: &Dated| {
            let likely = &dated.likely;
            dated.column == column && likely.text == format && likely.first_year == first_year
        };
        self.dated.iter().position(is)
    }

    /// Returns the order of the columns at two places.
    pub(crate) fn pair(&self, base: usize, later: usize) -> Option<&Pair> {
        self.pairs.get(&(base, later))
    }

    /// Returns the rules of columns whose dates never precede those of others.
    ///
    /// `is_free` says whether a column may be in a rule.
    pub(crate) fn rules(
        &self,
        drafted: &Drafted<'_>,
        is_free: impl Fn(usize) -> bool,
    ) -> Vec<ProposedRule> {
        let edges = self.edges(drafted, is_free);
        let forms = drafted.forms;
        // A column without a value does not link the two others.
        let links = |column: usize| forms.get(column).is_some_and(|form| !form.nullable);
        let is_implied = |low: usize, high: usize| {
            let mut middles = (0..forms.len()).filter(|&middle| links(middle));
            middles.any(|middle| {
                edges.contains_key(&(low, middle)) && edges.contains_key(&(middle, high))
            })
        };
        let needed = edges
            .iter()
            .filter(|&(&(low, high), edge)| !edge.is_held && !is_implied(low, high));
        needed
            .filter_map(|(&(low, high), edge)| {
                rule(forms.get(low)?, forms.get(high)?, edge.records)
            })
            .collect()
    }

    /// Returns the pairs of columns whose first dates are never after the second, by their indices.
    fn edges(
        &self,
        drafted: &Drafted<'_>,
        is_free: impl Fn(usize) -> bool,
    ) -> BTreeMap<(usize, usize), Edge> {
        let column = |place: usize| {
            let dated = self.dated.get(place)?;
            let form = drafted.forms.get(dated.column)?;
            let profile = drafted.profiles.get(dated.column)?;
            let is_kept = is_free(dated.column) && reads_alike(&dated.likely.format, form, profile);
            is_kept.then_some((dated.column, form))
        };
        let columns: Vec<_> = (0..self.dated.len()).map(column).collect();
        let column = |place: usize| columns.get(place).copied().flatten();
        let mut edges = BTreeMap::new();
        for (&(base, later), pair) in &self.pairs {
            let (Some((base, base_form)), Some((later, later_form))) =
                (column(base), column(later))
            else {
                continue;
            };
            if pair.both < MIN_RECORDS {
                continue;
            }
            let Some([before, after]) = comparable(pair, base_form, later_form) else {
                continue;
            };
            // In a rule, 9999-12-31 is later than all other dates.
            let ((low, low_form), (high, high_form)) = match (before, after, pair.endless) {
                (0, 1.., [0, _]) => ((base, base_form), (later, later_form)),
                (1.., 0, [_, 0]) => ((later, later_form), (base, base_form)),
                _ => continue,
            };
            let edge = Edge {
                records: pair.both,
                is_held: is_held(low_form, high_form),
            };
            edges.insert((low, high), edge);
        }
        edges
    }
}

/// Two columns of which the first is never after the second.
struct Edge {
    /// Records in which both columns have a date.
    records: u64,
    /// Whether the draft has one column relative to the other, with limits that keep the order.
    is_held: bool,
}

/// Returns in how many records the later column of the table has the earlier, and the later moment, as a schema compares
/// them; `None` if [`Order`] compares other moments.
fn comparable(pair: &Pair, one: &ColumnForm, other: &ColumnForm) -> Option<[u64; 2]> {
    let own = [pair.before, pair.after];
    if [one, other].iter().any(|form| form.kind == KindForm::Date) {
        return Some(own);
    }
    let has =
        |form: &ColumnForm, letter: char| form.format.as_ref().is_some_and(|f| f.contains(letter));
    let has_offsets = one.offsets.is_some() || other.offsets.is_some();
    let has_fractions = has(one, 'f') && has(other, 'f');
    let [before, after] = match has_offsets {
        true => pair.universal?,
        false => own,
    };
    // Within a second, the order is not known.
    let differ = before + after == pair.both;
    (!has_fractions || differ).then_some([before, after])
}

fn is_held(low: &ColumnForm, high: &ColumnForm) -> bool {
    // Relative columns count by their own clocks.
    if low.offsets.is_some() || high.offsets.is_some() {
        return false;
    }
    let follows =
        |one: &ColumnForm, other: &ColumnForm| one.relative_to.as_ref() == Some(&other.name);
    let limits = |form: &ColumnForm| {
        let number = |bound: &Bound| match bound {
            Bound::Number(number) => Some(*number),
            Bound::Text(_) => None,
        };
        let edges = form.edges.as_deref().unwrap_or_default();
        let ends = (
            form.min.as_ref().or(edges.first()),
            form.max.as_ref().or(edges.last()),
        );
        Some((number(ends.0?)?, number(ends.1?)?))
    };
    let least = limits(high).map(|(least, _)| least);
    let most = limits(low).map(|(_, most)| most);
    (follows(high, low) && least.is_some_and(|least| least >= 0.0))
        || (follows(low, high) && most.is_some_and(|most| most <= 0.0))
}

fn rule(low: &ColumnForm, high: &ColumnForm, records: u64) -> Option<ProposedRule> {
    let names = [low.name.clone(), high.name.clone()];
    Some(ProposedRule {
        columns: names.to_vec(),
        rule: format!("{:?} is never after {:?}", low.name, high.name),
        records,
        change: RuleChange::Constraint(Constraint::AtMost(names)),
    })
}

/// Whether a drafted column has dates that a format reads as the schema does.
pub(super) fn reads_alike(format: &TimeFormat, form: &ColumnForm, profile: &Profile) -> bool {
    if !matches!(form.kind, KindForm::Date | KindForm::Datetime) {
        return false;
    }
    let options = TimeOptions {
        first_year: form.first_year,
        midnight: form.midnight.is_some(),
        offsets: form.offsets.clone().unwrap_or_default(),
        months: form
            .months
            .clone()
            .and_then(|names| TimeNames::months(names).ok()),
        weekdays: form
            .weekdays
            .clone()
            .and_then(|names| TimeNames::weekdays(names).ok()),
    };
    let text = form.format.as_deref().unwrap_or("%Y-%m-%d");
    let Ok(drafted) = TimeFormat::with_options(text, form.kind, options) else {
        return false;
    };
    let same = |text: &str| {
        let moment = drafted.read(text);
        moment.is_none() || moment == format.read(text)
    };
    // Parts of a clock that are always zero belong to the text of the drafted format.
    (drafted.grain() >= DAY) == (format.grain() >= DAY)
        && profile
            .texts
            .in_order()
            .into_iter()
            .take(COMPARED)
            .all(|(text, _)| same(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::form::KindForm;

    #[test]
    fn endless_dates_are_later_than_all_others() {
        let mut order = Order::of([0, 1].map(|column| (column, dates())));
        for _ in 0..30 {
            order.see(|column| ["2024-01-01", "2024-01-03"][column]);
            order.see(|column| ["2024-01-01", "9999-12-31"][column]);
        }
        assert_eq!(order.pair(0, 1).unwrap().endless, [0, 30]);
        assert_eq!(order.pair(0, 1).unwrap().both, 30);
    }

    fn dates() -> LikelyDates {
        LikelyDates {
            text: "%Y-%m-%d".to_owned(),
            first_year: None,
            format: TimeFormat::parse("%Y-%m-%d", KindForm::Date).unwrap(),
        }
    }

    #[test]
    fn distances_of_two_columns_are_counted() {
        let mut order = Order::of([0, 1].map(|column| (column, dates())));
        let rows = [
            ["2024-01-01", "2024-01-03"],
            ["2024-01-05", "2024-01-05"],
            ["2024-01-05", "9999-12-31"],
            ["", "2024-01-05"],
        ];
        rows.iter().for_each(|row| order.see(|column| row[column]));
        let place = |column| order.place(column, "%Y-%m-%d", None).unwrap();
        let pair = order.pair(place(0), place(1)).unwrap();
        assert_eq!(
            (pair.both, pair.before, pair.after, pair.alone),
            (2, 0, 1, 1)
        );
        assert_eq!(pair.units(86_400), BTreeMap::from([(0, 1), (2, 1)]));
        assert!(order.pair(place(1), place(0)).is_none());
        assert_eq!(order.place(1, "%d.%m.%Y", None), None);
    }
}
