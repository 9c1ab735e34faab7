//! Names of the objects of an upload.

use crate::Error;
use fhaim_dp::{LEVEL_VECTORS, LadderPlan};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// An object of an upload: a polynomial, encrypted once under each plaintext modulus, or a sole
/// holder's switching keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Object {
    /// The switching keys of a sole holder's upload key, for the computation service.
    Keys,
    /// One record chunk of a one-hot column.
    Column {
        /// Number of the one-hot column.
        column: usize,
        /// Number of the record chunk.
        chunk: usize,
    },
    /// Counts of some pairs of attributes.
    Counts {
        /// Number of the ciphertext.
        number: usize,
    },
    /// One vector of the noise ladder.
    Noise {
        /// Page of the ladder.
        page: usize,
        /// Level of the ladder.
        level: usize,
        /// Index of the vector within the level: 0 or 1.
        /// dense one.
        index: usize,
    },
}

impl Object {
    /// Returns the object's name, such as `column/12/3` (column, chunk), `counts/3`, `noise/0/4/1`
    /// (page, level, index) or `keys`. [`str::parse`] reads it back.
    pub fn name(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keys => write!(f, "keys"),
            Self::Column { column, chunk } => write!(f, "column/{column}/{chunk}"),
            Self::Counts { number } => write!(f, "counts/{number}"),
            Self::Noise { page, level, index } => write!(f, "noise/{page}/{level}/{index}"),
        }
    }
}

impl From<Object> for String {
    fn from(object: Object) -> Self {
        object.to_string()
    }
}

impl TryFrom<String> for Object {
    type Error = Error;

    fn try_from(name: String) -> Result<Self, Error> {
        name.parse()
    }
}

impl FromStr for Object {
    type Err = Error;

    /// Parses a name strictly: every object has exactly one name.
    fn from_str(name: &str) -> Result<Self, Error> {
        let mut parts = name.split('/');
        let kind = parts.next();
        let numbers: Vec<usize> = parts.map_while(|part| part.parse().ok()).collect();
        let object = match (kind, numbers.as_slice()) {
            (Some("keys"), &[]) => Self::Keys,
            (Some("column"), &[column, chunk]) => Self::Column { column, chunk },
            (Some("counts"), &[number]) => Self::Counts { number },
            (Some("noise"), &[page, level, index]) => Self::Noise { page, level, index },
            _ => return Err(Error::Object("not an object name")),
        };
        // Also rejects signs, leading zeros, and anything after a part that is not a number.
        if object.to_string() == name {
            Ok(object)
        } else {
            Err(Error::Object("not an object name"))
        }
    }
}

/// Returns the objects of a noise ladder, in row-major order of (page, level, index).
pub(crate) fn noise_objects(ladder: LadderPlan) -> impl Iterator<Item = Object> + use<> {
    let levels = ladder.levels();
    let vector = move |page, level| (0..LEVEL_VECTORS).map(move |index| (page, level, index));
    (0..ladder.pages())
        .flat_map(move |page| (0..levels).flat_map(move |level| vector(page, level)))
        .map(|(page, level, index)| Object::Noise { page, level, index })
}
