//! The plan of a stage: which pairs to measure, and at which resolution (docs/MECHANISM.md,
//! C step 4).
//!
//! The plan lowers J, the workload error expected at the end of the run:
//!
//! ```text
//! J =   beta c0 (sum of c^(2/3))^(3/2) / sqrt(2 B)     noise, over 1-ways and measured pairs
//!     + sum of G                                       pairs outside the model
//!     + sum of G sqrt(1 - R)                           measured pairs: what a merge hides
//!     + sum of beta c0 c / sqrt(2 rho_q)               pairs of which only the probe is used
//! ```
//!
//! where B is what is left of the budget plus what was spent on the items of the first sum at
//! the resolution they have now.

mod beside;
mod candidate;

use fhaim_domain::Domain;
use fhaim_pgm::ModelGraph;

pub use self::beside::plan_beside;
use self::candidate::block_cells;
pub use self::candidate::{Candidate, Resolution, Standing};
use crate::mechanisms::score::MEAN_ABS;

/// Limits and weights of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanOptions {
    /// Weight of noise in J.
    pub beta: f64,
    /// Exponent of the model's growth.
    pub gamma: f64,
    /// Most cells of the model's junction tree.
    pub model_cells: usize,
    /// Most cells of the tables beside it.
    pub beside_cells: usize,
    /// Most pairs that join the model.
    pub additions: usize,
    /// Most integers that the measured pairs' blocks may release together.
    pub block_cells: usize,
}

/// What does not depend on the pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fixed {
    /// Sum of c^(2/3) over the total and the 1-ways.
    pub noise_terms: f64,
    /// rho spent on them.
    pub spent: f64,
    /// rho left.
    pub left: f64,
}

/// The first sum of J, and the limits used up.
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
            state = state.moved(candidate, Standing::Outside, candidate.standing);
        }
        state
    }

    /// The state once a pair's standing has changed.
    fn moved(mut self, candidate: &Candidate, from: Standing, to: Standing) -> Self {
        if let Standing::Measured(index) = from {
            let resolution = &candidate.resolutions[index];
            self.noise_terms -= candidate.noise_term(resolution);
            self.budget -= resolution.spent;
            self.block_cells -= block_cells(resolution);
        }
        if let Standing::Measured(index) = to {
            let resolution = &candidate.resolutions[index];
            self.noise_terms += candidate.noise_term(resolution);
            self.budget += resolution.spent;
            self.block_cells += block_cells(resolution);
        }
        self
    }

    /// The first term of J.
    fn noise(&self, beta: f64) -> f64 {
        beta * MEAN_ABS * self.noise_terms.powf(1.5) / (2.0 * self.budget).sqrt()
    }
}

/// A pair's best move.
#[derive(Clone, Copy, Debug)]
struct Move {
    candidate: usize,
    to: Standing,
    /// How much it lowers J.
    fall: f64,
    /// Cells of the pair's table in the model: the least the model is taken to grow.
    least_growth: f64,
}

impl Move {
    /// What the move's rank cannot exceed.
    fn bound(&self, gamma: f64) -> f64 {
        self.fall / self.least_growth.powf(gamma)
    }
}

/// The standings that the model has room for: those from this one on are too large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Room {
    #[default]
    Any,
    Below(usize),
    None,
}

impl Room {
    fn has(self, to: Standing) -> bool {
        match (self, to) {
            (Self::Any, _) => true,
            (Self::Below(limit), Standing::Measured(index)) => index < limit,
            (Self::Below(_), _) => true,
            (Self::None, _) => false,
        }
    }

    /// Finer resolutions take more room, the probe least of all.
    fn without(to: Standing) -> Self {
        match to {
            Standing::Measured(index) => Self::Below(index),
            Standing::ProbeOnly | Standing::Outside => Self::None,
        }
    }
}

