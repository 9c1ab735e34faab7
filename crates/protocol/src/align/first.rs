//! The first party of an alignment, which compares.

use curve25519_dalek::Scalar;
use fhaim_he::map;
use rand::{CryptoRng, RngCore};
use std::collections::BTreeMap;
use zeroize::Zeroizing;

use super::error::AlignError;
use super::group::{Exponent, GroupElement};
use super::place::{Aligned, Outgoing, Place, UNEXPECTED, entry_of};
use super::table;
use super::wire::Content;

/// The state of the first party.
pub(super) struct First {
    exponent: Zeroizing<Exponent>,
    /// The list that was sent, ascending, and the row of each value.
    list: Vec<(GroupElement, usize)>,
    answers: BTreeMap<usize, Answers>,
}

/// What another party answered.
struct Answers {
    /// Number of rows of the other party.
    rows: usize,
    /// For each value of the list: F of its key, and the value of the table.
    read: Vec<(GroupElement, Scalar)>,
}

impl First {
    pub(super) fn new<R: RngCore + CryptoRng>(
        place: Place,
        hashed: &[GroupElement],
        rng: &mut R,
    ) -> Result<(Self, Outgoing), AlignError> {
        let exponent = Exponent::draw(rng);
        let values = exponent.raise(hashed).ok_or(UNEXPECTED)?;
        let mut list: Vec<(GroupElement, usize)> = values.into_iter().zip(0..).collect();
        list.sort_unstable();
        let values = list.iter().map(|(value, _)| *value).collect();
        let message = place.message((1..place.parties).collect(), Content::List(values));
        let first = Self {
            exponent,
            list,
            answers: BTreeMap::new(),
        };
        Ok((first, message))
    }

    pub(super) fn receive(
        &mut self,
        place: Place,
        from: usize,
        content: Content,
    ) -> Result<Vec<Outgoing>, AlignError> {
        let Content::Answers {
            rows,
            values,
            table,
        } = content
        else {
            return Err(UNEXPECTED);
        };
        if values.len() != self.list.len() {
            return Err(AlignError::Message(
                "the list came back with another number of rows",
            ));
        }
        let outside = AlignError::Message("a value outside of the group");
        let keys = self.exponent.inverse().raise(&values).ok_or(outside)?;
        let read = map(keys, |f| {
            let [point, mask] = entry_of(place, &f);
            (f, table::value(&table, rows, &point) - mask)
        });
        self.answers.insert(from, Answers { rows, read });
        if self.answers.len() + 1 < place.parties {
            return Ok(Vec::new());
        }
        let common = self.common();
        let told = self.answers.iter().map(|(&party, answers)| {
            let of_common = common.iter().filter_map(|&i| answers.read.get(i));
            let content = Content::Common {
                sizes: self.sizes(),
                values: of_common.map(|(f, _)| *f).collect(),
            };
            place.message(vec![party], content)
        });
        Ok(told.collect())
    }

    /// Returns the positions in the list of the keys that all parties have: the other parties'
    /// shares add up to zero.
    fn common(&self) -> Vec<usize> {
        let sum = |i: &usize| {
            let shares = self
                .answers
                .values()
                .filter_map(|answers| answers.read.get(*i));
            shares.map(|(_, share)| share).sum::<Scalar>()
        };
        (0..self.list.len())
            .filter(|i| sum(i) == Scalar::ZERO)
            .collect()
    }

    fn sizes(&self) -> Vec<usize> {
        let others = self.answers.values().map(|answers| answers.rows);
        [self.list.len()].into_iter().chain(others).collect()
    }

    pub(super) fn aligned(&self, place: Place) -> Option<Aligned> {
        let is_complete = self.answers.len() + 1 == place.parties;
        is_complete.then(|| {
            let common = self.common();
            let rows = common.into_iter().filter_map(|i| self.list.get(i));
            Aligned {
                rows: rows.map(|(_, row)| *row).collect(),
                sizes: self.sizes(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::group::hash_to_group;
    use super::super::other::Other;
    use super::super::wire::Message;
    use super::*;
    use crate::request::DatasetId;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;
    use std::collections::BTreeSet;

    const SESSION: [u8; 32] = [2; 32];

    fn place(me: usize) -> Place {
        Place {
            session: SESSION,
            parties: 3,
            me,
        }
    }

    fn content(message: &Outgoing) -> Content {
        Message::from_bytes(&message.bytes).unwrap().content
    }

    /// Delivers all messages to the first of three parties, and returns it.
    fn first_of(lists: [&[u8]; 3]) -> First {
        let hashed = lists.map(|keys| {
            let hashes = keys.iter();
            let hashes = hashes.map(|key| hash_to_group(DatasetId([1; 16]), SESSION, &[*key]));
            hashes.collect::<Vec<_>>()
        });
        let [one, two, three] = hashed;
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let (mut first, list) = First::new(place(0), &one, &mut rng).unwrap();
        let (mut second, half) = Other::new(place(1), two, &mut rng).unwrap();
        let (mut third, other_half) = Other::new(place(2), three, &mut rng).unwrap();
        let others = [(&mut second, 1, other_half, 2), (&mut third, 2, half, 1)];
        for (other, me, half, from) in others {
            let half = content(&half.unwrap());
            assert!(other.receive(place(me), from, half).unwrap().is_empty());
            let answers = other.receive(place(me), 0, content(&list)).unwrap();
            let answers = content(&answers[0]);
            first.receive(place(0), me, answers).unwrap();
        }
        first
    }

    /// Key 1 is common to all, 2 and 3 to two parties, and 4 is the first party's only. A party could
    /// recognise a value that is zero, that repeats, or that has a known sum with another one.
    #[test]
    fn shares_of_rows_that_one_other_party_has_are_as_random_as_those_of_no_other() {
        let first = first_of([&[1, 2, 3, 4], &[1, 2, 10, 11], &[1, 3, 11, 12]]);
        let mut shares = BTreeSet::new();
        let mut zero_sums = Vec::new();
        for (i, (_, row)) in first.list.iter().enumerate() {
            let read = first.answers.values().map(|answers| answers.read[i].1);
            let read: Vec<Scalar> = read.collect();
            if read.iter().sum::<Scalar>() == Scalar::ZERO {
                zero_sums.push(*row);
            }
            shares.extend(read.iter().map(Scalar::to_bytes));
        }
        assert_eq!(zero_sums, [0]);
        assert_eq!(shares.len(), 8, "no share repeats");
        assert!(!shares.contains(&[0; 32]));
        assert_eq!(first.aligned(place(0)).unwrap().rows, [0]);
    }
}
