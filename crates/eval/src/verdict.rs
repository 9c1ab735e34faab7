//! The verdict of a report in sentences, with the worst differences first.

use std::collections::{HashMap, HashSet};

use fhaim_domain::{RawColumn, RawValues};
use serde::Serialize;

use crate::{ConstraintReport, Report, ValueReport, membership::Membership};

/// A column or pair with a smaller distance is reliable.
const NEAR: f64 = 0.05;
/// A column or pair with at least this distance is not reliable.
const FAR: f64 = 0.1;

/// Factor of the limits for a pair of columns: with more cells, the distance is larger from sampling only.
const PAIR_FACTOR: f64 = 2.0;

/// Minimum change of dependence (Cramér's V) that is reported.
const DEPENDENCE: f64 = 0.2;

/// Copies are reported if their share among synthetic records exceeds the share of repeated real records by more than
/// this.
const COPIES: f64 = 0.05;

/// Maximum number of findings.
const MAX_FINDINGS: usize = 20;

/// Maximum number of names in a sentence.
const MAX_NAMED: usize = 6;

/// Reliability of a column or pair, judged by its distance from the real table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reliance {
    /// Reliable.
    Good,
    /// Roughly reliable.
    Rough,
    /// Not reliable.
    Bad,
}

impl Reliance {
    fn of(distance: f64, factor: f64) -> Self {
        if distance < NEAR * factor {
            Self::Good
        } else if distance < FAR * factor {
            Self::Rough
        } else {
            Self::Bad
        }
    }
}

/// A difference between the synthetic and the real table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The one or two columns that differ.
    pub columns: Vec<String>,
    /// Total variation distance or, for single values, [`ValueReport::distance`], from 0 to 1.
    pub distance: f64,
    /// Whether the columns are reliable.
    pub reliance: Reliance,
    /// Description of the difference.
    pub text: String,
}

/// A report in sentences.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// Sentences about the reliable and unreliable parts of the table.
    pub sentences: Vec<String>,
    /// Differences, the worst first.
    pub findings: Vec<Finding>,
}

/// How often synthetic records copy real records, and how often real records repeat each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Copies {
    /// Share of the synthetic records that equal a real one, value by value.
    pub synthetic: f64,
    /// Share of the real records that equal another real one.
    pub real: f64,
}

/// Counts copies. Returns `None` if the tables have no common columns or no records.
pub fn count_copies(real: &[RawColumn], synthetic: &[RawColumn]) -> Option<Copies> {
    let named = |name: &str| synthetic.iter().find(|column| column.name == name);
    let both: Vec<(&RawColumn, &RawColumn)> = real
        .iter()
        .filter_map(|column| Some((column, named(&column.name)?)))
        .collect();
    let (real, synthetic): (Vec<&RawColumn>, Vec<&RawColumn>) = both.into_iter().unzip();
    let (real, synthetic) = (rows(&real), rows(&synthetic));
    if real.is_empty() || synthetic.is_empty() {
        return None;
    }
    let mut times: HashMap<&String, usize> = HashMap::new();
    real.iter()
        .for_each(|row| *times.entry(row).or_default() += 1);
    let repeated = real.iter().filter(|row| times[row] > 1).count();
    let known: HashSet<&String> = real.iter().collect();
    let copied = synthetic.iter().filter(|row| known.contains(row)).count();
    Some(Copies {
        synthetic: copied as f64 / synthetic.len() as f64,
        real: repeated as f64 / real.len() as f64,
    })
}

/// Returns the records as texts, which are equal if all values are equal.
fn rows(columns: &[&RawColumn]) -> Vec<String> {
    let records = |column: &&RawColumn| match &column.values {
        RawValues::Numbers(values) => values.len(),
        RawValues::Texts { values, .. } => values.len(),
    };
    let mut rows = vec![String::new(); columns.iter().map(records).min().unwrap_or(0)];
    for column in columns {
        for (row, text) in rows.iter_mut().enumerate() {
            match &column.values {
                RawValues::Numbers(values) => {
                    text.push_str(&format!("{:?}", values[row]));
                    text.push_str(column.words.get(&row).map_or("", String::as_str));
                }
                RawValues::Texts { values, names } => {
                    text.push_str(&format!("{:?}", values[row].map(|v| &names[v as usize])));
                }
            }
            text.push('\u{1f}');
        }
    }
    rows
}

