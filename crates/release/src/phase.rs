//! The phases of a run: the purposes of a mechanism's requests.

use std::fmt;

use serde::{Serialize, Serializer};

/// A phase of a run. A mechanism defines its own phases. The phases that several mechanisms share
/// are defined here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Phase {
    /// Identifier in ledgers: lower case, with hyphens. It never changes.
    word: &'static str,
    /// Distinguishes phases with the same word, counted from 1.
    number: Option<u8>,
    /// Description for users.
    label: &'static str,
}

impl Phase {
    /// The total and the marginal of each column.
    pub const ONE_WAYS: Self = Self::new("one-ways", "Counting values of each column");
    /// Scores of all candidates.
    pub const SELECT: Self = Self::new("select", "Choosing the next pair");
    /// The selected marginal.
    pub const MEASURE: Self = Self::new("measure", "Measuring the chosen pair");
    /// The last fit, after the last release.
    pub const FIT: Self = Self::new("fit", "Fitting the model");

    /// Creates a phase with this identifier in ledgers and this description for users.
    pub const fn new(word: &'static str, label: &'static str) -> Self {
        Self {
            word,
            number: None,
            label,
        }
    }

    /// Creates one of several phases with the same word.
    pub const fn numbered(word: &'static str, number: u8, label: &'static str) -> Self {
        Self {
            word,
            number: Some(number),
            label,
        }
    }
}

/// The description for users.
impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label)
    }
}

/// Serializes the word, `"probe"`, or the word and the number, `{"stage": 1}`.
impl Serialize for Phase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.number {
            Some(number) => serializer.serialize_newtype_variant("Phase", 0, self.word, number),
            None => serializer.serialize_unit_variant("Phase", 0, self.word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_words_in_json_and_labels_for_users() {
        let written = |phase: Phase| {
            let json = serde_json::to_string(&phase).unwrap();
            format!("{json} {phase}")
        };
        assert_eq!(
            written(Phase::ONE_WAYS),
            r#""one-ways" Counting values of each column"#
        );
        assert_eq!(
            written(Phase::numbered("stage", 2, "Measuring more pairs")),
            r#"{"stage":2} Measuring more pairs"#
        );
    }
}
