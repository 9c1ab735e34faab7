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

use fhaim_domain::{Clique, Domain};
use fhaim_pgm::ModelGraph;

use crate::mechanisms::block::{freedom, functions};
use crate::mechanisms::score::MEAN_ABS;

/// Where a pair stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not in the model.
    Outside,
    /// In the model with its probe alone.
    ProbeOnly,
    /// In the model and measured at `resolutions[_]`.
    Measured(usize),
}

/// A resolution that a pair may be measured at.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    /// Groups of the two attributes.
    pub groups: [usize; 2],
    /// R: the share of the pair's variation that they resolve.
    pub resolved: f64,
    /// rho already spent on the pair at just this resolution.
    pub spent: f64,
}

/// A pair of the workload, as the plan sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The attributes, ascending.
    pub attributes: [usize; 2],
    /// The workload's weight.
    pub weight: f64,
    /// Resolutions on offer, coarsest first.
    pub resolutions: Vec<Resolution>,
    /// Groups of the probe.
    pub probe: [usize; 2],
    /// The pair's share of the probe.
    pub probe_rho: f64,
    /// R at the probe.
    pub probe_resolved: f64,
    /// G: expected L1 distance from the model without the pair (unweighted).
    pub distance: f64,
    /// Where the pair stands; changed by the plan.
    pub standing: Standing,
}

impl Candidate {
    fn clique(&self) -> Clique {
        Clique::new(self.attributes)
    }

    /// Groups that the model tells apart for the pair, in a standing. The probe of a pair in the
    /// model is fitted too.
    fn groups(&self, standing: Standing) -> [usize; 2] {
        let [pa, pb] = self.probe;
        match standing {
            Standing::Outside => [1, 1],
            Standing::ProbeOnly => self.probe,
            Standing::Measured(index) => {
                let [ka, kb] = self.resolutions[index].groups;
                [ka.max(pa), kb.max(pb)]
            }
        }
    }

    /// Adds the pair to a model's graph, in a standing.
    fn join(&self, standing: Standing, graph: &mut ModelGraph) {
        if standing != Standing::Outside {
            let groups = self.groups(standing);
            (self.attributes.iter().zip(groups)).for_each(|(&a, k)| graph.refine(a, k));
            graph.add(&self.clique());
        }
    }

    /// c^(2/3) of the pair measured at a resolution.
    fn noise_term(&self, resolution: &Resolution) -> f64 {
        let [ka, kb] = resolution.groups;
        (self.weight * freedom(ka) * freedom(kb)).powf(2.0 / 3.0)
    }

    /// What the pair itself adds to J, in a standing.
    fn own_term(&self, standing: Standing, beta: f64) -> f64 {
        match standing {
            Standing::Outside => self.weight * self.distance,
            Standing::ProbeOnly => {
                let [ka, kb] = self.probe;
                let noise = MEAN_ABS * freedom(ka) * freedom(kb) / (2.0 * self.probe_rho).sqrt();
                let hidden = (1.0 - self.probe_resolved).max(0.0);
                self.weight * (beta * noise + self.distance * hidden.sqrt())
            }
            Standing::Measured(index) => {
                let hidden = (1.0 - self.resolutions[index].resolved).max(0.0);
                self.weight * self.distance * hidden.sqrt()
            }
        }
    }
}

/// Limits and weights of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanOptions {
    /// Weight of noise in J.
    pub beta: f64,
    /// Exponent of the model's growth.
    pub gamma: f64,
    /// Most cells of the model's junction tree.
    pub model_cells: usize,
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

