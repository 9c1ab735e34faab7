//! Remarks of a command: printed to standard error, or collected for a program that embeds the commands and shows them
//! in its own way.

use std::{borrow::Cow, cell::RefCell, collections::HashSet, fmt::Display, path::Path};

use crate::tell;

thread_local! {
    /// The remarks of this thread's work while [`keeping`] collects them.
    static KEPT: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
    /// The remarks that [`note_once`] printed.
    static PRINTED: RefCell<HashSet<String>> = RefCell::default();
}

/// Prints a remark to standard error, or adds it to those that [`keeping`] collects.
pub fn note(text: impl Display) {
    KEPT.with_borrow_mut(|kept| match kept {
        Some(kept) => kept.push(text.to_string()),
        None => tell(&format!("note: {text}")),
    });
}

/// Like [`note`], for a remark that may be repeated, such as one on a table that is read twice. It is made only once.
pub fn note_once(text: impl Display) {
    let text = text.to_string();
    let is_kept = KEPT.with_borrow(|kept| kept.as_ref().map(|kept| kept.contains(&text)));
    let is_known =
        is_kept.unwrap_or_else(|| !PRINTED.with_borrow_mut(|printed| printed.insert(text.clone())));
    if !is_known {
        note(text);
    }
}

/// Whether [`keeping`] collects the remarks of this thread, so that the user has not seen them yet.
pub(crate) fn are_kept() -> bool {
    KEPT.with_borrow(Option::is_some)
}

/// Returns a name in a form that is safe to print on a terminal.
///
/// A name with control characters, or others that a terminal may interpret, is quoted and escaped, as column names are.
pub fn shown(name: &str) -> Cow<'_, str> {
    match name.escape_debug().eq(name.chars()) {
        true => name.into(),
        false => format!("{name:?}").into(),
    }
}

/// Returns the names of columns for a remark about all of them, such as `columns "a", "b"`. Of more than
/// `MAX_NAMED` columns, only the first are named.
pub fn named(columns: &[&str]) -> String {
    let shown: Vec<String> = columns
        .iter()
        .take(MAX_NAMED)
        .map(|name| format!("{name:?}"))
        .collect();
    let shown = shown.join(", ");
    match (columns.len(), columns.len().saturating_sub(MAX_NAMED)) {
        (1, _) => format!("column {shown}"),
        (_, 0) => format!("columns {shown}"),
        (_, more) => format!("columns {shown} and {more} more"),
    }
}

/// Maximum number of columns that a remark names.
const MAX_NAMED: usize = 10;

/// Returns the name of a file in a form that is safe to print; see [`shown`].
pub fn shown_path(path: &Path) -> String {
    shown(&path.to_string_lossy()).into_owned()
}

/// Runs `work` and returns its result, with the remarks that it made.
pub fn keeping<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let before = KEPT.replace(Some(Vec::new()));
    let done = work();
    (done, KEPT.replace(before).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_in_names_are_escaped() {
        for plain in ["s.csv", "Süd, alt.csv", "/tmp/a b/表.csv"] {
            assert_eq!(shown(plain), plain);
        }
        assert_eq!(shown("a\u{1b}[2J\n.csv"), r#""a\u{1b}[2J\n.csv""#);
        assert_eq!(shown_path(Path::new("a\u{7}.csv")), r#""a\u{7}.csv""#);
        // A right-to-left override would reverse the text after it.
        assert_eq!(shown("a\u{202e}vsc"), r#""a\u{202e}vsc""#);
    }

    #[test]
    fn repeated_remark_is_made_once_in_each_collection() {
        let work = || {
            note_once("one");
            note_once("two");
            note_once("one");
        };
        for _ in 0..2 {
            assert_eq!(keeping(work).1, ["one", "two"]);
        }
    }

    #[test]
    fn nested_collection_of_remarks_is_separate() {
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
