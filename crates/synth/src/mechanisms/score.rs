//! Scores of pairs outside the model: how far, in L1, their true marginals are expected to lie
//! from the model's, given noisy probes (docs/MECHANISM.md, C step 4: empirical Bayes).

/// sqrt(2 / pi): the mean of |x| for a standard normal x.
pub const MEAN_ABS: f64 = 0.797_884_560_802_865_4;

/// One probe beside the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// The probe's table Y minus the model's, projected on the span of the bases, k_a x k_b.
    pub table: Vec<f64>,
    /// Dimension of the span.
    pub freedom: f64,
    /// s: the noise's scale in an orthonormal basis of the span.
    pub scale: f64,
    /// f(k_a) f(k_b): the share of s^2 that is in one cell's variance.
    pub cell_factor: f64,
    /// R_q: the share of the pair's variation that the probe resolves; 0 scores 0.
    pub resolved: f64,
}

/// Expected L1 distance of a pair's marginal from the model's, from its probe.
///
/// Entries of residuals, in orthonormal bases, are taken as normal with variance tau^2 (`signal`)
/// plus the noise's s^2. A residual shrinks by kappa = tau^2 / (tau^2 + s^2), and a cell is normal
/// with mean kappa c and variance kappa s^2 f(k_a) f(k_b).
pub fn expected_distance(residual: &Residual, signal: f64) -> f64 {
    if residual.resolved <= 0.0 || signal <= 0.0 {
        return 0.0;
    }
    let noise = residual.scale * residual.scale;
    let kappa = signal / (signal + noise);
    let deviation = (kappa * noise * residual.cell_factor).sqrt();
    let sum: f64 = residual
        .table
        .iter()
        .map(|c| mean_absolute(kappa * c.abs(), deviation))
        .sum();
    sum / residual.resolved.sqrt()
}

/// tau^2 = max(0, mean of c^2 - s^2) over the entries of all residuals. A projected table has
/// the same squared norm as its entries in an orthonormal basis of the span.
pub fn signal_variance(residuals: &[Residual]) -> f64 {
    let (mut excess, mut entries) = (0.0, 0.0);
    for residual in residuals.iter().filter(|r| r.resolved > 0.0) {
        let squares: f64 = residual.table.iter().map(|c| c * c).sum();
        excess += squares - residual.freedom * residual.scale * residual.scale;
        entries += residual.freedom;
    }
    if entries > 0.0 {
        (excess / entries).max(0.0)
    } else {
        0.0
    }
}

/// E|x| for x normal with mean m >= 0 and standard deviation v > 0.
fn mean_absolute(m: f64, v: f64) -> f64 {
    if v <= 0.0 {
        return m;
    }
    let ratio = m / v;
    v * MEAN_ABS * (-0.5 * ratio * ratio).exp() + m * libm::erf(ratio / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    #[test]
    fn folded_normal_mean_equals_numerical_integration() {
        for (m, v) in [(0.0, 1.0), (0.5, 2.0), (3.0, 0.7), (10.0, 3.0)] {
            let steps = 400_000;
            let (low, high) = (m - 12.0 * v, m + 12.0 * v);
            let width = (high - low) / f64::from(steps);
            let integral: f64 = (0..steps)
                .map(|i| {
                    let x: f64 = low + (f64::from(i) + 0.5) * width;
                    let z = (x - m) / v;
                    x.abs() * (-0.5 * z * z).exp() * width
                })
                .sum::<f64>()
                / (v * (2.0 * std::f64::consts::PI).sqrt());
            assert!((mean_absolute(m, v) - integral).abs() < 1e-8);
        }
    }

    fn residual(table: Vec<f64>, scale: f64) -> Residual {
        Residual {
            freedom: 1.0,
            cell_factor: 0.25,
            resolved: 1.0,
            table,
            scale,
        }
    }

    fn expected_distances(residuals: &[Residual]) -> Vec<f64> {
        let signal = signal_variance(residuals);
        let distances = residuals.iter().map(|r| expected_distance(r, signal));
        distances.collect()
    }

    #[test]
    fn residuals_no_larger_than_the_noise_score_nothing() {
        let flat = vec![residual(vec![0.5, -0.5, -0.5, 0.5], 2.0); 4];
        assert_eq!(expected_distances(&flat), [0.0; 4]);
    }

    /// On tables drawn from the model of the estimate itself, the expected distance must be
    /// that of the truth, on average.
    #[test]
    fn expected_distances_are_right_on_average() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut normal = move || {
            let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
            (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        };
        let (tau, scale, pairs) = (5.0, 4.0, 4000);
        let mut distance = 0.0;
        let residuals: Vec<Residual> = (0..pairs)
            .map(|_| {
                let truth = tau * normal();
                distance += 2.0 * truth.abs(); // four cells of |truth| / 2
                let c = (truth + scale * normal()) / 2.0;
                residual(vec![c, -c, -c, c], scale)
            })
            .collect();
        let expected: f64 = expected_distances(&residuals).iter().sum();
        assert!((expected / distance - 1.0).abs() < 0.05);
    }

    #[test]
    fn coarser_probes_stand_for_more_and_unresolved_ones_for_nothing() {
        let fine = residual(vec![9.0, -9.0, -9.0, 9.0], 2.0);
        let mut coarse = fine.clone();
        coarse.resolved = 0.25;
        let mut blind = fine.clone();
        blind.resolved = 0.0;
        let scores = expected_distances(&[fine, coarse, blind]);
        assert!((scores[1] / scores[0] - 2.0).abs() < 1e-12);
        assert_eq!(scores[2], 0.0);
    }
}
