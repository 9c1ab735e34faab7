//! Integration tests, in one program because each program takes seconds to link.

mod constraints;
mod csv;
mod data;
mod derived;
mod implies;
mod kinds;
mod missing;
mod numbers;
mod problems;
mod scan;
mod schema;
mod stream;
mod time_formats;
mod time_rules;
mod times;
