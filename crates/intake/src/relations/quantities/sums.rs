//! Columns of numbers that are the sum of others.
//!
//! The first records show the candidates: sums of two columns, sums of adjacent columns, and the exact linear relations
//! between columns with coefficients 1 and -1. All records check them, and the first conflict drops one.

use std::collections::BTreeMap;

use fhaim_domain::{Constraint, Sum, form::ColumnForm, is_missing};

use super::exact::{Cell, NumberColumn, number_steps};
use super::prime::{Residue, relations};
use super::{MIN_RECORDS, varied_first};
use crate::draft::{ProposedRule, RuleChange};
use crate::options::InferOptions;
use crate::profile::Profile;

/// Maximum number of columns of numbers whose sums are looked for.
const MAX_COLUMNS: usize = 64;

/// Maximum number of candidates that the first records leave.
const MAX_CANDIDATES: usize = 256;

/// Number of records that linear relations are solved from: more than there are columns.
const SOLVED: usize = 4 * MAX_COLUMNS;

/// Minimum share of records with a number, for relations between columns that are missing in different records.
const MOSTLY: f64 = 0.8;

/// The sums that no record so far breaks.
#[derive(Debug, Default)]
pub(super) struct Sums {
    columns: Vec<NumberColumn>,
    /// Texts that stand for a missing value in every column.
    missing: Vec<String>,
    /// The first records, in which sums are looked for: cells by column.
    first: Vec<Vec<Cell>>,
    /// Number of further first records.
    awaited: u64,
    candidates: Vec<Candidate>,
    /// The current record's numbers, by place in `columns`.
    cells: Vec<Cell>,
    /// Whether a candidate has the column at a place.
    is_used: Vec<bool>,
}

/// A sum by places in the columns of numbers.
#[derive(Clone, Debug)]
struct Candidate {
    total: usize,
    parts: Vec<usize>,
    /// Records in which all columns have a number.
    records: u64,
    /// Records in which each part differs from zero.
    nonzero: Vec<u64>,
    is_broken: bool,
}

impl Candidate {
    fn new(total: usize, parts: Vec<usize>) -> Self {
        Self {
            total,
            nonzero: vec![0; parts.len()],
            parts,
            records: 0,
            is_broken: false,
        }
    }

    fn places(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::once(self.total).chain(self.parts.iter().copied())
    }

    fn see(&mut self, cells: &[Cell]) {
        let cell = |place: usize| cells.get(place).copied().unwrap_or(Cell::Empty);
        if self.places().any(|place| cell(place) == Cell::Inexact) {
            self.is_broken = true;
            return;
        }
        let number = |place: usize| match cell(place) {
            Cell::Number(number) => Some(number),
            _ => None,
        };
        let parts: Option<Vec<i128>> = self.parts.iter().map(|&part| number(part)).collect();
        let (Some(total), Some(parts)) = (number(self.total), parts) else {
            return;
        };
        self.records += 1;
        self.is_broken = parts.iter().sum::<i128>() != total;
        for (count, part) in self.nonzero.iter_mut().zip(parts) {
            *count += u64::from(part != 0);
        }
    }
}

impl Sums {
    /// Prepares for a table, of which `profiles` have the first records. These records are seen again.
    pub(super) fn new(profiles: &[Profile], options: &InferOptions) -> Self {
        let columns = varied_first(profiles, options).into_iter();
        let numeric = |&column: &usize| profiles.get(column).is_some_and(has_numbers);
        let mut columns: Vec<usize> = columns.filter(numeric).take(MAX_COLUMNS).collect();
        // Sums of adjacent columns need their order.
        columns.sort_unstable();
        let columns = columns.into_iter();
        let columns: Vec<NumberColumn> = columns
            .filter_map(|column| Some(NumberColumn::of(column, profiles.get(column)?)))
            .collect();
        Self {
            first: vec![Vec::new(); columns.len()],
            awaited: profiles.first().map_or(0, |profile| profile.records),
            candidates: Vec::new(),
            cells: vec![Cell::Empty; columns.len()],
            is_used: vec![true; columns.len()],
            missing: options.missing.clone(),
            columns,
        }
    }

