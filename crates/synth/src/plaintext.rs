//! Releases in the clear: exact counts of a table plus discrete Gaussian noise.

use fhaim_domain::{Clique, Counted};
use fhaim_dp::{Allocator, BASE_SCALE, Digits, DiscreteGaussian, Ladder};
use rand::RngCore;

use fhaim_release::{
    Axis, Error as ReleaseError, ReleaseRequest, ReleaseSource, SourceError, SquaredTerm, Statistic,
};

/// The noise of a plaintext source.
enum Noise<'a> {
    /// Samples drawn beforehand, equal to those of an encrypted run with the same ladder.
    Ladder {
        ladder: &'a Ladder,
        allocator: Allocator,
    },
    /// Samples drawn as needed, from the same distributions.
    Fresh(&'a mut dyn RngCore),
}

/// Answers releases in the clear, from a table or from its counts.
pub struct PlaintextSource<'a> {
    table: &'a dyn Counted,
    noise: Noise<'a>,
    /// Number of holders whose noise is drawn as needed. A ladder contains the noise of all
    /// holders.
    holders: u32,
    next: u32,
}

impl<'a> PlaintextSource<'a> {
    /// Returns a source with the noise of a ladder. Its answers equal those of the encrypted source
    /// with the same ladder, integer for integer.
    pub fn with_ladder(table: &'a dyn Counted, ladder: &'a Ladder) -> Self {
        Self {
            table,
            noise: Noise::Ladder {
                ladder,
                allocator: Allocator::new(ladder.plan()),
            },
            holders: 1,
            next: 0,
        }
    }

    /// Returns a source with noise drawn from `rng` as needed. It is cheaper than a ladder and has
    /// the same distributions.
    pub fn with_rng(table: &'a dyn Counted, rng: &'a mut dyn RngCore) -> Self {
        Self {
            table,
            noise: Noise::Fresh(rng),
            holders: 1,
            next: 0,
        }
    }

    /// Sets the number of holders whose noise a source without a ladder draws.
    #[must_use]
    pub fn of_holders(self, holders: u32) -> Self {
        Self { holders, ..self }
    }

    /// Returns a source like [`PlaintextSource::with_rng`] that continues after other releases,
    /// with the first of `requests`.
    pub(crate) fn continuing(
        table: &'a dyn Counted,
        rng: &'a mut dyn RngCore,
        requests: &[ReleaseRequest],
    ) -> Self {
        Self {
            next: requests.first().map_or(0, |request| request.number),
            ..Self::with_rng(table, rng)
        }
    }

    fn answer(&mut self, request: &ReleaseRequest) -> Result<Vec<i64>, SourceError> {
        let number = request.number;
        let statistic = |error| SourceError::Statistic { number, error };
        if number != self.next {
            let expected = self.next;
            return Err(SourceError::OutOfOrder { number, expected });
        }
        if request.variance_units == 0 {
            return Err(statistic(ReleaseError::NoNoise));
        }
        let exact = exact(self.table, &request.statistic).map_err(statistic)?;
        let noise = self.noise.draw(request, exact.len(), self.holders)?;
        let answer: Option<Vec<i64>> = exact
            .iter()
            .zip(&noise)
            .map(|(value, noise)| value.checked_add(*noise))
            .collect();
        self.next += 1;
        answer.ok_or_else(|| statistic(ReleaseError::Overflow))
    }
}

impl ReleaseSource for PlaintextSource<'_> {
    fn release(&mut self, requests: &[ReleaseRequest]) -> Result<Vec<Vec<i64>>, SourceError> {
        requests
            .iter()
            .map(|request| self.answer(request))
            .collect()
    }
}

impl Noise<'_> {
    fn draw(
        &mut self,
        request: &ReleaseRequest,
        cells: usize,
        holders: u32,
    ) -> Result<Vec<i64>, SourceError> {
        match self {
            Self::Ladder { ladder, allocator } => {
                let spans = allocator
                    .allocate(request.number, cells)
                    .map_err(SourceError::backend)?;
                let noise = ladder
                    .release_noise(&spans, request.variance_units)
                    .map_err(SourceError::backend)?;
                Ok(noise.to_vec())
            }
            Self::Fresh(rng) => fresh_noise(cells, request.variance_units, holders, *rng),
        }
    }
}

