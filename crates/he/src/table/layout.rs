//! Positions of records and cells in polynomials.
//!
//! Record r of a chunk is the coefficient of X^r. With at most n / 2 records, the *stride* s is
//! the next power of two, and one product carries n / s cells, at the multiples of s (*slots*).
//! A packed ciphertext (*page*) holds n cells. Cell position p is coefficient `bit_reverse(p)`,
//! so that neighbouring cells share the early levels of the packing tree.

use crate::error::{Error, Result};
use crate::scheme::ring::DEGREE;
use fhaim_ntt::bit_reverse;
use serde::{Deserialize, Serialize};

/// Number of cells of a page, and of its noise positions.
pub const PAGE: usize = DEGREE;

/// Packing levels: level l applies X -> X^(2^l + 1), l = 1..=13.
pub(crate) const LEVELS: usize = DEGREE.trailing_zeros() as usize;

/// Levels 1..=8, at which the tree of some layout begins: from one slot to n / MIN_STRIDE.
pub(crate) const FIRST_LEVELS: usize = (DEGREE / Layout::MIN_STRIDE).trailing_zeros() as usize + 1;

/// Number of levels of a packing tree that one tile covers. Every tree is higher: the smallest stride leaves 2^6
/// leaves.
pub(crate) const TILE_HEIGHT: usize = 4;
const _: () = assert!(Layout::MIN_STRIDE >> TILE_HEIGHT > 0);

/// The public shape of an encrypted table. It shows the number of records only up to a multiple of
/// 8192 or, below that, a power of two. A table of several holders can have several chunks at any
/// stride ([`Layout::of_many`]). A stored table of one holder cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawLayout")]
pub struct Layout {
    chunks: usize,
    stride: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLayout {
    chunks: usize,
    stride: usize,
}

impl TryFrom<RawLayout> for Layout {
    type Error = Error;

    fn try_from(raw: RawLayout) -> Result<Self> {
        Self::from_parts(raw.chunks, raw.stride)
    }
}

impl Layout {
    /// Smallest stride. A table with fewer records looks like a table with this number of records.
    pub const MIN_STRIDE: usize = 64;

    /// Returns the layout for `records` records (at least one).
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for zero records.
    pub fn for_records(records: usize) -> Result<Self> {
        match records {
            0 => Err(Error::OutOfRange("a table needs at least one record")),
            1..=DEGREE => Ok(Self {
                chunks: 1,
                stride: records.next_power_of_two().max(Self::MIN_STRIDE),
            }),
            _ => Ok(Self {
                chunks: records.div_ceil(DEGREE),
                stride: DEGREE,
            }),
        }
    }

    /// Returns the layout of one holder's table from its public numbers.
    ///
    /// # Errors
    /// [`Error::Malformed`] unless some number of records has this layout.
    pub fn from_parts(chunks: usize, stride: usize) -> Result<Self> {
        if chunks > 1 && stride != DEGREE {
            return Err(Self::impossible());
        }
        Self::of_many(chunks, stride)
    }

    /// Returns the layout of several holders' tables together, which may have several chunks at a stride below 8192.
    ///
    /// # Errors
    /// [`Error::Malformed`] if no tables have this layout together.
    pub fn of_many(chunks: usize, stride: usize) -> Result<Self> {
        let strides = Self::MIN_STRIDE..=DEGREE;
        if chunks > 0 && stride.is_power_of_two() && strides.contains(&stride) {
            Ok(Self { chunks, stride })
        } else {
            Err(Self::impossible())
        }
    }

    fn impossible() -> Error {
        Error::Malformed {
            what: "layout",
            reason: "no table has this shape",
        }
    }

    /// Returns the number of record chunks, which is the number of ciphertexts of a column.
    pub fn chunks(&self) -> usize {
        self.chunks
    }

    /// Returns the number of coefficients that are reserved for the records of a chunk.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Returns the number of cells that one product carries.
    pub fn slots(&self) -> usize {
        DEGREE / self.stride
    }

    /// Returns the smallest number of records of one holder's table with this layout.
    pub fn min_records(&self) -> usize {
        match (self.chunks, self.stride) {
            (1, Self::MIN_STRIDE) => 1,
            (1, stride) => stride / 2 + 1,
            (chunks, stride) => (chunks - 1) * stride + 1,
        }
    }

    /// Returns the largest number of records with this layout, of one holder or several.
    pub fn max_records(&self) -> usize {
        self.chunks * self.stride
    }

    /// Returns the leaf of the packing tree, and the slot of its product, that hold position `p`.
    pub(crate) fn place(&self, p: usize) -> (usize, usize) {
        let slots = self.slots();
        (p / slots, bit_reverse(p % slots, slots.trailing_zeros()))
    }
}

/// Returns the coefficient that holds cell position `p` of a page.
pub fn coefficient(p: usize) -> usize {
    bit_reverse(p, DEGREE.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_of_records_is_unique_and_impossible_shapes_are_rejected() {
        for (records, chunks, stride) in [
            (1, 1, 64),
            (65, 1, 128),
            (286, 1, 512),
            (8192, 1, 8192),
            (8193, 2, 8192),
        ] {
            let layout = Layout::for_records(records).unwrap();
            assert_eq!((layout.chunks(), layout.stride()), (chunks, stride));
            for edge in [layout.min_records(), layout.max_records()] {
                assert_eq!(Layout::for_records(edge).unwrap(), layout);
            }
            let below = Layout::for_records(layout.min_records() - 1);
            assert_ne!(below.ok(), Some(layout));
            let above = Layout::for_records(layout.max_records() + 1).unwrap();
            assert_ne!(above, layout);
            assert_eq!(Layout::from_parts(chunks, stride).unwrap(), layout);
        }
        let refused = Layout::for_records(0);
        assert!(matches!(refused, Err(Error::OutOfRange(_))), "{refused:?}");
        for (chunks, stride) in [(0, 64), (1, 32), (1, 100), (1, 16384), (2, 4096)] {
            let refused = Layout::from_parts(chunks, stride);
            assert!(
                matches!(refused, Err(Error::Malformed { .. })),
                "{refused:?}"
            );
        }
        for (chunks, stride) in [(0, 64), (2, 32), (2, 100), (2, 16384)] {
            let refused = Layout::of_many(chunks, stride);
            assert!(
                matches!(refused, Err(Error::Malformed { .. })),
                "{refused:?}"
            );
        }
        let many = Layout::of_many(3, 128).unwrap();
        assert_eq!((many.max_records(), many.slots()), (3 * 128, 64));
    }

    #[test]
    fn every_coefficient_has_one_position() {
        let mut seen = vec![false; PAGE];
        (0..PAGE).for_each(|p| seen[coefficient(p)] = true);
        assert!(seen.into_iter().all(|s| s));
    }
}
