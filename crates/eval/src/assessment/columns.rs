//! Checks of single columns: missing values, shares of values, distribution and tails of numbers.

use std::collections::BTreeMap;

use fhaim_domain::{RawColumn, RawValues, Table};

use super::{
    AnalysisPurpose, Check,
    calendar::calendar_checks,
    coarse::with_unit,
    evidence::{Evidence, Examined, Findings, MINOR, Score, percent},
    spikes::{spikes, value_counts},
    statistics::{
        Cells, KOLMOGOROV_MEAN, Sizes, cohens_h, expected_difference, kolmogorov_tail, two_counts,
    },
    tails::tail_checks,
};

/// Smallest distance of two distributions that matters, beyond the expected one: one record in twenty has another
/// value, which changes a mean or a quantile visibly.
const MIN_DISTANCE: f64 = 0.05;

/// Smallest difference of two shares that matters, as Cohen's h. Cohen calls 0.2 a small effect; 0.14 is the change
/// from 50% to 57%, from 5% to 8.5%, and from 0.2% to 1.3%.
pub(super) const MIN_EFFECT: f64 = 0.14;

/// Smallest share of the records of either table with a rare value that matters, and the smallest factor by which it
/// must change.
const MIN_SHARE: f64 = 0.001;
const MIN_FACTOR: f64 = 2.0;

/// Maximum number of distinct values of a column of numbers that is compared value by value.
const MAX_DISCRETE: usize = 30;

/// A column of both tables, with the records that have no value apart.
pub(super) struct Column {
    pub(super) name: String,
    values: Values,
    /// Words among numbers.
    words: Counts,
    missing: Sizes,
    records: Sizes,
}

/// Numbers of real and synthetic records, by name.
type Counts = BTreeMap<String, (f64, f64)>;

enum Values {
    /// Names with their counts.
    Names(Counts),
    /// Numbers.
    Numbers(Numbers),
}

/// The numbers of a column.
pub(super) struct Numbers {
    /// Numbers of the real table, ascending.
    pub(super) real: Vec<f64>,
    /// Numbers of the synthetic table, ascending.
    pub(super) synthetic: Vec<f64>,
    /// Whether the numbers are codes of bins, whose distances have no meaning.
    are_codes: bool,
    /// Names of codes.
    labels: Vec<String>,
}

/// Checks columns by their original values.
pub(crate) fn value_checks(
    evidence: &Evidence,
    real: &[RawColumn],
    synthetic: &[RawColumn],
) -> Findings {
    let other = |name: &str| synthetic.iter().find(|column| column.name == name);
    let columns = real.iter().filter_map(|column| {
        let other = other(&column.name)?;
        raw_column(column, other)
    });
    checks(evidence, &columns.collect::<Vec<Column>>())
}

/// Checks columns by their codes.
pub(crate) fn code_checks(evidence: &Evidence, real: &Table, synthetic: &Table) -> Findings {
    let attributes = real.domain().coarse_attributes().into_iter();
    let columns = attributes.map(|attribute| coded_column(attribute, real, synthetic));
    checks(evidence, &columns.collect::<Vec<Column>>())
}

fn checks(evidence: &Evidence, columns: &[Column]) -> Findings {
    let mut findings = Findings {
        subjects: columns.len(),
        all: columns.len(),
        ..Findings::default()
    };
    for column in columns {
        findings.examined.extend(missing_check(column));
        match &column.values {
            Values::Names(counts) => share_checks(column, counts, &mut findings),
            Values::Numbers(numbers) => number_checks(evidence, column, numbers, &mut findings),
        }
        if !column.words.is_empty() {
            share_checks(column, &column.words, &mut findings);
        }
    }
    findings
}

