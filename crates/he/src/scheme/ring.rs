//! `Z_Q[X] / (X^n + 1)` in residue and transform representation.
//!
//! A [`Poly`] stores one limb of n residues for each prime, limb after limb. The evaluator works on
//! transforms (values at the odd powers of a primitive 2n-th root of unity). It goes back to coefficients
//! only where a key switch needs digits. Transforms have the same roots and order as fhe-math has through
//! crates/tfhe-ntt, so residues pass between the two unchanged.
#![expect(
    clippy::indexing_slicing,
    reason = "a limb's number is below the number of limbs, an index from a table or a loop is below \
              the degree, and a ring has at least one special prime"
)]

use crate::error::{Error, Result};
use fhaim_ntt::{Modulus, Permutation, Transform, bit_reverse};

/// Ring degree of every parameter set.
pub const DEGREE: usize = 8192;

/// One prime of the chain, with its transform.
#[derive(Debug)]
pub(crate) struct Limb {
    pub(crate) modulus: Modulus,
    transform: Transform,
    /// Powers 0..2n of the root at transform index 0, in Montgomery form.
    powers: Vec<u64>,
}

impl Limb {
    fn new(degree: usize, q: u64) -> Option<Self> {
        let transform = Transform::new(degree, q)?;
        let modulus = Modulus::new(q);
        let root = transform_of_x(&transform, degree)[0];
        let mut powers = Vec::with_capacity(2 * degree);
        let mut power = 1;
        for _ in 0..2 * degree {
            powers.push(modulus.mont(power));
            power = modulus.mul(power, root);
        }
        Some(Self {
            modulus,
            transform,
            powers,
        })
    }

    /// Transforms coefficients to values, in place. Input and output residues are below the prime.
    pub(crate) fn forward(&self, limb: &mut [u64]) {
        self.transform.forward(limb);
    }

    /// Transforms values to coefficients, in place.
    pub(crate) fn inverse(&self, limb: &mut [u64]) {
        self.transform.inverse(limb);
    }
}

fn transform_of_x(transform: &Transform, degree: usize) -> Vec<u64> {
    let mut x = vec![0; degree];
    x[1] = 1;
    transform.forward(&mut x);
    x
}

/// The ring with its ciphertext primes, followed by the key-switching primes.
#[derive(Debug)]
pub(crate) struct Ring {
    degree: usize,
    limbs: Vec<Limb>,
    /// Number of ciphertext primes.
    ciphertext: usize,
    /// Transform index i holds the value at `root^exponents[i]`. The exponent is 1 + 2 i', where i' is i with
    /// its bits reversed.
    exponents: Vec<u32>,
    /// Inverse of `exponents`, indexed by (exponent - 1) / 2.
    index_of: Vec<u32>,
}

impl Ring {
    /// Makes a ring of the given degree over ciphertext primes and special primes.
    pub(crate) fn new(degree: usize, ciphertext: &[u64], special: &[u64]) -> Result<Self> {
        let unsupported = Error::Mismatch("a modulus has no transform of this degree");
        if special.is_empty() {
            return Err(Error::Mismatch("a ring needs a special prime"));
        }
        let moduli = ciphertext.iter().chain(special);
        let limbs: Option<Vec<Limb>> = moduli.map(|&q| Limb::new(degree, q)).collect();
        let limbs = limbs.ok_or(unsupported)?;
        let first = limbs
            .first()
            .ok_or(Error::Mismatch("a ring needs a modulus"))?;
        let exponents = exponents(first, degree)?;
        for limb in &limbs[1..] {
            if self::exponents(limb, degree)? != exponents {
                return Err(Error::Mismatch(
                    "the primes' transforms have different orders",
                ));
            }
        }
        let bits = degree.trailing_zeros();
        let reversed = (0..degree).map(|i| 2 * bit_reverse(i, bits) + 1);
        if !reversed.eq(exponents.iter().map(|&e| e as usize)) {
            return Err(Error::Mismatch("the transform's order is not bit-reversed"));
        }
        let mut index_of = vec![0; degree];
        for (i, &e) in exponents.iter().enumerate() {
            index_of[(e as usize - 1) / 2] = i as u32;
        }
        Ok(Self {
            degree,
            limbs,
            ciphertext: ciphertext.len(),
            exponents,
            index_of,
        })
    }

    pub(crate) fn degree(&self) -> usize {
        self.degree
    }

    /// Returns the limbs of a ciphertext: all except those of the special primes.
    pub(crate) fn ciphertext_limbs(&self) -> &[Limb] {
        &self.limbs[..self.ciphertext]
    }

