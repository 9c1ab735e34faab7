//! What the checks of a report have measured, before it is decided which of them failed.

use std::collections::BTreeMap;

use fhaim_domain::{Schema, TimeFormat};

use super::{AnalysisPurpose, AreaName, Check};

/// Size from which a difference is severe, in units of the smallest that matters.
pub(super) const SEVERE: f64 = 2.0;

/// Largest size of a difference that matters and is not severe.
pub(super) const MINOR: f64 = 1.99;

/// A measured difference of one kind, about the same columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Examined {
    pub(super) check: Check,
    pub(super) columns: Vec<String>,
    /// The purpose that suffers if the check fails.
    pub(super) purpose: Option<AnalysisPurpose>,
    /// The measured distance.
    pub(super) distance: f64,
    /// Mean distance of two samples of the same population.
    pub(super) expected: f64,
    /// Standard deviation of that distance.
    pub(super) spread: f64,
    /// Probability that two samples of the same population differ as much.
    pub(super) p: f64,
    /// The difference beyond the expected one, in units of the smallest that matters.
    pub(super) size: f64,
    /// Number of comparisons of which this is the most conspicuous one.
    pub(super) tests: usize,
    /// The difference, as a sentence without a full stop.
    pub(super) text: String,
}

/// Checks that share a bound on the probability that any of them fails for a second real sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    Columns,
    Forms,
    Associations,
    Rates,
    Triples,
    Rules,
    Constraints,
    Prediction,
    Copies,
    Membership,
}

impl Family {
    /// Probability that any check of the family fails for a second real sample, at most. All families together have
    /// less than 2%.
    pub(super) fn alpha(self) -> f64 {
        match self {
            // Rates of small groups are many comparisons of few records.
            Self::Rates => 0.005,
            // The number of copies is a single comparison with little power in small tables.
            Self::Copies => 0.003,
            _ => 0.001,
        }
    }

    pub(super) fn area(self) -> AreaName {
        match self {
            Self::Columns | Self::Forms => AreaName::Columns,
            Self::Associations | Self::Rates => AreaName::Pairs,
            Self::Triples => AreaName::Triples,
            Self::Rules | Self::Constraints => AreaName::Rules,
            Self::Prediction => AreaName::Prediction,
            Self::Copies | Self::Membership => AreaName::Privacy,
        }
    }
}

/// The score of an area, and that of a second real sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Score {
    pub(super) found: f64,
    pub(super) baseline: f64,
}

impl Score {
    /// Returns the mean of scores, or `None` without any.
    pub(super) fn mean(scores: &[Self]) -> Option<Self> {
        let mean = |part: fn(&Self) -> f64| {
            scores.iter().map(part).sum::<f64>() / scores.len().max(1) as f64
        };
        (!scores.is_empty()).then(|| Self {
            found: mean(|score| score.found).clamp(0.0, 1.0),
            baseline: mean(|score| score.baseline).clamp(0.0, 1.0),
        })
    }

    /// Returns the score of a distance from 0 to 1, and of the mean distance of two samples.
    pub(super) fn of_distance(distance: f64, expected: f64) -> Self {
        Self {
            found: 1.0 - distance,
            baseline: 1.0 - expected,
        }
    }
}

/// The results of one family of checks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Findings {
    pub(super) examined: Vec<Examined>,
    pub(super) scores: Vec<Score>,
    /// Number of columns, pairs, triples, rules or attacks.
    pub(super) subjects: usize,
    /// Number of subjects that exist, if not all were examined.
    pub(super) all: usize,
}

/// The results of all checks of a report so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Evidence {
    pub(super) families: BTreeMap<Family, Findings>,
    /// Formats of the columns of times.
    pub(super) formats: BTreeMap<String, TimeFormat>,
    /// Names of columns, in the order of the table.
    pub(super) names: Vec<String>,
}

impl Evidence {
    /// Returns the evidence before the first check.
    pub(crate) fn new(schema: &Schema) -> Self {
        let formats = schema.fields().iter();
        let formats = formats.filter_map(|f| Some((f.name().to_owned(), f.time_format()?.clone())));
        let fields = schema.fields().iter().map(|field| field.name());
        let attributes = schema.columns().iter().map(|column| column.name());
        Self {
            families: BTreeMap::new(),
            formats: formats.collect(),
            names: fields.chain(attributes).map(str::to_owned).collect(),
        }
    }

    /// Adds the results of a family, and replaces earlier ones.
    pub(crate) fn put(&mut self, family: Family, findings: Findings) {
        self.families.insert(family, findings);
    }

    /// Adds further results of a family.
    pub(crate) fn add(&mut self, family: Family, findings: Findings) {
        let known = self.families.entry(family).or_default();
        known.examined.extend(findings.examined);
        known.scores.extend(findings.scores);
        known.subjects += findings.subjects;
        known.all += findings.all;
    }

    /// Returns the columns of each examined set of a family, the one with the largest difference first.
    pub(crate) fn largest(&self, family: Family) -> Vec<&[String]> {
        let examined = self
            .families
            .get(&family)
            .map(|findings| &findings.examined);
        let mut examined: Vec<&Examined> = examined.into_iter().flatten().collect();
        examined.sort_by(|x, y| y.size.total_cmp(&x.size));
        examined.into_iter().map(|one| &one.columns[..]).collect()
    }

    /// Writes a number of a column as the table does.
    pub(crate) fn shown(&self, column: &str, number: f64) -> String {
        match self.formats.get(column) {
            Some(format) => format.show(number as i64).to_string(),
            None => plain(number),
        }
    }
}

/// Writes a number with at most six significant digits after its integer part.
pub(super) fn plain(number: f64) -> String {
    let text = format!("{number}");
    if text.len() <= 12 {
        return text;
    }
    let decimals = if number.abs() >= 1_000.0 { 0 } else { 4 };
    format!("{number:.decimals$}")
}

/// Writes a share as a percentage with its significant digits.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "0%".to_owned(),
        _ if percent < 0.01 => "less than 0.01%".to_owned(),
        _ if percent < 0.95 => format!("{percent:.2}%"),
        _ if percent < 99.95 => format!("{percent:.1}%"),
        _ if percent < 100.0 => "more than 99.9%".to_owned(),
        _ => "100%".to_owned(),
    }
}
