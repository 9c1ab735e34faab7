//! Number-theoretic transforms between the coefficients of a polynomial and its values at the odd
//! powers of a primitive 2n-th root of unity, modulo one prime.
//!
//! The transform is a tree of *nodes*, numbered like a heap from 1. Node k splits its block of coefficients in two
//! with factor number k, the power of the root whose exponent is k with its bits reversed. Its halves are nodes 2k
//! and 2k + 1. Values are in bit-reversed order. Factors are multiplied with Shoup's method, with quotients that
//! stay lazy (Harvey, "Faster arithmetic for number-theoretic transforms", J. Symb. Comput. 2014). Results are
//! fully reduced, so that every path gives the same residues. Nothing branches on a value, because secrets are
//! transformed too.
//!
//! If the processor has AVX-512 IFMA and the prime is below 2^51, `ifma` does three levels of the tree in one pass.
//! If it has AVX2 and the prime is below 2^60, `avx2` does two. Otherwise the loops of this file do one.
//! loops of this file do one.
#![expect(
    clippy::indexing_slicing,
    reason = "nodes are below the degree, which is the number of factors, and blocks are halves of \
              arrays whose length was checked to be the degree"
)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod ifma;
mod root;

use crate::modular::Modulus;

/// Reverses the lowest `bits` bits of x, which must have no other bits.
pub fn bit_reverse(x: usize, bits: u32) -> usize {
    if bits == 0 {
        0
    } else {
        x.reverse_bits() >> (usize::BITS - bits)
    }
}

/// A factor w below q, and floor(2^64 w / q), which reduces products with w.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Factor {
    w: u64,
    shoup: u64,
}

impl Factor {
    fn new(q: u64, w: u64) -> Self {
        let shoup = ((u128::from(w) << 64) / u128::from(q)) as u64;
        Self { w, shoup }
    }

    /// Returns x w modulo q, below 2 q, for any x.
    #[inline(always)]
    fn times(self, x: u64, q: u64) -> u64 {
        let quotient = ((u128::from(x) * u128::from(self.shoup)) >> 64) as u64;
        (x.wrapping_mul(self.w)).wrapping_sub(quotient.wrapping_mul(q))
    }
}

/// The instructions for transforms of a prime on this processor, with factors in their format.
#[cfg(target_arch = "x86_64")]
#[derive(Debug)]
enum Vectors {
    Ifma(ifma::Tables),
    Avx2(avx2::Tables),
    None,
}

/// A transform with the tables of one prime.
#[derive(Debug)]
pub struct Transform {
    q: u64,
    /// The factor of each node. Index 0 is not a node.
    forward: Vec<Factor>,
    /// The inverses of the factors.
    inverse: Vec<Factor>,
    /// n^-1, and n^-1 times the inverse of node 1.
    scale: [Factor; 2],
    #[cfg(target_arch = "x86_64")]
    vectors: Vectors,
}

impl Transform {
    /// Makes the transform of `degree` coefficients, a power of two of at least 2, modulo a prime below 2^62. Returns
    /// `None` if there is no root of unity for it. Does not check that q is prime.
    pub fn new(degree: usize, q: u64) -> Option<Self> {
        if q.is_multiple_of(2) || q < 3 || q >> 62 != 0 {
            return None;
        }
        let modulus = Modulus::new(q);
        let root = root::primitive(modulus, 2 * degree as u64)?;
        let bits = degree.trailing_zeros();
        let powers = |root| {
            let mut factors = vec![Factor::default(); degree];
            let mut power = 1;
            for exponent in 0..degree {
                factors[bit_reverse(exponent, bits)] = Factor::new(q, power);
                power = modulus.mul(power, root);
            }
            factors
        };
        let (forward, inverse) = (powers(root), powers(modulus.inv(root)));
        let n = modulus.inv(degree as u64);
        let scale = [n, modulus.mul(n, inverse[1].w)].map(|w| Factor::new(q, w));
        Some(Self {
            #[cfg(target_arch = "x86_64")]
            vectors: vectors(q, &forward, &inverse, scale),
            q,
            forward,
            inverse,
            scale,
        })
    }

    /// Transforms coefficients to values, in place. Input and output residues are below the prime.
    ///
    /// # Panics
    /// If the number of coefficients is not the transform's degree.
    pub fn forward(&self, values: &mut [u64]) {
        assert_eq!(values.len(), self.forward.len());
        #[cfg(target_arch = "x86_64")]
        match &self.vectors {
            // SAFETY: such tables exist only if the processor has the features.
            Vectors::Ifma(tables) => return unsafe { ifma::forward(tables, values) },
            // SAFETY: as above.
            Vectors::Avx2(tables) => return unsafe { avx2::forward(self, tables, values) },
            Vectors::None => (),
        }
        self.forward_portable(values);
    }

