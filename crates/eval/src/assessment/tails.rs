//! Checks of the smallest and largest numbers of a column.

use super::{
    AnalysisPurpose, Check,
    columns::{Column, Numbers, share_check},
    evidence::{Examined, percent},
    statistics::Sizes,
};

/// Smallest number of real records beyond a quantile whose tail is compared.
const MIN_BEYOND: f64 = 10.0;

/// Smallest change of the share beyond a quantile that matters, as a factor.
const MIN_TAIL_FACTOR: f64 = 2.0;

/// Smallest share of a table's records beyond the other's range that matters: it moves the outermost percentile.
const MIN_OUTSIDE: f64 = 0.004;

/// Compares the shares beyond the outer quantiles of the real numbers, and beyond their range.
pub(super) fn tail_checks(
    column: &Column,
    numbers: &Numbers,
    shown: &dyn Fn(f64) -> String,
) -> Vec<Examined> {
    let mut found = Vec::new();
    for share in [0.01, 0.005, 0.001] {
        for is_upper in [true, false] {
            found.extend(quantile_check(column, numbers, (share, is_upper), shown));
        }
    }
    found.extend(range_checks(column, numbers, shown));
    found
}

fn quantile_check(
    column: &Column,
    numbers: &Numbers,
    (share, is_upper): (f64, bool),
    shown: &dyn Fn(f64) -> String,
) -> Option<Examined> {
    let Numbers {
        real, synthetic, ..
    } = numbers;
    let sizes = Sizes::of(real.len(), synthetic.len());
    let place = (share * sizes.real) as usize;
    let limit = match is_upper {
        true => real[real.len() - 1 - place.min(real.len() - 1)],
        false => real[place.min(real.len() - 1)],
    };
    let beyond = |numbers: &[f64]| match is_upper {
        true => numbers.len() - numbers.partition_point(|&number| number <= limit),
        false => numbers.partition_point(|&number| number < limit),
    };
    let counts = Sizes::of(beyond(real), beyond(synthetic));
    if counts.real < MIN_BEYOND {
        return None;
    }
    let name = &column.name;
    let mut examined = share_check(
        Check::Tails,
        Some(AnalysisPurpose::Tails),
        vec![name.clone()],
        counts,
        sizes,
    );
    let (one, two) = (counts.real / sizes.real, counts.synthetic / sizes.synthetic);
    // A tenth of a record avoids a division by zero.
    let factor = (one / two.max(0.1 / sizes.synthetic)).max(two / one);
    examined.size = factor.ln() / MIN_TAIL_FACTOR.ln();
    examined.text = format!(
        "{name} is {} {} in {} of the synthetic records, and in {} of the real ones",
        if is_upper { "above" } else { "below" },
        shown(limit),
        percent(two),
        percent(one)
    );
    Some(examined)
}

/// Looks for records of one table beyond the smallest or largest number of the other.
fn range_checks(
    column: &Column,
    numbers: &Numbers,
    shown: &dyn Fn(f64) -> String,
) -> Vec<Examined> {
    let tables = [("real", &numbers.real), ("synthetic", &numbers.synthetic)];
    let mut found = Vec::new();
    for [(outer, more), (inner, fewer)] in [tables, [tables[1], tables[0]]] {
        let (Some(&low), Some(&high)) = (fewer.first(), fewer.last()) else {
            continue;
        };
        let above = more.len() - more.partition_point(|&number| number <= high);
        let below = more.partition_point(|&number| number < low);
        for (count, limit, words) in [
            (above, high, "above the largest"),
            (below, low, "below the smallest"),
        ] {
            let mut examined = range_check(count, [more.len(), fewer.len()]);
            examined.columns = vec![column.name.clone()];
            examined.text = format!(
                "{} of the {outer} values of {} are {words} {inner} one, which is {}",
                percent(examined.distance),
                column.name,
                shown(limit)
            );
            found.push(examined);
        }
    }
    found
}

/// Compares the number of records of a table beyond all records of the other with that of two samples of the same
/// population. `sizes` are the records of the two tables.
fn range_check(count: usize, sizes: [usize; 2]) -> Examined {
    let [more, fewer] = sizes.map(|size| size as f64);
    let share = count as f64 / more;
    let expected = 1.0 / (fewer + 1.0);
    Examined {
        check: Check::Tails,
        columns: Vec::new(),
        purpose: Some(AnalysisPurpose::Tails),
        distance: share,
        expected,
        spread: expected,
        // The probability that the outermost `count` records of both tables are all of the same table.
        p: (more / (more + fewer)).powf(count as f64),
        size: (share - expected) / MIN_OUTSIDE,
        tests: 1,
        text: String::new(),
    }
}
