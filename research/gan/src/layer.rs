//! Layers: dense ones, convolutions (LeCun et al. 1998), and convolutions the other way round, which make larger images
//! of smaller ones (Zeiler et al. 2010).
//!
//! The parameters of a layer are its weights, then an offset for each output, or for each channel of an output image.

use crate::Error;
use crate::matrix::{Matrix, add_product, transpose};
use crate::network::MAX_WIDTH;
use crate::window::Window;

/// A step from one row of values to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Every output is a sum over all inputs: weights by input, a row of outputs for each.
    Dense {
        /// Values of a row.
        inputs: usize,
        /// Values of the next.
        outputs: usize,
    },
    /// From an image to one with a pixel for each window and a channel for each filter: weights by what a window
    /// shows, a row of filters for each.
    Convolution {
        /// Over the image that is given.
        window: Window,
        /// Channels of the image that is made.
        filters: usize,
    },
    /// From an image with a pixel for each window and a channel for each filter: what the windows show is added up.
    /// Weights by filter, a row of what a window shows for each.
    Transposed {
        /// Over the image that is made.
        window: Window,
        /// Channels of the image that is given.
        filters: usize,
    },
}

impl Layer {
    /// Dense layers from each width to the next.
    pub fn dense(widths: &[usize]) -> Vec<Self> {
        let layer = |pair: &[usize]| Self::Dense {
            inputs: pair[0],
            outputs: pair[1],
        };
        widths.windows(2).map(layer).collect()
    }

    /// Checked first of all: what follows is for layers that can be.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Self::Convolution { window, filters } | Self::Transposed { window, filters } = self {
            window.check()?;
            if *filters > MAX_WIDTH {
                return Err(Error::Shape(format!("a layer of {filters} filters")));
            }
        }
        let widths = [self.inputs(), self.outputs()];
        match widths.iter().all(|width| (1..=MAX_WIDTH).contains(width)) {
            true => Ok(()),
            false => Err(Error::Shape(format!(
                "there is no layer {self:?}: rows have from 1 to {MAX_WIDTH} values"
            ))),
        }
    }

    /// Values of a row that it is given.
    pub fn inputs(&self) -> usize {
        match self {
            Self::Dense { inputs, .. } => *inputs,
            Self::Convolution { window, .. } => window.values(),
            Self::Transposed { window, filters } => window.places().saturating_mul(*filters),
        }
    }

    /// Values of a row that it makes.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Dense { outputs, .. } => *outputs,
            Self::Convolution { window, filters } => window.places().saturating_mul(*filters),
            Self::Transposed { window, .. } => window.values(),
        }
    }

    /// How many weights there are, and offsets.
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

    /// How many inputs an output is a sum over: of a transposed convolution those of the windows that show a pixel.
    pub(crate) fn inputs_of_one(&self) -> usize {
        match self {
            Self::Dense { inputs, .. } => *inputs,
            Self::Convolution { window, .. } => window.patch(),
            Self::Transposed { window, filters } => {
                filters * window.side.div_ceil(window.stride).pow(2)
            }
        }
    }

    /// The outputs of each row, less the offsets.
    pub(crate) fn apply(&self, rows: &Matrix, weights: &[f32]) -> Matrix {
        match *self {
            Self::Dense { outputs, .. } => rows.times(weights, outputs),
            Self::Convolution { window, filters } => look(&window, filters, rows, weights),
            Self::Transposed { window, filters } => spread(&window, filters, rows, weights),
        }
    }

    /// Derivatives by the inputs of each row, given those by its outputs.
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

    /// Adds the derivatives by weights and offsets, summed over rows, given those by the outputs of each row.
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

/// Of each image what its windows show, times weights by what a window shows.
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

/// Of each image its pixels, times weights by filter, added up where the windows show them.
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