    /// Transforms values to coefficients, in place. Input and output residues are below the prime.
    ///
    /// # Panics
    /// If the number of values is not the transform's degree.
    pub fn inverse(&self, values: &mut [u64]) {
        assert_eq!(values.len(), self.forward.len());
        #[cfg(target_arch = "x86_64")]
        match &self.vectors {
            // SAFETY: such tables exist only if the processor has the features.
            Vectors::Ifma(tables) => return unsafe { ifma::inverse(tables, values) },
            // SAFETY: as above.
            Vectors::Avx2(tables) => return unsafe { avx2::inverse(self, tables, values) },
            Vectors::None => (),
        }
        self.inverse_portable(values);
    }

    /// Values stay below 4 q between levels.
    fn forward_portable(&self, values: &mut [u64]) {
        let q = self.q;
        let mut length = values.len();
        let mut first = 1;
        while length > 1 {
            for (block, &factor) in values.chunks_exact_mut(length).zip(&self.forward[first..]) {
                let (low, high) = block.split_at_mut(length / 2);
                for (x, y) in low.iter_mut().zip(high) {
                    let (u, v) = (below(*x, 2 * q), factor.times(*y, q));
                    (*x, *y) = (u + v, u + 2 * q - v);
                }
            }
            length /= 2;
            first *= 2;
        }
        for x in values {
            *x = below(below(*x, 2 * q), q);
        }
    }

    /// Values stay below 2 q between levels.
    fn inverse_portable(&self, values: &mut [u64]) {
        let q = self.q;
        let mut first = values.len() / 2;
        while first > 1 {
            let length = values.len() / first;
            for (block, &factor) in values.chunks_exact_mut(length).zip(&self.inverse[first..]) {
                let (low, high) = block.split_at_mut(length / 2);
                for (x, y) in low.iter_mut().zip(high) {
                    let (u, v) = (*x, *y);
                    *x = below(u + v, 2 * q);
                    *y = factor.times(u + 2 * q - v, q);
                }
            }
            first /= 2;
        }
        let (low, high) = values.split_at_mut(values.len() / 2);
        for (x, y) in low.iter_mut().zip(high) {
            let (sum, difference) = (*x + *y, *x + 2 * q - *y);
            *x = below(self.scale[0].times(sum, q), q);
            *y = below(self.scale[1].times(difference, q), q);
        }
    }
}

/// Returns the fastest instructions that are available.
#[cfg(target_arch = "x86_64")]
fn vectors(q: u64, forward: &[Factor], inverse: &[Factor], scale: [Factor; 2]) -> Vectors {
    if let Some(tables) = ifma::Tables::new(q, forward, inverse, scale) {
        return Vectors::Ifma(tables);
    }
    match avx2::Tables::new(q, forward, inverse) {
        Some(tables) => Vectors::Avx2(tables),
        None => Vectors::None,
    }
}

