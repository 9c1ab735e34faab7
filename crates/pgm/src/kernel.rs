//! Loops over contiguous cells: the inner loops of belief propagation.
//!
//! The compiler turns these loops into vector instructions. They use no fused multiply-adds, and no
//! sums whose order depends on the processor, so that a fit gives the same bits on every machine.

/// Calls the first function, which is compiled for AVX2, if the processor has AVX2, and otherwise
/// the second. Both must give the same results.
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

/// Defines a function that calls another one, inlined, with the widest vectors of the processor.
/// The results have the same bits for all widths.
macro_rules! widened {
    ($vis:vis $name:ident = $portable:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {
        $vis fn $name($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
            fn avx512($($argument: $type),*) $(-> $result)? {
                $portable($($argument),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2($($argument: $type),*) $(-> $result)? {
                $portable($($argument),*)
            }
            #[cfg(target_arch = "x86_64")]
            {
                use std::arch::is_x86_feature_detected as has;
                if has!("avx512f") && has!("avx512dq") && has!("avx512vl") {
                    // SAFETY: the processor has the features that the function needs.
                    return unsafe { avx512($($argument),*) };
                }
                if has!("avx2") {
                    // SAFETY: the processor has the only feature that the function needs.
                    return unsafe { avx2($($argument),*) };
                }
            }
            $portable($($argument),*)
        }
    };
}
pub(crate) use widened;

/// Number of partial sums of a sum over a row, so that it runs in vector registers.
const LANES: usize = 8;

/// Below this the exponential is zero; exp(-708) is the last normal number.
const LOWEST: f64 = -708.0;

/// Adding and subtracting 1.5 * 2^52 rounds to an integer, which the low bits then contain.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Returns exp(x) for x <= 0 to 14 digits; zero below -708.
///
/// x = n ln 2 + r with |r| <= ln(2) / 2. exp(r) is computed by its series to the 11th power, which
/// leaves out less than 7e-15, and 2^n by its exponent bits.
#[inline(always)]
fn exp_nonpositive(x: f64) -> f64 {
    // ln 2 in two parts. With the first, n ln 2 is exact.
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

/// Returns exp(x) for |x| <= 30 to 8 digits, exact at 0.
///
/// Works like [`exp_nonpositive`], with the series to the 7th power, which leaves out less than
/// 6e-9, and in a short chain of dependent steps.
#[inline(always)]
pub(crate) fn exp_of_few(x: f64) -> f64 {
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * std::f64::consts::LN_2;
    let r2 = r * r;
    let low = (1.0 + r) + r2 * (0.5 + r * (1.0 / 6.0));
    let high = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5_040.0));
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    (low + r2 * r2 * high) * power
}

/// Returns the sum of a row, in an order that does not depend on the machine.
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

/// Returns the inner product of two rows, in an order that does not depend on the machine.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    #[target_feature(enable = "avx2")]
    #[cfg(target_arch = "x86_64")]
    fn dot_avx2(a: &[f64], b: &[f64]) -> f64 {
        dot_portable(a, b)
    }
    with_avx2!(dot_avx2(a, b), dot_portable(a, b))
}

#[inline(always)]
pub(crate) fn dot_portable(a: &[f64], b: &[f64]) -> f64 {
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

/// Returns the largest entry of a row without NaN; negative infinity if the row is empty.
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
    // Each piece stays in the nearest cache while all terms are added.
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

/// Adds rows of one matrix to rows of another, both with `columns` columns. For every term (share,
/// t, f), adds share times row f of `from` to row t of `to`.
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

/// Rows that are summed, or added to, may start anywhere. Their length is a multiple of this.
pub(crate) const NARROW: usize = 4;

/// Sets `sum` to the sum, in order, of the rows of its length that start at `rows` in `from`. Its
/// length is a multiple of [`NARROW`].
#[inline(always)]
pub(crate) fn sum_rows(rows: &[usize], from: &[f64], sum: &mut [f64]) {
    // As many numbers as fit into registers while all rows are added.
    let (wide, rest) = sum.as_chunks_mut::<{ 4 * NARROW }>();
    let (narrow, _) = rest.as_chunks_mut::<NARROW>();
    let past = wide.len() * 4 * NARROW;
    for (i, sum) in wide.iter_mut().enumerate() {
        sum_of_rows::<_, 1>(rows, from, i * 4 * NARROW, sum);
    }
    for (i, sum) in narrow.iter_mut().enumerate() {
        sum_of_rows::<_, 4>(rows, from, past + i * NARROW, sum);
    }
}

/// Sums every `APART`-th row separately, so that an addition does not wait for the one before.
#[inline(always)]
fn sum_of_rows<const WIDTH: usize, const APART: usize>(
    rows: &[usize],
    from: &[f64],
    offset: usize,
    sum: &mut [f64; WIDTH],
) {
    let mut sums = [[0.0; WIDTH]; APART];
    let (groups, rest) = rows.as_chunks::<APART>();
    for group in groups {
        for (sums, row) in sums.iter_mut().zip(group) {
            add_row(from, row + offset, sums);
        }
    }
    for (sums, row) in sums.iter_mut().zip(rest) {
        add_row(from, row + offset, sums);
    }
    *sum = [0.0; WIDTH];
    for sums in &sums {
        for (sum, x) in sum.iter_mut().zip(sums) {
            *sum += x;
        }
    }
}

#[inline(always)]
fn add_row<const WIDTH: usize>(from: &[f64], begin: usize, sums: &mut [f64; WIDTH]) {
    if let Some(row) = from[begin..].first_chunk::<WIDTH>() {
        for (sum, x) in sums.iter_mut().zip(row) {
            *sum += x;
        }
    }
}

/// Adds a row to each of the rows of its length that start at `rows` in `to`. Its length is a
/// multiple of [`NARROW`].
#[inline(always)]
pub(crate) fn settle_rows(rows: &[usize], added: &[f64], to: &mut [f64]) {
    let (added, _) = added.as_chunks::<NARROW>();
    for &begin in rows {
        let (to, _) = to[begin..][..added.len() * NARROW].as_chunks_mut::<NARROW>();
        for (to, added) in to.iter_mut().zip(added) {
            let mut settled = *to;
            for (t, x) in settled.iter_mut().zip(added) {
                *t += x;
            }
            *to = settled;
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

/// Exponentiates numbers that are not positive.
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
    fn exponential_is_accurate_to_fourteen_digits() {
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
    fn fast_exponential_is_right_to_eight_digits() {
        for i in -60_000..=60_000 {
            let x = f64::from(i) * 0.000_5;
            let (got, expected) = (exp_of_few(x), x.exp());
            assert!(
                (got - expected).abs() <= expected * 1e-8,
                "exp({x}) = {got}"
            );
        }
        assert_eq!(exp_of_few(0.0), 1.0);
    }

    #[test]
    fn sums_products_and_maxima_are_right_for_any_length() {
        for length in 0..40 {
            let row: Vec<f64> = (0..length).map(|i| f64::from((i * 7) % 11)).collect();
            assert_eq!(sum(&row), row.iter().sum::<f64>());
            assert_eq!(dot(&row, &row), row.iter().map(|x| x * x).sum::<f64>());
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert_eq!(max(&row), largest);
        }
    }

    #[test]
    fn rows_at_any_offset_are_summed_and_added_to() {
        for length in (4..=40).step_by(NARROW) {
            let from: Vec<f64> = (0..3 * length + 7).map(|i| f64::from(i as u32)).collect();
            // More rows than are summed separately.
            let rows = [0, length + 3, 2 * length + 7, 3, 1, 0];
            let mut sum = vec![f64::NAN; length];
            sum_rows(&rows, &from, &mut sum);
            let wanted = |i: usize| rows.iter().map(|row| from[row + i]).sum::<f64>();
            assert!(sum.iter().enumerate().all(|(i, &x)| x == wanted(i)));
            let mut to = from.clone();
            settle_rows(&rows, &sum, &mut to);
            for (i, (&now, &before)) in to.iter().zip(&from).enumerate() {
                let over = rows.iter().filter(|&&row| row <= i && i < row + length);
                let change: f64 = over.map(|row| sum[i - row]).sum();
                assert_eq!(now, before + change);
            }
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
