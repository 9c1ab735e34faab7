//! Checks of rules: constraints of the schema, and rules that hold in the real table without exception.

use fhaim_domain::{RawColumn, RawValues};

use super::{
    Check,
    coarse::{Coarse, cells},
    evidence::{Evidence, Examined, Findings, MINOR, SEVERE, Score, percent},
    pairs::Columns,
    statistics::{Sizes, two_counts},
};
use crate::ConstraintReport;

/// Smallest share of the synthetic records that matters if it breaks a rule: more than typing errors explain.
const MIN_BROKEN: f64 = 0.001;
/// Share of the synthetic records from which a broken rule is severe.
const MANY_BROKEN: f64 = 0.01;

/// Smallest number of real records of a rule about order.
pub(super) const MIN_RECORDS: f64 = 100.0;
/// Two columns are in order by chance if fewer records would break the order with independent values.
pub(super) const MIN_BROKEN_BY_CHANCE: f64 = 0.05;

/// Smallest number of real records that would have a pair of values if the columns were independent. A pair with fewer
/// may be absent by chance.
pub(super) const MIN_EXPECTED: f64 = 20.0;

/// Checks the schema's constraints.
pub(crate) fn constraint_checks(constraints: &[ConstraintReport], sizes: [usize; 2]) -> Findings {
    let sizes = Sizes::of(sizes[0], sizes[1]);
    let mut findings = Findings::default();
    for constraint in constraints {
        let broken = Sizes {
            real: constraint.broken.real * sizes.real,
            synthetic: constraint.broken.synthetic * sizes.synthetic,
        };
        findings.add_rule(
            constraint.columns.clone(),
            &format!("the rule that {}", constraint.text),
            broken,
            sizes,
        );
    }
    findings
}

/// Checks the order of each two columns of numbers, or of times.
pub(crate) fn order_checks(
    evidence: &Evidence,
    real: &[RawColumn],
    synthetic: &[RawColumn],
) -> Findings {
    let mut findings = Findings::default();
    let columns: Vec<[&RawColumn; 2]> = real
        .iter()
        .filter_map(|column| Some([column, synthetic.iter().find(|c| c.name == column.name)?]))
        .collect();
    for low in &columns {
        for high in &columns {
            let is_time = |column: &RawColumn| evidence.formats.contains_key(&column.name);
            if low[0].name == high[0].name || is_time(low[0]) != is_time(high[0]) {
                continue;
            }
            let Some((broken, sizes)) = broken_order(low, high) else {
                continue;
            };
            let [low, high] = [low, high].map(|column| column[0].name.clone());
            let rule = format!("the rule that {low} is at most {high}");
            findings.add_rule(vec![low, high], &rule, broken, sizes);
        }
    }
    findings
}

/// Counts the synthetic records whose first value is larger. Returns `None` if a real record breaks the order, or if
/// independent values would hardly break it.
fn broken_order(low: &[&RawColumn; 2], high: &[&RawColumn; 2]) -> Option<(Sizes, Sizes)> {
    let numbers = |column: &RawColumn| match &column.values {
        RawValues::Numbers(values) => Some(values.clone()),
        RawValues::Texts { .. } => None,
    };
    let compared = |table: usize, only_ordered: bool| {
        let (RawValues::Numbers(one), RawValues::Numbers(two)) =
            (&low[table].values, &high[table].values)
        else {
            return None;
        };
        let both = one
            .iter()
            .zip(two)
            .filter_map(|(one, two)| Some(((*one)?, (*two)?)));
        let (mut all, mut broken) = (0.0, 0.0);
        for (one, two) in both {
            all += 1.0;
            if one > two {
                broken += 1.0;
                if only_ordered {
                    return None;
                }
            }
        }
        Some((broken, all))
    };
    let (_, all) = compared(0, true)?;
    if all < MIN_RECORDS
        || broken_by_chance(numbers(low[0])?, numbers(high[0])?) < MIN_BROKEN_BY_CHANCE
    {
        return None;
    }
    let (broken, synthetic) = compared(1, false)?;
    let sizes = Sizes {
        real: all,
        synthetic,
    };
    Some((
        Sizes {
            real: 0.0,
            synthetic: broken,
        },
        sizes,
    ))
}