fn raw_column(real: &RawColumn, synthetic: &RawColumn) -> Option<Column> {
    let values = match (&real.values, &synthetic.values) {
        (RawValues::Numbers(one), RawValues::Numbers(two)) => Values::Numbers(Numbers {
            real: ascending(one.iter().flatten().copied()),
            synthetic: ascending(two.iter().flatten().copied()),
            are_codes: false,
            labels: Vec::new(),
        }),
        (RawValues::Texts { .. }, RawValues::Texts { .. }) => {
            let mut counts = Counts::new();
            each_name(real, |name| {
                counts.entry(name.to_owned()).or_default().0 += 1.0;
            });
            each_name(synthetic, |name| {
                counts.entry(name.to_owned()).or_default().1 += 1.0;
            });
            Values::Names(counts)
        }
        _ => return None,
    };
    let of = |count: fn(&RawColumn) -> usize| Sizes::of(count(real), count(synthetic));
    let mut words = Counts::new();
    for word in real.words.values() {
        words.entry(word.clone()).or_default().0 += 1.0;
    }
    for word in synthetic.words.values() {
        words.entry(word.clone()).or_default().1 += 1.0;
    }
    Some(Column {
        name: real.name.clone(),
        values,
        words,
        missing: of(missing),
        records: of(records),
    })
}

fn each_name(column: &RawColumn, mut take: impl FnMut(&str)) {
    if let RawValues::Texts { values, names } = &column.values {
        let names = values
            .iter()
            .flatten()
            .filter_map(|&index| names.get(index as usize));
        names.for_each(|name| take(name));
    }
}

/// Number of records of a column.
pub(super) fn records(column: &RawColumn) -> usize {
    match &column.values {
        RawValues::Numbers(values) => values.len(),
        RawValues::Texts { values, .. } => values.len(),
    }
}

fn missing(column: &RawColumn) -> usize {
    match &column.values {
        RawValues::Numbers(values) => {
            let empty = values.iter().filter(|value| value.is_none()).count();
            empty.saturating_sub(column.words.len())
        }
        RawValues::Texts { values, .. } => values.iter().filter(|value| value.is_none()).count(),
    }
}

fn coded_column(attribute: usize, real: &Table, synthetic: &Table) -> Column {
    let column = &real.schema().columns()[attribute];
    let null = column.null_code();
    let present = |table: &Table| -> Vec<u32> {
        let codes = table.column(attribute).iter().copied();
        codes.filter(|&code| Some(code) != null).collect()
    };
    let (one, two) = (present(real), present(synthetic));
    let label = |code: u32| with_unit(column.label(code), real.schema().unit(attribute, code));
    let missing = Sizes::of(real.records() - one.len(), synthetic.records() - two.len());
    let values = if column.ordered() {
        let numbers = |codes: &[u32]| ascending(codes.iter().map(|&code| f64::from(code)));
        Values::Numbers(Numbers {
            real: numbers(&one),
            synthetic: numbers(&two),
            are_codes: true,
            labels: (0..column.size() as u32).map(label).collect(),
        })
    } else {
        let mut counts = vec![(0.0, 0.0); column.size()];
        one.iter().for_each(|&code| counts[code as usize].0 += 1.0);
        two.iter().for_each(|&code| counts[code as usize].1 += 1.0);
        let named = (0..).zip(counts).map(|(code, count)| (label(code), count));
        Values::Names(named.collect())
    };
    Column {
        name: column.name().to_owned(),
        values,
        words: Counts::new(),
        missing,
        records: Sizes::of(real.records(), synthetic.records()),
    }
}

