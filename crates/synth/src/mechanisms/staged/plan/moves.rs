//! The moves that candidates can make, and how much each lowers J.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::candidate::block_cells;
use super::{Candidate, CandidateStatus, Fixed, PlanOptions, Room, State};

/// A pair's best move.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub candidate: usize,
    pub to: CandidateStatus,
    /// How much it lowers J.
    pub fall: f64,
    /// Cells of the pair's table in the model: the least the model is taken to grow.
    pub least_growth: f64,
    /// What the move's rank cannot exceed: its fall over the least growth to the power of gamma.
    pub bound: f64,
}

/// Moves are ordered by their bounds; of two with the same, the pair that comes first has the higher.
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

/// A standing on offer to a candidate, with what does not depend on the others.
#[derive(Clone, Copy, Debug)]
struct Offered {
    standing: CandidateStatus,
    /// What the pair itself adds to J.
    own: f64,
    least_growth: f64,
    /// `least_growth` to the power of gamma.
    hindrance: f64,
    /// See [`Moves::noises`]; none without a block.
    kind: Option<usize>,
}

/// Candidates and what each could do. Powers and roots are taken once where they stay the same: tens of
/// thousands of moves are looked at before each that is made.
pub(super) struct Moves<'a> {
    pub candidates: &'a mut [Candidate],
    options: &'a PlanOptions,
    state: State,
    /// The standings of all candidates, in their order: outside, with the probe alone, measured.
    offered: Vec<Offered>,
    /// Where each candidate's begin.
    first: Vec<usize>,
    /// The first term of J as things are.
    now: f64,
    /// The first term of J were one more block measured, by what the block costs; not a number where it
    /// was not asked for yet. Infinite where such a block is too large.
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

    /// The standing that lowers J most for one pair, if any does.
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
            // A pair in the model stays there, and what is measured of it is not made coarser.
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

    /// The first term of J once a candidate stands elsewhere; infinite where a stage may not release as much.
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
            // What is measured of the pair already would no longer be.
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
