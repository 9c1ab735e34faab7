//! Membership inference attacks (Hayes et al. 2019; Hilprecht, Härterich and Bernau 2019): which records were networks
//! trained on?
//!
//! *White box*, *total variation* and *likelihood* use the largest score that any discriminator gives a record. *Monte
//! Carlo* uses generated records. It compares images by their distance along the 40 axes with the largest variance in
//! public records, and tables by the number of different columns. [`fhaim_eval`] implements the attacks.

use fhaim_eval::{
    Attack, MonteCarlo, ScoreAttacks, Vectors, monte_carlo, monte_carlo_vectors, score_attacks,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde::Serialize;

use crate::Error;
use crate::examples::{Examples, Shape, largest};
use crate::gan::Gan;
use crate::judge::moments;
use crate::matrix::Matrix;

/// Number of axes along which Monte Carlo compares images.
pub const AXES: usize = 40;

/// Number of power iterations that find the axes.
const ROUNDS: usize = 30;

/// Results of all attacks on some networks.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Attacks {
    /// Attacks by the discriminators' scores.
    #[serde(flatten)]
    pub scores: ScoreAttacks,
    /// Attack by generated records.
    pub monte_carlo: Attack,
}

/// Attacks networks, and records that they generated, with members and others. `public` records, which are neither,
/// give the axes along which images are compared.
///
/// # Errors
/// [`Error::Evaluation`] for too few records; [`Error::Shape`] for records of different shapes.
pub fn attack(
    gans: &[Gan],
    drawn: &Examples,
    (members, others, public): (&Examples, &Examples, &Examples),
    options: &MonteCarlo,
) -> Result<Attacks, Error> {
    let scores = score_attacks(
        &scores(gans, members)?,
        &scores(gans, others)?,
        options.seed,
    )?;
    Ok(Attacks {
        scores,
        monte_carlo: nearness(drawn, (members, others, public), options)?,
    })
}

/// Returns, for each record, the largest score of any discriminator.
fn scores(gans: &[Gan], examples: &Examples) -> Result<Vec<f64>, Error> {
    let mut largest = vec![f64::NEG_INFINITY; examples.len()];
    for gan in gans {
        let found = largest.iter_mut().zip(gan.scores(examples)?);
        found.for_each(|(largest, score)| *largest = largest.max(score));
    }
    Ok(largest)
}

/// Runs the Monte Carlo attack.
fn nearness(
    drawn: &Examples,
    (members, others, public): (&Examples, &Examples, &Examples),
    options: &MonteCarlo,
) -> Result<Attack, Error> {
    match members.shape() {
        Shape::Image { .. } => {
            let projection = Projection::of(public.values(), options.seed);
            let [members, others, drawn] =
                [members, others, drawn].map(|e| projection.apply(e.values()));
            Ok(monte_carlo_vectors(
                vectors(&members),
                vectors(&others),
                vectors(&drawn),
                options,
            )?)
        }
        Shape::Codes(sizes) => {
            let [members, others, drawn] = [members, others, drawn].map(|e| codes(e, sizes));
            Ok(monte_carlo(&members, &others, &drawn, options)?)
        }
    }
}

fn vectors(rows: &Matrix) -> Vectors<'_> {
    Vectors {
        width: rows.columns(),
        values: rows.values(),
    }
}

/// Converts one-hot records to codes, by attribute.
fn codes(examples: &Examples, sizes: &[usize]) -> Vec<Vec<u32>> {
    let mut offset = 0;
    let column = |&size: &usize| {
        let block = offset..offset + size;
        offset += size;
        let records = 0..examples.len();
        let of = |n| {
            examples
                .values()
                .row(n)
                .get(block.clone())
                .map_or(0, largest)
        };
        records.map(|n| of(n) as u32).collect()
    };
    sizes.iter().map(column).collect()
}

/// A projection on principal components.
struct Projection {
    mean: Vec<f64>,
    /// One column per component.
    axes: Matrix,
}

