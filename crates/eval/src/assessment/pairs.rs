//! Checks of pairs of columns: association, and rates by group.

use fhaim_domain::Table;

use super::{
    AnalysisPurpose, Check,
    coarse::{Coarse, cells},
    columns::share_check,
    evidence::{Examined, Findings, MINOR, Score, percent},
    interaction::interaction,
    statistics::{Cells, Sizes, cohens_h},
};
use crate::association::cramers_v;

/// Maximum number of values of a column in a test of association.
const MAX_VALUES: usize = 8;
/// Records per cell in a test of association, at least on average.
const RECORDS_PER_CELL: f64 = 20.0;

/// Smallest distance of the joint distributions that matters, apart from the columns' own differences: one record in
/// twenty is in another cell.
const MIN_DISTANCE: f64 = 0.05;
/// Smallest change of Cramér's V that matters: a weak correlation (Cohen 1988, chapter 7) appears or disappears.
const MIN_V: f64 = 0.1;

/// Maximum number of groups, and the smallest number of records of both tables in one.
const MAX_GROUPS: usize = 64;
const MIN_GROUP: usize = 60;
/// A column with more values has rates only for its most frequent ones.
const MAX_RATES: usize = 20;
/// Smallest number of records of both tables with a value in a group.
const MIN_CASES: f64 = 5.0;
/// A wrong rate is not severe if the group has a smaller share of the real records.
const SMALL_GROUP: f64 = 0.01;
/// A rate changes beyond its column if its effect is larger by this much.
const BEYOND_COLUMN: f64 = 0.1;

/// The columns of both tables, in the granularity of each check.
pub(crate) struct Columns {
    pub(super) pairs: Vec<Coarse>,
    pub(super) triples: Vec<Coarse>,
    pub(super) groups: Vec<Coarse>,
    pub(super) target: Option<usize>,
}

impl Columns {
    pub(crate) fn new(real: &Table, synthetic: &Table) -> Self {
        let attributes = real.domain().coarse_attributes();
        let records = real.records().min(synthetic.records()) as f64;
        let cells = records / RECORDS_PER_CELL;
        let pair_values = (cells.sqrt() as usize).clamp(2, MAX_VALUES);
        let triple_values = (cells.cbrt() as usize).clamp(2, MAX_VALUES / 2);
        let of = |most: usize, least: usize| -> Vec<Coarse> {
            let coarse = |&a: &usize| Coarse::new([real, synthetic], a, most, least);
            attributes.iter().map(coarse).collect()
        };
        let least = RECORDS_PER_CELL as usize;
        let group = |&attribute: &usize| {
            let is_ordered = real.schema().columns()[attribute].ordered();
            let most = if is_ordered { MAX_VALUES } else { MAX_GROUPS };
            Coarse::new([real, synthetic], attribute, most, MIN_GROUP)
        };
        let target = real.schema().target();
        Self {
            pairs: of(pair_values, least),
            triples: of(triple_values, least),
            groups: attributes.iter().map(group).collect(),
            target: target.and_then(|target| attributes.iter().position(|&a| a == target)),
        }
    }

    /// Checks the association of all pairs.
    pub(crate) fn associations(&self) -> Findings {
        let mut findings = Findings::default();
        for (b, two) in self.pairs.iter().enumerate() {
            for one in &self.pairs[..b] {
                findings.subjects += 1;
                let [real, synthetic] = cells(&[one, two]);
                let both = Cells { real, synthetic };
                let compared = both.compare();
                let score = Score::of_distance(compared.distance, compared.expected);
                findings.scores.push(score);
                findings.examined.extend(association([one, two], both));
            }
        }
        findings.all = findings.subjects;
        findings
    }

    /// Checks the rates of all values of a column in the groups of each other column.
    pub(crate) fn rates(&self) -> Findings {
        let mut findings = Findings::default();
        for b in 0..self.groups.len() {
            for a in 0..b {
                findings.subjects += 1;
                findings.examined.extend(self.rates_of_pair(a, b));
            }
        }
        findings.all = findings.subjects;
        findings
    }

    /// Returns the most conspicuous rate of a pair, of those that are large enough to matter if there are any. For a
    /// pair with the target, these are the rates of the target.
    fn rates_of_pair(&self, a: usize, b: usize) -> Option<Examined> {
        let directions = [[a, b], [b, a]];
        let of = |[groups, values]: [usize; 2]| {
            let is_reverse = self.target == Some(groups) && !self.groups[groups].is_ordered;
            let columns = [&self.groups[groups], &self.groups[values]];
            (!is_reverse).then(|| (columns, rates(columns)))
        };
        let rates: Vec<([&Coarse; 2], Vec<Rate>)> = directions.into_iter().filter_map(of).collect();
        let tests = rates.iter().map(|(_, rates)| rates.len()).sum();
        let all = rates
            .iter()
            .flat_map(|(columns, rates)| rates.iter().map(move |rate| (columns, rate)));
        let (columns, rate) = all.max_by(|x, y| x.1.rank().total_cmp(&y.1.rank()))?;
        Some(rate.examined(*columns, tests))
    }
}

