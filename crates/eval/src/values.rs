//! Compares columns of two tables value by value, without bins.

use std::collections::{BTreeMap, HashMap};

use fhaim_domain::{RawColumn, RawValues};
use serde::Serialize;

/// Maximum share of distinct numbers among a column's records.
///
/// A column with more distinct numbers is treated as continuous, because differences of single values are meaningless.
const MAX_DISCRETE_SHARE: f64 = 0.1;

/// Values with fewer records in both tables together are not compared one by one.
const MIN_RECORDS: f64 = 20.0;

/// Comparison of the values of one field in both tables.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueReport {
    /// Name of the field.
    pub name: String,
    /// Number of distinct values in the real column.
    pub different: usize,
    /// Half the L1 distance of the distributions of single values, from 0 to 1, with all rare values taken together.
    /// Absent for continuous numbers.
    pub total_variation: Option<f64>,
    /// Kolmogorov-Smirnov distance of numbers, from 0 to 1: the largest difference of the shares of records below a
    /// number.
    pub kolmogorov_smirnov: Option<f64>,
    /// Wasserstein distance of numbers: the distance that a record's value has to move on average, as a share of the
    /// real column's range.
    pub wasserstein: Option<f64>,
    /// Share of the records without a value.
    pub missing: Shares,
    /// The value whose share differs most. For continuous numbers, a word such as `<0.5` whose share differs by more
    /// than [`ValueReport::kolmogorov_smirnov`].
    pub furthest: Option<ValueShares>,
}

/// A share of the records of each table, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shares {
    /// Share of the real records.
    pub real: f64,
    /// Share of the synthetic records.
    pub synthetic: f64,
}

impl Shares {
    /// Returns the absolute difference of the two shares.
    pub fn distance(&self) -> f64 {
        (self.real - self.synthetic).abs()
    }
}

/// A value with its share in both tables.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueShares {
    /// The value, as written in the table.
    pub value: String,
    /// Shares of the records with the value.
    pub shares: Shares,
}

/// Compares the columns that both tables have. Times in seconds count as numbers; `shown` writes a number of a column as
/// the table does.
pub fn compare_values(
    real: &[RawColumn],
    synthetic: &[RawColumn],
    shown: &dyn Fn(&str, f64) -> String,
) -> Vec<ValueReport> {
    let other = |name: &str| synthetic.iter().find(|column| column.name == name);
    real.iter()
        .filter_map(|column| Some(compare(column, other(&column.name)?, shown)))
        .collect()
}

fn compare(
    real: &RawColumn,
    synthetic: &RawColumn,
    shown: &dyn Fn(&str, f64) -> String,
) -> ValueReport {
    let (one, two) = (shares(real), shares(synthetic));
    let records = records(real);
    let different = one.keys().filter(|value| value.is_some()).count();
    let numbers = (numbers(real), numbers(synthetic));
    let continuous =
        numbers.0.is_some() && different as f64 > MAX_DISCRETE_SHARE * records.max(1) as f64;
    let missing = |shares: &Counted| shares.get(&None).copied().unwrap_or(0.0);
    let mut values: Vec<&Option<Key>> = one.keys().chain(two.keys()).collect();
    values.sort_unstable();
    values.dedup();
    let pair = |value: &Option<Key>| Shares {
        real: one.get(value).copied().unwrap_or(0.0),
        synthetic: two.get(value).copied().unwrap_or(0.0),
    };
    let counts = (records as f64, self::records(synthetic) as f64);
    let often = |value: &&Option<Key>| {
        let shares = pair(value);
        shares.real * counts.0 + shares.synthetic * counts.1 >= MIN_RECORDS
    };
    let (often, rare): (Vec<&Option<Key>>, Vec<&Option<Key>>) =
        values.iter().copied().partition(often);
    let apart: f64 = often.iter().map(|value| pair(value).distance()).sum();
    // The shares of rare values differ between any two tables, so rare values count together.
    let together: f64 = rare
        .iter()
        .map(|value| pair(value).real - pair(value).synthetic)
        .sum();
    let distance = (apart + together.abs()) / 2.0;
    let is_named = |value: &&&Option<Key>| match value {
        Some(Key::Number(_)) => !continuous,
        Some(Key::Text(_)) => true,
        None => false,
    };
    let furthest = values.iter().filter(is_named);
    let furthest = furthest.max_by(|x, y| pair(x).distance().total_cmp(&pair(y).distance()));
    let distances = match &numbers {
        (Some(one), Some(two)) if !one.is_empty() && !two.is_empty() => {
            Some(number_distances(one, two))
        }
        _ => None,
    };
    let kolmogorov_smirnov = distances.map(|(ks, _)| ks);
    let is_far = |value: &&&Option<Key>| {
        !continuous || pair(value).distance() > kolmogorov_smirnov.unwrap_or(0.0)
    };
    let furthest = furthest.filter(is_far);
    ValueReport {
        name: real.name.clone(),
        different,
        total_variation: (!continuous).then_some(distance),
        kolmogorov_smirnov,
        wasserstein: distances.map(|(_, wasserstein)| wasserstein),
        missing: Shares {
            real: missing(&one),
            synthetic: missing(&two),
        },
        furthest: furthest.and_then(|value| {
            Some(ValueShares {
                value: value.as_ref()?.text(&|number| shown(&real.name, number)),
                shares: pair(value),
            })
        }),
    }
}

