//! Single numbers that have many more records than their neighbours.

use std::collections::HashMap;

use super::{columns::Numbers, statistics::Sizes};

/// Smallest share of the records that makes a value a spike.
const MIN_SPIKE: f64 = 0.02;

/// A spike has more than this multiple of the records of its neighbours.
const SPIKE_FACTOR: f64 = 5.0;

/// Number of distinct values on either side of a value that count as its neighbours.
const NEIGHBOURS: usize = 4;

/// Returns the distinct numbers of both tables, ascending, with their counts.
pub(super) fn value_counts(numbers: &Numbers) -> Vec<(f64, f64, f64)> {
    let mut counts: HashMap<u64, (f64, f64)> = HashMap::new();
    // Adding zero turns -0 into 0.
    let key = |number: &f64| (number + 0.0).to_bits();
    numbers
        .real
        .iter()
        .for_each(|n| counts.entry(key(n)).or_default().0 += 1.0);
    numbers
        .synthetic
        .iter()
        .for_each(|n| counts.entry(key(n)).or_default().1 += 1.0);
    let counts = counts.into_iter();
    let mut counts: Vec<(f64, f64, f64)> = counts
        .map(|(bits, (one, two))| (f64::from_bits(bits), one, two))
        .collect();
    counts.sort_by(|x, y| x.0.total_cmp(&y.0));
    counts
}

/// Returns the values that have many more records than their neighbours in one of the tables.
pub(super) fn spikes(counts: &[(f64, f64, f64)], sizes: Sizes) -> Vec<(f64, f64, f64)> {
    let real: Vec<(usize, f64)> = occurring(counts, |count| count.1);
    let synthetic: Vec<(usize, f64)> = occurring(counts, |count| count.2);
    let mut places = spikes_of(&real, sizes.real);
    places.extend(spikes_of(&synthetic, sizes.synthetic));
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(|place| counts[place]).collect()
}

fn occurring(counts: &[(f64, f64, f64)], count: fn(&(f64, f64, f64)) -> f64) -> Vec<(usize, f64)> {
    let places = counts
        .iter()
        .enumerate()
        .map(|(place, of)| (place, count(of)));
    places.filter(|(_, count)| *count > 0.0).collect()
}

fn spikes_of(counts: &[(usize, f64)], records: f64) -> Vec<usize> {
    let is_spike = |index: usize| {
        let count = counts[index].1;
        let near = index.saturating_sub(NEIGHBOURS)..(index + NEIGHBOURS + 1).min(counts.len());
        let mut others: Vec<f64> = near.filter(|&i| i != index).map(|i| counts[i].1).collect();
        others.sort_by(f64::total_cmp);
        let usual = others.get(others.len() / 2).copied().unwrap_or(0.0);
        count > SPIKE_FACTOR * usual
    };
    let frequent = (0..counts.len()).filter(|&index| counts[index].1 >= MIN_SPIKE * records);
    frequent
        .filter(|&index| is_spike(index))
        .map(|index| counts[index].0)
        .collect()
}
