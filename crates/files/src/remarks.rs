//! What a command has to say beside its results: on standard error, or kept for a program that has
//! linked the commands and tells its user in its own way.

use std::{cell::RefCell, fmt::Display};

thread_local! {
    /// The remarks of this thread's work, where somebody keeps them.
    static KEPT: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Tells whoever called something that they should know.
pub fn note(text: impl Display) {
    KEPT.with_borrow_mut(|kept| match kept {
        Some(kept) => kept.push(text.to_string()),
        None => eprintln!("note: {text}"),
    });
}

/// Does some work, and keeps what it has to say.
pub fn keeping<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let before = KEPT.replace(Some(Vec::new()));
    let done = work();
    (done, KEPT.replace(before).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_are_kept_for_whoever_asks_and_for_nobody_else() {
        let (inner, outer) = keeping(|| {
            note("one");
            let inner = keeping(|| note("two"));
            note("three");
            inner.1
        });
        assert_eq!(
            (inner, outer),
            (
                vec!["two".to_owned()],
                vec!["one".to_owned(), "three".to_owned()]
            )
        );
        assert!(KEPT.with_borrow(Option::is_none));
    }
}
