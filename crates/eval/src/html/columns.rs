//! The page's charts of single columns.

use fhaim_page::escaped;
use std::fmt::{self, Display, Formatter};

use super::{TextTable, badge};
use crate::{
    AnalysisPurpose, ColumnUse, Finding, Report, Suitability,
    charts::{ColumnChart, ColumnDrawing, legend, percent},
};

/// Number of columns that are shown without a click.
const SHOWN: usize = 40;

pub(super) struct ColumnsBody<'a>(pub(super) &'a Report);

impl Display for ColumnsBody<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let report = self.0;
        write!(
            out,
            "<p class=\"lead\">Shares of the records by value, or by range of values. Columns with failed checks come \
             first.</p>\n{}",
            legend()
        )?;
        let has_failed = |chart: &&ColumnChart| findings(report, &chart.name).next().is_some();
        let (failed, others): (Vec<_>, Vec<_>) = report.charts.columns.iter().partition(has_failed);
        let charts: Vec<&ColumnChart> = failed.into_iter().chain(others).collect();
        let (shown, rest) = charts.split_at(SHOWN.min(charts.len()));
        panels(out, report, shown)?;
        if !rest.is_empty() {
            writeln!(
                out,
                "<details>\n<summary>Further columns ({})</summary>",
                rest.len()
            )?;
            panels(out, report, rest)?;
            out.write_str("</details>\n")?;
        }
        Ok(())
    }
}

fn findings<'a>(report: &'a Report, column: &'a str) -> impl Iterator<Item = &'a Finding> {
    let findings = report.assessment.findings.iter();
    findings.filter(move |finding| finding.columns.len() == 1 && finding.columns[0] == column)
}

fn panels(out: &mut Formatter<'_>, report: &Report, charts: &[&ColumnChart]) -> fmt::Result {
    out.write_str("<div class=\"grid\">\n")?;
    for chart in charts {
        panel(out, report, chart)?;
    }
    out.write_str("</div>\n")
}

fn panel(out: &mut Formatter<'_>, report: &Report, chart: &ColumnChart) -> fmt::Result {
    writeln!(
        out,
        "<figure class=\"panel\">\n<figcaption><h3>{}</h3></figcaption>\n{}",
        escaped(&chart.name),
        chart.svg()
    )?;
    for fact in &chart.facts {
        writeln!(out, "<p class=\"quiet\">{}</p>", escaped(fact))?;
    }
    let is_about = |of: &&ColumnUse| of.columns.len() == 1 && of.columns[0] == chart.name;
    let uses = report.assessment.uses.iter().find(is_about);
    if let Some(of) = uses.filter(|_| chart.drawing != ColumnDrawing::Empty) {
        writeln!(out, "<p>{}</p>", uses_text(of))?;
    }
    for finding in findings(report, &chart.name) {
        writeln!(
            out,
            "<p>{} {}.</p>",
            badge(finding.severity),
            escaped(&finding.text)
        )?;
    }
    if !chart.list.bars.is_empty() {
        let rows = chart.list.bars.iter();
        let rows =
            rows.map(|bar| vec![bar.label.clone(), percent(bar.real), percent(bar.synthetic)]);
        let table = TextTable {
            head: ["Value", "Real", "Synthetic"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
        };
        writeln!(
            out,
            "<details>\n<summary>All values</summary>\n{table}</details>"
        )?;
    }
    out.write_str("</figure>\n")
}

/// Returns the purposes that a column or pair serves, as sentences.
pub(super) fn uses_text(of: &ColumnUse) -> String {
    let sentence = |words: &str, suitability: Suitability| {
        let served = of
            .purposes
            .iter()
            .filter(|(_, result)| *result == suitability);
        let purposes: Vec<&str> = served.map(|(purpose, _)| purpose_words(*purpose)).collect();
        (!purposes.is_empty()).then(|| format!("{words} {}.", purposes.join(", ")))
    };
    let sentences = [
        sentence("Good for", Suitability::Good),
        sentence("Rough for", Suitability::Rough),
        sentence("Not for", Suitability::Bad),
    ];
    sentences
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

fn purpose_words(purpose: AnalysisPurpose) -> &'static str {
    match purpose {
        AnalysisPurpose::Shares => "shares",
        AnalysisPurpose::Means => "means and quantiles",
        AnalysisPurpose::Tails => "extreme values",
        AnalysisPurpose::Association => "association",
        AnalysisPurpose::Rates => "rates by group",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_are_named_by_suitability() {
        let of = ColumnUse {
            columns: vec!["age".to_owned()],
            purposes: vec![
                (AnalysisPurpose::Shares, Suitability::Bad),
                (AnalysisPurpose::Means, Suitability::Good),
                (AnalysisPurpose::Tails, Suitability::Good),
            ],
        };
        assert_eq!(
            uses_text(&of),
            "Good for means and quantiles, extreme values. Not for shares."
        );
    }
}
