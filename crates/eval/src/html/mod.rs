//! Renders a report as one HTML page without scripts or external resources, with every text escaped.

mod assessment;
mod bars;
mod heatmap;
mod membership;

use std::fmt::{self, Display, Formatter};

use crate::{
    closeness::Closeness,
    prediction::{Prediction, Scores},
    report::Report,
};
use assessment::{AssessmentSection, ValuesSection};
use bars::Bars;
use heatmap::{Heatmap, NARROW, Scale, WIDE};
use membership::membership_section;

const STYLE: &str = include_str!("style.css");
const GLOSSARY: &str = include_str!("glossary.html");

/// Maximum number of columns in a heatmap. If there are more, it shows those that differ most.
const MAX_DRAWN: usize = 40;

/// Length of the list of the worst pairs.
const WORST_PAIRS: usize = 8;

/// A fact about how the synthetic table was made, such as "epsilon", "1".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Name of the fact.
    pub name: String,
    /// Value of the fact.
    pub value: String,
}

/// Returns the HTML page of a report, with facts about how the synthetic table was made.
pub fn html_page(report: &Report, facts: &[Fact]) -> String {
    Page { report, facts }.to_string()
}

/// Displays a text escaped for HTML elements and quoted attributes.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\'' => out.write_str("&#39;")?,
                other => write!(out, "{other}")?,
            }
        }
        Ok(())
    }
}

/// Shortens a label to at most `longest` characters.
pub(crate) fn shorten(label: &str, longest: usize) -> String {
    if label.chars().count() <= longest {
        return label.to_owned();
    }
    let kept: String = label.chars().take(longest.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Formats a share as a percentage with its significant digits.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.1 {
        "<0.1%".to_owned()
    } else if percent < 9.95 && percent > 0.0 {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.0}%")
    }
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

struct Page<'a> {
    report: &'a Report,
    facts: &'a [Fact],
}

impl Display for Page<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let name = Escaped(&self.report.name);
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{name}: synthetic data report</title>\n<style>\n{STYLE}</style>\n</head>\n\
             <body>\n<main>\n"
        )?;
        self.header(out)?;
        AssessmentSection(self.report).fmt(out)?;
        self.summary(out)?;
        ValuesSection(&self.report.values).fmt(out)?;
        self.columns(out)?;
        self.pairs(out)?;
        self.association(out)?;
        self.prediction(out)?;
        if let Some(closeness) = &self.report.closeness {
            closeness_section(out, closeness)?;
        }
        if let Some(membership) = &self.report.membership {
            membership_section(out, membership)?;
        }
        write!(out, "{GLOSSARY}</main>\n</body>\n</html>\n")
    }
}

