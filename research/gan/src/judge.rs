//! Quality of generated records: inception score, Fréchet distance, entropy and diversity (Salimans et al. 2016; Heusel
//! et al. 2017), by a classifier that is trained on real records.
//!
//! The published measures use a network trained on ImageNet. This classifier has two hidden layers, of 128 and 64
//! units; the values of the second are the features of the Fréchet distance. The results can be compared with each
//! other. With printed ones, only their order can be compared.

use rand::Rng;

use crate::Error;
use crate::examples::{Examples, largest, softmax};
use crate::layer::Layer;
use crate::matrix::Matrix;
use crate::network::Network;
use crate::optimiser::{Descent, Optimiser};
use crate::symmetric::Symmetric;

/// Hidden units of the classifier. The last layer gives the features.
const HIDDEN: [usize; 2] = [128, 64];

/// Number of records per step, number of steps, and learning rate of the classifier.
const BATCH: usize = 64;
const STEPS: usize = 2500;
const RATE: f32 = 1e-3;

/// A classifier of records that measures the quality of generated ones.
#[derive(Clone, Debug)]
pub struct Judge {
    network: Network,
    classes: usize,
}

/// The quality of generated records.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Quality {
    /// Inception score: exp of the mean divergence of a record's classes from the mean over all records. From 1 to the
    /// number of classes.
    pub inception: f64,
    /// Fréchet distance between the features of generated and real records, as two normal distributions.
    pub frechet: f64,
    /// Mean entropy of a record's classes, in nats. Small if each record clearly belongs to one class.
    pub entropy: f64,
    /// Entropy of the predicted classes. Large if all classes occur.
    pub diversity: f64,
}

impl Judge {
    /// Trains a classifier on records with classes below `classes`.
    ///
    /// # Errors
    /// [`Error::Shape`] if a class is not below `classes`, or if their number differs from that of the records.
    pub fn train<R: Rng + ?Sized>(
        examples: &Examples,
        labels: &[u8],
        classes: usize,
        rng: &mut R,
    ) -> Result<Self, Error> {
        if labels.len() != examples.len()
            || labels.iter().any(|&label| usize::from(label) >= classes)
        {
            let problem = format!("every record needs a class below {classes}");
            return Err(Error::Shape(problem));
        }
        let widths = [examples.shape().width(), HIDDEN[0], HIDDEN[1], classes];
        let mut network = Network::random(Layer::dense(&widths), rng)?;
        let optimiser = Optimiser::Adam {
            rate: RATE,
            beta: 0.9,
        };
        let mut descent = Descent::new(optimiser, network.parameters().len());
        for _ in 0..STEPS {
            let drawn: Vec<usize> = (0..BATCH)
                .map(|_| rng.random_range(0..examples.len()))
                .collect();
            let (mut shares, tape) = network.forward(examples.values().select(&drawn))?;
            for (row, &number) in drawn.iter().enumerate() {
                let row = shares.row_mut(row);
                softmax(row);
                // Classes are below the number of outputs, as checked above.
                row[usize::from(labels[number])] -= 1.0;
                row.iter_mut().for_each(|x| *x /= BATCH as f32);
            }
            let back = network.backward(&tape, shares);
            let gradient = network.gradient(&tape, &back);
            descent.step(network.parameters_mut(), &gradient);
        }
        Ok(Self { network, classes })
    }

    /// Returns the share of records whose class is predicted correctly.
    ///
    /// # Errors
    /// [`Error::Shape`] for records of another shape.
    pub fn accuracy(&self, examples: &Examples, labels: &[u8]) -> Result<f64, Error> {
        let (outputs, _) = self.network.forward(examples.values().clone())?;
        let right = labels.iter().enumerate();
        let right = right.filter(|&(row, &label)| largest(outputs.row(row)) == usize::from(label));
        Ok(right.count() as f64 / labels.len().max(1) as f64)
    }

    /// Returns each record's features, and its class probabilities.
    fn look(&self, examples: &Examples) -> Result<(Matrix, Matrix), Error> {
        let (mut outputs, mut tape) = self.network.forward(examples.values().clone())?;
        (0..outputs.rows()).for_each(|row| softmax(outputs.row_mut(row)));
        let features = tape.inputs.pop().unwrap_or_else(|| Matrix::zeros(0, 0));
        Ok((features, outputs))
    }