    /// Looks at the texts of a record.
    pub(super) fn see(&mut self, texts: &[&str]) {
        if self.awaited == 0 && self.candidates.is_empty() {
            return;
        }
        let columns = self.columns.iter_mut().zip(&self.is_used);
        for (cell, (column, &used)) in self.cells.iter_mut().zip(columns) {
            if used {
                let text = texts.get(column.column).copied().unwrap_or("");
                *cell = match is_missing(text, &self.missing) {
                    true => Cell::Empty,
                    false => column.read(text),
                };
            }
        }
        if self.awaited > 0 {
            self.keep();
            return;
        }
        for candidate in &mut self.candidates {
            candidate.see(&self.cells);
        }
        self.drop_broken();
    }

    /// Keeps one of the first records. After the last one, looks for sums in them.
    fn keep(&mut self) {
        for (kept, &cell) in self.first.iter_mut().zip(&self.cells) {
            kept.push(cell);
        }
        self.awaited -= 1;
        if self.awaited > 0 {
            return;
        }
        let first = std::mem::take(&mut self.first);
        self.candidates = Search::of(&first).candidates();
        for record in 0..first.first().map_or(0, Vec::len) {
            let cell = |cells: &Vec<Cell>| cells.get(record).copied().unwrap_or(Cell::Empty);
            let cells: Vec<Cell> = first.iter().map(cell).collect();
            self.candidates
                .iter_mut()
                .for_each(|candidate| candidate.see(&cells));
        }
        self.drop_broken();
    }

    fn drop_broken(&mut self) {
        self.candidates.retain(|candidate| !candidate.is_broken);
        self.is_used.fill(false);
        for place in self.candidates.iter().flat_map(Candidate::places) {
            if let Some(used) = self.is_used.get_mut(place) {
                *used = true;
            }
        }
    }

    /// Returns the rules that the drafted columns can have together. No column is in two of them.
    /// `is_free` says whether a column may be in a rule.
    pub(super) fn rules(
        &self,
        forms: &[ColumnForm],
        is_free: impl Fn(usize) -> bool,
    ) -> Vec<ProposedRule> {
        let is_free = |place: usize| {
            self.columns
                .get(place)
                .is_some_and(|column| is_free(column.column))
        };
        let supported = |candidate: &&Candidate| {
            candidate
                .nonzero
                .iter()
                .all(|&records| records >= MIN_RECORDS)
                && candidate.places().all(is_free)
                && self.fits(candidate, forms)
        };
        let mut candidates: Vec<&Candidate> = self.candidates.iter().filter(supported).collect();
        candidates.sort_by_key(|candidate| (candidate.parts.len(), candidate.total));
        let mut taken = vec![false; self.columns.len()];
        let mut rules = Vec::new();
        for candidate in candidates {
            if candidate
                .places()
                .any(|place| taken.get(place) != Some(&false))
            {
                continue;
            }
            for place in candidate.places() {
                if let Some(taken) = taken.get_mut(place) {
                    *taken = true;
                }
            }
            rules.extend(self.rule(candidate, forms));
        }
        rules
    }

    /// Returns the columns of each sum that enough records support.
    pub(super) fn supported(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        let is_supported = |candidate: &&Candidate| {
            let mut nonzero = candidate.nonzero.iter();
            nonzero.all(|&records| records >= MIN_RECORDS)
        };
        let supported = self.candidates.iter().filter(is_supported);
        supported.map(|candidate| {
            let columns = candidate
                .places()
                .filter_map(|place| self.columns.get(place));
            columns.map(|column| column.column).collect()
        })
    }

