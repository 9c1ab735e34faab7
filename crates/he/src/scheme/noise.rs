//! Expected ciphertext noise, and how much of it flooding hides.
//!
//! All figures are standard deviations or variances of the coefficient with the largest one. They
//! follow from the variances of the errors that contribute to it (average-case analysis, as in
//! Iliashenko 2019) and are means over keys. Tests compare measured noise with them: of products,
//! pages and squares in the tests below, and at the largest sizes in `tests/noise.rs`.
//!
//! **Products.** The variance of a product of noises is not the product of their variances, because
//! both contain the secret. A fresh noise is a + b s, with errors a and b that are independent of s. At
//! a root of the ring's polynomial s is a sum of n independent terms, so |s|^2 is n
//! [`ERROR_VARIANCE`] times a variable u that is exponential in the limit: its moments are 1, 1,
//! 2. The automorphism X -> X^-1 conjugates, which leaves |s| unchanged. So the mean square of a
//! noise at a root is A + B u for some A and B, that of a product of two is (A + B u)(A' + B' u),
//! and its expectation is (A + B)(A' + B') + B B'. The mean over all roots is the variance of a
//! coefficient, except for the factor n of a product's terms. [`Variance`] therefore keeps A + B and B.
//!
//! The noise of a sealed ciphertext is the flood. All other noise is small in comparison: by
//! [`largest_page_deviation`] its deviation is less than 2^-15 of the flood's. Decryption is
//! exact, and a sealed page is accepted, as long as the noise stays below 28 deviations of the flood
//! ([`released_bits`]; tests keep it below q / 2t). The flood itself exceeds 14 deviations in one of
//! 8192 coefficients with a probability below 8192 * 2 * exp(-14^2 / 2) / (14 sqrt(2 pi)) < 2^-132
//! (Mills' ratio). The other 14 are left for the rest: 2^18 of its own deviations.

use crate::error::{Error, Result};
use crate::scheme::params::{ParameterSet, Parameters};
use crate::scheme::ring::DEGREE;
use crate::scheme::switch_key::ERROR_VARIANCE;
use crate::scheme::upload::Origin;
use crate::scheme::upload::ProductKey;
use crate::table::layout::Layout;
use crate::table::layout::TILE_HEIGHT;

/// Every coefficient lies within this number of deviations, except with a probability below 2^-128.
const TAIL: f64 = 14.0;

/// The norm of the noise vector is assumed to be this many times larger than expected.
const NORM_MARGIN: f64 = 2.0;

/// The flood's deviation in units of its granularity `2^flood_bits`.
pub(crate) const FLOOD_SCALE: u64 = 1 << 26;

/// One released ciphertext under one plaintext modulus leaks at most rho = 2^-LEAK_BITS.
pub const LEAK_BITS: u32 = 30;

const N: f64 = DEGREE as f64;

/// Variance of a noise in which every summand contains the secret at most once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Variance {
    /// The whole variance.
    pub(crate) total: f64,
    /// The part of errors that are multiplied by s.
    secret: f64,
}

impl Variance {
    /// No noise.
    pub(crate) const NONE: Self = Self {
        total: 0.0,
        secret: 0.0,
    };

    /// Returns the variance of a noise times a public polynomial of squared norm `energy`.
    pub(crate) fn times(self, energy: f64) -> Self {
        Self {
            total: self.total * energy,
            secret: self.secret * energy,
        }
    }
}

impl std::ops::Add for Variance {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            total: self.total + other.total,
            secret: self.secret + other.secret,
        }
    }
}

impl std::iter::Sum for Variance {
    fn sum<I: Iterator<Item = Self>>(variances: I) -> Self {
        variances.fold(Self::NONE, std::ops::Add::add)
    }
}

/// Returns the variance of a sum of drawn polynomials, one for each share: of the secret, and of errors in
/// keys that are linear in it.
fn drawn_variance(params: &Parameters) -> f64 {
    (params.shares() * ERROR_VARIANCE) as f64
}

/// Returns the variance of the coefficients of an upload key that key services make.
fn upload_key_variance(params: &Parameters) -> f64 {
    let coefficient = if params.set().upload_key_is_ternary() {
        2.0 / 3.0
    } else {
        ERROR_VARIANCE as f64
    };
    params.shares() as f64 * coefficient
}

