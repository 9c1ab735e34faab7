//! Validated parameter sets.
//!
//! All sets use ring degree 8192. At this degree the guidelines of 2024 (Bossuat et al., Security
//! Guidelines for Implementing Homomorphic Encryption) allow 214 bits of modulus, including the
//! key-switching prime, for 128-bit security against classical attacks with a ternary secret. With a
//! Gaussian secret, to which ours is close, they allow 216. `docs/lattice_estimate.py` computes the
//! lattice estimator's figures for our sets, and docs/THREAT-MODEL.md lists them.
//!
//! Each plaintext modulus t divides q + 1, where q is the product of the ciphertext primes. A product of
//! ciphertexts then encrypts the product of the messages without a correction factor (see
//! `tensor`). `examples/search_parameters.rs` finds the primes, and a test there compares them.

use crate::error::{Error, Result};
use crate::scheme::ring::{DEGREE, Ring};
use fhaim_ntt::Modulus;
use fhe::bfv::{BfvParameters, BfvParametersBuilder};
use std::sync::{Arc, Mutex, PoisonError};

/// Upper bound on the bits of all primes together, for 128-bit security at [`DEGREE`] with our secret.
const SECURE_BITS: u32 = 216;

/// The same bound with a uniform ternary secret.
const SECURE_BITS_TERNARY: u32 = 214;

/// The public numbers of one parameter set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterSet {
    /// Identifier carried by every encoded object.
    pub id: u8,
    /// Ciphertext primes.
    pub ciphertext_moduli: &'static [u64],
    /// Key-switching primes. Their number is that of the ciphertext primes whose residues form one digit (see
    /// `keyswitch`). Encryption under the public key starts with the first and switches it away.
    pub special_moduli: &'static [u64],
    /// Plaintext moduli. A value lives modulo their product.
    pub plaintext_moduli: &'static [u64],
    /// Smallest number of records that the set is for, without squared scores. The number of plaintext moduli of a
    /// release, and therefore the charge for its ciphertexts, depends only on the records and on squares.
    pub min_records: u64,
    /// Largest number of records that the noise analysis covers.
    pub max_records: u64,
    /// The same with squared scores, which multiply packed statistics once more. 0 if the set does not support them.
    pub max_squared_records: u64,
    /// Binary logarithm of the flood's granularity. The flood's deviation is 2^26 times the granularity (see
    /// `noise`).
    pub flood_bits: u32,
    /// Whether the set is only for secret keys that one service holds whole.
    pub whole_key_only: bool,
}

/// The set for up to 2^20 records and a whole key. q has 102 bits, and there are two special primes, with which a key
/// switch has one digit. t is the largest prime below 2^24.15, so that two floods and their tails stay below q / 2t.
pub const COMPACT: ParameterSet = ParameterSet {
    id: 1,
    ciphertext_moduli: &[0x0007_fa9d_873c_4001, 0x0007_ffff_fffe_0001],
    special_moduli: &[0x0007_ffff_fffb_c001, 0x0007_ffff_fffc_c001],
    plaintext_moduli: &[18_615_479],
    min_records: 0,
    max_records: 1 << 20,
    max_squared_records: 0,
    flood_bits: 45,
    whole_key_only: true,
};

/// The set for up to 2^22 records, shared keys, wide columns and large weights. t has 30 bits, and there is a third
/// ciphertext prime.
pub const STANDARD: ParameterSet = ParameterSet {
    id: 2,
    ciphertext_moduli: &[
        0x0007_ffff_fffe_0001,
        0x0007_ffff_fffc_c001,
        0x0004_1232_cde0_c001,
    ],
    special_moduli: &[0x0007_ffff_fffb_c001],
    plaintext_moduli: &[1_073_741_789],
    min_records: 0,
    max_records: 1 << 22,
    max_squared_records: 0,
    flood_bits: 79,
    whole_key_only: false,
};

