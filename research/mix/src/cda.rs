//! DP-CDA (Saha, Tonoy and Imtiaz 2025): a mix is the mean of l records of one class, drawn at random for each, with
//! noise; among S parties each mixes its own records, and a server averages the S vectors.
//!
//! What is different from the paper, and why, is in docs/FEDERATED.md. In short: the number of records of each
//! class at each party is public, and neighbours differ in one record that is replaced by another of its class and
//! party; a record is in its own class's mixes alone, T / Y of them, each with chance l / n; classes are published
//! as they are; noise is discrete, and among parties who add it together it is masked instead of correlated.

use fhaim_dp::{DiscreteGaussian, rounded_up};
use fhaim_federated::{MODULUS, PairKeys, lift};
use fhaim_rdp::Mixing;
use rand::CryptoRng;

use crate::{Error, Mixes, Points};

/// Who adds noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CdaNoise {
    /// Each party all that protects its own vectors, which the server sees.
    Conventional,
    /// Parties together, of whom fewer than a third tell the server what they drew; the server sees their masked
    /// vectors' sum alone (CAPE's aim, with masks instead of correlated Gaussians).
    Shared,
}

/// The least scale of a party's discrete Gaussian. Sums of such samples differ from one sample of their variance by
/// a factor within exp(+-5 S exp(-2 pi^2 8)), that is by nothing that a double tells from 1 (Kairouz, Liu and
/// Steinke 2021, Theorem 9).
const MIN_SCALE: u64 = 4;

/// By what the least epsilon that is told is above the one that is worked out: the noise that it takes is rounded up.
const MARGIN: f64 = 1.001;

/// Deviations of noise that sums have room for.
const ROOM: u64 = 64;

/// The most values of all mixes together: 2 GiB of them, and more than 60,000 images of MNIST have by a factor of five.
pub const MAX_VALUES: usize = 1 << 28;

/// How mixes are made: public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cda {
    mix: usize,
    samples: usize,
    noise: CdaNoise,
    /// Scale of a party's noise on a sum, in the features' integers; without one there is no noise.
    scale: Option<u64>,
    cost: CdaCost,
    mixing: Option<Mixing>,
}

/// What mixes cost the record that pays most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CdaCost {
    /// epsilon; infinite without noise.
    pub epsilon: f64,
    /// The order of Renyi divergence that shows it; 0 without noise.
    pub order: u32,
    /// tau: the noise's deviation on a feature of a party's mean, of records of norm 1, that protects it.
    pub deviation: f64,
    /// The chance of a record to be in a mix of its class: the largest of any class and party.
    pub rate: f64,
    /// Mixes that a record may be in.
    pub samples: usize,
}

impl Cda {
    /// Mixes of `mix` records of each party, `samples` in all, of the classes in turn; at the least noise that
    /// makes them (epsilon, delta)-private, or without noise.
    ///
    /// # Errors
    /// [`Error::SmallClass`]; [`Error::OutOfReach`]; [`Error::Setting`] for no party, mix or sample; [`Error::Privacy`] for budgets that
    /// no noise keeps; [`Error::Shape`] for parties whose records are unlike.
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
                problem: format!("{samples} of {mix} records: both must be at least 1"),
            });
        }
        let width = parties.first().map_or(0, Points::width);
        if samples.saturating_mul(width) > MAX_VALUES {
            return Err(Error::Setting {
                what: "mixes",
                problem: format!(
                    "{samples} of {width} features: there may be {} of so many",
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
        // The bound's terms from the third on do not fall with the noise: small budgets may be out of its reach.
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
        // A record of norm 1 moves a sum by 2, and these by `moved`.
        let needed = self.mix as f64 * mixing.deviation * moved / 2.0;
        // A little less than needed, whichever way it was rounded: the least that is enough is at most two above.
        let share = (needed / (honest as f64).sqrt() - 1.0).floor();
        if share >= (DiscreteGaussian::MAX_SCALE - 2) as f64 {
            return Err(out_of_reach());
        }
        // A negative one is none.
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

    /// Parties whose noise is relied upon.
    fn honest(&self, parties: usize) -> usize {
        match self.noise {
            CdaNoise::Conventional => 1,
            CdaNoise::Shared => parties - (parties.div_ceil(3) - 1),
        }
    }

    /// Refuses sums that could pass what masked integers hold.
    fn check_room(&self, parties: &[Points]) -> Result<(), Error> {
        let largest = parties.iter().map(Points::largest).max().unwrap_or(0);
        let one = largest.saturating_mul(self.mix as u64);
        let one = one.saturating_add(self.scale.unwrap_or(0).saturating_mul(ROOM));
        if one.saturating_mul(parties.len() as u64) < MODULUS / 2 {
            return Ok(());
        }
        Err(Error::Setting {
            what: "mixes",
            problem: "the parties' sums could pass 2^47".to_owned(),
        })
    }

    /// What it costs.
    pub fn cost(&self) -> CdaCost {
        self.cost
    }

    /// Makes the mixes. What is drawn must stay unknown: which records are mixed, too.
    ///
    /// # Errors
    /// As [`Cda::plan`], for parties that are not those it was made for.
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

    /// A party's sum of records drawn without replacement, with its noise.
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

/// The classes that anyone has records of, of parties whose records are alike.
fn classes(parties: &[Points]) -> Result<Vec<usize>, Error> {
    let first = parties.first().ok_or_else(|| Error::Setting {
        what: "parties",
        problem: "there must be one".to_owned(),
    })?;
    let alike = |p: &Points| (p.width(), p.classes()) == (first.width(), first.classes());
    if !parties.iter().all(alike) {
        return Err(Error::Shape("parties' records are unlike".to_owned()));
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

/// The number of records of the smallest class at any party.
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

/// A number as the accountant has it.
fn whole(number: usize) -> Result<u32, Error> {
    u32::try_from(number).map_err(|_| Error::Setting {
        what: "mixes",
        problem: format!(
            "{number} are more than can be accounted for: {} at most",
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

/// What CAPE's own correlated Gaussians cost, in zCDP: `h` parties do not collude, every other tells the server what
/// it drew, and one record moves a party's vector by `delta` (L2). Party s adds g_s of deviation `own` and e_s, which
/// is a draw of deviation `cancelled` less the mean of all parties' draws.
///
/// The honest parties' vectors have covariance `own^2 I + cancelled^2 (I - 11'/h)`, once the sum of their draws is
/// known: `delta^2 / 2` times the first entry of its inverse.
pub fn correlated_rho(delta: f64, honest: u32, own: f64, cancelled: f64) -> f64 {
    let alone = 1.0 / f64::from(honest);
    let (own, cancelled) = (own * own, cancelled * cancelled);
    delta * delta / 2.0 * (alone / own + (1.0 - alone) / (own + cancelled))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first entry of a matrix's inverse, by elimination on the first unit vector.
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
    fn correlated_noise_costs_what_its_covariance_says() {
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

    /// CAPE with its intended deviations, all S parties honest, costs 2S/(S+1) times the claim.
    #[test]
    fn intended_deviations_cost_nearly_twice_the_claim() {
        for parties in [2u32, 10, 50] {
            let all = f64::from(parties);
            let local: f64 = 3.0;
            let claim = 1.0 / (2.0 * local * local);
            let cost = correlated_rho(1.0, parties, local / all.sqrt(), local);
            assert!((cost / claim - 2.0 * all / (all + 1.0)).abs() < 1e-9);
        }
    }
}
