//! The first screen of the page: five questions of a reader without statistics, with their answers.

use fhaim_page::escaped;
use std::fmt::{self, Display, Formatter};

use fhaim_domain::counted;

use super::{Fact, grouped};
use crate::{AreaName, Report, Severity, assessment::served};

/// A larger factor says little more than that there is hardly any protection.
const MAX_FACTOR: f64 = 1_000.0;

pub(super) struct Questions<'a> {
    pub(super) report: &'a Report,
    pub(super) facts: &'a [Fact],
}

impl Questions<'_> {
    /// Returns the value of the fact whose name begins with a word.
    fn fact(&self, word: &str) -> Option<&str> {
        let has_word = |fact: &&Fact| {
            let first = fact.name.split_whitespace().next();
            first.is_some_and(|first| first.eq_ignore_ascii_case(word))
        };
        self.facts
            .iter()
            .find(has_word)
            .map(|fact| fact.value.trim())
    }

    fn unit(&self) -> &str {
        self.fact("Protected").unwrap_or("record")
    }

    fn subject(&self) -> String {
        let report = self.report;
        let records = |count: usize, kind: &str| {
            let plural = if count == 1 { "" } else { "s" };
            format!("{} {kind} record{plural}", grouped(count as u64))
        };
        format!(
            "A comparison of {} with {}, over {}.",
            records(report.synthetic_records, "synthetic"),
            records(report.real_records, "real"),
            counted(report.charts.columns.len() as u64, "column")
        )
    }

    fn quality(&self) -> (&'static str, String) {
        let assessment = &self.report.assessment;
        let has_failed = |area: AreaName| {
            assessment
                .areas
                .iter()
                .any(|of| of.name == area && of.failed > 0)
        };
        let is_severe = assessment
            .findings
            .iter()
            .any(|finding| finding.severity == Severity::Major);
        let verdict = match assessment.findings.is_empty() {
            true => "Yes.",
            false if has_failed(AreaName::Privacy) => "No, a privacy check failed.",
            false if is_severe => "Only in part.",
            false => "Yes, with slight differences.",
        };
        let worst = assessment.summary.first().cloned();
        let served = served(&assessment.uses);
        let sentences: Vec<String> = worst.into_iter().chain(served).collect();
        (verdict, sentences.join(" "))
    }

    fn protected(&self) -> String {
        let unit = self.unit();
        if self.fact("Epsilon").is_none() {
            return "Unknown here. The ledger or card of the synthetic table says how it was made."
                .to_owned();
        }
        let several = match unit {
            "record" => " A person with several records is protected less.",
            _ => "",
        };
        format!(
            "Each {unit}: the synthetic table limits what anyone can conclude about it (differential privacy).{several}"
        )
    }

    fn cost(&self) -> String {
        let Some(epsilon) = self.fact("Epsilon") else {
            return "Unknown here. The ledger or card of the synthetic table has its epsilon and delta.".to_owned();
        };
        let (delta, apart) = match self.fact("Delta") {
            Some(delta) => (format!(", delta {delta}"), ", apart from a chance of delta"),
            None => (String::new(), ""),
        };
        let meaning = match epsilon.parse::<f64>().map(f64::exp) {
            Ok(factor) if factor > MAX_FACTOR => {
                " An epsilon of this size guarantees almost nothing.".to_owned()
            }
            Ok(factor) => format!(
                " One {} makes any result at most {} times as likely{apart}.",
                self.unit(),
                factor_text(factor)
            ),
            Err(_) => String::new(),
        };
        format!("Epsilon {epsilon}{delta}.{meaning} Each further table adds to this.")
    }

    fn next(&self) -> &'static str {
        match self.quality().0 {
            "Yes." => {
                "Use the table, and look below for what each column is good for. Do not pass on this page."
            }
            "No, a privacy check failed." => {
                "Do not pass the table on. Read the section Privacy first."
            }
            _ => {
                "Read the failed checks before you use the table. More records, fewer columns or a larger epsilon give a \
                 better one. Do not pass on this page."
            }
        }
    }
}

/// Writes a factor with two significant digits.
fn factor_text(factor: f64) -> String {
    match factor {
        ..1.1 => format!("{factor:.3}"),
        ..10.0 => format!("{factor:.1}"),
        _ => format!("{factor:.0}"),
    }
}

impl Display for Questions<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (verdict, reason) = self.quality();
        let answers = [
            ("What does this page show?", "", self.subject()),
            ("Is it good?", verdict, reason),
            ("Who is protected?", "", self.protected()),
            ("What did it cost?", "", self.cost()),
            ("What next?", "", self.next().to_owned()),
        ];
        out.write_str("<section id=\"summary\">\n<h2>Summary</h2>\n<dl class=\"questions\">\n")?;
        for (question, verdict, answer) in answers {
            let answer = escaped(&answer);
            match verdict {
                "" => writeln!(out, "<div><dt>{question}</dt><dd>{answer}</dd></div>")?,
                _ => writeln!(
                    out,
                    "<div><dt>{question}</dt><dd><strong>{verdict}</strong> {answer}</dd></div>"
                )?,
            }
        }
        out.write_str("</dl>\n")?;
        if !self.facts.is_empty() {
            out.write_str(
                "<details>\n<summary>How the table was made</summary>\n<dl class=\"facts\">\n",
            )?;
            for Fact { name, value } in self.facts {
                writeln!(
                    out,
                    "<div><dt>{}</dt><dd>{}</dd></div>",
                    escaped(name),
                    escaped(value)
                )?;
            }
            out.write_str("</dl>\n</details>\n")?;
        }
        out.write_str("</section>\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_have_two_digits() {
        let texts = [0.01, 1.0, 4.0].map(|epsilon: f64| factor_text(epsilon.exp()));
        assert_eq!(texts, ["1.010", "2.7", "55"]);
    }
}