impl Projection {
    /// Computes the components of these records.
    fn of(records: &Matrix, seed: u64) -> Self {
        let (mean, spread) = moments(records);
        let mut rng = StdRng::seed_from_u64(seed);
        let count = AXES.min(records.columns());
        let mut start = Matrix::zeros(count, records.columns());
        start
            .values_mut()
            .iter_mut()
            .for_each(|x| *x = rng.random_range(-1.0..1.0));
        let found = spread.leading(&start, ROUNDS);
        let mut axes = Matrix::zeros(count, records.columns());
        for (number, axis) in found.iter().enumerate() {
            axes.row_mut(number)
                .iter_mut()
                .zip(axis)
                .for_each(|(x, &a)| *x = a as f32);
        }
        Self {
            mean,
            axes: axes.transposed(),
        }
    }

    fn apply(&self, records: &Matrix) -> Matrix {
        let mut centred = records.clone();
        for row in 0..centred.rows() {
            let row = centred.row_mut(row).iter_mut();
            row.zip(&self.mean).for_each(|(x, &m)| *x -= m as f32);
        }
        centred.times(self.axes.values(), self.axes.columns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::tests::rows;
    use crate::{Hidden, Optimiser, Training, train};

    /// Images of independent random pixels.
    fn noise(records: usize, seed: u64) -> Examples {
        let shape = Shape::Image {
            rows: 6,
            columns: 6,
        };
        Examples::checked(shape, rows(records, 36, seed)).unwrap()
    }

    fn options() -> MonteCarlo {
        MonteCarlo {
            records: 40,
            tries: 10,
            seed: 1,
        }
    }

    /// The positive control is a discriminator that overfits forty records, with a generator that copies them. The
    /// negative control is a pair of untrained networks.
    #[test]
    fn attacks_find_memorised_records_and_nothing_in_untrained_networks() {
        let (members, others, public) = (noise(40, 1), noise(400, 2), noise(400, 3));
        let training = Training {
            hidden: Hidden::Dense(vec![64]),
            steps: 1500,
            discriminator: Optimiser::adam(1e-3),
            ..Training::default()
        };
        let mut rng = StdRng::seed_from_u64(1);
        let gan = train(&members, &training, None, &mut rng, &|_| ()).unwrap();
        let found = attack(&[gan], &members, (&members, &others, &public), &options()).unwrap();
        assert!(found.scores.white_box.found > 0.8, "{found:?}");
        assert!(found.scores.likelihood.found > 0.95, "{found:?}");
        assert!(found.scores.total_variation.found > 0.7, "{found:?}");
        assert_eq!(found.monte_carlo.found, 1.0);
        let untrained = Gan::random(members.shape(), &training, &mut rng).unwrap();
        let drawn = noise(2000, 4);
        let found = attack(
            &[untrained],
            &drawn,
            (&members, &others, &public),
            &options(),
        )
        .unwrap();
        assert!(
            (found.scores.likelihood.found - 0.5).abs() < 0.15,
            "{found:?}"
        );
        assert!(found.scores.white_box.found < 0.3, "{found:?}");
        assert!((found.monte_carlo.found - 0.5).abs() <= 0.5, "{found:?}");
    }

    #[test]
    fn copied_table_records_are_found() {
        let sizes = vec![5usize; 8];
        let table = |records, seed| {
            let shape = Shape::Codes(sizes.clone());
            let values = shape.shape(rows(records, 40, seed), &mut StdRng::seed_from_u64(seed));
            let mut hot = Matrix::zeros(records, 40);
            for row in 0..records {
                for (attribute, block) in values.row(row).chunks_exact(5).enumerate() {
                    hot.row_mut(row)[5 * attribute + largest(block)] = 1.0;
                }
            }
            Examples::checked(shape, hot).unwrap()
        };
        let (members, others) = (table(100, 1), table(100, 2));
        let found = nearness(&members, (&members, &others, &others), &options()).unwrap();
        assert_eq!(found.found, 1.0);
    }
}
