//! A perceptron, which measures the images of the research crates.

mod error;
mod perceptron;

pub use error::Error;
pub use perceptron::{Labelled, Perceptron, PerceptronOptions};
