//! Decryption by shares: the message of each service, and how its receiver combines them.
//!
//! For a sealed pair (c0, c1), service i sends c1 s_i + F_i, and the computation service sends c0, each only at
//! the released coefficients. The sum of c0 and all shares is message plus noise. F_i is a full flood (`noise`):
//! the receiver may have all other shares, and can then subtract everything but the page's noise below F_i.
//!
//! F_i is a function of the share, the request, the ciphertext's number in it and c1. So a repetition sends the
//! same share, and two different c1 never get the same flood; otherwise the difference of their shares would
//! show s_i.
//!
//! **A flood does not hide s_i from a party that chooses c1.** With c1 = q / 64, the share shows each coefficient
//! of s_i. The callers must check that a page has really been computed.

use super::KeyShare;
use crate::error::{Error, Result};
use crate::release::seal::flood;
use crate::scheme::ciphertext::Ciphertext;
use crate::scheme::decryption::{flood_generator, recombine};
use crate::scheme::noise;
use crate::scheme::params::Parameters;
use crate::scheme::ring::DEGREE;
use crate::scheme::ring::Limb;
use crate::table::layout::{PAGE, coefficient};
use fhaim_ntt::Modulus;
use zeroize::Zeroizing;

/// Residues, prime after prime, of the coefficients of one polynomial at the released positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) residue: usize,
    pub(super) limbs: Vec<Vec<u64>>,
}

/// c0 of a sealed ciphertext at the released positions, in the order of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening(pub(super) Places);

/// One service's summand of the decryption of a sealed ciphertext at the released positions, in the order of the
/// request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecryptionShare(pub(super) Places);

impl Places {
    /// Picks the coefficients of a polynomial. `limb` returns all of them for one prime.
    fn of(
        params: &Parameters,
        residue: usize,
        positions: &[usize],
        limb: impl Fn(usize, &Limb) -> Zeroizing<Vec<u64>>,
    ) -> Result<Self> {
        if positions.iter().any(|&position| position >= PAGE) {
            return Err(Error::OutOfRange("a released position is outside the page"));
        }
        let places = |(j, prime): (usize, &Limb)| {
            let coefficients = limb(j, prime);
            let at = |&position: &usize| coefficients.get(coefficient(position)).copied();
            let places: Option<Vec<u64>> = positions.iter().map(at).collect();
            places.ok_or(Error::OutOfRange("a released position is outside the page"))
        };
        let limbs = params.ring().ciphertext_limbs().iter().enumerate();
        Ok(Self {
            residue,
            limbs: limbs.map(places).collect::<Result<_>>()?,
        })
    }

    /// Returns the number of positions.
    fn len(&self) -> usize {
        self.limbs.first().map_or(0, Vec::len)
    }
}

impl Opening {
    /// Opens a sealed ciphertext: the part of a decryption that the computation service sends with the request.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a position outside the page. [`Error::Mismatch`] for a ciphertext under other
    /// parameters.
    pub fn new(params: &Parameters, sealed: &Ciphertext, positions: &[usize]) -> Result<Self> {
        sealed.check(params)?;
        let [c0, _] = &sealed.c;
        let places = Places::of(params, sealed.residue, positions, |j, limb| {
            let mut coefficients = Zeroizing::new(c0.limb(j).to_vec());
            limb.inverse(&mut coefficients);
            coefficients
        });
        Ok(Self(places?))
    }
}

impl KeyShare {
    /// Computes this service's share of the decryption of ciphertext `number` of the request with digest `request`.
    /// A repetition returns the same share.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a position outside the page. [`Error::Mismatch`] for a ciphertext under other
    /// parameters.
    pub fn decryption_share(
        &self,
        sealed: &Ciphertext,
        positions: &[usize],
        request: &[u8; 32],
        number: u32,
    ) -> Result<DecryptionShare> {
        let params = &self.params;
        sealed.check(params)?;
        let [_, c1] = &sealed.c;
        let rng = &mut flood_generator(&self.root, sealed, request, number);
        let flood = Zeroizing::new(flood(params.set().flood_bits, rng)?);
        let places = Places::of(params, sealed.residue, positions, |j, limb| {
            let m = limb.modulus;
            // A share's secret has a limb for every prime, the special ones last.
            let secret = self.secret.chunks_exact(DEGREE).nth(j).unwrap_or_default();
            let products = c1.limb(j).iter().zip(secret);
            let products = products.map(|(&x, &s)| m.mul(x, s));
            let mut values = Zeroizing::new(products.collect::<Vec<u64>>());
            limb.inverse(&mut values);
            for (value, &f) in values.iter_mut().zip(flood.iter()) {
                *value = m.add(*value, m.residue_of(f));
            }
            values
        });
        Ok(DecryptionShare(places?))
    }
}

