//! What a report says in words, the worst first.

use std::collections::{HashMap, HashSet};

use fhaim_domain::{RawColumn, RawValues};
use serde::Serialize;

use crate::{ConstraintReport, Report, ValueReport, membership::Membership};

/// A column or pair nearer than this may be relied on; past the second it must not be.
const NEAR: f64 = 0.05;
const FAR: f64 = 0.1;

/// A pair of columns has cells enough for sampling alone to move them: its limits are wider.
const PAIR_FACTOR: f64 = 2.0;

/// A change of dependence (Cramér's V) that is said.
const DEPENDENCE: f64 = 0.2;

/// Synthetic records that repeat a real one, beyond as many as real records repeat each other,
/// are said from this share on.
const COPIES: f64 = 0.05;

/// So many findings are listed.
const MAX_FINDINGS: usize = 20;

/// So many names stand in a sentence.
const MAX_NAMED: usize = 6;

/// How far something is from the real table, on one scale everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reliance {
    /// It may be relied on.
    Good,
    /// Only roughly.
    Rough,
    /// It must not be relied on.
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

/// One thing that is not as in the real table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The columns that it is about.
    pub columns: Vec<String>,
    /// Total variation distance, or what stands for it, from 0 to 1.
    pub distance: f64,
    /// Whether they may be relied on.
    pub reliance: Reliance,
    /// A sentence.
    pub text: String,
}

/// A report in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// What may be relied on, for what, in sentences.
    pub sentences: Vec<String>,
    /// What differs, the worst first.
    pub findings: Vec<Finding>,
}

/// Copies of real records among synthetic ones, beyond what real records repeat each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Copies {
    /// Share of the synthetic records that equal a real one, value by value.
    pub synthetic: f64,
    /// Share of the real records that equal another real one.
    pub real: f64,
}

/// Counts copies; `None` without columns.
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

/// Records as texts that are equal where all values are.
fn rows(columns: &[&RawColumn]) -> Vec<String> {
    let records = |column: &&RawColumn| match &column.values {
        RawValues::Numbers(values) => values.len(),
        RawValues::Texts { values, .. } => values.len(),
    };
    let mut rows = vec![String::new(); columns.iter().map(records).min().unwrap_or(0)];
    for column in columns {
        for (row, text) in rows.iter_mut().enumerate() {
            match &column.values {
                RawValues::Numbers(values) => text.push_str(&format!("{:?}", values[row])),
                RawValues::Texts { values, names } => {
                    text.push_str(&format!("{:?}", values[row].map(|v| &names[v as usize])));
                }
            }
            text.push('\u{1f}');
        }
    }
    rows
}

/// The verdict on a report.
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
        "for counts and averages of it alone",
    )];
    if !pair_reliance.is_empty() {
        sentences.push(count_sentence(
            &pair_reliance,
            "pair of columns",
            "for tables of the two",
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
        "Of {} {plural}, {good} may be relied on {for_what}, {rough} roughly, {bad} not at all.",
        all.len()
    )
}

/// One finding a column: by its values where they are known, else by its codes.
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
            format!("the share of records below some value of {name} is off by {distance}")
        }
    }
}

/// One finding a pair of columns, judged beside what its two columns differ by themselves; and whether it
/// tells more than these, without which one column that is off would fill the list with all its pairs.
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
                    "records are shared out otherwise over {} and {}",
                    names[0], names[1]
                ),
                columns: names.to_vec(),
            };
            findings.push((finding, distance >= worst + NEAR));
        }
    }
    findings
}

/// A sentence where dependence between columns is gone or made up.
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
    let what = if change < 0.0 { "lost" } else { "made up" };
    let all = if gone * 2 > pairs && pairs > 0 {
        "Relationships between columns are lost: do not use the table for them. "
    } else {
        ""
    };
    let (one, other) = (name(a), name(b));
    Some(format!(
        "{all}Dependence is {what} between {one} and {other} (Cram\u{e9}r's V {:.2} of {:.2}); {} in all \
         changed by {DEPENDENCE} or more.",
        association.synthetic[b][a],
        association.real[b][a],
        fhaim_domain::counted(lost.len(), "pair"),
    ))
}

/// A sentence on the schema's constraints, where it has some.
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
        "{} of the synthetic records break a constraint of the schema, {}; {} of the real ones do.",
        percent(share(&worst)),
        worst.text,
        percent(worst.broken.real)
    ))
}

fn copies_sentence(copies: Copies) -> Option<String> {
    (copies.synthetic > copies.real + COPIES).then(|| {
        format!(
            "{} of the synthetic records are copies of real ones, where {} of the real ones equal \
             another: records seem to have been copied, and the table must not be passed on.",
            percent(copies.synthetic),
            percent(copies.real)
        )
    })
}
