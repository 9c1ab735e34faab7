//! The loops with vectors of eight words, modulo primes below 2^51. Lengths are multiples of eight.
#![expect(
    clippy::indexing_slicing,
    reason = "inner loops: they count within slices that are cut to the same number of vectors"
)]

use super::ResultMode;
use crate::ifma::{MAX_PRODUCTS, Prime, Sum, Words, load, splat, store};
use crate::modular::Modulus;
use std::arch::x86_64::*;

/// Number of vectors that share the loaded values of a term.
const TOGETHER: usize = 4;

// Called in every iteration: without inlining, the calls would take longer than the products.
#[inline(always)]
fn vectors(x: &[u64]) -> &[Words] {
    x.as_chunks().0
}

#[inline(always)]
fn vectors_mut(x: &mut [u64]) -> &mut [Words] {
    x.as_chunks_mut().0
}

#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn put(prime: &Prime, into: ResultMode, out: &mut Words, x: __m512i) {
    let x = match into {
        ResultMode::Set => x,
        ResultMode::Add => prime.add(load(out), x),
    };
    store(out, x);
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn inner_product(
    m: Modulus,
    x: &[&[u64]],
    y: &[&[u64]],
    into: ResultMode,
    out: &mut [u64],
) {
    let prime = Prime::new(m);
    match x.len() {
        1 => products::<1>(&prime, x, y, into, out),
        3 => products::<3>(&prime, x, y, into, out),
        4 => products::<4>(&prime, x, y, into, out),
        _ => {
            for (i, out) in vectors_mut(out).iter_mut().enumerate() {
                let mut sum = Sum::zero();
                for (x, y) in x.iter().zip(y) {
                    sum.add(load(&vectors(x)[i]), load(&vectors(y)[i]));
                }
                put(&prime, into, out, prime.redc(sum));
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn products<const K: usize>(
    prime: &Prime,
    x: &[&[u64]],
    y: &[&[u64]],
    into: ResultMode,
    out: &mut [u64],
) {
    let out = vectors_mut(out);
    let x: [&[Words]; K] = std::array::from_fn(|k| &vectors(x[k])[..out.len()]);
    let y: [&[Words]; K] = std::array::from_fn(|k| &vectors(y[k])[..out.len()]);
    for (i, out) in out.iter_mut().enumerate() {
        let mut sum = Sum::zero();
        for k in 0..K {
            sum.add(load(&x[k][i]), load(&y[k][i]));
        }
        put(prime, into, out, prime.redc(sum));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn inner_products(
    m: Modulus,
    x: &[&[u64]],
    [y, z]: [&[&[u64]]; 2],
    out: &mut [u64],
    into: ResultMode,
    second: &mut [u64],
) {
    let prime = Prime::new(m);
    match x.len() {
        1 => products_of_two::<1>(&prime, x, [y, z], out, into, second),
        4 => products_of_two::<4>(&prime, x, [y, z], out, into, second),
        _ => {
            inner_product(m, x, y, ResultMode::Add, out);
            inner_product(m, x, z, into, second);
        }
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn products_of_two<const K: usize>(
    prime: &Prime,
    x: &[&[u64]],
    [y, z]: [&[&[u64]]; 2],
    out: &mut [u64],
    into: ResultMode,
    second: &mut [u64],
) {
    let (out, others) = (vectors_mut(out), vectors_mut(second));
    let length = out.len().min(others.len());
    let x: [&[Words]; K] = std::array::from_fn(|k| &vectors(x[k])[..length]);
    let y: [&[Words]; K] = std::array::from_fn(|k| &vectors(y[k])[..length]);
    let z: [&[Words]; K] = std::array::from_fn(|k| &vectors(z[k])[..length]);
    for (i, (out, other)) in out.iter_mut().zip(others).enumerate() {
        let [mut first, mut second] = [Sum::zero(); 2];
        for k in 0..K {
            let x = load(&x[k][i]);
            first.add(x, load(&y[k][i]));
            second.add(x, load(&z[k][i]));
        }
        put(prime, ResultMode::Add, out, prime.redc(first));
        put(prime, into, other, prime.redc(second));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn tensor<const N: usize>(
    m: Modulus,
    terms: &[[&[u64; N]; 4]],
    out: &mut [[u64; N]; 3],
) {
    let prime = Prime::new(m);
    let mut into = ResultMode::Set;
    if terms.is_empty() {
        *out = [[0; N]; 3];
    }
    // The middle polynomial has two products for each term.
    for group in terms.chunks(MAX_PRODUCTS / 2) {
        let [out0, out1, out2] = out.each_mut().map(|out| vectors_mut(out));
        for (i, ((out0, out1), out2)) in out0.iter_mut().zip(out1).zip(out2).enumerate() {
            let [mut first, mut middle, mut last] = [Sum::zero(); 3];
            for &[x0, x1, y0, y1] in group {
                // Not a closure, because closures are not inlined across target features.
                let (x0, x1) = (load(&vectors(x0)[i]), load(&vectors(x1)[i]));
                let (y0, y1) = (load(&vectors(y0)[i]), load(&vectors(y1)[i]));
                first.add(x0, y0);
                middle.add(x0, y1);
                middle.add(x1, y0);
                last.add(x1, y1);
            }
            put(&prime, into, out0, prime.redc(first));
            put(&prime, into, out1, prime.redc(middle));
            put(&prime, into, out2, prime.redc(last));
        }
        into = ResultMode::Add;
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn combine(m: Modulus, terms: &[(u64, &[u64])], out: &mut [u64]) {
    let prime = Prime::new(m);
    if terms.is_empty() {
        out.fill(0);
    }
    let mut into = ResultMode::Set;
    for group in terms.chunks(MAX_PRODUCTS) {
        let (several, rest) = vectors_mut(out).as_chunks_mut::<TOGETHER>();
        let start = several.len() * TOGETHER;
        for (i, out) in several.iter_mut().enumerate() {
            combine_at(&prime, group, i * TOGETHER, into, out);
        }
        for (i, out) in rest.iter_mut().enumerate() {
            combine_at(&prime, group, start + i, into, std::array::from_mut(out));
        }
        into = ResultMode::Add;
    }
}

/// Computes V vectors of a combination, from number `first`.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn combine_at<const V: usize>(
    prime: &Prime,
    terms: &[(u64, &[u64])],
    first: usize,
    into: ResultMode,
    out: &mut [Words; V],
) {
    let mut sums = [Sum::zero(); V];
    for &(factor, x) in terms {
        let factor = splat(factor);
        for (sum, x) in sums.iter_mut().zip(&vectors(x)[first..first + V]) {
            sum.add(load(x), factor);
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        put(prime, into, out, prime.redc(sum));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn add_words(x: &[u64], out: &mut [u64]) {
    for (out, x) in vectors_mut(out).iter_mut().zip(vectors(x)) {
        let sum = _mm512_add_epi64(load(out), load(x));
        store(out, sum);
    }
}

/// Splits a word into its lowest 52 bits and 2^52 times the others.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn reduce_words(m: Modulus, out: &mut [u64]) {
    let prime = Prime::new(m);
    let one = splat(m.mont(1));
    let upper = splat(m.mont((1 << 52) % m.value()));
    for out in vectors_mut(out) {
        let x = load(out);
        let mut sum = Sum::zero();
        sum.add(x, one);
        sum.add(_mm512_srli_epi64::<52>(x), upper);
        store(out, prime.redc(sum));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn add_assign(m: Modulus, out: &mut [u64], x: &[u64]) {
    let prime = Prime::new(m);
    for (out, x) in vectors_mut(out).iter_mut().zip(vectors(x)) {
        put(&prime, ResultMode::Add, out, load(x));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn scale(m: Modulus, x: &mut [u64], factor: u64) {
    let prime = Prime::new(m);
    let factor = splat(factor);
    for x in vectors_mut(x) {
        let scaled = prime.mul(load(x), factor);
        store(x, scaled);
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn butterfly(m: Modulus, u: &mut [u64], v: &mut [u64], x: &[u64]) {
    let prime = Prime::new(m);
    let pairs = vectors_mut(u).iter_mut().zip(vectors_mut(v));
    for ((u, v), x) in pairs.zip(vectors(x)) {
        let (left, shifted) = (load(u), prime.mul(load(v), load(x)));
        store(u, prime.add(left, shifted));
        store(v, prime.sub(left, shifted));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn scaled_difference(
    m: Modulus,
    [x, y]: [&[u64]; 2],
    factor: u64,
    into: ResultMode,
    out: &mut [u64],
) {
    let prime = Prime::new(m);
    let factor = splat(factor);
    let pairs = vectors(x).iter().zip(vectors(y));
    for (out, (x, y)) in vectors_mut(out).iter_mut().zip(pairs) {
        let difference = prime.sub(load(x), load(y));
        put(&prime, into, out, prime.mul(difference, factor));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn centre(m: Modulus, from: Modulus, residues: &[u64], out: &mut [u64]) {
    let prime = Prime::new(m);
    let half = splat(from.value() / 2);
    let subtract = splat(from.value() % m.value());
    for (out, x) in vectors_mut(out).iter_mut().zip(vectors(residues)) {
        let x = load(x);
        let upper_half = _mm512_cmpgt_epu64_mask(x, half);
        let subtract = _mm512_maskz_mov_epi64(upper_half, subtract);
        store(out, prime.sub(prime.reduce_once(x), subtract));
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn multiply_add(m: Modulus, x: &[u64], factor: u64, out: &mut [u64]) {
    let prime = Prime::new(m);
    let factor = splat(factor);
    for (out, x) in vectors_mut(out).iter_mut().zip(vectors(x)) {
        let product = prime.mul(load(out), factor);
        store(out, prime.add(product, prime.reduce_once(load(x))));
    }
}
