//! Keys that ladders are drawn from, so that the noise can be drawn again.
//!
//! A holder that keeps its ladder's key can check later whether a released integer is the exact
//! statistic plus its noise. While the key is kept, its owner can also subtract that noise.

use hkdf::Hkdf;
use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, SeedableRng};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::{Error, LadderPlan, Span};

/// The key of one ladder of one dataset, for one upload of one table. With two tables, the same
/// noise would reveal the difference of their counts.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct LadderKey {
    secret: [u8; 32],
    #[zeroize(skip)]
    dataset: [u8; 16],
}

impl std::fmt::Debug for LadderKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LadderKey")
    }
}

impl LadderKey {
    /// Draws a key. `rng` must be the operating system's generator, except in tests.
    pub fn random<R: CryptoRng + ?Sized>(dataset: [u8; 16], rng: &mut R) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        rng.fill_bytes(secret.as_mut());
        Self::from_bytes(dataset, &secret)
    }

    /// Returns the key with these bytes.
    pub fn from_bytes(dataset: [u8; 16], secret: &[u8; 32]) -> Self {
        Self {
            secret: *secret,
            dataset,
        }
    }

    /// Returns the key's bytes. Keep them where only their owner can read them.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.secret
    }

    #[expect(
        clippy::expect_used,
        reason = "32 bytes are one block of the 255 that expansion is limited to"
    )]
    fn derive(&self, info: &[&[u8]]) -> Zeroizing<[u8; 32]> {
        let mut derived = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(Some(b"fhaim ladder 1"), &self.secret)
            .expand_multi_info(info, derived.as_mut())
            .expect("32 bytes are one block");
        derived
    }

    /// Returns the generator of the vector at (`page`, `level`, `index`): ChaCha20, keyed with
    /// HKDF-SHA256 of the key for the dataset and the vector's place.
    fn generator(&self, page: usize, level: usize, index: usize) -> ChaCha20Rng {
        let place = [page, level, index].map(|n| (n as u64).to_le_bytes());
        let [page, level, index] = &place;
        let key = self.derive(&[&self.dataset, b"vector", page, level, index]);
        ChaCha20Rng::from_seed(*key)
    }

    /// Returns the vector at (`page`, `level`, `index`) of a ladder: [`crate::PAGE`] integers, zero
    /// at positions beyond the plan, or `None` outside the ladder.
    pub fn vector(
        &self,
        plan: &LadderPlan,
        page: usize,
        level: usize,
        index: usize,
    ) -> Option<Zeroizing<Vec<i64>>> {
        plan.draw_vector(page, level, index, &mut self.generator(page, level, index))
    }

    /// Returns a digest of a table under this key, from the SHA-256 of its content. It reveals
    /// nothing about the table without the key.
    pub fn table_digest(&self, content: &[u8; 32]) -> [u8; 32] {
        *self.derive(&[&self.dataset, b"table", content])
    }
}

/// The noise of a keyed ladder, drawn on demand. It caches the vectors of one page, since releases
/// proceed page by page.
pub struct KeyedLadder<'a> {
    key: &'a LadderKey,
    plan: LadderPlan,
    page: usize,
    /// Vectors by level and index.
    vectors: BTreeMap<(usize, usize), Zeroizing<Vec<i64>>>,
}