impl Page<'_> {
    fn header(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let report = self.report;
        write!(
            out,
            "<header>\n<p class=\"kicker\">Synthetic data report</p>\n<h1>{}</h1>\n\
             <p class=\"notice\"><strong>For the holder only.</strong> {}</p>\n<dl class=\"facts\">\n",
            Escaped(&report.name),
            Escaped(report.statement),
        )?;
        let mut fact = |name: &str, value: &str| {
            writeln!(
                out,
                "<div><dt>{}</dt><dd>{}</dd></div>",
                Escaped(name),
                Escaped(value)
            )
        };
        fact("Real records", &grouped(report.real_records as u64))?;
        fact(
            "Synthetic records",
            &grouped(report.synthetic_records as u64),
        )?;
        if let Some(held_out) = report.held_out_records {
            fact("Held-out records", &grouped(held_out as u64))?;
        }
        fact("Columns", &report.columns.len().to_string())?;
        for Fact { name, value } in self.facts {
            fact(name, value)?;
        }
        out.write_str("</dl>\n</header>\n")
    }

    fn summary(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("<section aria-label=\"Summary\" class=\"cards\">\n")?;
        let what = ["column", "pair of columns", "set of three columns"];
        for (workload, what) in self.report.workloads.iter().zip(what) {
            if workload.sets == 0 {
                continue;
            }
            let sets = if workload.sets as u64 == workload.of {
                format!("all {}", grouped(workload.of))
            } else {
                format!(
                    "{} of {}",
                    grouped(workload.sets as u64),
                    grouped(workload.of)
                )
            };
            card(
                out,
                &format!("{}-way error", workload.order),
                &format!("{:.4}", workload.mean_l1),
                &format!("mean L1 distance per {what} ({sets}); 0: equal, 2: nothing in common"),
            )?;
        }
        card(
            out,
            "Dependence",
            &format!("{:.4}", self.report.association.mean_absolute_difference),
            "mean absolute change of Cramér's V per pair of columns; 0: equal",
        )?;
        if let Some(prediction) = &self.report.prediction {
            card(
                out,
                "Prediction",
                &percent(prediction.synthetic.accuracy),
                &format!(
                    "accuracy on real records after training on synthetic records; {} after \
                     training on real records",
                    percent(prediction.real.accuracy)
                ),
            )?;
        }
        out.write_str("</section>\n")
    }

    fn columns(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(
            "<section>\n<h2>Columns</h2>\n<p class=\"lead\">Share of the records with each value. \
             <span class=\"key\"><i class=\"real\"></i>real</span> \
             <span class=\"key\"><i class=\"synthetic\"></i>synthetic</span></p>\n\
             <div class=\"grid\">\n",
        )?;
        for column in &self.report.columns {
            write!(
                out,
                "<figure class=\"panel\">\n<figcaption><span class=\"name\">{}</span> \
                 <span class=\"tag\">TV {:.3}</span></figcaption>\n<p class=\"quiet\">{}</p>\n{}</figure>\n",
                Escaped(&column.name),
                column.total_variation,
                Escaped(&column.binning),
                Bars(column)
            )?;
        }
        out.write_str("</div>\n</section>\n")
    }

    fn pairs(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let matrix = &self.report.pair_total_variation;
        if matrix.len() < 2 {
            return Ok(());
        }
        let drawn = self.drawn(matrix);
        write!(
            out,
            "<section>\n<h2>Pairs of columns</h2>\n<p class=\"lead\">Total variation distance of \
             each pair of columns. The diagonal shows single columns.{}</p>\n<div class=\"split\">\n\
             <figure class=\"panel scroll\">\n{}</figure>\n",
            self.left_out(&drawn),
            self.heatmap(
                "Total variation distance of pairs",
                matrix,
                &drawn,
                Scale::Error
            ),
        )?;
        self.worst_pairs(out)?;
        out.write_str("</div>\n</section>\n")
    }

    fn worst_pairs(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let matrix = &self.report.pair_total_variation;
        let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
        for (a, row) in matrix.iter().enumerate() {
            pairs.extend(row[..a].iter().enumerate().map(|(b, &tv)| (tv, b, a)));
        }
        pairs.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
        out.write_str(
            "<div class=\"panel\">\n<h3>Largest differences</h3>\n<table>\n<thead><tr><th>Pair</th>\
             <th class=\"number\">TV</th></tr></thead>\n<tbody>\n",
        )?;
        for &(tv, a, b) in pairs.iter().take(WORST_PAIRS) {
            let name = |index: usize| Escaped(&self.report.columns[index].name);
            writeln!(
                out,
                "<tr><td>{} <span class=\"quiet\">and</span> {}</td><td class=\"number\">{tv:.3}\
                 </td></tr>",
                name(a),
                name(b)
            )?;
        }
        out.write_str("</tbody>\n</table>\n</div>\n")
    }

    fn association(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Report {
            association,
            pair_total_variation,
            ..
        } = self.report;
        if association.real.len() < 2 {
            return Ok(());
        }
        let drawn = self.drawn(pair_total_variation);
        let change: Vec<Vec<f64>> = association
            .real
            .iter()
            .zip(&association.synthetic)
            .map(|(real, synthetic)| synthetic.iter().zip(real).map(|(s, r)| s - r).collect())
            .collect();
        write!(
            out,
            "<section>\n<h2>Dependence between columns</h2>\n<p class=\"lead\">Cramér's V of each \
             pair: 0 if the columns are independent, 1 if one determines the other.{}</p>\n\
             <div class=\"grid thirds\">\n",
            self.left_out(&drawn)
        )?;
        let maps = [
            ("Real", &association.real, Scale::Unit),
            ("Synthetic", &association.synthetic, Scale::Unit),
            ("Synthetic minus real", &change, Scale::Change),
        ];
        for (title, matrix, scale) in maps {
            write!(
                out,
                "<figure class=\"panel scroll\">\n<figcaption><span class=\"name\">{title}</span>\
                 </figcaption>\n{}</figure>\n",
                self.heatmap(&format!("Cramér's V, {title}"), matrix, &drawn, scale)
            )?;
        }
        out.write_str("</div>\n</section>\n")
    }

    fn prediction(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("<section>\n<h2>Prediction</h2>\n")?;
        if let Some(prediction) = &self.report.prediction {
            prediction_table(out, prediction)?;
        }
        if let Some(reason) = &self.report.no_prediction {
            writeln!(out, "<p class=\"lead\">{}</p>", Escaped(reason))?;
        }
        out.write_str("</section>\n")
    }

    /// Returns the columns of a heatmap in the schema's order: all, or those whose pairs differ most.
    fn drawn(&self, matrix: &[Vec<f64>]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..matrix.len()).collect();
        let sum = |index: usize| matrix[index].iter().sum::<f64>();
        order.sort_by(|&one, &two| sum(two).total_cmp(&sum(one)));
        order.truncate(MAX_DRAWN);
        order.sort_unstable();
        order
    }

    /// Returns a sentence about columns that are not drawn, if there are any.
    fn left_out(&self, drawn: &[usize]) -> String {
        let columns = self.report.columns.len();
        if drawn.len() == columns {
            return String::new();
        }
        format!(
            " The map shows the {} of {columns} columns whose pairs differ most.",
            drawn.len()
        )
    }

    fn heatmap<'a>(
        &'a self,
        title: &str,
        matrix: &'a [Vec<f64>],
        drawn: &'a [usize],
        scale: Scale,
    ) -> Heatmap<'a> {
        let names = drawn
            .iter()
            .map(|&index| self.report.columns[index].name.as_str())
            .collect();
        Heatmap {
            title: title.to_owned(),
            names,
            columns: drawn,
            matrix,
            scale,
            width: if scale == Scale::Error { WIDE } else { NARROW },
        }
    }
}

