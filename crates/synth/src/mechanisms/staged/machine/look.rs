//! The first look, which decides whether the rest of the probe is requested (docs/MECHANISM.md, C,
//! step 3).

use super::super::pair::COARSE;
use super::{Purpose, StagedMachine};
use crate::Error;
use crate::account::Offer;
use crate::mechanisms::score::Residual;

/// Share of rho for the first look, the first part of a finer probe. The rest of the probe's share
/// is spent only if the look sees more than noise.
pub(in super::super) const FIRST_LOOK: f64 = 0.04;

/// Share of rho, in addition to the probe's, for a block of two groups for each attribute of every
/// pair. It is requested with the first look of a finer probe with a scale of at least
/// [`COARSE_LOOK_SCALE`] of the records. A dependence on the order of values shows in that one
/// integer long before it shows in 64.
pub(in super::super) const COARSE_LOOK: f64 = 0.02;
pub(in super::super) const COARSE_LOOK_SCALE: f64 = 0.02;

/// Number of standard deviations from which on all pairs together show more than noise.
const LEAST_SEEN: f64 = 1.0;

impl StagedMachine {
    /// Whether the probe is requested in two parts. A coarse probe is not divided: with half of its
    /// budget, it would take noise for dependences and dependences for noise.
    pub(super) fn looks_first(&self) -> bool {
        self.fine_probe && !self.mechanism.ablations.first_look
    }

    /// Returns the blocks of two groups for each attribute that are requested with the look if its
    /// probe is imprecise.
    pub(super) fn coarse_look_offers(
        &mut self,
        probe_scale: f64,
        total: f64,
    ) -> Result<Vec<Offer>, Error> {
        let blunt = probe_scale >= COARSE_LOOK_SCALE * total;
        if self.mechanism.ablations.coarse_look || !self.looks_first() || !blunt {
            return Ok(Vec::new());
        }
        let finer: Vec<usize> = (0..self.pairs.len())
            .filter(|&i| self.pairs[i].plan.probe != COARSE)
            .collect();
        let budget = self.probe_budget(COARSE_LOOK);
        let share = budget / finer.len().max(1) as f64;
        let mut offers = Vec::with_capacity(finer.len());
        for index in finer {
            let block = self.pairs[index].block_index(COARSE, &self.merges);
            let statistic = self.pairs[index].blocks[block].block.statistic();
            if let Some(offer) = self.account.offer(statistic, share, self.largest_units)? {
                self.purposes.push(Purpose::Block(index, block));
                offers.push(offer);
            }
        }
        Ok(offers)
    }

    /// Returns the rest of the probe. If the look saw only noise, removes all pairs and returns
    /// nothing.
    pub(super) fn ask_rest_of_probe(&mut self) -> Result<Vec<Offer>, Error> {
        self.leave_noise_alone()?;
        self.probe_offers(self.probe_share() - FIRST_LOOK)
    }

    /// Removes all pairs if the probes so far saw only noise.
    pub(super) fn leave_noise_alone(&mut self) -> Result<(), Error> {
        if !self.sees_dependence()? {
            self.pairs.clear();
        }
        Ok(())
    }

    /// Checks whether the pairs' blocks are further from the 1-ways' model than noise accounts for.
    fn sees_dependence(&self) -> Result<bool, Error> {
        let seen: Vec<usize> = (0..self.pairs.len())
            .filter(|&i| self.pairs[i].blocks[0].is_measured())
            .collect();
        let (residuals, marginals) = self.residuals(&seen)?;
        let coarse = self.coarse_residuals(&seen, &marginals);
        let coarse: Vec<Residual> = coarse.into_iter().flatten().collect();
        Ok(dependence_is_seen(&coarse) || dependence_is_seen(&residuals))
    }
}

/// Checks whether any residual, or all of them together, are larger than noise accounts for.
///
/// A single residual is, if its deviate is above sqrt(2 ln P), which the largest of P standard
/// normal values is unlikely to exceed (Donoho and Johnstone 1994). All residuals together are,
/// from [`LEAST_SEEN`] on.
fn dependence_is_seen(residuals: &[Residual]) -> bool {
    let (mut squares, mut freedom) = (0.0, 0.0);
    let largest = (2.0 * (residuals.len() as f64).ln()).sqrt();
    for residual in residuals
        .iter()
        .filter(|r| r.freedom > 0.0 && r.scale > 0.0)
    {
        let own: f64 = residual.table.iter().map(|c| c * c).sum();
        let own = own / (residual.scale * residual.scale);
        if chi_square_deviate(own, residual.freedom) > largest {
            return true;
        }
        squares += own;
        freedom += residual.freedom;
    }
    freedom > 0.0 && chi_square_deviate(squares, freedom) >= LEAST_SEEN
}

/// Returns the standard normal deviate that corresponds to a chi-square value with `freedom`
/// degrees of freedom (Wilson and Hilferty 1931).
fn chi_square_deviate(value: f64, freedom: f64) -> f64 {
    let variance = 2.0 / (9.0 * freedom);
    ((value / freedom).cbrt() - (1.0 - variance)) / variance.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    fn normal(rng: &mut StdRng) -> f64 {
        let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Returns residuals of 60 pairs with 16 entries each, with noise and a signal for each pair.
    fn residuals(seed: u64, signal: impl Fn(usize) -> f64) -> Vec<Residual> {
        let mut rng = StdRng::seed_from_u64(seed);
        let table = |pair: usize, rng: &mut StdRng| {
            let entries = (0..16).map(|_| 5.0 * normal(rng) + signal(pair) * normal(rng));
            entries.collect()
        };
        (0..60)
            .map(|pair| Residual {
                table: table(pair, &mut rng),
                freedom: 16.0,
                scale: 5.0,
                cell_factor: 0.5,
                resolved: 1.0,
            })
            .collect()
    }

    fn seen(signal: impl Fn(usize) -> f64 + Copy) -> usize {
        let seeds = 0..40;
        seeds
            .filter(|&seed| dependence_is_seen(&residuals(seed, signal)))
            .count()
    }

    #[test]
    fn dependences_are_distinguished_from_noise() {
        let noise = seen(|_| 0.0);
        assert!(noise <= 16, "{noise} of 40");
        // One pair is far from the model; or all pairs are a little, none of which would be seen on
        // its own.
        let (one, all) = (
            seen(|pair| if pair == 7 { 15.0 } else { 0.0 }),
            seen(|_| 2.0),
        );
        assert!(one >= 38 && all >= 38, "{one} and {all} of 40");
        assert!(!dependence_is_seen(&[]));
    }

    #[test]
    fn chi_square_deviates_are_nearly_standard_normal() {
        let mut rng = StdRng::seed_from_u64(3);
        for freedom in [1, 2, 7, 49] {
            let value = |rng: &mut StdRng| (0..freedom).map(|_| normal(rng).powi(2)).sum::<f64>();
            let deviate = |rng: &mut StdRng| chi_square_deviate(value(rng), f64::from(freedom));
            let drawn: Vec<f64> = (0..20_000).map(|_| deviate(&mut rng)).collect();
            let share = |limit: f64| {
                drawn.iter().filter(|&&z| z > limit).count() as f64 / drawn.len() as f64
            };
            // 0.0228 of a normal distribution are above 2, 0.1587 above 1.
            assert!(
                (share(2.0) - 0.0228).abs() < 0.006,
                "{freedom}: {}",
                share(2.0)
            );
            assert!(
                (share(1.0) - 0.1587).abs() < 0.015,
                "{freedom}: {}",
                share(1.0)
            );
        }
    }
}
