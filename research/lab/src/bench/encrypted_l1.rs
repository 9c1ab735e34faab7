//! `fhaim-lab bench encrypted-l1`: what the FHAIM paper's L1 score would cost under exact encryption.
//!
//! The score needs the polynomial of degree 10 of every cell's difference. This bench computes the polynomial on real
//! ciphertexts of the crate `fhe` (BFV), at rings larger than ours. It searches for the smallest ciphertext modulus with
//! which every slot is decrypted to the right value, and measures ciphertexts and seconds at that modulus.
//!
//! Values are integers: F B P(x / B) with F = B^9 2^12, so that the coefficient of x^10 is an integer of 16 bits. They
//! exceed a word, so they live under several plaintext primes (residues), each with its own ciphertexts.

use std::sync::Arc;

use clap::Args;
use fhaim_domain::Table;
use fhaim_files::progress::Progress;
use fhe::bfv::{
    BfvParameters, BfvParametersBuilder, Ciphertext, Encoding, Multiplicator, Plaintext,
    RelinearizationKey, SecretKey,
};
use fhe_math::zq::primes::generate_prime;
use fhe_traits::{FheDecoder, FheDecrypter, FheEncoder, FheEncrypter, Serialize as _};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde::Serialize;

use super::datasets;
use super::polynomial::{Polynomial, RANGE, TERMS};
use super::rows::Rows;
use crate::{error::Error, size};

/// The end of the text of `--help`.
pub const ENCRYPTED_L1_EXAMPLES: &str = "\
Examples:
  FHAIM_DATA_DIR=data fhaim-lab bench encrypted-l1
  FHAIM_DATA_DIR=data fhaim-lab bench encrypted-l1 --ring 16384 --plaintext-bits 50 --json

The moduli that 128-bit security permits are those of the guidelines of 2024 (Bossuat et al.).";

/// Ring degrees with the bits of modulus that they permit at 128-bit security against classical attacks, for a ternary
/// secret (Bossuat et al. 2024, Security Guidelines for Implementing Homomorphic Encryption, Table 5.2).
const SECURE_BITS: [(usize, usize); 3] = [(8192, 214), (16_384, 430), (32_768, 868)];

/// log2 of F / B^9.
const FRACTION_BITS: u32 = 12;

/// Products of ciphertexts for one polynomial: x^2, x^4, x^8, and two of a power with a linear factor.
const PRODUCTS: usize = 5;

/// The most bits of a ciphertext prime.
const PRIME_BITS: usize = 60;

/// Number of timed products.
const TIMED: u32 = 5;

/// Arguments of `bench encrypted-l1`.
#[derive(Debug, Args)]
pub struct EncryptedL1Arguments {
    /// Ring degree (may be repeated)
    #[arg(long, value_name = "N", default_values_t = [16_384, 32_768])]
    pub ring: Vec<usize>,
    /// Bits of each plaintext prime (may be repeated)
    #[arg(long, value_name = "BITS", default_values_t = [20, 50], value_parser = clap::value_parser!(u16).range(18..=60))]
    pub plaintext_bits: Vec<u16>,
    /// Table that is to be computed: breast-cancer, compas or diabetes
    #[arg(long, value_name = "NAME", default_value = "compas")]
    pub table: String,
    /// Number of rounds of selection for each attribute
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub rounds: usize,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

/// The results at one ring and size of the plaintext primes.
#[derive(Debug, Serialize)]
struct Row {
    ring: usize,
    /// Bits of modulus that 128-bit security permits at this ring.
    secure_bits: usize,
    plaintext_bits: usize,
    /// Number of plaintext primes that the score needs.
    residues: usize,
    /// Smallest modulus with which all slots are right; `None` if that is more than security permits.
    modulus_bits: Option<usize>,
    /// Bytes of a fresh ciphertext at that modulus.
    ciphertext_bytes: Option<usize>,
    /// Bytes of all encrypted one-hot columns, for all residues.
    upload_bytes: Option<usize>,
    products: usize,
    /// Processor seconds of one product with its relinearisation.
    product_seconds: Option<f64>,
    /// Processor seconds of one polynomial, under one residue.
    polynomial_seconds: Option<f64>,
    /// Processor seconds of all polynomials of a run, with one ciphertext for each pair of columns, as in the paper.
    run_seconds_by_pair: Option<f64>,
    /// The same with the cells of all pairs in as few ciphertexts as possible.
    run_seconds_packed: Option<f64>,
}

/// Public sizes of a table.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    records: usize,
    columns: usize,
    pairs: usize,
    cells: usize,
    largest_pair: usize,
    rounds: usize,
}

