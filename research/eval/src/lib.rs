//! Quality measures that only the research crates use: the likelihood of held-out records, and a perceptron.
//!
//! ```
//! let likelihood = fhaim_lab_eval::likelihood(&[-1.0, -3.0]);
//! assert_eq!(likelihood.mean, 2.0);
//! ```

mod error;
mod likelihood;
mod perceptron;

pub use error::Error;
pub use likelihood::{Likelihood, likelihood};
pub use perceptron::{Labelled, Perceptron, PerceptronOptions};