/// Returns x modulo m, for x below 2 m.
#[inline(always)]
fn below(x: u64, m: u64) -> u64 {
    x.min(x.wrapping_sub(m))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};

    /// Primes of parameter sets that stored ciphertexts use, of 60 and 54 bits, and one of 62 bits.
    const PRIMES: [u64; 9] = [
        0x0fff_ffff_ffff_c001,
        0x0fff_f316_e37b_0001,
        0x0fff_ffff_fffe_8001,
        0x003f_ffff_ffef_8001,
        0x003f_ffff_ffeb_8001,
        0x003c_878d_44f2_0001,
        0x003f_ffff_ffe7_c001,
        0x003f_45d9_de3a_4001,
        0x3fff_ffff_ffff_0001,
    ];

    /// The largest primes of 51 bits, which fill vectors of 52 bits, the smallest of 51 bits, and small primes.
    const SMALLER: [u64; 6] = [
        0x0007_ffff_fffe_0001,
        0x0007_ffff_fffc_c001,
        0x0004_0000_0002_4001,
        0x0004_0000_0005_c001,
        65537,
        40961,
    ];

    /// Computes values at the powers of the root with exponents 2 i' + 1, where i' is i with its bits reversed.
    fn slow(coefficients: &[u64], q: u64, root: u64) -> Vec<u64> {
        let m = Modulus::new(q);
        let bits = coefficients.len().trailing_zeros();
        let value = |i: usize| {
            let x = m.pow(root, 2 * bit_reverse(i, bits) as u64 + 1);
            let horner = |sum, &c: &u64| m.add(m.mul(sum, x), c);
            coefficients.iter().rev().fold(0, horner)
        };
        (0..coefficients.len()).map(value).collect()
    }

    fn random(n: usize, q: u64, seed: u64) -> Vec<u64> {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        (0..n).map(|_| rng.random_range(0..q)).collect()
    }

    /// Returns random inputs, and those that are hardest to keep in range.
    fn inputs(n: usize, q: u64) -> Vec<Vec<u64>> {
        let alternating = (0..n as u64).map(|i| (i % 2) * (q - 1)).collect();
        vec![
            random(n, q, 5),
            vec![q - 1; n],
            vec![0; n],
            alternating,
            (0..n as u64).collect(),
        ]
    }

    /// Transforms with all paths that this machine has. The portable one is first.
    fn paths(transform: &Transform, input: &[u64], inverse: bool) -> Vec<Vec<u64>> {
        type Path<'a> = Box<dyn Fn(&mut [u64]) + 'a>;
        let mut paths: Vec<Path<'_>> = if inverse {
            vec![
                Box::new(|x| transform.inverse_portable(x)),
                Box::new(|x| transform.inverse(x)),
            ]
        } else {
            vec![
                Box::new(|x| transform.forward_portable(x)),
                Box::new(|x| transform.forward(x)),
            ]
        };
        // `Transform` does not use this path if wider vectors are available.
        #[cfg(target_arch = "x86_64")]
        if let Some(tables) = avx2::Tables::new(transform.q, &transform.forward, &transform.inverse)
        {
            paths.push(Box::new(move |x| {
                // SAFETY: such tables exist only if the processor has the features.
                unsafe {
                    if inverse {
                        avx2::inverse(transform, &tables, x);
                    } else {
                        avx2::forward(transform, &tables, x);
                    }
                }
            }));
        }
        let run = |path: &Path<'_>| {
            let mut values = input.to_vec();
            path(&mut values);
            values
        };
        paths.iter().map(run).collect()
    }

    #[test]
    fn transform_values_equal_the_definition() {
        for q in PRIMES.into_iter().chain(SMALLER) {
            for bits in 1..=10 {
                let n = 1 << bits;
                let transform = Transform::new(n, q).unwrap();
                let root = root::primitive(Modulus::new(q), 2 * n as u64).unwrap();
                for input in inputs(n, q) {
                    let wanted = slow(&input, q, root);
                    for got in paths(&transform, &input, false) {
                        assert_eq!(got, wanted, "q = {q:#x}, n = {n}");
                    }
                    for back in paths(&transform, &wanted, true) {
                        assert_eq!(back, input, "q = {q:#x}, n = {n}");
                    }
                }
            }
        }
    }

    /// Hashes words in order: FNV-1a, one word at a time.
    fn digest(values: &[u64]) -> u64 {
        (values.iter()).fold(0xcbf2_9ce4_8422_2325, |hash: u64, value| {
            (hash ^ value).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Stored objects were transformed by tfhe-ntt 0.6.1, so roots and order must stay the same. The digests are of
    /// tfhe-ntt's values of each prime's inputs, in order.
    #[test]
    fn residues_equal_those_of_stored_ciphertexts() {
        const DEGREE: usize = 8192;
        const DIGESTS: [u64; 9] = [
            0x4cee_c2c0_1ab2_fc4f,
            0x335f_ce8c_0131_7a87,
            0xbe56_ab4f_f86f_a4ba,
            0x7bc9_70d7_d291_e420,
            0xe560_2a79_b30a_e3fe,
            0x2532_4ddf_e7d7_82f4,
            0x189d_8866_c67b_ae9a,
            0x35e5_3e47_8452_8324,
            0xc2da_461f_bc74_83de,
        ];
        for (q, wanted) in PRIMES.into_iter().zip(DIGESTS) {
            let transform = Transform::new(DEGREE, q).unwrap();
            let mut values = Vec::new();
            for input in inputs(DEGREE, q) {
                values.extend(agreed(&transform, &input));
            }
            assert_eq!(digest(&values), wanted, "q = {q:#x}");
        }
    }

    /// Returns the values, and checks that all paths agree on them and on the way back.
    fn agreed(transform: &Transform, input: &[u64]) -> Vec<u64> {
        let q = transform.q;
        let values = paths(transform, input, false);
        let values = values.into_iter().reduce(|one, other| {
            assert!(one == other, "q = {q:#x}");
            other
        });
        let values = values.unwrap();
        for back in paths(transform, &values, true) {
            assert!(back == input, "q = {q:#x}");
        }
        values
    }

    #[test]
    fn all_paths_agree_at_the_degree_of_ciphertexts() {
        for q in SMALLER.into_iter().filter(|q| (q - 1) % (1 << 14) == 0) {
            let transform = Transform::new(8192, q).unwrap();
            for input in inputs(8192, q) {
                agreed(&transform, &input);
            }
        }
    }

    #[test]
    fn primes_without_a_root_of_unity_are_rejected() {
        assert!(Transform::new(64, 0x0fff_ffff_ffff_c001).is_some());
        assert!(Transform::new(64, 67_108_859).is_none());
        // 2^14 is the largest power of two that divides q - 1.
        assert!(Transform::new(1 << 14, 0x0fff_ffff_ffff_c001).is_none());
        for q in [0, 1, 2, 4, u64::MAX, 1 << 62] {
            assert!(Transform::new(64, q).is_none());
        }
    }
}
