//! Graphical models fitted to noisy marginals: junction tree, belief propagation, sampling.
//!
//! Private-PGM (McKenna, Sheldon and Miklau, "Graphical-model based estimation and inference for
//! differential privacy", ICML 2019): from noisy linear views of the marginals of a table, find
//! the distribution whose marginals agree with them best among those that factor over the
//! measured cliques; then ask it for other marginals, or for synthetic records.
//!
//! ```
//! use fhaim_domain::{Clique, Domain};
//! use fhaim_pgm::{FitOptions, Measurement, fit};
//!
//! let domain = Domain::new(vec![2, 3]);
//! let measurements = [
//!     Measurement::cells(Clique::new([0]), vec![30.0, 70.0], 1.0),
//!     Measurement::cells(Clique::new([1]), vec![20.0, 50.0, 30.0], 1.0),
//! ];
//! let model = fit(&domain, &measurements, &FitOptions::default(), None)?;
//! let pair = model.marginal(&Clique::new([0, 1]))?;
//! assert!((pair[0] - 6.0).abs() < 1e-3);
//! # Ok::<(), fhaim_pgm::Error>(())
//! ```

mod descent;
mod elimination;
mod error;
mod estimate;
mod given;
mod junction;
mod kernel;
mod measurement;
mod model;
mod observations;
mod pairs;
mod propagation;
mod resolution;
mod sample;
mod saved;
mod table;

pub use error::Error;
pub use estimate::{FitOptions, FitReport, fit, model_bytes};
pub use junction::{ModelGraph, model_cells};
pub use measurement::{AxisView, Measurement};
pub use model::Model;
