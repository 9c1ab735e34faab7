//! Linear relations between columns, solved exactly modulo a prime.

use std::ops::{Mul, Neg, Sub};

/// The prime 2^61 - 1. Relations with small coefficients are the same modulo it as between whole numbers.
const PRIME: u64 = (1 << 61) - 1;

/// A number modulo [`PRIME`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Residue(u64);

impl Residue {
    const ZERO: Self = Self(0);
    const ONE: Self = Self(1);

    pub(super) fn of(number: i128) -> Self {
        Self(number.rem_euclid(i128::from(PRIME)) as u64)
    }

    /// The inverse of a number other than zero, by Fermat's little theorem.
    fn inverse(self) -> Self {
        let (mut result, mut power, mut exponent) = (Self::ONE, self, PRIME - 2);
        while exponent > 0 {
            if exponent % 2 == 1 {
                result = result * power;
            }
            power = power * power;
            exponent /= 2;
        }
        result
    }
}

impl Mul for Residue {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self((u128::from(self.0) * u128::from(other.0) % u128::from(PRIME)) as u64)
    }
}

impl Sub for Residue {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self((self.0 + PRIME - other.0) % PRIME)
    }
}

impl Neg for Residue {
    type Output = Self;

    fn neg(self) -> Self {
        Self::ZERO - self
    }
}

/// Returns the linear relations between columns that hold in all rows and have only the coefficients 1 and -1: the
/// columns with either coefficient.
///
/// Each relation expresses a column by earlier ones that are independent of each other. There is at most one for each
/// column.
pub(super) fn relations(columns: usize, rows: Vec<Vec<Residue>>) -> Vec<(Vec<usize>, Vec<usize>)> {
    let basis = reduced(columns, rows);
    let at = |row: &[Residue], column: usize| row.get(column).copied().unwrap_or(Residue::ZERO);
    let free = (0..columns).filter(|&column| basis.get(column).is_none_or(Option::is_none));
    let relation = |column: usize| {
        let (mut positive, mut negative) = (vec![column], Vec::new());
        for (pivot, row) in basis.iter().enumerate() {
            match row.as_ref().map(|row| at(row, column)) {
                None | Some(Residue::ZERO) => {}
                Some(Residue::ONE) => negative.push(pivot),
                Some(other) if -other == Residue::ONE => positive.push(pivot),
                Some(_) => return None,
            }
        }
        Some((positive, negative))
    };
    free.filter_map(relation).collect()
}

/// Returns the rows in reduced echelon form, by their pivots.
fn reduced(columns: usize, rows: Vec<Vec<Residue>>) -> Vec<Option<Vec<Residue>>> {
    let mut basis: Vec<Option<Vec<Residue>>> = vec![None; columns];
    for row in rows {
        insert(&mut basis, row);
    }
    for pivot in (0..columns).rev() {
        let Some(row) = basis.get(pivot).cloned().flatten() else {
            continue;
        };
        for above in basis.iter_mut().take(pivot).flatten() {
            eliminate(above, &row, pivot);
        }
    }
    basis
}

/// Adds a row to a basis in echelon form, unless it depends on the others.
fn insert(basis: &mut [Option<Vec<Residue>>], mut row: Vec<Residue>) {
    for (pivot, place) in basis.iter_mut().enumerate() {
        let Some(&leading) = row.get(pivot).filter(|&&entry| entry != Residue::ZERO) else {
            continue;
        };
        match place {
            Some(other) => eliminate(&mut row, other, pivot),
            None => {
                let inverse = leading.inverse();
                row.iter_mut().for_each(|entry| *entry = *entry * inverse);
                *place = Some(row);
                return;
            }
        }
    }
}

/// Subtracts a multiple of a row whose entry at `pivot` is 1, so that the entry of `row` there is 0.
fn eliminate(row: &mut [Residue], other: &[Residue], pivot: usize) {
    let Some(&factor) = row.get(pivot) else {
        return;
    };
    if factor == Residue::ZERO {
        return;
    }
    for (entry, &subtracted) in row.iter_mut().zip(other) {
        *entry = *entry - factor * subtracted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_with_other_coefficients_are_not_returned() {
        let row =
            |a: i128, b: i128, c: i128| [a, b, c, a - b + c, 2 * a, a].map(Residue::of).to_vec();
        let rows = vec![row(3, -5, 7), row(1, 1, 2), row(-4, 0, 9), row(8, 8, 8)];
        let found = relations(6, rows);
        assert_eq!(found, [(vec![3, 1], vec![0, 2]), (vec![5], vec![0])]);
    }

    #[test]
    fn inverse_times_number_is_one() {
        for number in [1, 2, -1, 1_000_000_007] {
            let residue = Residue::of(number);
            assert_eq!(residue * residue.inverse(), Residue::ONE);
        }
    }
}
