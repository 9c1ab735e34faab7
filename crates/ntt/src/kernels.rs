//! Loops over residues modulo one prime, which together with transforms take most of an evaluation's time.
//!
//! Each has a portable version with 128-bit arithmetic, and a version with AVX-512 IFMA vectors for moduli that
//! `ifma::serves`. Both compute the same residues. Only this module and [`Permutation`] choose between them. The
//! slices of one call have the same length; elements beyond the shortest are not touched. Nothing branches on a
//! value.

#[cfg(target_arch = "x86_64")]
mod ifma;
mod permutation;
mod portable;

pub use permutation::Permutation;

use crate::modular::Modulus;

/// Returns the result of the vector version, if vectors support the modulus and the length.
macro_rules! by_vectors {
    ($modulus:expr, $length:expr, $call:ident($($argument:expr),* $(,)?)) => {
        #[cfg(target_arch = "x86_64")]
        if crate::ifma::serves($modulus.value()) && $length.is_multiple_of(8) {
            // SAFETY: the processor has the features.
            return unsafe { ifma::$call($($argument),*) };
        }
    };
}

/// How a result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultMode {
    /// The result replaces the previous value.
    Set,
    /// The result is added to the previous value.
    Add,
}

/// Makes the processor load words into its second-level cache while it does other work. The processor does not
/// predict short pieces of memory by itself. Only the time changes, not the results.
#[inline]
pub fn prefetch(words: &[u64]) {
    #[cfg(target_arch = "x86_64")]
    for line in words.chunks(8) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: nothing is read or written, and the address is that of an existing word.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = words;
}

impl Modulus {
    /// Adds 2^-64 times the sum over k of x_k y_k to residues, element by element.
    ///
    /// # Panics
    /// For more products than [`Modulus::lazy_products`] or than 4096.
    pub fn add_inner_product(self, x: &[&[u64]], y: &[&[u64]], out: &mut [u64]) {
        assert!(x.len() <= self.lazy_products().min(1 << 12));
        by_vectors!(
            self,
            out.len(),
            inner_product(self, x, y, ResultMode::Add, out)
        );
        portable::inner_product(self, x, y, ResultMode::Add, out);
    }

    /// Computes 2^-64 times the sums over k of x_k y_k and of x_k z_k, element by element. The first sum is added to
    /// residues, and the second is set or added.
    ///
    /// # Panics
    /// For more products than [`Modulus::lazy_products`] or than 4096, and if the numbers of x, y and z differ.
    pub fn inner_products(
        self,
        x: &[&[u64]],
        [y, z]: [&[&[u64]]; 2],
        first: &mut [u64],
        into: ResultMode,
        second: &mut [u64],
    ) {
        assert!(x.len() <= self.lazy_products().min(1 << 12));
        assert!(x.len() == y.len() && x.len() == z.len());
        by_vectors!(
            self,
            first.len(),
            inner_products(self, x, [y, z], first, into, second)
        );
        portable::inner_products(self, x, [y, z], first, into, second);
    }

    /// Computes 2^-64 times the sum over terms (x0, x1, y0, y1) of (x0 y0, x0 y1 + x1 y0, x1 y1).
    pub fn tensor<const N: usize>(self, terms: &[[&[u64; N]; 4]], out: &mut [[u64; N]; 3]) {
        by_vectors!(self, N, tensor(self, terms, out));
        portable::tensor(self, terms, out);
    }

    /// Computes 2^-64 times the sum over terms of a factor, which is a residue, times residues.
    pub fn combine(self, terms: &[(u64, &[u64])], out: &mut [u64]) {
        by_vectors!(self, out.len(), combine(self, terms, out));
        portable::combine(self, terms, out);
    }

    /// Computes sums of residues, element by element.
    pub fn sum<'a>(self, parts: impl Iterator<Item = &'a [u64]>, out: &mut [u64]) {
        out.fill(0);
        let mut room = self.lazy_products();
        for part in parts {
            if room == 0 {
                self.reduce_words(out);
                room = self.lazy_products() - 1;
            }
            room -= 1;
            self.add_words(part, out);
        }
        self.reduce_words(out);
    }

    /// Computes out += x, as words.
    fn add_words(self, x: &[u64], out: &mut [u64]) {
        by_vectors!(self, out.len(), add_words(x, out));
        out.iter_mut().zip(x).for_each(|(sum, &x)| *sum += x);
    }

    /// Reduces words modulo the prime.
    fn reduce_words(self, out: &mut [u64]) {
        by_vectors!(self, out.len(), reduce_words(self, out));
        let one = u128::from(self.mont(1));
        out.iter_mut()
            .for_each(|x| *x = self.redc(u128::from(*x) * one));
    }

    /// Computes out += x, of residues.
    pub fn add_assign(self, out: &mut [u64], x: &[u64]) {
        by_vectors!(self, out.len(), add_assign(self, out, x));
        out.iter_mut()
            .zip(x)
            .for_each(|(out, &x)| *out = self.add(*out, x));
    }

    /// Replaces x by 2^-64 x factor.
    pub fn scale(self, x: &mut [u64], factor: u64) {
        by_vectors!(self, x.len(), scale(self, x, factor));
        let factor = u128::from(factor);
        x.iter_mut()
            .for_each(|x| *x = self.redc(u128::from(*x) * factor));
    }

    /// Replaces (u, v) by (u + x v, u - x v), with x in Montgomery form.
    pub fn butterfly(self, u: &mut [u64], v: &mut [u64], x: &[u64]) {
        by_vectors!(self, u.len(), butterfly(self, u, v, x));
        portable::butterfly(self, u, v, x);
    }

    /// Computes 2^-64 (x - y) factor, and sets residues to it or adds it.
    pub fn scaled_difference(
        self,
        [x, y]: [&[u64]; 2],
        factor: u64,
        into: ResultMode,
        out: &mut [u64],
    ) {
        by_vectors!(
            self,
            out.len(),
            scaled_difference(self, [x, y], factor, into, out)
        );
        portable::scaled_difference(self, [x, y], factor, into, out);
    }

    /// Takes residues of another prime as integers of least absolute value, and reduces them modulo this prime. The
    /// two primes must be within a factor of two of each other.
    pub fn centre(self, from: Self, residues: &[u64], out: &mut [u64]) {
        if from.value() >> 51 == 0 {
            by_vectors!(self, out.len(), centre(self, from, residues, out));
        }
        portable::centre(self, from, residues, out);
    }

    /// Replaces out by x + 2^-64 out factor, for words x below twice the prime.
    pub fn multiply_add(self, x: &[u64], factor: u64, out: &mut [u64]) {
        by_vectors!(self, out.len(), multiply_add(self, x, factor, out));
        let factor = u128::from(factor);
        for (out, &x) in out.iter_mut().zip(x) {
            let product = self.redc(u128::from(*out) * factor);
            *out = self.add(product, self.reduce_once(x));
        }
    }
}

#[cfg(test)]
mod tests;
