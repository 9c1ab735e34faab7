//! The privacy ledger: the releases, their cost, and the remaining budget.

use serde::{Deserialize, Serialize};

use crate::{Error, Price, Rho};

/// A release that is about to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Debit {
    /// Number of the release within its job.
    pub number: u32,
    /// Description of the release, for people.
    pub description: String,
    /// Digest of the release to decrypt. A repetition has the same digest.
    #[serde(with = "hex_digest")]
    pub digest: [u8; 32],
    /// Squared L2 norm by which one record can change the release.
    #[serde(with = "decimal")]
    pub delta2_squared: u128,
    /// Variance of every holder's noise in units of [`BASE_VARIANCE`](crate::BASE_VARIANCE).
    pub variance_units: u64,
    /// Number of holders whose noise the price relies on. 1 if there is one holder; 1 is not
    /// serialized.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub honest: u32,
    /// Number of released integers.
    pub cells: u64,
    /// Cost of the residual ciphertext noise (`rho_leak`).
    pub leak: Rho,
}

fn one() -> u32 {
    1
}

fn is_one(honest: &u32) -> bool {
    *honest == 1
}

/// A release that was made, with its cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The release.
    #[serde(flatten)]
    pub debit: Debit,
    /// Cost of the Gaussian mechanism: `Delta_2^2 / (2 sigma^2)`.
    pub rho: Rho,
    /// Cost of the noise being a sum of ladder samples ([`gap_rho`](crate::gap_rho)).
    pub gap: Rho,
}

impl Entry {
    /// Prices a release.
    ///
    /// # Errors
    /// [`Error::NoNoise`] for variance zero, [`Error::Ratio`] or [`Error::Rho`] for a cost of 2^48
    /// or more.
    pub fn price(debit: Debit) -> Result<Self, Error> {
        if debit.variance_units == 0 {
            return Err(Error::NoNoise(debit.number));
        }
        let Debit {
            delta2_squared,
            variance_units,
            cells,
            honest,
            leak,
            ..
        } = debit;
        let price = Price::of(delta2_squared, variance_units, cells, honest, leak)?;
        Ok(Self {
            debit,
            rho: price.gaussian,
            gap: price.gap,
        })
    }

    /// Returns the total cost of the release, or `None` if it reaches 2^48.
    pub fn cost(&self) -> Option<Rho> {
        let price = Price {
            gaussian: self.rho,
            gap: self.gap,
            leak: self.debit.leak,
        };
        price.total()
    }
}

/// Whether a debit was new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebitOutcome {
    /// The release was debited from the budget.
    Debited,
    /// The same release was debited before, so nothing was debited.
    Repeated,
}

/// A budget and the releases debited from it. It is only data: its owner must store it durably
/// before acting on a debit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawLedger")]
pub struct Ledger {
    budget: Rho,
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct RawLedger {
    budget: Rho,
    entries: Vec<Entry>,
}

impl TryFrom<RawLedger> for Ledger {
    type Error = Error;

    /// Repeats all debits, so that a stored ledger cannot be looser than its own rules.
    fn try_from(raw: RawLedger) -> Result<Self, Error> {
        let mut ledger = Self::new(raw.budget);
        for entry in &raw.entries {
            ledger.debit(entry.debit.clone())?;
        }
        if ledger.entries == raw.entries {
            Ok(ledger)
        } else {
            Err(Error::BrokenLedger)
        }
    }
}

impl Ledger {
    /// Creates a ledger with nothing spent.
    pub fn new(budget: Rho) -> Self {
        Self {
            budget,
            entries: Vec::new(),
        }
    }

    /// Returns the whole budget.
    pub fn budget(&self) -> Rho {
        self.budget
    }

    /// Returns the releases, in the order in which they were debited.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the sum of all costs, which is at most the budget.
    pub fn spent(&self) -> Rho {
        let costs = self.entries.iter().filter_map(Entry::cost);
        // Every debit was checked against the budget, so neither the filter nor the sum drops any.
        Rho::checked_sum(costs).unwrap_or(self.budget)
    }

    /// Returns the remaining budget.
    pub fn left(&self) -> Rho {
        self.budget.checked_sub(self.spent()).unwrap_or(Rho::ZERO)
    }

