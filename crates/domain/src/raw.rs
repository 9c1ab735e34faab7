//! Values of a table as they are, beside their codes: for reports to their holder.

use std::collections::HashMap;

/// The values of one field, by record. Private: the table itself.
#[derive(Clone, Debug, PartialEq)]
pub struct RawColumn {
    /// The field's name.
    pub name: String,
    /// The values.
    pub values: RawValues,
}

/// Values as they are.
#[derive(Clone, Debug, PartialEq)]
pub enum RawValues {
    /// Numbers, and moments in seconds; `None` where one is missing.
    Numbers(Vec<Option<f64>>),
    /// Texts as indices into `names`; `None` where one is missing.
    Texts {
        /// By record.
        values: Vec<Option<u32>>,
        /// The texts, in the order in which they first appear.
        names: Vec<String>,
    },
}

/// Gathers the values of one field.
pub(crate) enum RawKeeper {
    Numbers(Vec<Option<f64>>),
    Texts {
        values: Vec<Option<u32>>,
        names: HashMap<String, u32>,
    },
}

impl RawKeeper {
    pub(crate) fn new(numbers: bool) -> Self {
        if numbers {
            return Self::Numbers(Vec::new());
        }
        Self::Texts {
            values: Vec::new(),
            names: HashMap::new(),
        }
    }

    /// Takes in a value: the number it was read as, or its text.
    pub(crate) fn push(&mut self, text: Option<&str>, number: Option<f64>) {
        match self {
            Self::Numbers(values) => values.push(number),
            Self::Texts { values, names } => values.push(text.map(|text| {
                // A table has at most 2^22 records unless its reader wants more.
                let next = names.len() as u32;
                match names.get(text) {
                    Some(&known) => known,
                    None => *names.entry(text.to_owned()).or_insert(next),
                }
            })),
        }
    }

    pub(crate) fn finish(self, name: String) -> RawColumn {
        let values = match self {
            Self::Numbers(values) => RawValues::Numbers(values),
            Self::Texts { values, names } => {
                let mut ordered: Vec<(String, u32)> = names.into_iter().collect();
                ordered.sort_by_key(|&(_, index)| index);
                let names = ordered.into_iter().map(|(name, _)| name).collect();
                RawValues::Texts { values, names }
            }
        };
        RawColumn { name, values }
    }
}
