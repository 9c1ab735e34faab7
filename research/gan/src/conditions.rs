//! Conditions on records of a table: the one-hot value of one attribute.

use rand::Rng;

use crate::examples::{Shape, blocks, largest, softmax};
use crate::matrix::Matrix;

/// Draws conditions uniformly: first the attribute, then one of its values.
pub(crate) fn uniform_conditions<R: Rng + ?Sized>(
    shape: &Shape,
    count: usize,
    rng: &mut R,
) -> Matrix {
    let mut conditions = Matrix::zeros(count, shape.conditions());
    if let Shape::Codes(sizes) = shape {
        for row in 0..count {
            let attribute = rng.random_range(0..sizes.len());
            // The attribute exists, and has at least one value.
            let value = rng.random_range(0..sizes[attribute]);
            let offset: usize = sizes[..attribute].iter().sum();
            conditions.row_mut(row)[offset + value] = 1.0;
        }
    }
    conditions
}

/// Draws an attribute for each record uniformly, and returns the record's own value of it as the condition.
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

/// Returns, for each attribute, the records' own conditions. Images have a single, empty condition.
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

/// Adds the derivatives of the cross-entropy between the conditions and the generator's outputs.
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
