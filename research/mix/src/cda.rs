//! DP-CDA (Saha, Tonoy and Imtiaz 2025): mixes of records among parties.
//!
//! A mix is the mean of l records of one class, drawn at random for each mix, with noise. With S parties, each party
//! mixes its own records, and a server averages the S vectors.
//!
//! docs/research/cape.md lists the differences from the paper and their reasons. In short:
//!
//! - The number of records of each class at each party is public.
//! - Neighbouring tables differ in one record, which is replaced by another of the same class and party.
//! - A record can only be in mixes of the same class: T / Y mixes, each with probability l / n.
//! - Classes are published without noise.
//! - The noise is discrete. Parties that add noise together mask it, instead of correlating it.

use fhaim_dp::{DiscreteGaussian, rounded_up};
use fhaim_federated::{MODULUS, PairKeys, lift};
use fhaim_rdp::Mixing;
use rand::CryptoRng;

use crate::{Error, Mixes, Points};

/// How parties add noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CdaNoise {
    /// Each party adds all the noise that protects its own vectors. The server sees these vectors.
    Conventional,
    /// The parties add noise together. The server sees only the sum of their masked vectors. Fewer than a third of the
    /// parties may tell the server their draws. (This is the aim of CAPE, with masks instead of correlated Gaussians.)
    Shared,
}

/// The smallest scale of a party's discrete Gaussian. The distribution of a sum of such samples differs from one sample
/// of the same variance by a factor within exp(+-5 S exp(-2 pi^2 8)), which a double cannot tell from 1 (Kairouz, Liu
/// and Steinke 2021, Theorem 9).
const MIN_SCALE: u64 = 4;

/// Factor on the least epsilon in an error message. The noise for that epsilon is rounded up, so a margin is needed.
const MARGIN: f64 = 1.001;

/// Standard deviations of noise that a sum must have room for.
const ROOM: u64 = 64;

/// The largest number of values in all mixes together: 2 GiB, five times as many as 60,000 mixes of MNIST images have.
pub const MAX_VALUES: usize = 1 << 28;

/// A plan for making mixes. It is public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cda {
    mix: usize,
    samples: usize,
    noise: CdaNoise,
    /// Scale of a party's noise on a sum, in the integer units of features; `None` for no noise.
    scale: Option<u64>,
    cost: CdaCost,
    mixing: Option<Mixing>,
}

/// Privacy cost of mixes to the record that pays most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CdaCost {
    /// epsilon; infinite without noise.
    pub epsilon: f64,
    /// Order of the Renyi divergence that shows epsilon; 0 without noise.
    pub order: u32,
    /// tau: standard deviation of the noise that protects a feature of a party's mean, for records of norm 1.
    pub deviation: f64,
    /// Probability that a record is in a given mix of its class: the largest over all classes and parties.
    pub rate: f64,
    /// Number of mixes that a record may be in.
    pub samples: usize,
}

impl Cda {
    /// Plans `samples` mixes of `mix` records of each party, taking the classes in turn. The noise is the least that
    /// makes them (epsilon, delta)-private; without a budget there is no noise.
    ///
    /// # Errors
    /// [`Error::SmallClass`] if a party has fewer than `mix` records of a class; [`Error::OutOfReach`] and
    /// [`Error::Privacy`] if no noise keeps the budget; [`Error::Setting`] for zero parties, mixes or records per mix,
    /// and for too many mixes; [`Error::Shape`] if the parties' records differ in width or classes.
    pub fn plan(
        parties: &[Points],
        mix: usize,
        samples: usize,
        noise: CdaNoise,
        budget: Option<(f64, f64)>,
    ) -> Result<Self, Error> {
        let classes = classes(parties)?;
        if mix == 0 || samples == 0 {
            return Err(Error::Setting {
                what: "mixes",
                problem: format!(
                    "cannot make {samples} mixes of {mix} records: both numbers must be at least 1"
                ),
            });
        }
        let width = parties.first().map_or(0, Points::width);
        if samples.saturating_mul(width) > MAX_VALUES {
            return Err(Error::Setting {
                what: "mixes",
                problem: format!(
                    "{samples} mixes of {width} features are too many: at most {} are possible at this width",
                    MAX_VALUES / width.max(1)
                ),
            });
        }
        let least = smallest_class(parties, &classes, mix)?;
        let rate = mix as f64 / least as f64;
        let in_class = samples.div_ceil(classes.len());
        let mut planned = Self {
            mix,
            samples,
            noise,
            scale: None,
            mixing: None,
            cost: CdaCost {
                epsilon: f64::INFINITY,
                order: 0,
                deviation: 0.0,
                rate,
                samples: in_class,
            },
        };
        if let Some((epsilon, delta)) = budget {
            planned.add_noise(parties, epsilon, delta)?;
        }
        planned.check_room(parties)?;
        Ok(planned)
    }

