//! The plan of a stage decides which pairs to measure, and at which resolution (docs/MECHANISM.md,
//! C step 4).
//!
//! The plan lowers J, the workload error expected at the end of the run:
//!
//! ```text
//! J =   beta c0 (sum of c^(2/3))^(3/2) / sqrt(2 B)     noise, over 1-ways and measured pairs
//!     + sum of G                                       pairs outside the model
//!     + sum of G sqrt(1 - R)                           measured pairs: the part that a merge hides
//!     + sum of beta c0 c / sqrt(2 rho_q) + G sqrt(1 - R)   pairs that use only their probe
//! ```
//!
//! where B is the rest of the budget plus the rho already spent on the items of the first sum at
//! their current resolution.

mod beside;
mod candidate;
mod moves;

use std::collections::BinaryHeap;

use fhaim_domain::Domain;
use fhaim_pgm::{GrowingModel, ModelGraph};

pub use self::beside::plan_beside;
use self::candidate::block_cells;
pub use self::candidate::{Candidate, CandidateStatus, Resolution};
use self::moves::{Move, Moves};
use crate::mechanisms::score::MEAN_ABS;

/// Limits and weights of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanOptions {
    /// Weight of noise in J.
    pub beta: f64,
    /// Exponent of the model's growth.
    pub gamma: f64,
    /// Largest number of cells of the model's junction tree.
    pub model_cells: usize,
    /// Largest number of cells of the extra pairs' tables.
    pub beside_cells: usize,
    /// Largest number of pairs that join the model.
    pub additions: usize,
    /// Largest number of integers that the measured pairs' blocks may release together.
    pub block_cells: usize,
}

/// Values that do not depend on the pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fixed {
    /// Sum of c^(2/3) over the total and the 1-ways.
    pub noise_terms: f64,
    /// rho spent on them.
    pub spent: f64,
    /// rho left.
    pub left: f64,
}

/// The first sum of J, and the used part of the limits.
#[derive(Clone, Copy, Debug)]
struct State {
    noise_terms: f64,
    budget: f64,
    block_cells: usize,
}

impl State {
    fn new(fixed: &Fixed, candidates: &[Candidate]) -> Self {
        let mut state = Self {
            noise_terms: fixed.noise_terms,
            budget: fixed.left + fixed.spent,
            block_cells: 0,
        };
        for candidate in candidates {
            state = state.moved(candidate, CandidateStatus::Outside, candidate.standing);
        }
        state
    }

    /// Returns the state after a pair's standing has changed.
    fn moved(mut self, candidate: &Candidate, from: CandidateStatus, to: CandidateStatus) -> Self {
        if let Some(resolution) = candidate.measured_at(from) {
            self.noise_terms -= candidate.noise_term(resolution);
            self.budget -= resolution.spent;
            self.block_cells -= block_cells(resolution);
        }
        if let Some(resolution) = candidate.measured_at(to) {
            self.noise_terms += candidate.noise_term(resolution);
            self.budget += resolution.spent;
            self.block_cells += block_cells(resolution);
        }
        self
    }

    /// Returns the first term of J.
    fn noise(&self, beta: f64) -> f64 {
        beta * MEAN_ABS * self.noise_terms.powf(1.5) / (2.0 * self.budget).sqrt()
    }
}

/// The standings of a pair that the model has room for. Standings from the given one on are too
/// large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Room {
    #[default]
    Any,
    Below(usize),
    None,
}

impl Room {
    fn has(self, to: CandidateStatus) -> bool {
        match (self, to) {
            (Self::Any, _) => true,
            (Self::Below(limit), CandidateStatus::Measured(index)) => index < limit,
            (Self::Below(_), _) => true,
            (Self::None, _) => false,
        }
    }

    /// Returns the room left if `to` is too large. Finer resolutions need more room; the probe
    /// needs the least.
    fn without(to: CandidateStatus) -> Self {
        match to {
            CandidateStatus::Measured(index) => Self::Below(index),
            CandidateStatus::ProbeOnly | CandidateStatus::Outside => Self::None,
        }
    }
}

/// Returns J for the candidates' current standings.
fn objective(fixed: &Fixed, beta: f64, candidates: &[Candidate]) -> f64 {
    let own = candidates.iter().map(|c| c.own_term(c.standing, beta));
    State::new(fixed, candidates).noise(beta) + own.sum::<f64>()
}

