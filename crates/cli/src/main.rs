//! The fhaim command.
fn main() {}
