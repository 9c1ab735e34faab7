//! The page's verdict: sentences, then the worst differences, then single values.

use std::fmt::{self, Display, Formatter};

use super::{Escaped, percent};
use crate::{Finding, Reliance, Report, ValueReport};

/// The first section of a page.
pub(super) struct VerdictSection<'a>(pub(super) &'a Report);

impl Display for VerdictSection<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Report { verdict, .. } = self.0;
        out.write_str("<section>\n<h2>Verdict</h2>\n")?;
        for sentence in &verdict.sentences {
            writeln!(out, "<p class=\"lead\">{}</p>", Escaped(sentence))?;
        }
        if !verdict.findings.is_empty() {
            out.write_str(
                "<div class=\"panel scroll\">\n<h3>Worst first</h3>\n<table>\n<thead><tr>\
                 <th>What differs</th><th>Reliable</th><th class=\"number\">Distance</th>\
                 </tr></thead>\n<tbody>\n",
            )?;
            verdict
                .findings
                .iter()
                .try_for_each(|finding| finding_row(out, finding))?;
            out.write_str("</tbody>\n</table>\n</div>\n")?;
        }
        out.write_str("</section>\n")
    }
}

fn finding_row(out: &mut Formatter<'_>, finding: &Finding) -> fmt::Result {
    let reliance = match finding.reliance {
        Reliance::Good => "yes",
        Reliance::Rough => "roughly",
        Reliance::Bad => "no",
    };
    writeln!(
        out,
        "<tr><td>{}</td><td>{reliance}</td><td class=\"number\">{:.3}</td></tr>",
        Escaped(&finding.text),
        finding.distance
    )
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
