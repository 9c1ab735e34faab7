//! The loops with 128-bit arithmetic, for every modulus and machine.
#![expect(
    clippy::indexing_slicing,
    reason = "inner loops: they count within arrays of one length, or within slices that are cut to it"
)]

use super::ResultMode;
use crate::modular::Modulus;

#[inline(always)]
fn put(m: Modulus, into: ResultMode, out: &mut u64, x: u64) {
    *out = match into {
        ResultMode::Set => x,
        ResultMode::Add => m.add(*out, x),
    };
}

pub(super) fn inner_product(
    m: Modulus,
    x: &[&[u64]],
    y: &[&[u64]],
    into: ResultMode,
    out: &mut [u64],
) {
    // Key switches have one to four polynomials, each with one, two or three digits.
    match x.len() {
        1 => products::<1>(m, x, y, into, out),
        2 => products::<2>(m, x, y, into, out),
        3 => products::<3>(m, x, y, into, out),
        4 => products::<4>(m, x, y, into, out),
        6 => products::<6>(m, x, y, into, out),
        8 => products::<8>(m, x, y, into, out),
        9 => products::<9>(m, x, y, into, out),
        12 => products::<12>(m, x, y, into, out),
        _ => {
            for (i, out) in out.iter_mut().enumerate() {
                let products = x.iter().zip(y);
                let product = |(x, y): (&&[u64], &&[u64])| u128::from(x[i]) * u128::from(y[i]);
                put(m, into, out, m.redc(products.map(product).sum()));
            }
        }
    }
}

pub(super) fn inner_products(
    m: Modulus,
    x: &[&[u64]],
    [y, z]: [&[&[u64]]; 2],
    first: &mut [u64],
    into: ResultMode,
    second: &mut [u64],
) {
    inner_product(m, x, y, ResultMode::Add, first);
    inner_product(m, x, z, into, second);
}

/// Computes the inner product of K pairs, with one reduction.
fn products<const K: usize>(
    m: Modulus,
    x: &[&[u64]],
    y: &[&[u64]],
    into: ResultMode,
    out: &mut [u64],
) {
    let n = out.len();
    let x: [&[u64]; K] = std::array::from_fn(|k| &x[k][..n]);
    let y: [&[u64]; K] = std::array::from_fn(|k| &y[k][..n]);
    for (i, out) in out.iter_mut().enumerate() {
        let mut sum = 0;
        for k in 0..K {
            sum += u128::from(x[k][i]) * u128::from(y[k][i]);
        }
        put(m, into, out, m.redc(sum));
    }
}

/// Strips of two ciphertexts: the two polynomials of the left one, and the two of the right one.
type Term<'a, const N: usize> = [&'a [u64; N]; 4];

