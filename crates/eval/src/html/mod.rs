//! Renders a report as one HTML page without scripts or external resources, with every text escaped.

mod assessment;
mod columns;
mod details;
mod models;
mod pairs;
mod questions;

use fhaim_page::{COLOURS, escaped};
use std::fmt::{self, Display, Formatter};

use crate::{Finding, Severity, charts, report::Report};
use assessment::AssessmentBody;
use columns::ColumnsBody;
use details::DetailsBody;
use models::{PredictionBody, PrivacyBody, RulesBody};
use pairs::{MapsBody, PairsBody, TriplesBody};
use questions::Questions;

const STYLE: &str = include_str!("style.css");
const GLOSSARY: &str = include_str!("glossary.html");

/// Number of findings of a list that are shown without a click.
const SHOWN_FINDINGS: usize = 8;

/// A fact about how the synthetic table was made.
///
/// The page lists all facts. Those with the names `Epsilon`, `Delta` and `Protected` (a text such as "person", or
/// "record" if it is absent) answer its questions about privacy. A name may have further words, such as "Epsilon of all
/// jobs".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Name of the fact, such as "Epsilon".
    pub name: String,
    /// Value of the fact, such as "1".
    pub value: String,
}

/// Returns the HTML page of a report, with facts about how the synthetic table was made.
pub fn html_page(report: &Report, facts: &[Fact]) -> String {
    Page { report, facts }.to_string()
}

/// Formats an integer with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns the label of a finding's severity, as a word and not only as a colour.
fn badge(severity: Severity) -> &'static str {
    match severity {
        Severity::Major => "<span class=\"badge major\">severe</span>",
        Severity::Minor => "<span class=\"badge minor\">slight</span>",
    }
}

/// Writes a finding as an item of a list.
fn finding_item(out: &mut Formatter<'_>, finding: &Finding) -> fmt::Result {
    writeln!(
        out,
        "<li>{} {}. <span class=\"quiet\">Distance {:.3}; at most {:.3} for a second real sample.</span></li>",
        badge(finding.severity),
        escaped(&finding.text),
        finding.distance,
        finding.baseline
    )
}

/// Writes a list of findings, of which the first ones are shown without a click.
fn finding_list(out: &mut Formatter<'_>, findings: &[&Finding]) -> fmt::Result {
    let (shown, rest) = findings.split_at(SHOWN_FINDINGS.min(findings.len()));
    let list = |out: &mut Formatter<'_>, findings: &[&Finding]| {
        out.write_str("<ul class=\"findings\">\n")?;
        findings
            .iter()
            .try_for_each(|finding| finding_item(out, finding))?;
        out.write_str("</ul>\n")
    };
    if !shown.is_empty() {
        list(out, shown)?;
    }
    if !rest.is_empty() {
        writeln!(
            out,
            "<details>\n<summary>Further failed checks ({})</summary>",
            rest.len()
        )?;
        list(out, rest)?;
        out.write_str("</details>\n")?;
    }
    Ok(())
}

/// Writes a box that scrolls by itself if its content is wider than the page.
fn scroll_box(out: &mut Formatter<'_>, label: &str, content: &dyn Display) -> fmt::Result {
    writeln!(
        out,
        "<div class=\"scroll\" role=\"region\" aria-label=\"{}\" tabindex=\"0\">\n{content}</div>",
        escaped(label)
    )
}

/// A table of texts, with the first column as the names of the rows.
struct TextTable {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Display for TextTable {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("<table>\n<thead><tr>")?;
        for (index, name) in self.head.iter().enumerate() {
            let class = if index > 0 { " class=\"number\"" } else { "" };
            write!(out, "<th scope=\"col\"{class}>{}</th>", escaped(name))?;
        }
        out.write_str("</tr></thead>\n<tbody>\n")?;
        for row in &self.rows {
            out.write_str("<tr>")?;
            for (index, cell) in row.iter().enumerate() {
                match index {
                    0 => write!(out, "<th scope=\"row\">{}</th>", escaped(cell))?,
                    _ => write!(out, "<td class=\"number\">{}</td>", escaped(cell))?,
                }
            }
            out.write_str("</tr>\n")?;
        }
        out.write_str("</tbody>\n</table>\n")
    }
}

/// A part of the page with a heading and an entry in the table of contents.
struct Section<'a> {
    id: &'static str,
    title: &'static str,
    body: Box<dyn Display + 'a>,
}

impl<'a> Section<'a> {
    fn new(id: &'static str, title: &'static str, body: impl Display + 'a) -> Self {
        Self {
            id,
            title,
            body: Box::new(body),
        }
    }
}

struct Page<'a> {
    report: &'a Report,
    facts: &'a [Fact],
}

impl Page<'_> {
    /// Returns the sections after the summary, in their order, without those that have no content.
    fn sections(&self) -> Vec<Section<'_>> {
        let report = self.report;
        let mut sections = vec![
            Section::new("assessment", "Assessment", AssessmentBody(report)),
            Section::new("columns", "Columns", ColumnsBody(report)),
        ];
        if report.association.real.len() > 1 {
            sections.push(Section::new(
                "associations",
                "Association",
                MapsBody(report),
            ));
            sections.push(Section::new("pairs", "Pairs of columns", PairsBody(report)));
        }
        if !report.charts.triples.is_empty() {
            sections.push(Section::new(
                "triples",
                "Three columns",
                TriplesBody(report),
            ));
        }
        sections.extend([
            Section::new("rules", "Rules", RulesBody(report)),
            Section::new("prediction", "Prediction", PredictionBody(report)),
            Section::new("privacy", "Privacy", PrivacyBody(report)),
            Section::new("details", "Further figures", DetailsBody(report)),
            Section::new("words", "Terms and sources", GLOSSARY),
        ]);
        sections
    }

    fn head(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let report = self.report;
        let name = escaped(&report.name);
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{name}: synthetic data report</title>\n<style>\n{COLOURS}{}{STYLE}</style>\n</head>\n\
             <body>\n<main>\n<header>\n<h1>{name}</h1>\n\
             <p class=\"notice\"><strong>For the holder only.</strong> {}</p>\n</header>\n",
            charts::STYLE,
            escaped(report.statement)
        )
    }

    fn contents(&self, out: &mut Formatter<'_>, sections: &[Section<'_>]) -> fmt::Result {
        out.write_str("<nav aria-label=\"Contents\">\n<ul>\n")?;
        for Section { id, title, .. } in sections {
            writeln!(out, "<li><a href=\"#{id}\">{title}</a></li>")?;
        }
        out.write_str("</ul>\n</nav>\n")
    }
}

impl Display for Page<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let sections = self.sections();
        self.head(out)?;
        Questions {
            report: self.report,
            facts: self.facts,
        }
        .fmt(out)?;
        self.contents(out, &sections)?;
        for Section { id, title, body } in &sections {
            writeln!(
                out,
                "<section id=\"{id}\">\n<h2>{title}</h2>\n{body}</section>"
            )?;
        }
        out.write_str("</main>\n</body>\n</html>\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123), "123");
    }

    #[test]
    fn tables_are_escaped() {
        let table = TextTable {
            head: vec!["<a>".to_owned(), "b".to_owned()],
            rows: vec![vec!["x & y".to_owned(), "\"1\"".to_owned()]],
        };
        let text = table.to_string();
        assert!(
            text.contains("&lt;a&gt;")
                && text.contains("x &amp; y")
                && text.contains("&quot;1&quot;")
        );
    }
}
