//! Masked sums with which holders of records check a release, and which reveal nothing but the sum.
//!
//! A release is the sum of all holders' exact statistics and noises. Each holder computes its own
//! summand and adds one mask for every other holder. Of two holders the one with the lower number
//! adds the mask and the other one subtracts it, modulo 2^64. So all masks cancel in the sum of all
//! holders, and in no smaller sum (Bonawitz et al. 2017, without drop-outs). Masks are drawn with a
//! key that only the two holders have (Diffie-Hellman of their keys in the roster, which all have
//! signed), bound to the release's statement: dataset, job, run, positions and request. If all is
//! well, the sum is the release.

use crate::Error;
use crate::roster::{HolderSigningKey, Member};
use hkdf::Hkdf;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sha2::Sha256;
use zeroize::Zeroizing;

/// The masks that one holder adds to its summands.
#[derive(Debug)]
pub struct Masks {
    number: u32,
    /// Keys by the other holder's number.
    keys: Vec<(u32, PairKey)>,
}

struct PairKey(Zeroizing<[u8; 32]>);

impl std::fmt::Debug for PairKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PairKey")
    }
}

impl Masks {
    /// Derives the masks of holder `number` of a roster.
    ///
    /// # Errors
    /// [`Error::Signature`] if the roster has another key for this holder, or an invalid one for
    /// another.
    pub fn new(number: u32, members: &[Member], key: &HolderSigningKey) -> Result<Self, Error> {
        let own = members.get(number as usize).map(|member| member.key);
        if own != Some(key.public()) {
            let reason = "this holder, for whom the roster has another key than this machine";
            return Err(Error::Signature(reason.to_owned()));
        }
        let others = (0..).zip(members).filter(|(other, _)| *other != number);
        let keys = others.map(|(other, member)| Ok((other, PairKey(key.shared(&member.key)?))));
        Ok(Self {
            number,
            keys: keys.collect::<Result<_, Error>>()?,
        })
    }

    /// Masks the summands of the release with this statement.
    pub fn mask(&self, statement: &[u8; 32], summands: &[i64]) -> Vec<u64> {
        let mut masked: Vec<u64> = summands.iter().map(|n| n.cast_unsigned()).collect();
        for (other, key) in &self.keys {
            let mut generator = key.generator(statement);
            for value in &mut masked {
                let mask = generator.next_u64();
                *value = match self.number < *other {
                    true => value.wrapping_add(mask),
                    false => value.wrapping_sub(mask),
                };
            }
        }
        masked
    }
}

impl PairKey {
    #[expect(
        clippy::expect_used,
        reason = "32 bytes are one block of the 255 that expansion is limited to"
    )]
    fn generator(&self, statement: &[u8; 32]) -> ChaCha20Rng {
        let mut key = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(Some(b"fhaim share 1"), self.0.as_ref())
            .expand(statement, key.as_mut())
            .expect("32 bytes are one block");
        ChaCha20Rng::from_seed(*key)
    }
}

/// Adds the masked summands of all holders. The sum should be the release. Returns `None` if their
/// lengths differ.
pub fn unmask(shares: &[&[u64]]) -> Option<Vec<i64>> {
    let (first, others) = shares.split_first()?;
    let mut sums = first.to_vec();
    for other in others {
        if other.len() != sums.len() {
            return None;
        }
        for (sum, value) in sums.iter_mut().zip(*other) {
            *sum = sum.wrapping_add(*value);
        }
    }
    Some(sums.into_iter().map(u64::cast_signed).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting() -> (Vec<HolderSigningKey>, Vec<Member>) {
        let keys: Vec<_> = (1..4)
            .map(|n| HolderSigningKey::from_bytes(&[n; 32]))
            .collect();
        let member = |key: &HolderSigningKey| Member {
            account: format!("{:02x}", key.public()[0]),
            columns: Vec::new(),
            record_bound: 50,
            key: key.public(),
        };
        let members = keys.iter().map(member).collect();
        (keys, members)
    }

    #[test]
    fn masks_cancel_only_in_the_sum_of_all_holders() {
        let (keys, members) = setting();
        let summands = [[5, -7, i64::MAX / 4], [0, 1, -3], [2, 3, 4]];
        let masks: Vec<_> = (0..)
            .zip(&keys)
            .map(|(number, key)| Masks::new(number, &members, key).unwrap())
            .collect();
        let masked = |statement: u8| -> Vec<Vec<u64>> {
            let of_each = masks.iter().zip(&summands);
            of_each
                .map(|(masks, own)| masks.mask(&[statement; 32], own))
                .collect()
        };
        let shares = masked(1);
        let of = |numbers: &[usize]| {
            let some: Vec<&[u64]> = numbers.iter().map(|&n| shares[n].as_slice()).collect();
            unmask(&some).unwrap()
        };
        assert_eq!(of(&[0, 1, 2]), [7, -3, i64::MAX / 4 + 1]);
        assert_eq!(masked(1), shares);
        // No single share and no pair reveals its sum, and masks of two statements differ.
        for (number, own) in summands.iter().enumerate() {
            assert!(
                of(&[number])
                    .iter()
                    .zip(own)
                    .all(|(shown, own)| shown != own)
            );
            let pair: Vec<usize> = (0..3).filter(|&other| other != number).collect();
            let sum = |cell: usize| pair.iter().map(|&n| summands[n][cell]).sum::<i64>();
            assert!((0..3).all(|cell| of(&pair)[cell] != sum(cell)));
            assert!(
                masked(2)[number]
                    .iter()
                    .zip(&shares[number])
                    .all(|(a, b)| a != b)
            );
        }
        assert_eq!(unmask(&[&shares[0], &shares[1][..2]]), None);
        assert_eq!(unmask(&[]), None);
    }

    #[test]
    fn masks_need_the_keys_of_the_roster() {
        let (keys, mut members) = setting();
        assert!(matches!(
            Masks::new(1, &members, &keys[0]),
            Err(Error::Signature(..))
        ));
        assert!(matches!(
            Masks::new(3, &members, &keys[0]),
            Err(Error::Signature(..))
        ));
        // The neutral element, for which every product is the same.
        members[2].key = [0; 32];
        members[2].key[0] = 1;
        assert!(matches!(
            Masks::new(0, &members, &keys[0]),
            Err(Error::Signature(..))
        ));
    }
}