    /// Debits a release from the budget. On an error the ledger is unchanged.
    ///
    /// # Errors
    /// [`Error::Conflict`] if its number was debited with other content, [`Error::OverBudget`] if
    /// it costs more than is left, and the errors of [`Entry::price`].
    pub fn debit(&mut self, debit: Debit) -> Result<DebitOutcome, Error> {
        let number = debit.number;
        if let Some(entry) = self.entries.iter().find(|e| e.debit.number == number) {
            return if entry.debit == debit {
                Ok(DebitOutcome::Repeated)
            } else {
                Err(Error::Conflict(number))
            };
        }
        let entry = Entry::price(debit)?;
        let left = self.left();
        match entry.cost() {
            Some(cost) if cost <= left => {
                self.entries.push(entry);
                Ok(DebitOutcome::Debited)
            }
            cost => Err(Error::OverBudget {
                number,
                cost: cost.unwrap_or(entry.rho),
                left,
            }),
        }
    }
}

/// A digest as hexadecimal text, for `#[serde(with = "fhaim_dp::hex_digest")]`.
pub mod hex_digest {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes 64 digits.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(digest: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
        let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&text)
    }

    /// Reads 64 digits.
    ///
    /// # Errors
    /// Any other text.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(deserializer)?;
        decode(text.as_bytes())
            .ok_or_else(|| D::Error::custom("a digest must have 64 lower-case hexadecimal digits"))
    }

    fn decode(text: &[u8]) -> Option<[u8; 32]> {
        let mut digest = [0; 32];
        if text.len() != 2 * digest.len() {
            return None;
        }
        for (byte, &[high, low]) in digest.iter_mut().zip(text.as_chunks().0) {
            *byte = nibble(high)? << 4 | nibble(low)?;
        }
        Some(digest)
    }

    fn nibble(digit: u8) -> Option<u8> {
        match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        }
    }
}