    /// Returns all limbs, those of the special primes last.
    pub(crate) fn limbs(&self) -> &[Limb] {
        &self.limbs
    }

    /// Returns the limbs of the special primes, at least one.
    pub(crate) fn special_limbs(&self) -> &[Limb] {
        &self.limbs[self.ciphertext..]
    }

    /// Returns the limbs that encryption starts with: those of a ciphertext and that of the first special prime.
    pub(crate) fn encryption_limbs(&self) -> &[Limb] {
        &self.limbs[..=self.ciphertext]
    }

    /// Returns the limb of the special prime that encryption starts with.
    pub(crate) fn special(&self) -> &Limb {
        &self.limbs[self.ciphertext]
    }

    /// Returns the number of consecutive limbs whose residues form one digit of a key switch.
    pub(crate) fn limbs_of_digit(&self) -> usize {
        self.limbs.len() - self.ciphertext
    }

    /// Returns the number of digits of a key switch.
    pub(crate) fn digits(&self) -> usize {
        self.ciphertext.div_ceil(self.limbs_of_digit())
    }

    /// Returns the product of the special primes modulo a limb's prime.
    pub(crate) fn special_product(&self, limb: &Limb) -> u64 {
        let m = limb.modulus;
        let primes = self.special_limbs().iter().map(|limb| limb.modulus.value());
        primes.fold(1, |product, p| m.mul(product, p % m.value()))
    }

    /// Returns the zero polynomial over the ciphertext primes.
    pub(crate) fn zero(&self) -> Poly {
        Poly {
            degree: self.degree,
            residues: vec![0; self.degree * self.ciphertext],
        }
    }

    /// Returns a polynomial without limbs, with capacity for the given number.
    pub(crate) fn room(&self, limbs: usize) -> Poly {
        Poly {
            degree: self.degree,
            residues: Vec::with_capacity(self.degree * limbs),
        }
    }

    /// Returns the permutation of transform indices that applies X -> X^g (g odd).
    pub(crate) fn automorphism(&self, g: usize) -> Permutation {
        let mask = 2 * self.degree - 1;
        let source = |e: &u32| self.index_of[((*e as usize * g) & mask) / 2];
        Permutation::new(self.exponents.iter().map(source).collect())
    }

    /// Returns the value of X^k at transform index i of `limb`, in Montgomery form. k is taken mod 2n.
    ///
    /// Exponents are bit-reversed. So if s is a power of two, all X^(k s) have the same value at indices that agree
    /// above their lowest log2(s) bits.
    #[inline(always)]
    pub(crate) fn monomial(&self, limb: &Limb, k: usize, i: usize) -> u64 {
        limb.powers[(self.exponents[i] as usize * k) & (2 * self.degree - 1)]
    }

    /// Returns the transform of X^k over one limb, in Montgomery form.
    pub(crate) fn monomial_transform(&self, limb: &Limb, k: usize) -> Vec<u64> {
        (0..self.degree)
            .map(|i| self.monomial(limb, k, i))
            .collect()
    }

    /// Computes sum += X^k * p, all in transform form. k is taken mod 2n.
    pub(crate) fn add_shifted(&self, sum: &mut Poly, p: &Poly, k: usize) {
        if k == 0 {
            return sum.add_assign(p, self);
        }
        for (j, limb) in self.ciphertext_limbs().iter().enumerate() {
            let m = limb.modulus;
            for (i, (s, &x)) in sum.limb_mut(j).iter_mut().zip(p.limb(j)).enumerate() {
                let shifted = m.redc(u128::from(x) * u128::from(self.monomial(limb, k, i)));
                *s = m.add(*s, shifted);
            }
        }
    }

    /// Returns the transform, over the ciphertext primes, of a polynomial with signed coefficients.
    pub(crate) fn transform_signed(&self, coefficients: &[i128]) -> Poly {
        let mut p = self.zero();
        for (j, limb) in self.ciphertext_limbs().iter().enumerate() {
            let out = p.limb_mut(j);
            for (o, &c) in out.iter_mut().zip(coefficients) {
                *o = limb.modulus.residue_of(c);
            }
            limb.forward(out);
        }
        p
    }
}

