//! What a run can be expected to measure: printed before it spends anything, and part of the question whether to start.

use std::fmt::Write as _;

use fhaim_files::{UseConsent, progress::Progress};
use fhaim_protocol::terms::Terms;
use fhaim_synth::{
    MechanismName, Mechanisms,
    forecast::{Forecast, RecordCount, forecast},
};

use crate::error::Error;

/// Largest number of columns that a text names.
const MAX_NAMES: usize = 8;

/// What a run spends, and the records that it uses.
#[derive(Clone, Copy, Debug)]
pub struct RunBudget {
    /// Epsilon of the budget.
    pub epsilon: f64,
    /// The records.
    pub records: RecordCount,
}

/// Returns the forecast of a run over a dataset with these terms. `None` if the mechanism has no forecast.
///
/// # Errors
/// If the terms are invalid.
pub fn of_terms(terms: &Terms, records: RecordCount) -> Result<Option<Forecast>, Error> {
    let mechanism: MechanismName = terms.mechanism.parse()?;
    let job = terms.clone().complete(&Mechanisms)?.plan()?.job;
    let budget = (terms.epsilon, terms.delta);
    Ok(forecast(&*mechanism, &job, &terms.schema, budget, records))
}

/// Prints the forecast of a run, if its mechanism has one, and returns what the user must agree to: nothing with `yes`.
pub fn consent(
    forecast: Option<&Forecast>,
    run: RunBudget,
    yes: bool,
    progress: &Progress,
) -> UseConsent {
    let mut question = format!(
        "Spend epsilon {} on {}?",
        run.epsilon,
        run.records.of_these()
    );
    if let Some(forecast) = forecast {
        progress.say(text(forecast).trim_end());
        if progress.is_quiet() {
            question = format!("{}\n{question}", forecast.sentence);
        }
    }
    UseConsent {
        yes,
        question: Some(question),
        objection: forecast.and_then(objection),
    }
}

/// Returns the reason against a run whose forecast says that no column will be above its noise.
pub fn objection(forecast: &Forecast) -> Option<String> {
    forecast.is_only_noise().then(|| forecast.sentence.clone())
}

/// Returns a forecast as a few lines.
pub fn text(forecast: &Forecast) -> String {
    let mut text = format!("forecast: {}\n", forecast.sentence);
    let _ = writeln!(
        text,
        "  a column's shares: {:.1}% in wrong places on average{}",
        100.0 * forecast.column_error(),
        noisy(forecast)
    );
    let pairs = &forecast.pairs;
    if pairs.count > 0 {
        let _ = writeln!(
            text,
            "  a pair's table: {:.1}% in wrong cells on average; {} of {} pairs can be measured above the noise",
            100.0 * pairs.error,
            pairs.above_noise,
            pairs.count
        );
    }
    text
}

/// Names the columns that are not above their noise.
fn noisy(forecast: &Forecast) -> String {
    let all: Vec<&str> = forecast
        .noisy_columns()
        .map(|column| column.name.as_str())
        .collect();
    if all.is_empty() {
        return String::new();
    }
    let named = all.iter().take(MAX_NAMES).map(|name| format!("{name:?}"));
    let named = named.collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(MAX_NAMES) {
        0 => format!("; noise: {named}"),
        more => format!("; noise: {named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mechanism of the paper has no forecast.
    #[test]
    fn run_without_a_forecast_is_questioned_too() {
        let run = RunBudget {
            epsilon: 0.5,
            records: RecordCount::Exactly(400),
        };
        let agreed = consent(None, run, false, &Progress::new(true));
        let question = agreed.question.unwrap();
        assert!(question.starts_with("Spend epsilon 0.5 on "), "{question}");
        assert!(consent(None, run, true, &Progress::new(true)).yes);
    }
}