/// Decrypts the released positions of one page. Takes the openings of its ciphertexts, one for each plaintext
/// modulus, and each service's shares for them. Returns the centred values and the noise in bits.
///
/// Noise is measured only at these positions, so a few positions tell little. A page that was not sealed has noise
/// uniform up to q / 2t. With two services, one of its positions is below the bound with a probability of 2^-10 under
/// [`crate::STANDARD`] and 2^-3 under [`crate::WIDE`] (`single_positions_hardly_reveal_an_unsealed_page`).
///
/// # Errors
/// [`Error::NoiseBudget`] if the noise is larger than all floods together can be, a bound well below the size at
/// which decryption errs. [`Error::Mismatch`] if a share is missing or belongs to another page.
pub fn combine(
    params: &Parameters,
    opened: &[Opening],
    shares: &[Vec<DecryptionShare>],
) -> Result<(Zeroizing<Vec<i128>>, f64)> {
    let moduli = params.set().plaintext_moduli;
    if shares.len() != params.shares() || opened.len() != moduli.len() {
        return Err(Error::Mismatch(
            "expected one share of every service, and one opening for each plaintext modulus",
        ));
    }
    let places = opened.first().map_or(0, |opening| opening.0.len());
    let mut residues = Vec::with_capacity(moduli.len());
    let mut largest = 0f64;
    for (residue, opening) in opened.iter().enumerate() {
        let mut summands = vec![&opening.0];
        for of_service in shares {
            let share = of_service.get(residue).map(|share| &share.0);
            let share = share.filter(|_| of_service.len() == moduli.len());
            summands.push(share.ok_or(Error::Mismatch(
                "expected one share for each plaintext modulus",
            ))?);
        }
        let alike = |summand: &&Places| {
            let limbs = &summand.limbs;
            summand.residue == residue
                && limbs.len() == params.set().ciphertext_moduli.len()
                && limbs.iter().all(|limb| limb.len() == places)
        };
        if !summands.iter().all(alike) {
            return Err(Error::Mismatch("the share belongs to another page"));
        }
        let read = read(params, residue, &sum(params, &summands, places));
        largest = read.noise.iter().copied().fold(largest, f64::max);
        residues.push(read.message);
    }
    let bits = (largest + 1.0).log2();
    if bits > noise::joint_released_bits(params) {
        return Err(Error::NoiseBudget);
    }
    Ok((recombine(params.set(), places, &residues), bits))
}

/// Returns the sum of summands with the same shape, prime after prime.
pub(super) fn sum(params: &Parameters, summands: &[&Places], places: usize) -> Vec<Vec<u64>> {
    let limb = |(j, limb): (usize, &Limb)| {
        let mut sum = vec![0; places];
        for other in summands.iter().filter_map(|summand| summand.limbs.get(j)) {
            for (x, &y) in sum.iter_mut().zip(other) {
                *x = limb.modulus.add(*x, y);
            }
        }
        sum
    };
    let limbs = params.ring().ciphertext_limbs().iter().enumerate();
    limbs.map(limb).collect()
}

/// Messages modulo a plaintext modulus, and the size of the noise of each.
pub(super) struct Read {
    pub(super) message: Zeroizing<Vec<u64>>,
    pub(super) noise: Vec<f64>,
}

/// Splits coefficients x = m (q + 1) / t + e modulo q into m and e. t x = m + t e, centred, because t divides q + 1.
pub(super) fn read(params: &Parameters, residue: usize, x: &[Vec<u64>]) -> Read {
    let limbs = params.ring().ciphertext_limbs();
    let moduli: Vec<Modulus> = limbs.iter().map(|limb| limb.modulus).collect();
    let t = params.plaintext_modulus(residue);
    let radix = Radix::new(&moduli);
    let places = x.first().map_or(0, Vec::len);
    let mut message = Zeroizing::new(Vec::with_capacity(places));
    let mut noise = Vec::with_capacity(places);
    for place in 0..places {
        let residues = moduli.iter().zip(x);
        let residues = residues.map(|(m, x)| m.mul(x.get(place).copied().unwrap_or_default(), t));
        let digits = radix.digits(residues);
        let (value, size) = radix.centred(&digits, t);
        message.push(value);
        noise.push(size / t as f64);
    }
    Read { message, noise }
}

/// Integers modulo q as digits of mixed radix: x = d_0 + q_0 (d_1 + q_1 (d_2 + ...)).
struct Radix<'a> {
    moduli: &'a [Modulus],
    /// For each prime, the inverses of the primes before it.
    inverses: Vec<Vec<u64>>,
}

impl<'a> Radix<'a> {
    fn new(moduli: &'a [Modulus]) -> Self {
        let inverses = |(j, m): (usize, &Modulus)| {
            let earlier = moduli.iter().take(j);
            earlier.map(|q| m.inv(q.value() % m.value())).collect()
        };
        Self {
            moduli,
            inverses: moduli.iter().enumerate().map(inverses).collect(),
        }
    }

    fn digits(&self, residues: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut digits: Vec<u64> = Vec::with_capacity(self.moduli.len());
        for ((m, inverses), residue) in self.moduli.iter().zip(&self.inverses).zip(residues) {
            let lower = digits.iter().zip(inverses);
            let digit = lower.fold(residue, |x, (&digit, &inverse)| {
                m.mul(m.sub(x, digit % m.value()), inverse)
            });
            digits.push(digit);
        }
        digits
    }

    /// Returns the centred integer modulo t, and its size. For any possible noise, only the last digit decides the
    /// sign.
    fn centred(&self, digits: &[u64], t: u64) -> (u64, f64) {
        let parts = || self.moduli.iter().zip(digits).rev();
        let negative = parts().next().is_some_and(|(m, &d)| d > m.value() / 2);
        let size = parts().fold(0.0, |x, (m, &d)| {
            let digit = if negative { m.value() - 1 - d } else { d };
            x * m.value() as f64 + digit as f64
        });
        // Plaintext moduli are below 2^31, so a product of residues fits a word. q is -1 modulo t.
        let value = parts().fold(0, |x, (m, &d)| (x * (m.value() % t) + d % t) % t);
        let value = if negative { (value + 1) % t } else { value };
        (value, size)
    }
}