/// Returns the discrete logarithms of the transform's evaluation points to the base of the first.
fn exponents(limb: &Limb, degree: usize) -> Result<Vec<u32>> {
    let m = limb.modulus;
    let mut log: Vec<(u64, u32)> = limb
        .powers
        .iter()
        .enumerate()
        .map(|(e, &p)| (m.redc(u128::from(p)), e as u32))
        .collect();
    log.sort_unstable();
    let find = |value: u64| {
        let at = log.binary_search_by_key(&value, |&(v, _)| v).ok()?;
        Some(log[at].1).filter(|e| e % 2 == 1)
    };
    let found: Option<Vec<u32>> = transform_of_x(&limb.transform, degree)
        .into_iter()
        .map(find)
        .collect();
    found.ok_or(Error::Mismatch(
        "transform does not evaluate at the odd powers of a root",
    ))
}

/// The two polynomials of a ciphertext under (1, s).
pub(crate) type Pair = [Poly; 2];

/// A polynomial over the first primes of the ring, limb after limb: over the ciphertext primes or over all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Poly {
    degree: usize,
    residues: Vec<u64>,
}

impl Poly {
    /// Makes a polynomial from residues, limb after limb. Their number must be a multiple of `degree`.
    pub(crate) fn from_residues(degree: usize, residues: Vec<u64>) -> Self {
        debug_assert_eq!(residues.len() % degree, 0);
        Self { degree, residues }
    }

    /// Returns the number of limbs.
    pub(crate) fn limbs(&self) -> usize {
        self.residues.len() / self.degree
    }

    /// Returns the image under an automorphism, which permutes the values of the transform.
    pub(crate) fn permuted(&self, automorphism: &Permutation) -> Self {
        let mut image = self.zero_like();
        for j in 0..self.limbs() {
            automorphism.apply(self.limb(j), image.limb_mut(j));
        }
        image
    }

    /// Returns zero over the same primes.
    pub(crate) fn zero_like(&self) -> Self {
        Self {
            degree: self.degree,
            residues: vec![0; self.residues.len()],
        }
    }

    /// Appends limbs of zeros or drops the last limbs, to reach the given number.
    pub(crate) fn resize(&mut self, limbs: usize) {
        self.residues.resize(limbs * self.degree, 0);
    }

    /// Appends residues.
    pub(crate) fn append(&mut self, residues: &[u64]) {
        self.residues.extend_from_slice(residues);
    }

    #[inline]
    pub(crate) fn limb(&self, j: usize) -> &[u64] {
        &self.residues[j * self.degree..(j + 1) * self.degree]
    }

    #[inline]
    pub(crate) fn limb_mut(&mut self, j: usize) -> &mut [u64] {
        &mut self.residues[j * self.degree..(j + 1) * self.degree]
    }

    pub(crate) fn residues(&self) -> &[u64] {
        &self.residues
    }

    pub(crate) fn add_assign(&mut self, other: &Self, ring: &Ring) {
        for (j, limb) in ring.limbs().iter().enumerate().take(self.limbs()) {
            limb.modulus.add_assign(self.limb_mut(j), other.limb(j));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULI: [u64; 2] = [0x0fff_ffff_ffff_c001, 0x0fff_f316_e37b_0001];
    const SPECIAL: [u64; 1] = [0x0fff_ffff_fffe_8001];

    /// Applies X -> X^g to coefficients: X^i becomes plus or minus X^(i g mod n).
    fn substitute(p: &[i128], g: usize) -> Vec<i128> {
        let n = p.len();
        let mut out = vec![0; n];
        for (i, &c) in p.iter().enumerate() {
            let e = i * g % (2 * n);
            if e < n { out[e] = c } else { out[e - n] = -c }
        }
        out
    }

    #[test]
    fn automorphisms_and_monomials_match_coefficients() {
        let n = 64;
        let ring = Ring::new(n, &MODULI, &SPECIAL).unwrap();
        let p: Vec<i128> = (0..n as i128).map(|i| i * i - 700).collect();
        let transform = ring.transform_signed(&p);
        for g in [3, 5, 9, 65, 127] {
            let image = transform.permuted(&ring.automorphism(g));
            assert_eq!(image, ring.transform_signed(&substitute(&p, g)));
        }
        for k in [0, 1, 17, 63, 64, 100, 127] {
            let mut shifted = ring.transform_signed(&p);
            ring.add_shifted(&mut shifted, &transform, k);
            let mut wanted = p.clone();
            for (i, &c) in p.iter().enumerate() {
                let e = (i + k) % (2 * n);
                if e < n {
                    wanted[e] += c;
                } else {
                    wanted[e - n] -= c;
                }
            }
            assert_eq!(shifted, ring.transform_signed(&wanted));
        }
    }
}
