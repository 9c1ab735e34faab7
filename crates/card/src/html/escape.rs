//! Texts in addresses.

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
    fn texts_are_percent_encoded() {
        assert_eq!(percent_encoded("a,\"\u{fc}\n"), "a%2C%22%C3%BC%0A");
    }
}
