//! What a mechanism is about when it asks: a label of its own choosing.

use std::fmt;

use serde::{Serialize, Serializer};

/// A part of a run. Mechanisms name theirs as they like; what several of them have is named here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Phase {
    /// The word that ledgers have.
    word: &'static str,
    /// The word that people read.
    label: &'static str,
    /// Which of several phases of that word it is, counted from 1.
    number: Option<u8>,
}

impl Phase {
    /// The total and the 1-ways are asked for.
    pub const ONE_WAYS: Self = Self {
        label: "1-ways",
        ..Self::new("one-ways")
    };
    /// The scores of all candidates are asked for.
    pub const SELECT: Self = Self::new("select");
    /// The marginal that was selected is asked for.
    pub const MEASURE: Self = Self::new("measure");
    /// Nothing more is asked for: the last fit.
    pub const FIT: Self = Self::new("fit");

    /// A phase by its word: lower case, hyphens between, the same for good, since ledgers keep it.
    pub const fn new(word: &'static str) -> Self {
        Self {
            word,
            label: word,
            number: None,
        }
    }

    /// One of several phases of the same word.
    pub const fn numbered(word: &'static str, number: u8) -> Self {
        Self {
            number: Some(number),
            ..Self::new(word)
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label)?;
        match self.number {
            Some(number) => write!(f, " {number}"),
            None => Ok(()),
        }
    }
}

/// In JSON its word, `"probe"`; a numbered one has its number beside it, `{"stage": 1}`.
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
    fn ledgers_and_people_read_phases_as_they_always_did() {
        let written = |phase: Phase| {
            let json = serde_json::to_string(&phase).unwrap();
            format!("{json} {phase}")
        };
        assert_eq!(written(Phase::ONE_WAYS), r#""one-ways" 1-ways"#);
        assert_eq!(written(Phase::SELECT), r#""select" select"#);
        assert_eq!(written(Phase::MEASURE), r#""measure" measure"#);
        assert_eq!(written(Phase::FIT), r#""fit" fit"#);
        assert_eq!(written(Phase::new("probe")), r#""probe" probe"#);
        assert_eq!(
            written(Phase::numbered("stage", 2)),
            r#"{"stage":2} stage 2"#
        );
    }
}
