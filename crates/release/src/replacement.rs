//! The change of a release if one holder's part of one record is replaced: the relation of
//! neighbours for holders that have columns of the same records.
//!
//! The holders know who is in the table, so a value must be hidden from them and not a membership.
//! The other holders' attributes of the record stay the same. The maximum is over all their values,
//! and over all of the holder's own values before and after.

use std::collections::BTreeSet;

use crate::{Axis, Error, SquaredTerm};

/// Most multiplications for a maximum. Beyond that, a bound is used instead. A column of 8192
/// values is within the limit.
const MAX_STEPS: usize = 1 << 26;

/// |u(x)|^2, |u(x')|^2 and <u(x), u(x')> for two values of an attribute.
type Move = (u128, u128, i128);

/// Returns the largest squared change of a one-way.
///
/// # Errors
/// [`Error::Overflow`] beyond 128 bits.
pub(crate) fn one_way(axis: &Axis) -> Result<u128, Error> {
    match moves(axis)? {
        Some(moves) => largest(&moves, difference),
        None => quadruple(axis.squared_norm()?),
    }
}

/// Returns the largest squared change of a product. The two attributes belong to one holder, so
/// that both may change, or to two holders, so that only one changes.
///
/// # Errors
/// [`Error::Overflow`] beyond 128 bits.
pub(crate) fn product(a: &Axis, b: &Axis, one_holder: bool) -> Result<u128, Error> {
    let norms = [a.squared_norm()?, b.squared_norm()?];
    if !one_holder {
        let moved = [one_way(a)?, one_way(b)?];
        return Ok(times(moved[0], norms[1])?.max(times(norms[0], moved[1])?));
    }
    let (Some(first), Some(second)) = (moves(a)?, moves(b)?) else {
        return quadruple(times(norms[0], norms[1])?);
    };
    if first.len().saturating_mul(second.len()) > MAX_STEPS {
        return quadruple(times(norms[0], norms[1])?);
    }
    largest(&first, |one| largest(&second, |two| both(one, two)))
}

/// Returns the largest squared change of squared scores: each score of a pair with an attribute of
/// the changed holder changes by at most w (4 N - 2).
///
/// A cell with count m and target t loses a record, and one with count m' and target t' gains it.
/// The sum of squares changes by 2 (m' - t') - 2 (m - t) + 2, where 1 <= m, m + m' <= N and both
/// targets are in 0..=N. So it changes by at most 4 N - 2 in either direction.
///
/// # Errors
/// [`Error::Overflow`] beyond 128 bits.
pub(crate) fn squared_scores(
    terms: &[SquaredTerm],
    record_bound: u64,
    owners: &[u32],
) -> Result<u128, Error> {
    let holders = owners.iter().copied().collect::<BTreeSet<u32>>();
    let step = 4 * u128::from(record_bound.max(1)) - 2;
    let of = |holder: u32| {
        let touched = |term: &&SquaredTerm| {
            let mut attributes = term.clique.attributes().iter();
            attributes.any(|&a| owners.get(a) == Some(&holder))
        };
        terms.iter().filter(touched).try_fold(0u128, |sum, term| {
            let moved = times(step, u128::from(term.weight.unsigned_abs()))?;
            sum.checked_add(times(moved, moved)?).ok_or(Error::Overflow)
        })
    };
    holders
        .into_iter()
        .try_fold(0, |most, holder| Ok(of(holder)?.max(most)))
}

/// Returns the distinct changes between two values of an attribute, including those between equal
/// values. Returns `None` if there are too many.
fn moves(axis: &Axis) -> Result<Option<BTreeSet<Move>>, Error> {
    let values = values(axis);
    let entries: usize = values.iter().map(|value| value.len().max(1)).sum();
    if entries.saturating_mul(values.len()) > MAX_STEPS {
        return Ok(None);
    }
    let norm = |value: &[(usize, i64)]| {
        let norm = inner(value, value)?;
        u128::try_from(norm).map_err(|_| Error::Overflow)
    };
    let norms = values
        .iter()
        .map(|v| norm(v))
        .collect::<Result<Vec<_>, _>>()?;
    let mut moves = BTreeSet::new();
    for (before, &norm) in values.iter().zip(&norms) {
        for (after, &other) in values.iter().zip(&norms) {
            moves.insert((norm, other, inner(before, after)?));
        }
    }
    Ok(Some(moves))
}

/// Returns the distinct (u(x))_u over the values x, each as its nonzero entries.
fn values(axis: &Axis) -> BTreeSet<Vec<(usize, i64)>> {
    let size = axis.functions.first().map_or(0, Vec::len);
    let value = |x: usize| {
        let entries = axis.functions.iter().enumerate();
        let entry = |(f, function): (usize, &Vec<i64>)| {
            let value = function.get(x).copied().filter(|&value| value != 0);
            Some((f, value?))
        };
        entries.filter_map(entry).collect()
    };
    (0..size).map(value).collect()
}

/// Returns the inner product of two vectors with ascending entries.
fn inner(one: &[(usize, i64)], two: &[(usize, i64)]) -> Result<i128, Error> {
    let mut sum = 0i128;
    let (mut one, mut two) = (one.iter().peekable(), two.iter().peekable());
    while let (Some(&&(f, x)), Some(&&(g, y))) = (one.peek(), two.peek()) {
        if f == g {
            // The product of two 64-bit numbers fits into i128.
            let product = i128::from(x) * i128::from(y);
            sum = sum.checked_add(product).ok_or(Error::Overflow)?;
        }
        if f <= g {
            one.next();
        }
        if g <= f {
            two.next();
        }
    }
    Ok(sum)
}

fn largest(
    moves: &BTreeSet<Move>,
    mut of: impl FnMut(&Move) -> Result<u128, Error>,
) -> Result<u128, Error> {
    moves.iter().try_fold(0, |most, one| Ok(of(one)?.max(most)))
}

/// Returns |u - u'|^2.
fn difference(&(before, after, inner): &Move) -> Result<u128, Error> {
    both(&(before, after, inner), &(1, 1, 1))
}

/// Returns |u v - u' v'|^2 for outer products: |u|^2 |v|^2 + |u'|^2 |v'|^2 - 2 <u, u'> <v, v'>.
fn both(one: &Move, two: &Move) -> Result<u128, Error> {
    let squares = times(one.0, two.0)?.checked_add(times(one.1, two.1)?);
    let squares = squares.and_then(|sum| i128::try_from(sum).ok());
    let cross = one.2.checked_mul(two.2).and_then(|c| c.checked_mul(2));
    let (squares, cross) = squares.zip(cross).ok_or(Error::Overflow)?;
    let moved = squares.checked_sub(cross).ok_or(Error::Overflow)?;
    u128::try_from(moved).map_err(|_| Error::Overflow)
}

fn times(one: u128, two: u128) -> Result<u128, Error> {
    one.checked_mul(two).ok_or(Error::Overflow)
}

fn quadruple(square: u128) -> Result<u128, Error> {
    times(square, 4)
}
