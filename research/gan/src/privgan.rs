//! privGAN (Mukherjee et al. 2021): splits a party's records into parts, trains a pair of networks on each part, and
//! trains a classifier that guesses the part of a record.
//!
//! The classifier first learns the parts of real records, then the generators of generated ones. Each generator is
//! rewarded if the classifier takes its records for those of another generator. This makes membership harder to infer,
//! but gives no guarantee.

use rand::Rng;

use crate::Error;
use crate::examples::{Examples, softmax};
use crate::federated::MAX_WEIGHT;
use crate::gan::{Gan, Training};
use crate::matrix::Matrix;
use crate::network::Network;
use crate::optimiser::Descent;
use crate::train::{Pair, batch};

/// Settings of privGAN in addition to [`Training`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivGan {
    /// lambda: weight of being taken for another generator. A larger weight gives more privacy and less utility.
    pub lambda: f32,
    /// Number of steps in which the classifier learns the parts of real records.
    pub pretraining: u32,
}

impl Default for PrivGan {
    fn default() -> Self {
        Self {
            lambda: 1.0,
            pretraining: 200,
        }
    }
}

/// Trains networks for each part of a party's records. `tell` is called after all parts have done a step.
///
/// # Errors
/// [`Error::Setting`] for fewer than two parts, parts of different shapes, or an invalid setting; [`Error::Shape`] for
/// invalid networks; [`Error::Diverged`].
pub fn train_parts<R: Rng + ?Sized>(
    parts: &[Examples],
    training: &Training,
    options: &PrivGan,
    rng: &mut R,
    tell: &dyn Fn(u32),
) -> Result<Vec<Gan>, Error> {
    if !(0.0..=MAX_WEIGHT).contains(&options.lambda) {
        return Err(Error::setting(
            "lambda",
            "it must be a number from 0 to 1e9",
        ));
    }
    let shape = match parts {
        [first, others @ ..]
            if !others.is_empty() && others.iter().all(|o| o.shape() == first.shape()) =>
        {
            first.shape()
        }
        _ => {
            return Err(Error::setting(
                "parts",
                "at least two are needed, with records of the same shape",
            ));
        }
    };
    let gans = parts.iter().map(|_| Gan::random(shape, training, rng));
    let mut gans = gans.collect::<Result<Vec<_>, Error>>()?;
    let mut pairs: Vec<Pair> = gans.iter().map(|gan| Pair::new(gan, training)).collect();
    let mut classifier = Classifier::new(parts, training, rng)?;
    for _ in 0..options.pretraining {
        for (number, part) in parts.iter().enumerate() {
            classifier.learn(batch(part, training, rng), number)?;
        }
    }
    for step in 1..=training.steps {
        for ((number, part), (gan, pair)) in parts
            .iter()
            .enumerate()
            .zip(gans.iter_mut().zip(&mut pairs))
        {
            let gradient = gan.critic_gradient(&batch(part, training, rng), rng)?;
            pair.discriminator
                .step(gan.discriminator.parameters_mut(), &gradient);
            let made = gan.generator().sample(training.batch, rng)?;
            classifier.learn(made.values().clone(), number)?;
            // Draw one of the other parts uniformly.
            let other = (number + rng.random_range(1..parts.len())) % parts.len();
            let gradient = gan.generator_gradient(training.batch, rng, |made, _| {
                classifier
                    .derivatives(made, other, options.lambda)
                    .map(Some)
            })?;
            pair.generator
                .step(gan.generator.network.parameters_mut(), &gradient);
            gan.check_progress(step)?;
        }
        tell(step);
    }
    Ok(gans)
}

/// A classifier of the part that a record belongs to.
struct Classifier {
    network: Network,
    descent: Descent,
}

impl Classifier {
    fn new<R: Rng + ?Sized>(
        parts: &[Examples],
        training: &Training,
        rng: &mut R,
    ) -> Result<Self, Error> {
        // `train_parts` has checked that there are at least two parts.
        let shape = parts[0].shape();
        let layers = training.hidden.critic(shape.width(), shape, parts.len())?;
        let network = Network::random(layers, rng)?;
        Ok(Self {
            descent: Descent::new(training.discriminator, network.parameters().len()),
            network,
        })
    }