/// Returns the variance of the error in a key whose source is the square of an upload key or an image of it. Split
/// keys take two rounds (see `key_sharing`). Between them, the errors are multiplied by the upload key and by the
/// polynomials that cover it.
pub(crate) fn square_key_variance(params: &Parameters) -> f64 {
    let drawn = drawn_variance(params);
    match params.shares() {
        1 => drawn,
        _ => N * drawn * (drawn + upload_key_variance(params)) + 2.0 * drawn,
    }
}

/// Returns the variance that remains after a ciphertext is divided by the special primes, as in encryption under the
/// public key: a rounding error times 1 and s.
pub(crate) fn rounding_variance(params: &Parameters) -> Variance {
    let secret = N * drawn_variance(params) / 12.0;
    Variance {
        total: 1.0 / 12.0 + secret,
        secret,
    }
}

/// Returns the variance that the digits of one switched polynomial add: digits times errors of variance `key`
/// over the product of the special primes. Errors of keys that are linear in s do not contain s. Errors of other keys
/// do, but are small compared with the rounding or the products that these keys are for.
fn digit_variance(params: &Parameters, key: f64) -> f64 {
    let set = params.set();
    let product = |primes: &[u64]| primes.iter().map(|&q| q as f64).product::<f64>();
    let special = product(set.special_moduli);
    let digits = set.ciphertext_moduli.chunks(set.special_moduli.len());
    let digits: f64 = digits
        .map(|primes| (product(primes) / special).powi(2) / 12.0)
        .sum();
    digits * N * key
}

/// Returns the variance that packing trees over `leaves` leaves add to the cells (see `packing`). `merge` is the
/// variance that the digits of a merge of two leaves add, over all sections together.
///
/// A merge doubles the noise of the coefficients that sigma fixes. The cells are the coefficients that every
/// level fixes, so an error of level l, counted from 1 at the leaves, is multiplied by leaves / 2^l. From the
/// second level on, a merge switches one polynomial and divides it. A tile's root is divided after the level
/// that made it ([`TILE_HEIGHT`]), and the tree's root at the end.
pub(crate) fn packing_variance(params: &Parameters, leaves: usize, merge: f64) -> f64 {
    let digits = digit_variance(params, drawn_variance(params));
    let rounding = rounding_variance(params).total;
    // The sum of 4^-l over the levels from 2 is below 1/12.
    let others = (digits + rounding) / 12.0;
    let roots = rounding / 4f64.powi(TILE_HEIGHT as i32);
    (leaves as f64).powi(2) * (merge / 4.0 + others + roots) + rounding
}

/// Returns the variance of the digits of a merge of two leaves under (1, s), which switches one polynomial.
pub(crate) fn linear_merge_variance(params: &Parameters) -> f64 {
    digit_variance(params, drawn_variance(params))
}

/// Returns the variances of the errors of an upload key's switching keys: those whose source is linear in the key,
/// and those whose source is its square.
fn upload_key_variances(params: &Parameters, origin: Origin) -> [f64; 2] {
    match origin {
        // e u + e1 + e2 s, where e is the public key's error.
        Origin::Holder => {
            let drawn = ERROR_VARIANCE as f64;
            [2.0 * N * drawn * drawn_variance(params) + drawn; 2]
        }
        Origin::KeyServices => [drawn_variance(params), square_key_variance(params)],
    }
}

/// Returns the variance of a ciphertext's noise after it is switched from an upload key, under which it has variance
/// `before`, to the service's key.
pub(crate) fn switched_variance(params: &Parameters, origin: Origin, before: f64) -> f64 {
    let [linear, _] = upload_key_variances(params, origin);
    before + digit_variance(params, linear) + rounding_variance(params).total
}

/// Variance of a fresh noise under an upload key: that of its drawn error.
pub(crate) const UPLOAD_FRESH: Variance = Variance {
    total: ERROR_VARIANCE as f64,
    secret: 0.0,
};

/// Variances of noise that depend on the key of a table's columns. The secret in them is the key of the
/// columns' products.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnNoise {
    /// The variance of a fresh column.
    pub(crate) fresh: Variance,
    /// The variance that making a left factor adds.
    pub(crate) left: Variance,
    /// The variance that making a right factor adds.
    pub(crate) right: Variance,
    /// The variance of the digits of a merge of two leaves.
    pub(crate) merge: f64,
}