/// Returns the verdict of a report.
pub(crate) fn verdict(report: &Report) -> Verdict {
    let mut findings: Vec<Finding> = column_findings(report);
    let columns: Vec<Reliance> = findings.iter().map(|finding| finding.reliance).collect();
    let pairs = pair_findings(report, &findings);
    let pair_reliance: Vec<Reliance> = pairs.iter().map(|(finding, _)| finding.reliance).collect();
    let telling = pairs.into_iter().filter(|&(_, is_telling)| is_telling);
    findings.extend(telling.map(|(finding, _)| finding));
    let mut sentences = vec![count_sentence(
        &columns,
        "column",
        "for counts and averages",
    )];
    if !pair_reliance.is_empty() {
        sentences.push(count_sentence(
            &pair_reliance,
            "pair of columns",
            "for cross-tabulations",
        ));
    }
    findings.retain(|finding| finding.reliance != Reliance::Good);
    findings.sort_by(|x, y| {
        y.reliance
            .cmp(&x.reliance)
            .then(y.distance.total_cmp(&x.distance))
    });
    let bad = findings
        .iter()
        .filter(|finding| finding.reliance == Reliance::Bad);
    let bad: Vec<&str> = bad
        .filter(|f| f.columns.len() == 1)
        .map(|f| f.columns[0].as_str())
        .collect();
    if !bad.is_empty() {
        sentences.push(format!("Do not rely on {}.", names(&bad)));
    }
    sentences.extend(lost_relations(report));
    sentences.extend(report.copies.and_then(copies_sentence));
    sentences.extend(constraints_sentence(report));
    sentences.extend(report.membership.as_ref().map(Membership::sentence));
    findings.truncate(MAX_FINDINGS);
    Verdict {
        sentences,
        findings,
    }
}