/// The set for values of 51 bits: up to 2^30 records, or squared scores of up to 2^18 records. Values live under two
/// plaintext moduli, each with its own ciphertext, because one modulus of that size would leave no room for the noise
/// of a product.
pub const WIDE: ParameterSet = ParameterSet {
    id: 3,
    ciphertext_moduli: &[
        0x0007_ffff_fffe_0001,
        0x0007_ffff_fffc_c001,
        0x0004_9d24_a528_0001,
    ],
    special_moduli: &[0x0007_ffff_fffb_c001],
    plaintext_moduli: &[67_108_859, 57_483_649],
    min_records: STANDARD.max_records + 1,
    max_records: 1 << 30,
    max_squared_records: 1 << 18,
    flood_bits: 91,
    whole_key_only: false,
};

/// Every set, in order of preference: [`ParameterSet::choose`] takes the first one that fits.
pub(crate) const SETS: [ParameterSet; 3] = [COMPACT, STANDARD, WIDE];

impl ParameterSet {
    /// Returns the set with identifier `id`.
    pub fn by_id(id: u8) -> Option<Self> {
        SETS.into_iter().find(|set| set.id == id)
    }

    /// Returns the number of plaintext moduli of the set for these records, which is also the number of ciphertexts
    /// of a released page. It does not depend on the size of releases, so prices are known before noise is.
    pub fn residues(records: u64, squares: bool) -> usize {
        let sets = SETS.iter().filter(|set| set.is_for(records, squares));
        let residues = sets.map(|set| set.plaintext_moduli.len()).max();
        // If no set is for these records, none is chosen either.
        residues.unwrap_or(WIDE.plaintext_moduli.len())
    }

    pub(crate) fn is_for(&self, records: u64, squares: bool) -> bool {
        match squares {
            true => self.has_squares() && records <= self.max_squared_records,
            false => (self.min_records..=self.max_records).contains(&records),
        }
    }

    /// Returns whether packed statistics may be multiplied once more (squared scores).
    pub fn has_squares(&self) -> bool {
        self.max_squared_records > 0
    }

    /// Returns the product of the plaintext moduli. Released values are centred modulo it.
    pub fn range(&self) -> u128 {
        self.plaintext_moduli
            .iter()
            .map(|&t| u128::from(t))
            .product()
    }

    /// Returns the bits of the ciphertext modulus q.
    pub fn ciphertext_bits(&self) -> f64 {
        self.ciphertext_moduli
            .iter()
            .map(|&q| (q as f64).log2())
            .sum()
    }

    /// Returns the bytes of a ciphertext in memory: two polynomials, one word for each residue.
    pub fn memory_bytes(&self) -> usize {
        2 * DEGREE * size_of::<u64>() * self.ciphertext_moduli.len()
    }

    /// Returns the bits of noise at which decryption errs: q / 2t for the largest plaintext modulus.
    pub fn noise_budget(&self) -> f64 {
        let t = self.plaintext_moduli.iter().copied().max().unwrap_or(1) as f64;
        self.ciphertext_bits() - t.log2() - 1.0
    }

    /// Returns the ciphertext primes, followed by the special ones.
    fn all_moduli(&self) -> Vec<u64> {
        [self.ciphertext_moduli, self.special_moduli].concat()
    }

    /// Returns the number of digits of a key switch. A digit covers as many ciphertext primes as there are special
    /// ones.
    pub(crate) fn digits(&self) -> usize {
        self.ciphertext_moduli
            .len()
            .div_ceil(self.special_moduli.len())
    }

    /// Returns the bits of all primes together.
    fn modulus_bits(&self) -> u32 {
        let all = self.all_moduli();
        all.iter().map(|q| 64 - q.leading_zeros()).sum()
    }

    /// Returns whether a holder's upload key is ternary. Otherwise it has the distribution of the service's key.
    pub(crate) fn upload_key_is_ternary(&self) -> bool {
        self.modulus_bits() <= SECURE_BITS_TERNARY
    }

