//! Networks of layers with leaky rectifiers between them, and their backward pass.
//!
//! All parameters of a network form one list, layer by layer. Optimisers, averages over parties and noise only see that
//! list.

use std::borrow::Cow;

use rand::Rng;

use crate::Error;
use crate::layer::Layer;
use crate::matrix::Matrix;

/// Slope of a rectifier for negative values.
const LEAK: f32 = 0.2;

/// The largest number of inputs or outputs of a layer.
pub const MAX_WIDTH: usize = 1 << 16;

/// The largest number of parameters of a network.
pub const MAX_PARAMETERS: usize = 1 << 26;

/// The largest number of values of rows in memory at the same time, in a pass through a network or for generated
/// records. In single precision, this is 1 GB.
pub const MAX_VALUES: usize = 1 << 28;

/// A network of layers. The outputs of all layers except the last pass through a leaky rectifier.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    layers: Vec<Layer>,
    parameters: Vec<f32>,
}

/// The inputs of each layer in a forward pass, which the backward pass needs.
#[derive(Clone, Debug)]
pub struct Tape {
    pub(crate) inputs: Vec<Matrix>,
}

/// The result of a backward pass: the derivatives of the loss by each layer's outputs (before the rectifier) and by the
/// network's inputs.
#[derive(Clone, Debug)]
pub struct Backward {
    pub(crate) deltas: Vec<Matrix>,
    /// Derivatives by the network's inputs, one row per input row.
    pub input: Matrix,
}

impl Network {
    /// Creates a network of these layers. The weights are uniform, with variance 2 / (inputs of an output) (He et al.
    /// 2015), and the biases are zero.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are no layers, if layers do not fit each other, if a layer has zero or more than
    /// [`MAX_WIDTH`] values, or for more than [`MAX_PARAMETERS`] parameters.
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

    /// Creates a network of these layers and parameters.
    ///
    /// # Errors
    /// Those of [`Network::random`]; [`Error::Shape`] for a wrong number of parameters, or parameters that are not
    /// finite.
    pub fn new(layers: Vec<Layer>, parameters: Vec<f32>) -> Result<Self, Error> {
        let count = parameter_count(&layers)?;
        if count != parameters.len() || parameters.iter().any(|p| !p.is_finite()) {
            return Err(Error::Shape(format!(
                "a network of layers {layers:?} needs {count} finite parameters"
            )));
        }
        Ok(Self { layers, parameters })
    }

    /// Returns the layers.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Returns all parameters.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// Whether all parameters are finite numbers.
    pub(crate) fn is_finite(&self) -> bool {
        self.parameters.iter().all(|p| p.is_finite())
    }

    /// Returns all parameters for modification.
    pub(crate) fn parameters_mut(&mut self) -> &mut [f32] {
        &mut self.parameters
    }

    /// Number of values of an input row.
    pub fn inputs(&self) -> usize {
        self.layers.first().map_or(0, Layer::inputs)
    }

    /// Number of values of an output row.
    pub fn outputs(&self) -> usize {
        self.layers.last().map_or(0, Layer::outputs)
    }

    /// Number of values that a pass keeps per row: the inputs of each layer, and the outputs of the last one.
    pub(crate) fn kept(&self) -> usize {
        let inputs = self.layers.iter().map(Layer::inputs);
        inputs.fold(self.outputs(), usize::saturating_add)
    }

    /// Returns the outputs of each row.
    ///
    /// # Errors
    /// [`Error::Shape`] if the rows have a wrong width.
    pub fn forward(&self, rows: Matrix) -> Result<(Matrix, Tape), Error> {
        if rows.columns() != self.inputs() {
            return Err(Error::Shape(format!(
                "rows have {} values, but the network has {} inputs",
                rows.columns(),
                self.inputs()
            )));
        }
        let (mut inputs, mut values) = (Vec::with_capacity(self.layers.len()), rows);
        for (number, (layer, weights, offsets)) in self.parts().enumerate() {
            let mut outputs = layer.apply(&values, weights);
            let last = number + 1 == self.layers.len();
            // There is a bias for each output, or for each channel of a pixel.
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

    /// Returns the derivatives of a loss, given its derivatives by the outputs of each row of the forward pass.
    pub fn backward(&self, tape: &Tape, outputs: Matrix) -> Backward {
        let mut deltas = Vec::with_capacity(tape.inputs.len());
        let mut delta = outputs;
        let parts: Vec<_> = self.parts().collect();
        for (number, (layer, weights, _)) in parts.into_iter().enumerate().rev() {
            let mut before = layer.back(&delta, weights);
            if number > 0 {
                // A leaky rectifier keeps signs, so a negative output shows that its input was negative.
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

    /// Returns the derivatives by all parameters, summed over rows.
    pub fn gradient(&self, tape: &Tape, back: &Backward) -> Vec<f32> {
        let passes = tape.inputs.iter().zip(&back.deltas);
        self.collect(passes.map(|(input, delta)| (Cow::Borrowed(input), Cow::Borrowed(delta))))
    }

    /// Returns the derivatives by all parameters, summed over some rows of the pass.
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
            // The number of parameters was checked against the layers.
            let (part, others) = rest.split_at_mut(weights + offsets);
            rest = others;
            layer.add_gradient(&input, &delta, part);
        }
        gradient
    }

    /// Each layer with its weights and its biases.
    fn parts(&self) -> impl Iterator<Item = (&Layer, &[f32], &[f32])> {
        let mut rest = self.parameters.as_slice();
        self.layers.iter().map(move |layer| {
            let (weights, offsets) = layer.parameters();
            // The number of parameters was checked against the layers.
            let (part, others) = rest.split_at(weights + offsets);
            rest = others;
            let (weights, offsets) = part.split_at(weights);
            (layer, weights, offsets)
        })
    }
}

/// Checks layers and returns the number of their parameters.
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
            "invalid layers {layers:?}: a network needs at least one layer, each with as many inputs as the one before \
             has outputs, and at most {MAX_PARAMETERS} parameters"
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

    /// A loss (a weighted sum of the outputs), and which hidden values are not negative.
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
    fn network_derivatives_equal_differences_of_the_loss() {
        let mut rng = StdRng::seed_from_u64(1);
        let small = Window::halving(4, 6, 2);
        let networks = [
            Layer::dense(&[5, 9, 6, 3]),
            // From an image of two channels to one of three, back to one of two, and to three values.
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

    /// Compares a derivative with a difference of the loss. The loss is smooth in one value except where a rectifier
    /// bends, so the step shrinks until no rectifier bends between the two points.
    fn check_difference(found: f32, what: &str, moved: impl Fn(f32) -> (f64, Vec<bool>)) {
        let mut step = 4e-3f32;
        loop {
            let ((more, above), (less, below)) = (moved(step), moved(-step));
            if above == below {
                let expected = (more - less) / f64::from(2.0 * step);
                // Sums in single precision are off by about 1e-6.
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
    fn invalid_networks_are_rejected() {
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
