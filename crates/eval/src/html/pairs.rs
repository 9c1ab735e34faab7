//! The page's charts of association, pairs and sets of three columns.

use fhaim_page::escaped;
use std::fmt::{self, Display, Formatter};

use super::{badge, columns::uses_text, scroll_box};
use crate::{
    ColumnUse, Finding, Report, Suitability,
    charts::{AssociationMap, RateChart, RatePanel, legend},
};

/// Maps of more columns need more width than a phone has.
const WIDE: usize = 20;

/// Maximum number of pairs in a list.
const MAX_LISTED: usize = 200;

/// Maps of the association of all pairs.
pub(super) struct MapsBody<'a>(pub(super) &'a Report);

impl Display for MapsBody<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self
            .0
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        let maps = AssociationMap::of_report(&names, &self.0.association);
        let drawn = maps[0].names.len();
        let left_out = match drawn < names.len() {
            true => format!(
                " The maps show the {drawn} of {} columns that differ most.",
                names.len()
            ),
            false => String::new(),
        };
        writeln!(
            out,
            "<p class=\"lead\">A dark cell means that two columns are strongly associated (Cram&eacute;r's V: 0 for \
             independent columns, 1 if one determines the other). In the third map, + means more association in the \
             synthetic table, and &minus; means less.{left_out}</p>\n<div class=\"grid thirds\">"
        )?;
        for map in &maps {
            let class = if drawn > WIDE { "panel wide" } else { "panel" };
            writeln!(
                out,
                "<figure class=\"{class}\">\n<figcaption><h3>{}</h3></figcaption>",
                escaped(&map.title)
            )?;
            scroll_box(out, &map.title, &map.svg())?;
            out.write_str("</figure>\n")?;
        }
        out.write_str("</div>\n")
    }
}

/// Rates by group of the pairs that differ most.
pub(super) struct PairsBody<'a>(pub(super) &'a Report);

impl Display for PairsBody<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "<p class=\"lead\">The pairs with failed checks, and then those that differ most. Each bar is the share of a \
             value among the records of a group; each row has its own scale, with the largest share on the left.</p>\n{}\
             <div class=\"grid\">\n",
            legend()
        )?;
        for chart in &self.0.charts.pairs {
            let title = chart
                .columns
                .iter()
                .rev()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(" by ");
            figure(out, self.0, chart, &title)?;
        }
        out.write_str("</div>\n")?;
        limited_pairs(out, &self.0.assessment.uses)
    }
}

/// Rates by group of the sets of three columns that differ most.
pub(super) struct TriplesBody<'a>(pub(super) &'a Report);

impl Display for TriplesBody<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "<p class=\"lead\">The sets of three columns with failed checks, and then those that differ most, apart from \
             differences of their pairs. There is a panel for each value of one of the columns.</p>\n{}",
            legend()
        )?;
        for chart in &self.0.charts.triples {
            let [groups, values, panels] = &chart.columns[..] else {
                continue;
            };
            figure(
                out,
                self.0,
                chart,
                &format!("{values} by {groups} and {panels}"),
            )?;
        }
        Ok(())
    }
}

fn figure(out: &mut Formatter<'_>, report: &Report, chart: &RateChart, title: &str) -> fmt::Result {
    writeln!(
        out,
        "<figure class=\"panel\">\n<figcaption><h3>{}</h3></figcaption>",
        escaped(title)
    )?;
    let is_about = |finding: &&Finding| {
        finding.columns.len() == chart.columns.len()
            && finding
                .columns
                .iter()
                .all(|column| chart.columns.contains(column))
    };
    let findings = report.assessment.findings.iter();
    let findings: Vec<&Finding> = findings.filter(is_about).collect();
    for finding in &findings {
        writeln!(
            out,
            "<p>{} {}.</p>",
            badge(finding.severity),
            escaped(&finding.text)
        )?;
    }
    if findings.is_empty() {
        writeln!(
            out,
            "<p class=\"quiet\">{}</p>",
            without_findings(report, chart)
        )?;
    }
    panels(out, &chart.panels)?;
    if !chart.note.is_empty() {
        writeln!(out, "<p class=\"quiet\">{}</p>", escaped(&chart.note))?;
    }
    out.write_str("</figure>\n")
}

/// Describes a set of columns without listed findings. Only the most severe findings of a report are listed.
fn without_findings(report: &Report, chart: &RateChart) -> String {
    let is_about = |of: &&ColumnUse| {
        of.columns.len() == chart.columns.len()
            && of
                .columns
                .iter()
                .all(|column| chart.columns.contains(column))
    };
    if let Some(of) = report.assessment.uses.iter().find(is_about) {
        return uses_text(of);
    }
    let failed: usize = report.assessment.areas.iter().map(|area| area.failed).sum();
    match failed <= report.assessment.findings.len() {
        true => "No failed check.".to_owned(),
        false => String::new(),
    }
}

/// Writes a single panel, or several with their titles.
fn panels(out: &mut Formatter<'_>, panels: &[RatePanel]) -> fmt::Result {
    if let [only] = panels {
        return out.write_str(&only.svg());
    }
    out.write_str("<div class=\"grid panels\">\n")?;
    for panel in panels {
        writeln!(
            out,
            "<div>\n<h4>{}</h4>\n{}</div>",
            escaped(&panel.title),
            panel.svg()
        )?;
    }
    out.write_str("</div>\n")
}

/// Lists the pairs that do not serve a purpose well.
fn limited_pairs(out: &mut Formatter<'_>, uses: &[ColumnUse]) -> fmt::Result {
    let is_limited = |of: &&ColumnUse| {
        of.columns.len() == 2
            && of
                .purposes
                .iter()
                .any(|(_, result)| *result != Suitability::Good)
    };
    let limited: Vec<&ColumnUse> = uses.iter().filter(is_limited).collect();
    if limited.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<details>\n<summary>Pairs that are not good for every purpose ({})</summary>\n<ul>",
        limited.len()
    )?;
    for of in limited.iter().take(MAX_LISTED) {
        writeln!(
            out,
            "<li>{}: {}</li>",
            escaped(&of.columns.join(" and ")),
            uses_text(of)
        )?;
    }
    if limited.len() > MAX_LISTED {
        writeln!(out, "<li>{} further pairs</li>", limited.len() - MAX_LISTED)?;
    }
    out.write_str("</ul>\n</details>\n")
}