impl ColumnNoise {
    /// Returns the variances of columns under upload keys, whose products are under `key`.
    pub(crate) fn uploaded(params: &Parameters, origin: Origin, key: ProductKey) -> Self {
        // A sole holder draws its key itself, without shares.
        let shares = match origin {
            Origin::Holder => params.shares() as f64,
            Origin::KeyServices => 1.0,
        };
        let secret = N * upload_key_variance(params) / shares / 12.0;
        let factor = Variance {
            total: digit_variance(params, drawn_variance(params) / shares) + 1.0 / 12.0 + secret,
            secret,
        };
        let [linear, square] =
            upload_key_variances(params, origin).map(|key| digit_variance(params, key));
        Self {
            fresh: UPLOAD_FRESH,
            left: match key {
                ProductKey::Joint => factor,
                ProductKey::Upload(_) => Variance::NONE,
            },
            right: factor,
            merge: 2.0 * linear + 2.0 * square,
        }
    }
}

/// Returns the variance of t * e_x * e_y over all coefficients: the noise of a product without x e_y + y e_x. If both
/// noises consist only of multiples of s, it is twice that of independent noises (see the head of this module).
pub(crate) fn product_variance(t: u64, left: Variance, right: Variance) -> f64 {
    let noises = left.total * right.total + left.secret * right.secret;
    (t as f64).powi(2) * N * noises
}

/// Returns the deviation of the noise after a scale-invariant product of a page and its image, each with
/// noise of expected squared norm `norm_squared`: t (k_x e_y + k_y e_x) over all coefficients, where k is
/// the multiple of q by which c0 + c1 s exceeds its residue (a rounding error of 1 and s). At each root, a
/// page's noise is a mean over its products at 64 or more roots, which packing brings together. It therefore
/// barely depends on s there, and the variances multiply.
pub(crate) fn square_deviation(params: &Parameters, t: u64, norm_squared: f64) -> f64 {
    t as f64 * (2.0 * rounding_variance(params).total * norm_squared).sqrt()
}

/// Returns the largest deviation of a page's noise for which flooding keeps rho_leak at 2^-LEAK_BITS.
///
/// The noises of neighbouring tables differ by at most twice the norm bound, 2 * margin * sqrt(n) *
/// deviation. The flood is g * X + U, with X discrete Gaussian of scale 2^26 and U uniform below g =
/// 2^flood_bits. Conditioned on U, a shift by v moves X by at most |v| / g + 1 in each coefficient, so
/// rho = (norm / g + sqrt(n))^2 / (2 * 2^52).
pub(crate) fn largest_page_deviation(set: &ParameterSet) -> f64 {
    let moves = FLOOD_SCALE as f64 * (2.0 * (-f64::from(LEAK_BITS)).exp2()).sqrt();
    let granularity = f64::from(set.flood_bits).exp2();
    (moves - N.sqrt()) * granularity / (2.0 * NORM_MARGIN * N.sqrt())
}

/// Checks whether the flood hides every page of products of uploaded columns, for combinations whose squared norm is
/// at most `energy`, over all record chunks of a layout. Each leaf is assumed to have the most products it can have.
pub(crate) fn hides_uploads(params: &Parameters, layout: Layout, energy: f64) -> bool {
    let products = layout.chunks() as f64 * layout.slots() as f64;
    // A sole holder's keys have the larger errors, and left factors under a joint key have the larger noise.
    let noise = ColumnNoise::uploaded(params, Origin::Holder, ProductKey::Joint);
    let packing = packing_variance(params, DEGREE, noise.merge);
    let fresh = noise.fresh.times(energy);
    let moduli = params.set().plaintext_moduli.iter();
    let product = |&t: &u64| product_variance(t, fresh + noise.left, fresh + noise.right);
    let largest = moduli.map(product).fold(0.0, f64::max);
    (products * largest + packing).sqrt() <= largest_page_deviation(params.set())
}

/// Returns minus the binary logarithm of the statistical distance between a flood and the same flood moved by the
/// noise of a mask's encryption: the sum of that noise's absolute values over g 2^26 sqrt(2 pi). The sum is at most n
/// times the deviation, and its mean is 0.8 times that.
pub(crate) fn strip_bits(set: &ParameterSet) -> f64 {
    let deviation = (1.0 / 12.0 + N * ERROR_VARIANCE as f64 / 12.0).sqrt();
    let flood = FLOOD_SCALE as f64 * (2.0 * std::f64::consts::PI).sqrt();
    f64::from(set.flood_bits) + (flood / (N * deviation)).log2()
}

/// Rejects a page whose noise the flood would not hide.
pub(crate) fn check_page(set: &ParameterSet, deviation: f64) -> Result<()> {
    if deviation <= largest_page_deviation(set) {
        Ok(())
    } else {
        Err(Error::NoiseBudget)
    }
}

