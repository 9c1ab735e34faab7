//! Planted values.