fn ascending(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

/// Compares a share of the records of both tables.
pub(super) fn share_check(
    check: Check,
    purpose: Option<AnalysisPurpose>,
    columns: Vec<String>,
    counts: Sizes,
    sizes: Sizes,
) -> Examined {
    let one = counts.real / sizes.real.max(1.0);
    let two = counts.synthetic / sizes.synthetic.max(1.0);
    let pooled = (counts.real + counts.synthetic) / (sizes.real + sizes.synthetic).max(1.0);
    let expected = expected_difference(pooled, sizes);
    Examined {
        check,
        columns,
        purpose,
        distance: (one - two).abs(),
        expected,
        spread: expected * 0.756,
        p: two_counts(counts, sizes),
        size: cohens_h(one, two) / MIN_EFFECT,
        tests: 1,
        text: String::new(),
    }
}

/// Returns how much the change of a share matters, in units of the smallest change that does. The share of a rare value
/// also matters if it changes by a factor, but not severely.
fn share_size(counts: Sizes, sizes: Sizes) -> f64 {
    let one = counts.real / sizes.real.max(1.0);
    let two = counts.synthetic / sizes.synthetic.max(1.0);
    let effect = cohens_h(one, two) / MIN_EFFECT;
    if one.max(two) < MIN_SHARE {
        return effect;
    }
    // A tenth of a record avoids a division by zero.
    let at_least = |share: f64, records: f64| share.max(0.1 / records.max(1.0));
    let factor = at_least(one, sizes.real) / at_least(two, sizes.synthetic);
    effect.max((factor.ln().abs() / MIN_FACTOR.ln()).min(MINOR))
}

fn missing_check(column: &Column) -> Option<Examined> {
    let Column {
        missing,
        records,
        name,
        ..
    } = column;
    if missing.real + missing.synthetic == 0.0 {
        return None;
    }
    let mut examined = share_check(
        Check::Missing,
        Some(AnalysisPurpose::Shares),
        vec![name.clone()],
        *missing,
        *records,
    );
    examined.size = share_size(*missing, *records);
    examined.text = format!(
        "{name} has no value in {} of the synthetic records, and in {} of the real ones",
        percent(missing.synthetic / records.synthetic),
        percent(missing.real / records.real)
    );
    Some(examined)
}

/// Compares the shares of all values together, and of each single value.
fn share_checks(column: &Column, counts: &Counts, findings: &mut Findings) {
    let cells = Cells {
        real: counts.values().map(|count| count.0).collect(),
        synthetic: counts.values().map(|count| count.1).collect(),
    };
    let compared = cells.compare();
    findings
        .scores
        .push(Score::of_distance(compared.distance, compared.expected));
    let sizes = Sizes {
        real: cells.real.iter().sum(),
        synthetic: cells.synthetic.iter().sum(),
    };
    let values = counts
        .iter()
        .map(|(name, &(one, two))| (name.clone(), one, two));
    let Some(single) = most_changed(column, values.collect(), sizes) else {
        return;
    };
    findings.examined.push(Examined {
        distance: compared.distance,
        expected: compared.expected,
        spread: compared.expected / (2.0 * compared.freedom.max(1.0)).sqrt(),
        p: compared.p,
        size: (compared.distance - compared.expected) / MIN_DISTANCE,
        tests: 1,
        ..single.clone()
    });
    findings.examined.push(single);
}

/// Returns the comparison of the value whose share has changed most, of those that changed enough to matter if there are
/// any.
pub(super) fn most_changed(
    column: &Column,
    values: Vec<(String, f64, f64)>,
    sizes: Sizes,
) -> Option<Examined> {
    let tests = values.len();
    let changes = values.into_iter().map(|(value, real, synthetic)| {
        let counts = Sizes { real, synthetic };
        let effect = cohens_h(
            real / sizes.real.max(1.0),
            synthetic / sizes.synthetic.max(1.0),
        );
        let size = share_size(counts, sizes);
        ((size >= 1.0, effect), size, value, counts)
    });
    let rank = |x: (bool, f64), y: (bool, f64)| x.0.cmp(&y.0).then(x.1.total_cmp(&y.1));
    let (_, size, value, counts) = changes.max_by(|x, y| rank(x.0, y.0))?;
    let name = &column.name;
    let mut examined = share_check(
        Check::Shares,
        Some(AnalysisPurpose::Shares),
        vec![name.clone()],
        counts,
        sizes,
    );
    examined.size = size;
    examined.tests = tests;
    examined.text = format!(
        "{name} is {value} in {} of the synthetic records, and in {} of the real ones",
        percent(counts.synthetic / sizes.synthetic.max(1.0)),
        percent(counts.real / sizes.real.max(1.0))
    );
    Some(examined)
}

fn number_checks(evidence: &Evidence, column: &Column, numbers: &Numbers, findings: &mut Findings) {
    if numbers.real.is_empty() || numbers.synthetic.is_empty() {
        return;
    }
    let shown = |number: f64| match numbers.are_codes {
        true => numbers
            .labels
            .get(number as usize)
            .cloned()
            .unwrap_or_default(),
        false => evidence.shown(&column.name, number),
    };
    let distribution = distribution_check(column, numbers, &shown);
    findings.scores.push(Score::of_distance(
        distribution.distance,
        distribution.expected,
    ));
    findings.examined.push(distribution);
    if numbers.are_codes {
        return;
    }
    if let Some(format) = evidence.formats.get(&column.name) {
        findings
            .examined
            .extend(calendar_checks(column, numbers, format));
    }
    let counts = value_counts(numbers);
    let different = counts.iter().filter(|(_, real, _)| *real > 0.0).count();
    let sizes = Sizes::of(numbers.real.len(), numbers.synthetic.len());
    let compared: Vec<(String, f64, f64)> = if different <= MAX_DISCRETE {
        counts
            .iter()
            .map(|&(v, one, two)| (shown(v), one, two))
            .collect()
    } else {
        let spikes = spikes(&counts, sizes).into_iter();
        spikes.map(|(v, one, two)| (shown(v), one, two)).collect()
    };
    findings
        .examined
        .extend(most_changed(column, compared, sizes));
    if different > MAX_DISCRETE {
        findings
            .examined
            .extend(tail_checks(column, numbers, &shown));
    }
}

/// Compares the shares of numbers below each number.
fn distribution_check(
    column: &Column,
    numbers: &Numbers,
    shown: &dyn Fn(f64) -> String,
) -> Examined {
    let (distance, at) = kolmogorov_smirnov(&numbers.real, &numbers.synthetic);
    let sizes = Sizes::of(numbers.real.len(), numbers.synthetic.len());
    let expected = (KOLMOGOROV_MEAN * sizes.variance().sqrt()).min(1.0);
    let name = &column.name;
    Examined {
        check: Check::Distribution,
        columns: vec![name.clone()],
        purpose: Some(AnalysisPurpose::Means),
        distance,
        expected,
        spread: 0.26 * sizes.variance().sqrt(),
        p: kolmogorov_tail(distance, sizes),
        size: (distance - expected) / MIN_DISTANCE,
        tests: 1,
        text: format!(
            "{name} is at most {} in {} of the synthetic records, and in {} of the real ones",
            shown(at),
            percent(share_up_to(&numbers.synthetic, at)),
            percent(share_up_to(&numbers.real, at))
        ),
    }
}

fn share_up_to(numbers: &[f64], limit: f64) -> f64 {
    numbers.partition_point(|&number| number <= limit) as f64 / numbers.len().max(1) as f64
}

/// Returns the Kolmogorov-Smirnov distance of two ascending lists, and the number at which it is reached.
fn kolmogorov_smirnov(real: &[f64], synthetic: &[f64]) -> (f64, f64) {
    let (mut i, mut j) = (0, 0);
    let mut largest = (0.0, 0.0);
    while i < real.len() && j < synthetic.len() {
        let at = real[i].min(synthetic[j]);
        while i < real.len() && real[i] <= at {
            i += 1;
        }
        while j < synthetic.len() && synthetic[j] <= at {
            j += 1;
        }
        let gap = (i as f64 / real.len() as f64 - j as f64 / synthetic.len() as f64).abs();
        if gap > largest.0 {
            largest = (gap, at);
        }
    }
    largest
}
