//! Tests of gradients (against differences of the loss, and private against plain ones) and of generated records.

use super::*;
use crate::examples::{blocks, softmax};
use crate::network::tests::rows;
use rand::{SeedableRng, rngs::StdRng};

fn small(shape: &Shape, hidden: Hidden) -> Gan {
    let training = Training {
        noise: 3,
        hidden,
        ..Training::default()
    };
    Gan::random(shape, &training, &mut StdRng::seed_from_u64(1)).unwrap()
}

fn shapes() -> [(Shape, Hidden); 3] {
    let image = |rows, columns| Shape::Image { rows, columns };
    let dense = || Hidden::Dense(vec![5]);
    [
        (image(2, 3), dense()),
        (Shape::Codes(vec![2, 4]), dense()),
        (image(4, 6), Hidden::Convolutions(vec![2])),
    ]
}

fn records(shape: &Shape) -> Matrix {
    let noise = rows(6, shape.width(), 7);
    shape.shape(noise, &mut StdRng::seed_from_u64(2))
}

/// Log loss of logits: ln(1 + exp(-logit)) for real records, ln(1 + exp(logit)) for generated ones.
fn log_loss(odds: &Matrix, sign: f64) -> f64 {
    let of = |&o: &f32| (sign * f64::from(o)).exp().ln_1p();
    odds.values().iter().map(of).sum::<f64>() / odds.rows() as f64
}

/// Compares the gradients of both networks with differences of the losses, with the same noise.
#[test]
fn gan_gradients_equal_differences_of_the_losses() {
    for (shape, hidden) in shapes() {
        let gan = small(&shape, hidden);
        let real = records(&shape);
        let critic = |gan: &Gan| {
            let rng = &mut StdRng::seed_from_u64(4);
            let conditions = own_conditions(&shape, &real, rng);
            let made = gan.generator.make(&conditions, rng).unwrap().records;
            let odds = |rows: Matrix| {
                gan.discriminator
                    .forward(rows.beside(&conditions))
                    .unwrap()
                    .0
            };
            log_loss(&odds(real.clone()), -1.0) + log_loss(&odds(made), 1.0)
        };
        let found = gan
            .critic_gradient(&real, &mut StdRng::seed_from_u64(4))
            .unwrap();
        for (number, &found) in found.iter().enumerate() {
            let moved = |by: f32| {
                let mut moved = gan.clone();
                moved.discriminator.parameters_mut()[number] += by;
                critic(&moved)
            };
            let expected = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            assert!(
                (f64::from(found) - expected).abs() < 2e-2,
                "{number}: {found} {expected}"
            );
        }
        let generator = |gan: &Gan| {
            let rng = &mut StdRng::seed_from_u64(5);
            let conditions = uniform_conditions(&shape, 6, rng);
            let made = gan.generator.make(&conditions, rng).unwrap();
            let odds = gan
                .discriminator
                .forward(made.records.clone().beside(&conditions))
                .unwrap()
                .0;
            log_loss(&odds, -1.0) + condition_loss(&shape, &made.outputs, &conditions)
        };
        let rng = &mut StdRng::seed_from_u64(5);
        let found = gan.generator_gradient(6, rng, |_, _| Ok(None)).unwrap();
        for (number, &found) in found.iter().enumerate() {
            let moved = |by: f32| {
                let mut moved = gan.clone();
                moved.generator.network.parameters_mut()[number] += by;
                generator(&moved)
            };
            let expected = (moved(1e-3) - moved(-1e-3)) / 2e-3;
            let close = 3e-2 + 0.03 * expected.abs();
            assert!(
                (f64::from(found) - expected).abs() < close,
                "{number}: {found} {expected}"
            );
        }
    }
}

fn condition_loss(shape: &Shape, outputs: &Matrix, conditions: &Matrix) -> f64 {
    let Shape::Codes(sizes) = shape else {
        return 0.0;
    };
    let mut loss = 0.0;
    for row in 0..outputs.rows() {
        let (mut shares, mut wanted) = (outputs.row(row).to_vec(), conditions.row(row).to_vec());
        for (shares, wanted) in blocks(&mut shares, sizes).zip(blocks(&mut wanted, sizes)) {
            softmax(shares);
            let found = shares.iter().zip(wanted).find(|(_, w)| **w > 0.0);
            loss -= found.map_or(0.0, |(y, _)| f64::from(*y).ln()) / outputs.rows() as f64;
        }
    }
    loss
}

/// With a clip that clips nothing and almost no noise, the private gradient equals the plain one.
#[test]
fn private_gradients_without_noise_equal_plain_ones() {
    for (shape, hidden) in shapes() {
        let gan = small(&shape, hidden);
        let real = records(&shape);
        let privacy = Privacy {
            clip: 64.0,
            multiplier: 1e-6,
        };
        // Generated images use different draws in both cases, so the values are compared for tables only.
        let private = gan
            .private_gradient(&real, 6, &privacy, &mut StdRng::seed_from_u64(4))
            .unwrap();
        let plain = gan
            .critic_gradient(&real, &mut StdRng::seed_from_u64(4))
            .unwrap();
        if shape.conditions() > 0 {
            // For tables, both make the same draws in the same order.
            for (found, expected) in private.iter().zip(&plain) {
                assert!((found - expected).abs() < 1e-3, "{found} {expected}");
            }
        }
        assert_eq!(private.len(), plain.len());
        // Without real records, the gradient consists of noise and the generated records' part.
        let none = Matrix::zeros(0, shape.width());
        assert!(
            gan.private_gradient(&none, 6, &privacy, &mut StdRng::seed_from_u64(4))
                .is_ok()
        );
    }
}

#[test]
fn generated_records_have_their_shape_and_finite_scores() {
    for (shape, hidden) in shapes() {
        let gan = small(&shape, hidden);
        let drawn = gan
            .generator()
            .sample(DRAWN + 5, &mut StdRng::seed_from_u64(1))
            .unwrap();
        assert_eq!((drawn.len(), drawn.shape()), (DRAWN + 5, &shape));
        let scores = gan.scores(&drawn).unwrap();
        assert!(scores.len() == drawn.len() && scores.iter().all(|s| s.is_finite()));
        assert!(matches!(
            gan.generator().sample(0, &mut StdRng::seed_from_u64(1)),
            Err(Error::Shape(..))
        ));
    }
    let [(image, hidden), (codes, _), _] = shapes();
    let other = records(&codes);
    let other = Examples::checked(codes, other).unwrap();
    assert!(matches!(
        small(&image, hidden).scores(&other),
        Err(Error::Shape(..))
    ));
}
