//! Integration tests, in one program because each program takes seconds to link.

mod beside;
mod common;
mod model;
mod reference;
mod saved;
