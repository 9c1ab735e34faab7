//! A perceptron with one hidden layer, trained with Adam. It measures how useful mixes of images are for learning.
//!
//! Sources: Rumelhart, Hinton and Williams 1986; Kingma and Ba 2015 (decay rates 0.9 and 0.999). The hidden units are
//! rectified; the loss is the cross-entropy of a softmax. Sums run in a fixed order on one thread, so the same seed
//! gives the same weights.

use rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};

use crate::Error;

/// Training options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerceptronOptions {
    /// Number of hidden units.
    pub hidden: usize,
    /// Number of passes over the records.
    pub epochs: usize,
    /// Number of records per step.
    pub batch: usize,
    /// Learning rate of Adam.
    pub rate: f32,
    /// Seed of the initial weights and of the order of records.
    pub seed: u64,
}

impl Default for PerceptronOptions {
    fn default() -> Self {
        Self {
            hidden: 100,
            epochs: 10,
            batch: 64,
            rate: 1e-3,
            seed: 0,
        }
    }
}

/// Feature vectors, one after the other, each with a class.
#[derive(Clone, Copy, Debug)]
pub struct Labelled<'a> {
    /// Number of features per vector.
    pub width: usize,
    /// The features of all vectors.
    pub values: &'a [f32],
    /// The class of each vector.
    pub labels: &'a [u32],
}

impl Labelled<'_> {
    fn check(&self, classes: usize) -> Result<(), Error> {
        let whole = self.width > 0 && self.values.len() == self.width * self.labels.len();
        if whole && self.labels.iter().all(|&label| (label as usize) < classes) {
            Ok(())
        } else {
            Err(Error::Labelled)
        }
    }

    fn vector(&self, number: usize) -> &[f32] {
        // `check` has found `width` values for each label.
        &self.values[number * self.width..(number + 1) * self.width]
    }
}

/// A trained perceptron.
#[derive(Clone, Debug, PartialEq)]
pub struct Perceptron {
    first: Layer,
    second: Layer,
}

/// Weights, one row per input with a column for each output. The last row has the biases of the outputs.
#[derive(Clone, Debug, PartialEq)]
struct Layer {
    inputs: usize,
    outputs: usize,
    weights: Vec<f32>,
}

/// Adam's running means of a layer's gradients and of their squares.
struct Moments {
    first: Vec<f32>,
    second: Vec<f32>,
}

impl Perceptron {
    /// Trains a perceptron on labelled vectors. Classes must be below `classes`.
    ///
    /// # Errors
    /// [`Error::Labelled`] if there are no values, if they are not whole vectors, or if a class is not below `classes`.
    pub fn fit(
        data: Labelled<'_>,
        classes: usize,
        options: &PerceptronOptions,
    ) -> Result<Self, Error> {
        data.check(classes)?;
        let mut rng = StdRng::seed_from_u64(options.seed);
        let hidden = options.hidden.max(1);
        let mut this = Self {
            first: Layer::random(data.width, hidden, &mut rng),
            second: Layer::random(hidden, classes, &mut rng),
        };
        let mut moments = [Moments::of(&this.first), Moments::of(&this.second)];
        let mut order: Vec<usize> = (0..data.labels.len()).collect();
        let mut step = 0;
        for _ in 0..options.epochs {
            order.shuffle(&mut rng);
            for batch in order.chunks(options.batch.max(1)) {
                let gradients = this.gradients(data, batch);
                step += 1;
                let layers = [&mut this.first, &mut this.second];
                for ((layer, gradient), moments) in
                    layers.into_iter().zip(&gradients).zip(&mut moments)
                {
                    moments.step(layer, gradient, step, options.rate);
                }
            }
        }
        Ok(this)
    }

