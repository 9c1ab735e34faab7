//! Generative adversarial networks, to compare fhaim with.
//!
//! | module | for |
//! |---|---|
//! | [`Network`], [`Layer`], [`Matrix`], [`Optimiser`] | dense layers and convolutions, their backward pass, steps |
//! | [`Examples`], [`Shape`] | records as rows of numbers: images, and one-hot codes of tables |
//! | [`Gan`], [`Training`], [`train()`] | a generator and a discriminator; DPGAN with [`Privacy`], CTGAN's relative for tables |
//! | [`federate`] | DP-FedAvg GAN and DP-FedProx GAN |
//! | [`train_parts`] | privGAN |
//! | [`Judge`] | inception score, Fréchet distance, entropy, diversity |
//! | [`attack()`] | which records were networks trained on? |
//! | [`Model`] | what is written to a file |
//!
//! `fhaim-lab gan` is the command over it; `fhaim` has none of it.
//! docs/FEDERATED.md says what each system protects.

#![warn(missing_debug_implementations)]

mod attack;
mod conditions;
mod error;
mod examples;
mod federated;
mod gan;
mod hidden;
mod judge;
mod layer;
mod matrix;
mod network;
mod optimiser;
mod private;
mod privgan;
mod saved;
mod symmetric;
mod train;
mod window;

pub use attack::{AXES, Attacks, attack};
pub use error::Error;
pub use examples::{Examples, Shape};
pub use federated::{Federation, MAX_WEIGHT, MIN_PARTICIPATION, federate};
pub use gan::{Gan, Generator, Training};
pub use hidden::Hidden;
pub use judge::{Judge, Quality};
pub use layer::Layer;
pub use matrix::Matrix;
pub use network::{Backward, MAX_PARAMETERS, MAX_VALUES, MAX_WIDTH, Network, Tape};
pub use optimiser::Optimiser;
pub use private::{MAX_CLIP, MIN_CLIP, Privacy, Sampling, UNIT};
pub use privgan::{PrivGan, train_parts};
pub use saved::{MAX_LAYERS, MAX_PAIRS, Model};
pub use train::{record_sampling, train};
pub use window::Window;

/// Compiles and runs what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
