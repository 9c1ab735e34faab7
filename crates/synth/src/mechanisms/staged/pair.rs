//! A pair of the workload and its measurements.

use fhaim_domain::Clique;

use super::plan::Candidate;
use crate::mechanisms::block::{Block, BlockAxis, pair_cost};
use crate::mechanisms::columns::Measured;
use crate::mechanisms::merge::Merges;
use crate::mechanisms::score::Residual;

/// The coarsest resolution: two groups for each attribute, a block of one integer.
pub(super) const COARSE: [usize; 2] = [2, 2];

/// A pair of the workload and its measurements.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    /// The pair's state in the plan.
    pub(super) plan: Candidate,
    /// The probe, then blocks at other resolutions. The block of a coarse look is the first of
    /// those.
    pub(super) blocks: Vec<Measured>,
    /// The pair's shares in the last model before the pair joined it. Used only for shrinkage, and
    /// empty for pairs outside the model.
    pub(super) expected: Vec<f64>,
}

impl Pair {
    /// Returns a pair with only the block of its probe, which is not yet measured.
    pub(super) fn new(plan: Candidate, merges: &[Merges]) -> Self {
        let probe = pair_block(plan.attributes, plan.probe, merges);
        Self {
            plan,
            blocks: vec![Measured::new(probe)],
            expected: Vec::new(),
        }
    }

    pub(super) fn clique(&self) -> Clique {
        Clique::new(self.plan.attributes)
    }

    /// Returns the index of the block at a resolution, and adds the block if it is new.
    pub(super) fn block_index(&mut self, groups: [usize; 2], merges: &[Merges]) -> usize {
        let found = self.blocks.iter().position(|b| b.block.shape() == groups);
        found.unwrap_or_else(|| {
            let block = pair_block(self.plan.attributes, groups, merges);
            self.blocks.push(Measured::new(block));
            self.blocks.len() - 1
        })
    }

    /// Returns the rho spent at a resolution so far.
    pub(super) fn spent_at(&self, groups: [usize; 2]) -> f64 {
        let same = self.blocks.iter().filter(|b| b.block.shape() == groups);
        same.map(|block| block.rho).sum()
    }

    /// Returns the difference of the probe's measurement from a model's `marginal`.
    pub(super) fn residual(&self, marginal: &[f64]) -> Residual {
        let (groups, resolved) = (self.plan.probe, self.plan.probe_resolved);
        residual(&self.blocks[0], groups, resolved, marginal)
    }

    /// As [`Pair::residual`], for the block of a coarse look in addition to a finer probe.
    /// `resolved` is the block's R. Returns `None` if the block is not measured.
    pub(super) fn coarse_residual(&self, resolved: f64, marginal: &[f64]) -> Option<Residual> {
        let mut others = self.blocks.iter().skip(1);
        let coarse = others.find(|b| b.block.shape() == COARSE && b.is_measured())?;
        Some(residual(coarse, COARSE, resolved, marginal))
    }
}

/// Returns the difference of a block's measurement from a model's `marginal`. The block has
/// `groups`, which resolve a share R of the variation, `resolved`.
fn residual(measured: &Measured, groups: [usize; 2], resolved: f64, marginal: &[f64]) -> Residual {
    let expected = measured.block.project(marginal);
    let table = measured.table().iter().zip(&expected);
    Residual {
        table: table.map(|(y, mu)| y - mu).collect(),
        freedom: measured.block.freedom(),
        scale: measured.scale(),
        cell_factor: pair_cost(groups),
        resolved,
    }
}

fn pair_block([a, b]: [usize; 2], [ka, kb]: [usize; 2], merges: &[Merges]) -> Block {
    Block::pair(
        BlockAxis::merged(a, &merges[a], ka),
        BlockAxis::merged(b, &merges[b], kb),
    )
}

/// Returns the scale s at which the probes of all pairs together cost `budget`.
pub(super) fn probe_scale(pairs: &[Pair], budget: f64) -> f64 {
    let costs = pairs.iter().map(|pair| pair_cost(pair.plan.probe));
    (costs.sum::<f64>() / (2.0 * budget)).sqrt()
}
