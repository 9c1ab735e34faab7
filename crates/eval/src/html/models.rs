//! The page's sections on rules, prediction and privacy.

use fhaim_page::escaped;
use std::fmt::{self, Display, Formatter};

use super::{TextTable, finding_list, grouped, scroll_box};
use crate::{
    AreaName, Attack, Check, Finding, Prediction, Report, Scores,
    charts::{Bar, PairedBars, legend, percent},
    closeness::Closeness,
    membership::Membership,
};

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

/// Lists the findings of some checks.
fn findings_of(out: &mut Formatter<'_>, report: &Report, checks: &[Check]) -> fmt::Result {
    let findings = report.assessment.findings.iter();
    let findings: Vec<&Finding> = findings
        .filter(|finding| checks.contains(&finding.check))
        .collect();
    finding_list(out, &findings)
}

/// Rules of the real table and constraints of the schema, with violations.
pub(super) struct RulesBody<'a>(pub(super) &'a Report);

impl Display for RulesBody<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let report = self.0;
        let area = report
            .assessment
            .areas
            .iter()
            .find(|area| area.name == AreaName::Rules);
        let (examined, failed) = area.map_or((0, 0), |area| (area.examined, area.failed));
        writeln!(
            out,
            "<p class=\"lead\">{} examined: constraints of the schema, and rules that hold in the real table, such as \
             combinations that never occur. The synthetic table breaks {} more often than a second real sample \
             would.</p>",
            fhaim_domain::counted(examined as u64, "rule"),
            if failed == 0 {
                "none of them".to_owned()
            } else {
                format!("{failed} of them")
            }
        )?;
        findings_of(out, report, &[Check::Rule])?;
        if report.constraints.is_empty() {
            return Ok(());
        }
        let rows = report.constraints.iter().map(|constraint| {
            let broken = constraint.broken;
            vec![
                constraint.text.clone(),
                percent(broken.real),
                percent(broken.synthetic),
            ]
        });
        let table = TextTable {
            head: texts([
                "Constraint",
                "Broken by real records",
                "by synthetic records",
            ]),
            rows: rows.collect(),
        };
        out.write_str("<div class=\"panel\">\n")?;
        scroll_box(out, "Constraints", &table)?;
        out.write_str("</div>\n")
    }
}

/// Prediction of the target, trained on real and on synthetic records.
pub(super) struct PredictionBody<'a>(pub(super) &'a Report);

impl Display for PredictionBody<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if let Some(reason) = &self.0.no_prediction {
            writeln!(out, "<p class=\"lead\">{}</p>", escaped(reason))?;
        }
        findings_of(out, self.0, &[Check::Prediction])?;
        match &self.0.prediction {
            Some(prediction) => prediction_chart(out, prediction),
            None => Ok(()),
        }
    }
}

fn prediction_chart(out: &mut Formatter<'_>, prediction: &Prediction) -> fmt::Result {
    let of = match &prediction.positive {
        Some(class) => format!("F1 and AUC are for the class \"{class}\"."),
        None => "F1 and AUC are means over the classes.".to_owned(),
    };
    let seen = if prediction.test_records_were_seen {
        " The records that the synthetic table was made from include the test records. The model trained on real records \
         has not seen the test records."
    } else {
        ""
    };
    let bar = |label: &str, score: fn(&Scores) -> Option<f64>| {
        let (real, synthetic) = (score(&prediction.real)?, score(&prediction.synthetic)?);
        let label = label.to_owned();
        Some(Bar {
            label,
            real,
            synthetic,
        })
    };
    let bars = [
        bar("Accuracy", |scores| Some(scores.accuracy)),
        bar("F1", |scores| Some(scores.f1)),
        bar("AUC", |scores| scores.auc),
    ];
    let chart = PairedBars {
        title: format!(
            "Scores of a prediction of {}, trained on real and on synthetic records",
            prediction.target
        ),
        bars: bars.into_iter().flatten().collect(),
        full: 1.0,
    };
    writeln!(
        out,
        "<p class=\"lead\">A model (logistic regression) is trained once on real and once on synthetic records, and \
         predicts <strong>{}</strong> of {} real records. Similar bars mean that the synthetic table serves to train such \
         models. Always predicting the most common class has an accuracy of {}. {}{seen}</p>\n{}\
         <figure class=\"panel narrow\">\n{}</figure>",
        escaped(&prediction.target),
        grouped(prediction.test_records as u64),
        percent(prediction.baseline_accuracy),
        escaped(&of),
        legend(),
        chart.svg()
    )
}

