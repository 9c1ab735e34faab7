//! Sealing a page for decryption: noise, mask, flood.

use crate::error::{Error, Result};
use crate::release::page::PackedPage;
use crate::scheme::ciphertext::Ciphertext;
use crate::scheme::noise::{FLOOD_SCALE, check_page};
use crate::scheme::public_key::PublicKey;
use crate::scheme::ring::DEGREE;
use crate::table::layout::{PAGE, coefficient};
use fhaim_dp::{DiscreteGaussian, uniform_below};
use rand::{CryptoRng, Rng, RngCore};

/// Turns a page into a ciphertext that reveals only the noisy cells at `released` to its decryptor:
///
/// - `noise`, encrypted by the holders, is added to every cell;
/// - every position not in `released` gets a value uniform modulo t;
/// - a fresh encryption with a Gaussian error of deviation 2^26 * 2^flood_bits hides what the
///   residual noise could reveal, up to rho_leak = 2^-[`crate::LEAK_BITS`].
///
/// # Errors
/// [`Error::NoiseBudget`] if the page's noise is larger than the flood hides. [`Error::OutOfRange`]
/// for a position outside the page.
pub fn seal<'a, R: RngCore + CryptoRng>(
    public: &PublicKey,
    page: &PackedPage,
    noise: impl IntoIterator<Item = &'a Ciphertext>,
    released: impl IntoIterator<Item = usize>,
    rng: &mut R,
) -> Result<Ciphertext> {
    let params = public.params();
    let set = params.set();
    check_page(set, page.deviation())?;
    let residue = page.ciphertext.residue();
    let t = params.plaintext_modulus(residue);
    let mut mask = uniform_values(t, rng);
    for position in released {
        let place = mask.get_mut(coefficient(position));
        let place = place.filter(|_| position < PAGE);
        *place.ok_or(Error::OutOfRange("a released position is outside the page"))? = 0;
    }
    let mut sealed = public.encrypt_residues(residue, &mask, rng)?;
    sealed.add_assign(&page.ciphertext, params);
    for sample in noise {
        if sample.residue() != residue {
            return Err(Error::Mismatch(
                "the noise is under another plaintext modulus",
            ));
        }
        sealed.add_assign(sample, params);
    }
    sealed.c[0].add_assign(
        &params.ring().transform_signed(&flood(set.flood_bits, rng)?),
        params.ring(),
    );
    Ok(sealed)
}

/// Draws a page of values that are exactly uniform below t. Ranges of `rand` are not exact: the
/// probabilities of their values differ by about 2^-86.
fn uniform_values<R: RngCore + CryptoRng>(t: u64, rng: &mut R) -> Vec<u64> {
    (0..PAGE).map(|_| uniform_below(t, rng)).collect()
}