    /// Whether a schema can have the sum: all columns are numbers with the same decimals and step, and no number is
    /// rounded when it is read.
    fn fits(&self, candidate: &Candidate, forms: &[ColumnForm]) -> bool {
        let style = |place: usize| {
            let column = self.columns.get(place)?;
            let form = forms.get(column.column)?;
            let (decimals, step) = number_steps(form)?;
            let same_mark = form.decimal_comma.unwrap_or(false) == column.comma || decimals == 0;
            (same_mark && column.decimals <= decimals).then_some((decimals, step))
        };
        let total = style(candidate.total);
        let alike = |&part: &usize| style(part) == total;
        total.is_some() && candidate.parts.iter().all(alike)
    }

    fn rule(&self, candidate: &Candidate, forms: &[ColumnForm]) -> Option<ProposedRule> {
        let name = |place: usize| {
            let column = self.columns.get(place)?;
            forms.get(column.column).map(|form| form.name.clone())
        };
        let total = name(candidate.total)?;
        let parts: Vec<String> =
            (candidate.parts.iter().map(|&part| name(part))).collect::<Option<_>>()?;
        let columns = std::iter::once(&total).chain(&parts).cloned().collect();
        let rule = format!("{total:?} is the sum of {}", listed(&parts));
        Some(ProposedRule {
            columns,
            rule,
            records: candidate.records,
            change: RuleChange::Constraint(Constraint::Sum(Sum { total, parts })),
        })
    }
}

/// Returns names as `"a", "b" and "c"`.
fn listed(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Whether enough records have a number in a column.
fn has_numbers(profile: &Profile) -> bool {
    let texts = profile.texts.in_order().into_iter();
    let numbers = texts.filter(|(text, _)| crate::numbers::scan_number(text).is_some());
    let records: u64 = numbers.map(|(_, seen)| seen.count).sum();
    records >= MIN_RECORDS
}

/// The search for sums in the first records.
struct Search {
    /// Numbers by column and record. The records with the most numbers other than zero come first: they break most
    /// candidates at once.
    numbers: Vec<Vec<Option<i128>>>,
    /// The records with a number, by column.
    present: Vec<Records>,
}

/// A set of records, as bits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Records(Vec<u64>);

impl Records {
    fn with_number(numbers: &[Option<i128>]) -> Self {
        let word = |numbers: &[Option<i128>]| {
            let bits = numbers
                .iter()
                .rev()
                .map(|number| u64::from(number.is_some()));
            bits.fold(0, |word, bit| word << 1 | bit)
        };
        Self(numbers.chunks(64).map(word).collect())
    }

    fn and(&self, other: &Self) -> Self {
        Self(
            self.0
                .iter()
                .zip(&other.0)
                .map(|(one, other)| one & other)
                .collect(),
        )
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let words = self.0.iter().enumerate().filter(|(_, word)| **word != 0);
        words.flat_map(|(place, &word)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| 64 * place + bit)
        })
    }
}

impl Search {
    fn of(grid: &[Vec<Cell>]) -> Self {
        let number = |cell: &Cell| match *cell {
            Cell::Number(number) => Some(number),
            Cell::Empty | Cell::Inexact => None,
        };
        let is_nonzero = |cell: &Cell| !matches!(cell, Cell::Number(0)) && number(cell).is_some();
        let full = |&record: &usize| {
            let cells = grid.iter().filter_map(|cells| cells.get(record));
            std::cmp::Reverse(cells.filter(|cell| is_nonzero(cell)).count())
        };
        let mut order: Vec<usize> = (0..grid.first().map_or(0, Vec::len)).collect();
        order.sort_by_cached_key(full);
        let sorted = |cells: &Vec<Cell>| {
            let cells = order
                .iter()
                .map(|&record| cells.get(record).and_then(number));
            cells.collect::<Vec<Option<i128>>>()
        };
        let numbers: Vec<Vec<Option<i128>>> = grid.iter().map(sorted).collect();
        Self {
            present: numbers
                .iter()
                .map(|numbers| Records::with_number(numbers))
                .collect(),
            numbers,
        }
    }