fn association([one, two]: [&Coarse; 2], cells: Cells) -> Option<Examined> {
    let width = two.len();
    let v = [&cells.real, &cells.synthetic].map(|counts| {
        let counts: Vec<u64> = counts.iter().map(|&count| count as u64).collect();
        unbiased_v(&counts, width)
    });
    let sizes = Sizes {
        real: cells.real.iter().sum(),
        synthetic: cells.synthetic.iter().sum(),
    };
    let found = interaction(&[cells.real, cells.synthetic], &[one.len(), width])?;
    let change = (v[1] - v[0]).abs() - sizes.variance().sqrt();
    let size = ((found.distance - found.expected) / MIN_DISTANCE).max(change / MIN_V);
    let how = match v[1] < v[0] {
        true => "less strongly",
        false => "more strongly",
    };
    let text = match (v[1] - v[0]).abs() < MIN_V / 2.0 {
        true => format!(
            "{} and {} depend on each other in another way",
            one.name, two.name
        ),
        false => format!(
            "{} and {} depend on each other {how} (Cram\u{e9}r's V is {:.2} instead of {:.2})",
            one.name, two.name, v[1], v[0]
        ),
    };
    Some(Examined {
        check: Check::Association,
        columns: vec![one.name.clone(), two.name.clone()],
        purpose: Some(AnalysisPurpose::Association),
        distance: found.distance,
        expected: found.expected,
        spread: found.spread,
        p: found.p,
        size,
        tests: 1,
        text,
    })
}

/// Returns Cramér's V without its bias in small samples (Bergsma 2013).
fn unbiased_v(counts: &[u64], width: usize) -> f64 {
    let all: u64 = counts.iter().sum();
    let rows = counts
        .chunks(width.max(1))
        .filter(|row| row.iter().any(|&c| c > 0))
        .count();
    let used = |column: usize| {
        counts
            .iter()
            .skip(column)
            .step_by(width.max(1))
            .any(|&c| c > 0)
    };
    let columns = (0..width).filter(|&column| used(column)).count();
    let smaller = rows.min(columns);
    if smaller < 2 || all < 2 {
        return 0.0;
    }
    let (rows, columns, records) = (rows as f64, columns as f64, (all - 1) as f64);
    let squared = cramers_v(counts, width).powi(2) * (smaller - 1) as f64;
    let free = (squared - (rows - 1.0) * (columns - 1.0) / records).max(0.0);
    let smaller =
        (rows - (rows - 1.0).powi(2) / records).min(columns - (columns - 1.0).powi(2) / records);
    (free / (smaller - 1.0).max(1e-9)).sqrt().min(1.0)
}

/// The share of a value in a group of both tables.
struct Rate {
    group: usize,
    value: usize,
    counts: Sizes,
    sizes: Sizes,
    /// Cohen's h of the two shares.
    effect: f64,
    /// Cohen's h of the shares in all records.
    of_column: f64,
}

impl Rate {
    /// Returns the effect beyond that of the column, in standard errors if it is large enough to matter.
    fn rank(&self) -> f64 {
        let error = self.sizes.variance().sqrt();
        let is_large = self.effect >= super::columns::MIN_EFFECT && self.is_beyond_column();
        if is_large {
            self.effect / error
        } else {
            self.effect * 1e-6 / error
        }
    }

    fn is_beyond_column(&self) -> bool {
        self.effect >= self.of_column + BEYOND_COLUMN
    }

    fn examined(&self, [groups, values]: [&Coarse; 2], tests: usize) -> Examined {
        let columns = vec![groups.name.clone(), values.name.clone()];
        let mut examined = share_check(
            Check::RateByGroup,
            Some(AnalysisPurpose::Rates),
            columns,
            self.counts,
            self.sizes,
        );
        examined.tests = tests;
        if !self.is_beyond_column() {
            examined.size = examined.size.min(0.9);
        }
        if self.sizes.real < SMALL_GROUP * groups.codes[0].len() as f64 {
            examined.size = examined.size.min(MINOR);
        }
        examined.text = format!(
            "where {} is {}, {} is {} in {} of the synthetic records, and in {} of the real ones",
            groups.name,
            groups.phrase(self.group),
            values.name,
            values.phrase(self.value),
            percent(self.counts.synthetic / self.sizes.synthetic),
            percent(self.counts.real / self.sizes.real)
        );
        examined
    }
}

/// Returns the rates of the values in all groups.
fn rates([groups, values]: [&Coarse; 2]) -> Vec<Rate> {
    let counts = cells(&[groups, values]);
    let width = values.len();
    let row = |table: usize, group: usize| &counts[table][group * width..(group + 1) * width];
    let column = |table: usize, value: usize| -> f64 {
        counts[table].iter().skip(value).step_by(width).sum()
    };
    let all = [0, 1].map(|table| counts[table].iter().sum::<f64>().max(1.0));
    let mut rates = Vec::new();
    // Of two values, the second says nothing else; values are in descending order of their records.
    let first = usize::from(width == 2 && !values.is_ordered);
    for value in (first..width.min(MAX_RATES)).filter(|&value| values.is_value(value)) {
        let of_column = cohens_h(column(0, value) / all[0], column(1, value) / all[1]);
        for group in 0..groups.len() {
            let [real, synthetic] = [0, 1].map(|table| row(table, group));
            let sizes = Sizes {
                real: real.iter().sum(),
                synthetic: synthetic.iter().sum(),
            };
            let counts = Sizes {
                real: real[value],
                synthetic: synthetic[value],
            };
            let few = MIN_GROUP as f64 / 4.0;
            if sizes.real.min(sizes.synthetic) < few || counts.real + counts.synthetic < MIN_CASES {
                continue;
            }
            let effect = cohens_h(counts.real / sizes.real, counts.synthetic / sizes.synthetic);
            rates.push(Rate {
                group,
                value,
                counts,
                sizes,
                effect,
                of_column,
            });
        }
    }
    rates
}
