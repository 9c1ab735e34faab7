//! Trains a model on synthetic records and tests it on real ones (Esteban, Hyland and Rätsch 2017), for comparison with
//! the same model trained on real records.

use fhaim_domain::Table;
use serde::Serialize;

use crate::{
    Error,
    regression::{Classifier, Features},
};

/// Maximum number of classes of a target. A target with more is rather a binned number.
pub const MAX_CLASSES: usize = 20;

/// Scores of a model's predictions for the test records' target, each from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scores {
    /// Share of records whose class is predicted correctly.
    pub accuracy: f64,
    /// F1 of the positive class, 2 TP / (2 TP + FP + FN). With more than two classes, the mean over classes.
    pub f1: f64,
    /// Area under the ROC curve of the positive class: the probability that a record of the class scores above a record
    /// of another class (Hanley and McNeil 1982). With more than two classes, the mean over classes. Absent if the test
    /// records are all of one class.
    pub auc: Option<f64>,
}

/// Two models tested on the same real records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Name of the target column.
    pub target: String,
    /// Its classes.
    pub classes: Vec<String>,
    /// The positive class (the second), if there are two classes.
    pub positive: Option<String>,
    /// Number of test records, which are those with a target.
    pub test_records: usize,
    /// Whether the synthetic table was made from records that include the test records.
    pub test_records_were_seen: bool,
    /// Share of the test records in the most common class of the real training records. A useful model has a higher
    /// accuracy.
    pub baseline_accuracy: f64,
    /// Scores of the model trained on real records.
    pub real: Scores,
    /// Scores of the model trained on synthetic records.
    pub synthetic: Scores,
}

/// The target of a prediction.
pub(crate) enum Target {
    /// The column to predict, with its number of classes.
    Column { attribute: usize, classes: usize },
    /// The reason for which nothing can be predicted.
    None(String),
}

/// Returns the target of a table. Its classes are the target column's categories or bins, without nulls.
pub(crate) fn target_of(table: &Table) -> Target {
    let Some(attribute) = table.schema().target() else {
        return Target::None("The schema names no target column.".to_owned());
    };
    let column = &table.schema().columns()[attribute];
    let classes = column.size() - usize::from(column.nullable());
    if table.schema().columns().len() < 2 {
        return Target::None("The table has no column except the target.".to_owned());
    }
    if !(2..=MAX_CLASSES).contains(&classes) {
        return Target::None(format!(
            "The target column has {classes} classes; prediction needs 2 to {MAX_CLASSES}."
        ));
    }
    Target::Column { attribute, classes }
}

/// Returns the records with a target, or `None` if no record has one.
fn with_target(table: &Table, attribute: usize, classes: usize) -> Option<Table> {
    let rows: Vec<usize> = (0..table.records())
        .filter(|&row| (table.column(attribute)[row] as usize) < classes)
        .collect();
    table.select(&rows).ok()
}

/// Trains on `real` and on `synthetic`, and tests on records that neither was made from.
///
/// Returns `None` if the schema has no target that can be predicted, or if a table has no record with a target.
///
/// # Errors
/// [`Error::Optimiser`] if a model cannot be fitted.
pub fn predict_held_out(
    real: &Table,
    synthetic: &Table,
    test: &Table,
) -> Result<Option<Prediction>, Error> {
    match target_of(real) {
        Target::Column { attribute, classes } => {
            predict([real, synthetic, test], (attribute, classes), false)
        }
        Target::None(_) => Ok(None),
    }
}

/// Trains on `real` and on `synthetic`, and tests on `test`. Returns `None` if one of them has no record with a target.
pub(crate) fn predict(
    [real, synthetic, test]: [&Table; 3],
    (attribute, classes): (usize, usize),
    test_records_were_seen: bool,
) -> Result<Option<Prediction>, Error> {
    let labelled = |table| with_target(table, attribute, classes);
    let (Some(real), Some(synthetic), Some(test)) =
        (labelled(real), labelled(synthetic), labelled(test))
    else {
        return Ok(None);
    };
    let column = &real.schema().columns()[attribute];
    let labels: Vec<String> = (0..classes).map(|code| column.label(code as u32)).collect();
    Ok(Some(Prediction {
        target: column.name().to_owned(),
        positive: labels.get(1).filter(|_| classes == 2).cloned(),
        classes: labels,
        test_records: test.records(),
        test_records_were_seen,
        baseline_accuracy: baseline(&real, &test, attribute, classes),
        real: train_and_test(&real, &test, attribute, classes)?,
        synthetic: train_and_test(&synthetic, &test, attribute, classes)?,
    }))
}

fn baseline(real: &Table, test: &Table, attribute: usize, classes: usize) -> f64 {
    let count = |table: &Table, class: u32| {
        table
            .column(attribute)
            .iter()
            .filter(|&&code| code == class)
            .count()
    };
    // Reversed, because `max_by_key` returns the last of equal classes, and the first is wanted.
    let common = (0..classes as u32)
        .rev()
        .max_by_key(|&class| count(real, class));
    common.map_or(0.0, |class| {
        count(test, class) as f64 / test.records() as f64
    })
}

