//! Networks of layers with leaky rectifiers between them, and their backward pass.
//!
//! All parameters of a network are one list, layer after layer. Optimisers, averages over parties and noise see that
//! list alone.

use std::borrow::Cow;

use rand::Rng;

use crate::Error;
use crate::layer::Layer;
use crate::matrix::Matrix;

/// Slope of a rectifier below zero.
const LEAK: f32 = 0.2;

/// The most values that a layer may have, and parameters a network.
pub const MAX_WIDTH: usize = 1 << 16;

/// The most parameters of a network.
pub const MAX_PARAMETERS: usize = 1 << 26;

/// The most values of rows that are in memory together: of a pass through a network, or of drawn records. In single
/// precision these are 1 GB.
pub const MAX_VALUES: usize = 1 << 28;

/// Layers: the outputs of each but the last go through a leaky rectifier.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    layers: Vec<Layer>,
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
    /// A network of these layers, with uniform weights of variance 2 / inputs of an output (He et al. 2015) and no
    /// offsets.
    ///
    /// # Errors
    /// [`Error::Shape`] for no layers, layers that do not follow each other, one of no values or more than
    /// [`MAX_WIDTH`], or more than [`MAX_PARAMETERS`] parameters.
    pub fn random<R: Rng + ?Sized>(layers: Vec<Layer>, rng: &mut R) -> Result<Self, Error> {
        let count = parameter_count(&layers)?;
        let mut parameters = Vec::with_capacity(count);
        for layer in &layers {
            let (weights, offsets) = layer.parameters();
            let bound = (6.0 / layer.inputs_of_one() as f32).sqrt();
            parameters.extend((0..weights).map(|_| rng.random_range(-bound..bound)));
            parameters.resize(parameters.len() + offsets, 0.0);
        }
        Ok(Self { layers, parameters })
    }

    /// A network of these parameters.
    ///
    /// # Errors
    /// As [`Network::random`]; parameters in another number, or that are no numbers.
    pub fn new(layers: Vec<Layer>, parameters: Vec<f32>) -> Result<Self, Error> {
        let count = parameter_count(&layers)?;
        if count != parameters.len() || parameters.iter().any(|p| !p.is_finite()) {
            return Err(Error::Shape(format!(
                "a network of layers {layers:?} has {count} finite parameters"
            )));
        }
        Ok(Self { layers, parameters })
    }

    /// Its layers.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// All parameters.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// Whether all parameters are finite numbers.
    pub(crate) fn is_finite(&self) -> bool {
        self.parameters.iter().all(|p| p.is_finite())
    }

    /// All parameters, to be changed.
    pub(crate) fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    /// Values of an input.
    pub fn inputs(&self) -> usize {
        self.layers.first().map_or(0, Layer::inputs)
    }

    /// Values of an output.
    pub fn outputs(&self) -> usize {
        self.layers.last().map_or(0, Layer::outputs)
    }

    /// Values that a pass keeps of each row: what each layer is given, and what the last one makes.
    pub(crate) fn kept(&self) -> usize {
        let inputs = self.layers.iter().map(Layer::inputs);
        inputs.fold(self.outputs(), usize::saturating_add)
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
        let (mut inputs, mut values) = (Vec::with_capacity(self.layers.len()), rows);
        for (number, (layer, weights, offsets)) in self.parts().enumerate() {
            let mut outputs = layer.apply(&values, weights);
            let last = number + 1 == self.layers.len();
            // An offset for each output, or for each channel of every pixel.
            for pixel in outputs.values_mut().chunks_exact_mut(offsets.len()) {
                for (output, offset) in pixel.iter_mut().zip(offsets) {
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
        let parts: Vec<_> = self.parts().collect();
        for (number, (layer, weights, _)) in parts.into_iter().enumerate().rev() {
            let mut before = layer.back(&delta, weights);
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
        let passes = tape.inputs.iter().zip(&back.deltas);
        self.collect(passes.map(|(input, delta)| (Cow::Borrowed(input), Cow::Borrowed(delta))))
    }

    /// The same over some rows of the pass alone.
    pub(crate) fn gradient_of(&self, tape: &Tape, back: &Backward, rows: &[usize]) -> Vec<f32> {
        let passes = tape.inputs.iter().zip(&back.deltas);
        let of = |matrix: &Matrix| Cow::Owned(matrix.select(rows));
        self.collect(passes.map(|(input, delta)| (of(input), of(delta))))
    }

    fn collect<'a>(
        &self,
        passes: impl Iterator<Item = (Cow<'a, Matrix>, Cow<'a, Matrix>)>,
    ) -> Vec<f32> {
        let mut gradient = vec![0.0; self.parameters.len()];
        let mut rest = gradient.as_mut_slice();
        for (layer, (input, delta)) in self.layers.iter().zip(passes) {
            let (weights, offsets) = layer.parameters();
            // There are as many parameters as the layers say.
            let (part, others) = rest.split_at_mut(weights + offsets);
            rest = others;
            layer.add_gradient(&input, &delta, part);
        }
        gradient
    }

    /// Each layer, its weights and its offsets.
    fn parts(&self) -> impl Iterator<Item = (&Layer, &[f32], &[f32])> {
        let mut rest = self.parameters.as_slice();
        self.layers.iter().map(move |layer| {
            let (weights, offsets) = layer.parameters();
            // There are as many parameters as the layers say.
            let (part, others) = rest.split_at(weights + offsets);
            rest = others;
            let (weights, offsets) = part.split_at(weights);
            (layer, weights, offsets)
        })
    }
}

/// How many parameters layers have that can be, and follow each other.
pub(crate) fn parameter_count(layers: &[Layer]) -> Result<usize, Error> {
    layers.iter().try_for_each(Layer::check)?;
    let follow = |pair: &[Layer]| pair[0].outputs() == pair[1].inputs();
    let sound = !layers.is_empty() && layers.windows(2).all(follow);
    let count: usize = layers
        .iter()
        .map(|layer| {
            let (weights, offsets) = layer.parameters();
            weights.saturating_add(offsets)
        })
        .fold(0, usize::saturating_add);
    if sound && count <= MAX_PARAMETERS {
        Ok(count)
    } else {
        Err(Error::Shape(format!(
            "a network cannot have the layers {layers:?}: there must be one or more, each of what the one before gives, \
             and at most {MAX_PARAMETERS} parameters"
        )))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::window::Window;
    use rand::{SeedableRng, rngs::StdRng};

    pub(crate) fn rows(rows: usize, columns: usize, seed: u64) -> Matrix {
        let mut rng = StdRng::seed_from_u64(seed);
        let values = (0..rows * columns).map(|_| rng.random_range(-1.0..1.0));
        Matrix::new(rows, columns, values.collect()).unwrap()
    }

    /// The loss is the outputs, each times a weight of its own; and which values are above the rectifiers' turn.
    fn loss(network: &Network, input: &Matrix, weights: &Matrix) -> (f64, Vec<bool>) {
        let (outputs, tape) = network.forward(input.clone()).unwrap();
        let hidden = tape.inputs[1..].iter().flat_map(Matrix::values);
        let above = hidden.map(|&value| value >= 0.0).collect();
        (
            crate::matrix::dot(outputs.values(), weights.values()),
            above,
        )
    }

    #[test]
    fn derivatives_are_differences_of_the_loss() {
        let mut rng = StdRng::seed_from_u64(1);
        let small = Window::halving(4, 6, 2);
        let networks = [
            Layer::dense(&[5, 9, 6, 3]),
            // From an image of two channels to one of three, to one of two again, to three values.
            vec![
                Layer::Convolution {
                    window: small,
                    filters: 3,
                },
                Layer::Transposed {
                    window: small,
                    filters: 3,
                },
                Layer::Dense {
                    inputs: 48,
                    outputs: 3,
                },
            ],
        ];
        for layers in networks {
            let network = Network::random(layers, &mut rng).unwrap();
            check_derivatives(&network);
        }
    }

    fn check_derivatives(network: &Network) {
        let (input, weights) = (rows(7, network.inputs(), 2), rows(7, network.outputs(), 3));
        let (_, tape) = network.forward(input.clone()).unwrap();
        let back = network.backward(&tape, weights.clone());
        let gradient = network.gradient(&tape, &back);
        for (number, &found) in gradient.iter().enumerate() {
            check_difference(found, &format!("parameter {number}"), |by| {
                let mut moved = network.clone();
                moved.parameters_mut()[number] += by;
                loss(&moved, &input, &weights)
            });
        }
        for (number, &found) in back.input.values().iter().enumerate() {
            check_difference(found, &format!("input {number}"), |by| {
                let mut moved = input.clone();
                moved.values_mut()[number] += by;
                loss(network, &moved, &weights)
            });
        }
    }

    /// A loss is smooth in one value but where a rectifier turns: the step is made smaller until none does between both
    /// points of the difference.
    fn check_difference(found: f32, what: &str, moved: impl Fn(f32) -> (f64, Vec<bool>)) {
        let mut step = 4e-3f32;
        loop {
            let ((more, above), (less, below)) = (moved(step), moved(-step));
            if above == below {
                let expected = (more - less) / f64::from(2.0 * step);
                // Sums of single precision are off by some 1e-6.
                let close = 2e-3 + 5e-6 / f64::from(step);
                assert!(
                    (f64::from(found) - expected).abs() < close,
                    "{what}: {found} {expected} at {step}"
                );
                return;
            }
            step /= 2.0;
            assert!(step > 1e-5, "{what} is at a turn of a rectifier");
        }
    }

    #[test]
    fn networks_that_cannot_be_are_refused() {
        let mut rng = StdRng::seed_from_u64(1);
        let huge = [MAX_WIDTH, MAX_WIDTH];
        for widths in [&[][..], &[3], &[3, 0], &[MAX_WIDTH + 1, 1], &huge] {
            let layers = Layer::dense(widths);
            assert!(
                matches!(Network::random(layers, &mut rng), Err(Error::Shape(..))),
                "{widths:?}"
            );
        }
        let window = Window::halving(4, 4, 1);
        for layers in [
            vec![Layer::Convolution { window, filters: 0 }],
            vec![Layer::Convolution {
                window: Window {
                    stride: 0,
                    ..window
                },
                filters: 1,
            }],
            vec![Layer::Transposed {
                window,
                filters: usize::MAX,
            }],
            [Layer::dense(&[2, 3]), Layer::dense(&[4, 1])].concat(),
        ] {
            assert!(
                matches!(
                    Network::random(layers.clone(), &mut rng),
                    Err(Error::Shape(..))
                ),
                "{layers:?}"
            );
        }
        let two = || Layer::dense(&[2, 1]);
        assert!(Network::new(two(), vec![0.0; 3]).is_ok());
        assert!(matches!(
            Network::new(two(), vec![0.0; 4]),
            Err(Error::Shape(..))
        ));
        assert!(matches!(
            Network::new(two(), vec![f32::NAN; 3]),
            Err(Error::Shape(..))
        ));
        let network = Network::random(two(), &mut rng).unwrap();
        assert!(matches!(
            network.forward(Matrix::zeros(1, 3)),
            Err(Error::Shape(..))
        ));
    }
}
