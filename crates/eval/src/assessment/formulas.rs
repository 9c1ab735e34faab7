//! Checks of values that follow from other columns in all real records: a label from its code, or a sum from its parts.

use std::{borrow::Cow, collections::HashMap};

use fhaim_domain::{RawColumn, RawValues, parse_number};

use super::{
    copies::{MISSING, identify},
    evidence::{Evidence, Findings},
    rules::{MIN_BROKEN_BY_CHANCE, MIN_EXPECTED, MIN_RECORDS},
    statistics::Sizes,
};

/// Maximum number of columns of numbers for which sums of two, and of three of them, are looked for.
const MAX_COLUMNS: [usize; 2] = [60, 16];

/// Largest difference of a sum, as a share of its parts, that comes from binary fractions.
const ROUNDING: f64 = 1e-9;

/// A column of both tables, whose values are numbered.
struct Numbered<'a> {
    name: &'a str,
    tables: [Vec<u32>; 2],
    /// Probability that two real records have different values.
    difference: f64,
}

/// Checks each pair of columns of which, in the real table, one determines the other.
pub(crate) fn determined_checks(real: &[RawColumn], synthetic: &[RawColumn]) -> Findings {
    let mut findings = Findings::default();
    let columns = real.iter().filter_map(|column| {
        let other = synthetic.iter().find(|other| other.name == column.name)?;
        let tables = identify([column, other]);
        Some(Numbered {
            name: &column.name,
            difference: chance_of_difference(&tables[0]),
            tables,
        })
    });
    let columns: Vec<Numbered<'_>> = columns.collect();
    for from in &columns {
        let Some(repeated) = repeated(&from.tables[0]) else {
            continue;
        };
        for to in columns.iter().filter(|to| to.name != from.name) {
            if repeated * to.difference >= MIN_EXPECTED {
                determined_check([from, to], repeated, &mut findings);
            }
        }
    }
    findings
}

/// Counts the synthetic records that contradict the real ones, if a value of `from` determines that of `to`.
fn determined_check([from, to]: [&Numbered<'_>; 2], repeated: f64, findings: &mut Findings) {
    let Some(map) = determined(&from.tables[0], &to.tables[0]) else {
        return;
    };
    let (broken, known) = contradictions(&map, &from.tables[1], &to.tables[1]);
    let rule = format!(
        "the rule that each value of {} has one value of {}",
        from.name, to.name
    );
    let broken = Sizes {
        real: 0.0,
        synthetic: broken,
    };
    let sizes = Sizes {
        real: repeated,
        synthetic: known,
    };
    let columns = vec![from.name.to_owned(), to.name.to_owned()];
    findings.add_rule(columns, &rule, broken, sizes);
}

/// Returns the number of records whose value an earlier one has, or `None` if values hardly repeat.
fn repeated(values: &[u32]) -> Option<f64> {
    let mut present: Vec<u32> = values.iter().copied().filter(|&v| v != MISSING).collect();
    let all = present.len();
    present.sort_unstable();
    present.dedup();
    (2 * present.len() <= all).then_some((all - present.len()) as f64)
}

/// Returns the probability that two records have different values.
fn chance_of_difference(values: &[u32]) -> f64 {
    let mut counts: HashMap<u32, f64> = HashMap::new();
    values
        .iter()
        .for_each(|&value| *counts.entry(value).or_default() += 1.0);
    let all = values.len().max(1) as f64;
    1.0 - counts.values().map(|n| (n / all).powi(2)).sum::<f64>()
}

/// Returns the value of `to` for each value of `from`, unless a value of `from` has several.
fn determined(from: &[u32], to: &[u32]) -> Option<HashMap<u32, u32>> {
    let mut map = HashMap::new();
    let both = from.iter().zip(to).filter(|(value, _)| **value != MISSING);
    for (&value, &other) in both {
        if *map.entry(value).or_insert(other) != other {
            return None;
        }
    }
    Some(map)
}

/// Returns the number of records that contradict the map, and that of records to which it applies.
fn contradictions(map: &HashMap<u32, u32>, from: &[u32], to: &[u32]) -> (f64, f64) {
    let (mut broken, mut known) = (0.0, 0.0);
    for (value, other) in from.iter().zip(to) {
        if let Some(expected) = map.get(value) {
            known += 1.0;
            broken += f64::from(u8::from(expected != other));
        }
    }
    (broken, known)
}

/// A column of numbers of both tables.
struct NumberColumn<'a> {
    name: &'a str,
    tables: [Cow<'a, [Option<f64>]>; 2],
}

/// Checks each column that, in the real table, is the sum of two or three others.
pub(crate) fn sum_checks(
    evidence: &Evidence,
    real: &[RawColumn],
    synthetic: &[RawColumn],
) -> Findings {
    let mut findings = Findings::default();
    let columns: Vec<NumberColumn<'_>> = real
        .iter()
        .filter(|column| !evidence.formats.contains_key(&column.name))
        .filter_map(|column| {
            let other = synthetic.iter().find(|other| other.name == column.name)?;
            Some(NumberColumn {
                name: &column.name,
                tables: [numbers(column)?, numbers(other)?],
            })
        })
        .collect();
    for (total, parts) in candidates(columns.len()) {
        let total = &columns[total];
        let parts: Vec<&NumberColumn<'_>> = parts.iter().map(|&part| &columns[part]).collect();
        let Some((broken, sizes)) = broken_sum(total, &parts) else {
            continue;
        };
        let names: Vec<&str> = parts.iter().map(|part| part.name).collect();
        let rule = format!("the rule that {} is {}", total.name, names.join(" + "));
        let columns = [&[total.name], &names[..]].concat();
        let columns = columns.into_iter().map(str::to_owned).collect();
        findings.add_rule(columns, &rule, broken, sizes);
    }
    findings
}

/// Returns the numbers of a column. The schema may list them as categories.
fn numbers(column: &RawColumn) -> Option<Cow<'_, [Option<f64>]>> {
    match &column.values {
        RawValues::Numbers(values) => Some(Cow::Borrowed(values)),
        RawValues::Texts { values, names } => {
            let numbers: Option<Vec<f64>> = names.iter().map(|name| parse_number(name)).collect();
            let numbers = numbers?;
            let of = |value: &Option<u32>| value.and_then(|v| numbers.get(v as usize).copied());
            Some(values.iter().map(of).collect())
        }
    }
}

