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

/// Counts the columns and pairs that serve their purposes, as a sentence.
pub(crate) fn served(uses: &[ColumnUse]) -> Option<String> {
    use AnalysisPurpose::{Association, Means, Rates, Shares};
    let (columns, all) = count_good(uses, &[Shares, Means], 1);
    if all == 0 {
        return None;
    }
    let mut parts = vec![format!(
        "{columns} of {} can be used for shares, means and quantiles",
        counted(all, "column")
    )];
    for (purpose, words) in [(Association, "association"), (Rates, "rates by group")] {
        let (pairs, all) = count_good(uses, &[purpose], 2);
        if all > 0 {
            parts.push(format!("{pairs} of {} for {words}", counted(all, "pair")));
        }
    }
    Some(format!("{}.", listed(&parts)))
}

/// Returns the number of sets of `columns` columns that serve all of the purposes, and that of all sets for which one of
/// them was examined.
fn count_good(uses: &[ColumnUse], purposes: &[AnalysisPurpose], columns: usize) -> (u64, u64) {
    let (mut good, mut all) = (0, 0);
    for of in uses.iter().filter(|of| of.columns.len() == columns) {
        let mut results = of
            .purposes
            .iter()
            .filter(|(purpose, _)| purposes.contains(purpose))
            .peekable();
        let is_examined = results.peek().is_some();
        all += u64::from(is_examined);
        good += u64::from(is_examined && results.all(|(_, result)| *result == Suitability::Good));
    }
    (good, all)
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
