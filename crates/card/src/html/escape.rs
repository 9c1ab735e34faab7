//! Texts in HTML and in addresses.

use std::fmt::{self, Display, Formatter, Write};

/// A text that is escaped for elements and quoted attributes.
pub(super) struct Escaped<'a>(&'a str);

/// Returns a text escaped for elements and quoted attributes.
pub(super) fn escaped(text: &str) -> Escaped<'_> {
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
            // HTML forbids control characters.
            other if other.is_control() => out.write_char('\u{fffd}'),
            other => out.write_char(other),
        })
    }
}

/// Returns a text percent-encoded for an address of kind `data:`.
pub(super) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(
            escaped("<a b=\"'&\">\u{7}").to_string(),
            "&lt;a b=&quot;&#39;&amp;&quot;&gt;\u{fffd}"
        );
        assert_eq!(percent_encoded("a,\"\u{fc}\n"), "a%2C%22%C3%BC%0A");
    }
}