    fn add_noise(&mut self, parties: &[Points], epsilon: f64, delta: f64) -> Result<(), Error> {
        let mut mixing = Mixing {
            records: whole(self.mix)?,
            clip: 1.0,
            deviation: 1.0,
            noised_labels: false,
            rate: self.cost.rate,
            samples: whole(self.cost.samples)?,
        };
        fhaim_dp::accounting::rho(epsilon, delta)?;
        let moved = parties.iter().map(Points::replaced_squared).max();
        let moved = (moved.unwrap_or(0) as f64).sqrt();
        let honest = self.honest(parties.len());
        let of_scale = |scale: u64| {
            let whole = scale as f64 * (honest as f64).sqrt();
            2.0 * whole / (self.mix as f64 * moved)
        };
        // From the third on, the terms of the bound do not fall with the noise, so small budgets may be out of reach.
        let out_of_reach = || {
            let most = Mixing {
                deviation: of_scale(DiscreteGaussian::MAX_SCALE - 2),
                ..mixing
            };
            match most.epsilon(delta) {
                Ok((least, _)) => Error::OutOfReach {
                    epsilon,
                    least: rounded_up(least * MARGIN),
                },
                Err(error) => error.into(),
            }
        };
        let deviation = mixing.least_deviation(epsilon, delta);
        mixing.deviation = deviation.map_err(|_| out_of_reach())?;
        // A record of norm 1 moves a sum by 2; a record here moves it by `moved`.
        let needed = self.mix as f64 * mixing.deviation * moved / 2.0;
        // Start slightly below the needed scale, for any rounding: the least sufficient scale is at most two
        // above.
        let share = (needed / (honest as f64).sqrt() - 1.0).floor();
        if share >= (DiscreteGaussian::MAX_SCALE - 2) as f64 {
            return Err(out_of_reach());
        }
        // The cast turns a negative share into 0.
        let mut scale = (share as u64).max(MIN_SCALE);
        let (spent, order) = loop {
            mixing.deviation = of_scale(scale);
            let (spent, order) = mixing.epsilon(delta)?;
            if spent <= epsilon {
                break (spent, order);
            }
            scale += 1;
        };
        self.scale = Some(scale);
        self.mixing = Some(mixing);
        self.cost = CdaCost {
            epsilon: spent,
            order,
            deviation: mixing.deviation,
            ..self.cost
        };
        Ok(())
    }

    /// Number of parties whose noise is relied on.
    fn honest(&self, parties: usize) -> usize {
        match self.noise {
            CdaNoise::Conventional => 1,
            CdaNoise::Shared => parties - (parties.div_ceil(3) - 1),
        }
    }

    /// Rejects plans whose sums could exceed the range of masked integers.
    fn check_room(&self, parties: &[Points]) -> Result<(), Error> {
        let largest = parties.iter().map(Points::largest).max().unwrap_or(0);
        let one = largest.saturating_mul(self.mix as u64);
        let one = one.saturating_add(self.scale.unwrap_or(0).saturating_mul(ROOM));
        if one.saturating_mul(parties.len() as u64) < MODULUS / 2 {
            return Ok(());
        }
        Err(Error::Setting {
            what: "mixes",
            problem: "the parties' sums could exceed 2^47; mix fewer records or use fewer parties"
                .to_owned(),
        })
    }