    fn validate(&self) -> Result<()> {
        let broken = |reason| {
            Err(Error::Parameters {
                id: self.id,
                reason,
            })
        };
        let all = self.all_moduli();
        if self.ciphertext_moduli.len() < 2 || self.plaintext_moduli.is_empty() {
            return broken("needs at least two ciphertext primes and one plaintext modulus");
        }
        let together = self.special_moduli.len();
        let groups = || {
            let ciphertext = self.ciphertext_moduli.chunks(together.max(1));
            ciphertext.chain([self.special_moduli])
        };
        if groups().any(|group| group.len() != together || group.is_empty()) {
            return broken("each digit must have as many primes as there are special primes");
        }
        if !groups().all(<[u64]>::is_sorted) {
            return broken(
                "the primes of a digit, and the special primes, must be in ascending order",
            );
        }
        if self.modulus_bits() > SECURE_BITS {
            return broken("the modulus has more bits than 128-bit security allows");
        }
        if all
            .iter()
            .enumerate()
            .any(|(i, q)| all.iter().take(i).any(|other| other == q))
        {
            return broken("a prime occurs twice");
        }
        if all
            .iter()
            .any(|&q| q >> 61 != 0 || q % (2 * DEGREE as u64) != 1 || !is_prime(q))
        {
            return broken("each modulus must be a prime below 2^61 that is 1 modulo 2n");
        }
        if all.iter().any(|&q| all.iter().any(|&other| other >= 2 * q)) {
            return broken("primes must be within a factor of two of each other");
        }
        if all.iter().any(|&q| u64::MAX / q < 4 * self.digits() as u64) {
            return broken("sums of digits times keys would not fit 128 bits");
        }
        for (i, &t) in self.plaintext_moduli.iter().enumerate() {
            let q_mod_t = self
                .ciphertext_moduli
                .iter()
                .fold(1u128, |product, &q| product * u128::from(q) % u128::from(t));
            if t >> 31 != 0 || q_mod_t != u128::from(t) - 1 {
                return broken("a plaintext modulus must divide q + 1 and stay below 2^31");
            }
            let mut earlier = self.plaintext_moduli.iter().take(i);
            if earlier.any(|&other| gcd(other, t) != 1) {
                return broken("two plaintext moduli share a factor");
            }
        }
        Ok(())
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Miller-Rabin test with bases that decide every 64-bit number (Sorenson and Webster 2015).
fn is_prime(q: u64) -> bool {
    if q < 41 || q.is_multiple_of(2) || q >> 62 != 0 {
        return [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37].contains(&q);
    }
    let m = Modulus::new(q);
    let (odd, twos) = (
        (q - 1) >> (q - 1).trailing_zeros(),
        (q - 1).trailing_zeros(),
    );
    [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37]
        .into_iter()
        .all(|base| {
            let mut x = m.pow(base, odd);
            if x == 1 || x == q - 1 {
                return true;
            }
            (1..twos).any(|_| {
                x = m.mul(x, x);
                x == q - 1
            })
        })
}

/// Largest number of key services that a secret key may be split among.
pub const MAX_SHARES: usize = 3;

/// A validated parameter set with its precomputed tables, and the number of shares of the secret key, on
/// which noise depends. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Parameters {
    tables: Arc<Tables>,
    shares: usize,
}

#[derive(Debug)]
struct Tables {
    set: ParameterSet,
    ring: Ring,
    schemes: Vec<Arc<BfvParameters>>,
}

impl Parameters {
    /// Checks every rule of `set` and builds its tables.
    ///
    /// # Errors
    /// [`Error::Parameters`] with the broken rule.
    pub fn new(set: ParameterSet) -> Result<Self> {
        set.validate()?;
        // The library handles keys, and ciphertexts before they are divided by the first special prime.
        let first = set.special_moduli.iter().take(1);
        let moduli: Vec<u64> = set.ciphertext_moduli.iter().chain(first).copied().collect();
        let scheme = |&t: &u64| {
            BfvParametersBuilder::new()
                .set_degree(DEGREE)
                .set_plaintext_modulus(t)
                .set_moduli(&moduli)
                .build_arc()
        };
        let schemes = set
            .plaintext_moduli
            .iter()
            .map(scheme)
            .collect::<std::result::Result<_, _>>()?;
        let ring = Ring::new(DEGREE, set.ciphertext_moduli, set.special_moduli)?;
        Ok(Self {
            tables: Arc::new(Tables { set, ring, schemes }),
            shares: 1,
        })
    }

    /// Returns the parameters of a set, built once per process, because building the tables takes as long as ten
    /// encryptions.
    ///
    /// # Errors
    /// The same as for [`Parameters::new`].
    pub fn shared(set: ParameterSet) -> Result<Self> {
        static BUILT: Mutex<Vec<Parameters>> = Mutex::new(Vec::new());
        let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parameters) = built.iter().find(|built| *built.set() == set) {
            return Ok(parameters.clone());
        }
        let parameters = Self::new(set)?;
        built.push(parameters.clone());
        Ok(parameters)
    }