impl Sizes {
    fn new(table: &Table, rounds: usize) -> Self {
        let domain = table.domain();
        let pairs = domain.pairs();
        let cells: Vec<usize> = pairs.iter().filter_map(|pair| domain.cells(pair)).collect();
        Self {
            records: table.records(),
            columns: domain.sizes().iter().sum(),
            pairs: pairs.len(),
            cells: cells.iter().sum(),
            largest_pair: cells.iter().copied().max().unwrap_or(0),
            rounds: rounds * domain.len(),
        }
    }

    /// Returns the bits of the largest score, with its sign: differences add up to at most twice the records.
    fn score_bits(&self, polynomial: &Polynomial) -> f64 {
        let slope = 1.25;
        let records =
            polynomial.value(0.0) * self.largest_pair as f64 + slope * 2.0 * self.records as f64;
        1.0 + records.log2() + 9.0 * (RANGE as f64).log2() + f64::from(FRACTION_BITS)
    }
}

/// Runs the command.
pub fn run(arguments: &EncryptedL1Arguments, progress: &Progress) -> Result<(), Error> {
    let found = datasets(std::slice::from_ref(&arguments.table))?;
    let table = found.first().map(|dataset| &dataset.table);
    let sizes = table.map(|table| Sizes::new(table, arguments.rounds));
    let sizes = sizes.ok_or_else(|| Error::Usage("--table names no table".to_owned()))?;
    let mut rows = Rows::begin(arguments.json, HEADING, line)?;
    for &ring in &arguments.ring {
        for &bits in &arguments.plaintext_bits {
            let phase = progress.uncounted(format!("ring {ring}, plaintext primes of {bits} bits"));
            rows.push(&measure(ring, bits.into(), &sizes)?)?;
            phase.finish();
        }
    }
    rows.end("")
}

fn measure(ring: usize, plaintext_bits: usize, sizes: &Sizes) -> Result<Row, Error> {
    let secure = SECURE_BITS.iter().find(|(degree, _)| *degree == ring);
    let &(_, secure_bits) = secure
        .ok_or_else(|| Error::Usage(format!("--ring {ring}: choose 8192, 16384 or 32768")))?;
    let prime = generate_prime(plaintext_bits, 2 * ring as u64, 1 << plaintext_bits);
    let prime = prime.ok_or_else(|| {
        Error::Usage(format!(
            "--plaintext-bits {plaintext_bits}: ring {ring} has no such prime"
        ))
    })?;
    let polynomial = Polynomial::of_the_paper();
    let residues = (sizes.score_bits(&polynomial) / (prime as f64).log2()).ceil() as usize;
    let task = Task::new(ring, prime, &polynomial);
    let mut row = Row {
        ring,
        secure_bits,
        plaintext_bits,
        residues,
        modulus_bits: task.least_bits(secure_bits)?,
        ciphertext_bytes: None,
        upload_bytes: None,
        products: PRODUCTS,
        product_seconds: None,
        polynomial_seconds: None,
        run_seconds_by_pair: None,
        run_seconds_packed: None,
    };
    if let Some(bits) = row.modulus_bits {
        let cost = task.cost(bits)?;
        let polynomials = |ciphertexts: usize| {
            let all = ciphertexts * residues * sizes.rounds;
            Some(all as f64 * cost.polynomial_seconds)
        };
        let uploaded = sizes.columns * sizes.records.div_ceil(ring) * residues;
        row.ciphertext_bytes = Some(cost.ciphertext_bytes);
        row.upload_bytes = Some(uploaded * cost.ciphertext_bytes);
        row.product_seconds = Some(cost.product_seconds);
        row.polynomial_seconds = Some(cost.polynomial_seconds);
        row.run_seconds_by_pair = polynomials(sizes.pairs);
        row.run_seconds_packed = polynomials(sizes.cells.div_ceil(ring));
    }
    Ok(row)
}

/// A polynomial to be computed on a ciphertext of one residue.
struct Task {
    ring: usize,
    prime: u64,
    /// F B P(x / B) in powers of x^2, modulo the prime.
    coefficients: [u64; TERMS],
    /// The differences in all slots.
    differences: Vec<u64>,
}

/// What a task costs.
struct Cost {
    ciphertext_bytes: usize,
    product_seconds: f64,
    polynomial_seconds: f64,
}

/// Keys and parameters.
struct Setup {
    parameters: Arc<BfvParameters>,
    secret: SecretKey,
    multiplicator: Multiplicator,
    rng: StdRng,
}

