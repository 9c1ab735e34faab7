//! Training on one party's records: in the clear, or with per-example clipping and noise (DPGAN, Xie et al. 2018).

use rand::Rng;

use crate::Error;
use crate::examples::Examples;
use crate::gan::{Gan, Training};
use crate::matrix::Matrix;
use crate::optimiser::Descent;
use crate::private::{Privacy, Sampling};

/// Trains a pair of networks on records. With `privacy`, each step draws every record independently with the
/// probability of [`record_sampling`], clips each record's gradient of the discriminator, and adds noise. The generator
/// learns only from the discriminator. The number of records is public. `tell` is called after each step.
///
/// # Errors
/// [`Error::Setting`] and [`Error::Shape`] for invalid settings; [`Error::Diverged`].
pub fn train<R: Rng + ?Sized>(
    examples: &Examples,
    training: &Training,
    privacy: Option<&Privacy>,
    rng: &mut R,
    tell: &dyn Fn(u32),
) -> Result<Gan, Error> {
    let mut gan = Gan::random(examples.shape(), training, rng)?;
    let mut pair = Pair::new(&gan, training);
    for step in 1..=training.steps {
        let gradient = match privacy {
            Some(privacy) => {
                let drawn = independently(examples, record_sampling(examples, training).rate, rng);
                gan.private_gradient(&drawn, training.batch, privacy, rng)?
            }
            None => gan.critic_gradient(&batch(examples, training, rng), rng)?,
        };
        pair.discriminator
            .step(gan.discriminator.parameters_mut(), &gradient);
        let gradient = gan.generator_gradient(training.batch, rng, |_, _| Ok(None))?;
        pair.generator
            .step(gan.generator.network.parameters_mut(), &gradient);
        gan.check_progress(step)?;
        tell(step);
    }
    Ok(gan)
}

/// Returns how often, and with which probability, a record is part of a noisy sum in [`train`].
pub fn record_sampling(examples: &Examples, training: &Training) -> Sampling {
    Sampling {
        rate: (training.batch as f64 / examples.len() as f64).min(1.0),
        steps: training.steps,
    }
}

/// The optimisers of both networks.
pub(crate) struct Pair {
    pub(crate) discriminator: Descent,
    pub(crate) generator: Descent,
}

impl Pair {
    pub(crate) fn new(gan: &Gan, training: &Training) -> Self {
        let of = |optimiser, parameters: &[f32]| Descent::new(optimiser, parameters.len());
        Self {
            discriminator: of(training.discriminator, gan.discriminator.parameters()),
            generator: of(training.generator, gan.generator.network.parameters()),
        }
    }
}

/// Draws a batch of records uniformly, with replacement.
pub(crate) fn batch<R: Rng + ?Sized>(
    examples: &Examples,
    training: &Training,
    rng: &mut R,
) -> Matrix {
    let numbers: Vec<usize> = (0..training.batch)
        .map(|_| rng.random_range(0..examples.len()))
        .collect();
    examples.values().select(&numbers)
}