/// Integers released by a block.
fn block_cells(resolution: &Resolution) -> usize {
    let [ka, kb] = resolution.groups;
    functions(ka) * functions(kb)
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
mod tests {
    use super::*;

    /// J by its definition.
    fn objective(fixed: &Fixed, beta: f64, candidates: &[Candidate]) -> f64 {
        let mut terms = fixed.noise_terms;
        let mut budget = fixed.left + fixed.spent;
        let mut own = 0.0;
        for c in candidates {
            own += c.own_term(c.standing, beta);
            if let Standing::Measured(i) = c.standing {
                terms += c.noise_term(&c.resolutions[i]);
                budget += c.resolutions[i].spent;
            }
        }
        beta * MEAN_ABS * terms.powf(1.5) / (2.0 * budget).sqrt() + own
    }

    fn candidate(attributes: [usize; 2], distance: f64) -> Candidate {
        let resolution = |k: usize, resolved: f64| Resolution {
            groups: [k, k],
            resolved,
            spent: if k == 2 { 0.001 } else { 0.0 },
        };
        Candidate {
            attributes,
            weight: 1.0,
            resolutions: vec![resolution(2, 0.6), resolution(4, 0.9), resolution(6, 1.0)],
            probe: [2, 2],
            probe_rho: 0.001,
            probe_resolved: 0.6,
            distance,
            standing: Standing::Outside,
        }
    }

    fn all_candidates() -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for a in 0..5 {
            for b in a + 1..5 {
                candidates.push(candidate([a, b], 10.0 * (1 + a * b % 7) as f64));
            }
        }
        candidates
    }

    const FIXED: Fixed = Fixed {
        noise_terms: 60.0,
        spent: 0.02,
        left: 0.07,
    };

    fn options(model_cells: usize) -> PlanOptions {
        PlanOptions {
            beta: 0.85,
            gamma: 0.25,
            model_cells,
            block_cells: usize::MAX,
            additions: usize::MAX,
        }
    }

    #[test]
    fn plans_end_where_no_single_move_lowers_the_objective() {
        let domain = Domain::new(vec![6; 5]);
        let mut candidates = all_candidates();
        let before = objective(&FIXED, 0.85, &candidates);
        plan(&domain, &FIXED, &options(1 << 20), &mut candidates);
        let after = objective(&FIXED, 0.85, &candidates);
        assert!(after < before);
        for i in 0..candidates.len() {
            let first = match candidates[i].standing {
                Standing::Measured(at) => at + 1,
                _ => 0,
            };
            for to in first..3 {
                let mut other = candidates.clone();
                other[i].standing = Standing::Measured(to);
                assert!(objective(&FIXED, 0.85, &other) >= after - 1e-9);
            }
        }
    }

    #[test]
    fn the_first_move_is_the_best_by_brute_force() {
        let domain = Domain::new(vec![6, 5, 4, 3, 6]);
        let candidates = all_candidates();
        let options = options(1 << 20);
        let start = objective(&FIXED, options.beta, &candidates);
        let graph = ModelGraph::unrefined(domain.len());
        let now = graph.cells().unwrap();
        let mut best = (0.0, 0, Standing::Outside);
        for i in 0..candidates.len() {
            // The rank is of a pair's best standing.
            let standings = [Standing::ProbeOnly]
                .into_iter()
                .chain((0..3).map(Standing::Measured));
            for to in standings {
                let mut other = candidates.clone();
                other[i].standing = to;
                let fall = start - objective(&FIXED, options.beta, &other);
                let mut with = graph.clone();
                candidates[i].join(to, &mut with);
                let [ka, kb] = candidates[i].groups(to);
                let growth = (with.cells().unwrap() - now) as f64;
                let growth = growth.max((ka * kb) as f64);
                let rank = fall / growth.powf(options.gamma);
                if rank > best.0 {
                    best = (rank, i, to);
                }
            }
        }
        let state = State::new(&FIXED, &candidates);
        let mut moves: Vec<Move> = (0..candidates.len())
            .filter_map(|i| best_move(&state, &options, &candidates, i, Room::Any))
            .collect();
        moves.sort_by(|x, y| y.bound(options.gamma).total_cmp(&x.bound(options.gamma)));
        let mut rooms = vec![Room::Any; candidates.len()];
        let chosen = choose(&moves, (&graph, now), &options, &candidates, &mut rooms).unwrap();
        assert_eq!((chosen.candidate, chosen.to), (best.1, best.2));
    }

    #[test]
    fn the_caps_hold_and_members_stay() {
        let domain = Domain::new(vec![6; 5]);
        for (cells, block_cells) in [(100, usize::MAX), (300, 20), (1 << 20, 1)] {
            let mut candidates = all_candidates();
            candidates[3].standing = Standing::ProbeOnly;
            let mut options = options(cells);
            options.block_cells = block_cells;
            plan(&domain, &FIXED, &options, &mut candidates);
            assert_ne!(candidates[3].standing, Standing::Outside);
            let mut graph = ModelGraph::unrefined(domain.len());
            let mut released = 0;
            for c in candidates
                .iter()
                .filter(|c| c.standing != Standing::Outside)
            {
                c.join(c.standing, &mut graph);
                if let Standing::Measured(i) = c.standing {
                    released += super::block_cells(&c.resolutions[i]);
                }
            }
            assert!(graph.cells().unwrap() <= cells);
            assert!(released <= block_cells);
        }
    }

    #[test]
    fn pairs_that_score_nothing_are_left_out() {
        let domain = Domain::new(vec![6; 5]);
        let mut candidates = all_candidates();
        candidates.iter_mut().for_each(|c| c.distance = 0.0);
        plan(&domain, &FIXED, &options(1 << 20), &mut candidates);
        assert!(candidates.iter().all(|c| c.standing == Standing::Outside));
    }
}
