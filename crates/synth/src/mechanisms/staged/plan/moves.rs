//! The possible moves of candidates, and the fall of J that each causes.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::candidate::block_cells;
use super::{Candidate, CandidateStatus, Fixed, PlanOptions, Room, State};

/// A pair's best move.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub candidate: usize,
    pub to: CandidateStatus,
    /// The fall of J.
    pub fall: f64,
    /// Cells of the pair's table in the model, which is the least growth that the rank assumes.
    pub least_growth: f64,
    /// Upper bound on the move's rank: its fall over the least growth to the power of gamma.
    pub bound: f64,
}

/// Orders moves by their bounds. Among equal bounds, the pair that comes first has the higher
/// order.
impl Ord for Move {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_bound = self.bound.total_cmp(&other.bound);
        by_bound.then(other.candidate.cmp(&self.candidate))
    }
}

impl PartialOrd for Move {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Move {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Move {}

/// A standing that is offered to a candidate, with values that do not depend on other candidates.
#[derive(Clone, Copy, Debug)]
struct Offered {
    standing: CandidateStatus,
    /// The pair's own terms of J.
    own: f64,
    least_growth: f64,
    /// `least_growth` to the power of gamma.
    hindrance: f64,
    /// Index into [`Moves::noises`]; `None` without a block.
    kind: Option<usize>,
}

/// The candidates and their possible moves. Powers and roots are computed once where they do not
/// change, because each move is chosen among tens of thousands.
pub(super) struct Moves<'a> {
    pub candidates: &'a mut [Candidate],
    options: &'a PlanOptions,
    state: State,
    /// The standings of all candidates, in their order: outside, probe only, measured.
    offered: Vec<Offered>,
    /// Index of each candidate's first standing.
    first: Vec<usize>,
    /// The current first term of J.
    now: f64,
    /// The first term of J if one more block were measured, by the block's cost. NaN if it is not
    /// computed yet, infinite if such a block is too large.
    noises: Vec<f64>,
}

impl<'a> Moves<'a> {
    pub fn new(fixed: &Fixed, options: &'a PlanOptions, candidates: &'a mut [Candidate]) -> Self {
        let state = State::new(fixed, candidates);
        let mut kinds = HashMap::new();
        let mut offered = Vec::new();
        let mut first = Vec::with_capacity(candidates.len());
        for candidate in candidates.iter() {
            first.push(offered.len());
            let measured = (0..candidate.resolutions.len()).map(CandidateStatus::Measured);
            let standings = [CandidateStatus::Outside, CandidateStatus::ProbeOnly];
            offered.extend(standings.into_iter().chain(measured).map(|standing| {
                let [ka, kb] = candidate.groups(standing);
                let least_growth = ka as f64 * kb as f64;
                let key = candidate.measured_at(standing).map(|resolution| {
                    let term = candidate.noise_term(resolution).to_bits();
                    (term, resolution.spent.to_bits(), block_cells(resolution))
                });
                let next = kinds.len();
                Offered {
                    standing,
                    own: candidate.own_term(standing, options.beta),
                    least_growth,
                    hindrance: least_growth.powf(options.gamma),
                    kind: key.map(|key| *kinds.entry(key).or_insert(next)),
                }
            }));
        }
        Self {
            now: state.noise(options.beta),
            noises: vec![f64::NAN; kinds.len()],
            candidates,
            options,
            state,
            offered,
            first,
        }
    }

    /// Returns the move that lowers J most for one pair, if any does.
    pub fn best(&mut self, index: usize, room: Room) -> Option<Move> {
        let candidate = &self.candidates[index];
        if candidate.distance <= 0.0 {
            return None;
        }
        let from = self.first[index] + candidate.standing.position();
        let end = self.first.get(index + 1).copied();
        let before = self.now + self.offered[from].own;
        let mut best: Option<Move> = None;
        for at in from + 1..end.unwrap_or(self.offered.len()) {
            let offered = self.offered[at];
            // A pair in the model stays there, and its resolution never becomes coarser.
            if !room.has(offered.standing) {
                continue;
            }
            let fall = before - (self.noise_after(index, &offered) + offered.own);
            if fall > best.map_or(0.0, |m| m.fall) {
                best = Some(Move {
                    candidate: index,
                    to: offered.standing,
                    fall,
                    least_growth: offered.least_growth,
                    bound: fall / offered.hindrance,
                });
            }
        }
        best
    }

    /// Returns the first term of J after a candidate's standing changes. Returns infinity if a
    /// stage may not release that many integers.
    fn noise_after(&mut self, index: usize, to: &Offered) -> f64 {
        let candidate = &self.candidates[index];
        let noise = || {
            let moved = (self.state).moved(candidate, candidate.standing, to.standing);
            match moved.block_cells > self.options.block_cells {
                true => f64::INFINITY,
                false => moved.noise(self.options.beta),
            }
        };
        match to.kind {
            // The pair's current measurement would be replaced, so a stored value does not apply.
            _ if matches!(candidate.standing, CandidateStatus::Measured(_)) => noise(),
            Some(kind) => {
                if self.noises[kind].is_nan() {
                    self.noises[kind] = noise();
                }
                self.noises[kind]
            }
            None if self.state.block_cells > self.options.block_cells => f64::INFINITY,
            None => self.now,
        }
    }

    /// Makes a move.
    pub fn make(&mut self, chosen: &Move) {
        let candidate = &mut self.candidates[chosen.candidate];
        self.state = (self.state).moved(candidate, candidate.standing, chosen.to);
        candidate.standing = chosen.to;
        self.now = self.state.noise(self.options.beta);
        self.noises.fill(f64::NAN);
    }
}