pub(super) fn tensor<const N: usize>(m: Modulus, terms: &[Term<'_, N>], out: &mut [[u64; N]; 3]) {
    match terms {
        [a] => return multiply(m, &[*a], out),
        [a, b] => return multiply(m, &[*a, *b], out),
        _ => (),
    }
    let mut sums = [[0u128; N]; 3];
    let mut room = m.lazy_products() / 2;
    let (threes, rest) = terms.as_chunks::<3>();
    for three in threes {
        make_room(m, 3, &mut room, &mut sums);
        add_products(three, &mut sums);
    }
    for one in rest {
        make_room(m, 1, &mut room, &mut sums);
        add_products(&[*one], &mut sums);
    }
    for (out, sum) in out.iter_mut().flatten().zip(sums.iter().flatten()) {
        *out = m.redc(m.fold(*sum));
    }
}

/// Folds the sums if the given number of terms would not fit any more.
fn make_room<const N: usize>(
    m: Modulus,
    terms: usize,
    room: &mut usize,
    sums: &mut [[u128; N]; 3],
) {
    if *room < terms {
        for sum in sums.iter_mut().flatten() {
            *sum = m.fold(*sum);
        }
        *room = m.lazy_products() / 2;
    }
    *room -= terms;
}

/// Like [`tensor`], for so few terms that their products need no fold.
fn multiply<const K: usize, const N: usize>(
    m: Modulus,
    terms: &[Term<'_, N>; K],
    out: &mut [[u64; N]; 3],
) {
    let [out0, out1, out2] = out;
    for i in 0..N {
        [out0[i], out1[i], out2[i]] = products_at(terms, i).map(|sum| m.redc(sum));
    }
}

/// Adds the products of a few terms. Their sums stay in registers, and the sums of all terms in cache.
fn add_products<const K: usize, const N: usize>(
    terms: &[Term<'_, N>; K],
    sums: &mut [[u128; N]; 3],
) {
    let [sums0, sums1, sums2] = sums;
    for i in 0..N {
        let [a, b, c] = products_at(terms, i);
        sums0[i] += a;
        sums1[i] += b;
        sums2[i] += c;
    }
}

#[inline(always)]
fn products_at<const K: usize, const N: usize>(terms: &[Term<'_, N>; K], i: usize) -> [u128; 3] {
    let mut sums = [0; 3];
    for [x0, x1, y0, y1] in terms {
        let [x0, x1, y0, y1] = [x0[i], x1[i], y0[i], y1[i]].map(u128::from);
        sums[0] += x0 * y0;
        sums[1] += x0 * y1 + x1 * y0;
        sums[2] += x1 * y1;
    }
    sums
}

/// Number of values for which a combination is computed at a time, so that sums stay in the first-level cache.
const STRIP: usize = 512;

pub(super) fn combine(m: Modulus, terms: &[(u64, &[u64])], out: &mut [u64]) {
    match terms {
        [(factor, x)] if *factor == m.mont(1) => out.copy_from_slice(&x[..out.len()]),
        [(f, x), (g, y)] => {
            let (f, g) = (u128::from(*f), u128::from(*g));
            for ((out, &x), &y) in out.iter_mut().zip(*x).zip(*y) {
                *out = m.redc(u128::from(x) * f + u128::from(y) * g);
            }
        }
        _ => {
            for (k, out) in out.chunks_mut(STRIP).enumerate() {
                combine_strip(m, terms, k * STRIP, out);
            }
        }
    }
}

/// Computes at most [`STRIP`] values, from index `start`.
fn combine_strip(m: Modulus, terms: &[(u64, &[u64])], start: usize, out: &mut [u64]) {
    let mut sums = [0; STRIP];
    let sums = &mut sums[..out.len()];
    for group in terms.chunks(m.lazy_products()) {
        for &(factor, x) in group {
            for (sum, &x) in sums.iter_mut().zip(&x[start..]) {
                *sum += u128::from(x) * u128::from(factor);
            }
        }
        sums.iter_mut().for_each(|sum| *sum = m.fold(*sum));
    }
    for (out, &sum) in out.iter_mut().zip(sums.iter()) {
        *out = m.redc(sum);
    }
}

pub(super) fn butterfly(m: Modulus, u: &mut [u64], v: &mut [u64], x: &[u64]) {
    for ((u, v), &x) in u.iter_mut().zip(v).zip(x) {
        let shifted = m.redc(u128::from(*v) * u128::from(x));
        (*u, *v) = (m.add(*u, shifted), m.sub(*u, shifted));
    }
}

pub(super) fn scaled_difference(
    m: Modulus,
    [x, y]: [&[u64]; 2],
    factor: u64,
    into: ResultMode,
    out: &mut [u64],
) {
    let factor = u128::from(factor);
    for (out, (&x, &y)) in out.iter_mut().zip(x.iter().zip(y)) {
        put(m, into, out, m.redc(u128::from(m.sub(x, y)) * factor));
    }
}

pub(super) fn centre(m: Modulus, from: Modulus, residues: &[u64], out: &mut [u64]) {
    let q = from.value();
    let q_mod_m = q % m.value();
    for (out, &x) in out.iter_mut().zip(residues) {
        // Without a branch, which would be mispredicted half of the time.
        let upper_half = u64::from(x > q / 2).wrapping_neg();
        *out = m.sub(m.reduce_once(x), q_mod_m & upper_half);
    }
}