/// Trains and tests one binary model for two classes, otherwise one model for each class against the rest.
fn train_and_test(
    train: &Table,
    test: &Table,
    attribute: usize,
    classes: usize,
) -> Result<Scores, Error> {
    let features = Features::without(train, attribute);
    let models = if classes == 2 {
        1..2
    } else {
        0..classes as u32
    };
    let mut scores = Vec::new();
    for class in models {
        let positive: Vec<bool> = train
            .column(attribute)
            .iter()
            .map(|&code| code == class)
            .collect();
        scores.push(Classifier::fit(train, &features, &positive)?.scores(test));
    }
    Ok(measure(test.column(attribute), &scores))
}

/// Computes scores from the true classes and every record's log-odds under each model.
fn measure(truth: &[u32], scores: &[Vec<f64>]) -> Scores {
    let predicted: Vec<u32> = (0..truth.len())
        .map(|row| predicted_class(scores, row))
        .collect();
    let hits = predicted
        .iter()
        .zip(truth)
        .filter(|(found, class)| found == class)
        .count();
    let first = if scores.len() == 1 { 1 } else { 0 };
    let classes = || (first..).zip(scores);
    let f1 = classes()
        .map(|(class, _)| f1(truth, &predicted, class))
        .sum::<f64>();
    let aucs: Vec<f64> = classes()
        .filter_map(|(class, scores)| {
            let positive: Vec<bool> = truth.iter().map(|&code| code == class).collect();
            auc(&positive, scores)
        })
        .collect();
    Scores {
        accuracy: hits as f64 / truth.len() as f64,
        f1: f1 / scores.len() as f64,
        auc: (!aucs.is_empty()).then(|| aucs.iter().sum::<f64>() / aucs.len() as f64),
    }
}

fn predicted_class(scores: &[Vec<f64>], row: usize) -> u32 {
    if let [only] = scores {
        return u32::from(only[row] > 0.0);
    }
    let best = (0u32..)
        .zip(scores)
        .max_by(|(_, one), (_, two)| one[row].total_cmp(&two[row]));
    best.map_or(0, |(class, _)| class)
}

fn f1(truth: &[u32], predicted: &[u32], class: u32) -> f64 {
    let count = |wanted: (bool, bool)| {
        let pairs = truth.iter().zip(predicted);
        pairs
            .filter(|(t, p)| (**t == class, **p == class) == wanted)
            .count() as f64
    };
    let (hits, errors) = (
        count((true, true)),
        count((true, false)) + count((false, true)),
    );
    if hits + errors == 0.0 {
        0.0
    } else {
        2.0 * hits / (2.0 * hits + errors)
    }
}

/// Returns the area under the ROC curve, computed from ranks with ties counted half.
///
/// Both lists have one entry for each record. Returns `None` if all records are of the same class.
pub fn auc(positive: &[bool], scores: &[f64]) -> Option<f64> {
    let positives = positive.iter().filter(|&&class| class).count() as f64;
    let negatives = positive.len() as f64 - positives;
    if positives == 0.0 || negatives == 0.0 {
        return None;
    }
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&one, &two| scores[one].total_cmp(&scores[two]));
    let (mut below, mut wins) = (0.0, 0.0);
    for tied in order.chunk_by(|&one, &two| scores[one] == scores[two]) {
        let hits = tied.iter().filter(|&&row| positive[row]).count() as f64;
        let misses = tied.len() as f64 - hits;
        wins += hits * (below + misses / 2.0);
        below += misses;
    }
    Some(wins / (positives * negatives))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auc_counts_ties_half() {
        let positive = [true, true, false, false];
        assert_eq!(auc(&positive, &[4.0, 3.0, 2.0, 1.0]), Some(1.0));
        assert_eq!(auc(&positive, &[1.0, 2.0, 3.0, 4.0]), Some(0.0));
        assert_eq!(auc(&positive, &[1.0, 1.0, 1.0, 1.0]), Some(0.5));
        assert_eq!(auc(&positive, &[3.0, 1.0, 1.0, 0.0]), Some(3.5 / 4.0));
        assert_eq!(auc(&[true], &[1.0]), None);
    }

    #[test]
    fn two_classes_are_scored_by_the_second() {
        // True positives 2, false positives 1, false negatives 1, true negatives 1.
        let scores = measure(&[1, 1, 1, 0, 0], &[vec![1.0, 2.0, -1.0, 0.5, -2.0]]);
        assert_eq!(scores.accuracy, 3.0 / 5.0);
        assert_eq!(scores.f1, 2.0 / 3.0);
        assert_eq!(scores.auc, Some(5.0 / 6.0));
    }

    #[test]
    fn more_classes_are_scored_by_the_mean() {
        let truth = [0, 1, 2, 2];
        let by_class = [
            vec![1.0, 0.0, 0.0, 0.5],
            vec![0.0, 1.0, 0.0, 0.0],
            vec![0.0, 0.0, 1.0, 0.0],
        ];
        let scores = measure(&truth, &by_class);
        assert_eq!(scores.accuracy, 0.75);
        assert_eq!(scores.f1, (2.0 / 3.0 + 1.0 + 2.0 / 3.0) / 3.0);
        assert_eq!(scores.auc, Some((1.0 + 1.0 + 0.75) / 3.0));
    }
}
