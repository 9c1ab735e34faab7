//! What a run can be expected to ask for, before anything is known of the table: what an estimate of time is made of,
//! and nothing else.

/// Batches and model that can be expected of a run, by public numbers alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Its batches of releases, in order.
    pub batches: Vec<ExpectedBatch>,
    /// The share of the job's cap on models that its model fills, from 0 to 1.
    pub model_share: f64,
}

/// One batch, as whoever computes it under encryption sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedBatch {
    /// Cells that are sums over columns.
    pub sums: usize,
    /// Cells that are sums over products of two combinations of columns.
    pub products: usize,
    /// Different combinations among the second factors of those products.
    pub factors: usize,
    /// Different variances: releases of one variance are decrypted together.
    pub variances: usize,
}
