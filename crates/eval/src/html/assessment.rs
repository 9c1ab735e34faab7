//! The page's assessment: summary, areas and findings, and the comparison of single values.

use std::fmt::{self, Display, Formatter};

use super::{Escaped, percent};
use crate::{Assessment, Report, ValueReport};

/// The first section of a page.
pub(super) struct AssessmentSection<'a>(pub(super) &'a Report);

impl Display for AssessmentSection<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Assessment {
            summary,
            findings,
            areas,
            ..
        } = &self.0.assessment;
        out.write_str("<section>\n<h2>Assessment</h2>\n")?;
        for sentence in summary {
            writeln!(out, "<p class=\"lead\">{}</p>", Escaped(sentence))?;
        }
        out.write_str("<ul>\n")?;
        for area in areas {
            let shown = |score: Option<f64>| {
                score.map_or_else(|| "not examined".to_owned(), |score| format!("{score:.3}"))
            };
            writeln!(
                out,
                "<li>{}: {} (a second real sample: {}), {} of {} failed. {}</li>",
                area.name.title(),
                shown(area.score),
                shown(area.baseline),
                area.failed,
                area.examined,
                Escaped(area.definition)
            )?;
        }
        out.write_str("</ul>\n<ol>\n")?;
        for finding in findings {
            writeln!(
                out,
                "<li>{} ({:.3}, a second real sample: {:.3})</li>",
                Escaped(&finding.text),
                finding.distance,
                finding.baseline
            )?;
        }
        out.write_str("</ol>\n</section>\n")
    }
}

/// The section with columns compared value by value.
pub(super) struct ValuesSection<'a>(pub(super) &'a [ValueReport]);

impl Display for ValuesSection<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        out.write_str(
            "<section>\n<h2>Values</h2>\n<p class=\"lead\">The columns of the tables compared value by \
             value, without bins. TV: total variation distance of single values. KS: \
             Kolmogorov-Smirnov distance. Both are from 0 (equal) to 1 (nothing in common). Moved: the \
             distance that a value has to move on average, as a share of the range (Wasserstein).</p>\n\
             <div class=\"panel scroll\">\n<table>\n<thead><tr><th>Column</th>\
             <th class=\"number\">Values</th><th class=\"number\">TV</th><th class=\"number\">KS</th>\
             <th class=\"number\">Moved</th><th class=\"number\">Missing, real</th>\
             <th class=\"number\">synthetic</th></tr></thead>\n<tbody>\n",
        )?;
        for value in self.0 {
            let number =
                |number: Option<f64>| number.map_or_else(String::new, |n| format!("{n:.3}"));
            writeln!(
                out,
                "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
                 <td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
                 <td class=\"number\">{}</td></tr>",
                Escaped(&value.name),
                super::grouped(value.different as u64),
                number(value.total_variation),
                number(value.kolmogorov_smirnov),
                number(value.wasserstein),
                percent(value.missing.real),
                percent(value.missing.synthetic)
            )?;
        }
        out.write_str("</tbody>\n</table>\n</div>\n</section>\n")
    }
}
