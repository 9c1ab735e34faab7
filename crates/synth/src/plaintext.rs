//! Releases in the clear: exact counts of a table, plus discrete Gaussian noise.

use fhaim_domain::{Clique, Counted};
use fhaim_dp::{Allocator, BASE_SCALE, Digits, DiscreteGaussian, Ladder};
use rand::RngCore;

use fhaim_release::{
    Axis, Error as ReleaseError, ReleaseRequest, ReleaseSource, SourceError, SquaredTerm, Statistic,
};

/// Where a plaintext source has its noise from.
enum Noise<'a> {
    /// Samples drawn beforehand: the same as an encrypted run with the same ladder.
    Ladder {
        ladder: &'a Ladder,
        allocator: Allocator,
    },
    /// Samples drawn when they are needed, from the same distributions.
    Fresh(&'a mut dyn RngCore),
}

/// Answers releases in the clear, about a table or what was counted of one.
pub struct PlaintextSource<'a> {
    table: &'a dyn Counted,
    noise: Noise<'a>,
    /// Holders whose noise is drawn as it is needed; a ladder has that of all.
    holders: u32,
    next: u32,
}

impl<'a> PlaintextSource<'a> {
    /// A source with the noise of a ladder: its answers are those of the encrypted source with
    /// the same ladder, integer for integer.
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

    /// A source with noise drawn from `rng` as it is needed: cheaper than a whole ladder, and
    /// from the same distributions.
    pub fn with_rng(table: &'a dyn Counted, rng: &'a mut dyn RngCore) -> Self {
        Self {
            table,
            noise: Noise::Fresh(rng),
            holders: 1,
            next: 0,
        }
    }

    /// The same with noise of so many holders, where it is drawn as it is needed.
    #[must_use]
    pub fn of_holders(self, holders: u32) -> Self {
        Self { holders, ..self }
    }

    /// As [`PlaintextSource::with_rng`], after other releases: the first of `requests` comes
    /// next.
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

/// `cells` sums of ladder samples of variance `4 * variance_units` from each of `holders`, drawn on
/// the spot.
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

/// The statistic's cells without noise.
///
/// # Errors
/// A statistic that does not fit the table, or whose cells do not fit 64 bits.
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
    // A checked clique of at most two attributes: only its size can be refused.
    let counts = table.marginal(clique).ok_or(ReleaseError::Overflow)?;
    Ok(counts.into_iter().map(|count| count as i64).collect())
}

/// Sums a table of `before` x categories x `after` against an axis' functions.
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