/// Writes a panel with a number and its explanation.
fn card(out: &mut Formatter<'_>, title: &str, number: &str, text: &str) -> fmt::Result {
    writeln!(
        out,
        "<div class=\"panel card\"><h2>{}</h2><p class=\"figure\">{}</p><p>{}</p></div>",
        Escaped(title),
        Escaped(number),
        Escaped(text)
    )
}

fn prediction_table(out: &mut Formatter<'_>, prediction: &Prediction) -> fmt::Result {
    let of = match &prediction.positive {
        Some(class) => format!("F1 and AUC are for the class {class:?}."),
        None => "F1 and AUC are means over the classes.".to_owned(),
    };
    let seen = if prediction.test_records_were_seen {
        " The records that the synthetic table was made from include the test records. The model \
         trained on real records has not seen the test records."
    } else {
        ""
    };
    write!(
        out,
        "<p class=\"lead\">A logistic regression predicts <strong>{}</strong> of {} real records. \
         {}{seen}</p>\n<div class=\"panel scroll\">\n<table>\n<thead><tr><th>Trained on</th>\
         <th class=\"number\">Accuracy</th><th class=\"number\">F1</th>\
         <th class=\"number\">AUC</th></tr></thead>\n<tbody>\n",
        Escaped(&prediction.target),
        grouped(prediction.test_records as u64),
        Escaped(&of),
    )?;
    score_row(out, "real records", "real", &prediction.real)?;
    score_row(out, "synthetic records", "synthetic", &prediction.synthetic)?;
    write!(
        out,
        "<tr class=\"quiet\"><td>nothing (predicts the most common class)</td>\
         <td class=\"number\">{:.3}</td><td></td><td></td></tr>\n</tbody>\n</table>\n</div>\n",
        prediction.baseline_accuracy
    )
}

fn score_row(out: &mut Formatter<'_>, text: &str, class: &str, scores: &Scores) -> fmt::Result {
    let auc = scores
        .auc
        .map_or_else(|| "none".to_owned(), |auc| format!("{auc:.3}"));
    writeln!(
        out,
        "<tr><td><span class=\"key\"><i class=\"{class}\"></i>{text}</span></td>\
         <td class=\"number\">{:.3}</td><td class=\"number\">{:.3}</td>\
         <td class=\"number\">{auc}</td></tr>",
        scores.accuracy, scores.f1
    )
}

fn closeness_section(out: &mut Formatter<'_>, closeness: &Closeness) -> fmt::Result {
    out.write_str("<section>\n<h2>Closeness to real records</h2>\n")?;
    write!(
        out,
        "<p class=\"lead\">Compares {} synthetic records with {} of the records that they were made \
         from and the same number of held-out records. This is a check; only differential privacy \
         is a guarantee.</p>\n<div class=\"cards\">\n",
        grouped(closeness.synthetic_records as u64),
        grouped(closeness.real_records as u64)
    )?;
    card(
        out,
        "Closer to training",
        &percent(closeness.closer_to_training),
        "of the synthetic records are nearer to a training record than to any held-out record, \
         with ties counted half; 50% is ideal",
    )?;
    card(
        out,
        "Equal to training",
        &percent(closeness.equal_to_training),
        &format!(
            "of the synthetic records equal a training record; {} equal a held-out record",
            percent(closeness.equal_to_held_out)
        ),
    )?;
    out.write_str("</div>\n</section>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_shortened_and_grouped() {
        let escaped = Escaped("<a href=\"x\" title='y'>&").to_string();
        assert_eq!(
            escaped,
            "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;"
        );
        assert_eq!(shorten("héllo", 5), "héllo");
        assert_eq!(shorten("héllo wörld", 7), "héllo…");
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123), "123");
    }

    #[test]
    fn percentages_show_significant_digits() {
        assert_eq!(percent(0.0), "0%");
        assert_eq!(percent(0.000_4), "<0.1%");
        assert_eq!(percent(0.012_34), "1.2%");
        assert_eq!(percent(0.995), "100%");
        assert_eq!(percent(0.5), "50%");
    }
}