    /// Takes a step towards classifying these records as records of a part.
    fn learn(&mut self, records: Matrix, part: usize) -> Result<(), Error> {
        let (outputs, tape) = self.network.forward(records)?;
        let back = self
            .network
            .backward(&tape, entropy_delta(outputs, part, 1.0));
        let gradient = self.network.gradient(&tape, &back);
        self.descent.step(self.network.parameters_mut(), &gradient);
        Ok(())
    }

    /// Returns lambda times the derivatives, by records, of the cross-entropy between the classifier's output and a
    /// part.
    fn derivatives(&self, records: &Matrix, part: usize, lambda: f32) -> Result<Matrix, Error> {
        let (outputs, tape) = self.network.forward(records.clone())?;
        let delta = entropy_delta(outputs, part, lambda);
        Ok(self.network.backward(&tape, delta).input)
    }
}

/// Returns the derivatives of the mean cross-entropy by the outputs, times a weight.
fn entropy_delta(mut outputs: Matrix, part: usize, weight: f32) -> Matrix {
    let share = weight / outputs.rows().max(1) as f32;
    for row in 0..outputs.rows() {
        let row = outputs.row_mut(row);
        softmax(row);
        // A part number is below the number of outputs.
        row[part] -= 1.0;
        row.iter_mut().for_each(|x| *x *= share);
    }
    outputs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::tests::rows;
    use crate::train::tests::{examples, training};
    use rand::{SeedableRng, rngs::StdRng};

    fn parts() -> Vec<Examples> {
        let all = examples(64);
        let of = |kind: usize| -> Vec<usize> { (0..64).filter(|n| n % 2 == kind).collect() };
        vec![all.select(&of(0)).unwrap(), all.select(&of(1)).unwrap()]
    }

    #[test]
    fn derivatives_equal_differences_of_the_cross_entropy() {
        let rng = &mut StdRng::seed_from_u64(1);
        let classifier = Classifier::new(&parts(), &training(), rng).unwrap();
        let records = rows(3, 4, 2);
        let loss = |records: &Matrix| {
            let (mut outputs, _) = classifier.network.forward(records.clone()).unwrap();
            (0..3).for_each(|row| softmax(outputs.row_mut(row)));
            (0..3)
                .map(|row| -2.0 * f64::from(outputs.row(row)[1]).ln() / 3.0)
                .sum::<f64>()
        };
        let found = classifier.derivatives(&records, 1, 2.0).unwrap();
        for number in 0..12 {
            let moved = |by: f32| {
                let mut moved = records.clone();
                moved.values_mut()[number] += by;
                loss(&moved)
            };
            let expected = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            assert!((f64::from(found.values()[number]) - expected).abs() < 1e-2);
        }
    }

    /// The parts have nothing in common. With a large lambda, generators imitate the other part more.
    #[test]
    fn large_lambda_draws_generators_towards_each_other() {
        let made = |lambda| {
            let options = PrivGan {
                lambda,
                ..PrivGan::default()
            };
            let training = Training {
                steps: 600,
                ..training()
            };
            let gans = train_parts(
                &parts(),
                &training,
                &options,
                &mut StdRng::seed_from_u64(2),
                &|_| (),
            )
            .unwrap();
            // The first pixel distinguishes the two kinds.
            let mean = |gan: &Gan| {
                let drawn = gan
                    .generator()
                    .sample(400, &mut StdRng::seed_from_u64(1))
                    .unwrap();
                (0..400).map(|row| drawn.values().row(row)[0]).sum::<f32>() / 400.0
            };
            mean(&gans[0]) - mean(&gans[1])
        };
        let (apart, together) = (made(0.0), made(20.0));
        assert!(apart > 1.0, "{apart}");
        assert!(together < 0.8 * apart, "{together} {apart}");
    }

    #[test]
    fn single_part_and_negative_lambda_are_rejected() {
        let rng = &mut StdRng::seed_from_u64(1);
        let options = PrivGan::default();
        assert!(matches!(
            train_parts(&parts()[..1], &training(), &options, rng, &|_| ()),
            Err(Error::Setting { .. })
        ));
        let wrong = PrivGan {
            lambda: -1.0,
            ..options
        };
        assert!(matches!(
            train_parts(&parts(), &training(), &wrong, rng, &|_| ()),
            Err(Error::Setting { .. })
        ));
    }
}
