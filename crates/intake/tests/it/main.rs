//! Integration tests, in one program because each program takes seconds to link.

mod accept;
mod adapter;
mod category_rules;
mod check;
mod hospital;
mod infer;
mod planted;
mod situations;
mod source;
