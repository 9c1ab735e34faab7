//! Integration tests, in one program because each program takes seconds to link.

mod constraints;
mod csv;
mod data;
mod kinds;
mod numbers;
mod schema;
mod stream;
