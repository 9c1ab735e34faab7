#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! | module | for |
//! |---|---|
//! | [`Network`], [`Layer`], [`Matrix`], [`Optimiser`] | dense layers, convolutions, backward pass, optimiser steps |
//! | [`Examples`], [`Shape`] | records as rows of numbers: images, and one-hot codes of tables |
//! | [`Gan`], [`Training`], [`train()`] | a generator and a discriminator; DPGAN with [`Privacy`]; a CTGAN variant |
//! | [`federate`] | DP-FedAvg GAN and DP-FedProx GAN |
//! | [`train_parts`] | privGAN |
//! | [`Judge`] | inception score, Fréchet distance, entropy, diversity |
//! | [`attack()`] | membership inference: which records were used for training? |
//! | [`Model`] | trained networks, as written to a file |
//!
//! The command is `fhaim-lab gan`; `fhaim` has none of this. docs/research/gan.md says what each method protects.

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