    /// Returns the same set for a secret key that is the sum of `shares` shares.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for zero shares, and for more than [`MAX_SHARES`]. [`Error::Mismatch`] for several
    /// shares and a set for whole keys: almost q / 2t would be the only bound on the noise of jointly decrypted
    /// ciphertexts, so single positions would not distinguish a sealed page from another ciphertext.
    pub fn with_shares(&self, shares: usize) -> Result<Self> {
        if !(1..=MAX_SHARES).contains(&shares) {
            return Err(Error::OutOfRange("number of shares of a secret key"));
        }
        if shares > 1 && self.set().whole_key_only {
            return Err(Error::Mismatch(
                "the parameter set does not support shared keys",
            ));
        }
        let tables = Arc::clone(&self.tables);
        Ok(Self { tables, shares })
    }

    /// Returns the number of shares of the secret key: 1 if one service has all of it.
    pub fn shares(&self) -> usize {
        self.shares
    }

    /// Returns the set's public numbers.
    pub fn set(&self) -> &ParameterSet {
        &self.tables.set
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.tables.ring
    }

    /// Returns the ciphertext primes, followed by the special ones.
    pub(crate) fn all_moduli(&self) -> Vec<u64> {
        self.tables.set.all_moduli()
    }

    /// Returns the scheme of plaintext modulus number `residue`, which must be one of the set's.
    #[expect(
        clippy::indexing_slicing,
        reason = "callers hold ciphertexts or counts of this set"
    )]
    pub(crate) fn scheme(&self, residue: usize) -> &Arc<BfvParameters> {
        &self.tables.schemes[residue]
    }

    /// Returns plaintext modulus number `residue`, which must be one of the set's.
    #[expect(
        clippy::indexing_slicing,
        reason = "callers hold ciphertexts or counts of this set"
    )]
    pub(crate) fn plaintext_modulus(&self, residue: usize) -> u64 {
        self.tables.set.plaintext_moduli[residue]
    }

    /// Returns the number of plaintext moduli.
    pub fn residues(&self) -> usize {
        self.tables.set.plaintext_moduli.len()
    }

    pub(crate) fn check_same(&self, other: &Self) -> Result<()> {
        if self.tables.set != other.tables.set {
            return Err(Error::Mismatch(
                "objects belong to different parameter sets",
            ));
        }
        if self.shares != other.shares {
            return Err(Error::Mismatch(
                "objects belong to keys of different numbers of shares",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_valid() {
        for set in SETS {
            Parameters::new(set).unwrap();
        }
    }

    #[test]
    fn invalid_parameter_sets_are_rejected() {
        let broken = [
            ParameterSet {
                plaintext_moduli: &[18_615_481],
                ..COMPACT
            },
            ParameterSet {
                ciphertext_moduli: &[0x0007_ffff_fffe_0001],
                ..COMPACT
            },
            ParameterSet {
                special_moduli: &[0x0007_ffff_fffe_0001],
                ..STANDARD
            },
            ParameterSet {
                special_moduli: &[0x0007_ffff_fffb_c003],
                ..STANDARD
            },
            ParameterSet {
                special_moduli: &[],
                ..STANDARD
            },
            ParameterSet {
                special_moduli: &[0x0007_ffff_fffc_c001, 0x0007_ffff_fffb_c001],
                ..COMPACT
            },
            ParameterSet {
                special_moduli: COMPACT.special_moduli,
                ..WIDE
            },
            ParameterSet {
                plaintext_moduli: &[67_108_859, 67_108_859],
                ..WIDE
            },
            // More bits than 128-bit security allows.
            ParameterSet {
                ciphertext_moduli: &[
                    0x0fff_ffff_ffff_c001,
                    0x0fff_f316_e37b_0001,
                    0x0fff_ffff_fffe_8001,
                ],
                special_moduli: &[0x0fff_ffff_ffe8_0001],
                ..STANDARD
            },
        ];
        for set in broken {
            assert!(
                matches!(Parameters::new(set), Err(Error::Parameters { .. })),
                "{set:?}"
            );
        }
    }
}
