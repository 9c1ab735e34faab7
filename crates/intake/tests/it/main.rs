//! Integration tests, in one program because each program takes seconds to link.

mod accept;
mod adapter;
mod category_rules;
mod check;
mod every_kind;
mod exports;
mod hospital;
mod infer;
mod planted;
mod rules;
mod situations;
mod source;
mod variations;
