//! Integration tests, in one program because each program takes seconds to link.

mod allowed;
mod contract;
mod digits;
mod expected;
mod probes;
mod trees;
mod unfitted;
mod verify;
