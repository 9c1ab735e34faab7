//! Trains one pair of networks on the records of many parties: DP-FedAvg GAN (Augenstein et al. 2020) and DP-FedProx
//! GAN.
//!
//! In a round, every party takes part independently with a fixed probability:
//!
//! - Each drawn party takes some steps of the discriminator on its own records, from the round's initial state.
//! - The discriminator moves by the sum of the parties' changes over the expected number of parties.
//! - The generator then takes as many steps at the server, which sees no record.
//!
//! With `mu`, a party is pulled back to the state at the start of the round (FedProx, Li et al. 2020). With privacy,
//! each change is clipped and the sum has noise. This protects whether a *party* took part at all. Here the server adds
//! the noise, so it is trusted with each change. Changes are integers, so real parties could use the masks and noise
//! shares of `fhaim-federated` instead.

use rand::{Rng, RngCore};

use crate::Error;
use crate::examples::Examples;
use crate::gan::{Gan, Training};
use crate::optimiser::Descent;
use crate::private::{Privacy, Sampling, add_clipped};
use crate::train::{Pair, batch};

/// The smallest probability that a party takes part. Changes are divided by it.
pub const MIN_PARTICIPATION: f64 = 1e-6;

/// The largest mu, and the largest lambda of privGAN.
pub const MAX_WEIGHT: f32 = 1e9;

/// Settings of federated training in addition to [`Training`], whose steps are rounds here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Federation {
    /// q: probability that a party takes part in a round.
    pub rate: f64,
    /// n: number of steps of a party in a round, and of the generator after it.
    pub local_steps: usize,
    /// mu: strength of the pull towards the start of the round; 0 is FedAvg.
    pub mu: f32,
    /// Clipping and noise for a party's change.
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
    /// Returns how often, and with which probability, a party is part of a noisy sum.
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
            return Err(Error::setting("local steps", "it must be at least 1"));
        }
        Ok(())
    }
}

/// Trains over parties whose records have the same shape. `participation` draws the parties of each round. It is a
/// separate generator, so that a single party in every round makes the draws of [`crate::train()`]. With privacy it
/// must be as secret as the noise. `tell` is called after each round.
///
/// # Errors
/// [`Error::Shape`] for no parties, or records of different shapes; [`Error::Setting`] for invalid settings;
/// [`Error::Diverged`].
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
            let problem = "at least one party is needed, and all need records of the same shape";
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
        // With privacy this check reveals nothing but the noisy sum: a party's change that is not finite adds nothing.
        gan.check_progress(round)?;
        tell(round);
    }
    Ok(gan)
}

/// Returns the change of the discriminator by a party's steps.
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

/// A sum of changes: exact, or clipped and noised.
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

    /// Adds noise even if no party took part, because that must not be visible either.
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

    /// With K = 1, q = 1 and no noise, mu or clip, the result equals plain training except for rounding.
    #[test]
    fn single_party_in_every_round_trains_a_plain_gan() {
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
        // A party in every second round gives another result.
        let half = Federation {
            rate: 0.5,
            ..federation
        };
        let found = run(&parties, &plain(), &half, 3).unwrap();
        assert!(off(&alone, &found) > 1e-3);
    }

    /// mu = 0 is FedAvg. With one step there is no change to be pulled back; with more steps there is.
    #[test]
    fn mu_reduces_the_change_of_a_party() {
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

    /// The first step is the same for any mu. The second has the same gradient of the loss, and the pull is minus rate
    /// times mu times the first step.
    #[test]
    fn second_step_is_pulled_back_by_rate_times_mu() {
        let (rate, mu) = (0.05, 3.0);
        let start =
            Gan::random(examples(1).shape(), &plain(), &mut StdRng::seed_from_u64(3)).unwrap();
        let moved = |mu, local_steps| {
            let federation = Federation {
                mu,
                local_steps,
                ..Federation::default()
            };
            let rng = &mut StdRng::seed_from_u64(4);
            change(&start, &examples(32), &plain(), &federation, rng).unwrap()
        };
        let (first, free, held) = (moved(mu, 1), moved(0.0, 2), moved(mu, 2));
        for ((first, free), held) in first.iter().zip(&free).zip(&held) {
            let pull = held - free;
            assert!((pull + rate * mu * first).abs() < 1e-6, "{pull} {first}");
        }
        assert!(first.iter().any(|step| step.abs() > 1e-3));
    }

    /// At the rate and the mu of the paper, FedProx changes a party's step by less than one in a thousand of its length.
    #[test]
    fn proximal_term_is_negligible_at_the_published_rate() {
        let training = Training {
            discriminator: Optimiser::Sgd { rate: 2e-4 },
            ..plain()
        };
        let start = Gan::random(
            examples(1).shape(),
            &training,
            &mut StdRng::seed_from_u64(3),
        )
        .unwrap();
        let moved = |mu| {
            let federation = Federation {
                mu,
                local_steps: 10,
                ..Federation::default()
            };
            let rng = &mut StdRng::seed_from_u64(4);
            change(&start, &examples(32), &training, &federation, rng).unwrap()
        };
        let (free, held) = (moved(0.0), moved(0.5));
        let apart: Vec<f32> = free.iter().zip(&held).map(|(f, h)| f - h).collect();
        let length = |vector: &[f32]| crate::matrix::dot(vector, vector).sqrt();
        let share = length(&apart) / length(&free);
        assert!(share > 0.0 && share < 1e-3, "{share}");
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
    fn private_sums_are_clipped_and_noised_and_deterministic() {
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
        // The first is scaled to norm 0.1, the second is unchanged.
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
