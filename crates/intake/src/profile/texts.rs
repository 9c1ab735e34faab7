//! The different texts of a column and their counts, in bounded memory.

use std::collections::HashMap;

use super::distinct::Distinct;

/// Maximum number of different texts to remember.
const MAX_TEXTS: usize = 1 << 16;

/// Maximum size of the remembered texts, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// How often a text occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Number of records.
    pub(crate) count: u64,
    /// The first record, counted from 1.
    pub(crate) row: u64,
    /// Number of different texts before its first record.
    pub(crate) number: u32,
}

/// Texts and their counts. Texts that appear after the memory is full are only estimated in number.
#[derive(Debug)]
pub(crate) struct Texts {
    seen: HashMap<Box<str>, Seen>,
    bytes: usize,
    distinct: Distinct,
    full: bool,
}

impl Texts {
    pub(crate) fn new() -> Self {
        Self {
            seen: HashMap::new(),
            bytes: 0,
            distinct: Distinct::new(),
            full: false,
        }
    }

    /// Counts a text. Returns its number, or `None` if the text is not remembered.
    pub(crate) fn see(&mut self, text: &str, row: u64) -> Option<u32> {
        if let Some(seen) = self.seen.get_mut(text) {
            seen.count += 1;
            return Some(seen.number);
        }
        if self.full || self.seen.len() >= MAX_TEXTS || self.bytes + text.len() > MAX_BYTES {
            if !self.full {
                self.full = true;
                self.seen.keys().for_each(|text| self.distinct.add(text));
            }
            self.distinct.add(text);
            return None;
        }
        self.bytes += text.len();
        // At most `MAX_TEXTS`.
        let number = self.seen.len() as u32;
        let seen = Seen {
            count: 1,
            row,
            number,
        };
        self.seen.insert(text.into(), seen);
        Some(number)
    }

    /// Returns the number of different texts, estimated if not every one is remembered.
    pub(crate) fn distinct(&self) -> u64 {
        match self.full {
            true => self.distinct.estimate().max(self.seen.len() as u64),
            false => self.seen.len() as u64,
        }
    }

    /// Returns the remembered texts in the order of their first records.
    pub(crate) fn in_order(&self) -> Vec<(&str, Seen)> {
        let mut texts: Vec<(&str, Seen)> =
            self.seen.iter().map(|(text, &s)| (&**text, s)).collect();
        texts.sort_unstable_by_key(|(_, seen)| seen.number);
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_beyond_the_memory_are_estimated() {
        let mut texts = Texts::new();
        for row in 1..=200_000u64 {
            let number = texts.see(&format!("text {row}"), row);
            let remembered = (row <= MAX_TEXTS as u64).then(|| row as u32 - 1);
            assert_eq!(number, remembered);
        }
        assert!(texts.distinct().abs_diff(200_000) < 20_000);
        assert_eq!(texts.in_order()[9].0, "text 10");
        let mut long = Texts::new();
        let text = "x".repeat(MAX_BYTES / 2);
        assert_eq!(long.see(&text, 1), Some(0));
        assert_eq!(long.see(&format!("{text}{text}"), 2), None);
        assert_eq!(long.see(&text, 3), Some(0));
    }
}
