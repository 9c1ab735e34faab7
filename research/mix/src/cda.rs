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
//! - The noise is discrete. Parties can add it together under masks, or correlate it like the paper's (CAPE).

use fhaim_dp::{DiscreteGaussian, rounded_up};
use fhaim_federated::{MODULUS, PairKeys, lift};
use fhaim_rdp::Mixing;
use rand::CryptoRng;

use crate::{Correlated, Error, Mixes, Points};

/// How parties add noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CdaNoise {
    /// Each party adds all the noise that protects its own vectors. The server sees these vectors.
    Conventional,
    /// The parties add noise together. The server sees only the sum of their masked vectors. Fewer than a third of the
    /// parties may tell the server their draws. (This is the aim of CAPE, with masks instead of correlated Gaussians.)
    Shared,
    /// The parties add noise that mostly cancels in their sum, as in the paper's Algorithm 1 ([`Correlated`]). The server
    /// sees each party's vector with its noise. The cost is that of all vectors together. As with shared noise, fewer
    /// than a third of the parties may tell the server their draws.
    Correlated,
}

impl CdaNoise {
    /// Number of parties whose noise is relied on.
    fn honest(self, parties: usize) -> usize {
        match self {
            Self::Conventional => 1,
            Self::Shared | Self::Correlated => parties - (parties.div_ceil(3) - 1),
        }
    }

    /// Plans the noise of a scale on a party's vector.
    fn of_scale(self, parties: usize, scale: u64) -> Result<Noise, Error> {
        let honest = whole(self.honest(parties))?;
        Ok(match self {
            Self::Conventional => Noise::Own { scale, honest: 1 },
            Self::Shared => Noise::Own { scale, honest },
            Self::Correlated => {
                let noise = Correlated::new(whole(parties)?, scale, MIN_SCALE);
                Noise::Correlated { noise, honest }
            }
        })
    }
}

/// Planned noise on the parties' vectors, in the integer units of features.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Noise {
    /// Each party adds noise of this scale. The noise of `honest` of them protects a record.
    Own { scale: u64, honest: u32 },
    /// Each party adds correlated noise, and `honest` of them do not collude.
    Correlated { noise: Correlated, honest: u32 },
}

impl Noise {
    /// Returns the deviation of noise on a single vector that costs a record as much.
    fn protection(self) -> f64 {
        match self {
            Self::Own { scale, honest } => scale as f64 * f64::from(honest).sqrt(),
            Self::Correlated { noise, honest } => noise.protection(honest),
        }
    }

    /// Returns the deviation of the noise that each party adds to the sum of all vectors.
    fn remaining(self) -> f64 {
        match self {
            Self::Own { scale, .. } => scale as f64,
            Self::Correlated { noise, .. } => noise.of_own(),
        }
    }

    /// Returns the distribution of the noise that each party adds to the sum of all vectors.
    fn sampler(self) -> Result<DiscreteGaussian, Error> {
        match self {
            Self::Own { scale, .. } => Ok(DiscreteGaussian::new(scale)?),
            Self::Correlated { noise, .. } => noise.own(),
        }
    }
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
    /// `None` for no noise.
    planned: Option<Noise>,
    cost: CdaCost,
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
    /// Standard deviation of the noise on a feature of the mean over all parties, for records of norm 1.
    pub released: f64,
    /// For correlated noise: what the paper's two analyses say about the same noise.
    pub claims: Option<CapeClaims>,
}

/// Epsilons that the paper claims for correlated noise. Neither is the cost of what the server sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapeClaims {
    /// Theorem 1, which charges only g_s.
    pub theorem: f64,
    /// The appendix, which charges `e_s + g_s` on a single party's vector.
    pub appendix: f64,
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
            planned: None,
            cost: CdaCost {
                epsilon: f64::INFINITY,
                order: 0,
                deviation: 0.0,
                rate,
                samples: in_class,
                released: 0.0,
                claims: None,
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
        // A record of norm 1 moves a sum by 2; a record here moves it by `moved`.
        let of_mean = |deviation: f64| 2.0 * deviation / (self.mix as f64 * moved);
        let of_scale = |scale: u64| self.noise.of_scale(parties.len(), scale);
        let largest = of_scale(DiscreteGaussian::MAX_SCALE - 2)?.protection();
        let out_of_reach = || {
            let most = Mixing {
                deviation: of_mean(largest),
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
        let needed = deviation.map_err(|_| out_of_reach())? / of_mean(1.0);
        if needed >= largest {
            return Err(out_of_reach());
        }
        // Protection is proportional to the scale, apart from rounding. Start slightly below the needed scale: the
        // least sufficient scale is at most two above. The cast turns a negative number into 0.
        let share = needed * (DiscreteGaussian::MAX_SCALE - 2) as f64 / largest;
        let mut scale = ((share - 1.0).floor() as u64).max(MIN_SCALE);
        let (noise, spent, order) = loop {
            let noise = of_scale(scale)?;
            mixing.deviation = of_mean(noise.protection());
            let (spent, order) = mixing.epsilon(delta)?;
            if spent <= epsilon {
                break (noise, spent, order);
            }
            scale += 1;
        };
        self.cost.claims = match noise {
            Noise::Own { .. } => None,
            Noise::Correlated { noise, .. } => {
                let of = |deviation| {
                    let deviation = of_mean(deviation);
                    Mixing {
                        deviation,
                        ..mixing
                    }
                    .epsilon(delta)
                };
                Some(CapeClaims {
                    theorem: of(noise.of_own())?.0,
                    appendix: of(noise.of_vector())?.0,
                })
            }
        };
        self.cost = CdaCost {
            epsilon: spent,
            order,
            deviation: mixing.deviation,
            released: of_mean(noise.remaining()) / (parties.len() as f64).sqrt(),
            ..self.cost
        };
        self.planned = Some(noise);
        Ok(())
    }

    /// Rejects plans whose sums could exceed the range of masked integers.
    fn check_room(&self, parties: &[Points]) -> Result<(), Error> {
        let largest = parties.iter().map(Points::largest).max().unwrap_or(0);
        let one = largest.saturating_mul(self.mix as u64);
        let noise = self.planned.map_or(0.0, Noise::remaining);
        let one = one.saturating_add((noise as u64).saturating_mul(ROOM));
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
        let noise = self.planned.map(Noise::sampler).transpose()?;
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
            match self.planned {
                Some(Noise::Correlated { noise, .. }) => {
                    let messages = noise.messages(&vectors, rng)?;
                    mixes.sums.extend(noise.sum(&messages, width));
                }
                _ if masked => {
                    let masked: Vec<Vec<u64>> = (keys.iter().zip(&vectors))
                        .map(|(keys, vector)| keys.mask(vector, &everyone, number as u64))
                        .collect();
                    mixes.sums.extend(lift(&masked));
                }
                _ => mixes.sums.extend(sum(&vectors, width)),
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

/// Returns the sum of the vectors.
pub(crate) fn sum(vectors: &[Vec<i64>], width: usize) -> Vec<i64> {
    let mut sums = vec![0; width];
    for vector in vectors {
        for (sum, value) in sums.iter_mut().zip(vector) {
            *sum += value;
        }
    }
    sums
}