    /// Returns the privacy cost.
    pub fn cost(&self) -> CdaCost {
        self.cost
    }

    /// Makes the mixes. All randomness of `rng` must stay secret, including the choice of records.
    ///
    /// # Errors
    /// Those of [`Cda::plan`], if `parties` are not the planned ones.
    pub fn run<R: CryptoRng + ?Sized>(
        &self,
        parties: &[Points],
        rng: &mut R,
    ) -> Result<Mixes, Error> {
        let classes = classes(parties)?;
        smallest_class(parties, &classes, self.mix)?;
        let width = parties.first().map_or(0, Points::width);
        let by_class: Vec<_> = parties.iter().map(Points::by_class).collect();
        let noise = self.scale.map(DiscreteGaussian::new).transpose()?;
        let masked = self.noise == CdaNoise::Shared && parties.len() > 1;
        let keys = PairKeys::agree(if masked { parties.len() } else { 0 }, rng);
        let everyone: Vec<usize> = (0..keys.len()).collect();
        let mut mixes = Mixes {
            width,
            sums: Vec::with_capacity(self.samples * width),
            labels: Vec::with_capacity(self.samples),
            most: self.mix * parties.len(),
            full: true,
        };
        for (number, &class) in (0..self.samples).zip(classes.iter().cycle()) {
            let vectors: Vec<Vec<i64>> = parties
                .iter()
                .zip(&by_class)
                .map(|(party, by_class)| self.vector(party, &by_class[class], noise, rng))
                .collect();
            if masked {
                let masked: Vec<Vec<u64>> = (keys.iter().zip(&vectors))
                    .map(|(keys, vector)| keys.mask(vector, &everyone, number as u64))
                    .collect();
                mixes.sums.extend(lift(&masked));
            } else {
                mixes.sums.extend(sum(&vectors, width));
            }
            mixes.labels.push(class as u32);
        }
        Ok(mixes)
    }

    /// Returns the sum of records drawn without replacement from a party, with the party's noise.
    fn vector<R: CryptoRng + ?Sized>(
        &self,
        party: &Points,
        records: &[usize],
        noise: Option<DiscreteGaussian>,
        rng: &mut R,
    ) -> Vec<i64> {
        let mut sum = match noise {
            Some(noise) => (0..party.width()).map(|_| noise.sample(rng)).collect(),
            None => vec![0i64; party.width()],
        };
        let drawn = rand::seq::index::sample(rng, records.len(), self.mix.min(records.len()));
        for index in drawn {
            // A sampled index is below the number of records.
            for (sum, &value) in sum.iter_mut().zip(party.record(records[index])) {
                *sum += i64::from(value);
            }
        }
        sum
    }
}

/// Returns the classes of which any party has records. Rejects parties whose records differ in shape.
fn classes(parties: &[Points]) -> Result<Vec<usize>, Error> {
    let first = parties.first().ok_or_else(|| Error::Setting {
        what: "parties",
        problem: "at least one party is needed".to_owned(),
    })?;
    let alike = |p: &Points| (p.width(), p.classes()) == (first.width(), first.classes());
    if !parties.iter().all(alike) {
        return Err(Error::Shape(
            "the parties' records differ in width or number of classes".to_owned(),
        ));
    }
    let mut found = vec![false; first.classes()];
    for party in parties {
        for &label in party.labels() {
            // Labels are below the number of classes.
            found[label as usize] = true;
        }
    }
    let found: Vec<usize> = (0..found.len()).filter(|&class| found[class]).collect();
    if found.is_empty() {
        return Err(Error::Shape("no party has a record".to_owned()));
    }
    Ok(found)
}

