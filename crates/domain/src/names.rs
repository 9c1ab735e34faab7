//! Validation of names, and shortening of texts for errors.

use crate::limits::MAX_NAME_BYTES;

/// Returns whether `name` has from 1 to [`MAX_NAME_BYTES`] bytes and no control characters, which
/// would break the lines of a report or log.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && is_text(name)
}

/// Returns whether `text` is a name or empty.
pub(crate) fn is_text(text: &str) -> bool {
    text.len() <= MAX_NAME_BYTES && !text.chars().any(char::is_control)
}

/// Shortens a text of any length for an error message.
pub(crate) fn cut(text: &str) -> String {
    const MAX_CHARACTERS: usize = 60;
    match text.char_indices().nth(MAX_CHARACTERS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}