impl Task {
    fn new(ring: usize, prime: u64, polynomial: &Polynomial) -> Self {
        let mut rng = StdRng::seed_from_u64(1);
        let coefficients = std::array::from_fn(|term| {
            // F B / B^2i = 2^12 B^(10 - 2i).
            let rounded = (polynomial.coefficients[term] * f64::from(1 << FRACTION_BITS)).round();
            let magnitude = times(
                rounded.abs() as u64,
                power(RANGE, (2 * (TERMS - 1 - term)) as u32, prime),
                prime,
            );
            if rounded < 0.0 {
                (prime - magnitude) % prime
            } else {
                magnitude
            }
        });
        Self {
            ring,
            prime,
            coefficients,
            differences: (0..ring).map(|_| rng.random_range(0..RANGE)).collect(),
        }
    }

    /// Returns the values of the polynomial in all slots, computed in the clear.
    fn expected(&self) -> Vec<u64> {
        let value = |&x: &u64| {
            let square = times(x % self.prime, x % self.prime, self.prime);
            let terms = self.coefficients.iter().rev();
            terms.fold(0, |sum, &c| {
                (times(sum, square, self.prime) + c) % self.prime
            })
        };
        self.differences.iter().map(value).collect()
    }

    /// Returns the least bits of modulus with which all slots are right, or `None` if they exceed the secure bits.
    fn least_bits(&self, secure: usize) -> Result<Option<usize>, Error> {
        if !self.is_right(secure)? {
            return Ok(None);
        }
        let (mut wrong, mut right) = (2 * self.prime.ilog2() as usize, secure);
        while right - wrong > 1 {
            let middle = usize::midpoint(wrong, right);
            if self.is_right(middle)? {
                right = middle;
            } else {
                wrong = middle;
            }
        }
        Ok(Some(right))
    }

    /// Returns whether all slots are right with a modulus of this size.
    fn is_right(&self, bits: usize) -> Result<bool, Error> {
        let mut setup = self.setup(bits)?;
        let encrypted = self.encrypt(&mut setup)?;
        let result = self.evaluate(&setup, &encrypted)?;
        let decrypted = setup.secret.try_decrypt(&result).map_err(failed)?;
        let found = Vec::<u64>::try_decode(&decrypted, Encoding::simd()).map_err(failed)?;
        Ok(found == self.expected())
    }

    fn setup(&self, bits: usize) -> Result<Setup, Error> {
        // A prime of the plaintext's size could be the plaintext's own, which has no inverse.
        let plain = self.prime.ilog2() as usize + 1;
        let fewest = bits.div_ceil(PRIME_BITS);
        let sizes = |primes: usize| (0..primes).map(move |i| (bits + i) / primes);
        let primes = if sizes(fewest).any(|size| size == plain) {
            fewest + 1
        } else {
            fewest
        };
        let sizes: Vec<usize> = sizes(primes).collect();
        let parameters = BfvParametersBuilder::new()
            .set_degree(self.ring)
            .set_plaintext_modulus(self.prime)
            .set_moduli_sizes(&sizes)
            .build_arc()
            .map_err(failed)?;
        let mut rng = StdRng::seed_from_u64(2);
        let secret = SecretKey::random(&parameters, &mut rng);
        let key = RelinearizationKey::new(&secret, &mut rng).map_err(failed)?;
        Ok(Setup {
            multiplicator: Multiplicator::default(&key).map_err(failed)?,
            parameters,
            secret,
            rng,
        })
    }

    fn encrypt(&self, setup: &mut Setup) -> Result<Ciphertext, Error> {
        let plaintext = self.plaintext(setup, &self.differences)?;
        setup
            .secret
            .try_encrypt(&plaintext, &mut setup.rng)
            .map_err(failed)
    }

    fn plaintext(&self, setup: &Setup, values: &[u64]) -> Result<Plaintext, Error> {
        let values: Vec<u64> = values.iter().map(|&value| value % self.prime).collect();
        Plaintext::try_encode(&values, Encoding::simd(), &setup.parameters).map_err(failed)
    }

    /// Computes the polynomial at depth 4: with y = x^2, a0 + a1 y + y^2 (a2 + a3 y) + y^4 (a4 + a5 y).
    fn evaluate(&self, setup: &Setup, x: &Ciphertext) -> Result<Ciphertext, Error> {
        let product =
            |a: &Ciphertext, b: &Ciphertext| setup.multiplicator.multiply(a, b).map_err(failed);
        let y = product(x, x)?;
        let y2 = product(&y, &y)?;
        let y4 = product(&y2, &y2)?;
        let linear = |constant: usize| -> Result<Ciphertext, Error> {
            let slots = |value: u64| self.plaintext(setup, &vec![value; self.ring]);
            let scaled = &y * &slots(self.coefficients[constant + 1])?;
            Ok(&scaled + &slots(self.coefficients[constant])?)
        };
        let upper = product(&y4, &linear(4)?)?;
        let middle = product(&y2, &linear(2)?)?;
        Ok(&(&linear(0)? + &middle) + &upper)
    }

