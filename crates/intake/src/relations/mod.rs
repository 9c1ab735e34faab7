//! Relations between columns.

pub(crate) mod order;
