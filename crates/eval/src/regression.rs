//! Logistic regression on one-hot features. The features are never materialised: a record's score is the sum of one
//! weight per column.

#[cfg(feature = "prediction")]
mod loss;

use fhaim_domain::Table;
#[cfg(feature = "prediction")]
use loss::minimise;

use crate::Error;

/// Offsets of the one-hot weights of each feature column.
#[derive(Clone, Debug)]
pub(crate) struct Features {
    columns: Vec<(usize, usize)>,
    weights: usize,
}

impl Features {
    /// Returns all columns except the target and digits. Digits have no meaning without their coarse attribute.
    pub(crate) fn without(table: &Table, target: usize) -> Self {
        let mut columns = Vec::new();
        let mut weights = 0;
        for (attribute, &size) in table.domain().sizes().iter().enumerate() {
            if attribute != target && !table.domain().is_digit(attribute) {
                columns.push((attribute, weights));
                weights += size;
            }
        }
        Self { columns, weights }
    }

    /// Returns the score of each record: the intercept, which is the last weight, plus one weight per column.
    fn scores(&self, table: &Table, weights: &[f64]) -> Vec<f64> {
        let mut scores = vec![weights[self.weights]; table.records()];
        for &(attribute, offset) in &self.columns {
            for (score, &code) in scores.iter_mut().zip(table.column(attribute)) {
                *score += weights[offset + code as usize];
            }
        }
        scores
    }
}

/// A fitted binary classifier.
#[derive(Clone, Debug)]
pub(crate) struct Classifier {
    features: Features,
    weights: Vec<f64>,
}

impl Classifier {
    /// Fits a classifier, starting with zero weights.
    ///
    /// If the training records are all of one class, the loss has no minimum. The classifier then consists of the
    /// intercept only: the log-odds with one record added to each class.
    ///
    /// # Errors
    /// [`Error::Optimiser`] if the optimiser fails.
    pub(crate) fn fit(
        table: &Table,
        features: &Features,
        positive: &[bool],
    ) -> Result<Self, Error> {
        let mut start = vec![0.0; features.weights + 1];
        let positives = positive.iter().filter(|&&class| class).count();
        let negatives = positive.len() - positives;
        start[features.weights] = ((positives + 1) as f64 / (negatives + 1) as f64).ln();
        if positives == 0 || negatives == 0 {
            return Ok(Self {
                features: features.clone(),
                weights: start,
            });
        }
        let weights = minimise(table, features, positive, start)?;
        Ok(Self {
            features: features.clone(),
            weights,
        })
    }

    /// Returns the log-odds of the positive class for each record.
    pub(crate) fn scores(&self, table: &Table) -> Vec<f64> {
        self.features.scores(table, &self.weights)
    }
}

/// Stands in for the optimiser in builds without it. Reports check the feature and do not call it.
#[cfg(not(feature = "prediction"))]
fn minimise(_: &Table, _: &Features, _: &[bool], _: Vec<f64>) -> Result<Vec<f64>, Error> {
    Err(Error::Optimiser("this build has no optimiser".to_owned()))
}

#[cfg(test)]
#[cfg(feature = "prediction")]
mod tests {
    use super::loss::{Loss, sigmoid};
    use super::*;
    use argmin::core::{CostFunction, Gradient};
    use fhaim_domain::Schema;
    use linfa::traits::Fit;
    use ndarray::{Array1, Array2};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Returns 400 records of three columns and a class that depends on the first two.
    fn example() -> Table {
        let json = r#"{"name": "t", "target": "class", "columns": [
            {"name": "a", "kind": "numeric", "min": 0, "max": 5, "bins": 5},
            {"name": "b", "kind": "categorical", "categories": ["x", "y"], "nullable": true},
            {"name": "class", "kind": "categorical", "categories": ["no", "yes"]},
            {"name": "c", "kind": "categorical", "categories": ["p", "q", "r"]}]}"#;
        let schema = Schema::from_json("t", json.as_bytes()).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut columns = vec![Vec::new(); 4];
        for _ in 0..400 {
            let (a, b) = (rng.random_range(0..5u32), rng.random_range(0..3u32));
            let odds = f64::from(a) - 2.0 - f64::from(b);
            columns[0].push(a);
            columns[1].push(b);
            columns[2].push(u32::from(rng.random::<f64>() < sigmoid(odds)));
            columns[3].push(rng.random_range(0..3));
        }
        Table::new(schema, columns).unwrap()
    }

    #[test]
    fn weights_match_linfa() {
        let table = example();
        let features = Features::without(&table, 2);
        let positive: Vec<bool> = table.column(2).iter().map(|&code| code == 1).collect();
        let fitted = Classifier::fit(&table, &features, &positive).unwrap();

        let mut dense = Array2::zeros((table.records(), features.weights));
        for &(attribute, offset) in &features.columns {
            for (row, &code) in table.column(attribute).iter().enumerate() {
                dense[(row, offset + code as usize)] = 1.0;
            }
        }
        let dataset = linfa::Dataset::new(dense, Array1::from(positive));
        let reference = linfa_logistic::LogisticRegression::default()
            .gradient_tolerance(1e-6)
            .max_iterations(1000)
            .fit(&dataset)
            .unwrap();
        // Linfa uses the first class that it finds as the positive class.
        let sign = if reference.labels().pos.class {
            1.0
        } else {
            -1.0
        };
        let expected = reference
            .params()
            .iter()
            .copied()
            .chain([reference.intercept()]);
        for (weight, expected) in fitted.weights.iter().zip(expected) {
            assert!(
                (weight - sign * expected).abs() < 1e-4,
                "{weight} for {expected}"
            );
        }
    }

    #[test]
    fn gradient_matches_finite_differences() {
        let table = example();
        let features = Features::without(&table, 2);
        let positive: Vec<bool> = table.column(2).iter().map(|&code| code == 1).collect();
        let loss = Loss {
            features: &features,
            table: &table,
            positive: &positive,
        };
        let weights: Vec<f64> = (0..=features.weights).map(|i| (i as f64).sin()).collect();
        let gradient = loss.gradient(&weights).unwrap();
        for index in 0..weights.len() {
            let shifted = |by: f64| {
                let mut moved = weights.clone();
                moved[index] += by;
                loss.cost(&moved).unwrap()
            };
            let slope = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
            assert!(
                (slope - gradient[index]).abs() < 1e-4,
                "{slope} for {}",
                gradient[index]
            );
        }
    }

    #[test]
    fn single_class_gives_all_records_the_same_score() {
        let table = example();
        let features = Features::without(&table, 2);
        let fitted = Classifier::fit(&table, &features, &vec![true; 400]).unwrap();
        assert!(
            fitted
                .scores(&table)
                .iter()
                .all(|&score| score == 401f64.ln())
        );
    }
}
