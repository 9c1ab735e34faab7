//! Scores of pairs outside the model: the expected L1 distance of their true marginals from the
//! model's, given noisy probes (docs/MECHANISM.md, C step 4: empirical Bayes).

/// sqrt(2 / pi): the mean of |x| for a standard normal x.
pub const MEAN_ABS: f64 = 0.797_884_560_802_865_4;

/// The difference of a probe from the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// The probe's table Y minus the model's, projected on the span of the bases, k_a x k_b.
    pub table: Vec<f64>,
    /// Dimension of the span.
    pub freedom: f64,
    /// s: the noise's scale in an orthonormal basis of the span.
    pub scale: f64,
    /// f(k_a) f(k_b): the share of s^2 in one cell's variance.
    pub cell_factor: f64,
    /// R_q: the share of the pair's variation that the probe resolves. A pair with 0 scores 0.
    pub resolved: f64,
}

/// The possible variances of residuals' entries, each with its number of pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Prior(Vec<Component>);

/// Least share of pairs without signal at the first scoring for which a mixture is used. In tables
/// where nearly all pairs have some signal, leaving out pairs with a small signal costs more than
/// it saves.
const LEAST_NULL_SHARE: f64 = 0.25;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Component {
    /// tau^2.
    signal: f64,
    weight: f64,
}

/// Steps of the expectation-maximisation that learns the weights.
const EM_STEPS: usize = 200;

/// Largest number of components. Variances double, so no table needs more.
const MAX_COMPONENTS: usize = 64;

/// Prior count of the component without signal, in pairs, so that its weight never becomes 0.
const NULL_PAIRS: f64 = 0.1;

impl Prior {
    /// Returns the prior for a first scoring. If many pairs seem to have no signal, it is a
    /// mixture: a pair's entries are normal with one of several variances, one of which is 0.
    /// Otherwise it is a single variance.
    pub fn learn(residuals: &[Residual]) -> Self {
        let mixture = Self::mixture(residuals);
        if mixture.null_share() >= LEAST_NULL_SHARE {
            mixture
        } else {
            Self::single(residuals)
        }
    }

    /// Returns the prior with a single variance for all entries: the mean of the variance beyond
    /// the noise's.
    pub fn single(residuals: &[Residual]) -> Self {
        Self(vec![Component {
            signal: signal_variance(residuals),
            weight: 1.0,
        }])
    }

    /// Returns the prior for the next scoring. A single variance stays; a mixture is learned again.
    pub fn learn_again(&self, residuals: &[Residual]) -> Self {
        match self.0.as_slice() {
            [_] => self.clone(),
            _ => Self::mixture(residuals),
        }
    }

    /// Returns the share of pairs without signal.
    fn null_share(&self) -> f64 {
        let all: f64 = self.0.iter().map(|component| component.weight).sum();
        let null = self.0.iter().filter(|component| component.signal <= 0.0);
        null.map(|component| component.weight).sum::<f64>() / all
    }

    /// Learns a mixture of normal distributions around 0 (Stephens 2017, "False discovery rates: a
    /// new deal", section 2.2). In most tables, most pairs are nearly independent given the model,
    /// and a few are far from it. A single normal distribution would see a signal in every pair.
    ///
    /// Variances are 0, the noise's, and its doublings. A signal below the noise cannot be
    /// distinguished from none, and assuming one would bring every pair into the model.
    fn mixture(residuals: &[Residual]) -> Self {
        let seen: Vec<Seen> = residuals.iter().filter_map(Seen::new).collect();
        let least = seen
            .iter()
            .map(|pair| pair.noise)
            .fold(f64::INFINITY, f64::min);
        let entry = |pair: &Seen| pair.squares / pair.freedom;
        let most = seen.iter().map(entry).fold(0.0, f64::max);
        let doubled = std::iter::successors(Some(least), |signal| Some(2.0 * signal));
        let doubled = doubled.take_while(|&signal| signal > 0.0 && signal < 2.0 * most);
        let signals = std::iter::once(0.0).chain(doubled).take(MAX_COMPONENTS);
        let mut components: Vec<Component> = signals
            .map(|signal| Component {
                signal,
                weight: 1.0,
            })
            .collect();
        for _ in 0..EM_STEPS {
            let mut weights = vec![0.0; components.len()];
            weights[0] = NULL_PAIRS;
            for pair in &seen {
                for (weight, chance) in weights.iter_mut().zip(pair.chances(&components)) {
                    *weight += chance;
                }
            }
            for (component, weight) in components.iter_mut().zip(weights) {
                component.weight = weight;
            }
        }
        Self(components)
    }

    /// Returns the expected L1 distance of a pair's marginal from the model's, given its probe: the
    /// mean over the components, weighted by their probability for the pair.
    pub fn expected_distance(&self, residual: &Residual) -> f64 {
        let Some(seen) = Seen::new(residual) else {
            return 0.0;
        };
        let chances = seen.chances(&self.0);
        let distances = self.0.iter().zip(chances);
        distances
            .map(|(component, chance)| chance * expected_distance(residual, component.signal))
            .sum()
    }
}

