//! Replaces the crate `tfhe-ntt` by `[patch.crates-io]`: fhe-math calls four of its functions, and here [`fhaim_ntt`]
//! implements them. The licence of the original crate grants no patents. With this replacement nothing of the
//! original is compiled, and the library's transforms are as fast as ours.
//!
//! Roots and order are the same as in the original crate, so ciphertexts that were made with it can still be read
//! (`fhaim_ntt`'s test `residues_equal_those_of_stored_ciphertexts`).

#![warn(missing_debug_implementations)]
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used
    )
)]

/// Transforms modulo one word-sized prime.
pub mod prime64 {
    use std::sync::Arc;

    use fhaim_ntt::Transform;

    /// The tables of one prime and degree, shared by all clones.
    #[derive(Clone, Debug)]
    pub struct Plan {
        degree: usize,
        transform: Arc<Transform>,
    }

    impl Plan {
        /// Makes the transform of `polynomial_size` coefficients modulo `modulus`, which must be prime. Returns
        /// `None` if there is no transform of that size.
        pub fn try_new(polynomial_size: usize, modulus: u64) -> Option<Self> {
            if !polynomial_size.is_power_of_two() || polynomial_size < 2 {
                return None;
            }
            Some(Self {
                degree: polynomial_size,
                transform: Arc::new(Transform::new(polynomial_size, modulus)?),
            })
        }

        /// Returns the number of coefficients of a polynomial.
        pub fn ntt_size(&self) -> usize {
            self.degree
        }

        /// Transforms coefficients to values, in place. Input and output residues are below the modulus.
        ///
        /// # Panics
        /// If the number of coefficients is not [`Plan::ntt_size`].
        pub fn fwd(&self, buf: &mut [u64]) {
            self.transform.forward(buf);
        }

        /// Transforms values to coefficients, in place. The result needs no [`Plan::normalize`].
        ///
        /// # Panics
        /// If the number of values is not [`Plan::ntt_size`].
        pub fn inv(&self, buf: &mut [u64]) {
            self.transform.inverse(buf);
        }

        /// Does nothing: [`Plan::inv`] already does what the original crate leaves to this function.
        pub fn normalize(&self, _values: &mut [u64]) {}
    }
}

#[cfg(test)]
mod tests {
    use super::prime64::Plan;
    use rand::{Rng, SeedableRng};

    const Q: u64 = 0x0fff_ffff_fffe_8001;

    fn times(a: u64, b: u64) -> u64 {
        (u128::from(a) * u128::from(b) % u128::from(Q)) as u64
    }

    /// Computes the product modulo X^n + 1, term by term.
    fn product(a: &[u64], b: &[u64]) -> Vec<u64> {
        let n = a.len();
        let mut product = vec![0; n];
        for (i, &x) in a.iter().enumerate() {
            for (j, &y) in b.iter().enumerate() {
                let term = times(x, y);
                let (at, term) = if i + j < n {
                    (i + j, term)
                } else {
                    (i + j - n, Q - term)
                };
                product[at] = (product[at] + term) % Q;
            }
        }
        product
    }

    #[test]
    fn product_of_values_equals_product_of_polynomials() {
        let plan = Plan::try_new(64, Q).unwrap();
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        let mut random = || -> Vec<u64> { (0..64).map(|_| rng.random_range(0..Q)).collect() };
        let (a, b) = (random(), random());
        let [mut x, mut y] = [a.clone(), b.clone()];
        plan.fwd(&mut x);
        plan.clone().fwd(&mut y);
        let mut values: Vec<u64> = x.iter().zip(&y).map(|(&x, &y)| times(x, y)).collect();
        plan.inv(&mut values);
        plan.normalize(&mut values);
        assert_eq!(values, product(&a, &b));
        assert_eq!(plan.ntt_size(), 64);
    }

    #[test]
    fn sizes_without_a_transform_are_rejected() {
        for size in [0, 1, 3, 96, 1 << 40] {
            assert!(Plan::try_new(size, Q).is_none(), "{size}");
        }
        assert!(Plan::try_new(64, 67_108_859).is_none());
    }
}
