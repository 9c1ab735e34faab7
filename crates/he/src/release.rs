//! Sealing a page for decryption: noise, mask, flood.

use crate::ciphertext::Ciphertext;
use crate::error::{Error, Result};
use crate::evaluate::Page;
use crate::keys::PublicKey;
use crate::layout::{PAGE, coefficient};
use crate::noise::{FLOOD_SCALE, check_page};
use crate::params::DEGREE;
use fhaim_dp::DiscreteGaussian;
use rand::{CryptoRng, Rng, RngCore};

/// Turns a page into a ciphertext that tells its decryptor the noisy cells at `released` and
/// nothing else:
///
/// - `noise`, encrypted by the holders, is added to every cell;
/// - every position not in `released` gets a value uniform modulo t;
/// - a fresh encryption with Gaussian error of deviation 2^26 * 2^flood_bits hides what the
///   residual noise could tell, up to rho_leak = 2^-[`crate::LEAK_BITS`].
///
/// # Errors
/// [`Error::NoiseBudget`] where the page's noise is larger than the flood hides;
/// [`Error::OutOfRange`] for a position outside the page.
pub fn seal<'a, R: RngCore + CryptoRng>(
    public: &PublicKey,
    page: &Page,
    noise: impl IntoIterator<Item = &'a Ciphertext>,
    released: impl IntoIterator<Item = usize>,
    rng: &mut R,
) -> Result<Ciphertext> {
    let params = public.params();
    let set = params.set();
    check_page(set, page.deviation)?;
    let residue = page.ciphertext.residue();
    let t = set.plaintext_moduli[residue];
    let mut mask: Vec<u64> = (0..PAGE).map(|_| rng.random_range(0..t)).collect();
    for position in released {
        if position >= PAGE {
            return Err(Error::OutOfRange("released position"));
        }
        mask[coefficient(position)] = 0;
    }
    let mut sealed = public.encrypt_residues(residue, &mask, rng)?;
    sealed.add_assign(&page.ciphertext, params);
    for sample in noise {
        if sample.residue() != residue {
            return Err(Error::Mismatch("noise under another plaintext modulus"));
        }
        sealed.add_assign(sample, params);
    }
    sealed.c[0].add_assign(
        &params.ring().transform_signed(&flood(set.flood_bits, rng)?),
        params.ring(),
    );
    Ok(sealed)
}

/// One error polynomial g * X + U: X discrete Gaussian of scale 2^26, U uniform below g.
fn flood<R: RngCore + CryptoRng>(bits: u32, rng: &mut R) -> Result<Vec<i128>> {
    let gaussian =
        DiscreteGaussian::new(FLOOD_SCALE).map_err(|_| Error::OutOfRange("scale of the flood"))?;
    let below = (1i128 << bits) - 1;
    let sample = |_| {
        let uniform = (rng.random::<u128>() as i128) & below;
        (i128::from(gaussian.sample(rng)) << bits) + uniform
    };
    Ok((0..DEGREE).map(sample).collect())
}
