//! Layers: dense layers, convolutions (LeCun et al. 1998), and transposed convolutions, which turn smaller images into
//! larger ones (Zeiler et al. 2010).
//!
//! The parameters of a layer are its weights, followed by a bias for each output, or for each channel of an output
//! image.

use crate::Error;
use crate::matrix::{Matrix, add_product, transpose};
use crate::network::MAX_WIDTH;
use crate::window::Window;

/// A layer of a network, which maps a row of values to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Every output is a weighted sum of all inputs. The weights are ordered by input, then by output.
    Dense {
        /// Number of inputs.
        inputs: usize,
        /// Number of outputs.
        outputs: usize,
    },
    /// Maps an image to an image with one pixel per window and one channel per filter. The weights are ordered by value
    /// of a window, then by filter.
    Convolution {
        /// Windows over the input image.
        window: Window,
        /// Number of channels of the output image.
        filters: usize,
    },
    /// Maps an image with one pixel per window and one channel per filter to the sum of its windows. The weights are
    /// ordered by filter, then by value of a window.
    Transposed {
        /// Windows over the output image.
        window: Window,
        /// Number of channels of the input image.
        filters: usize,
    },
}

impl Layer {
    /// Returns dense layers from each width to the next.
    pub fn dense(widths: &[usize]) -> Vec<Self> {
        let layer = |pair: &[usize]| Self::Dense {
            inputs: pair[0],
            outputs: pair[1],
        };
        widths.windows(2).map(layer).collect()
    }

    /// Checks the sizes of a layer. All other methods assume that this succeeds.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Self::Convolution { window, filters } | Self::Transposed { window, filters } = self {
            window.check()?;
            if *filters > MAX_WIDTH {
                return Err(Error::Shape(format!(
                    "a layer of {filters} filters is too large: the most is {MAX_WIDTH}"
                )));
            }
        }
        let widths = [self.inputs(), self.outputs()];
        match widths.iter().all(|width| (1..=MAX_WIDTH).contains(width)) {
            true => Ok(()),
            false => Err(Error::Shape(format!(
                "invalid layer {self:?}: inputs and outputs must have from 1 to {MAX_WIDTH} values"
            ))),
        }
    }

    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        match self {
            Self::Dense { inputs, .. } => *inputs,
            Self::Convolution { window, .. } => window.values(),
            Self::Transposed { window, filters } => window.places().saturating_mul(*filters),
        }
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Dense { outputs, .. } => *outputs,
            Self::Convolution { window, filters } => window.places().saturating_mul(*filters),
            Self::Transposed { window, .. } => window.values(),
        }
    }

    /// Number of weights, and number of biases.
    pub(crate) fn parameters(&self) -> (usize, usize) {
        match self {
            Self::Dense { inputs, outputs } => (inputs.saturating_mul(*outputs), *outputs),
            Self::Convolution { window, filters } => {
                (window.patch().saturating_mul(*filters), *filters)
            }
            Self::Transposed { window, filters } => {
                (window.patch().saturating_mul(*filters), window.channels)
            }
        }
    }

    /// Number of inputs that an output is a sum of. For a transposed convolution, it counts all windows that contain a
    /// pixel.
    pub(crate) fn inputs_of_one(&self) -> usize {
        match self {
            Self::Dense { inputs, .. } => *inputs,
            Self::Convolution { window, .. } => window.patch(),
            Self::Transposed { window, filters } => {
                filters * window.side.div_ceil(window.stride).pow(2)
            }
        }
    }

    /// Returns the outputs of each row, without the biases.
    pub(crate) fn apply(&self, rows: &Matrix, weights: &[f32]) -> Matrix {
        match *self {
            Self::Dense { outputs, .. } => rows.times(weights, outputs),
            Self::Convolution { window, filters } => look(&window, filters, rows, weights),
            Self::Transposed { window, filters } => spread(&window, filters, rows, weights),
        }
    }

    /// Returns the derivatives by the inputs of each row, given the derivatives by its outputs.
    pub(crate) fn back(&self, delta: &Matrix, weights: &[f32]) -> Matrix {
        match *self {
            Self::Dense { inputs, outputs } => {
                delta.times(&transpose(weights, inputs, outputs), inputs)
            }
            Self::Convolution { window, filters } => {
                let turned = transpose(weights, window.patch(), filters);
                spread(&window, filters, delta, &turned)
            }
            Self::Transposed { window, filters } => {
                let turned = transpose(weights, filters, window.patch());
                look(&window, filters, delta, &turned)
            }
        }
    }

    /// Adds the derivatives by weights and biases, summed over rows, given the derivatives by the outputs of each row.
    pub(crate) fn add_gradient(&self, rows: &Matrix, delta: &Matrix, gradient: &mut [f32]) {
        let (of_weights, of_offsets) = gradient.split_at_mut(self.parameters().0);
        match *self {
            Self::Dense { inputs, outputs } => {
                let turned = transpose(rows.values(), rows.rows(), inputs);
                let shape = (inputs, rows.rows(), outputs);
                add_product(&turned, delta.values(), of_weights, shape);
            }
            Self::Convolution { window, filters } => {
                let (places, patch) = (window.places(), window.patch());
                let mut patches = vec![0.0; places * patch];
                for row in 0..rows.rows() {
                    window.unfold(rows.row(row), &mut patches);
                    let turned = transpose(&patches, places, patch);
                    let shape = (patch, places, filters);
                    add_product(&turned, delta.row(row), of_weights, shape);
                }
            }
            Self::Transposed { window, filters } => {
                let (places, patch) = (window.places(), window.patch());
                let mut patches = vec![0.0; places * patch];
                for row in 0..rows.rows() {
                    window.unfold(delta.row(row), &mut patches);
                    let turned = transpose(rows.row(row), places, filters);
                    let shape = (filters, places, patch);
                    add_product(&turned, &patches, of_weights, shape);
                }
            }
        }
        for pixel in delta.values().chunks_exact(of_offsets.len()) {
            let sums = of_offsets.iter_mut().zip(pixel);
            sums.for_each(|(sum, d)| *sum += d);
        }
    }
}

/// Convolves images: multiplies the values of each window by the weights.
fn look(window: &Window, filters: usize, images: &Matrix, weights: &[f32]) -> Matrix {
    let (places, patch) = (window.places(), window.patch());
    let mut made = Matrix::zeros(images.rows(), places * filters);
    let mut patches = vec![0.0; places * patch];
    for row in 0..images.rows() {
        window.unfold(images.row(row), &mut patches);
        let shape = (places, patch, filters);
        add_product(&patches, weights, made.row_mut(row), shape);
    }
    made
}

/// Convolves images in the transposed direction: multiplies each pixel by the weights, and adds the products where the
/// windows overlap.
fn spread(window: &Window, filters: usize, images: &Matrix, weights: &[f32]) -> Matrix {
    let (places, patch) = (window.places(), window.patch());
    let mut made = Matrix::zeros(images.rows(), window.values());
    let mut patches = vec![0.0; places * patch];
    for row in 0..images.rows() {
        patches.fill(0.0);
        let shape = (places, filters, patch);
        add_product(images.row(row), weights, &mut patches, shape);
        window.fold(&patches, made.row_mut(row));
    }
    made
}
