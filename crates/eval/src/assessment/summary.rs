//! The summary of an assessment, for a reader without statistics.

use fhaim_domain::counted;

use super::{
    AnalysisPurpose, Area, AreaName, ColumnUse, Finding, Suitability,
    evidence::{Evidence, Family},
};

/// Maximum number of sentences.
const MAX_SENTENCES: usize = 6;

/// Maximum number of names in a list.
const MAX_NAMED: usize = 6;

/// Returns at most six sentences: failed checks first, then the purposes that are served, then the parts that were not checked.
pub(super) fn summary(
    evidence: &Evidence,
    findings: &[Finding],
    failed: usize,
    areas: &[Area],
    uses: &[ColumnUse],
) -> Vec<String> {
    let mut sentences = vec![first(findings, failed)];
    if failed > 1 {
        sentences.extend(by_area(areas));
    }
    sentences.extend(not_for(uses));
    sentences.extend(served(uses));
    sentences.extend(attacked(evidence));
    if sentences.len() + 1 < MAX_SENTENCES {
        sentences.extend(predicted(areas));
    }
    sentences.extend(unchecked(evidence));
    sentences
}

fn first(findings: &[Finding], failed: usize) -> String {
    match (findings, failed) {
        ([], _) => "No check failed: the synthetic table differs from the real one as a second real sample would, or too \
                    little to matter."
            .to_owned(),
        ([only], 1) => format!("A check failed: {}.", only.text),
        ([worst, ..], _) => format!("{failed} checks failed; the most severe: {}.", worst.text),
    }
}

fn by_area(areas: &[Area]) -> Option<String> {
    let failed = areas.iter().filter(|area| area.failed > 0);
    let parts: Vec<String> = failed
        .map(|area| {
            let what = match area.name {
                AreaName::Columns => "column",
                AreaName::Pairs => "pair",
                AreaName::Triples => "set",
                AreaName::Rules => "rule",
                AreaName::Prediction => "prediction",
                AreaName::Privacy => "privacy check",
            };
            let of = counted(area.examined as u64, what);
            match area.name {
                AreaName::Triples => format!("{} of {of} of three columns", area.failed),
                _ => format!("{} of {of}", area.failed),
            }
        })
        .collect();
    (!parts.is_empty()).then(|| format!("Checks failed for {}.", listed(&parts)))
}

/// Names the columns that do not serve a purpose.
fn not_for(uses: &[ColumnUse]) -> Option<String> {
    let mut parts = Vec::new();
    for (purpose, words) in [
        (AnalysisPurpose::Shares, "shares"),
        (AnalysisPurpose::Means, "means and quantiles"),
        (AnalysisPurpose::Tails, "extreme values"),
    ] {
        let is_bad = |of: &&ColumnUse| of.purposes.contains(&(purpose, Suitability::Bad));
        let names: Vec<String> = uses
            .iter()
            .filter(is_bad)
            .flat_map(|of| of.columns.clone())
            .collect();
        if !names.is_empty() {
            parts.push(format!("{words} of {}", listed(&shortened(names))));
        }
    }
    (!parts.is_empty()).then(|| format!("Do not use the table for {}.", parts.join(", or for ")))
}

/// Counts the columns and pairs that serve all purposes that were examined.
fn served(uses: &[ColumnUse]) -> Option<String> {
    let is_good = |of: &&ColumnUse| {
        of.purposes
            .iter()
            .all(|(_, result)| *result == Suitability::Good)
    };
    let count = |columns: usize| {
        let all = uses.iter().filter(move |of| of.columns.len() == columns);
        (all.clone().filter(is_good).count(), all.count())
    };
    let ((columns, all), (pairs, all_pairs)) = (count(1), count(2));
    if all == 0 {
        return None;
    }
    let of_pairs = match all_pairs {
        0 => String::new(),
        _ => format!(
            ", and {pairs} of {} for association and rates by group",
            counted(all_pairs as u64, "pair")
        ),
    };
    Some(format!(
        "{columns} of {} can be used for shares, means and quantiles{of_pairs}, as far as these were examined.",
        counted(all as u64, "column")
    ))
}

fn predicted(areas: &[Area]) -> Option<String> {
    let is_good =
        |area: &&Area| area.name == AreaName::Prediction && area.examined > 0 && area.failed == 0;
    areas.iter().find(is_good).map(|_| {
        "A model that is trained on synthetic records predicts real ones about as well as one trained on real records."
            .to_owned()
    })
}

/// Describes membership attacks that failed to tell members from others.
fn attacked(evidence: &Evidence) -> Option<String> {
    let attacks = evidence.families.get(&Family::Membership)?;
    let failed = attacks.examined.iter().find(|attack| attack.size < 1.0)?;
    Some(format!("{}.", failed.text))
}

/// Names the parts that were not examined.
fn unchecked(evidence: &Evidence) -> Option<String> {
    let is_absent = |family: Family| !evidence.families.contains_key(&family);
    let mut absent: Vec<String> = [
        (Family::Forms, "the form of the texts"),
        (Family::Copies, "copies of real records"),
        (Family::Prediction, "prediction of a target"),
        (Family::Membership, "membership attacks"),
    ]
    .into_iter()
    .filter(|(family, _)| is_absent(*family))
    .map(|(_, words)| words.to_owned())
    .collect();
    if let Some(triples) = evidence
        .families
        .get(&Family::Triples)
        .filter(|of| of.subjects < of.all)
    {
        let left = triples.all - triples.subjects;
        absent.push(format!("{left} of {} sets of three columns", triples.all));
    }
    absent.push("relations of four or more columns".to_owned());
    Some(format!("Not checked: {}.", listed(&absent)))
}

fn shortened(mut names: Vec<String>) -> Vec<String> {
    let more = names.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        names.truncate(MAX_NAMED);
        names.push(format!("{more} more"));
    }
    names
}

/// Joins words with commas and "and".
fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
