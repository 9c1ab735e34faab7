//! Check for copies of real records.
//!
//! Records of two independent samples coincide by chance. How often is known from the real table itself: if two real
//! records coincide in many pairs, a real and an independent record do so as well. This needs no model of the table.

use std::collections::HashMap;

use fhaim_domain::{RawColumn, RawValues};
use serde::Serialize;

use super::{
    Check, Severity,
    columns::records,
    evidence::{Examined, Findings, Score, plain},
    statistics::ln_gamma,
};

/// Smallest number of copied records that matters, beyond the expected one. Each copy reveals a person's record, but a
/// few coincidences say nothing about anyone.
const MIN_COPIES: f64 = 5.0;

/// How often synthetic records equal real ones, and how often real records equal each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Copies {
    /// Share of the synthetic records that equal a real one, value by value.
    pub synthetic: f64,
    /// Share of the real records that equal another real one.
    pub real: f64,
    /// Number of real records that differ from all other real ones.
    pub unique: usize,
    /// Number of them that occur in the synthetic table.
    pub copied: usize,
    /// Number of them that would be expected in a second real sample with as many records as the synthetic table.
    pub expected: f64,
    /// Number of values that occur in exactly two real records.
    #[serde(skip)]
    pairs: usize,
}

/// Counts copies. Returns `None` if the tables have no common columns or no records.
pub fn count_copies(real: &[RawColumn], synthetic: &[RawColumn]) -> Option<Copies> {
    let named = |name: &str| synthetic.iter().find(|column| column.name == name);
    let both = real
        .iter()
        .filter_map(|column| Some([column, named(&column.name)?]));
    let columns: Vec<[Vec<u32>; 2]> = both.map(identify).collect();
    let length = |table: usize| {
        columns
            .iter()
            .map(|column| column[table].len())
            .min()
            .unwrap_or(0)
    };
    let sizes = [length(0), length(1)];
    if sizes.contains(&0) {
        return None;
    }
    let row = |table: usize, row: usize| -> Vec<u32> {
        columns.iter().map(|column| column[table][row]).collect()
    };
    let mut times: HashMap<Vec<u32>, (u32, u32)> = HashMap::new();
    (0..sizes[0]).for_each(|index| times.entry(row(0, index)).or_default().0 += 1);
    let mut found = 0usize;
    for index in 0..sizes[1] {
        if let Some(times) = times.get_mut(&row(1, index)) {
            times.1 += 1;
            found += 1;
        }
    }
    let count = |of: &dyn Fn(&(u32, u32)) -> bool| times.values().filter(|times| of(times)).count();
    let (unique, pairs) = (count(&|times| times.0 == 1), count(&|times| times.0 == 2));
    Some(Copies {
        synthetic: found as f64 / sizes[1] as f64,
        real: (sizes[0] - unique) as f64 / sizes[0] as f64,
        unique,
        copied: count(&|times| times.0 == 1 && times.1 > 0),
        expected: expected_copies(unique, pairs, sizes[1] as f64 / sizes[0] as f64),
        pairs,
    })
}

/// Returns the number of unique records that occur in an independent sample with `ratio` times as many records.
///
/// n records have n (n - 1) / 2 pairs among themselves, and n m pairs with m others, so that there are about 2 m / n
/// coincidences with unique records for each value that occurs in exactly two of the n records. Several may be with the
/// same record.
fn expected_copies(unique: usize, pairs: usize, ratio: f64) -> f64 {
    let unique = unique as f64;
    let coincidences = 2.0 * pairs as f64 * ratio;
    unique * (1.0 - (-coincidences / unique.max(1.0)).exp())
}

/// Number of a missing value in [`identify`].
pub(super) const MISSING: u32 = u32::MAX;

