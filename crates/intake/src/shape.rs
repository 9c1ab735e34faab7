//! Shapes of texts: what can be said of a cell without repeating it.

use std::fmt::{self, Display, Formatter};

use fhaim_domain::counted;

/// Maximum number of characters of a shape. Longer texts have the shape of their beginning.
const MAX_SHAPE: usize = 40;

/// The shape of a text: `9` for a digit, `a` and `A` for letters, `~` for a character outside ASCII that is no letter,
/// and other characters unchanged.
///
/// The date `2024-01-31` has the shape `9999-99-99`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape(String);

impl Shape {
    /// Returns the shape of a text.
    pub fn of(text: &str) -> Self {
        Self(text.chars().take(MAX_SHAPE).map(class).collect())
    }

    /// Writes the shape of a text to `shape`, without allocating.
    pub(crate) fn write(text: &str, shape: &mut String) {
        shape.clear();
        shape.extend(text.chars().take(MAX_SHAPE).map(class));
    }

    /// The shape as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Number of characters.
    pub fn len(&self) -> usize {
        self.0.chars().count()
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for Shape {
    fn from(shape: &str) -> Self {
        Self(shape.to_owned())
    }
}

/// Returns the class of a character.
fn class(letter: char) -> char {
    match letter {
        '0'..='9' => '9',
        'a'..='z' => 'a',
        'A'..='Z' => 'A',
        ' '..='~' => letter,
        _ if letter.is_uppercase() => 'A',
        _ if letter.is_alphabetic() => 'a',
        _ => '~',
    }
}

/// Describes the shape in words.
impl Display for Shape {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let length = self.len();
        let letters = self.0.bytes().filter(u8::is_ascii_alphabetic).count();
        let digits = self.0.bytes().filter(u8::is_ascii_digit).count();
        if length == MAX_SHAPE {
            return write!(out, "{length} characters or more");
        }
        if self.0.trim().is_empty() {
            return out.write_str(&counted(length, "blank"));
        }
        if letters == length {
            return out.write_str(&counted(length, "letter"));
        }
        if digits == length {
            return out.write_str(&counted(length, "digit"));
        }
        // A shape keeps signs, so the form of a cell with only signs would repeat it.
        if letters + digits == 0 {
            return out.write_str(&counted(length, "sign"));
        }
        if letters + self.0.matches(' ').count() == length {
            return write!(out, "{} in several words", counted(letters, "letter"));
        }
        write!(out, "the form {:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shape_keeps_signs_and_hides_letters_and_digits() {
        assert_eq!(Shape::of("2024-01-31").as_str(), "9999-99-99");
        assert_eq!(Shape::of("P\u{e4}ris \u{20ac}5").as_str(), "Aaaaa ~9");
        assert_eq!(Shape::of(&"x".repeat(1_000)).len(), MAX_SHAPE);
    }

    #[test]
    fn shape_is_described_in_words() {
        let words = |text| Shape::of(text).to_string();
        assert_eq!(words("abc"), "3 letters");
        assert_eq!(words("7"), "1 digit");
        assert_eq!(words("12.3.4"), "the form \"99.9.9\"");
        assert_eq!(words("not known"), "8 letters in several words");
        assert_eq!(words("  "), "2 blanks");
        assert_eq!(words("#!?"), "3 signs");
    }
}
