//! Compares every loop with single residues and with the portable loop, at primes that vectors support and at others.

use super::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Primes of 60, 54 and 51 bits. The fifth is the smallest of its size, and the last is small.
const PRIMES: [u64; 6] = [
    0x0fff_ffff_ffff_c001,
    0x003f_ffff_ffe7_c001,
    0x0007_ffff_fffe_0001,
    0x0007_ffff_fffc_c001,
    0x0004_0000_0002_4001,
    65537,
];

/// Numbers of values: whole vectors, vectors with a rest for loops that take four at a time, and no whole vectors.
const LENGTHS: [usize; 3] = [64, 40, 13];

type Values = Vec<u64>;

/// Returns the largest residues, then random ones.
fn values(rng: &mut ChaCha8Rng, q: u64, n: usize) -> Values {
    let edges = [q - 1, 0, q / 2, q / 2 + 1, 1];
    let random = |i: usize| match edges.get(i) {
        Some(&edge) => edge,
        None => rng.random_range(0..q),
    };
    (0..n).map(random).collect()
}

fn slices(values: &[Values]) -> Vec<&[u64]> {
    values.iter().map(Vec::as_slice).collect()
}

/// Returns a b 2^-64.
fn times(m: Modulus, a: u64, b: u64) -> u64 {
    m.redc(u128::from(a) * u128::from(b))
}

/// Runs a test at every prime and length.
fn everywhere(test: impl Fn(&mut ChaCha8Rng, Modulus, usize)) {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    for m in PRIMES.map(Modulus::new) {
        for n in LENGTHS {
            test(&mut rng, m, n);
        }
    }
}

#[test]
fn inner_products_equal_sums_of_products() {
    everywhere(|rng, m, n| {
        for count in (0..=12).filter(|&count| count <= m.lazy_products()) {
            let x: Vec<Values> = (0..count).map(|_| values(rng, m.value(), n)).collect();
            let y: Vec<Values> = (0..count).map(|_| values(rng, m.value(), n)).collect();
            let before = values(rng, m.value(), n);
            let (mut out, mut portable) = (before.clone(), before.clone());
            m.add_inner_product(&slices(&x), &slices(&y), &mut out);
            portable::inner_product(m, &slices(&x), &slices(&y), ResultMode::Add, &mut portable);
            assert_eq!(out, portable);
            for i in 0..n {
                let add = |sum, k: usize| m.add(sum, times(m, x[k][i], y[k][i]));
                assert_eq!(out[i], (0..count).fold(before[i], add));
            }
        }
    });
}

#[test]
fn two_inner_products_at_once_equal_each_one() {
    everywhere(|rng, m, n| {
        for count in (0..=5).filter(|&count| count <= m.lazy_products()) {
            let mut some = || -> Vec<Values> {
                let one = |_| values(rng, m.value(), n);
                (0..count).map(one).collect()
            };
            let [x, y, z] = [some(), some(), some()];
            let [x, y, z] = [slices(&x), slices(&y), slices(&z)];
            let before = values(rng, m.value(), n);
            for into in [ResultMode::Set, ResultMode::Add] {
                let (mut first, mut second) = (before.clone(), before.clone());
                m.inner_products(&x, [&y, &z], &mut first, into, &mut second);
                let mut wanted = [before.clone(), before.clone()];
                if into == ResultMode::Set {
                    wanted[1].fill(0);
                }
                m.add_inner_product(&x, &y, &mut wanted[0]);
                m.add_inner_product(&x, &z, &mut wanted[1]);
                assert_eq!([first, second], wanted);
            }
        }
    });
}

/// Uses the largest residues, and more terms than any sum can hold.
#[test]
fn tensor_of_any_number_of_terms_is_exact() {
    const N: usize = 16;
    for m in PRIMES.map(Modulus::new) {
        let strip = |k: u64| std::array::from_fn(|i| m.value() - 1 - (i as u64 * k) % 60_000);
        let strips: [[u64; N]; 4] = [strip(1), strip(2), strip(3), strip(4)];
        let [x0, x1, y0, y1] = &strips;
        for count in (0..40).chain([2047, 2048, 2049, 5000]) {
            let terms = vec![[x0, x1, y0, y1]; count];
            let (mut out, mut portable) = ([[7; N]; 3], [[7; N]; 3]);
            m.tensor(&terms, &mut out);
            portable::tensor(m, &terms, &mut portable);
            assert_eq!(out, portable);
            for i in 0..N {
                let several = |x| m.mul(x, count as u64 % m.value());
                let middle = m.add(times(m, x0[i], y1[i]), times(m, x1[i], y0[i]));
                let wanted = [times(m, x0[i], y0[i]), middle, times(m, x1[i], y1[i])];
                assert_eq!([out[0][i], out[1][i], out[2][i]], wanted.map(several));
            }
        }
    }
}

