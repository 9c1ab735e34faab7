//! Numbers of things in messages.

use std::fmt::Display;

/// Formats a number of things for a message: "1 field", "3 fields", "3 parties", "3 mixes".
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(number: N, thing: &str) -> String {
    if number == N::from(1) {
        return format!("{number} {thing}");
    }
    match thing.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{number} {stem}ies"),
        _ if thing.ends_with('x') => format!("{number} {thing}es"),
        _ => format!("{number} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_uses_english_plurals() {
        for (number, thing, expected) in [
            (1, "party", "1 party"),
            (2, "party", "2 parties"),
            (0, "mix", "0 mixes"),
            (3, "key", "3 keys"),
            (3, "record", "3 records"),
        ] {
            assert_eq!(counted(number, thing), expected);
        }
    }
}