/// Returns the share of the pairs of values, each from any record, whose first value is larger.
fn broken_by_chance(low: Vec<Option<f64>>, high: Vec<Option<f64>>) -> f64 {
    let sorted = |values: Vec<Option<f64>>| {
        let mut values: Vec<f64> = values.into_iter().flatten().collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (low, high) = (sorted(low), sorted(high));
    let mut below = 0;
    let mut sum = 0.0;
    for value in &low {
        while below < high.len() && high[below] < *value {
            below += 1;
        }
        sum += below as f64;
    }
    sum / (low.len() as f64 * high.len() as f64).max(1.0)
}

impl Columns {
    /// Checks pairs of values that never occur together in the real table, and values with which only one other occurs.
    pub(crate) fn never_checks(&self) -> Findings {
        let mut findings = Findings::default();
        for (b, two) in self.groups.iter().enumerate() {
            for one in &self.groups[..b] {
                never_together(one, two, &mut findings);
                always_together(one, two, &mut findings);
                always_together(two, one, &mut findings);
            }
        }
        findings
    }
}

fn never_together(one: &Coarse, two: &Coarse, findings: &mut Findings) {
    let [real, synthetic] = cells(&[one, two]);
    let width = two.len();
    let sizes = Sizes {
        real: real.iter().sum(),
        synthetic: synthetic.iter().sum(),
    };
    let row = |cell: usize| {
        real[cell / width * width..(cell / width + 1) * width]
            .iter()
            .sum::<f64>()
    };
    let column = |cell: usize| real.iter().skip(cell % width).step_by(width).sum::<f64>();
    for cell in (0..real.len()).filter(|&cell| real[cell] == 0.0) {
        if row(cell) * column(cell) / sizes.real < MIN_EXPECTED {
            continue;
        }
        let rule = format!(
            "the rule that {} {} never occurs with {} {}",
            one.name,
            one.phrase(cell / width),
            two.name,
            two.phrase(cell % width)
        );
        let broken = Sizes {
            real: 0.0,
            synthetic: synthetic[cell],
        };
        findings.add_rule(
            vec![one.name.clone(), two.name.clone()],
            &rule,
            broken,
            sizes,
        );
    }
}

/// Checks the groups in which all real records have the same value. Two values are left to [`never_together`].
fn always_together(groups: &Coarse, values: &Coarse, findings: &mut Findings) {
    let width = values.len();
    if width < 3 {
        return;
    }
    let [real, synthetic] = cells(&[groups, values]);
    let sizes = Sizes {
        real: real.iter().sum(),
        synthetic: synthetic.iter().sum(),
    };
    for (group, row) in real.chunks(width).enumerate() {
        let records: f64 = row.iter().sum();
        let occurring: Vec<usize> = (0..width).filter(|&value| row[value] > 0.0).collect();
        let [only] = occurring[..] else {
            continue;
        };
        let of_value: f64 = real.iter().skip(only).step_by(width).sum();
        if records * (1.0 - of_value / sizes.real) < MIN_EXPECTED {
            continue;
        }
        let rule = format!(
            "the rule that {} is always {} where {} is {}",
            values.name,
            values.phrase(only),
            groups.name,
            groups.phrase(group)
        );
        let other = &synthetic[group * width..(group + 1) * width];
        let broken = Sizes {
            real: 0.0,
            synthetic: other.iter().sum::<f64>() - other[only],
        };
        let columns = vec![groups.name.clone(), values.name.clone()];
        findings.add_rule(columns, &rule, broken, sizes);
    }
}

impl Findings {
    /// Adds the comparison of the records that break a rule.
    pub(super) fn add_rule(
        &mut self,
        columns: Vec<String>,
        rule: &str,
        broken: Sizes,
        sizes: Sizes,
    ) {
        let real = broken.real / sizes.real.max(1.0);
        let synthetic = broken.synthetic / sizes.synthetic.max(1.0);
        let more = synthetic - real;
        let size = match more >= MANY_BROKEN {
            true => SEVERE * more / MANY_BROKEN,
            false => (more / MIN_BROKEN).min(MINOR),
        };
        let expected = 1.0 / (sizes.real + 1.0);
        self.subjects += 1;
        self.all += 1;
        self.scores
            .push(Score::of_distance(synthetic, real.max(expected)));
        self.examined.push(Examined {
            check: Check::Rule,
            columns,
            purpose: None,
            distance: synthetic,
            expected: real,
            spread: expected,
            p: if more > 0.0 {
                two_counts(broken, sizes)
            } else {
                1.0
            },
            size,
            tests: 1,
            text: format!(
                "{} of the synthetic records break {rule}, and {} of the real ones",
                percent(synthetic),
                if real == 0.0 {
                    "none".to_owned()
                } else {
                    percent(real)
                }
            ),
        });
    }
}
