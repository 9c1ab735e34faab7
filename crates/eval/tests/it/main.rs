//! Integration tests, in one program because each program takes seconds to link.

mod assessment;
mod cases;
mod report;
mod second_draws;
