//! Networks of dense layers with leaky rectifiers between them, and their backward pass.
//!
//! All parameters of a network are one list: of each layer its weights, a row of outputs for each input, then its
//! offsets. Optimisers, averages over parties and noise see that list alone.

use rand::Rng;

use crate::Error;
use crate::matrix::{Matrix, add_product, transpose};

/// Slope of a rectifier below zero.
const LEAK: f32 = 0.2;

/// The most values that a layer may have, and parameters a network.
pub const MAX_WIDTH: usize = 1 << 16;

/// The most parameters of a network.
pub const MAX_PARAMETERS: usize = 1 << 26;

/// Dense layers: the outputs of each but the last go through a leaky rectifier.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    widths: Vec<usize>,
    parameters: Vec<f32>,
}

/// What a forward pass keeps: the values that each layer was given.
#[derive(Clone, Debug)]
pub struct Tape {
    pub(crate) inputs: Vec<Matrix>,
}

/// What a backward pass finds: the loss's derivatives by each layer's outputs (before the rectifier), and by the
/// network's inputs.
#[derive(Clone, Debug)]
pub struct Backward {
    pub(crate) deltas: Vec<Matrix>,
    /// By the network's inputs: rows by input.
    pub input: Matrix,
}

impl Network {
    /// A network from inputs over hidden layers to outputs, with uniform weights of variance 2 / inputs (He et al.
    /// 2015) and no offsets.
    ///
    /// # Errors
    /// [`Error::Shape`] for fewer than two widths, a width of zero or above [`MAX_WIDTH`], or more than
    /// [`MAX_PARAMETERS`] parameters.
    pub fn random<R: Rng + ?Sized>(widths: &[usize], rng: &mut R) -> Result<Self, Error> {
        let count = parameter_count(widths)?;
        let mut parameters = Vec::with_capacity(count);
        for (inputs, outputs) in pairs(widths) {
            let bound = (6.0 / inputs as f32).sqrt();
            parameters.extend((0..inputs * outputs).map(|_| rng.random_range(-bound..bound)));
            parameters.resize(parameters.len() + outputs, 0.0);
        }
        Ok(Self {
            widths: widths.to_vec(),
            parameters,
        })
    }

    /// A network of these parameters.
    ///
    /// # Errors
    /// As [`Network::random`]; parameters in another number, or that are no numbers.
    pub fn new(widths: Vec<usize>, parameters: Vec<f32>) -> Result<Self, Error> {
        let count = parameter_count(&widths)?;
        if count != parameters.len() || parameters.iter().any(|p| !p.is_finite()) {
            return Err(Error::Shape(format!(
                "a network of widths {widths:?} has {count} finite parameters"
            )));
        }
        Ok(Self { widths, parameters })
    }

    /// Values of the input, of each hidden layer, of the output.
    pub fn widths(&self) -> &[usize] {
        &self.widths
    }

    /// All parameters.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// All parameters, to be changed.
    pub(crate) fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    /// Values of an input.
    pub fn inputs(&self) -> usize {
        // There are at least two widths.
        self.widths[0]
    }

    /// The outputs of each row.
    ///
    /// # Errors
    /// [`Error::Shape`] for rows of another width.
    pub fn forward(&self, rows: Matrix) -> Result<(Matrix, Tape), Error> {
        if rows.columns() != self.inputs() {
            return Err(Error::Shape(format!(
                "rows of {} values for a network of {}",
                rows.columns(),
                self.inputs()
            )));
        }
        let layers = self.widths.len() - 1;
        let (mut inputs, mut values) = (Vec::with_capacity(layers), rows);
        for (number, (weights, offsets, _)) in self.layers().enumerate() {
            let mut outputs = values.times(weights, offsets.len());
            let last = number + 1 == layers;
            for row in outputs.values_mut().chunks_exact_mut(offsets.len()) {
                for (output, offset) in row.iter_mut().zip(offsets) {
                    *output += offset;
                    if !last && *output < 0.0 {
                        *output *= LEAK;
                    }
                }
            }
            inputs.push(std::mem::replace(&mut values, outputs));
        }
        Ok((values, Tape { inputs }))
    }

    /// Derivatives of a loss, given those by the outputs of each row of the forward pass.
    pub fn backward(&self, tape: &Tape, outputs: Matrix) -> Backward {
        let mut deltas = Vec::with_capacity(tape.inputs.len());
        let mut delta = outputs;
        let layers: Vec<_> = self.layers().collect();
        for (number, (weights, offsets, inputs)) in layers.into_iter().enumerate().rev() {
            let turned = transpose(weights, inputs, offsets.len());
            let mut before = delta.times(&turned, inputs);
            if number > 0 {
                // A rectifier keeps signs, so its output tells where it leaked.
                let activated = tape.inputs[number].values();
                for (back, &value) in before.values_mut().iter_mut().zip(activated) {
                    if value < 0.0 {
                        *back *= LEAK;
                    }
                }
            }
            deltas.push(std::mem::replace(&mut delta, before));
        }
        deltas.reverse();
        Backward {
            deltas,
            input: delta,
        }
    }