    /// Returns the mean gradients of the loss over a batch, by layer.
    fn gradients(&self, data: Labelled<'_>, batch: &[usize]) -> [Vec<f32>; 2] {
        let mut gradients = [&self.first, &self.second].map(|layer| vec![0.0; layer.weights.len()]);
        let share = 1.0 / batch.len() as f32;
        for &number in batch {
            let input = data.vector(number);
            let hidden = self.hidden(input);
            let mut errors = softmax(&self.second.apply(&hidden));
            errors[data.labels[number] as usize] -= 1.0;
            errors.iter_mut().for_each(|e| *e *= share);
            let mut back = vec![0.0; hidden.len()];
            for (j, (back, &active)) in back.iter_mut().zip(&hidden).enumerate() {
                if active > 0.0 {
                    let weights = self.second.row(j);
                    *back = weights.iter().zip(&errors).map(|(w, e)| w * e).sum();
                }
            }
            self.second
                .add_gradient(&hidden, &errors, &mut gradients[1]);
            self.first.add_gradient(input, &back, &mut gradients[0]);
        }
        gradients
    }

    fn hidden(&self, input: &[f32]) -> Vec<f32> {
        let mut hidden = self.first.apply(input);
        hidden.iter_mut().for_each(|h| *h = h.max(0.0));
        hidden
    }

    /// Returns the class with the largest output; the first one in case of a tie.
    pub fn predict(&self, vector: &[f32]) -> u32 {
        let outputs = self.second.apply(&self.hidden(vector));
        let best = outputs
            .iter()
            .enumerate()
            .fold((0, f32::NEG_INFINITY), |best, (k, &o)| {
                if o > best.1 { (k, o) } else { best }
            });
        best.0 as u32
    }

    /// Returns the share of vectors whose class is predicted correctly.
    ///
    /// # Errors
    /// [`Error::Labelled`] if there are no vectors, or if their width is not the trained one.
    pub fn accuracy(&self, data: Labelled<'_>) -> Result<f64, Error> {
        data.check(self.second.outputs)?;
        if data.width != self.first.inputs || data.labels.is_empty() {
            return Err(Error::Labelled);
        }
        let right = (0..data.labels.len())
            .filter(|&number| self.predict(data.vector(number)) == data.labels[number]);
        Ok(right.count() as f64 / data.labels.len() as f64)
    }
}

impl Layer {
    /// Uniform weights of variance 2 / inputs (He et al. 2015), with biases of zero.
    fn random(inputs: usize, outputs: usize, rng: &mut StdRng) -> Self {
        let bound = (6.0 / inputs as f32).sqrt();
        let mut weights: Vec<f32> = (0..inputs * outputs)
            .map(|_| rng.random_range(-bound..bound))
            .collect();
        weights.resize((inputs + 1) * outputs, 0.0);
        Self {
            inputs,
            outputs,
            weights,
        }
    }

    /// Returns the weights of an input; row number `inputs` has the biases.
    fn row(&self, input: usize) -> &[f32] {
        &self.weights[input * self.outputs..(input + 1) * self.outputs]
    }

    fn apply(&self, input: &[f32]) -> Vec<f32> {
        let mut out = self.row(self.inputs).to_vec();
        for (i, &x) in input.iter().enumerate().filter(|&(_, &x)| x != 0.0) {
            out.iter_mut()
                .zip(self.row(i))
                .for_each(|(o, w)| *o += w * x);
        }
        out
    }

    fn add_gradient(&self, input: &[f32], errors: &[f32], gradient: &mut [f32]) {
        let with_offset = input.iter().chain(std::iter::once(&1.0));
        for (&x, row) in with_offset.zip(gradient.chunks_exact_mut(self.outputs)) {
            if x != 0.0 {
                row.iter_mut().zip(errors).for_each(|(g, e)| *g += x * e);
            }
        }
    }
}

impl Moments {
    fn of(layer: &Layer) -> Self {
        Self {
            first: vec![0.0; layer.weights.len()],
            second: vec![0.0; layer.weights.len()],
        }
    }

