//! One pair of networks from many parties' records: DP-FedAvg GAN (Augenstein et al. 2020) and DP-FedProx GAN.
//!
//! In a round every party takes part with some chance, drawn independently. Each of those takes some steps of the
//! discriminator from where the round began, on its own records; the discriminator moves by the sum of their changes
//! over the number that is expected; then the generator takes as many steps at the server, which sees no record. With
//! `mu` a party is held back to where the round began (FedProx, Li et al. 2020). With privacy each change is clipped and
//! the sum has noise: what is kept is whether a *party* took part at all. The server here adds the noise, and so is
//! trusted with each change; among parties `fhaim-federated`'s masks and shares of noise would do, since changes are
//! integers.

use rand::{Rng, RngCore};

use crate::Error;
use crate::examples::Examples;
use crate::gan::{Gan, Training};
use crate::optimiser::Descent;
use crate::private::{Privacy, Sampling, add_clipped};
use crate::train::{Pair, batch};

/// The least chance of a party to take part: changes are divided by it.
pub const MIN_PARTICIPATION: f64 = 1e-6;

/// The largest mu, and lambda of privGAN.
pub const MAX_WEIGHT: f32 = 1e9;

/// What is beside [`Training`], whose steps are rounds here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Federation {
    /// q: the chance that a party takes part in a round.
    pub rate: f64,
    /// n: steps of a party in a round, and of the generator after it.
    pub local_steps: usize,
    /// mu: by how much a party is held back; 0 is FedAvg.
    pub mu: f32,
    /// Clipping of a party's change, and noise.
    pub privacy: Option<Privacy>,
}

impl Default for Federation {
    fn default() -> Self {
        Self {
            rate: 0.1,
            local_steps: 1,
            mu: 0.0,
            privacy: None,
        }
    }
}

impl Federation {
    /// How often and how likely a party is in a noisy sum.
    pub fn sampling(&self, training: &Training) -> Sampling {
        Sampling {
            rate: self.rate,
            steps: training.steps,
        }
    }

    fn check(&self) -> Result<(), Error> {
        if !(MIN_PARTICIPATION..=1.0).contains(&self.rate) {
            return Err(Error::setting(
                "participation",
                "it must be a number from 1e-6 to 1",
            ));
        }
        if !(0.0..=MAX_WEIGHT).contains(&self.mu) {
            return Err(Error::setting("mu", "it must be a number from 0 to 1e9"));
        }
        if self.local_steps == 0 {
            return Err(Error::setting("local steps", "there must be one or more"));
        }
        Ok(())
    }
}

/// Trains over parties, all of whose records have one shape. Who takes part is drawn from a generator of its own, so
/// that a party in every round draws what one alone would; with privacy it must be as secret as the noise. `tell` hears of
/// each round when it is done.
///
/// # Errors
/// No party, parties of several shapes, a setting that cannot be; [`Error::Diverged`].
pub fn federate<P: RngCore + ?Sized, R: RngCore + ?Sized>(
    parties: &[Examples],
    training: &Training,
    federation: &Federation,
    (participation, rng): (&mut P, &mut R),
    tell: &dyn Fn(u32),
) -> Result<Gan, Error> {
    federation.check()?;
    let shape = match parties {
        [first, others @ ..] if others.iter().all(|o| o.shape() == first.shape()) => first.shape(),
        _ => {
            let problem = "there must be a party, and all must have records of one shape";
            return Err(Error::Shape(problem.to_owned()));
        }
    };
    let mut gan = Gan::random(shape, training, rng)?;
    let mut pair = Pair::new(&gan, training);
    for round in 1..=training.steps {
        let drawn: Vec<&Examples> = parties
            .iter()
            .filter(|_| participation.random_bool(federation.rate))
            .collect();
        let parameters = gan.discriminator.parameters().len();
        let mut sum = Sum::new(parameters, federation.privacy);
        for examples in drawn {
            sum.add(&change(&gan, examples, training, federation, rng)?);
        }
        let moved = sum.release(rng)?;
        let share = (1.0 / (federation.rate * parties.len() as f64)) as f32;
        let parameters = gan.discriminator.parameters_mut().iter_mut();
        parameters.zip(moved).for_each(|(p, m)| *p += share * m);
        for _ in 0..federation.local_steps {
            let gradient = gan.generator_gradient(training.batch, rng, |_, _| Ok(None))?;
            pair.generator
                .step(gan.generator.network.parameters_mut(), &gradient);
        }
        // With privacy this tells of nothing but what was noised: a party's change that is no number adds nothing.
        gan.check_progress(round)?;
        tell(round);
    }
    Ok(gan)
}

