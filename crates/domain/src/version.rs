//! The version of a stored or sent JSON format.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The version of a JSON format, for a key such as `"version": 1`.
///
/// It serializes as the number `N`. Deserialization rejects any other number, so a struct that contains it needs no
/// separate check.
/// ```
/// use fhaim_domain::Version;
///
/// let version: Version<1> = serde_json::from_str("1").unwrap();
/// assert_eq!(serde_json::to_string(&version).unwrap(), "1");
/// let refused = serde_json::from_str::<Version<1>>("2").unwrap_err();
/// assert!(refused.to_string().starts_with("version 2 is not known"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Version<const N: u8>;

impl<const N: u8> Serialize for Version<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(N)
    }
}

impl<'de, const N: u8> Deserialize<'de> for Version<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = u64::deserialize(deserializer)?;
        if found == u64::from(N) {
            return Ok(Self);
        }
        Err(D::Error::custom(format!(
            "version {found} is not known: this program reads version {N}"
        )))
    }
}
