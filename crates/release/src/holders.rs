//! The public facts about the holders of a dataset: their number, and on how many holders' noise
//! the price of a record relies.

use serde::{Deserialize, Serialize};

use crate::{Error, UNIT_VARIANCE};

/// Largest number of holders of one dataset.
pub const MAX_HOLDERS: u32 = 128;

/// The division of a dataset among its holders, and the number of holders whose noise everyone
/// relies on. Every holder adds noise of the same variance.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "RawHolders")]
pub struct Holders {
    count: u32,
    honest: u32,
    /// The holder of each attribute, if each holder has some columns of all records. Absent if each
    /// holder has all columns of some records.
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
    /// Returns a single holder.
    pub fn one() -> Self {
        Self {
            count: 1,
            honest: 1,
            owners: None,
        }
    }

    /// Returns `count` holders that each have records. The price relies on the noise of `honest` of
    /// them.
    ///
    /// # Errors
    /// [`Error::Holders`] unless 1 <= `honest` <= `count` <= [`MAX_HOLDERS`].
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

    /// Returns the same holders with columns. `owners` has the holder of each attribute.
    ///
    /// # Errors
    /// [`Error::Owners`] if a holder has no attribute, or an attribute has an unknown holder.
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

    /// Returns k, the number of holders.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns h, the number of holders whose noise is relied upon.
    pub fn honest(&self) -> u32 {
        self.honest
    }

    /// Returns the holder of each attribute, if holders have columns.
    pub fn owners(&self) -> Option<&[u32]> {
        self.owners.as_deref()
    }

    /// Returns the variance of the noise of all holders, for a fit, if each holder's variance is
    /// `units`.
    pub fn fit_variance(&self, units: u64) -> u128 {
        u128::from(UNIT_VARIANCE) * u128::from(units) * u128::from(self.count)
    }

    /// Returns the same variance in units, as for a single holder.
    pub fn fit_units(&self, units: u64) -> u64 {
        units.saturating_mul(u64::from(self.count))
    }

    /// Returns sqrt(k / h): the ratio between the standard deviation of all holders' noise and that
    /// of the noise that the price relies on.
    pub fn inflation(&self) -> f64 {
        (f64::from(self.count) / f64::from(self.honest)).sqrt()
    }

    /// Returns a bound on the cost of replacing a part of a record, relative to the cost of adding
    /// or removing a record:
    /// |p - p'|^2 <= 2 |p|^2 + 2 |p'|^2.
    pub fn largest_replacement(&self) -> u128 {
        if self.owners.is_some() { 4 } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_numbers_or_owners_of_holders_are_rejected() {
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
    fn fit_variance_counts_all_holders_and_inflation_the_honest_share() {
        let holders = Holders::of_records(8, 2).unwrap();
        assert_eq!(holders.fit_variance(3), 4 * 3 * 8);
        assert_eq!(holders.inflation(), 2.0);
        assert_eq!(Holders::one().inflation(), 1.0);
    }
}
