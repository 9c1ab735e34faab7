//! Integration tests, in one program because each program takes seconds to link.

mod constraints;
mod csv;
mod data;
mod hospital;
mod infer;
mod kinds;
mod schema;
mod stream;