/// Returns the number of records of the smallest class at any party.
fn smallest_class(parties: &[Points], classes: &[usize], mix: usize) -> Result<usize, Error> {
    let (mut least, mut smallest) = (usize::MAX, 0);
    for party in parties {
        let by_class = party.by_class();
        for &class in classes {
            let found = by_class[class].len();
            if found < least {
                (least, smallest) = (found, class);
            }
        }
    }
    if least < mix {
        return Err(Error::SmallClass {
            class: smallest,
            found: least,
            needed: mix,
            parties: parties.len(),
        });
    }
    Ok(least)
}

/// Converts a number to the accountant's type.
fn whole(number: usize) -> Result<u32, Error> {
    u32::try_from(number).map_err(|_| Error::Setting {
        what: "mixes",
        problem: format!(
            "{number} is more than can be accounted for; the most is {}",
            u32::MAX
        ),
    })
}

fn sum(vectors: &[Vec<i64>], width: usize) -> Vec<i64> {
    let mut sums = vec![0; width];
    for vector in vectors {
        for (sum, value) in sums.iter_mut().zip(vector) {
            *sum += value;
        }
    }
    sums
}

/// Cost in zCDP of the correlated Gaussians that CAPE itself uses.
///
/// `honest` parties do not collude; every other party tells the server its draws. One record moves a party's vector by
/// `delta` (L2). Party s adds g_s, of deviation `own`, and e_s: a draw of deviation `cancelled` minus the mean of all
/// parties' draws.
///
/// Given the sum of their draws, the honest parties' vectors have covariance `own^2 I + cancelled^2 (I - 11'/h)`. The
/// cost is `delta^2 / 2` times the first entry of its inverse.
pub fn correlated_rho(delta: f64, honest: u32, own: f64, cancelled: f64) -> f64 {
    let alone = 1.0 / f64::from(honest);
    let (own, cancelled) = (own * own, cancelled * cancelled);
    delta * delta / 2.0 * (alone / own + (1.0 - alone) / (own + cancelled))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first entry of a matrix's inverse, by Gauss-Jordan elimination on the first unit vector.
    fn first_of_inverse(mut matrix: Vec<Vec<f64>>) -> f64 {
        let n = matrix.len();
        let mut right = vec![0.0; n];
        right[0] = 1.0;
        for pivot in 0..n {
            let divisor = matrix[pivot][pivot];
            for row in (0..n).filter(|&row| row != pivot) {
                let factor = matrix[row][pivot] / divisor;
                let above = matrix[pivot].clone();
                for (entry, above) in matrix[row].iter_mut().zip(above) {
                    *entry -= factor * above;
                }
                right[row] -= factor * right[pivot];
            }
        }
        right[0] / matrix[0][0]
    }

    #[test]
    fn correlated_rho_matches_the_inverse_covariance() {
        for (honest, own, cancelled) in [(1u32, 0.7, 2.0), (2, 1.0, 0.5), (7, 0.3, 3.0)] {
            let n = honest as usize;
            let entry = |row: usize, column: usize| {
                let same = f64::from(u8::from(row == column));
                own * own * same + cancelled * cancelled * (same - 1.0 / n as f64)
            };
            let covariance = (0..n)
                .map(|r| (0..n).map(|c| entry(r, c)).collect())
                .collect();
            let expected = 1.3f64.powi(2) / 2.0 * first_of_inverse(covariance);
            let found = correlated_rho(1.3, honest, own, cancelled);
            assert!(
                (found / expected - 1.0).abs() < 1e-9,
                "{honest}: {found} {expected}"
            );
        }
    }

    /// With CAPE's intended deviations and all S parties honest, the cost is 2S/(S+1) times the claim.
    #[test]
    fn cape_deviations_cost_nearly_twice_the_claim() {
        for parties in [2u32, 10, 50] {
            let all = f64::from(parties);
            let local: f64 = 3.0;
            let claim = 1.0 / (2.0 * local * local);
            let cost = correlated_rho(1.0, parties, local / all.sqrt(), local);
            assert!((cost / claim - 2.0 * all / (all + 1.0)).abs() < 1e-9);
        }
    }
}
