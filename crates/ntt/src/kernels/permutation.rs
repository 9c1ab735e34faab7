//! Permutations of a transform's values, which apply automorphisms.
#![expect(
    clippy::indexing_slicing,
    reason = "an index beyond the values is a caller's error and must panic"
)]

use crate::modular::Modulus;

/// A permutation of values.
///
/// An automorphism X -> X^g, g odd, multiplies the exponents of a transform's points by g. Values are in bit-reversed
/// order, so eight neighbours differ only in the highest bits of their exponents, and so do their images. Whole
/// blocks of eight values are therefore moved, and permuted within. Vectors do this one block at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    map: Vec<u32>,
    /// Whether the images of every eight neighbours are also eight neighbours.
    in_blocks: bool,
}

impl Permutation {
    /// Makes the permutation that puts `x[map[i]]` at index i.
    pub fn new(map: Vec<u32>) -> Self {
        let (blocks, rest) = map.as_chunks::<8>();
        let together = |block: &[u32; 8]| block.iter().all(|i| i / 8 == block[0] / 8);
        Self {
            in_blocks: rest.is_empty() && blocks.iter().all(together),
            map,
        }
    }

    /// Writes the image of `x` to `out`.
    ///
    /// # Panics
    /// For an index that `x` does not have.
    pub fn apply(&self, x: &[u64], out: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        if self.in_blocks && std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the features.
            return unsafe { vectors::apply(&self.map, x, out) };
        }
        for (out, &i) in out.iter_mut().zip(&self.map) {
            *out = x[i as usize];
        }
    }

    /// Adds the image of the residues `x` to `out`.
    ///
    /// # Panics
    /// For an index that `x` does not have.
    pub fn add(&self, m: Modulus, x: &[u64], out: &mut [u64]) {
        #[cfg(target_arch = "x86_64")]
        if self.in_blocks && std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the features.
            return unsafe { vectors::add(&self.map, m, x, out) };
        }
        for (out, &i) in out.iter_mut().zip(&self.map) {
            *out = m.add(*out, x[i as usize]);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod vectors {
    use crate::ifma::{Words, load, splat, store};
    use crate::modular::Modulus;
    use std::arch::x86_64::*;

    /// Returns the block that eight values come from, in the order of the image.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn block(x: &[Words], map: &[u32; 8]) -> __m512i {
        // The instruction uses only the lowest three bits of an index.
        let within = load(&map.map(u64::from));
        _mm512_permutexvar_epi64(within, load(&x[map[0] as usize / 8]))
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn apply(map: &[u32], x: &[u64], out: &mut [u64]) {
        let x = x.as_chunks().0;
        for (out, map) in out.as_chunks_mut().0.iter_mut().zip(map.as_chunks().0) {
            store(out, block(x, map));
        }
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn add(map: &[u32], m: Modulus, x: &[u64], out: &mut [u64]) {
        let (x, q) = (x.as_chunks().0, splat(m.value()));
        for (out, map) in out.as_chunks_mut().0.iter_mut().zip(map.as_chunks().0) {
            let sum = _mm512_add_epi64(load(out), block(x, map));
            store(out, _mm512_min_epu64(sum, _mm512_sub_epi64(sum, q)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bit_reverse;

    const BITS: u32 = 6;

    /// Returns the map of X -> X^g on values in bit-reversed order.
    fn automorphism(g: usize) -> Vec<u32> {
        let place = |i: usize| {
            let exponent = (2 * bit_reverse(i, BITS) + 1) * g % (2 << BITS);
            bit_reverse((exponent - 1) / 2, BITS) as u32
        };
        (0..1 << BITS).map(place).collect()
    }

    #[test]
    fn images_equal_those_of_plain_loops() {
        let shuffled = (0..1u32 << BITS).map(|i| i * 29 % 64).collect();
        let mut maps: Vec<Vec<u32>> = (1..2 << BITS).step_by(2).map(automorphism).collect();
        assert!(
            maps.iter()
                .all(|map| Permutation::new(map.clone()).in_blocks)
        );
        maps.push(shuffled);
        for q in [0x0fff_ffff_ffff_c001, 0x0007_ffff_fffe_0001] {
            let m = Modulus::new(q);
            let x: Vec<u64> = (0..1 << BITS).map(|i| q - 1 - i * i).collect();
            let sums: Vec<u64> = (0..1 << BITS).map(|i| q - 1 - i).collect();
            for map in &maps {
                let permutation = Permutation::new(map.clone());
                let wanted: Vec<u64> = map.iter().map(|&i| x[i as usize]).collect();
                let mut out = vec![7; x.len()];
                permutation.apply(&x, &mut out);
                assert_eq!(out, wanted);
                let added = sums.iter().zip(&wanted);
                let added: Vec<u64> = added.map(|(&a, &b)| m.add(a, b)).collect();
                out.copy_from_slice(&sums);
                permutation.add(m, &x, &mut out);
                assert_eq!(out, added);
            }
        }
        assert!(!Permutation::new(maps.pop().unwrap()).in_blocks);
    }
}
