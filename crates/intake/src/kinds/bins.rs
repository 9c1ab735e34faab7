//! Bins with digits for the numbers of a column.
//!
//! A *step* is the smallest distance between two numbers of the column, such as its last decimal place or a multiple.

use std::collections::BTreeMap;

use fhaim_domain::form::{Bound, ColumnForm};

/// A value with at least this share of the records becomes a special value.
const SPECIAL_SHARE: f64 = 0.05;

/// Maximum number of special values that are drafted for their frequency.
const MAX_SPECIAL: usize = 8;

/// Each value has its own bin if there are fewer than this many times as many values as requested bins.
const MAX_SINGLE: u64 = 2;

/// Maximum number of negative numbers that are codes.
const MAX_CODES: usize = 5;

/// Maximum number of digits of a bin in which each digit is one value.
const MAX_RESOLVED: i64 = 64;

/// Number of digits of a bin with too many values for one digit each.
const EVEN_DIGITS: u64 = 16;

/// How to bin the steps of a column.
pub(super) struct Binning<'a> {
    /// Number of bins.
    pub(super) bins: u32,
    /// A value is special only if at least this many records share it.
    pub(super) shared_by: u64,
    /// Converts a step to a value of the schema.
    pub(super) bound: &'a dyn Fn(i64) -> Bound,
}

/// Fills in `special` and the bins of `form`, given how often each step occurs. Returns the first
/// and the last step of the bins.
pub(super) fn fill(
    form: &mut ColumnForm,
    steps: &BTreeMap<i64, u64>,
    binning: &Binning<'_>,
) -> (i64, i64) {
    let mut special = special(steps, binning.shared_by);
    let codes = codes(steps, binning.shared_by);
    // If each value has its own bin, frequent ones need no other.
    if is_narrow(steps, &codes, binning.bins) {
        special = codes;
    }
    let bound = binning.bound;
    if !special.is_empty() {
        form.special = Some(special.iter().map(|&step| bound(step)).collect());
    }
    let rest: Vec<(i64, u64)> = (steps.iter())
        .filter(|(step, _)| !special.contains(step))
        .map(|(&step, &count)| (step, count))
        .collect();
    let (first, last) = match (rest.first(), rest.last()) {
        (Some(first), Some(last)) => (first.0, last.0),
        // Every value is special: add a bin for other values.
        _ => {
            let largest = special.last().copied().unwrap_or(0);
            (largest + 1, largest + 1)
        }
    };
    let rare = |step: i64| {
        steps
            .get(&step)
            .is_some_and(|&count| count < binning.shared_by)
    };
    let (first, last) = outward(first, last, rare);
    let bins = i64::from(binning.bins.max(1));
    if last - first < bins || is_narrow(steps, &special, binning.bins) {
        form.min = Some(bound(first));
        form.max = Some(bound(last));
        form.bins = Some((last - first + 1) as u64);
        // A bin that contains only special values is invalid, so use one bin for all.
        let alone = |step: &i64| (first..=last).contains(step);
        if special.iter().any(alone) {
            form.bins = Some(1);
            form.digits = Some((last - first + 1) as u64).filter(|&digits| digits > 1);
        }
        return (first, last);
    }
    let resolved = last - first < bins * MAX_RESOLVED;
    let edges = edges(&rest, (first, last), bins, resolved);
    let widest = edges
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .max()
        .unwrap_or(1)
        + 1;
    let digits = if resolved {
        widest.min(MAX_RESOLVED + 1) as u64
    } else {
        EVEN_DIGITS
    };
    form.digits = Some(digits).filter(|&digits| digits > 1);
    form.edges = Some(edges.into_iter().map(bound).collect());
    (first, last)
}

/// Whether so few values are possible, apart from special ones, that each has its own bin.
fn is_narrow(steps: &BTreeMap<i64, u64>, special: &[i64], bins: u32) -> bool {
    let mut rest = steps.keys().filter(|step| !special.contains(step));
    let (first, last) = (rest.next(), rest.next_back());
    let span = first.zip(last).map(|(first, last)| last.abs_diff(*first));
    span.is_some_and(|span| span < u64::from(bins.max(1)) * MAX_SINGLE)
}