    fn number(&self, column: usize, record: usize) -> Option<i128> {
        *self.numbers.get(column)?.get(record)?
    }

    /// The records with numbers in a column and in those of `records`, if they are enough.
    fn common(&self, records: &Records, column: usize) -> Option<Records> {
        let common = records.and(self.present.get(column)?);
        (common.count() >= MIN_RECORDS).then_some(common)
    }

    /// Returns the sums that the records show, those with the fewest parts first.
    fn candidates(&self) -> Vec<Candidate> {
        let mut found = self.pairs();
        found.extend(self.runs());
        found.extend(self.solved());
        found
            .iter_mut()
            .for_each(|(_, parts)| parts.sort_unstable());
        found.sort_by_key(|(total, parts)| (parts.len(), *total, parts.clone()));
        found.dedup();
        found.retain(|(total, parts)| self.holds(*total, parts));
        found.truncate(MAX_CANDIDATES);
        found
            .into_iter()
            .map(|(total, parts)| Candidate::new(total, parts))
            .collect()
    }

    /// Whether a sum holds in all records that have its numbers, in enough of them, and each part is not always zero.
    fn holds(&self, total: usize, parts: &[usize]) -> bool {
        let all = self.present.get(total).cloned();
        let common = |records: Option<Records>, &part: &usize| self.common(&records?, part);
        let Some(complete) = parts.iter().fold(all, common) else {
            return false;
        };
        let mut nonzero = vec![false; parts.len()];
        for record in complete.iter() {
            let mut sum = 0;
            for (seen, &part) in nonzero.iter_mut().zip(parts) {
                let number = self.number(part, record).unwrap_or(0);
                *seen |= number != 0;
                sum += number;
            }
            if self.number(total, record) != Some(sum) {
                return false;
            }
        }
        nonzero.into_iter().all(|seen| seen)
    }

    /// Sums of any two columns.
    fn pairs(&self) -> Vec<(usize, Vec<usize>)> {
        let columns = self.numbers.len();
        let mut found = Vec::new();
        for (total, present) in self.present.iter().enumerate() {
            for one in (0..columns).filter(|&one| one != total) {
                let Some(records) = self.common(present, one) else {
                    continue;
                };
                for other in (one + 1..columns).filter(|&other| other != total) {
                    let common = self.common(&records, other);
                    if common.is_some_and(|records| self.is_pair(total, one, other, &records)) {
                        found.push((total, vec![one, other]));
                    }
                }
            }
        }
        found
    }

    fn is_pair(&self, total: usize, one: usize, other: usize, records: &Records) -> bool {
        records.iter().all(|record| {
            let (one, other) = (self.number(one, record), self.number(other, record));
            self.number(total, record) == one.zip(other).map(|(one, other)| one + other)
        })
    }

    /// Sums of three or more adjacent columns of numbers.
    fn runs(&self) -> Vec<(usize, Vec<usize>)> {
        let columns = self.numbers.len();
        let before = self.sums_before();
        let before = |column: usize, record: usize| before.get(column)?.get(record).copied();
        let mut found = Vec::new();
        for (total, present) in self.present.iter().enumerate() {
            for first in 0..columns {
                let mut records = present.clone();
                for last in (first..columns).take_while(|&last| last != total) {
                    let Some(common) = self.common(&records, last) else {
                        break;
                    };
                    records = common;
                    let is_sum = |record: usize| {
                        let (from, to) = (before(first, record), before(last + 1, record));
                        self.number(total, record) == to.zip(from).map(|(to, from)| to - from)
                    };
                    if last >= first + 2 && records.iter().all(is_sum) {
                        found.push((total, (first..=last).collect()));
                    }
                }
            }
        }
        found
    }