#[test]
fn combinations_equal_sums_of_multiples() {
    everywhere(|rng, m, n| {
        for count in [0, 1, 2, 3, 17, 600, 4097] {
            let x: Vec<Values> = (0..count.min(5))
                .map(|_| values(rng, m.value(), n))
                .collect();
            let factors = values(rng, m.value(), count);
            let terms = factors.iter().enumerate();
            let terms: Vec<(u64, &[u64])> = terms.map(|(k, &f)| (f, &x[k % 5][..])).collect();
            let (mut out, mut portable) = (vec![7; n], vec![7; n]);
            m.combine(&terms, &mut out);
            portable::combine(m, &terms, &mut portable);
            assert_eq!(out, portable);
            for i in 0..n {
                let add = |sum, &(f, x): &(u64, &[u64])| m.add(sum, times(m, f, x[i]));
                assert_eq!(out[i], terms.iter().fold(0, add));
            }
        }
        let x = values(rng, m.value(), n);
        let mut out = vec![7; n];
        m.combine(&[(m.mont(1), &x)], &mut out);
        assert_eq!(out, x);
    });
}

#[test]
fn sums_of_many_residues_are_reduced() {
    everywhere(|rng, m, n| {
        let x = values(rng, m.value(), n);
        for count in [0, 1, 2, 15, 16, 17, 9000] {
            let mut out = vec![7; n];
            m.sum(std::iter::repeat_n(&x[..], count), &mut out);
            for i in 0..n {
                assert_eq!(out[i], m.mul(x[i], count as u64 % m.value()));
            }
        }
        // Words of any size are reduced.
        let mut words: Values = (0..n).map(|i| u64::MAX - i as u64).collect();
        m.reduce_words(&mut words);
        for (i, &word) in words.iter().enumerate() {
            assert_eq!(word, (u64::MAX - i as u64) % m.value());
        }
    });
}

#[test]
fn loops_over_single_products_equal_residue_arithmetic() {
    everywhere(|rng, m, n| {
        let [x, y, factors] = [0; 3].map(|_| values(rng, m.value(), n));
        let factor = factors[n - 1];
        let mut sum = x.clone();
        m.add_assign(&mut sum, &y);
        let mut scaled = x.clone();
        m.scale(&mut scaled, factor);
        let (mut u, mut v) = (x.clone(), y.clone());
        m.butterfly(&mut u, &mut v, &factors);
        let words: Values = x.iter().map(|&x| x + (x & 1) * (m.value() - 1)).collect();
        let mut multiplied = y.clone();
        m.multiply_add(&words, factor, &mut multiplied);
        for i in 0..n {
            assert_eq!(sum[i], m.add(x[i], y[i]));
            assert_eq!(scaled[i], times(m, x[i], factor));
            let shifted = times(m, y[i], factors[i]);
            assert_eq!((u[i], v[i]), (m.add(x[i], shifted), m.sub(x[i], shifted)));
            let product = times(m, y[i], factor);
            assert_eq!(multiplied[i], m.add(words[i] % m.value(), product));
        }
        for into in [ResultMode::Set, ResultMode::Add] {
            let mut out = factors.clone();
            m.scaled_difference([&x, &y], factor, into, &mut out);
            for i in 0..n {
                let start = if into == ResultMode::Add {
                    factors[i]
                } else {
                    0
                };
                let difference = times(m, m.sub(x[i], y[i]), factor);
                assert_eq!(out[i], m.add(start, difference));
            }
        }
    });
}

#[test]
fn centred_residues_have_least_absolute_value() {
    let pairs = [(0, 0), (2, 3), (3, 2), (2, 4), (4, 4)];
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for (from, to) in pairs.map(|(a, b)| (Modulus::new(PRIMES[a]), Modulus::new(PRIMES[b]))) {
        for n in LENGTHS {
            let x = values(&mut rng, from.value(), n);
            let mut out = vec![7; n];
            to.centre(from, &x, &mut out);
            for i in 0..n {
                let (x, q) = (i128::from(x[i]), i128::from(from.value()));
                let centred = if x > q / 2 { x - q } else { x };
                assert_eq!(out[i], to.residue_of(centred));
            }
        }
    }
}