/// Returns the exponent among `penalties` whose complete plan has the lowest J, and the first among
/// equals. Returns `options.gamma` if `penalties` is empty.
///
/// The right penalty for growth depends on how much of the cap a table can use. If all pairs are
/// dependent, too low a penalty fills the cap with a few large cliques, and too high a penalty
/// leaves it empty.
pub fn best_gamma(
    domain: &Domain,
    fixed: &Fixed,
    options: &PlanOptions,
    penalties: &[f64],
    candidates: &[Candidate],
) -> f64 {
    let planned = penalties.iter().map(|&gamma| {
        let mut tried = candidates.to_vec();
        let options = PlanOptions {
            gamma,
            additions: usize::MAX,
            ..*options
        };
        plan(domain, fixed, &options, &mut tried);
        (gamma, objective(fixed, options.beta, &tried))
    });
    let best = planned.min_by(|(_, one), (_, other)| one.total_cmp(other));
    best.map_or(options.gamma, |(gamma, _)| gamma)
}

/// Plans a stage: changes the candidates' standings until no move lowers J, or `options.additions`
/// pairs have joined the model. Returns `true` in the second case: distances should then be
/// computed again.
///
/// Pairs already in the model stay in it, at their resolution or a finer one.
pub fn plan(
    domain: &Domain,
    fixed: &Fixed,
    options: &PlanOptions,
    candidates: &mut [Candidate],
) -> bool {
    let mut graph = ModelGraph::unrefined(domain.len());
    for digit in domain.digits() {
        graph.refine(digit.coarse(), domain.size(digit.coarse()));
        graph.refine(digit.fine(), domain.size(digit.fine()));
        graph.add(&digit.clique());
    }
    for candidate in candidates.iter() {
        candidate.join(candidate.standing, &mut graph);
    }
    let mut model = GrowingModel::new(graph);
    let mut moves = Moves::new(fixed, options, candidates);
    let mut rooms = vec![Room::Any; moves.candidates.len()];
    let beside = |i: &usize| moves.candidates[*i].beside;
    // A plan adds no extra pairs.
    let of_model: Vec<usize> = (0..rooms.len()).filter(|i| !beside(i)).collect();
    let mut added = 0;
    while added < options.additions {
        let best = of_model.iter().filter_map(|&i| moves.best(i, rooms[i]));
        let ranked: BinaryHeap<Move> = best.collect();
        let now = model.cells().filter(|_| !ranked.is_empty());
        let Some(now) = now else {
            return false;
        };
        // If no move is chosen, some pair has less room than before, and its next best move may
        // fit.
        if let Some(chosen) = choose(ranked, (&model, now), options, moves.candidates, &mut rooms) {
            let candidate = &moves.candidates[chosen.candidate];
            added += usize::from(candidate.standing == CandidateStatus::Outside);
            model.grow(&candidate.clique(), &candidate.groups(chosen.to));
            moves.make(&chosen);
        }
    }
    true
}

/// Returns the move with the largest fall of J over growth^gamma that keeps the model within its
/// cap. `now` must be the model's number of cells. Moves without room are noted in `rooms`.
///
/// A move's rank never exceeds its bound, so the model is queried only for moves that could still
/// win.
fn choose(
    mut moves: BinaryHeap<Move>,
    (model, now): (&GrowingModel, usize),
    options: &PlanOptions,
    candidates: &[Candidate],
    rooms: &mut [Room],
) -> Option<Move> {
    let mut best: Option<(f64, Move)> = None;
    while let Some(m) = moves.pop() {
        if best.is_some_and(|(rank, _)| m.bound <= rank) {
            break;
        }
        let candidate = &candidates[m.candidate];
        match model.cells_with(&candidate.clique(), &candidate.groups(m.to)) {
            Some(cells) if cells <= options.model_cells => {
                let growth = (cells.saturating_sub(now) as f64).max(m.least_growth);
                let rank = m.fall / growth.powf(options.gamma);
                if best.is_none_or(|(most, _)| rank > most) {
                    best = Some((rank, m));
                }
            }
            _ => rooms[m.candidate] = Room::without(m.to),
        }
    }
    best.map(|(_, m)| m)
}

#[cfg(test)]
mod tests;
