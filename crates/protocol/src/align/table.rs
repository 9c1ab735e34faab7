//! A table from points to values that does not reveal the points (an oblivious key-value store:
//! Garimella, Pinkas, Rosulek, Trieu and Yanai 2021, Section 2.2).
//!
//! The points are spread over bins. A bin is a polynomial of fixed length, uniform among those with
//! the right value at each of the bin's points. So if the values are uniform to a reader, all
//! coefficients are uniform: the table reveals the number of its points, and not which they are. At
//! any other point the reader finds a value that is independent of the entries.

use curve25519_dalek::Scalar;
use fhaim_he::map;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

use super::group::random_scalar;

/// Mean number of entries of a bin.
const MEAN: usize = 64;

/// Largest number of entries of a bin. Some bin of a table of at most 2^24 entries has more with
/// probability below 2^-65: a bin has more with probability at most e^-64 (64 e / 168)^168 < 2^-83,
/// and there are 2^18 bins.
const CAPACITY: usize = 168;

/// An entry of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// A uniform scalar, which also determines the bin.
    pub(super) point: Scalar,
    pub(super) value: Scalar,
}

fn bins(entries: usize) -> usize {
    entries.div_ceil(MEAN)
}

fn bin_length(entries: usize) -> usize {
    entries.min(CAPACITY)
}

/// Returns the number of coefficients of a table with this number of entries.
pub(super) fn length(entries: usize) -> usize {
    bins(entries) * bin_length(entries)
}

/// Makes a table, with coefficients drawn from `seed` where the entries leave a choice. Returns `None`
/// if a bin is too small for its entries.
pub(super) fn make(entries: &[Entry], seed: &[u8; 32]) -> Option<Vec<Scalar>> {
    let count = bins(entries.len());
    let length = bin_length(entries.len());
    let mut bins: Vec<Vec<Entry>> = vec![Vec::new(); count];
    for entry in entries {
        bins.get_mut(bin_of(&entry.point, count))?.push(*entry);
    }
    if bins.iter().any(|bin| bin.len() > length) {
        return None;
    }
    let numbered = bins.into_iter().zip(0u64..).collect();
    let polynomials = map(numbered, |(bin, number)| {
        let mut rng = ChaCha20Rng::from_seed(*seed);
        rng.set_stream(number);
        interpolate(&bin, length, &mut rng)
    });
    Some(polynomials.concat())
}

/// Returns the value of a table with this number of entries at a point. `coefficients` has
/// [`length`] scalars.
pub(super) fn value(coefficients: &[Scalar], entries: usize, point: &Scalar) -> Scalar {
    let length = bin_length(entries);
    let start = bin_of(point, bins(entries)) * length;
    let bin = coefficients.get(start..start + length).unwrap_or_default();
    evaluate(bin, point)
}

/// Returns the bin of a point, by its low 64 bits.
fn bin_of(point: &Scalar, bins: usize) -> usize {
    let low = point.as_bytes().first_chunk::<8>();
    let low = low.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    // Below `bins`.
    ((u128::from(low) * bins as u128) >> 64) as usize
}

fn evaluate(coefficients: &[Scalar], point: &Scalar) -> Scalar {
    let terms = coefficients.iter().rev();
    terms.fold(Scalar::ZERO, |sum, coefficient| sum * point + coefficient)
}

/// Returns a polynomial with `length` coefficients that has the value of each entry at its point, and
/// is uniform among these polynomials (Newton's interpolation, and a random multiple of the
/// polynomial that is zero at all points).
fn interpolate(entries: &[Entry], length: usize, rng: &mut ChaCha20Rng) -> Vec<Scalar> {
    let mut found = vec![Scalar::ZERO; length];
    let mut zero = vec![Scalar::ONE];
    for Entry { point, value } in entries {
        // Points are hashes, so two of them differ, and `zero` is not zero at the next one.
        let missing = value - evaluate(&found, point);
        let factor = missing * evaluate(&zero, point).invert();
        add_multiple(&mut found, &zero, &factor);
        zero = times_root(&zero, point);
    }
    for shift in 0..length - entries.len() {
        let rest = found.get_mut(shift..).unwrap_or_default();
        add_multiple(rest, &zero, &random_scalar(rng));
    }
    found
}

/// Adds `factor * other` to a polynomial.
fn add_multiple(polynomial: &mut [Scalar], other: &[Scalar], factor: &Scalar) {
    for (sum, term) in polynomial.iter_mut().zip(other) {
        *sum += factor * term;
    }
}

/// Multiplies a polynomial by x - `root`.
fn times_root(polynomial: &[Scalar], root: &Scalar) -> Vec<Scalar> {
    let shifted = [&[Scalar::ZERO], polynomial].concat();
    let scaled = polynomial.iter().map(|c| c * root).chain([Scalar::ZERO]);
    shifted.iter().zip(scaled).map(|(a, b)| a - b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(count: u64, seed: u64) -> Vec<Entry> {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let entry = |_| Entry {
            point: random_scalar(&mut rng),
            value: random_scalar(&mut rng),
        };
        (0..count).map(entry).collect()
    }

    #[test]
    fn table_has_the_value_of_every_entry_and_a_length_that_depends_on_their_number_only() {
        for count in [1, 2, 63, 64, 65, 168, 169, 1000] {
            let entries = entries(count, count);
            let table = make(&entries, &[7; 32]).unwrap();
            assert_eq!(table.len(), length(entries.len()));
            for Entry {
                point,
                value: expected,
            } in &entries
            {
                assert_eq!(value(&table, entries.len(), point), *expected, "{count}");
            }
        }
    }

    /// With another seed, every coefficient of a bin with room changes, and the values stay.
    #[test]
    fn coefficients_are_drawn_where_the_entries_leave_a_choice() {
        let entries = entries(200, 1);
        let tables = [[1; 32], [2; 32]].map(|seed| make(&entries, &seed).unwrap());
        let [one, other] = &tables;
        assert!(one.iter().zip(other).all(|(a, b)| a != b));
        let other_point = Scalar::from(12345u64);
        assert_ne!(
            value(one, entries.len(), &other_point),
            value(other, entries.len(), &other_point)
        );
    }

    #[test]
    fn bins_of_many_random_points_have_room() {
        let entries = entries(1 << 16, 3);
        let mut sizes = vec![0; bins(entries.len())];
        for entry in &entries {
            sizes[bin_of(&entry.point, bins(entries.len()))] += 1;
        }
        let largest = sizes.iter().max().unwrap();
        assert!((75..CAPACITY).contains(largest), "{largest}");
        let mean = 64f64;
        let chernoff = -mean + CAPACITY as f64 * (1.0 + (mean / CAPACITY as f64).ln());
        assert!(chernoff / 2f64.ln() < -83.0, "{chernoff}");
    }

    #[test]
    fn bin_with_too_many_entries_is_rejected() {
        let entry = |n: u64| Entry {
            point: Scalar::from(n),
            value: Scalar::ZERO,
        };
        // All in the first bin.
        let entries: Vec<Entry> = (1..=CAPACITY as u64 + 1).map(entry).collect();
        assert!(make(&entries, &[0; 32]).is_none());
    }
}
