//! The page's assessment: summary, failed checks and scores.

use fhaim_page::escaped;
use std::fmt::{self, Display, Formatter};

use super::finding_list;
use crate::{Area, Finding, Report, charts::Gauge};

pub(super) struct AssessmentBody<'a>(pub(super) &'a Report);

impl Display for AssessmentBody<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let assessment = &self.0.assessment;
        // The first sentence of several is an answer above.
        let repeated = usize::from(assessment.summary.len() > 1);
        for sentence in assessment.summary.iter().skip(repeated) {
            writeln!(out, "<p class=\"lead\">{}</p>", escaped(sentence))?;
        }
        out.write_str("<h3>Failed checks</h3>\n")?;
        let findings: Vec<&Finding> = assessment.findings.iter().collect();
        match findings.is_empty() {
            true => out.write_str("<p class=\"lead\">None.</p>\n")?,
            false => finding_list(out, &findings)?,
        }
        out.write_str(
            "<h3>Scores</h3>\n<p class=\"lead\">1 means no difference. The mark in each bar is the score of a second \
             sample of real records, which no synthetic table needs to exceed.</p>\n<div class=\"grid scores\">\n",
        )?;
        assessment
            .areas
            .iter()
            .try_for_each(|area| score(out, area))?;
        out.write_str("</div>\n")
    }
}

fn score(out: &mut Formatter<'_>, area: &Area) -> fmt::Result {
    let title = area.name.title();
    write!(out, "<div class=\"panel score\">\n<h4>{title}</h4>\n")?;
    let Some(score) = area.score else {
        return writeln!(
            out,
            "<p class=\"figure quiet\">not examined</p>\n<p class=\"quiet\">{}</p>\n</div>",
            escaped(area.definition)
        );
    };
    let gauge = Gauge {
        title: format!("Score of {title}"),
        score,
        baseline: area.baseline,
    };
    let baseline = area
        .baseline
        .map_or_else(|| "unknown".to_owned(), |baseline| format!("{baseline:.3}"));
    writeln!(
        out,
        "<p class=\"figure\">{score:.3}</p>\n<p>A second real sample: {baseline}</p>\n{}<p>{} of {} failed</p>\n\
         <p class=\"quiet\">{}</p>\n</div>",
        gauge.svg(),
        area.failed,
        super::grouped(area.examined as u64),
        escaped(area.definition)
    )
}