/// Sort key of a value: the bits of a number, changed so that they sort like the numbers, or a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    Number(u64),
    Text(String),
}

impl Key {
    fn number(value: f64) -> Self {
        // The bits of negative numbers descend. Adding zero turns -0 into 0.
        let bits = (value + 0.0).to_bits();
        let negative = bits >> 63 == 1;
        Self::Number(if negative { !bits } else { bits | (1 << 63) })
    }

    fn text(&self, shown: &dyn Fn(f64) -> String) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(key) => {
                let bits = if key >> 63 == 1 {
                    key & !(1 << 63)
                } else {
                    !key
                };
                shown(f64::from_bits(bits))
            }
        }
    }
}

type Counted = BTreeMap<Option<Key>, f64>;

fn records(column: &RawColumn) -> usize {
    match &column.values {
        RawValues::Numbers(values) => values.len(),
        RawValues::Texts { values, .. } => values.len(),
    }
}

/// Returns the share of each value. `None` stands for a missing value.
fn shares(column: &RawColumn) -> Counted {
    let mut counts: HashMap<Option<Key>, u64> = HashMap::new();
    match &column.values {
        RawValues::Numbers(values) => {
            for (record, value) in values.iter().enumerate() {
                let word = || column.words.get(&record).cloned().map(Key::Text);
                *counts
                    .entry(value.map(Key::number).or_else(word))
                    .or_default() += 1;
            }
        }
        RawValues::Texts { values, names } => {
            let mut by_index = vec![0u64; names.len()];
            for value in values {
                match value.and_then(|value| by_index.get_mut(value as usize)) {
                    Some(count) => *count += 1,
                    None => *counts.entry(None).or_default() += 1,
                }
            }
            let named = names.iter().zip(by_index);
            counts.extend(named.map(|(name, count)| (Some(Key::Text(name.clone())), count)));
        }
    }
    let records = records(column).max(1) as f64;
    counts
        .into_iter()
        .map(|(value, count)| (value, count as f64 / records))
        .collect()
}

/// Returns the numbers of a column in ascending order, or `None` for texts.
fn numbers(column: &RawColumn) -> Option<Vec<f64>> {
    let RawValues::Numbers(values) = &column.values else {
        return None;
    };
    let mut numbers: Vec<f64> = values.iter().flatten().copied().collect();
    numbers.sort_by(f64::total_cmp);
    Some(numbers)
}