/// J with the candidates where they stand.
fn objective(fixed: &Fixed, beta: f64, candidates: &[Candidate]) -> f64 {
    let own = candidates.iter().map(|c| c.own_term(c.standing, beta));
    State::new(fixed, candidates).noise(beta) + own.sum::<f64>()
}

/// The exponent, of these, under which a plan made to its end has the lowest J, the first of several; `options.gamma`
/// where there are none. How hard growth should be punished depends on how much of the cap a table can use: with
/// every pair dependent a plan that grows too freely fills it with a few large cliques, one too careful with none.
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

/// Plans a stage: changes the candidates' standings until nothing lowers J, or so many pairs have
/// joined the model that their distances should be taken anew. Returns whether that is so. Pairs
/// already in the model stay in it, at their resolution or a finer one.
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
    let mut state = State::new(fixed, candidates);
    let mut rooms = vec![Room::Any; candidates.len()];
    let mut added = 0;
    while added < options.additions {
        let mut moves: Vec<Move> = (0..candidates.len())
            .filter(|&i| !candidates[i].beside)
            .filter_map(|i| best_move(&state, options, candidates, i, rooms[i]))
            .collect();
        let now = graph.cells().filter(|_| !moves.is_empty());
        let Some(now) = now else {
            return false;
        };
        // A move's rank is at most its fall over the least growth: the junction tree is asked
        // only where that bound could still win.
        moves.sort_by(|x, y| y.bound(options.gamma).total_cmp(&x.bound(options.gamma)));
        // Without a choice some pair has less room than before: its next best move may fit.
        if let Some(chosen) = choose(&moves, (&graph, now), options, candidates, &mut rooms) {
            let candidate = &mut candidates[chosen.candidate];
            added += usize::from(candidate.standing == Standing::Outside);
            state = state.moved(candidate, candidate.standing, chosen.to);
            candidate.standing = chosen.to;
            candidate.join(chosen.to, &mut graph);
        }
    }
    true
}

/// The move with the largest fall over growth^gamma that keeps the model within its cap.
/// `moves` must be in descending order of their bounds, `now` be the graph's cells. Moves for which there is no room are
/// noted.
fn choose(
    moves: &[Move],
    (graph, now): (&ModelGraph, usize),
    options: &PlanOptions,
    candidates: &[Candidate],
    rooms: &mut [Room],
) -> Option<Move> {
    let mut best: Option<(f64, Move)> = None;
    for &m in moves {
        if best.is_some_and(|(rank, _)| m.bound(options.gamma) <= rank) {
            break;
        }
        let mut with = graph.clone();
        candidates[m.candidate].join(m.to, &mut with);
        match with.cells() {
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

/// The standing that lowers J most for one pair, if any does.
fn best_move(
    state: &State,
    options: &PlanOptions,
    candidates: &[Candidate],
    index: usize,
    room: Room,
) -> Option<Move> {
    let candidate = &candidates[index];
    let from = candidate.standing;
    if candidate.distance <= 0.0 {
        return None;
    }
    let before = state.noise(options.beta) + candidate.own_term(from, options.beta);
    let first = match from {
        Standing::Measured(at) => at + 1,
        Standing::Outside | Standing::ProbeOnly => 0,
    };
    let probe_only = (from == Standing::Outside).then_some(Standing::ProbeOnly);
    let measured = (first..candidate.resolutions.len()).map(Standing::Measured);
    let mut best: Option<Move> = None;
    for to in probe_only.into_iter().chain(measured) {
        let moved = state.moved(candidate, from, to);
        if moved.block_cells > options.block_cells || !room.has(to) {
            continue;
        }
        let after = moved.noise(options.beta) + candidate.own_term(to, options.beta);
        let fall = before - after;
        if fall > best.map_or(0.0, |m| m.fall) {
            let [ka, kb] = candidate.groups(to);
            best = Some(Move {
                candidate: index,
                to,
                fall,
                least_growth: ka as f64 * kb as f64,
            });
        }
    }
    best
}

#[cfg(test)]
mod tests;