    /// Measures the quality of generated records against real ones.
    ///
    /// # Errors
    /// [`Error::Shape`] for records of another shape.
    pub fn quality(&self, made: &Examples, real: &Examples) -> Result<Quality, Error> {
        let (features, shares) = self.look(made)?;
        let (of_real, _) = self.look(real)?;
        let records = shares.rows() as f64;
        let mut mean = vec![0.0; self.classes];
        let mut deemed = vec![0.0; self.classes];
        for row in 0..shares.rows() {
            let row = shares.row(row);
            mean.iter_mut()
                .zip(row)
                .for_each(|(m, &p)| *m += f64::from(p) / records);
            deemed[largest(row)] += 1.0 / records;
        }
        let entropies =
            (0..shares.rows()).map(|row| entropy(shares.row(row).iter().map(|&p| f64::from(p))));
        let single = entropies.sum::<f64>() / records;
        Ok(Quality {
            // The mean divergence equals the entropy of the mean minus the mean entropy.
            inception: (entropy(mean.iter().copied()) - single).exp(),
            frechet: frechet(&features, &of_real),
            entropy: single,
            diversity: entropy(deemed.into_iter()),
        })
    }
}

fn entropy(shares: impl Iterator<Item = f64>) -> f64 {
    shares.filter(|&p| p > 0.0).map(|p| -p * p.ln()).sum()
}

/// |mu - mu'|^2 + tr(S + S' - 2 (S S')^(1/2)), for the means and covariances of two samples.
fn frechet(one: &Matrix, two: &Matrix) -> f64 {
    let (mean, spread) = moments(one);
    let (other_mean, other_spread) = moments(two);
    let apart: f64 = mean
        .iter()
        .zip(&other_mean)
        .map(|(x, y)| (x - y).powi(2))
        .sum();
    // S S' has the same eigenvalues as S^(1/2) S' S^(1/2), which is symmetric.
    let root = spread.root();
    let both = root.around(&other_spread).root();
    (apart + spread.trace() + other_spread.trace() - 2.0 * both.trace()).max(0.0)
}

/// Returns the mean and the covariance of rows.
pub(crate) fn moments(rows: &Matrix) -> (Vec<f64>, Symmetric) {
    let count = rows.rows().max(1) as f64;
    let mut mean = vec![0.0; rows.columns()];
    for row in 0..rows.rows() {
        mean.iter_mut()
            .zip(rows.row(row))
            .for_each(|(m, &x)| *m += f64::from(x) / count);
    }
    let mut spread = Symmetric::zeros(rows.columns());
    for row in 0..rows.rows() {
        let centred: Vec<f64> = rows
            .row(row)
            .iter()
            .zip(&mean)
            .map(|(&x, m)| f64::from(x) - m)
            .collect();
        spread.add_square(&centred, 1.0 / count);
    }
    (mean, spread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::tests::examples;
    use rand::{SeedableRng, rngs::StdRng};

    /// Compares real records of two kinds with themselves, and with the records of one kind.
    #[test]
    fn quality_measures_match_their_definitions() {
        let real = examples(200);
        let labels: Vec<u8> = (0..200).map(|n| (n % 2) as u8).collect();
        let rng = &mut StdRng::seed_from_u64(1);
        let judge = Judge::train(&real, &labels, 2, rng).unwrap();
        assert_eq!(judge.accuracy(&real, &labels).unwrap(), 1.0);
        let same = judge.quality(&real, &real).unwrap();
        assert!(
            (same.inception - 2.0).abs() < 0.05 && same.frechet < 1e-6,
            "{same:?}"
        );
        assert!((same.diversity - 2f64.ln()).abs() < 1e-6 && same.entropy < 0.05);
        let first: Vec<usize> = (0..200).step_by(2).collect();
        let one = judge.quality(&real.select(&first).unwrap(), &real).unwrap();
        assert!(
            (one.inception - 1.0).abs() < 0.05 && one.diversity < 1e-9,
            "{one:?}"
        );
        assert!(one.frechet > 1.0, "{one:?}");
        assert!(matches!(
            Judge::train(&real, &labels[1..], 2, rng),
            Err(Error::Shape(..))
        ));
        assert!(matches!(
            Judge::train(&real, &labels, 1, rng),
            Err(Error::Shape(..))
        ));
    }

    /// For normal distributions along the axes, it is the sum of squared differences of means and of deviations.
    #[test]
    fn frechet_distance_matches_normal_distributions() {
        let rows = |shift: f32, scale: f32| {
            let corners = [[1.0f32, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]];
            let values = corners
                .iter()
                .flat_map(|[x, y]| [shift + scale * x, 2.0 * y])
                .collect();
            Matrix::new(4, 2, values).unwrap()
        };
        let found = frechet(&rows(0.0, 1.0), &rows(3.0, 5.0));
        assert!((found - (9.0 + 16.0)).abs() < 1e-6, "{found}");
    }
}
