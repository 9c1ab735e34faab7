//! Plans extra pairs, for which the model's cap has no room (docs/MECHANISM.md, C, step 5).

use std::collections::BinaryHeap;

use fhaim_domain::Domain;

use super::{Candidate, CandidateStatus, Fixed, Move, Moves, PlanOptions, Room};

/// Plans the pairs that [`super::plan`] left outside the model, and the extra pairs of earlier
/// plans. The measurements of extra pairs stay outside the model. Their tables together have at
/// most `options.beside_cells` cells.
///
/// The move with the largest fall of J over the cells of its pair, to the power of gamma, is made,
/// until no move lowers J. Extra pairs share a stage's limit on released integers with all other
/// pairs.
///
/// Each item that shares the noise makes it grow faster, so the fall of a move nearly always
/// decreases as other moves are made. A move that is still first after its own fall is computed
/// again is therefore made without computing the others (Minoux 1978). All moves are computed again
/// before the end.
pub fn plan_beside(
    domain: &Domain,
    fixed: &Fixed,
    options: &PlanOptions,
    candidates: &mut [Candidate],
) {
    let mut plan = Plan::new(domain, fixed, options, candidates);
    loop {
        let all = 0..plan.moves.candidates.len();
        let mut moves: BinaryHeap<Move> = all.filter_map(|i| plan.best_move(i)).collect();
        if moves.is_empty() {
            return;
        }
        while let Some(first) = moves.pop() {
            let index = first.candidate;
            let Some(anew) = plan.best_move(index) else {
                continue;
            };
            if moves.peek().is_some_and(|next| *next > anew) {
                moves.push(anew);
                continue;
            }
            plan.make(&anew);
            moves.extend(plan.best_move(index));
        }
    }
}

/// A plan in progress.
struct Plan<'a> {
    domain: &'a Domain,
    options: &'a PlanOptions,
    moves: Moves<'a>,
    /// Cells of the extra pairs' tables.
    cells: usize,
}

impl<'a> Plan<'a> {
    fn new(
        domain: &'a Domain,
        fixed: &Fixed,
        options: &'a PlanOptions,
        candidates: &'a mut [Candidate],
    ) -> Self {
        let beside = candidates.iter().filter(|candidate| candidate.beside);
        let cells = beside.map(|candidate| table_cells(domain, candidate)).sum();
        Self {
            moves: Moves::new(fixed, options, candidates),
            domain,
            options,
            cells,
        }
    }

    /// Returns the best move of a pair that is an extra pair, or may become one.
    fn best_move(&mut self, index: usize) -> Option<Move> {
        let candidate = &self.moves.candidates[index];
        let has_room = || {
            let own = table_cells(self.domain, candidate);
            self.cells.saturating_add(own) <= self.options.beside_cells
        };
        let open =
            candidate.beside || (candidate.standing == CandidateStatus::Outside && has_room());
        open.then(|| self.moves.best(index, Room::Any)).flatten()
    }

    fn make(&mut self, chosen: &Move) {
        let candidate = &mut self.moves.candidates[chosen.candidate];
        if !candidate.beside {
            self.cells += table_cells(self.domain, candidate);
        }
        candidate.beside = true;
        self.moves.make(chosen);
    }
}

/// Returns the number of cells of a pair's table, over categories.
fn table_cells(domain: &Domain, candidate: &Candidate) -> usize {
    let [a, b] = candidate.attributes.map(|a| domain.size(a));
    a.saturating_mul(b)
}
