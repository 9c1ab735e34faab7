//! The mechanisms, the code that they share, and the list of all mechanisms.
//!
//! To add a mechanism, add a folder here with a type that implements [`Mechanism`], and a line in
//! [`MECHANISMS`]. The command, terms, services and simulation find it by its name.

pub mod aim;
mod anneal;
pub(crate) mod block;
pub(crate) mod candidates;
pub(crate) mod columns;
mod digits;
pub mod fhaim_l2;
pub(crate) mod fitting;
pub(crate) mod merge;
pub mod mst;
pub mod one_ways;
mod prior;
pub(crate) mod score;
pub mod staged;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;
use crate::mechanism::Mechanism;

/// All mechanisms with their default options. The first is the default mechanism.
static MECHANISMS: LazyLock<[Box<dyn Mechanism>; 5]> = LazyLock::new(|| {
    [
        Box::new(staged::Staged::default()),
        Box::new(fhaim_l2::FhaimL2::default()),
        Box::new(aim::Aim::default()),
        Box::new(mst::Mst),
        Box::new(one_ways::OneWaysOnly),
    ]
});

/// A mechanism of the list with its default options. It is serialized as its name.
#[derive(Clone, Copy)]
pub struct MechanismName(&'static dyn Mechanism);

impl MechanismName {
    /// Returns all mechanisms, the default first.
    pub fn all() -> impl Iterator<Item = Self> {
        MECHANISMS.iter().map(|mechanism| Self(mechanism.as_ref()))
    }

    /// Returns the mechanisms that can run under encryption.
    pub fn encrypted() -> impl Iterator<Item = Self> {
        Self::all().filter(|mechanism| !mechanism.clear_only())
    }

    /// Returns the name as users write it.
    pub fn as_str(self) -> &'static str {
        self.0.name()
    }
}

impl Default for MechanismName {
    fn default() -> Self {
        Self(MECHANISMS[0].as_ref())
    }
}

impl Deref for MechanismName {
    type Target = dyn Mechanism;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl PartialEq for MechanismName {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for MechanismName {}

impl Hash for MechanismName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for MechanismName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MechanismName({})", self.as_str())
    }
}

impl fmt::Display for MechanismName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for MechanismName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::all().find(|known| known.as_str() == name);
        found.ok_or_else(|| Error::UnknownMechanism {
            name: name.to_owned(),
            known: known(),
        })
    }
}

/// Joins the names for the end of a sentence: "a, b or c".
fn known() -> String {
    let names: Vec<&str> = MechanismName::all().map(MechanismName::as_str).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

impl Serialize for MechanismName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for MechanismName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_unknown_names_are_rejected() {
        for mechanism in MechanismName::all() {
            let written = serde_json::to_string(&mechanism).unwrap();
            assert_eq!(written, format!("{:?}", mechanism.as_str()));
            let read: MechanismName = serde_json::from_str(&written).unwrap();
            assert_eq!(read, mechanism);
        }
        assert_eq!(MechanismName::default().as_str(), "staged");
        let error = "rap".parse::<MechanismName>().unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown mechanism \"rap\": choose staged, fhaim-l2, aim, mst or one-ways"
        );
        let error = serde_json::from_str::<MechanismName>("3").unwrap_err();
        let words = "invalid type: integer `3`, expected a string";
        assert!(error.to_string().starts_with(words), "{error}");
    }
}