    /// Returns the sum of the columns before each column, and of all columns, by record.
    fn sums_before(&self) -> Vec<Vec<i128>> {
        let records = self.numbers.first().map_or(0, Vec::len);
        let mut sums = vec![vec![0; records]];
        for numbers in &self.numbers {
            let last = sums.last().into_iter().flatten();
            let next = last
                .zip(numbers)
                .map(|(sum, number)| sum + number.unwrap_or(0));
            sums.push(next.collect());
        }
        sums
    }

    /// Sums among the linear relations between columns that have numbers in the same records, and between those that
    /// mostly have numbers.
    fn solved(&self) -> Vec<(usize, Vec<usize>)> {
        let mut groups: BTreeMap<&Records, Vec<usize>> = BTreeMap::new();
        for (column, present) in self.present.iter().enumerate() {
            groups.entry(present).or_default().push(column);
        }
        let enough = MOSTLY * self.numbers.first().map_or(0, Vec::len) as f64;
        let mostly = self.present.iter().enumerate();
        let mostly = mostly.filter(|(_, present)| present.count() as f64 >= enough);
        let mostly: Vec<usize> = mostly.map(|(column, _)| column).collect();
        let groups = groups.into_values().chain([mostly]);
        groups
            .filter(|group| group.len() >= 3)
            .flat_map(|group| self.solve(&group))
            .collect()
    }

    fn solve(&self, group: &[usize]) -> Vec<(usize, Vec<usize>)> {
        let complete = |record: usize| {
            let numbers = group.iter().map(|&column| self.number(column, record));
            numbers
                .map(|number| number.map(Residue::of))
                .collect::<Option<Vec<Residue>>>()
        };
        let records = 0..self.numbers.first().map_or(0, Vec::len);
        let rows: Vec<Vec<Residue>> = records.filter_map(complete).take(SOLVED).collect();
        let name = |place: usize| group.get(place).copied();
        let sum = |(positive, negative): (Vec<usize>, Vec<usize>)| {
            let (total, parts) = match (&positive[..], &negative[..]) {
                ([total], parts @ [_, _, ..]) | (parts @ [_, _, ..], [total]) => (total, parts),
                _ => return None,
            };
            let parts: Option<Vec<usize>> = parts.iter().map(|&part| name(part)).collect();
            Some((name(*total)?, parts?))
        };
        relations(group.len(), rows)
            .into_iter()
            .filter_map(sum)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use fhaim_domain::form::KindForm;

    use super::*;

    /// Reads rows of numbers with two decimals, and returns the sums as texts.
    fn sums(header: &[&str], rows: &[Vec<i64>]) -> Vec<(String, u64)> {
        let text = |cents: &i64| match cents {
            &MISSING => String::new(),
            cents => format!(
                "{}{}.{:02}",
                if *cents < 0 { "-" } else { "" },
                cents.abs() / 100,
                cents.abs() % 100
            ),
        };
        let records: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row.iter().map(text).collect())
            .collect();
        let options = InferOptions {
            max_number_categories: 2,
            ..InferOptions::new("t.csv", "t")
        };
        let mut profiles: Vec<Profile> = header
            .iter()
            .map(|_| Profile::new(&options.missing))
            .collect();
        for (record, row) in records.iter().take(1_000).zip(1..) {
            for (profile, text) in profiles.iter_mut().zip(record) {
                profile.see(text, row);
            }
        }
        let mut sums = Sums::new(&profiles, &options);
        for record in &records {
            sums.see(&record.iter().map(String::as_str).collect::<Vec<&str>>());
        }
        let form = |name: &&str| ColumnForm {
            decimals: Some(2),
            ..ColumnForm::empty((*name).to_owned(), KindForm::Number, true)
        };
        let forms: Vec<ColumnForm> = header.iter().map(form).collect();
        let rules = sums.rules(&forms, |_| true);
        rules
            .into_iter()
            .map(|rule| (rule.rule, rule.records))
            .collect()
    }

    const MISSING: i64 = i64::MIN;

