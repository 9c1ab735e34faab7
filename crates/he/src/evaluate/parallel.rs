//! Applies a function to every item, on all threads where there are several.

/// Applies `f` to every item, in order; on all threads with the feature `threads`.
#[cfg(feature = "threads")]
pub fn map<T: Send, U: Send>(items: Vec<T>, f: impl Fn(T) -> U + Sync + Send) -> Vec<U> {
    use rayon::prelude::*;
    items.into_par_iter().map(f).collect()
}

/// Applies `f` to every item, in order.
#[cfg(not(feature = "threads"))]
pub fn map<T, U>(items: Vec<T>, f: impl Fn(T) -> U) -> Vec<U> {
    items.into_iter().map(f).collect()
}