/// Returns the special values: frequent ones, and codes.
fn special(steps: &BTreeMap<i64, u64>, shared_by: u64) -> Vec<i64> {
    let mut special = frequent(steps, shared_by);
    special.extend(codes(steps, shared_by));
    special.sort_unstable();
    special.dedup();
    special
}

/// Returns the values that may stand for something else: negative codes, and a number made of nines far from all others
/// that enough records share, which often stands for a missing value.
pub(super) fn codes(steps: &BTreeMap<i64, u64>, shared_by: u64) -> Vec<i64> {
    let mut codes = negative_codes(steps, shared_by);
    let mut largest = steps.iter().rev();
    if let (Some((&last, &count)), Some((&before, _)), Some(&first)) =
        (largest.next(), largest.next(), steps.keys().next())
    {
        let nines = last >= 99 && last.to_string().bytes().all(|byte| byte == b'9');
        let far = last.saturating_sub(before) > before.saturating_sub(first);
        if nines && far && count >= shared_by {
            codes.push(last);
        }
    }
    codes
}

/// Returns negative numbers that are codes, such as -1 for "not asked": a few numbers that many records share, in a column
/// without other negative numbers.
fn negative_codes(steps: &BTreeMap<i64, u64>, shared_by: u64) -> Vec<i64> {
    let negative: Vec<(i64, u64)> = steps
        .range(..0)
        .map(|(&step, &count)| (step, count))
        .collect();
    let records: u64 = negative.iter().map(|(_, count)| count).sum();
    let total: u64 = steps.values().sum();
    let shared = negative.iter().all(|&(_, count)| count >= shared_by);
    let few = negative.len() <= MAX_CODES
        && records.saturating_mul(2) < total
        && steps.len() > 2 * negative.len();
    if shared && few {
        return negative.into_iter().map(|(step, _)| step).collect();
    }
    Vec::new()
}

/// Returns the values that at least `shared_by` records and a twentieth of all records have, the most frequent first.
pub(super) fn frequent(steps: &BTreeMap<i64, u64>, shared_by: u64) -> Vec<i64> {
    let total: u64 = steps.values().sum();
    let mut heavy: Vec<(i64, u64)> = (steps.iter())
        .filter(|&(_, &count)| count >= shared_by && count as f64 >= SPECIAL_SHARE * total as f64)
        .map(|(&step, &count)| (step, count))
        .collect();
    heavy.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    heavy.truncate(MAX_SPECIAL);
    heavy.into_iter().map(|(step, _)| step).collect()
}

/// Returns edges of bins with about equal numbers of records and, if `resolved`, at most
/// [`MAX_RESOLVED`] steps.
fn edges(rest: &[(i64, u64)], (first, last): (i64, i64), bins: i64, resolved: bool) -> Vec<i64> {
    let total: u64 = rest.iter().map(|(_, count)| count).sum();
    let mut quantiles: Vec<i64> = vec![first];
    let mut seen = 0;
    for &(step, count) in rest {
        let reached = (i128::from(seen) * i128::from(bins)) / i128::from(total.max(1));
        if reached >= quantiles.len() as i128 && step > first && step < last {
            quantiles.push(step);
        }
        seen += count;
    }
    quantiles.push(last);
    let mut edges: Vec<i64> = quantiles.clone();
    for i in 1..quantiles.len() - 1 {
        edges[i] = rounded(quantiles[i - 1], quantiles[i], quantiles[i + 1]);
    }
    edges.dedup();
    // Numbers of different signs share no bin.
    if first < 0 && last > 0 && !edges.contains(&0) {
        edges.push(0);
        edges.sort_unstable();
    }
    if !resolved {
        return edges;
    }
    let mut narrow: Vec<i64> = Vec::with_capacity(edges.len());
    for pair in edges.windows(2) {
        let pieces = ((pair[1] - pair[0] - 1) / MAX_RESOLVED + 1).max(1);
        narrow.extend((0..pieces).map(|piece| pair[0] + piece * (pair[1] - pair[0]) / pieces));
    }
    narrow.push(last);
    narrow
}

