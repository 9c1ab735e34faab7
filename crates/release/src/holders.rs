//! Who holds a dataset together, and on whose noise a record's price relies. All of it public.

use serde::{Deserialize, Serialize};

use crate::{Error, UNIT_VARIANCE};

/// The most holders of one dataset.
pub const MAX_HOLDERS: u32 = 128;

/// How a dataset is divided among its holders, and how many of them add noise that everyone relies
/// on. Every holder adds noise of the same variance.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "RawHolders")]
pub struct Holders {
    count: u32,
    honest: u32,
    /// The holder of each attribute, where each has some columns of all records; nothing where each
    /// has all columns of some records.
    #[serde(skip_serializing_if = "Option::is_none")]
    owners: Option<Vec<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHolders {
    count: u32,
    honest: u32,
    #[serde(default)]
    owners: Option<Vec<u32>>,
}

impl TryFrom<RawHolders> for Holders {
    type Error = Error;

    fn try_from(raw: RawHolders) -> Result<Self, Error> {
        let holders = Self::of_records(raw.count, raw.honest)?;
        match raw.owners {
            None => Ok(holders),
            Some(owners) => holders.with_columns(owners),
        }
    }
}

impl Default for Holders {
    fn default() -> Self {
        Self::one()
    }
}

impl Holders {
    /// A single holder.
    pub fn one() -> Self {
        Self {
            count: 1,
            honest: 1,
            owners: None,
        }
    }

    /// `count` holders of records each, of whom `honest` are relied upon.
    ///
    /// # Errors
    /// [`Error::Holders`] unless both are at least 1, `honest` at most `count`, and that at most
    /// [`MAX_HOLDERS`].
    pub fn of_records(count: u32, honest: u32) -> Result<Self, Error> {
        if honest == 0 || honest > count || count > MAX_HOLDERS {
            return Err(Error::Holders { count, honest });
        }
        Ok(Self {
            count,
            honest,
            owners: None,
        })
    }

    /// The same holders, each with the attributes that `owners` names it for.
    ///
    /// # Errors
    /// [`Error::Owners`] where a holder has no attribute, or an attribute another's than theirs.
    pub fn with_columns(self, owners: Vec<u32>) -> Result<Self, Error> {
        let owns = |holder: u32| owners.contains(&holder);
        if !(0..self.count).all(owns) || owners.iter().any(|&owner| owner >= self.count) {
            return Err(Error::Owners(self.count));
        }
        Ok(Self {
            owners: Some(owners),
            ..self
        })
    }

    /// Whether there is one holder.
    pub fn is_one(&self) -> bool {
        self.count == 1
    }

    /// k: how many there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// h: how many of them add noise that is relied upon.
    pub fn honest(&self) -> u32 {
        self.honest
    }

    /// The holder of each attribute, where they hold columns.
    pub fn owners(&self) -> Option<&[u32]> {
        self.owners.as_deref()
    }

    /// The variance of what all holders add, for a fit: `units` of each.
    pub fn fit_variance(&self, units: u64) -> u128 {
        u128::from(UNIT_VARIANCE) * u128::from(units) * u128::from(self.count)
    }

    /// The same in units: what one holder would add.
    pub fn fit_units(&self, units: u64) -> u64 {
        units.saturating_mul(u64::from(self.count))
    }

    /// sqrt(k / h): how much larger the deviation of what all add is than that of what is paid for.
    pub fn inflation(&self) -> f64 {
        (f64::from(self.count) / f64::from(self.honest)).sqrt()
    }

    /// A bound on what the replacement of a part of a record costs, over what adding or removing one
    /// does: |p - p'|^2 <= 2 |p|^2 + 2 |p'|^2.
    pub fn largest_replacement(&self) -> u128 {
        if self.owners.is_some() { 4 } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_holders_are_refused() {
        for (count, honest) in [(0, 0), (1, 0), (2, 3), (MAX_HOLDERS + 1, 1)] {
            assert!(matches!(
                Holders::of_records(count, honest),
                Err(Error::Holders { .. })
            ));
        }
        let two = Holders::of_records(2, 1).unwrap();
        for owners in [vec![0, 0], vec![0, 1, 2], vec![]] {
            assert!(matches!(
                two.clone().with_columns(owners),
                Err(Error::Owners(..))
            ));
        }
        let json = r#"{"count":2,"honest":1,"owners":[0,1,1]}"#;
        let read: Holders = serde_json::from_str(json).unwrap();
        assert_eq!(read, two.with_columns(vec![0, 1, 1]).unwrap());
        assert_eq!(serde_json::to_string(&read).unwrap(), json);
        let bad = json.replace("[0,1,1]", "[0,0,0]");
        let refused = serde_json::from_str::<Holders>(&bad).unwrap_err();
        let owners = Error::Owners(2).to_string();
        assert!(refused.to_string().starts_with(&owners), "{refused}");
    }

    #[test]
    fn what_is_paid_for_is_less_than_what_is_added() {
        let holders = Holders::of_records(8, 2).unwrap();
        assert_eq!(holders.fit_variance(3), 4 * 3 * 8);
        assert_eq!(holders.inflation(), 2.0);
        assert_eq!(Holders::one().inflation(), 1.0);
    }
}
