//! Noisy sums of vectors of bounded norm: per-example gradients (DP-SGD, Abadi et al. 2016) and the changes that
//! parties send (DP-FedAvg, McMahan et al. 2018).
//!
//! Each vector is scaled to a norm of at most the clip and rounded towards zero to integers in units of clip/[`UNIT`].
//! Its integer norm is checked against [`UNIT`] squared. The noise is the exact discrete Gaussian. The bound on the
//! influence of one example, or party, is therefore exact. The cost of many sums in a run is accounted as a sampled
//! Gaussian ([`fhaim_rdp`]), in doubles.

use fhaim_dp::DiscreteGaussian;
use fhaim_rdp::SampledGaussian;
use rand::RngCore;

use crate::Error;
use crate::matrix::dot;
use crate::network::{Backward, Network, Tape};

/// Integer value of the clip: 2^20.
pub const UNIT: i32 = 1 << 20;

/// Factor that shortens a vector whose norm is too large after the rounding of doubles.
const SHORTER: f64 = 1.0 - 1.0 / 65536.0;

/// The smallest clip. Between this and [`MAX_CLIP`], scaled gradients can be represented in single precision.
pub const MIN_CLIP: f64 = 1e-9;
/// The largest clip; see [`MIN_CLIP`].
pub const MAX_CLIP: f64 = 1e9;

/// Settings of clipping and noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Privacy {
    /// The largest norm of an example's gradient, or of a party's change.
    pub clip: f64,
    /// z: standard deviation of the noise over the clip. It is rounded up to a multiple of 1/[`UNIT`].
    pub multiplier: f64,
}

/// How often, and with which probability, an example or party is part of a noisy sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// q: probability to be part of a sum, drawn independently.
    pub rate: f64,
    /// Number of noisy sums.
    pub steps: u32,
}

impl Sampling {
    /// Returns epsilon for a multiplier. It depends on public values only.
    ///
    /// # Errors
    /// Those of [`SampledGaussian::epsilon`].
    pub fn epsilon(&self, multiplier: f64, delta: f64) -> Result<f64, Error> {
        Ok(self.accountant(multiplier).epsilon(delta)?.0)
    }

    /// Returns the least multiplier that keeps epsilon.
    ///
    /// # Errors
    /// Those of [`SampledGaussian::least_multiplier`].
    pub fn multiplier(&self, epsilon: f64, delta: f64) -> Result<f64, Error> {
        Ok(self.accountant(1.0).least_multiplier(epsilon, delta)?)
    }

    /// Returns the accountant of sums with this much noise, whose cost can be added to other costs.
    pub fn accountant(&self, multiplier: f64) -> SampledGaussian {
        SampledGaussian {
            rate: self.rate,
            multiplier,
            steps: self.steps,
        }
    }
}

impl Privacy {
    /// Rejects settings with which no sum could be released. Called before training.
    ///
    /// # Errors
    /// [`Error::Setting`] for a clip outside [`MIN_CLIP`]..=[`MAX_CLIP`], and for noise that cannot be drawn.
    pub fn check(&self) -> Result<(), Error> {
        self.noise().map(drop)
    }

    /// Returns the noise of one coordinate of a sum, in units of clip/[`UNIT`].
    fn noise(&self) -> Result<DiscreteGaussian, Error> {
        if !(MIN_CLIP..=MAX_CLIP).contains(&self.clip) {
            let problem = format!("it must be a number from {MIN_CLIP:e} to {MAX_CLIP:e}");
            return Err(Error::setting("clip", problem));
        }
        let scale = (self.multiplier * f64::from(UNIT)).ceil();
        if !(scale >= 1.0 && scale <= DiscreteGaussian::MAX_SCALE as f64) {
            let most = DiscreteGaussian::MAX_SCALE as f64 / f64::from(UNIT);
            return Err(Error::setting(
                "noise multiplier",
                format!(
                    "it must be above 0 and at most {most}, not {}; raise epsilon or take fewer steps",
                    self.multiplier
                ),
            ));
        }
        Ok(DiscreteGaussian::new(scale as u64)?)
    }

