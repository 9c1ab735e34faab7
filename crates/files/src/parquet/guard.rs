//! Panics of the Parquet library on damaged files, as errors.

use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    sync::Once,
};

use parquet::errors::ParquetError;

thread_local! {
    /// Whether this thread runs the library.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs the library, and returns its panic as an error. Nothing is printed.
pub(super) fn guarded<T>(
    work: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, ParquetError> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                report(panic);
            }
        }));
    });
    let before = GUARDED.replace(true);
    // What the work has changed is not used after an error.
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(before);
    done.unwrap_or_else(|_| Err(ParquetError::General("damaged content".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_is_returned_as_an_error() {
        let done: Result<(), _> = guarded(|| panic!("a value"));
        assert_eq!(
            done.unwrap_err().to_string(),
            "Parquet error: damaged content"
        );
        assert_eq!(guarded(|| Ok(7)).unwrap(), 7);
        assert!(!GUARDED.get());
    }
}
