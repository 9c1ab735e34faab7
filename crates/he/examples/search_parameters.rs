//! Searches the primes of every parameter set, and reports whether `params.rs` has the same primes.
//!
//! The primes must satisfy these conditions, with n = 8192:
//! - Each ciphertext prime and key-switching prime is 1 modulo 2n, for the transform.
//! - Together they have at most 216 bits. The guidelines of 2024 (Bossuat et al.) allow this for 128-bit security
//!   against classical attacks, with a secret as wide as ours.
//! - Primes whose residues form one digit of a key switch are in ascending order.
//! - q = -1 modulo each plaintext modulus, so that products need no correction factor.
//!
//! The search is deterministic: largest primes first.
//!
//! ```sh
//! cargo run --release -p fhaim-he --example search_parameters
//! ```

use fhaim_he::{COMPACT, DEGREE, ParameterSet, STANDARD, WIDE};

/// Largest size of the modulus in bits, including the key-switching primes.
const SECURE_BITS: u32 = 216;

const TWICE_DEGREE: u64 = 2 * DEGREE as u64;

/// The primes of a set.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    ciphertext: Vec<u64>,
    special: Vec<u64>,
    plaintext: Vec<u64>,
}

fn main() {
    let searches = [
        ("COMPACT", COMPACT, one_digit(COMPACT_BOUND, 51)),
        ("STANDARD", STANDARD, single(1 << 30, 51, 2)),
        ("WIDE", WIDE, double(26, 51)),
    ];
    let mut all = true;
    for (name, set, found) in searches {
        let same = found.as_ref() == Some(&constants(&set));
        all &= same;
        print(name, found.as_ref(), same);
    }
    if !all {
        std::process::exit(1);
    }
}

fn constants(set: &ParameterSet) -> Found {
    Found {
        ciphertext: set.ciphertext_moduli.to_vec(),
        special: set.special_moduli.to_vec(),
        plaintext: set.plaintext_moduli.to_vec(),
    }
}

fn print(name: &str, found: Option<&Found>, same: bool) {
    let Some(found) = found else {
        println!("{name}: the search finds no primes");
        return;
    };
    let bits: u32 = found
        .ciphertext
        .iter()
        .chain(&found.special)
        .map(|q| 64 - q.leading_zeros())
        .sum();
    let verdict = if same { "as in" } else { "DIFFERS FROM" };
    println!("{name} ({verdict} params.rs; {bits} of {SECURE_BITS} bits)");
    for (field, primes) in [
        ("ciphertext", &found.ciphertext),
        ("special", &found.special),
    ] {
        let primes: Vec<String> = primes.iter().map(|q| format!("{q:#018x}")).collect();
        println!("    {field}_moduli: [{}]", primes.join(", "));
    }
    println!("    plaintext_moduli: {:?}", found.plaintext);
}

/// 2^24.15. With a q of 102 bits, floods of 45 bits and their tails stay below q / 2t up to almost exactly this t.
const COMPACT_BOUND: u64 = 18_615_486;

/// Finds primes for one plaintext modulus t, the largest prime below a bound. The first `free` ciphertext primes and
/// the special one are the largest of `bits` bits, and one more ciphertext prime makes q = -1 modulo t.
fn single(t_bound: u64, bits: u32, free: usize) -> Option<Found> {
    let t = (1..t_bound).rev().find(|&t| is_prime(t))?;
    let mut ciphertext = largest(bits, free + 1);
    let special = ciphertext.split_off(free);
    let last = closing(&ciphertext, &special, t, bits).next()?;
    ciphertext.push(last);
    Some(Found {
        ciphertext,
        special,
        plaintext: vec![t],
    })
}

/// Finds primes with one free ciphertext prime and two special ones, so that one digit has two ascending primes.
fn one_digit(t_bound: u64, bits: u32) -> Option<Found> {
    let t = (1..t_bound).rev().find(|&t| is_prime(t))?;
    let mut ciphertext = largest(bits, 3);
    let mut special = ciphertext.split_off(1);
    let last = closing(&ciphertext, &special, t, bits).next()?;
    ciphertext.push(last);
    ciphertext.sort_unstable();
    special.sort_unstable();
    Some(Found {
        ciphertext,
        special,
        plaintext: vec![t],
    })
}