/// Numbers the values of a column of both tables, so that equal values have equal numbers.
pub(super) fn identify(column: [&RawColumn; 2]) -> [Vec<u32>; 2] {
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    let mut texts: HashMap<String, u32> = HashMap::new();
    column.map(|column| match &column.values {
        RawValues::Numbers(values) => {
            let mut number = |value: &Option<f64>| match value {
                None => MISSING,
                Some(value) => {
                    let next = numbers.len() as u32;
                    *numbers.entry((value + 0.0).to_bits()).or_insert(next)
                }
            };
            values.iter().map(&mut number).collect()
        }
        RawValues::Texts { values, names } => {
            let known: Vec<u32> = names
                .iter()
                .map(|name| {
                    let next = texts.len() as u32;
                    *texts.entry(name.clone()).or_insert(next)
                })
                .collect();
            let of = |value: &Option<u32>| {
                value
                    .and_then(|value| known.get(value as usize))
                    .copied()
                    .unwrap_or(MISSING)
            };
            values.iter().map(of).collect()
        }
    })
}

/// Checks whether more unique real records occur in the synthetic table than chance explains.
pub(crate) fn copy_check(copies: Copies, real: &[RawColumn], synthetic: &[RawColumn]) -> Findings {
    let count = |columns: &[RawColumn]| columns.iter().map(records).max().unwrap_or(0) as f64;
    let (real, synthetic) = (count(real), count(synthetic));
    let unique = (copies.unique as f64).max(1.0);
    let copied = copies.copied as f64;
    let share = copied / unique;
    let more = copied - copies.expected;
    let examined = Examined {
        check: Check::Copies,
        columns: Vec::new(),
        purpose: None,
        distance: share,
        expected: (copies.expected / unique).min(1.0),
        spread: (copies.expected + 1.0).sqrt() / unique,
        p: coincidence_tail(copied, copies.pairs as f64, 2.0 * synthetic / real.max(1.0)),
        size: if more >= MIN_COPIES {
            f64::from(Severity::Major as u8) + 1.0
        } else {
            0.0
        },
        tests: 1,
        text: format!(
            "{} of the {} real records that differ from all others occur in the synthetic table, and about {} would \
             by chance: records seem to have been copied, so do not share the table",
            copies.copied,
            copies.unique,
            plain(copies.expected.round())
        ),
    };
    Findings {
        scores: vec![Score::of_distance(examined.distance, examined.expected)],
        examined: vec![examined],
        subjects: 1,
        all: 1,
    }
}

/// Returns the probability of at least `copied` coincidences, given their sum with those among the real records.
///
/// Both are about Poisson variables for independent samples, and the first has `ratio` times the mean of the second.
/// Given their sum, the first is binomial (Przyborowski and Wilenski 1940).
fn coincidence_tail(copied: f64, pairs: f64, ratio: f64) -> f64 {
    let all = copied + pairs;
    if copied <= 0.0 {
        return 1.0;
    }
    let (yes, no) = ((ratio / (1.0 + ratio)).ln(), (1.0 / (1.0 + ratio)).ln());
    let term = |k: f64| {
        let choose = ln_gamma(all + 1.0) - ln_gamma(k + 1.0) - ln_gamma(all - k + 1.0);
        (choose + k * yes + (all - k) * no).exp()
    };
    let (mut sum, mut k) = (term(copied) / 2.0, copied + 1.0);
    while k <= all {
        sum += term(k);
        k += 1.0;
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coincidences_follow_a_binomial_distribution() {
        // All 3 of 3 with probability 2/3 each, half of it as mid-p.
        assert!((coincidence_tail(3.0, 0.0, 2.0) - 4.0 / 27.0).abs() < 1e-12);
        // 2 or 3 of 3: (3 * 4/27 * 1) / 2 + 8/27.
        assert!((coincidence_tail(2.0, 1.0, 2.0) - (6.0 / 27.0 + 8.0 / 27.0)).abs() < 1e-12);
        assert_eq!(coincidence_tail(0.0, 4.0, 2.0), 1.0);
    }
}
