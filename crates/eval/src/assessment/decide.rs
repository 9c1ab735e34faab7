//! Decides which checks failed, and what columns and pairs can be used for.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    AnalysisPurpose, Area, AreaName, Assessment, Check, ColumnUse, Finding, Severity, Suitability,
    evidence::{Evidence, Examined, Family, SEVERE, Score},
    statistics::normal_limit,
    summary::summary,
};

/// Maximum number of findings.
const MAX_FINDINGS: usize = 100;

/// An examined difference with its decision.
struct Decided<'a> {
    examined: &'a Examined,
    family: Family,
    baseline: f64,
    severity: Option<Severity>,
}

/// Returns the assessment of everything that was examined.
pub(crate) fn assess(evidence: &Evidence) -> Assessment {
    let decided = decided(evidence);
    let mut failed: Vec<&Decided<'_>> = decided.iter().filter(|d| d.severity.is_some()).collect();
    failed.retain(|one| !is_explained(one, &decided));
    failed.sort_by(|x, y| {
        rank(y)
            .cmp(&rank(x))
            .then(y.examined.size.total_cmp(&x.examined.size))
    });
    let areas = areas(evidence, &failed);
    let findings: Vec<Finding> = failed
        .iter()
        .take(MAX_FINDINGS)
        .filter_map(|d| finding(d))
        .collect();
    let uses = uses(evidence, &decided);
    Assessment {
        summary: summary(evidence, &findings, failed.len(), &areas, &uses),
        findings,
        areas,
        uses,
    }
}

/// Returns a key that is larger for a check that is named earlier: copies and attacks first, the form of texts last.
fn rank(decided: &Decided<'_>) -> (bool, Option<Severity>, bool) {
    let is_about_privacy = decided.family.area() == AreaName::Privacy;
    (
        is_about_privacy,
        decided.severity,
        decided.family != Family::Forms,
    )
}

/// Compares all p values with the bound of their family (Bonferroni).
fn decided(evidence: &Evidence) -> Vec<Decided<'_>> {
    let mut decided = Vec::new();
    for (&family, findings) in &evidence.families {
        let tests: usize = findings
            .examined
            .iter()
            .map(|examined| examined.tests)
            .sum();
        let alpha = family.alpha() / tests.max(1) as f64;
        let limit = normal_limit(alpha);
        for examined in &findings.examined {
            let is_found = examined.p <= alpha && examined.size >= 1.0;
            let severity = match examined.size >= SEVERE {
                true => Severity::Major,
                false => Severity::Minor,
            };
            let baseline = examined.expected + limit * examined.spread;
            decided.push(Decided {
                examined,
                family,
                // The normal approximation must not contradict an exact test.
                baseline: if is_found {
                    baseline.min(examined.distance)
                } else {
                    baseline
                },
                severity: is_found.then_some(severity),
            });
        }
    }
    decided
}

/// Whether another failed check about the same columns has the same cause.
fn is_explained(one: &Decided<'_>, all: &[Decided<'_>]) -> bool {
    let columns = sorted(one.examined);
    let others = all.iter().filter(|other| {
        other.severity.is_some()
            && !std::ptr::eq(other.examined, one.examined)
            && sorted(other.examined) == columns
    });
    others.into_iter().any(|other| {
        let (this, that) = (one.examined, other.examined);
        match (this.check, that.check) {
            (Check::Tails, Check::Distribution) | (Check::RateByGroup, Check::Association) => {
                other.severity == Some(Severity::Major) || this.check == Check::RateByGroup
            }
            (Check::Rule, Check::Rule) if one.family != other.family => one.family == Family::Rules,
            (x, y) if x == y => {
                that.size > this.size || (that.size == this.size && that.text < this.text)
            }
            _ => false,
        }
    })
}

fn sorted(examined: &Examined) -> Vec<&str> {
    let mut columns: Vec<&str> = examined.columns.iter().map(String::as_str).collect();
    columns.sort_unstable();
    columns
}

