//! Integration tests, in one program because each program takes seconds to link.

mod assessment;
mod cases;
mod page;
mod planted;
mod report;
mod second_draws;
