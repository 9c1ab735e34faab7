//! Integration tests, in one program because each program takes seconds to link.

mod hospital;
mod infer;
mod source;
