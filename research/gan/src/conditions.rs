//! Conditions on records of a table: a value of one attribute, one-hot.

use rand::Rng;

use crate::examples::{Shape, blocks, largest, softmax};
use crate::matrix::Matrix;

/// One attribute at uniform, then one of its values.
pub(crate) fn uniform_conditions<R: Rng + ?Sized>(
    shape: &Shape,
    count: usize,
    rng: &mut R,
) -> Matrix {
    let mut conditions = Matrix::zeros(count, shape.conditions());
    if let Shape::Codes(sizes) = shape {
        for row in 0..count {
            let attribute = rng.random_range(0..sizes.len());
            // The attribute is one of them, and has a value.
            let value = rng.random_range(0..sizes[attribute]);
            let offset: usize = sizes[..attribute].iter().sum();
            conditions.row_mut(row)[offset + value] = 1.0;
        }
    }
    conditions
}

/// Of each record the value of an attribute at uniform.
pub(crate) fn own_conditions<R: Rng + ?Sized>(
    shape: &Shape,
    records: &Matrix,
    rng: &mut R,
) -> Matrix {
    let mut conditions = Matrix::zeros(records.rows(), shape.conditions());
    if let Shape::Codes(sizes) = shape {
        for row in 0..records.rows() {
            let attribute = rng.random_range(0..sizes.len());
            set_condition(&mut conditions, (row, attribute), sizes, records);
        }
    }
    conditions
}

/// For each attribute the conditions that are the records' own; of images one without any.
pub(crate) fn all_conditions(shape: &Shape, records: &Matrix) -> Vec<Matrix> {
    let Shape::Codes(sizes) = shape else {
        return vec![Matrix::zeros(records.rows(), 0)];
    };
    let of = |attribute| {
        let mut conditions = Matrix::zeros(records.rows(), shape.conditions());
        for row in 0..records.rows() {
            set_condition(&mut conditions, (row, attribute), sizes, records);
        }
        conditions
    };
    (0..sizes.len()).map(of).collect()
}

fn set_condition(
    conditions: &mut Matrix,
    (row, attribute): (usize, usize),
    sizes: &[usize],
    records: &Matrix,
) {
    // A record has a block of numbers for each attribute.
    let offset: usize = sizes[..attribute].iter().sum();
    let value = largest(&records.row(row)[offset..offset + sizes[attribute]]);
    conditions.row_mut(row)[offset + value] = 1.0;
}

/// Adds the derivatives of the cross-entropy between conditions and the values that outputs stand for.
pub(crate) fn add_condition_loss(
    outputs: &Matrix,
    conditions: &Matrix,
    sizes: &[usize],
    delta: &mut Matrix,
) {
    let share = 1.0 / outputs.rows().max(1) as f32;
    for row in 0..outputs.rows() {
        let mut shares = outputs.row(row).to_vec();
        let mut wanted = conditions.row(row).to_vec();
        let both = blocks(&mut shares, sizes).zip(blocks(&mut wanted, sizes));
        for ((shares, wanted), delta) in both.zip(blocks(delta.row_mut(row), sizes)) {
            if wanted.iter().any(|&w| w > 0.0) {
                softmax(shares);
                let moved = delta.iter_mut().zip(shares).zip(wanted);
                moved.for_each(|((d, y), w)| *d += share * (*y - *w));
            }
        }
    }
}