    fn cost(&self, bits: usize) -> Result<Cost, Error> {
        let mut setup = self.setup(bits)?;
        let x = self.encrypt(&mut setup)?;
        let before = processor_seconds();
        for _ in 0..TIMED {
            setup.multiplicator.multiply(&x, &x).map_err(failed)?;
        }
        let between = processor_seconds();
        self.evaluate(&setup, &x)?;
        let after = processor_seconds();
        Ok(Cost {
            ciphertext_bytes: x.to_bytes().len(),
            product_seconds: (between - before) / f64::from(TIMED),
            polynomial_seconds: after - between,
        })
    }
}

/// Returns the processor seconds of this process, or 0 if the system does not report them.
fn processor_seconds() -> f64 {
    size::cpu_seconds("/proc/self/stat").unwrap_or(0.0)
}

fn times(a: u64, b: u64, modulus: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(modulus)) as u64
}

fn power(base: u64, exponent: u32, modulus: u64) -> u64 {
    (0..exponent).fold(1, |product, _| times(product, base % modulus, modulus))
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Job(format!("the crate `fhe` failed: {error}"))
}

const HEADING: &str = "ring    plaintext bits  residues  modulus bits (secure)  MB a ciphertext  MB of columns  s a product  \
     s a polynomial  s a run, by pair  packed\n";

fn line(row: &Row) -> String {
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let megabytes = |bytes: Option<usize>| number(bytes.map(|bytes| bytes as f64 / 1e6), 2);
    let bits = row
        .modulus_bits
        .map_or_else(|| "more".to_owned(), |bits| bits.to_string());
    format!(
        "{:6} {:15} {:9} {:>22} {:>16} {:>14} {:>12} {:>15} {:>17} {:>7}\n",
        row.ring,
        row.plaintext_bits,
        row.residues,
        format!("{bits} ({})", row.secure_bits),
        megabytes(row.ciphertext_bytes),
        megabytes(row.upload_bytes),
        number(row.product_seconds, 2),
        number(row.polynomial_seconds, 2),
        number(row.run_seconds_by_pair, 0),
        number(row.run_seconds_packed, 0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At a small ring the values are right if the modulus is large enough, and wrong if it is not.
    #[test]
    fn polynomial_of_a_ciphertext_equals_that_of_its_slots() {
        let prime = generate_prime(20, 2 * 1024, 1 << 20).unwrap();
        let task = Task::new(1024, prime, &Polynomial::of_the_paper());
        assert!(task.is_right(240).unwrap());
        assert!(!task.is_right(100).unwrap());
        let least = task.least_bits(240).unwrap().unwrap();
        assert!((120..230).contains(&least), "{least}");
        assert_eq!(task.least_bits(100).unwrap(), None);
    }

    /// Of these moduli the largest ones of their size include the plaintext's prime.
    #[test]
    fn ciphertext_primes_differ_from_the_plaintext_prime() {
        let prime = generate_prime(50, 2 * 1024, 1 << 50).unwrap();
        let task = Task::new(1024, prime, &Polynomial::of_the_paper());
        for bits in [100, 250, 400] {
            let setup = task.setup(bits).unwrap();
            assert!(!setup.parameters.moduli().contains(&prime), "{bits}");
        }
    }

    /// The coefficients modulo a prime above all values are those of the polynomial in records.
    #[test]
    fn values_modulo_the_prime_are_the_polynomial_in_records() {
        let paper = Polynomial::of_the_paper();
        let prime = generate_prime(60, 2 * 1024, 1 << 60).unwrap();
        let task = Task::new(1024, prime, &paper);
        let scale = f64::from(1 << FRACTION_BITS);
        let constant = (paper.coefficients[0] * scale).round() as u64;
        let expected = times(constant, power(RANGE, 10, prime), prime);
        assert_eq!(task.coefficients[0], expected);
        let negative = (-paper.coefficients[2] * scale).round() as u64;
        let magnitude = times(negative, power(RANGE, 6, prime), prime);
        assert_eq!(task.coefficients[2], prime - magnitude);
    }
}
