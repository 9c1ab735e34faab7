#![doc = include_str!("../README.md")]

mod beside;
mod buckets;
mod calibration;
mod contraction;
mod density;
mod descent;
mod elimination;
mod error;
mod estimate;
mod given;
mod junction;
mod kernel;
mod layout;
mod measurement;
mod messages;
mod model;
mod observations;
mod options;
mod outline;
mod pace;
mod pairs;
mod product;
mod propagation;
mod resolution;
mod sample;
mod saved;
mod slabs;
mod table;

pub use error::Error;
pub use estimate::{fit, model_bytes};
pub use junction::{GrowingModel, ModelGraph, model_cells};
pub use measurement::{AxisView, Measurement};
pub use model::Model;
pub use options::{Chain, Ending, FitOptions, FitReport, Passes, Work};
pub use pace::Pace;
