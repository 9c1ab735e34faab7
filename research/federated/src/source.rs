//! Answers the releases of any `fhaim-synth` mechanism from the sums of the parties' counts.

use fhaim_domain::Table;
use fhaim_dp::{NoiseShares, Rho};
use fhaim_release::{ReleaseRequest, ReleaseSource, SourceError};
use fhaim_synth::exact;
use rand::RngCore;

/// A release source to which all parties contribute. It works in the clear, and its answers are distributed as sums of
/// the parties' counts with a share of the noise from each.
pub struct FederatedSource<'a> {
    tables: &'a [Table],
    colluders: u32,
    rng: &'a mut dyn RngCore,
    next: u32,
    gaps: Rho,
}

impl<'a> FederatedSource<'a> {
    /// Creates a source over the parties' tables. `colluders` of the parties may pool their knowledge: the noise of the
    /// others has the requested variance by itself.
    pub fn new(tables: &'a [Table], colluders: u32, rng: &'a mut dyn RngCore) -> Self {
        Self {
            tables,
            colluders,
            rng,
            next: 0,
            gaps: Rho::ZERO,
        }
    }

    /// Returns the cost of the releases in excess of the mechanism's own account. Their noise is a sum of more samples
    /// than one holder would draw. The job's rho must leave room for this cost.
    pub fn gaps(&self) -> Rho {
        self.gaps
    }

    fn answer(&mut self, request: &ReleaseRequest) -> Result<Vec<i64>, SourceError> {
        let number = request.number;
        if number != self.next {
            let expected = self.next;
            return Err(SourceError::OutOfOrder { number, expected });
        }
        let refuse = |error: fhaim_release::Error| SourceError::Statistic { number, error };
        let parties = u32::try_from(self.tables.len()).unwrap_or(u32::MAX);
        let shares = NoiseShares::with_colluders(request.variance_units, parties, self.colluders)
            .map_err(|error| refuse(error.into()))?;
        let statistic = &request.statistic;
        let sensitivity = statistic.squared_sensitivity(0).map_err(refuse)?;
        let mut sum = vec![0i64; statistic.cells()];
        for table in self.tables {
            let cells = exact(table, statistic).map_err(refuse)?;
            let noise = shares
                .draw(cells.len(), self.rng)
                .map_err(SourceError::backend)?;
            for (sum, (cell, noise)) in sum.iter_mut().zip(cells.iter().zip(noise.iter())) {
                *sum += cell + noise;
            }
        }
        let cells = sum.len() as u64;
        let gap = shares
            .gap(sensitivity, cells)
            .map_err(SourceError::backend)?;
        self.gaps = self.gaps.checked_add(gap).unwrap_or(self.gaps);
        self.next += 1;
        Ok(sum)
    }
}

impl ReleaseSource for FederatedSource<'_> {
    fn release(&mut self, requests: &[ReleaseRequest]) -> Result<Vec<Vec<i64>>, SourceError> {
        let answers = requests.iter().map(|request| self.answer(request));
        answers.collect()
    }
}