/// Draws the noise of `cells` cells: sums of ladder samples of variance `4 * variance_units` from
/// each of `holders`.
fn fresh_noise(
    cells: usize,
    variance_units: u64,
    holders: u32,
    rng: &mut dyn RngCore,
) -> Result<Vec<i64>, SourceError> {
    let mut noise = vec![0i64; cells];
    for (level, digit) in Digits::of(variance_units).iter() {
        let gaussian = DiscreteGaussian::new(BASE_SCALE << level).map_err(SourceError::backend)?;
        for sum in &mut noise {
            for _ in 0..digit as u64 * u64::from(holders) {
                // Scales are at most 2^27, with 3 samples at each of 27 levels of each holder.
                *sum += gaussian.sample(rng);
            }
        }
    }
    Ok(noise)
}

/// Computes the statistic's cells without noise.
///
/// # Errors
/// The statistic does not fit the table, or its cells do not fit 64 bits.
pub fn exact(table: &dyn Counted, statistic: &Statistic) -> Result<Vec<i64>, ReleaseError> {
    statistic.check(table.domain())?;
    match statistic {
        Statistic::Total => Ok(vec![
            i64::try_from(table.records()).map_err(|_| ReleaseError::Overflow)?,
        ]),
        Statistic::OneWay(axis) => {
            let counts = counts(table, &Clique::new([axis.attribute]))?;
            contract(&counts, axis, 1)
        }
        Statistic::Product(a, b) => {
            let counts = counts(table, &Clique::new([a.attribute, b.attribute]))?;
            let rows = contract(&counts, b, 1)?;
            contract(&rows, a, b.len())
        }
        Statistic::SquaredScores(terms) => terms
            .iter()
            .map(|term| squared_score(table, term))
            .collect(),
    }
}

fn counts(table: &dyn Counted, clique: &Clique) -> Result<Vec<i64>, ReleaseError> {
    // The clique is checked and has at most two attributes, so only its size can be rejected.
    let counts = table.marginal(clique).ok_or(ReleaseError::Overflow)?;
    Ok(counts.into_iter().map(|count| count as i64).collect())
}

/// Sums a table of `before` x categories x `after` cells against the functions of an axis.
fn contract(table: &[i64], axis: &Axis, after: usize) -> Result<Vec<i64>, ReleaseError> {
    let categories = axis.functions.first().map_or(0, Vec::len);
    let slab_len = categories * after;
    let mut cells = Vec::with_capacity(table.len() / slab_len.max(1) * axis.len() * after);
    for slab in table.chunks_exact(slab_len.max(1)) {
        for function in &axis.functions {
            for column in 0..after {
                let mut sum = 0i128;
                for (x, &value) in function.iter().enumerate() {
                    // Two 64-bit factors, at most 2^27 terms: far from 2^127.
                    sum += i128::from(value) * i128::from(slab[x * after + column]);
                }
                cells.push(i64::try_from(sum).map_err(|_| ReleaseError::Overflow)?);
            }
        }
    }
    Ok(cells)
}

fn squared_score(table: &dyn Counted, term: &SquaredTerm) -> Result<i64, ReleaseError> {
    let counts = counts(table, &term.clique)?;
    let mut sum = 0i128;
    for (&count, &target) in counts.iter().zip(&term.target) {
        let difference = i128::from(count) - i128::from(target);
        let square = difference
            .checked_mul(difference)
            .ok_or(ReleaseError::Overflow)?;
        sum = sum.checked_add(square).ok_or(ReleaseError::Overflow)?;
    }
    sum.checked_mul(i128::from(term.weight))
        .and_then(|score| i64::try_from(score).ok())
        .ok_or(ReleaseError::Overflow)
}
