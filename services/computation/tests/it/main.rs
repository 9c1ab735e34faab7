//! Integration tests, in one program because each program takes seconds to link.

mod batches;
mod common;
mod deletion;
mod limits;
mod parts;
mod uploads;
