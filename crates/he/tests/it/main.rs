//! Integration tests, in one program because each program takes seconds to link.

mod backends;
mod counts;
mod joint_table;
mod noise;