/// Copies of records, and attacks.
pub(super) struct PrivacyBody<'a>(pub(super) &'a Report);

impl Display for PrivacyBody<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let report = self.0;
        out.write_str(
            "<p class=\"lead\">These are checks of the result. Only differential privacy is a guarantee.</p>\n",
        )?;
        findings_of(out, report, &[Check::Copies, Check::Membership])?;
        if let Some(copies) = report.copies {
            writeln!(
                out,
                "<h3>Copies</h3>\n<p class=\"lead\">{} real records have no equal among the other real ones. {} of them \
                 occur in the synthetic table. In a second real sample, about {} would occur by chance.</p>",
                grouped(copies.unique as u64),
                grouped(copies.copied as u64),
                number_text(copies.expected)
            )?;
        }
        if let Some(closeness) = &report.closeness {
            closeness_text(out, closeness)?;
        }
        match &report.membership {
            Some(membership) => membership_table(out, membership),
            None => writeln!(
                out,
                "<p class=\"quiet\">Attacks that try to tell which records the table was made from need held-out records \
                 (<code>fhaim evaluate --held-out</code>).</p>"
            ),
        }
    }
}

fn number_text(number: f64) -> String {
    match number {
        ..0.05 => "0".to_owned(),
        ..10.0 => format!("{number:.1}"),
        _ => grouped(number.round() as u64),
    }
}

fn closeness_text(out: &mut Formatter<'_>, closeness: &Closeness) -> fmt::Result {
    writeln!(
        out,
        "<h3>Closeness to real records</h3>\n<p class=\"lead\">{} synthetic records are compared with {} of the records \
         that they were made from, and with as many that they were not made from (held-out). Closer to training than to \
         held-out records: {}, with ties counted half; 50% is ideal. Equal to a training record: {}. Equal to a held-out \
         record: {}.</p>",
        grouped(closeness.synthetic_records as u64),
        grouped(closeness.real_records as u64),
        percent(closeness.closer_to_training),
        percent(closeness.equal_to_training),
        percent(closeness.equal_to_held_out)
    )
}

fn membership_table(out: &mut Formatter<'_>, membership: &Membership) -> fmt::Result {
    writeln!(
        out,
        "<h3>Membership attacks</h3>\n<p class=\"lead\">Attacks that try to distinguish {} records that the table was made \
         from (members) from {} other records of the same population. {}</p>",
        grouped(membership.members as u64),
        grouped(membership.others as u64),
        escaped(&membership.sentence())
    )?;
    let mut rows = Vec::new();
    let mut add = |name: &str, attack: Attack| {
        rows.push(vec![
            name.to_owned(),
            format!("{:.3}", attack.found),
            format!("{:.3}", attack.chance),
        ]);
    };
    if let Some(scores) = &membership.scores {
        add(
            "Likelihood: probability that a member has a higher likelihood under the model than another record (Yeom et \
             al. 2018)",
            scores.likelihood,
        );
        add(
            "White box: share of members among the records with the highest likelihood (Hayes et al. 2019)",
            scores.white_box,
        );
        add(
            "Total variation: distance between the likelihoods of members and of other records",
            scores.total_variation,
        );
    }
    add(
        "Nearest record: share of pairs of a member and another record in which the member is nearer to a synthetic \
         record",
        membership.nearby,
    );
    add(
        "Monte Carlo: share of tries in which more synthetic records are near members (Hilprecht et al. 2019)",
        membership.monte_carlo,
    );
    let table = TextTable {
        head: texts(["Attack", "Result", "By guessing"]),
        rows,
    };
    out.write_str("<div class=\"panel\">\n")?;
    scroll_box(out, "Membership attacks", &table)?;
    out.write_str("</div>\n")
}
