//! Stands in for the crate `tfhe-ntt`, by `[patch.crates-io]`: fhe-math calls four functions of it, and
//! here [`fhaim_ntt`] does their work. The crate's own licence grants no patents; with this one
//! nothing of it is compiled, and the library's transforms are as fast as ours.
//!
//! Roots and order are those of the crate that it stands in for, so what was encrypted with that
//! one is still read (`fhaim_ntt`'s test `residues_are_those_of_stored_ciphertexts`).

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

/// Transforms modulo one prime of a word.
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
        /// The transform of `polynomial_size` coefficients modulo `modulus`, which must be prime; `None`
        /// where there is none of that size.
        pub fn try_new(polynomial_size: usize, modulus: u64) -> Option<Self> {
            if !polynomial_size.is_power_of_two() || polynomial_size < 2 {
                return None;
            }
            Some(Self {
                degree: polynomial_size,
                transform: Arc::new(Transform::new(polynomial_size, modulus)?),
            })
        }

        /// Coefficients of a polynomial.
        pub fn ntt_size(&self) -> usize {
            self.degree
        }

        /// Coefficients to values, in place; residues in and out are below the modulus.
        ///
        /// # Panics
        /// Unless there are [`Plan::ntt_size`] of them.
        pub fn fwd(&self, buf: &mut [u64]) {
            self.transform.forward(buf);
        }

        /// Values to coefficients, in place, which need no [`Plan::normalize`] any more.
        ///
        /// # Panics
        /// Unless there are [`Plan::ntt_size`] of them.
        pub fn inv(&self, buf: &mut [u64]) {
            self.transform.inverse(buf);
        }

        /// What the crate of this name leaves to its caller after [`Plan::inv`]: done there already.
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

    /// The product modulo X^n + 1, term by term.
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
    fn values_multiply_polynomials_as_the_library_expects() {
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
    fn sizes_that_have_no_transform_have_no_plan() {
        for size in [0, 1, 3, 96, 1 << 40] {
            assert!(Plan::try_new(size, Q).is_none(), "{size}");
        }
        assert!(Plan::try_new(64, 67_108_859).is_none());
    }
}