    /// The sum over rows of the derivatives by all parameters.
    pub fn gradient(&self, tape: &Tape, back: &Backward) -> Vec<f32> {
        let mut gradient = Vec::with_capacity(self.parameters.len());
        for (input, delta) in tape.inputs.iter().zip(&back.deltas) {
            let (rows, inputs, outputs) = (input.rows(), input.columns(), delta.columns());
            let turned = transpose(input.values(), rows, inputs);
            let start = gradient.len();
            gradient.resize(start + inputs * outputs, 0.0);
            let weights = &mut gradient[start..];
            add_product(&turned, delta.values(), weights, (inputs, rows, outputs));
            let mut offsets = vec![0.0; outputs];
            for row in delta.values().chunks_exact(outputs) {
                offsets.iter_mut().zip(row).for_each(|(sum, d)| *sum += d);
            }
            gradient.extend(offsets);
        }
        gradient
    }

    /// Weights, offsets and number of inputs of each layer.
    fn layers(&self) -> impl Iterator<Item = (&[f32], &[f32], usize)> {
        let mut rest = self.parameters.as_slice();
        pairs(&self.widths).map(move |(inputs, outputs)| {
            // There are as many parameters as the widths say.
            let (layer, others) = rest.split_at((inputs + 1) * outputs);
            rest = others;
            let (weights, offsets) = layer.split_at(inputs * outputs);
            (weights, offsets, inputs)
        })
    }
}

fn pairs(widths: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    widths.windows(2).map(|pair| (pair[0], pair[1]))
}

fn parameter_count(widths: &[usize]) -> Result<usize, Error> {
    let sound = widths.len() >= 2 && widths.iter().all(|&w| (1..=MAX_WIDTH).contains(&w));
    // Widths are at most 2^16, so that products fit.
    let count: usize = pairs(widths)
        .map(|(inputs, outputs)| (inputs + 1).saturating_mul(outputs))
        .fold(0, usize::saturating_add);
    if sound && count <= MAX_PARAMETERS {
        Ok(count)
    } else {
        Err(Error::Shape(format!(
            "a network cannot have widths {widths:?}: there must be two or more, each from 1 to {MAX_WIDTH}, and at \
             most {MAX_PARAMETERS} parameters"
        )))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::StdRng};

    pub(crate) fn rows(rows: usize, columns: usize, seed: u64) -> Matrix {
        let mut rng = StdRng::seed_from_u64(seed);
        let values = (0..rows * columns).map(|_| rng.random_range(-1.0..1.0));
        Matrix::new(rows, columns, values.collect()).unwrap()
    }

    /// The loss is the outputs, each times a weight of its own.
    fn loss(network: &Network, input: &Matrix, weights: &Matrix) -> f64 {
        let (outputs, _) = network.forward(input.clone()).unwrap();
        crate::matrix::dot(outputs.values(), weights.values())
    }

    #[test]
    fn derivatives_are_differences_of_the_loss() {
        let mut rng = StdRng::seed_from_u64(1);
        let network = Network::random(&[5, 9, 6, 3], &mut rng).unwrap();
        let (input, weights) = (rows(7, 5, 2), rows(7, 3, 3));
        let (_, tape) = network.forward(input.clone()).unwrap();
        let back = network.backward(&tape, weights.clone());
        let gradient = network.gradient(&tape, &back);
        let step = 1e-3f32;
        let close = |found: f32, expected: f64| (f64::from(found) - expected).abs() < 2e-2;
        for (number, &found) in gradient.iter().enumerate() {
            let moved = |by: f32| {
                let mut moved = network.clone();
                moved.parameters_mut()[number] += by;
                loss(&moved, &input, &weights)
            };
            let expected = (moved(step) - moved(-step)) / f64::from(2.0 * step);
            assert!(close(found, expected), "{number}: {found} {expected}");
        }
        for number in 0..input.values().len() {
            let moved = |by: f32| {
                let mut moved = input.clone();
                moved.values_mut()[number] += by;
                loss(&network, &moved, &weights)
            };
            let expected = (moved(step) - moved(-step)) / f64::from(2.0 * step);
            let found = back.input.values()[number];
            assert!(close(found, expected), "input {number}: {found} {expected}");
        }
    }

    #[test]
    fn networks_that_cannot_be_are_refused() {
        let mut rng = StdRng::seed_from_u64(1);
        let huge = [MAX_WIDTH, MAX_WIDTH];
        for widths in [&[][..], &[3], &[3, 0], &[MAX_WIDTH + 1, 1], &huge] {
            assert!(Network::random(widths, &mut rng).is_err(), "{widths:?}");
        }
        assert!(Network::new(vec![2, 1], vec![0.0; 3]).is_ok());
        assert!(Network::new(vec![2, 1], vec![0.0; 4]).is_err());
        assert!(Network::new(vec![2, 1], vec![f32::NAN; 3]).is_err());
        let network = Network::random(&[2, 1], &mut rng).unwrap();
        assert!(network.forward(Matrix::zeros(1, 3)).is_err());
    }
}