    /// A number that looks random.
    fn noise(row: i64, salt: i64) -> i64 {
        (row * 7_919 + salt * 104_729).rem_euclid(9_973) * 31 % 5_003
    }

    fn rows(count: i64, row: impl Fn(i64) -> Vec<i64>) -> Vec<Vec<i64>> {
        (0..count).map(row).collect()
    }

    #[test]
    fn sum_of_two_columns_is_found() {
        let rows = rows(500, |row| {
            let (net, tax) = (noise(row, 1), noise(row, 2));
            vec![net + tax, noise(row, 3), net, tax]
        });
        let found = sums(&["gross", "x", "net", "tax"], &rows);
        assert_eq!(
            found,
            [(
                "\"gross\" is the sum of \"net\" and \"tax\"".to_owned(),
                500
            )]
        );
    }

    #[test]
    fn sum_with_a_constant_share_is_found() {
        let rows = rows(100, |row| {
            let fifth = noise(row, 1);
            vec![5 * fifth, fifth, 6 * fifth]
        });
        assert_eq!(sums(&["net", "tax", "gross"], &rows).len(), 1);
    }

    #[test]
    fn total_of_adjacent_columns_with_missing_numbers_is_found() {
        let rows = rows(300, |row| {
            let months: Vec<i64> = (1..=5).map(|month| noise(row, month)).collect();
            let total = months.iter().sum();
            let shown = months.into_iter().zip(0..);
            let gap = |(number, month)| {
                if (row + month) % 11 == 0 {
                    MISSING
                } else {
                    number
                }
            };
            shown.map(gap).chain([total]).collect()
        });
        let found = sums(&["a", "b", "c", "d", "e", "total"], &rows);
        let wanted = "\"total\" is the sum of \"a\", \"b\", \"c\", \"d\" and \"e\"";
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, wanted);
        assert!((100..300).contains(&found[0].1));
    }

    #[test]
    fn sum_of_columns_apart_is_found() {
        let rows = rows(300, |row| {
            let n: Vec<i64> = (1..=7).map(|salt| noise(row, salt)).collect();
            vec![
                n[0],
                n[1],
                n[2],
                n[3],
                n[0] - n[2] - n[4] - n[6],
                n[4],
                n[5],
                n[6],
            ]
        });
        let found = sums(&["all", "p", "a", "q", "b", "c", "r", "d"], &rows);
        assert_eq!(
            found[0].0,
            "\"all\" is the sum of \"a\", \"b\", \"c\" and \"d\""
        );
    }

    #[test]
    fn sum_with_an_exception_is_not_proposed() {
        let row = |row: i64| {
            let (net, tax) = (noise(row, 1), noise(row, 2));
            vec![net, tax, net + tax + i64::from(row == 2_345)]
        };
        assert!(sums(&["net", "tax", "gross"], &rows(3_000, row)).is_empty());
        assert_eq!(sums(&["net", "tax", "gross"], &rows(2_000, row)).len(), 1);
    }

    #[test]
    fn sum_with_a_part_that_is_rarely_used_is_not_proposed() {
        let row = |often: i64| {
            move |row: i64| {
                let tip = if row < often { 150 + row } else { 0 };
                vec![noise(row, 1), tip, noise(row, 1) + tip]
            }
        };
        assert!(sums(&["meal", "tip", "paid"], &rows(500, row(19))).is_empty());
        assert_eq!(sums(&["meal", "tip", "paid"], &rows(500, row(20))).len(), 1);
    }

    #[test]
    fn sums_that_share_a_column_are_not_proposed_together() {
        let rows = rows(200, |row| {
            let (a, b, c) = (noise(row, 1), noise(row, 2), noise(row, 3));
            vec![a, b, a + b, c, a + b + c]
        });
        let found = sums(&["a", "b", "ab", "c", "abc"], &rows);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "\"ab\" is the sum of \"a\" and \"b\"");
    }
}
