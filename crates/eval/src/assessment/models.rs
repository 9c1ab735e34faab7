//! Checks of predictions and of membership attacks.

use super::{
    Check,
    evidence::{Examined, Findings, Score},
    statistics::normal_tails,
};
use crate::{membership::Membership, prediction::Prediction};

/// Smallest number of test records of the common class, and of all others, that allows a judgement.
const MIN_CASES: f64 = 10.0;

/// Smallest loss of accuracy, or of the area under the ROC curve, that matters.
const MIN_LOSS: f64 = 0.05;

/// Compares a model trained on synthetic records with one trained on real records.
pub(crate) fn prediction_check(prediction: &Prediction) -> Findings {
    let Prediction {
        real,
        synthetic,
        target,
        ..
    } = prediction;
    let records = prediction.test_records.max(1) as f64;
    let common = prediction.baseline_accuracy;
    let (name, one, two, error) = match (real.auc, synthetic.auc) {
        (Some(one), Some(two)) => {
            let error = standard_error([one, two], common, records);
            ("area under the ROC curve", one, two, error)
        }
        _ => {
            let (one, two) = (real.accuracy, synthetic.accuracy);
            let variance = one * (1.0 - one) + two * (1.0 - two);
            (
                "accuracy",
                one,
                two,
                (variance / records).sqrt().max(1.0 / records),
            )
        }
    };
    let rare = (1.0 - common).min(common) * records;
    let loss = one - two;
    let expected = error * 0.4;
    let examined = Examined {
        check: Check::Prediction,
        columns: vec![target.clone()],
        purpose: None,
        distance: loss.max(0.0),
        expected,
        spread: error * 0.6,
        p: if loss > 0.0 && rare >= MIN_CASES {
            normal_tails(loss / error) / 2.0
        } else {
            1.0
        },
        size: (loss - expected) / MIN_LOSS,
        tests: 1,
        text: format!(
            "a model of {target} that was trained on synthetic records predicts real ones with {name} {two:.2}, and one \
             that was trained on real records with {one:.2}"
        ),
    };
    Findings {
        scores: vec![Score {
            found: 1.0 - 2.0 * loss.max(0.0),
            baseline: 1.0 - 2.0 * expected,
        }],
        examined: vec![examined],
        subjects: 1,
        all: 1,
    }
}

/// Returns the standard error of the difference of two models' areas under the ROC curve on the same records (Hanley and
/// McNeil 1982), as if the models were independent. With several classes, it uses the most common one.
fn standard_error(areas: [f64; 2], most_common: f64, records: f64) -> f64 {
    let positive = (most_common.clamp(0.01, 0.99) * records).max(1.0);
    let negative = (records - positive).max(1.0);
    let variance = |area: f64| {
        // An area below one half has the variance of the reversed scores.
        let area = area.max(1.0 - area).clamp(0.5, 0.99);
        let (q1, q2) = (area / (2.0 - area), 2.0 * area * area / (1.0 + area));
        let square = area * area;
        (area * (1.0 - area) + (positive - 1.0) * (q1 - square) + (negative - 1.0) * (q2 - square))
            / (positive * negative)
    };
    areas.map(variance).iter().sum::<f64>().sqrt()
}

/// Judges membership attacks. They compare with chance themselves.
pub(crate) fn membership_check(membership: &Membership) -> Findings {
    let nearby = membership.nearby;
    let likelihood = membership.scores.map(|scores| scores.likelihood);
    let best = likelihood
        .filter(|attack| attack.found > nearby.found)
        .unwrap_or(nearby);
    let examined = Examined {
        check: Check::Membership,
        columns: Vec::new(),
        purpose: None,
        distance: best.found,
        expected: best.chance,
        spread: 0.0,
        p: if membership.found { 0.0 } else { 1.0 },
        size: if membership.found { 2.0 } else { 0.0 },
        tests: 1,
        text: membership.sentence().trim_end_matches('.').to_owned(),
    };
    Findings {
        examined: vec![examined],
        scores: Vec::new(),
        subjects: 1,
        all: 1,
    }
}