    /// Adds noise to a sum of clipped vectors, and converts it to floating-point numbers.
    pub(crate) fn release<R: RngCore + ?Sized>(
        &self,
        mut sum: Vec<i64>,
        rng: &mut R,
    ) -> Result<Vec<f32>, Error> {
        let noise = self.noise()?;
        for value in &mut sum {
            // Sums are at most 2^20 per example, and samples are below 2^60.
            *value = value.saturating_add(noise.sample(rng));
        }
        let unit = self.clip / f64::from(UNIT);
        Ok(sum.iter().map(|&v| (v as f64 * unit) as f32).collect())
    }
}

/// Returns the sum of the examples' clipped gradients. An example consists of one or more rows of a network's pass.
pub(crate) fn clipped_sum(
    network: &Network,
    (tape, back): (&Tape, &Backward),
    examples: impl Iterator<Item = Vec<usize>>,
    clip: f64,
) -> Vec<i64> {
    let mut sum = vec![0i64; network.parameters().len()];
    for rows in examples {
        add_clipped(&network.gradient_of(tape, back, &rows), clip, &mut sum);
    }
    sum
}

/// Adds a vector, scaled to a norm of at most `clip` and rounded towards zero, in units of clip/[`UNIT`]. A vector
/// without a finite norm adds nothing.
pub(crate) fn add_clipped(vector: &[f32], clip: f64, sum: &mut [i64]) {
    let norm = dot(vector, vector).sqrt();
    if !norm.is_finite() {
        return;
    }
    let mut factor = f64::from(UNIT) / norm.max(clip);
    loop {
        let scaled = |&value: &f32| (value * factor as f32) as i32;
        // Values are hardly above 2^20, so the sum of 2^20 of their squares fits.
        let squares: u64 = vector
            .iter()
            .map(|v| u64::from(scaled(v).unsigned_abs()).pow(2))
            .sum();
        if squares <= u64::from(UNIT.unsigned_abs()).pow(2) {
            let added = sum.iter_mut().zip(vector);
            added.for_each(|(total, v)| *total += i64::from(scaled(v)));
            return;
        }
        factor *= SHORTER;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::Layer;
    use crate::network::tests::rows;
    use crate::window::Window;
    use rand::{SeedableRng, rngs::StdRng};

    fn networks() -> [Network; 2] {
        let window = Window::halving(4, 2, 1);
        let convolutions = vec![
            Layer::Convolution { window, filters: 3 },
            Layer::Dense {
                inputs: 6,
                outputs: 1,
            },
        ];
        [Layer::dense(&[4, 6, 5, 1]), convolutions]
            .map(|layers| Network::random(layers, &mut StdRng::seed_from_u64(3)).unwrap())
    }

    /// Compares with a separate pass for each example: equal gradients, and an equal sum of clipped ones.
    #[test]
    fn clipped_sum_equals_sum_of_clipped_single_gradients() {
        networks().iter().for_each(check_clipped_sums);
    }

    fn check_clipped_sums(network: &Network) {
        let (input, delta) = (rows(8, network.inputs(), 1), rows(8, 1, 2));
        let alone = |numbers: &[usize]| {
            let (_, tape) = network.forward(input.select(numbers)).unwrap();
            let back = network.backward(&tape, delta.select(numbers));
            network.gradient(&tape, &back)
        };
        let (_, tape) = network.forward(input.clone()).unwrap();
        let back = network.backward(&tape, delta.clone());
        let count = network.parameters().len();
        for examples in [
            vec![vec![0], vec![5], vec![7]],
            vec![vec![0, 4], vec![3, 6]],
        ] {
            for clip in [0.05, 1.0, 100.0] {
                let found = clipped_sum(network, (&tape, &back), examples.iter().cloned(), clip);
                let mut expected = vec![0.0; count];
                for rows in &examples {
                    let gradient = alone(rows);
                    let norm = gradient
                        .iter()
                        .map(|&g| f64::from(g).powi(2))
                        .sum::<f64>()
                        .sqrt();
                    let factor = (clip / norm).min(1.0);
                    let scaled = gradient.iter().map(|&g| f64::from(g) * factor);
                    expected.iter_mut().zip(scaled).for_each(|(e, g)| *e += g);
                }
                let unit = clip / f64::from(UNIT);
                for (found, expected) in found.iter().zip(expected) {
                    let off = (*found as f64 * unit - expected).abs();
                    assert!(
                        off < 3.0 * unit + 1e-5 * expected.abs() + 1e-7,
                        "{off} {unit}"
                    );
                }
            }
        }
    }

    /// An additional example moves the sum by at most the clip: exactly, in integers, for every example.
    #[test]
    fn single_vector_moves_a_sum_by_at_most_the_clip() {
        let mut vectors: Vec<Vec<f32>> =
            (0..50).map(|n| rows(1, 37, n).values().to_vec()).collect();
        vectors.push(vec![1e30; 37]);
        vectors.push(vec![1e-30; 37]);
        vectors.push(vec![0.0; 37]);
        vectors.push([&[f32::NAN][..], &[1.0; 36]].concat());
        vectors.push([&[f32::INFINITY][..], &[1.0; 36]].concat());
        vectors.push([&[3.0f32][..], &[0.0; 36]].concat());
        for clip in [1e-3, 0.7, 5.0] {
            for (number, vector) in vectors.iter().enumerate() {
                let mut sum = vec![0i64; 37];
                add_clipped(vector, clip, &mut sum);
                let squares: i128 = sum.iter().map(|&v| i128::from(v).pow(2)).sum();
                assert!(squares <= i128::from(UNIT).pow(2), "{number}");
            }
        }
        // A long vector is hardly shorter than the clip.
        let mut sum = vec![0i64; 37];
        add_clipped(&vectors[0], 1e-3, &mut sum);
        let squares: i128 = sum.iter().map(|&v| i128::from(v).pow(2)).sum();
        assert!(squares as f64 > 0.999 * f64::from(UNIT).powi(2));
    }

    #[test]
    fn noise_has_the_accounted_deviation() {
        let privacy = Privacy {
            clip: 0.5,
            multiplier: 1.3,
        };
        let mut rng = StdRng::seed_from_u64(1);
        let noise = privacy.release(vec![0; 40_000], &mut rng).unwrap();
        let variance = noise.iter().map(|&n| f64::from(n).powi(2)).sum::<f64>() / 40_000.0;
        // Five standard deviations of the estimate.
        assert!((variance / 0.65f64.powi(2) - 1.0).abs() < 5.0 * (2.0f64 / 40_000.0).sqrt());
        for (clip, multiplier) in [
            (0.0, 1.0),
            (f64::NAN, 1.0),
            (1e-300, 1.0),
            (f64::INFINITY, 1.0),
            (1.0, 0.0),
            (1.0, 1e3),
            (1.0, f64::NAN),
        ] {
            let wrong = Privacy { clip, multiplier };
            assert!(
                matches!(wrong.release(vec![0], &mut rng), Err(Error::Setting { .. })),
                "{clip} {multiplier}"
            );
        }
    }

    /// The common example of accountants, in both directions.
    #[test]
    fn accountant_matches_published_example() {
        let sampling = Sampling {
            rate: 250.0 / 60_000.0,
            steps: 3600,
        };
        assert!((sampling.epsilon(1.3, 1e-5).unwrap() - 1.180).abs() < 5e-4);
        let multiplier = sampling.multiplier(1.180, 1e-5).unwrap();
        assert!((multiplier - 1.3).abs() < 1e-3, "{multiplier}");
        assert!(sampling.epsilon(multiplier, 1e-5).unwrap() <= 1.180);
    }
}