/// Moves an edge to a round number near it. The edge was read from the records, and need not be one
/// of their values.
fn rounded(before: i64, edge: i64, after: i64) -> i64 {
    let gap = (edge - before).min(after - edge) / 2;
    let mut unit = 1;
    while unit * 10 <= gap {
        unit *= 10;
    }
    (edge + unit / 2).div_euclid(unit) * unit
}

/// Rounds limits outward to multiples of 1, 2 or 5 times a power of ten, near a tenth of the range. A limit that is
/// itself a rare value moves on to the next multiple, so that no limit is the value of a few records.
fn outward(first: i64, last: i64, is_rare: impl Fn(i64) -> bool) -> (i64, i64) {
    let mut unit = 1i64;
    let range = last - first;
    let mut factors = [2, 5, 10].into_iter().cycle();
    let mut power = 1i64;
    while let Some(factor) = factors.next().filter(|_| unit * 15 < range) {
        unit = power * factor;
        if factor == 10 {
            power = unit;
        }
    }
    let (mut low, mut high) = (
        first.div_euclid(unit) * unit,
        -(-last).div_euclid(unit) * unit,
    );
    if low == first && is_rare(low) {
        low -= unit;
    }
    if high == last && is_rare(high) {
        high += unit;
    }
    // A column without negative numbers gets no negative limit, and one without positive numbers no positive one.
    (
        if first >= 0 { low.max(0) } else { low },
        if last <= 0 { high.min(0) } else { high },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::form::KindForm;

    #[test]
    fn limits_are_rounded_outward() {
        assert_eq!(outward(0, 17, |_| false), (0, 18));
        assert_eq!(outward(0, 199, |_| false), (0, 200));
        assert_eq!(outward(21, 81, |_| false), (20, 85));
        assert_eq!(outward(-31, 29, |_| false), (-35, 30));
        assert_eq!(outward(3, 4, |_| false), (3, 4));
        assert_eq!(outward(0, 200, |step| step == 200), (0, 220));
    }

    #[test]
    fn edges_are_round_and_split_records_evenly() {
        let rest: Vec<(i64, u64)> = (0..10_000).map(|step| (step, 1)).collect();
        let edges = edges(&rest, (0, 10_000), 10, false);
        assert_eq!(edges.len(), 11);
        assert!(edges[1..10].iter().all(|edge| edge % 100 == 0), "{edges:?}");
        let few = super::edges(&rest[..300], (0, 300), 3, true);
        assert!(
            few.windows(2).all(|pair| pair[1] - pair[0] <= MAX_RESOLVED),
            "{few:?}"
        );
    }

    #[test]
    fn each_of_a_few_values_has_its_own_bin() {
        let grades: BTreeMap<i64, u64> = (1..=12).map(|grade| (grade, 100)).collect();
        let mut form = ColumnForm::empty("grade".to_owned(), KindForm::Number, false);
        let bound = |step: i64| Bound::Number(step as f64);
        let binning = Binning {
            bins: 10,
            shared_by: 20,
            bound: &bound,
        };
        fill(&mut form, &grades, &binning);
        assert_eq!((form.special, form.bins), (None, Some(12)));
        assert_eq!((form.min, form.max), (Some(bound(1)), Some(bound(12))));
    }

    #[test]
    fn frequent_values_and_nines_are_special() {
        let mut steps: BTreeMap<i64, u64> = (1..60).map(|step| (step, 1)).collect();
        steps.insert(0, 900);
        steps.insert(999, 30);
        assert_eq!(special(&steps, 20), [0, 999]);
        // The number of a few records is not listed.
        steps.insert(999, 3);
        assert_eq!(special(&steps, 20), [0]);
        steps.remove(&999);
        steps.insert(99, 1);
        // 99 is no further from 59 than 59 is from 0.
        assert_eq!(special(&steps, 20), [0]);
    }
}
