//! Quality measures that only the research crates use: the likelihood of held-out records, and a perceptron.

mod error;
mod likelihood;
mod perceptron;

pub use error::Error;
pub use likelihood::{Likelihood, likelihood};
pub use perceptron::{Labelled, Perceptron, PerceptronOptions};
