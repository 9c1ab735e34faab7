//! What a command has to say beside its results: on standard error, or kept for a program that has
//! linked the commands and tells its user in its own way.

use std::{borrow::Cow, cell::RefCell, fmt::Display, path::Path};

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

/// A name as a terminal may show it: quoted, as columns are, where it has control characters or others that are more than
/// letters to a terminal.
pub fn shown(name: &str) -> Cow<'_, str> {
    match name.escape_debug().eq(name.chars()) {
        true => name.into(),
        false => format!("{name:?}").into(),
    }
}

/// The name of a file, as [`shown`].
pub fn shown_path(path: &Path) -> String {
    shown(&path.to_string_lossy()).into_owned()
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
    fn names_are_shown_without_what_a_terminal_would_obey() {
        for plain in ["s.csv", "Süd, alt.csv", "/tmp/a b/表.csv"] {
            assert_eq!(shown(plain), plain);
        }
        assert_eq!(shown("a\u{1b}[2J\n.csv"), r#""a\u{1b}[2J\n.csv""#);
        assert_eq!(shown_path(Path::new("a\u{7}.csv")), r#""a\u{7}.csv""#);
        // What comes after it would be read from the right.
        assert_eq!(shown("a\u{202e}vsc"), r#""a\u{202e}vsc""#);
    }

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