fn finding(decided: &Decided<'_>) -> Option<Finding> {
    Some(Finding {
        check: decided.examined.check,
        columns: decided.examined.columns.clone(),
        distance: decided.examined.distance,
        baseline: decided.baseline,
        severity: decided.severity?,
        text: decided.examined.text.clone(),
    })
}

fn areas(evidence: &Evidence, failed: &[&Decided<'_>]) -> Vec<Area> {
    let of = |name: AreaName| {
        let families = evidence
            .families
            .iter()
            .filter(|(family, _)| family.area() == name);
        let results: Vec<_> = families
            .map(|(family, findings)| (*family, findings))
            .collect();
        let scores: Vec<Score> = results
            .iter()
            .flat_map(|(_, findings)| findings.scores.iter().copied())
            .collect();
        let mean = Score::mean(&scores);
        // Columns and pairs are the subjects of two families each; rules and attacks differ by family.
        let subjects = results.iter().map(|(_, findings)| findings.subjects);
        let examined = match name {
            AreaName::Columns | AreaName::Pairs => subjects.max().unwrap_or(0),
            _ => subjects.sum(),
        };
        let failures = failed
            .iter()
            .filter(|decided| decided.family.area() == name);
        Area {
            name,
            definition: definition(name),
            score: mean.map(|score| score.found),
            baseline: mean.map(|score| score.baseline),
            examined,
            failed: match name {
                AreaName::Columns | AreaName::Pairs => failures
                    .map(|decided| sorted(decided.examined))
                    .collect::<BTreeSet<_>>()
                    .len(),
                _ => failures.count(),
            },
        }
    };
    AreaName::ALL.map(of).to_vec()
}

fn definition(area: AreaName) -> &'static str {
    match area {
        AreaName::Columns => {
            "Mean over all columns of 1 minus the distance of the two distributions: total variation for categories, \
             Kolmogorov-Smirnov for numbers and times."
        }
        AreaName::Pairs => {
            "Mean over all pairs of 1 minus the total variation distance of the joint distributions, with at most 8 \
             values or ranges per column."
        }
        AreaName::Triples => {
            "Mean over the examined sets of three columns of 1 minus the total variation distance of the joint \
             distributions, with at most 4 values or ranges per column."
        }
        AreaName::Rules => {
            "Mean over all rules of the share of the synthetic records that keep the rule."
        }
        AreaName::Prediction => {
            "1 minus twice the loss of the area under the ROC curve if a model is trained on synthetic instead of real \
             records."
        }
        AreaName::Privacy => {
            "Share of the real records without an equal among the other real ones that do not occur in the synthetic \
             table."
        }
    }
}

/// Returns the purposes of all columns and pairs, in the order of the table.
fn uses(evidence: &Evidence, decided: &[Decided<'_>]) -> Vec<ColumnUse> {
    let place = |name: &String| evidence.names.iter().position(|other| other == name);
    type Purposes = BTreeMap<AnalysisPurpose, Suitability>;
    type Key = (usize, Vec<Option<usize>>);
    let mut purposes: BTreeMap<Key, (Vec<String>, Purposes)> = BTreeMap::new();
    for Decided {
        examined, severity, ..
    } in decided
    {
        let Some(purpose) = examined.purpose else {
            continue;
        };
        let mut columns = examined.columns.clone();
        columns.sort_by_key(place);
        let key = (columns.len(), columns.iter().map(place).collect());
        let suitability = match severity {
            None => Suitability::Good,
            Some(Severity::Minor) => Suitability::Rough,
            Some(Severity::Major) => Suitability::Bad,
        };
        let (_, of) = purposes
            .entry(key)
            .or_insert_with(|| (columns, BTreeMap::new()));
        let worst = of.entry(purpose).or_insert(suitability);
        *worst = suitability.max(*worst);
    }
    let uses = purposes.into_values();
    uses.map(|(columns, purposes)| ColumnUse {
        columns,
        purposes: purposes.into_iter().collect(),
    })
    .collect()
}
