//! Operations on vectors.

pub(super) fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Adds `by` times `x` to `sum`.
pub(super) fn add(sum: &mut [f64], by: f64, x: &[f64]) {
    sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += by * x);
}

/// Returns `values` minus their mean under `shares`.
pub(super) fn centered(values: &[f64], shares: &[f64]) -> Vec<f64> {
    let mean = dot(values, shares);
    values.iter().map(|value| value - mean).collect()
}