/// Returns the largest noise, in bits, with which a released ciphertext is decrypted: the flood's tail.
pub(crate) fn released_bits(set: &ParameterSet) -> f64 {
    f64::from(set.flood_bits) + (FLOOD_SCALE as f64 * TAIL).log2() + 1.0
}

/// Like [`released_bits`], for a sealed page to which each key service has added its flood.
pub(crate) fn joint_released_bits(params: &Parameters) -> f64 {
    let floods = (params.shares() + 1) as f64;
    released_bits(params.set()) + floods.log2() / 2.0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::evaluate::Evaluator;
    use crate::evaluate::plan::Cell;
    use crate::evaluate::square::SquaredScore;
    use crate::evaluate::work::EvaluationWork;
    use crate::release::page::PackedPage;
    use crate::scheme::ciphertext::Ciphertext;
    use crate::scheme::evaluation_keys::EvaluationKeys;
    use crate::scheme::params::{COMPACT, MAX_SHARES, SETS, STANDARD, WIDE};
    use crate::scheme::public_key::PublicKey;
    use crate::scheme::secret_key::SecretKey;
    use crate::scheme::upload::{UploadKey, UploadKeyId, UploadSwitchKeys, uploaded};
    use crate::table::{Combination, EncryptedTable, Factors};
    use fhaim_ntt::Modulus;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    /// Measures the noise of a ciphertext, coefficient by coefficient: c0 + c1 s - m (q + 1) / t, centred
    /// modulo q.
    pub(crate) fn measured(secret: &SecretKey, ciphertext: &Ciphertext) -> Vec<f64> {
        let ring = secret.params().ring();
        let wide: Vec<i128> = secret.coefficients().iter().map(|&s| s.into()).collect();
        let s = ring.transform_signed(&wide);
        let limbs = ring.ciphertext_limbs();
        let t = secret.params().set().plaintext_moduli[ciphertext.residue];
        let (message, _) = secret.decrypt_residues(ciphertext).unwrap();
        let residues = |j: usize| {
            let m = limbs[j].modulus;
            let c = ciphertext.c[0].limb(j).iter().zip(ciphertext.c[1].limb(j));
            let mut phase: Vec<u64> = c
                .zip(s.limb(j))
                .map(|((&c0, &c1), &s)| m.add(c0, m.mul(c1, s)))
                .collect();
            limbs[j].inverse(&mut phase);
            let scale = m.inv(t);
            let noise = phase.iter().zip(message.iter());
            noise
                .map(|(&p, &x)| m.sub(p, m.mul(x, scale)))
                .collect::<Vec<u64>>()
        };
        let residues: Vec<_> = (0..limbs.len()).map(residues).collect();
        let moduli: Vec<_> = limbs.iter().map(|limb| limb.modulus).collect();
        // Inverses of all primes modulo each prime.
        let inverse = |m: &Modulus| {
            moduli
                .iter()
                .map(|q| m.inv(q.value() % m.value()))
                .collect()
        };
        let inverses: Vec<Vec<u64>> = moduli.iter().map(inverse).collect();
        let centred = |i: usize| {
            // Digits of mixed radix: x = d_0 + q_0 (d_1 + q_1 (d_2 + ...)).
            let mut digits: Vec<u64> = Vec::new();
            for (j, m) in moduli.iter().enumerate() {
                let lower = digits.iter().zip(&inverses[j]);
                let digit = lower.fold(residues[j][i], |x, (&digit, &inverse)| {
                    m.mul(m.sub(x, digit % m.value()), inverse)
                });
                digits.push(digit);
            }
            let negative = digits.last().unwrap() > &(moduli.last().unwrap().value() / 2);
            let size = digits.iter().zip(&moduli).rev().fold(0.0, |x, (&d, m)| {
                let digit = if negative { m.value() - 1 - d } else { d };
                x * m.value() as f64 + digit as f64
            });
            if negative { -size - 1.0 } else { size }
        };
        (0..DEGREE).map(centred).collect()
    }

    fn norm_squared(noise: &[f64]) -> f64 {
        noise.iter().map(|e| e * e).sum()
    }

    /// A key service's keys and a sole holder's keys.
    struct Keys {
        secret: SecretKey,
        public: PublicKey,
        evaluation: EvaluationKeys,
        upload: UploadKey,
        own: UploadSwitchKeys,
    }

    fn keys(set: ParameterSet, rng: &mut ChaCha20Rng) -> Keys {
        let params = Parameters::new(set).unwrap();
        let secret = SecretKey::random(&params, rng).unwrap();
        let public = secret.public_key(rng).unwrap();
        let upload = UploadKey::random(&params, rng).unwrap();
        let own = upload.switch_keys(&public, Layout::for_records(64).ok(), rng);
        Keys {
            evaluation: secret.evaluation_keys(rng).unwrap(),
            own: own.unwrap(),
            public,
            secret,
            upload,
        }
    }

    impl Keys {
        fn evaluator(&self) -> Evaluator<'_> {
            let evaluator = Evaluator::new(&self.evaluation, Layout::for_records(64).unwrap());
            evaluator.with_switch_keys(&self.own).unwrap()
        }
    }

    #[test]
    fn fresh_noise_has_the_expected_size() {
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        for set in SETS {
            let keys = keys(set, &mut rng);
            let fresh = keys
                .public
                .encrypt(&[1; 64], &mut rng)
                .unwrap()
                .swap_remove(0);
            let noise = norm_squared(&measured(&keys.secret, &fresh)) / N;
            let ratio = noise / rounding_variance(keys.public.params()).total;
            assert!((ratio - 1.0).abs() < 0.15, "set {}: fresh {ratio}", set.id);
        }
    }

    /// Computes a page of the products of the first `side` columns with the last `side`.
    fn page(
        keys: &Keys,
        evaluator: &Evaluator<'_>,
        side: usize,
        rng: &mut ChaCha20Rng,
    ) -> PackedPage {
        let mut column = || vec![uploaded(&keys.upload, &[1; 64], rng)];
        let columns = (0..2 * side).map(|_| column()).collect();
        let table =
            EncryptedTable::new(keys.public.params(), evaluator.context().layout(), columns);
        let combinations: Vec<_> = (0..2 * side).map(Combination::column).collect();
        let (left, right) = combinations.split_at(side);
        let cells = (0..side * side).map(|p| {
            let (left, right) = (p % side, p / side);
            (p, Cell::Product { left, right })
        });
        let cells = [cells.collect()];
        let factors = Factors { left, right };
        let mut work = EvaluationWork::default();
        let pages = evaluator.pages(&table.unwrap(), 0, factors, &cells, &mut work);
        pages.unwrap().pop().unwrap().unwrap()
    }

    /// Returns the ratios of measured to expected squared noise of one page and of its square.
    fn page_and_square(keys: &Keys, side: usize, rng: &mut ChaCha20Rng) -> [f64; 2] {
        let evaluator = keys.evaluator();
        let page = page(keys, &evaluator, side, rng);
        let noise = norm_squared(&measured(&keys.secret, &page.ciphertext));
        let of_page = noise / page.noise.norm_squared;
        let t = WIDE.plaintext_moduli[0];
        let expected = square_deviation(keys.public.params(), t, page.noise.norm_squared).powi(2);
        let square = SquaredScore::new(&evaluator, page, &mut EvaluationWork::default()).unwrap();
        let noise = norm_squared(&measured(&keys.secret, square.square()));
        [of_page, noise / N / expected]
    }

    /// Tests pages that fill a part of a product's slots, pages that fill several products, and their squares.
    /// One page of nine products varies by 11%, one of 1,024 by 6%, their squares by 12% and 7%. The library
    /// draws the public key from the system and not from the seed. The test therefore compares means.
    #[test]
    #[ignore = "slow"]
    fn page_and_square_noise_has_the_expected_size() {
        let mut rng = ChaCha20Rng::seed_from_u64(6);
        let keys = keys(WIDE, &mut rng);
        for (side, pages) in [(3, 16), (32, 4)] {
            let ratios = (0..pages).map(|_| page_and_square(&keys, side, &mut rng));
            let [of_page, of_square] = ratios
                .fold([0.0; 2], |sum, ratio| {
                    [sum[0] + ratio[0], sum[1] + ratio[1]]
                })
                .map(|sum| sum / f64::from(pages));
            eprintln!("{side} x {side} cells: page {of_page:.3}, square {of_square:.3}");
            assert!((of_page - 1.0).abs() < 0.2, "{side}: page {of_page}");
            assert!((of_square - 1.0).abs() < 0.3, "{side}: square {of_square}");
        }
    }

    /// Returns the largest number of shares that a set's secret key may have.
    fn most_shares(set: &ParameterSet) -> usize {
        if set.whole_key_only { 1 } else { MAX_SHARES }
    }

    #[test]
    #[ignore = "slow"]
    fn floods_fit_the_noise_budget() {
        for set in SETS {
            for &t in set.plaintext_moduli {
                let budget = set.ciphertext_bits() - (t as f64).log2() - 1.0;
                for shares in 1..=most_shares(&set) {
                    let params = Parameters::new(set).unwrap().with_shares(shares).unwrap();
                    assert!(joint_released_bits(&params) < budget, "set {}", set.id);
                }
            }
        }
        let whole = Parameters::new(COMPACT).unwrap();
        assert!(matches!(whole.with_shares(2), Err(Error::Mismatch(_))));
    }

    #[test]
    fn strip_bits_equal_the_documented_values() {
        let bits = SETS.map(|set| strip_bits(&set).floor());
        assert_eq!(bits, [52.0, 86.0, 98.0]);
    }

    #[test]
    fn flood_hides_the_widest_statistics_of_uploaded_columns() {
        let layout = |records: u64| Layout::for_records(records as usize).unwrap();
        for (set, energies) in [
            // 49 times 12 columns of 100, and 1 on the others. 49 on 24 of them is too much for the largest number of
            // records.
            (COMPACT, [676.0, 1_252.0]),
            (STANDARD, [1e8, 1e15]),
            (WIDE, [8_925.0, 1e15]),
        ] {
            let params = Parameters::new(set).unwrap();
            let hides =
                energies.map(|energy| hides_uploads(&params, layout(set.max_records), energy));
            assert_eq!(hides, [true, false], "set {}", set.id);
        }
        // With fewer records than a stride, several products share a leaf.
        let params = Parameters::new(COMPACT).unwrap();
        let hides = |records| hides_uploads(&params, layout(records), 1_252.0);
        assert_eq!([64, 8_192, 8_192 * 16].map(hides), [false, true, true]);
    }

    /// Covers keys of one, two and three shares, and squared scores under a whole key.
    #[test]
    fn flood_hides_the_widest_statistics_of_rosters() {
        // Both axes merge 100 categories into 8 centred groups: 7 on 12 columns, -1 on 88.
        let energy = 49.0 * 12.0 + 88.0;
        for shares in 1..=MAX_SHARES {
            let of = |set| Parameters::new(set).unwrap().with_shares(shares).unwrap();
            for set in [STANDARD, WIDE] {
                let params = of(set);
                let chunks = (set.max_records as f64 / N).ceil();
                let noise = ColumnNoise::uploaded(&params, Origin::KeyServices, ProductKey::Joint);
                let fresh = noise.fresh.times(energy);
                let (left, right) = (fresh + noise.left, fresh + noise.right);
                let products = chunks * product_variance(set.plaintext_moduli[0], left, right);
                let page = (products + packing_variance(&params, DEGREE, noise.merge)).sqrt();
                let largest = largest_page_deviation(&set);
                eprintln!(
                    "set {}, {shares} shares: {:.4} of the largest",
                    set.id,
                    page / largest
                );
                assert!(page < largest, "set {}, {shares} shares", set.id);
            }
        }
        let params = Parameters::new(WIDE).unwrap();
        let chunks = (WIDE.max_squared_records as f64 / N).ceil();
        let upload = ProductKey::Upload(UploadKeyId([0; 16]));
        let noise = ColumnNoise::uploaded(&params, Origin::Holder, upload);
        for &t in WIDE.plaintext_moduli {
            let products = chunks * product_variance(t, noise.fresh, noise.fresh + noise.right);
            // A page full of cells, in a clique of weight 1000.
            let norm_squared = N * (products + packing_variance(&params, DEGREE, noise.merge));
            let square = 1000.0 * square_deviation(&params, t, norm_squared);
            let largest = largest_page_deviation(&WIDE);
            eprintln!("squares: {:.4} of the largest", square / largest);
            assert!(square < largest, "squares");
        }
    }

    #[test]
    fn other_noise_is_small_compared_with_the_flood() {
        for set in SETS {
            let params = Parameters::new(set).unwrap();
            let flood = FLOOD_SCALE as f64 * f64::from(set.flood_bits).exp2();
            assert!(largest_page_deviation(&set) < flood / 32768.0);
            // The mask's encryption and all vectors of a ladder.
            let vectors = 1.0 + 3.0 * 27.0;
            for shares in 1..=most_shares(&set) {
                let fresh = rounding_variance(&params.with_shares(shares).unwrap()).total;
                assert!((vectors * fresh).sqrt() < largest_page_deviation(&set));
            }
        }
    }
}
