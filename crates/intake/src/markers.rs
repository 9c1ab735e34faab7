//! Well-known texts for a missing value.

/// Texts that stand for a missing value in every table.
const CLEAR: [&str; 17] = [
    "\\N", "NULL", "null", "Null", "NaN", "nan", "NAN", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaT",
    "k.A.", "k. A.", "#NULL!", "?",
];

/// Texts that stand for a missing value among numbers, dates and the like, where they cannot be a value.
const LIKELY: [&str; 33] = [
    "NA",
    "na",
    "N.A.",
    "n.a.",
    "n.a",
    "none",
    "None",
    "NONE",
    "nil",
    "-",
    "--",
    "---",
    ".",
    "..",
    "...",
    "x",
    "X",
    "*",
    "unk",
    "UNK",
    "unknown",
    "Unknown",
    "UNKNOWN",
    "missing",
    "unbekannt",
    "keine Angabe",
    "#VALUE!",
    "#DIV/0!",
    "0000-00-00",
    "0000-00-00 00:00:00",
    "00/00/0000",
    "00.00.0000",
    "0000/00/00",
];

/// Whether a text stands for a missing value in any column.
pub(crate) fn is_clear_marker(text: &str) -> bool {
    text.trim().is_empty() || CLEAR.contains(&text.trim())
}

/// Whether a text stands for a missing value in a column of numbers, dates or times.
pub(crate) fn is_marker(text: &str) -> bool {
    is_clear_marker(text) || LIKELY.contains(&text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_of_texts_are_fewer_than_those_of_numbers() {
        for text in ["\\N", " ", "", "N/A", " NULL "] {
            assert!(is_clear_marker(text) && is_marker(text), "{text:?}");
        }
        for text in ["NA", "none", ".", "-"] {
            assert!(!is_clear_marker(text) && is_marker(text), "{text:?}");
        }
        assert!(!is_marker("abc") && !is_marker("0"));
    }
}
