//! The plan goes on past the model's cap (docs/MECHANISM.md, C, `beside`).

use std::collections::BinaryHeap;

use fhaim_domain::Domain;

use super::{Candidate, CandidateStatus, Fixed, Move, Moves, PlanOptions, Room};

/// Plans for the pairs that [`super::plan`] left outside, or put beside the model before, since it has no room for them:
/// what is measured of them stays beside it. The move with the largest fall of J over the cells of its pair, to the power
/// of gamma, is made until none lowers J: what a stage may release is shared by all. Their tables have at most as many
/// cells together as the model.
///
/// Noise that is shared by more items grows faster with each, so a move nearly always falls less the more were made
/// before it: one that is still the first once its own fall was taken anew is taken without a look at the others
/// (Minoux 1978). All are looked at again before the end.
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

/// A plan being made.
struct Plan<'a> {
    domain: &'a Domain,
    options: &'a PlanOptions,
    moves: Moves<'a>,
    /// Cells of the tables beside the model.
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

    /// The best move of a pair that is beside the model, or may come there.
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

/// Cells of a pair's table, over categories.
fn table_cells(domain: &Domain, candidate: &Candidate) -> usize {
    let [a, b] = candidate.attributes.map(|a| domain.size(a));
    a.saturating_mul(b)
}