/// Draws each record independently. The probability is exact up to 2^-64.
fn independently<R: Rng + ?Sized>(examples: &Examples, rate: f64, rng: &mut R) -> Matrix {
    let numbers: Vec<usize> = (0..examples.len())
        .filter(|_| rng.random_bool(rate))
        .collect();
    examples.values().select(&numbers)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::matrix::Matrix;
    use crate::{Hidden, Shape};
    use rand::{SeedableRng, rngs::StdRng};

    /// Images of four pixels, of two kinds that are equally frequent.
    pub(crate) fn examples(records: usize) -> Examples {
        let kinds = [[0.9f32, 0.9, -0.9, -0.9], [-0.9, 0.9, -0.9, 0.9]];
        let values = (0..records).flat_map(|n| kinds[n % 2]).collect();
        let shape = Shape::Image {
            rows: 2,
            columns: 2,
        };
        Examples::checked(shape, Matrix::new(records, 4, values).unwrap()).unwrap()
    }

    pub(crate) fn training() -> Training {
        Training {
            noise: 4,
            hidden: Hidden::Dense(vec![24]),
            steps: 1500,
            batch: 16,
            discriminator: crate::Optimiser::adam(2e-3),
            generator: crate::Optimiser::adam(2e-3),
        }
    }

    /// Share of generated records that are close to each kind.
    pub(crate) fn kinds(gan: &Gan) -> [f64; 2] {
        let drawn = gan
            .generator()
            .sample(400, &mut StdRng::seed_from_u64(8))
            .unwrap();
        let real = examples(2);
        let near = |kind: usize| {
            let off = |row: usize| {
                let both = drawn.values().row(row).iter().zip(real.values().row(kind));
                both.map(|(x, y)| (x - y).powi(2)).sum::<f32>()
            };
            (0..400).filter(|&row| off(row) < 0.6).count() as f64 / 400.0
        };
        [near(0), near(1)]
    }

    #[test]
    fn generator_learns_both_kinds_and_training_is_deterministic() {
        let gan = train(
            &examples(64),
            &training(),
            None,
            &mut StdRng::seed_from_u64(1),
            &|_| (),
        )
        .unwrap();
        let found = kinds(&gan);
        assert!(found.iter().all(|&share| share > 0.15), "{found:?}");
        assert!(found[0] + found[1] > 0.7, "{found:?}");
        let again = train(
            &examples(64),
            &training(),
            None,
            &mut StdRng::seed_from_u64(1),
            &|_| (),
        )
        .unwrap();
        assert!(gan == again);
    }

    /// A little noise does not prevent learning and much noise does. This shows that noise is added.
    #[test]
    fn much_noise_prevents_learning_and_little_does_not() {
        let trained = |multiplier| {
            let privacy = Privacy {
                clip: 0.5,
                multiplier,
            };
            let training = Training {
                steps: 800,
                ..training()
            };
            train(
                &examples(64),
                &training,
                Some(&privacy),
                &mut StdRng::seed_from_u64(1),
                &|_| (),
            )
            .unwrap()
        };
        let (little, much) = (kinds(&trained(0.01)), kinds(&trained(50.0)));
        assert!(little[0] + little[1] > 0.6, "{little:?}");
        assert!(much[0] + much[1] < 0.2, "{much:?}");
    }

    #[test]
    fn invalid_training_settings_are_rejected() {
        let rng = &mut StdRng::seed_from_u64(1);
        for wrong in [
            Training {
                steps: 0,
                ..training()
            },
            Training {
                batch: 0,
                ..training()
            },
            Training {
                noise: 0,
                ..training()
            },
            Training {
                hidden: Hidden::Dense(vec![0]),
                ..training()
            },
        ] {
            assert!(matches!(
                train(&examples(4), &wrong, None, rng, &|_| ()),
                Err(Error::Setting { .. } | Error::Shape(..))
            ));
        }
        for rate in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let wrong = Training {
                generator: crate::Optimiser::adam(rate),
                ..training()
            };
            let refused = train(&examples(4), &wrong, None, rng, &|_| ()).unwrap_err();
            assert!(refused.to_string().starts_with("rate: "), "{refused}");
        }
        // A batch that does not fit into memory is refused before it is allocated.
        let wrong = Training {
            batch: usize::MAX,
            ..training()
        };
        let refused = train(&examples(4), &wrong, None, rng, &|_| ()).unwrap_err();
        assert!(refused.to_string().starts_with("batch: "), "{refused}");
        let gan = Gan::random(examples(1).shape(), &training(), rng).unwrap();
        let refused = gan.generator().sample(usize::MAX, rng).unwrap_err();
        assert!(refused.to_string().starts_with("records: "), "{refused}");
        let sampling = record_sampling(&examples(8), &training());
        assert_eq!((sampling.rate, sampling.steps), (1.0, 1500));
    }

    /// All training methods report weights that are not finite.
    #[test]
    fn diverging_training_is_reported() {
        let rng = &mut StdRng::seed_from_u64(1);
        let training = Training {
            discriminator: crate::Optimiser::Sgd { rate: 1e30 },
            generator: crate::Optimiser::Sgd { rate: 1e30 },
            ..training()
        };
        let privacy = Privacy {
            clip: 1.0,
            multiplier: 1.0,
        };
        let parts = [examples(8), examples(8)];
        let federation = crate::Federation {
            rate: 1.0,
            ..crate::Federation::default()
        };
        let results = [
            train(&parts[0], &training, None, rng, &|_| ()).err(),
            train(&parts[0], &training, Some(&privacy), rng, &|_| ()).err(),
            crate::train_parts(&parts, &training, &crate::PrivGan::default(), rng, &|_| ()).err(),
            crate::federate(
                &parts,
                &training,
                &federation,
                (&mut StdRng::seed_from_u64(2), rng),
                &|_| (),
            )
            .err(),
        ];
        for refused in results {
            assert!(
                matches!(refused, Some(Error::Diverged { steps }) if steps < 1500),
                "{refused:?}"
            );
        }
    }
}
