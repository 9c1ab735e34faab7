//! Loops over contiguous cells: the inner loops of belief propagation.
//!
//! They are written so that the compiler turns them into vector instructions, and without fused
//! multiply-adds or sums whose order depends on the processor: a fit gives the same bits on every
//! machine.

/// Partial sums kept apart in a sum over a row, so that it runs in vector registers.
const LANES: usize = 8;

/// Below this the exponential is zero: exp(-708) is the last normal number.
const LOWEST: f64 = -708.0;

/// exp(x) for x <= 0 within 2 units in the last place; zero from -708 down.
///
/// x = n ln 2 + r with |r| <= ln(2) / 2; exp(r) by its series to the 13th power, the remainder of
/// which is below 2^-57; 2^n by its exponent bits.
#[inline(always)]
fn exp_nonpositive(x: f64) -> f64 {
    // Adding and subtracting 1.5 * 2^52 rounds to an integer, which the low bits then show.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let clamped = if x < LOWEST { LOWEST } else { x };
    let shifted = clamped * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = clamped - n * LN_2_HIGH - n * LN_2_LOW;
    let mut series = 1.0 / 6_227_020_800.0;
    for inverse_factorial in [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
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

/// The largest entry of a row without NaN (negative infinity if it is empty).
#[inline(always)]
fn max(row: &[f64]) -> f64 {
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
    to.iter_mut().zip(from).for_each(|(t, f)| *t += f);
}

/// Turns a block of log-weights into probabilities that sum to 1; returns the logarithm of the
/// weights' sum.
pub(crate) fn normalise(block: &mut [f64]) -> f64 {
    let top = max(block);
    block
        .iter_mut()
        .for_each(|x| *x = exp_nonpositive(*x - top));
    let sum = sum(block);
    let scale = 1.0 / sum;
    block.iter_mut().for_each(|x| *x *= scale);
    top + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_exact_to_the_last_places() {
        for i in 0..200_000 {
            let x = -f64::from(i) * 0.003_539_7;
            let (got, expected) = (exp_nonpositive(x), x.exp());
            assert!(
                (got - expected).abs() <= expected * 4.5e-16,
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
    fn sums_and_maxima_of_any_length() {
        for length in 0..40 {
            let row: Vec<f64> = (0..length).map(|i| f64::from((i * 7) % 11)).collect();
            assert_eq!(sum(&row), row.iter().sum::<f64>());
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert_eq!(max(&row), largest);
        }
    }

    #[test]
    fn blocks_far_apart_normalise_without_overflow() {
        let mut block = [1e6, 1e6, -1e6];
        let log_sum = normalise(&mut block);
        assert_eq!(block, [0.5, 0.5, 0.0]);
        assert_eq!(log_sum, 1e6 + 2f64.ln());
    }
}