    fn step(&mut self, layer: &mut Layer, gradient: &[f32], step: i32, rate: f32) {
        const MEAN: f32 = 0.9;
        const SQUARE: f32 = 0.999;
        let scale = rate * (1.0 - SQUARE.powi(step)).sqrt() / (1.0 - MEAN.powi(step));
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((weight, &g), (m, v)) in layer.weights.iter_mut().zip(gradient).zip(moments) {
            *m = MEAN * *m + (1.0 - MEAN) * g;
            *v = SQUARE * *v + (1.0 - SQUARE) * g * g;
            *weight -= scale * *m / (v.sqrt() + 1e-8);
        }
    }
}

fn softmax(outputs: &[f32]) -> Vec<f32> {
    let largest = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f32> = outputs.iter().map(|o| (o - largest).exp()).collect();
    let sum: f32 = powers.iter().sum();
    powers.iter().map(|p| p / sum).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's own values")]
mod tests {
    use super::*;

    /// Two classes that no straight line separates: the exclusive or of two signs.
    fn crossed(records: usize, seed: u64) -> (Vec<f32>, Vec<u32>) {
        let mut rng = StdRng::seed_from_u64(seed);
        let values: Vec<f32> = (0..2 * records)
            .map(|_| rng.random_range(-1.0..1.0))
            .collect();
        let label = |pair: &[f32]| u32::from((pair[0] > 0.0) != (pair[1] > 0.0));
        let labels = values.chunks_exact(2).map(label).collect();
        (values, labels)
    }

    #[test]
    fn perceptron_learns_exclusive_or_and_is_deterministic() {
        let (values, labels) = crossed(1000, 1);
        let train = Labelled {
            width: 2,
            values: &values,
            labels: &labels,
        };
        let options = PerceptronOptions {
            hidden: 16,
            epochs: 60,
            rate: 1e-2,
            ..PerceptronOptions::default()
        };
        let trained = Perceptron::fit(train, 2, &options).unwrap();
        let (values, labels) = crossed(500, 2);
        let test = Labelled {
            width: 2,
            values: &values,
            labels: &labels,
        };
        assert!(trained.accuracy(test).unwrap() > 0.95);
        assert!(trained == Perceptron::fit(train, 2, &options).unwrap());
        assert!(matches!(
            Perceptron::fit(train, 1, &options),
            Err(Error::Labelled)
        ));
        assert!(matches!(
            trained.accuracy(Labelled { width: 3, ..test }),
            Err(Error::Labelled)
        ));
    }

    /// Compares gradients with finite differences of the loss.
    #[test]
    fn gradients_equal_differences_of_the_loss() {
        let (values, labels) = crossed(20, 3);
        let data = Labelled {
            width: 2,
            values: &values,
            labels: &labels,
        };
        let mut rng = StdRng::seed_from_u64(5);
        let model = Perceptron {
            first: Layer::random(2, 5, &mut rng),
            second: Layer::random(5, 2, &mut rng),
        };
        let batch: Vec<usize> = (0..20).collect();
        let loss = |model: &Perceptron| -> f64 {
            let of = |&n: &usize| {
                let outputs = model.second.apply(&model.hidden(data.vector(n)));
                -f64::from(softmax(&outputs)[labels[n] as usize]).ln()
            };
            batch.iter().map(of).sum::<f64>() / 20.0
        };
        let gradients = model.gradients(data, &batch);
        for (layer, gradient) in gradients.iter().enumerate() {
            for (weight, &found) in gradient.iter().enumerate() {
                let moved = |by: f32| {
                    let mut moved = model.clone();
                    let layer = if layer == 0 {
                        &mut moved.first
                    } else {
                        &mut moved.second
                    };
                    layer.weights[weight] += by;
                    loss(&moved)
                };
                let expected = (moved(1e-2) - moved(-1e-2)) / 2e-2;
                assert!(
                    (f64::from(found) - expected).abs() < 2e-2,
                    "{layer} {weight}: {found} {expected}"
                );
            }
        }
    }
}
