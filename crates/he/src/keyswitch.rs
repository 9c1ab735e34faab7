//! Key switching: from a polynomial under some secret s' to a pair under s.
//!
//! Residue decomposition with one special prime P: digit i of d is its residue modulo q_i, and
//! sum_i digit_i * key_i is P d s' + noise under s; dividing by P shrinks the noise. With L
//! ciphertext primes a switch takes L^2 + L forward transforms of digits and results, and L + 2
//! inverse ones: 12 in all at L = 2.

use crate::keys::{KeySwitchKey, Pair};
use crate::ring::{Poly, Ring};

/// The evaluator's key-switching interface: this module alone knows how digits are made.
#[derive(Debug)]
pub(crate) struct KeySwitcher<'a> {
    ring: &'a Ring,
    /// P^-1 modulo each ciphertext prime, in Montgomery form.
    special_inverse: Vec<u64>,
}

/// Working memory of one thread: L + 1 digit limbs and two result limbs.
#[derive(Debug)]
pub(crate) struct Scratch {
    digits: Poly,
    lifted: Vec<Vec<u64>>,
    special: [Vec<u64>; 2],
    result: [Vec<u64>; 2],
}

impl Scratch {
    pub(crate) fn new(ring: &Ring) -> Self {
        let limb = || vec![0; ring.degree()];
        Self {
            digits: ring.zero(),
            lifted: ring.ciphertext_limbs().iter().map(|_| limb()).collect(),
            special: [limb(), limb()],
            result: [limb(), limb()],
        }
    }
}

impl<'a> KeySwitcher<'a> {
    pub(crate) fn new(ring: &'a Ring) -> Self {
        let special = ring.special().modulus.value();
        let inverse = |m: crate::modular::Modulus| m.mont(m.inv(special % m.value()));
        let limbs = ring.ciphertext_limbs().iter();
        Self {
            ring,
            special_inverse: limbs.map(|l| inverse(l.modulus)).collect(),
        }
    }

    /// `into` += the pair under s that encrypts `d` under the key's source; `d` and `into` are
    /// transforms.
    pub(crate) fn add(&self, key: &KeySwitchKey, d: &Poly, into: &mut Pair, scratch: &mut Scratch) {
        let limbs = self.ring.limbs();
        let last = limbs.len() - 1;
        scratch.digits.clone_from(d);
        for (i, limb) in self.ring.ciphertext_limbs().iter().enumerate() {
            limb.inverse(scratch.digits.limb_mut(i));
        }
        // The special prime first: its result is what the other limbs divide away.
        self.multiply(key, d, last, scratch);
        std::mem::swap(&mut scratch.special, &mut scratch.result);
        for half in &mut scratch.special {
            limbs[last].inverse(half);
        }
        for j in 0..last {
            self.multiply(key, d, j, scratch);
            for (half, into) in into.iter_mut().enumerate() {
                self.divide_into(j, half, into.limb_mut(j), scratch);
            }
        }
    }

    /// Limb j of sum_i digit_i * key_i, for both halves of the key.
    fn multiply(&self, key: &KeySwitchKey, d: &Poly, j: usize, scratch: &mut Scratch) {
        let n = self.ring.degree();
        let limb = &self.ring.limbs()[j];
        let (m, q) = (limb.modulus, limb.modulus.value());
        for (i, lifted) in scratch.lifted.iter_mut().enumerate() {
            if i == j {
                lifted.copy_from_slice(d.limb(i));
                continue;
            }
            // Primes of a set differ by less than a factor of two: one subtraction reduces.
            for (l, &x) in lifted.iter_mut().zip(scratch.digits.limb(i)) {
                *l = if x >= q { x - q } else { x };
            }
            limb.forward(lifted);
        }
        let range = j * n..(j + 1) * n;
        for (out, halves) in scratch.result.iter_mut().zip([&key.b, &key.a]) {
            match (scratch.lifted.as_slice(), halves.as_slice()) {
                ([x, y], [k, l]) => {
                    let keys = k[range.clone()].iter().zip(&l[range.clone()]);
                    for ((o, (&x, &y)), (&k, &l)) in out.iter_mut().zip(x.iter().zip(y)).zip(keys) {
                        let sum = u128::from(x) * u128::from(k) + u128::from(y) * u128::from(l);
                        *o = m.redc(sum);
                    }
                }
                (lifted, digits) => {
                    out.fill(0);
                    for (x, k) in lifted.iter().zip(digits) {
                        for ((o, &x), &k) in out.iter_mut().zip(x).zip(&k[range.clone()]) {
                            *o = m.add(*o, m.redc(u128::from(x) * u128::from(k)));
                        }
                    }
                }
            }
        }
    }

    /// `into` += `(result - [special]) / P` on limb j, `[.]` the centred residue modulo P.
    fn divide_into(&self, j: usize, half: usize, into: &mut [u64], scratch: &mut Scratch) {
        let limb = &self.ring.limbs()[j];
        let m = limb.modulus;
        let p = self.ring.special().modulus.value();
        let p_mod_q = p % m.value();
        // The digits are used up: their first limb serves as a buffer.
        let lifted = &mut scratch.lifted[0];
        for (l, &x) in lifted.iter_mut().zip(&scratch.special[half]) {
            let reduced = if x >= m.value() { x - m.value() } else { x };
            *l = if x > p / 2 {
                m.sub(reduced, p_mod_q)
            } else {
                reduced
            };
        }
        limb.forward(lifted);
        let inverse = u128::from(self.special_inverse[j]);
        for ((o, &r), &l) in into
            .iter_mut()
            .zip(&scratch.result[half])
            .zip(lifted.iter())
        {
            *o = m.add(*o, m.redc(u128::from(m.sub(r, l)) * inverse));
        }
    }
}
