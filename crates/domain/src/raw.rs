//! Original values of a table next to their codes, for reports to the table's holder.

use std::collections::{BTreeMap, HashMap};

/// The original values of one field, by record. Private: this is the table itself.
#[derive(Clone, Debug, PartialEq)]
pub struct RawColumn {
    /// The field's name.
    pub name: String,
    /// The values.
    pub values: RawValues,
    /// Words in a column of numbers or times, such as `<0.5`, by record.
    pub words: BTreeMap<usize, String>,
}

/// Original values.
#[derive(Clone, Debug, PartialEq)]
pub enum RawValues {
    /// Numbers, with moments in seconds; `None` for a missing value, or a word in a column of numbers
    /// or times.
    Numbers(Vec<Option<f64>>),
    /// Texts as indices into `names`; `None` for a missing value.
    Texts {
        /// An index for each record.
        values: Vec<Option<u32>>,
        /// The texts, in the order in which they first appear.
        names: Vec<String>,
    },
}

/// Collects the original values of one field.
pub(crate) enum RawKeeper {
    Numbers {
        values: Vec<Option<f64>>,
        words: BTreeMap<usize, String>,
    },
    Texts {
        values: Vec<Option<u32>>,
        names: HashMap<String, u32>,
    },
}

impl RawKeeper {
    pub(crate) fn new(numbers: bool) -> Self {
        if numbers {
            return Self::Numbers {
                values: Vec::new(),
                words: BTreeMap::new(),
            };
        }
        Self::Texts {
            values: Vec::new(),
            names: HashMap::new(),
        }
    }

    /// Adds a value: the number that it was read as, or its text.
    pub(crate) fn push(&mut self, text: Option<&str>, number: Option<f64>) {
        match self {
            Self::Numbers { values, words } => {
                if let (Some(text), None) = (text, number) {
                    words.insert(values.len(), text.trim().to_owned());
                }
                values.push(number);
            }
            Self::Texts { values, names } => values.push(text.map(|text| {
                // A table has at most 2^22 records unless the caller raises the limit.
                let next = names.len() as u32;
                match names.get(text) {
                    Some(&known) => known,
                    None => *names.entry(text.to_owned()).or_insert(next),
                }
            })),
        }
    }

    pub(crate) fn finish(self, name: String) -> RawColumn {
        let mut kept_words = BTreeMap::new();
        let values = match self {
            Self::Numbers { values, words } => {
                kept_words = words;
                RawValues::Numbers(values)
            }
            Self::Texts { values, names } => {
                let mut ordered: Vec<(String, u32)> = names.into_iter().collect();
                ordered.sort_by_key(|&(_, index)| index);
                let names = ordered.into_iter().map(|(name, _)| name).collect();
                RawValues::Texts { values, names }
            }
        };
        RawColumn {
            name,
            values,
            words: kept_words,
        }
    }
}