/// Finds primes for two plaintext moduli: like [`single`], with the first closing prime for which q + 1 has a second
/// prime factor of `t_bits` bits.
fn double(t_bits: u32, bits: u32) -> Option<Found> {
    let t = (1..1u64 << t_bits).rev().find(|&t| is_prime(t))?;
    let factors = primes_of(t_bits);
    let mut free = largest(bits, 3);
    let special = free.split_off(2);
    closing(&free, &special, t, bits).find_map(|last| {
        let ciphertext = [free.as_slice(), &[last]].concat();
        let divides = |&&d: &&u64| d != t && modulo(&ciphertext, d) == d - 1;
        let second = *factors.iter().find(divides)?;
        Some(Found {
            ciphertext,
            special: special.clone(),
            plaintext: vec![t, second],
        })
    })
}

/// Returns the largest primes of `bits` bits that are 1 modulo 2n.
fn largest(bits: u32, count: usize) -> Vec<u64> {
    let top = (1u64 << bits) + 1 - TWICE_DEGREE;
    (0..top / TWICE_DEGREE)
        .map(|k| top - k * TWICE_DEGREE)
        .filter(|&q| is_prime(q))
        .take(count)
        .collect()
}

/// Returns primes x of `bits` bits, descending, that are 1 modulo 2n, and for which the product of `primes` and x is
/// -1 modulo t.
fn closing(primes: &[u64], special: &[u64], t: u64, bits: u32) -> impl Iterator<Item = u64> {
    // x = 1 + 2n y with y = (r - 1) / 2n modulo t, r = -1 / product.
    let inverse = |a: u64| power(a, t - 2, t);
    let residue = t - inverse(modulo(primes, t));
    let y = multiply((residue + t - 1) % t, inverse(TWICE_DEGREE % t), t);
    let (first, step) = (1 + TWICE_DEGREE * y, TWICE_DEGREE * t);
    let most = ((1u64 << bits) - 1 - first) / step;
    let taken = [primes, special].concat();
    (0..=most)
        .rev()
        .map(move |k| first + k * step)
        .take_while(move |&x| x >> (bits - 1) == 1)
        .filter(move |x| is_prime(*x) && !taken.contains(x))
}

/// Returns the product of `factors` modulo d.
fn modulo(factors: &[u64], d: u64) -> u64 {
    factors
        .iter()
        .fold(1, |product, &q| multiply(product, q % d, d))
}

fn multiply(a: u64, b: u64, m: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(m)) as u64
}

fn power(mut base: u64, mut exponent: u64, m: u64) -> u64 {
    let mut result = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, base, m);
        }
        base = multiply(base, base, m);
        exponent >>= 1;
    }
    result
}

/// Miller-Rabin test with the first twelve primes as bases, which is exact below 2^64 (Sorenson and Webster 2015).
fn is_prime(q: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if q < 2 || BASES.iter().any(|&p| q.is_multiple_of(p)) {
        return BASES.contains(&q);
    }
    let twos = (q - 1).trailing_zeros();
    BASES.iter().all(|&base| {
        let mut x = power(base, (q - 1) >> twos, q);
        x == 1
            || (0..twos).any(|_| {
                let hit = x == q - 1;
                x = multiply(x, x, q);
                hit
            })
    })
}

/// Returns all primes of exactly `bits` bits, ascending (sieve of Eratosthenes).
fn primes_of(bits: u32) -> Vec<u64> {
    let end = 1usize << bits;
    let mut composite = vec![false; end];
    let mut p = 2;
    while p * p < end {
        if !composite[p] {
            (p * p..end).step_by(p).for_each(|k| composite[k] = true);
        }
        p += 1;
    }
    (end / 2..end)
        .filter(|&k| !composite[k])
        .map(|k| k as u64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn search_finds_the_primes_of_the_parameter_sets() {
        assert_eq!(one_digit(COMPACT_BOUND, 51), Some(constants(&COMPACT)));
        assert_eq!(single(1 << 30, 51, 2), Some(constants(&STANDARD)));
        assert_eq!(double(26, 51), Some(constants(&WIDE)));
    }
}