/// Returns all sums of two or three columns, with `columns` columns in total, as the place of the sum and those of its parts.
fn candidates(columns: usize) -> impl Iterator<Item = (usize, Vec<usize>)> {
    let [two, three] = MAX_COLUMNS.map(|most| columns <= most);
    let pairs = (0..columns).flat_map(move |a| (a + 1..columns).map(move |b| vec![a, b]));
    let triples = pairs.clone().flat_map(move |pair| {
        let next = pair[1] + 1;
        (next..columns).map(move |c| vec![pair[0], pair[1], c])
    });
    let parts = pairs
        .filter(move |_| two)
        .chain(triples.filter(move |_| three));
    parts.flat_map(move |parts| {
        let totals = (0..columns).filter({
            let parts = parts.clone();
            move |total| !parts.contains(total)
        });
        totals.map(move |total| (total, parts.clone()))
    })
}

/// Counts the synthetic records in which the sum is another. Returns `None` if it is another in a real record, or if it
/// would hardly be with the part of another record.
fn broken_sum(total: &NumberColumn<'_>, parts: &[&NumberColumn<'_>]) -> Option<(Sizes, Sizes)> {
    let mut records = 0.0;
    for row in 0..total.tables[0].len() {
        match is_sum(total, parts, 0, row, None) {
            Some(false) => return None,
            Some(true) => records += 1.0,
            None => {}
        }
    }
    if records < MIN_RECORDS {
        return None;
    }
    let needs = |part: usize| {
        let rows = 0..total.tables[0].len();
        let broken = rows.filter(|&row| is_sum(total, parts, 0, row, Some(part)) == Some(false));
        broken.count() as f64 >= MIN_BROKEN_BY_CHANCE * records
    };
    if !(0..parts.len()).all(needs) {
        return None;
    }
    let (mut broken, mut all) = (0.0, 0.0);
    for row in 0..total.tables[1].len() {
        if let Some(is_equal) = is_sum(total, parts, 1, row, None) {
            all += 1.0;
            broken += f64::from(u8::from(!is_equal));
        }
    }
    let counts = Sizes {
        real: 0.0,
        synthetic: broken,
    };
    let sizes = Sizes {
        real: records,
        synthetic: all,
    };
    Some((counts, sizes))
}

/// Whether a record's parts add up; `None` if a value is missing. The part `of_next` is taken from the next record.
fn is_sum(
    total: &NumberColumn<'_>,
    parts: &[&NumberColumn<'_>],
    table: usize,
    row: usize,
    of_next: Option<usize>,
) -> Option<bool> {
    let expected = (*total.tables[table].get(row)?)?;
    let (mut sum, mut size) = (0.0, expected.abs());
    for (place, part) in parts.iter().enumerate() {
        let values = &part.tables[table];
        let row = match of_next == Some(place) {
            true => (row + 1) % values.len().max(1),
            false => row,
        };
        let value = (*values.get(row)?)?;
        sum += value;
        size += value.abs();
    }
    Some((sum - expected).abs() <= ROUNDING * size)
}
