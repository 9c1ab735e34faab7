//! `fhaim bench`: speed and accuracy, beside what they are compared with.

pub mod compute;
pub mod pgm;
