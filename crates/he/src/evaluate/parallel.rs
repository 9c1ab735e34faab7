//! Applies a function to every item, on several threads if they are available.

/// Applies `f` to every item and returns the results in order. Uses all threads with the feature `threads`.
#[cfg(feature = "threads")]
pub fn map<T: Send, U: Send>(items: Vec<T>, f: impl Fn(T) -> U + Sync + Send) -> Vec<U> {
    use rayon::prelude::*;
    items.into_par_iter().map(f).collect()
}

/// Applies `f` to every item and returns the results in order.
#[cfg(not(feature = "threads"))]
pub fn map<T, U>(items: Vec<T>, f: impl Fn(T) -> U) -> Vec<U> {
    items.into_iter().map(f).collect()
}