fn names(all: &[&str]) -> String {
    let shown = all
        .iter()
        .take(MAX_NAMED)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match all.len().saturating_sub(MAX_NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn count_sentence(all: &[Reliance], what: &str, for_what: &str) -> String {
    let count = |reliance| all.iter().filter(|&&found| found == reliance).count();
    let plural = match (all.len(), what.split_once(' ')) {
        (1, _) => what.to_owned(),
        (_, Some((first, rest))) => format!("{first}s {rest}"),
        (_, None) => format!("{what}s"),
    };
    let (good, rough, bad) = (
        count(Reliance::Good),
        count(Reliance::Rough),
        count(Reliance::Bad),
    );
    format!(
        "Of {} {plural}, {good} can be used {for_what}, {rough} only roughly, and {bad} not at all.",
        all.len()
    )
}

/// Returns a finding for each column, by its values if they are known, otherwise by its codes.
fn column_findings(report: &Report) -> Vec<Finding> {
    let values: HashMap<&str, &ValueReport> = report
        .values
        .iter()
        .map(|value| (value.name.as_str(), value))
        .collect();
    let columns = report.columns.iter().map(|column| {
        let value = values.get(column.name.as_str());
        let distance = value
            .map_or(0.0, |v| v.distance())
            .max(column.total_variation);
        Finding {
            columns: vec![column.name.clone()],
            distance,
            reliance: Reliance::of(distance, 1.0),
            text: match value {
                Some(value) => value_text(value),
                None => format!("the distributions of {} differ", column.name),
            },
        }
    });
    columns.collect()
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

fn value_text(value: &ValueReport) -> String {
    let name = &value.name;
    if value.missing.distance() >= NEAR {
        let (real, synthetic) = (
            percent(value.missing.real),
            percent(value.missing.synthetic),
        );
        return format!(
            "{name} is missing in {real} of the real records and {synthetic} of the synthetic ones"
        );
    }
    match &value.furthest {
        Some(furthest) => {
            let shares = furthest.shares;
            let (real, synthetic) = (percent(shares.real), percent(shares.synthetic));
            let value = crate::html::shorten(&furthest.value, 40);
            format!(
                "{name} is {value} in {real} of the real records and {synthetic} of the synthetic ones"
            )
        }
        None => {
            let distance = percent(value.kolmogorov_smirnov.unwrap_or(0.0));
            format!("the share of records below a value of {name} differs by up to {distance}")
        }
    }
}

/// Returns a finding for each pair of columns, and whether it adds to the findings of its two columns.
///
/// Without that, a single column that differs would fill the list with all its pairs.
fn pair_findings(report: &Report, columns: &[Finding]) -> Vec<(Finding, bool)> {
    let matrix = &report.pair_total_variation;
    let mut findings = Vec::new();
    for (b, row) in matrix.iter().enumerate() {
        for (a, &distance) in row[..b].iter().enumerate() {
            let names = [a, b].map(|index| report.columns[index].name.clone());
            let worst = columns[a].distance.max(columns[b].distance);
            let finding = Finding {
                distance: distance.max(worst),
                reliance: Reliance::of(distance, PAIR_FACTOR)
                    .max(columns[a].reliance)
                    .max(columns[b].reliance),
                text: format!(
                    "the joint distribution of {} and {} differs",
                    names[0], names[1]
                ),
                columns: names.to_vec(),
            };
            findings.push((finding, distance >= worst + NEAR));
        }
    }
    findings
}

/// Returns a sentence about dependence between columns, if it has changed much.
fn lost_relations(report: &Report) -> Option<String> {
    let association = &report.association;
    let (mut lost, mut pairs) = (Vec::new(), 0);
    for (b, row) in association.real.iter().enumerate() {
        for (a, &real) in row[..b].iter().enumerate() {
            let change = association.synthetic[b][a] - real;
            pairs += usize::from(real >= DEPENDENCE);
            if change.abs() >= DEPENDENCE {
                lost.push((change, a, b));
            }
        }
    }
    lost.sort_by(|x, y| y.0.abs().total_cmp(&x.0.abs()));
    let &(change, a, b) = lost.first()?;
    let gone = lost.iter().filter(|(change, ..)| *change < 0.0).count();
    let name = |index: usize| report.columns[index].name.as_str();
    let what = if change < 0.0 {
        "too weak"
    } else {
        "too strong"
    };
    let all = if gone * 2 > pairs && pairs > 0 {
        "Most relationships between columns are lost: do not use the table to study them. "
    } else {
        ""
    };
    let (one, other) = (name(a), name(b));
    Some(format!(
        "{all}The dependence between {one} and {other} is {what} (Cram\u{e9}r's V {:.2} instead of {:.2}). The \
         dependence of {} changed by {DEPENDENCE} or more.",
        association.synthetic[b][a],
        association.real[b][a],
        fhaim_domain::counted(lost.len(), "pair"),
    ))
}

/// Returns a sentence about the schema's constraints, if it has any.
fn constraints_sentence(report: &Report) -> Option<String> {
    let share = |constraint: &&ConstraintReport| constraint.broken.synthetic;
    let worst = (report.constraints.iter()).max_by(|x, y| share(x).total_cmp(&share(y)))?;
    if share(&worst) == 0.0 {
        let constraints = fhaim_domain::counted(report.constraints.len(), "constraint");
        return Some(format!(
            "No synthetic record breaks any of the schema's {constraints}."
        ));
    }
    Some(format!(
        "{} of the synthetic records break a constraint of the schema ({}), and {} of the real records.",
        percent(share(&worst)),
        worst.text,
        percent(worst.broken.real)
    ))
}

fn copies_sentence(copies: Copies) -> Option<String> {
    (copies.synthetic > copies.real + COPIES).then(|| {
        format!(
            "{} of the synthetic records are copies of real records, but only {} of the real records equal \
             another real record: records seem to have been copied, so do not share the table.",
            percent(copies.synthetic),
            percent(copies.real)
        )
    })
}
