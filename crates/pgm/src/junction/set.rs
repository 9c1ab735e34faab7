//! Sets of attributes of a known width.

use std::ops::{BitAnd, BitOr, BitOrAssign};

use super::is_member;

/// A set of attributes below 64 W, with a bit for each. Knowing W at compile time makes an
/// elimination twice as fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Set<const W: usize>([u64; W]);

impl<const W: usize> Set<W> {
    pub const EMPTY: Self = Self([0; W]);

    /// Returns the set of a row of at most W words.
    pub fn of_row(row: &[u64]) -> Self {
        let mut words = [0; W];
        words.iter_mut().zip(row).for_each(|(w, &r)| *w = r);
        Self(words)
    }

    /// Returns the set of only `a`. It writes every word, because the processor would have to wait
    /// for a write to a computed position.
    pub fn only(a: usize) -> Self {
        Self(std::array::from_fn(|w| u64::from(w == a / 64) << (a % 64)))
    }

    pub fn has(&self, a: usize) -> bool {
        is_member(&self.0, a)
    }

    pub fn without(self, a: usize) -> Self {
        self.minus(&Self::only(a))
    }

    /// Returns the attributes that `other` does not have.
    pub fn minus(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(x, y)| *x &= !y);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// Whether the set has at least two attributes.
    pub fn has_two(&self) -> bool {
        let mut nonempty = self.0.iter().filter(|&&word| word != 0);
        match (nonempty.next(), nonempty.next()) {
            (Some(_), Some(_)) => true,
            (Some(word), None) => word & (word - 1) != 0,
            (None, _) => false,
        }
    }

    /// Returns the lowest attribute.
    pub fn first(&self) -> Option<usize> {
        let word = self.0.iter().position(|&word| word != 0)?;
        Some(word * 64 + self.0[word].trailing_zeros() as usize)
    }

    /// Iterates over the attributes in ascending order.
    pub fn iter(self) -> Members<W> {
        Members {
            rest: self.0,
            word: 0,
        }
    }
}

/// The attributes of a [`Set`], ascending.
pub(super) struct Members<const W: usize> {
    rest: [u64; W],
    word: usize,
}

impl<const W: usize> Iterator for Members<W> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while let Some(rest) = self.rest.get_mut(self.word) {
            if *rest != 0 {
                let bit = rest.trailing_zeros() as usize;
                *rest &= *rest - 1;
                return Some(self.word * 64 + bit);
            }
            self.word += 1;
        }
        None
    }

    /// Uses a loop for each word, which takes half the time of a single loop.
    #[inline]
    fn fold<B, F: FnMut(B, usize) -> B>(self, first: B, mut next: F) -> B {
        let mut folded = first;
        for (w, word) in self.rest.into_iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                folded = next(folded, w * 64 + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
        folded
    }
}

impl<const W: usize> BitOr for Set<W> {
    type Output = Self;

    fn bitor(mut self, other: Self) -> Self {
        self |= other;
        self
    }
}

impl<const W: usize> BitOrAssign for Set<W> {
    fn bitor_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(x, y)| *x |= y);
    }
}

impl<const W: usize> BitAnd for Set<W> {
    type Output = Self;

    fn bitand(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(x, y)| *x &= y);
        self
    }
}