/// By how much a party's steps move the discriminator.
fn change<R: Rng + ?Sized>(
    start: &Gan,
    examples: &Examples,
    training: &Training,
    federation: &Federation,
    rng: &mut R,
) -> Result<Vec<f32>, Error> {
    let mut gan = start.clone();
    let from = start.discriminator.parameters();
    let mut descent = Descent::new(training.discriminator, from.len());
    for _ in 0..federation.local_steps {
        let mut gradient = gan.critic_gradient(&batch(examples, training, rng), rng)?;
        if federation.mu > 0.0 {
            let away = gan.discriminator.parameters().iter().zip(from);
            gradient
                .iter_mut()
                .zip(away)
                .for_each(|(g, (at, from))| *g += federation.mu * (at - from));
        }
        descent.step(gan.discriminator.parameters_mut(), &gradient);
    }
    let moved = gan.discriminator.parameters().iter().zip(from);
    Ok(moved.map(|(at, from)| at - from).collect())
}

/// The sum of changes: as they are, or clipped and noised.
enum Sum {
    Plain(Vec<f32>),
    Private(Vec<i64>, Privacy),
}

impl Sum {
    fn new(parameters: usize, privacy: Option<Privacy>) -> Self {
        match privacy {
            Some(privacy) => Self::Private(vec![0; parameters], privacy),
            None => Self::Plain(vec![0.0; parameters]),
        }
    }

    fn add(&mut self, change: &[f32]) {
        match self {
            Self::Plain(sum) => sum.iter_mut().zip(change).for_each(|(s, c)| *s += c),
            Self::Private(sum, privacy) => add_clipped(change, privacy.clip, sum),
        }
    }

