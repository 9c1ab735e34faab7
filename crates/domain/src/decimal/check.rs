//! Checks that the numbers of a style can be read back.

use super::NumberStyle;
use crate::{ColumnProblem, names::cut};

/// The characters that may stand between groups of three digits: comma, point, apostrophes, and
/// blanks of three widths.
const SEPARATORS: [char; 8] = [
    ',', '.', '\'', '\u{2019}', ' ', '\u{a0}', '\u{2009}', '\u{202f}',
];

/// Maximum length of a text before or after each number, in bytes.
const MAX_TEXT_BYTES: usize = 64;

impl NumberStyle {
    /// Checks that numbers of this style are read back from their texts.
    ///
    /// # Errors
    /// [`ColumnProblem::Thousands`], [`ColumnProblem::SameMark`], [`ColumnProblem::TextAround`].
    pub fn check(&self) -> Result<(), ColumnProblem> {
        match self.thousands {
            Some(separator) if !SEPARATORS.contains(&separator) => {
                return Err(ColumnProblem::Thousands(separator));
            }
            Some(separator) if separator == self.mark() => {
                return Err(ColumnProblem::SameMark(separator));
            }
            _ => {}
        }
        // A sign in front would change how negative numbers are read.
        let is_sign = |first| matches!(first, '-' | '+' | '(' | '\u{2212}');
        check_text(
            "before",
            &self.before,
            self.before.trim().starts_with(is_sign),
        )?;
        check_text("after", &self.after, false)
    }
}

fn check_text(field: &'static str, text: &str, has_sign: bool) -> Result<(), ColumnProblem> {
    let is_blank = !text.is_empty() && text.trim().is_empty();
    let is_long = text.len() > MAX_TEXT_BYTES || text.chars().any(char::is_control);
    if has_sign || is_blank || is_long {
        let text = cut(text);
        return Err(ColumnProblem::TextAround { field, text });
    }
    Ok(())
}
