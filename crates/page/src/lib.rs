#![doc = include_str!("../README.md")]

use std::fmt::{self, Display, Formatter, Write};

/// Colours of a page in light and dark mode, as variables of CSS.
pub const COLOURS: &str = include_str!("colours.css");

/// Displays a text escaped for elements and quoted attributes of HTML and SVG.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(&'a str);

/// Returns a text escaped for elements and quoted attributes of HTML and SVG.
///
/// Line breaks become spaces. Other control characters, which HTML forbids, become U+FFFD. So do characters that change the
/// direction of the text behind them, and could show the number of a sentence backwards.
pub fn escaped(text: &str) -> Escaped<'_> {
    Escaped(text)
}

impl Display for Escaped<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '&' => out.write_str("&amp;"),
            '<' => out.write_str("&lt;"),
            '>' => out.write_str("&gt;"),
            '"' => out.write_str("&quot;"),
            '\'' => out.write_str("&#39;"),
            '\t' | '\n' | '\r' => out.write_char(' '),
            other if other.is_control() || is_direction(other) => out.write_char('\u{fffd}'),
            other => out.write_char(other),
        })
    }
}

/// Whether a character sets the direction of others (Unicode Standard Annex 9, "Explicit Directional Formatting Characters").
fn is_direction(character: char) -> bool {
    matches!(
        character,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(
            escaped("<a b=\"'&\">\u{7}\n").to_string(),
            "&lt;a b=&quot;&#39;&amp;&quot;&gt;\u{fffd} "
        );
    }

    #[test]
    fn texts_do_not_change_the_direction_of_what_follows() {
        assert_eq!(escaped("\u{202e}5.9").to_string(), "\u{fffd}5.9");
        // Letters of such a script are kept.
        assert_eq!(escaped("\u{5e9}\u{5dd}").to_string(), "\u{5e9}\u{5dd}");
    }
}