    /// Noise comes where nobody took part as well: that nobody did is not to be seen.
    fn release<R: RngCore + ?Sized>(self, rng: &mut R) -> Result<Vec<f32>, Error> {
        match self {
            Self::Plain(sum) => Ok(sum),
            Self::Private(sum, privacy) => privacy.release(sum, rng),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Optimiser;
    use crate::train::tests::{examples, kinds, training};
    use crate::train::train;
    use rand::{SeedableRng, rngs::StdRng};

    fn run(
        parties: &[Examples],
        training: &Training,
        federation: &Federation,
        seed: u64,
    ) -> Result<Gan, Error> {
        let (mut participation, mut rng) = (
            StdRng::seed_from_u64(seed + 100),
            StdRng::seed_from_u64(seed),
        );
        federate(
            parties,
            training,
            federation,
            (&mut participation, &mut rng),
            &|_| (),
        )
    }

    fn plain() -> Training {
        Training {
            steps: 40,
            discriminator: Optimiser::Sgd { rate: 0.05 },
            ..training()
        }
    }

    fn off(one: &Gan, two: &Gan) -> f32 {
        let both = |one: &[f32], two: &[f32]| {
            one.iter()
                .zip(two)
                .map(|(x, y)| (x - y).abs())
                .fold(0.0f32, f32::max)
        };
        both(
            one.discriminator.parameters(),
            two.discriminator.parameters(),
        )
        .max(both(
            one.generator.network.parameters(),
            two.generator.network.parameters(),
        ))
    }

    /// K = 1, q = 1, no noise, no mu, no clip: what one would train alone, but for rounding.
    #[test]
    fn a_party_alone_in_every_round_trains_a_plain_gan() {
        let alone = train(
            &examples(32),
            &plain(),
            None,
            &mut StdRng::seed_from_u64(3),
            &|_| (),
        )
        .unwrap();
        let federation = Federation {
            rate: 1.0,
            ..Federation::default()
        };
        let parties = [examples(32)];
        let found = run(&parties, &plain(), &federation, 3).unwrap();
        assert!(off(&alone, &found) < 1e-4, "{}", off(&alone, &found));
        // One in every second round does not.
        let half = Federation {
            rate: 0.5,
            ..federation
        };
        let found = run(&parties, &plain(), &half, 3).unwrap();
        assert!(off(&alone, &found) > 1e-3);
    }

    /// mu = 0 is FedAvg whatever the steps; with one step there is nothing to be held back from; with more there is.
    #[test]
    fn mu_holds_parties_back() {
        let parties = [examples(32), examples(16)];
        let moved_by = |mu, local_steps| {
            let federation = Federation {
                rate: 1.0,
                mu,
                local_steps,
                privacy: None,
            };
            let start = run(&parties, &plain(), &federation, 3).unwrap();
            change(
                &start,
                &parties[0],
                &plain(),
                &federation,
                &mut StdRng::seed_from_u64(4),
            )
            .unwrap()
        };
        assert_eq!(moved_by(0.0, 1), moved_by(5.0, 1));
        let norm = |change: &[f32]| crate::matrix::dot(change, change);
        let start =
            Gan::random(examples(1).shape(), &plain(), &mut StdRng::seed_from_u64(3)).unwrap();
        let moved = |mu| {
            let federation = Federation {
                mu,
                local_steps: 20,
                ..Federation::default()
            };
            norm(
                &change(
                    &start,
                    &parties[0],
                    &plain(),
                    &federation,
                    &mut StdRng::seed_from_u64(4),
                )
                .unwrap(),
            )
        };
        assert!(
            moved(10.0) < 0.5 * moved(0.0),
            "{} {}",
            moved(10.0),
            moved(0.0)
        );
    }

    #[test]
    fn parties_together_learn_what_each_has_half_of() {
        let all = examples(64);
        let half = |kind: usize| {
            let rows: Vec<usize> = (0..64).filter(|n| n % 2 == kind).collect();
            all.select(&rows).unwrap()
        };
        let federation = Federation {
            rate: 0.7,
            ..Federation::default()
        };
        let training = Training {
            steps: 3000,
            discriminator: Optimiser::Sgd { rate: 0.1 },
            ..training()
        };
        let parties = [half(0), half(1)];
        let gan = run(&parties, &training, &federation, 1).unwrap();
        let found = kinds(&gan);
        assert!(found.iter().all(|&share| share > 0.1), "{found:?}");
    }

    #[test]
    fn sums_are_clipped_noised_and_the_same_for_the_same_seed() {
        let privacy = Privacy {
            clip: 0.1,
            multiplier: 1e-4,
        };
        let federation = Federation {
            privacy: Some(privacy),
            ..Federation::default()
        };
        let sum = |changes: &[[f32; 2]]| {
            let mut sum = Sum::new(2, Some(privacy));
            changes.iter().for_each(|change| sum.add(change));
            sum.release(&mut StdRng::seed_from_u64(1)).unwrap()
        };
        let found = sum(&[[3.0, 4.0], [0.03, 0.04]]);
        // The first is scaled to norm 0.1, the second left.
        assert!(
            (found[0] - 0.09).abs() < 1e-3 && (found[1] - 0.12).abs() < 1e-3,
            "{found:?}"
        );
        let noise = sum(&[]);
        assert!(noise.iter().any(|&n| n != 0.0));
        let parties = [examples(8), examples(8)];
        let twice = || run(&parties, &plain(), &federation, 1).unwrap();
        assert!(twice() == twice());
        for wrong in [
            Federation {
                rate: 0.0,
                ..federation
            },
            Federation {
                rate: 1.5,
                ..federation
            },
            Federation {
                mu: f32::NAN,
                ..federation
            },
            Federation {
                local_steps: 0,
                ..federation
            },
        ] {
            assert!(matches!(
                run(&parties, &plain(), &wrong, 1),
                Err(Error::Setting { .. })
            ));
        }
        assert!(matches!(
            run(&[], &plain(), &federation, 1),
            Err(Error::Shape(..))
        ));
    }
}
