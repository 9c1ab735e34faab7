//! Panics of a library on damaged files, as errors.

use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    sync::Once,
};

thread_local! {
    /// Whether this thread runs the library.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a library. Returns `None` if it panics, and prints nothing then.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
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
    // What the work has changed is not used after a panic.
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(before);
    done.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_no_result() {
        assert_eq!(guarded(|| -> u8 { panic!("a value") }), None);
        assert_eq!(guarded(|| 7), Some(7));
        assert!(!GUARDED.get());
    }
}