/// Draws one error polynomial g * X + U, with X discrete Gaussian of scale 2^26 and U uniform below g.
pub(crate) fn flood<R: RngCore + CryptoRng>(bits: u32, rng: &mut R) -> Result<Vec<i128>> {
    let gaussian =
        DiscreteGaussian::new(FLOOD_SCALE).map_err(|_| Error::OutOfRange("scale of the flood"))?;
    let below = (1i128 << bits) - 1;
    let sample = |_| {
        let uniform = (rng.random::<u128>() as i128) & below;
        (i128::from(gaussian.sample(rng)) << bits) + uniform
    };
    Ok((0..DEGREE).map(sample).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::Evaluator;
    use crate::evaluate::plan::Cell;
    use crate::evaluate::work::EvaluationWork;
    use crate::scheme::evaluation_keys::EvaluationKeys;
    use crate::scheme::noise::tests::measured;
    use crate::scheme::params::{Parameters, SETS, STANDARD};
    use crate::scheme::secret_key::SecretKey;
    use crate::scheme::upload::{UploadKey, uploaded};
    use crate::table::layout::Layout;
    use crate::table::{Combination, EncryptedTable, Factors};
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    /// Number of sealed copies of each page.
    const COPIES: usize = 24;

    /// Computes a page of products of two columns of `records` ones.
    fn page(
        public: &PublicKey,
        keys: &EvaluationKeys,
        records: usize,
        rng: &mut ChaCha20Rng,
    ) -> PackedPage {
        let layout = Layout::for_records(64).unwrap();
        let key = UploadKey::random(public.params(), rng).unwrap();
        let own = key.switch_keys(public, Some(layout), rng).unwrap();
        let mut column = || vec![uploaded(&key, &vec![1; records], rng)];
        let columns = vec![column(), column()];
        let table = EncryptedTable::new(public.params(), layout, columns).unwrap();
        let evaluator = Evaluator::new(keys, layout).with_switch_keys(&own).unwrap();
        let factors = Factors {
            left: &[Combination::column(0)],
            right: &[Combination::column(1)],
        };
        let cell = Cell::Product { left: 0, right: 0 };
        let cells = [(0..512).map(|p| (p, cell)).collect()];
        let mut pages = evaluator
            .pages(&table, 0, factors, &cells, &mut EvaluationWork::default())
            .unwrap();
        pages.pop().unwrap().unwrap()
    }

    /// A generator of the words `next`, `next` + 1, ...
    struct Counter {
        next: u64,
    }

    impl RngCore for Counter {
        fn next_u32(&mut self) -> u32 {
            self.next_u64() as u32
        }

        fn next_u64(&mut self) -> u64 {
            self.next += 1;
            self.next - 1
        }

        fn fill_bytes(&mut self, bytes: &mut [u8]) {
            bytes.fill_with(|| self.next_u64() as u8);
        }
    }

    /// Only for this test: the generator is not suitable for secrets.
    impl CryptoRng for Counter {}

    /// Each value of a mask comes from exactly one pattern of a word's lowest bits. Other patterns are
    /// drawn again.
    #[test]
    fn masks_are_exactly_uniform() {
        for t in SETS.iter().flat_map(|set| set.plaintext_moduli) {
            let half = PAGE as u64 / 2;
            let start = t - half;
            let mut rng = Counter { next: start };
            let expected: Vec<u64> = (start..*t).chain(0..half).collect();
            let values = uniform_values(*t, &mut rng);
            assert!(values == expected, "modulo {t}");
            assert_eq!(rng.next, t.next_power_of_two() + half, "modulo {t}");
        }
    }

    fn norm(x: &[f64]) -> f64 {
        x.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    /// Returns the difference of the means of two samples, in units of its deviation. Both samples have deviation 1.
    fn z_score(a: &[f64], b: &[f64]) -> f64 {
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        (mean(a) - mean(b)) / (2.0 / COPIES as f64).sqrt()
    }

    /// The decryptor has pages of two neighbouring tables, and knows the exact difference of their residual noises.
    /// It looks along that direction, where the tables differ most. Sealed pages do not show which table they are
    /// from. With a flood as small as the residual noise they would.
    #[test]
    fn flooding_hides_the_table_behind_the_noise() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let params = Parameters::new(STANDARD).unwrap();
        let secret = SecretKey::random(&params, &mut rng).unwrap();
        let public = secret.public_key(&mut rng).unwrap();
        let keys = secret.evaluation_keys(&mut rng).unwrap();
        let pages = [64, 63].map(|records| page(&public, &keys, records, &mut rng));
        let residual = pages.each_ref().map(|p| measured(&secret, &p.ciphertext));
        let direction: Vec<f64> = residual[0]
            .iter()
            .zip(&residual[1])
            .map(|(a, b)| a - b)
            .collect();
        let length = norm(&direction);
        let along = |x: &[f64]| -> f64 {
            x.iter().zip(&direction).map(|(x, d)| x * d).sum::<f64>() / length
        };
        let granularity = f64::from(STANDARD.flood_bits).exp2();
        let deviation = granularity * FLOOD_SCALE as f64;
        let (mut hidden, mut bare) = ([vec![], vec![]], [vec![], vec![]]);
        for (table, page) in pages.iter().enumerate() {
            for _ in 0..COPIES {
                let sealed = seal(&public, page, [], 0..512, &mut rng).unwrap();
                // The flood's uniform part has a mean, which is public.
                let sealed: Vec<f64> = measured(&secret, &sealed)
                    .iter()
                    .map(|e| (e - granularity / 2.0) / deviation)
                    .collect();
                let spread = norm(&sealed) / (DEGREE as f64).sqrt();
                assert!(
                    (spread - 1.0).abs() < 0.05,
                    "deviation of the flood: {spread}"
                );
                hidden[table].push(along(&sealed));
                let size = length / (DEGREE as f64).sqrt();
                bare[table].push(along(&sealed) + along(&residual[table]) / size);
            }
        }
        let z = z_score(&hidden[0], &hidden[1]);
        assert!(z.abs() < 5.0, "sealed pages differ by {z} deviations");
        let z = z_score(&bare[0], &bare[1]);
        assert!(
            z > 50.0,
            "the test only sees a difference of {z} deviations"
        );
        // The bound that the ledger charges: rho = |difference|^2 / (2 deviation^2).
        let rho = length.powi(2) / (2.0 * deviation.powi(2));
        assert!(
            rho < (-f64::from(crate::LEAK_BITS)).exp2(),
            "rho_leak {rho:e}"
        );
    }
}