/// The statistics of a residual that a prior uses. Residuals that resolve nothing have none.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Sum of the squares of the entries.
    squares: f64,
    /// Dimension of the span.
    freedom: f64,
    /// s^2.
    noise: f64,
}

impl Seen {
    fn new(residual: &Residual) -> Option<Self> {
        (residual.resolved > 0.0 && residual.freedom > 0.0).then(|| Self {
            squares: residual.table.iter().map(|c| c * c).sum(),
            freedom: residual.freedom,
            noise: residual.scale * residual.scale,
        })
    }

    /// Returns the probability of each component to have produced the residual. Weights need not
    /// add up to 1.
    fn chances(&self, components: &[Component]) -> Vec<f64> {
        let log = |component: &Component| {
            let variance = component.signal + self.noise;
            component.weight.ln() - 0.5 * (self.freedom * variance.ln() + self.squares / variance)
        };
        let logs: Vec<f64> = components.iter().map(log).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let chances: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
        let sum: f64 = chances.iter().sum();
        chances.iter().map(|chance| chance / sum).collect()
    }
}

/// Returns the expected L1 distance of a pair's marginal from the model's, given its probe.
///
/// In an orthonormal basis, the entries of residuals are assumed to be normal with variance tau^2
/// (`signal`) plus the noise's s^2. A residual shrinks by kappa = tau^2 / (tau^2 + s^2), and a cell
/// is normal with mean kappa c and variance kappa s^2 f(k_a) f(k_b).
fn expected_distance(residual: &Residual, signal: f64) -> f64 {
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

/// Returns tau^2 = max(0, mean of c^2 - s^2) over the entries of all residuals. A projected table
/// has the same squared norm as its entries in an orthonormal basis of the span.
fn signal_variance(residuals: &[Residual]) -> f64 {
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

/// Returns E|x| for normal x with mean m >= 0 and standard deviation v > 0.
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
        let prior = Prior::single(residuals);
        let distances = residuals.iter().map(|r| prior.expected_distance(r));
        distances.collect()
    }

    #[test]
    fn residuals_no_larger_than_the_noise_score_zero() {
        let flat = vec![residual(vec![0.5, -0.5, -0.5, 0.5], 2.0); 4];
        assert_eq!(expected_distances(&flat), [0.0; 4]);
    }

    /// Draws tables from the model of the estimate itself, for which expected distances must equal
    /// true distances on average.
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
    fn coarser_probe_scores_more_and_unresolved_probe_scores_zero() {
        let fine = residual(vec![9.0, -9.0, -9.0, 9.0], 2.0);
        let mut coarse = fine.clone();
        coarse.resolved = 0.25;
        let mut blind = fine.clone();
        blind.resolved = 0.0;
        let scores = expected_distances(&[fine, coarse, blind]);
        assert!((scores[1] / scores[0] - 2.0).abs() < 1e-12);
        assert_eq!(scores[2], 0.0);
    }

    /// 4 of 40 pairs are far from the model. A single normal distribution sees a signal in all
    /// pairs, a mixture only in the four.
    #[test]
    fn mixture_sees_a_signal_only_in_pairs_that_have_one() {
        let mut rng = StdRng::seed_from_u64(2);
        let mut normal = move || {
            let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
            (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        };
        let residuals: Vec<Residual> = (0..40)
            .map(|pair| {
                let signal = if pair < 4 { 30.0 } else { 0.0 };
                let table = (0..9).map(|_| signal * normal() + 2.0 * normal());
                Residual {
                    freedom: 9.0,
                    cell_factor: 0.5,
                    ..residual(table.collect(), 2.0)
                }
            })
            .collect();
        let distances = |prior: Prior| {
            let distances = residuals.iter().map(|r| prior.expected_distance(r));
            distances.collect::<Vec<f64>>()
        };
        let (one, several) = (
            distances(Prior::single(&residuals)),
            distances(Prior::learn(&residuals)),
        );
        assert!(one[4..].iter().all(|&distance| distance > 5.0), "{one:?}");
        assert!(several[4..].iter().sum::<f64>() < 20.0, "{several:?}");
        for (one, several) in one[..4].iter().zip(&several) {
            assert!((one / several - 1.0).abs() < 0.05, "{one} {several}");
        }
    }

    #[test]
    fn distances_are_finite_without_pairs_and_without_noise() {
        for learn in [Prior::single, Prior::learn] {
            assert_eq!(
                learn(&[]).expected_distance(&residual(vec![9.0; 4], 2.0)),
                0.0
            );
            let exact = [
                residual(vec![0.0; 4], 1e-9),
                residual(vec![9.0, -9.0, -9.0, 9.0], 1e-9),
            ];
            let prior = learn(&exact);
            for pair in &exact {
                assert!(prior.expected_distance(pair).is_finite());
            }
        }
    }
}