/// Returns the Kolmogorov-Smirnov distance, and the Wasserstein distance divided by the range of `real`.
///
/// Both lists are ascending and have at least one number.
fn number_distances(real: &[f64], synthetic: &[f64]) -> (f64, f64) {
    let mut all: Vec<f64> = real.iter().chain(synthetic).copied().collect();
    all.sort_by(f64::total_cmp);
    let below = |numbers: &[f64], value: f64| {
        numbers.partition_point(|&number| number <= value) as f64 / numbers.len() as f64
    };
    let (mut largest, mut area) = (0.0f64, 0.0);
    for pair in all.windows(2) {
        if pair[0] < pair[1] {
            let gap = (below(real, pair[0]) - below(synthetic, pair[0])).abs();
            largest = largest.max(gap);
            area += gap * (pair[1] - pair[0]);
        }
    }
    let range = real.last().unwrap_or(&0.0) - real.first().unwrap_or(&0.0);
    (largest, if range > 0.0 { area / range } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[f64]) -> RawColumn {
        RawColumn {
            name: "x".to_owned(),
            values: RawValues::Numbers(
                values
                    .iter()
                    .map(|&v| Some(v).filter(|v| !v.is_nan()))
                    .collect(),
            ),
            words: BTreeMap::new(),
        }
    }

    #[test]
    fn words_among_numbers_are_values_and_not_missing() {
        let with_words = |share: usize| {
            let mut all = column(&[1.5; 100].map(f64::from));
            let RawValues::Numbers(values) = &mut all.values else {
                return all;
            };
            for (record, value) in values.iter_mut().enumerate() {
                *value = (record >= share).then_some(record as f64);
            }
            all.words = (0..share)
                .map(|record| (record, "<0.5".to_owned()))
                .collect();
            all
        };
        let shown = |_: &str, number: f64| number.to_string();
        let report = compare(&with_words(50), &with_words(10), &shown);
        assert_eq!(
            report.missing,
            Shares {
                real: 0.0,
                synthetic: 0.0
            }
        );
        assert_eq!(report.different, 51);
        let same = compare(&with_words(50), &with_words(50), &shown);
        assert_eq!((same.kolmogorov_smirnov, same.furthest), (Some(0.0), None));
        // Few different numbers are compared one by one, with the words among them.
        let few = |share: usize| {
            let mut all = column(&[7.0; 400]);
            if let RawValues::Numbers(values) = &mut all.values {
                values
                    .iter_mut()
                    .take(share)
                    .for_each(|value| *value = None);
            }
            all.words = (0..share)
                .map(|record| (record, "neg".to_owned()))
                .collect();
            all
        };
        let report = compare(&few(100), &few(200), &shown);
        assert_eq!(
            (report.total_variation, report.missing.real),
            (Some(0.25), 0.0)
        );
        assert_eq!(report.furthest.unwrap().value, "neg");
    }

    #[test]
    fn distances_match_hand_computed_values() {
        let (real, synthetic) = (
            column(&[0.0, 0.0, 0.0, 10.0]),
            column(&[0.0, 5.0, 10.0, f64::NAN]),
        );
        let report = compare(&real, &synthetic, &|_, number| number.to_string());
        // Two distinct values in four records are more than a tenth, so the column counts as continuous.
        assert_eq!(report.total_variation, None);
        assert_eq!(
            report.missing,
            Shares {
                real: 0.0,
                synthetic: 0.25
            }
        );
        let ks = report.kolmogorov_smirnov.unwrap();
        assert!((ks - (0.75 - 1.0 / 3.0)).abs() < 1e-12);
        // |3/4 - 1/3| over 5 and |3/4 - 2/3| over 5, of a range of 10.
        let area = (0.75 - 1.0 / 3.0) * 5.0 + (0.75 - 2.0 / 3.0) * 5.0;
        assert!((report.wasserstein.unwrap() - area / 10.0).abs() < 1e-12);
        let long = |values: &[f64]| column(&values.repeat(20));
        let report = compare(
            &long(&[0.0, 0.0, 0.0, 10.0]),
            &long(&[0.0, 5.0, 10.0, f64::NAN]),
            &|_, number| number.to_string(),
        );
        // Shares of 0: 3/4 and 1/4; of 5: 0 and 1/4; of missing values: 0 and 1/4; of 10: equal.
        assert_eq!(report.total_variation, Some(0.5));
        assert_eq!(report.furthest.unwrap().value, "0");
    }

    #[test]
    fn keys_keep_the_order_of_numbers() {
        let numbers = [-7.5, -1.0, 0.0, 1e-9, 3.0, 1e12];
        let keys: Vec<Key> = numbers.iter().map(|&number| Key::number(number)).collect();
        assert!(keys.is_sorted());
        let texts: Vec<String> = keys
            .iter()
            .map(|key| key.text(&|number| number.to_string()))
            .collect();
        assert_eq!(texts, numbers.map(|number| number.to_string()));
    }
}
