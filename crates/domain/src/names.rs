//! Names and texts in errors.

use crate::limits::MAX_NAME_BYTES;

/// Whether `name` is neither empty nor too long and has no control characters, which would
/// break lines of a report or log.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control)
}

/// The first characters of a text of any length, for an error.
pub(crate) fn cut(text: &str) -> String {
    const MAX_CHARACTERS: usize = 60;
    match text.char_indices().nth(MAX_CHARACTERS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}
