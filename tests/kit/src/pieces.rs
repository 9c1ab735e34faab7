//! Searches files for any part of some data.
//!
//! This crate is compiled for speed, so that a test can search all files of the services.

use std::collections::HashSet;

/// Pieces of data: the 16 bytes at each multiple of 16. A file with any 32 consecutive bytes of
/// the data has a piece.
pub struct Pieces {
    all: HashSet<u128>,
    /// Whether a piece ends with these 24 bits. This excludes most positions of a file without a lookup.
    ends: Vec<bool>,
}

impl Pieces {
    /// Returns no pieces.
    #[must_use]
    pub fn new() -> Self {
        Self {
            all: HashSet::new(),
            ends: vec![false; 1 << 24],
        }
    }

    /// Returns the number of pieces.
    #[must_use]
    pub fn count(&self) -> usize {
        self.all.len()
    }

    fn end(piece: u128) -> usize {
        (piece & 0xff_ffff) as usize
    }

    /// Adds the pieces of these bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks_exact(16) {
            // Zeros and headers are common to unrelated data.
            let zeros = piece.iter().filter(|&&byte| byte == 0).count();
            if zeros < 6 {
                let piece = u128::from_be_bytes(piece.try_into().unwrap());
                self.all.insert(piece);
                self.ends[Self::end(piece)] = true;
            }
        }
    }

    /// Checks whether the bytes hold a piece at any position.
    #[must_use]
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        let mut last = 0_u128;
        for (read, &byte) in bytes.iter().enumerate() {
            last = last << 8 | u128::from(byte);
            if read >= 15 && self.ends[Self::end(last)] && self.all.contains(&last) {
                return true;
            }
        }
        false
    }
}

impl Default for Pieces {
    fn default() -> Self {
        Self::new()
    }
}
