//! Loops over contiguous cells: the inner loops of belief propagation.
//!
//! They are written so that the compiler turns them into vector instructions, and without fused
//! multiply-adds or sums whose order depends on the processor: a fit gives the same bits on every
//! machine.

/// Calls the first function where the processor has AVX2, which it is compiled for, else the
/// second. Both must do the same.
macro_rules! with_avx2 {
    ($wide:expr, $portable:expr) => {{
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the only feature that the function needs.
            return unsafe { $wide };
        }
        $portable
    }};
}
pub(crate) use with_avx2;

/// A sum over a row keeps so many partial sums apart, so that it runs in vector registers.
const LANES: usize = 8;

/// Below this the exponential is zero: exp(-708) is the last normal number.
const LOWEST: f64 = -708.0;

/// exp(x) for x <= 0 to 14 digits; zero below -708.
///
/// x = n ln 2 + r with |r| <= ln(2) / 2; exp(r) by its series to the 11th power, which leaves out
/// less than 7e-15; 2^n by its exponent bits.
#[inline(always)]
fn exp_nonpositive(x: f64) -> f64 {
    // Adding and subtracting 1.5 * 2^52 rounds to an integer, which the low bits then show.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // ln 2 in two parts, the first of which leaves n ln 2 exact.
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let clamped = if x < LOWEST { LOWEST } else { x };
    let shifted = clamped * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = clamped - n * LN_2_HIGH - n * LN_2_LOW;
    let mut series = 1.0 / 39_916_800.0;
    for inverse_factorial in [
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        series = series * r + inverse_factorial;
    }
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    if x < LOWEST { 0.0 } else { series * power }
}

/// The sum of a row, in an order that does not depend on the machine.
#[inline(always)]
pub(crate) fn sum(row: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest: f64 = chunks.remainder().iter().sum();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += x;
        }
    }
    lanes.iter().sum::<f64>() + rest
}

/// The inner product of two rows, in an order that does not depend on the machine.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    #[target_feature(enable = "avx2")]
    #[cfg(target_arch = "x86_64")]
    fn dot_avx2(a: &[f64], b: &[f64]) -> f64 {
        dot_portable(a, b)
    }
    with_avx2!(dot_avx2(a, b), dot_portable(a, b))
}

#[inline(always)]
fn dot_portable(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (chunks, others) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = chunks.remainder().iter().zip(others.remainder());
    let rest: f64 = rest.map(|(x, y)| x * y).sum();
    for (chunk, other) in chunks.zip(others) {
        for ((lane, x), y) in lanes.iter_mut().zip(chunk).zip(other) {
            *lane += x * y;
        }
    }
    lanes.iter().sum::<f64>() + rest
}

/// The largest entry of a row without NaN (negative infinity if it is empty).
#[inline(always)]
pub(crate) fn max(row: &[f64]) -> f64 {
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let mut lanes = [f64::NEG_INFINITY; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks
        .remainder()
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, larger);
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, x);
        }
    }
    lanes.into_iter().fold(rest, larger)
}

/// Adds `from` to `to`.
#[inline(always)]
pub(crate) fn add(to: &mut [f64], from: &[f64]) {
    for (t, f) in to.iter_mut().zip(from) {
        *t += f;
    }
}

/// Adds a combination of other rows to a row.
pub(crate) fn combine<'a>(
    to: &mut [f64],
    terms: &(impl Iterator<Item = (f64, &'a [f64])> + Clone),
) {
    #[target_feature(enable = "avx2")]
    #[cfg(target_arch = "x86_64")]
    fn combine_avx2<'a>(to: &mut [f64], terms: &(impl Iterator<Item = (f64, &'a [f64])> + Clone)) {
        combine_portable(to, terms);
    }
    with_avx2!(combine_avx2(to, terms), combine_portable(to, terms));
}

#[inline(always)]
fn combine_portable<'a>(to: &mut [f64], terms: &(impl Iterator<Item = (f64, &'a [f64])> + Clone)) {
    // In pieces that stay in the nearest cache while all terms are added.
    const PIECE: usize = 1024;
    for (i, piece) in to.chunks_mut(PIECE).enumerate() {
        for (by, from) in terms.clone() {
            let from = &from[i * PIECE..];
            for (t, f) in piece.iter_mut().zip(from) {
                *t += by * f;
            }
        }
    }
}

/// Adds rows of one matrix to rows of another, both with `columns` columns: for every term
/// (share, t, f), share times row f of `from` to row t of `to`.
pub(crate) fn add_rows(
    to: &mut [f64],
    from: &[f64],
    columns: usize,
    terms: impl Iterator<Item = (f64, usize, usize)>,
) {
    #[target_feature(enable = "avx2")]
    #[cfg(target_arch = "x86_64")]
    fn add_rows_avx2(
        to: &mut [f64],
        from: &[f64],
        columns: usize,
        terms: impl Iterator<Item = (f64, usize, usize)>,
    ) {
        add_rows_portable(to, from, columns, terms);
    }
    with_avx2!(
        add_rows_avx2(to, from, columns, terms),
        add_rows_portable(to, from, columns, terms)
    );
}

#[inline(always)]
fn add_rows_portable(
    to: &mut [f64],
    from: &[f64],
    columns: usize,
    terms: impl Iterator<Item = (f64, usize, usize)>,
) {
    for (share, t, f) in terms {
        let to = &mut to[t * columns..][..columns];
        for (x, y) in to.iter_mut().zip(&from[f * columns..][..columns]) {
            *x += share * y;
        }
    }
}

/// Multiplies a row by a number.
#[inline(always)]
pub(crate) fn scale(row: &mut [f64], by: f64) {
    for x in row {
        *x *= by;
    }
}

/// Adds a number to a row.
#[inline(always)]
pub(crate) fn shift(row: &mut [f64], by: f64) {
    for x in row {
        *x += by;
    }
}

/// Exponentiates numbers none of which is positive.
#[inline(always)]
pub(crate) fn exponentiate_nonpositive(row: &mut [f64]) {
    for x in row {
        *x = exp_nonpositive(*x);
    }
}

/// Exponentiates log-weights relative to the largest of their table.
#[inline(always)]
pub(crate) fn exponentiate_below(weights: &mut [f64], top: f64) {
    for x in weights {
        *x = exp_nonpositive(*x - top);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_right_to_fourteen_digits() {
        for i in 0..200_000 {
            let x = -f64::from(i) * 0.003_539_7;
            let (got, expected) = (exp_nonpositive(x), x.exp());
            assert!(
                (got - expected).abs() <= expected * 1e-14,
                "exp({x}) = {got}"
            );
        }
        for (x, expected) in [
            (0.0, 1.0),
            (-709.0, 0.0),
            (-1e300, 0.0),
            (f64::NEG_INFINITY, 0.0),
        ] {
            assert_eq!(exp_nonpositive(x), expected);
        }
    }

    #[test]
    fn sums_products_and_maxima_of_any_length() {
        for length in 0..40 {
            let row: Vec<f64> = (0..length).map(|i| f64::from((i * 7) % 11)).collect();
            assert_eq!(sum(&row), row.iter().sum::<f64>());
            assert_eq!(dot(&row, &row), row.iter().map(|x| x * x).sum::<f64>());
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert_eq!(max(&row), largest);
        }
    }

    #[test]
    fn weights_far_apart_do_not_overflow() {
        let mut weights = [1e6, 1e6, -1e6];
        assert_eq!(max(&weights), 1e6);
        exponentiate_below(&mut weights, 1e6);
        assert_eq!(weights, [1.0, 1.0, 0.0]);
    }
}