/// Serializes 128-bit integers as decimal text, since JSON numbers cannot hold them.
pub mod decimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes the integer.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    /// Reads the integer.
    ///
    /// # Errors
    /// Text that is not an integer of 128 bits.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAGE;
    use crate::price::release_rho;
    use crate::{Leak, least_variance_units};

    fn debit(number: u32, delta2_squared: u128, variance_units: u64) -> Debit {
        Debit {
            number,
            description: format!("release {number}"),
            digest: [number as u8; 32],
            delta2_squared,
            variance_units,
            honest: 1,
            cells: 1,
            leak: Rho::ZERO,
        }
    }

    fn rho(numerator: u128, denominator: u128) -> Rho {
        Rho::ratio_up(numerator, denominator).unwrap()
    }

    #[test]
    fn debits_may_use_the_budget_exactly_but_not_exceed_it() {
        let mut ledger = Ledger::new(rho(3, 8));
        // Variance 4 * 4: each release costs 4 / 32 = 1/8, and has no gap since it uses one ladder
        // sample.
        for number in 0..3 {
            assert_eq!(ledger.debit(debit(number, 4, 4)), Ok(DebitOutcome::Debited));
        }
        assert_eq!((ledger.spent(), ledger.left()), (rho(3, 8), Rho::ZERO));
        let before = ledger.clone();
        let refused = ledger.debit(debit(3, 1, 1 << 40));
        assert!(matches!(refused, Err(Error::OverBudget { number: 3, .. })));
        assert_eq!(ledger, before);
    }

    #[test]
    fn repeated_debit_is_free_and_other_content_is_rejected() {
        let mut ledger = Ledger::new(rho(1, 1));
        ledger.debit(debit(7, 2, 16)).unwrap();
        let before = ledger.clone();
        assert_eq!(ledger.debit(debit(7, 2, 16)), Ok(DebitOutcome::Repeated));
        let mut other = debit(7, 2, 16);
        other.digest[31] ^= 1;
        for changed in [other, debit(7, 2, 17), debit(7, 1, 16)] {
            assert_eq!(ledger.debit(changed), Err(Error::Conflict(7)));
        }
        assert_eq!(ledger, before);
    }

    #[test]
    fn leak_and_gap_are_charged() {
        let mut release = debit(0, 4, 4);
        release.leak = rho(1, 1 << 40);
        let entry = Entry::price(release).unwrap();
        let expected = rho(1, 8).checked_add(rho(1, 1 << 40)).unwrap();
        assert_eq!((entry.cost(), entry.gap), (Some(expected), Rho::ZERO));
        assert!(Entry::price(debit(0, 4, 6)).unwrap().gap > Rho::ZERO);
        assert_eq!(Entry::price(debit(9, 4, 0)), Err(Error::NoNoise(9)));
    }

    /// A release pays for each ciphertext that it may take part in: two pages under two plaintext
    /// moduli are four ciphertexts, and three pages are six.
    #[test]
    fn every_ciphertext_of_a_release_is_charged_but_at_least_four() {
        let leak = |residues, cells| {
            let ciphertext = rho(1, 1 << 30);
            Leak {
                ciphertext,
                residues,
            }
            .of(cells)
        };
        assert_eq!(leak(1, 1), Ok(rho(4, 1 << 30)));
        assert_eq!(leak(2, PAGE), Ok(rho(4, 1 << 30)));
        assert_eq!(leak(2, PAGE + 2), Ok(rho(6, 1 << 30)));
        assert_eq!(leak(1, 4 * PAGE + 1), Ok(rho(5, 1 << 30)));
        assert_eq!(leak(1, 4 * PAGE + 2), Ok(rho(6, 1 << 30)));
        assert_eq!(Leak::NONE.of(usize::MAX), Ok(Rho::ZERO));
    }

    #[test]
    fn least_variance_is_affordable_and_minimal() {
        for delta2_squared in [1u128, 3, 100, 1 << 50] {
            let budget = rho(1, 1000);
            let units = least_variance_units(delta2_squared, budget, 1).unwrap();
            assert!(release_rho(delta2_squared, units, 1).unwrap() <= budget);
            assert!(release_rho(delta2_squared, units - 1, 1).is_ok_and(|c| c > budget));
        }
        assert!(matches!(
            least_variance_units(1, Rho::ZERO, 1),
            Err(Error::Ratio(..))
        ));
        assert_eq!(least_variance_units(0, Rho::ZERO, 1), Ok(1));
    }

    /// h holders add h times the variance. h = 1 is not serialized, as in earlier formats.
    #[test]
    fn price_is_divided_by_the_honest_holders() {
        let of = |honest, variance_units| {
            let debit = Debit {
                honest,
                ..debit(0, 4, variance_units)
            };
            Entry::price(debit).unwrap()
        };
        assert_eq!(of(4, 16).rho, of(1, 64).rho);
        assert_eq!(of(3, 1).rho, rho(4, 24));
        assert!(of(3, 1).gap > Rho::ZERO && of(1, 1).gap == Rho::ZERO);
        let units = least_variance_units(4, rho(1, 10), 3).unwrap();
        assert!(of(3, units).rho <= rho(1, 10) && of(3, units - 1).rho > rho(1, 10));
        let text = |honest| serde_json::to_string(&of(honest, 4)).unwrap();
        assert!(!text(1).contains("honest"));
        assert!(text(3).contains("\"honest\":3"));
        assert_eq!(serde_json::from_str::<Entry>(&text(3)).unwrap(), of(3, 4));
        let mut none = debit(0, 4, 4);
        none.honest = 0;
        assert!(matches!(Entry::price(none), Err(Error::Ratio(..))));
    }

    #[test]
    fn inconsistent_stored_ledgers_are_rejected() {
        let mut ledger = Ledger::new(rho(1, 4));
        ledger.debit(debit(1, 2, 16)).unwrap();
        ledger.debit(debit(2, 3, 17)).unwrap();
        let text = serde_json::to_string(&ledger).unwrap();
        assert_eq!(serde_json::from_str::<Ledger>(&text).unwrap(), ledger);

        let refused = |value: serde_json::Value| {
            let error = serde_json::from_value::<Ledger>(value).unwrap_err();
            error.to_string()
        };
        let broken = Error::BrokenLedger.to_string();
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value["budget"] = "1".into();
        let over = refused(value);
        assert!(over.starts_with("release 1 costs rho = "), "{over}");
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value["entries"][1]["rho"] = "1".into();
        assert_eq!(refused(value), broken);
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value["entries"][1] = value["entries"][0].clone();
        assert_eq!(refused(value), broken);
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value["entries"][0]["digest"] = "zz".into();
        assert_eq!(
            refused(value),
            "a digest must have 64 lower-case hexadecimal digits"
        );
    }
}