impl std::fmt::Debug for KeyedLadder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyedLadder")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl<'a> KeyedLadder<'a> {
    /// Creates the ladder of a key with the uploaded size.
    pub fn new(key: &'a LadderKey, plan: LadderPlan) -> Self {
        Self {
            key,
            plan,
            page: 0,
            vectors: BTreeMap::new(),
        }
    }

    /// Returns the noise of variance `4 * variance_units` for a release at `spans`, cell by cell.
    ///
    /// # Errors
    /// Those of [`crate::Ladder::noise`].
    pub fn release_noise(
        &mut self,
        spans: &[Span],
        variance_units: u64,
    ) -> Result<Zeroizing<Vec<i64>>, Error> {
        let mut cells = Zeroizing::new(Vec::with_capacity(spans.iter().map(|s| s.len).sum()));
        for &span in spans {
            if span.page != self.page {
                self.vectors.clear();
                self.page = span.page;
            }
            let plan = self.plan;
            let noise = plan.noise(span, variance_units, |level, index, sums| {
                let samples = self.vector(level, index)?.get(span.range())?;
                for (sum, sample) in sums.iter_mut().zip(samples) {
                    *sum += sample;
                }
                Some(())
            })?;
            cells.extend_from_slice(&noise);
        }
        Ok(cells)
    }

    /// Returns a vector of the page, and draws it at the first call.
    fn vector(&mut self, level: usize, index: usize) -> Option<&[i64]> {
        let vector = match self.vectors.entry((level, index)) {
            Entry::Occupied(drawn) => drawn.into_mut(),
            Entry::Vacant(place) => {
                place.insert(self.key.vector(&self.plan, self.page, level, index)?)
            }
        };
        Some(vector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PAGE, vectors_of_digit};
    use rand_core::RngCore;
    use sha2::Digest;

    const DATASET: [u8; 16] = [7; 16];

    fn key(byte: u8) -> LadderKey {
        LadderKey::from_bytes(DATASET, &[byte; 32])
    }

    /// The noise of a release is the sum of the uploaded vectors that its digits use, also across
    /// pages.
    #[test]
    fn release_noise_is_the_sum_of_uploaded_vectors() {
        let plan = LadderPlan::new(2 * PAGE, 1 << 6).unwrap();
        let key = key(1);
        let mut ladder = KeyedLadder::new(&key, plan);
        let span = |page, start, len| Span { page, start, len };
        let spans = [span(0, PAGE - 2, 2), span(1, 0, 3)];
        // 27 = 3 + 2 * 4 + 1 * 16.
        let noise = ladder.release_noise(&spans, 27).unwrap();
        let places = [(0, PAGE - 2), (0, PAGE - 1), (1, 0), (1, 1), (1, 2)];
        for (noise, (page, position)) in noise.iter().zip(places) {
            let digits = [(0, 3), (1, 2), (2, 1)];
            let vectors = digits.iter().flat_map(|&(level, digit)| {
                vectors_of_digit(digit).map(move |index| (level, index))
            });
            let sum: i64 = vectors
                .map(|(level, index)| key.vector(&plan, page, level, index).unwrap()[position])
                .sum();
            assert_eq!(*noise, sum, "{page} {position}");
        }
        assert_eq!(*ladder.release_noise(&spans, 27).unwrap(), *noise);
        let outside = ladder.release_noise(&[span(2, 0, 1)], 27);
        assert!(matches!(outside, Err(Error::OutsideLadder { page: 2, .. })));
        let large = ladder.release_noise(&spans, 1 << 20);
        assert!(matches!(large, Err(Error::VarianceTooLarge { .. })));
    }

    /// All vectors differ: within a key, between keys and between datasets.
    #[test]
    fn ladder_vectors_have_distinct_generators() {
        let first =
            |key: &LadderKey, (page, level, index)| key.generator(page, level, index).next_u64();
        let mut seen: Vec<u64> = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
            .map(|place| first(&key(1), place))
            .to_vec();
        seen.push(first(&key(2), (0, 0, 0)));
        seen.push(first(&LadderKey::from_bytes([8; 16], &[1; 32]), (0, 0, 0)));
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 6);
        assert_ne!(key(1).table_digest(&[0; 32]), key(1).table_digest(&[1; 32]));
        assert_ne!(key(1).table_digest(&[0; 32]), key(2).table_digest(&[0; 32]));
    }

    /// `verify` draws the noise of an upload again from its key, so a key must always give the same
    /// noise.
    #[test]
    fn noise_of_a_key_is_unchanged() {
        let plan = LadderPlan::new(PAGE, 1 << 6).unwrap();
        let vector = key(3).vector(&plan, 0, 2, 1).unwrap();
        let bytes: Vec<u8> = vector.iter().flat_map(|n| n.to_le_bytes()).collect();
        let digest: Vec<u8> = Sha256::digest(&bytes).to_vec();
        let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            text,
            "1b75b6859ec6e58b75defbd7c4ef73600a164ca6f6d6a950921afd48d8e9d541"
        );
    }
}
