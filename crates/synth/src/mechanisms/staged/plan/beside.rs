//! The plan goes on past the model's cap (docs/MECHANISM.md, C, `beside`).

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use fhaim_domain::Domain;

use super::{Candidate, Fixed, Move, PlanOptions, Room, Standing, State, best_move};

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
        let all = 0..plan.candidates.len();
        let mut moves: BinaryHeap<Ranked> = all.filter_map(|i| plan.best_move(i)).collect();
        if moves.is_empty() {
            return;
        }
        while let Some(first) = moves.pop() {
            let index = first.chosen.candidate;
            let Some(anew) = plan.best_move(index) else {
                continue;
            };
            if moves.peek().is_some_and(|next| *next > anew) {
                moves.push(anew);
                continue;
            }
            plan.make(&anew.chosen);
            moves.extend(plan.best_move(index));
        }
    }
}

/// Where the candidates stand.
struct Plan<'a> {
    domain: &'a Domain,
    options: &'a PlanOptions,
    candidates: &'a mut [Candidate],
    state: State,
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
            state: State::new(fixed, candidates),
            domain,
            options,
            candidates,
            cells,
        }
    }

    /// The best move of a pair that is beside the model, or may come there.
    fn best_move(&self, index: usize) -> Option<Ranked> {
        let candidate = &self.candidates[index];
        let has_room = || {
            let own = table_cells(self.domain, candidate);
            self.cells.saturating_add(own) <= self.options.beside_cells
        };
        let open = candidate.beside || (candidate.standing == Standing::Outside && has_room());
        let options = self.options;
        let found =
            open.then(|| best_move(&self.state, options, self.candidates, index, Room::Any));
        found.flatten().map(|chosen| Ranked {
            rank: chosen.bound(options.gamma),
            chosen,
        })
    }

    fn make(&mut self, chosen: &Move) {
        let candidate = &mut self.candidates[chosen.candidate];
        if !candidate.beside {
            self.cells += table_cells(self.domain, candidate);
        }
        self.state = self.state.moved(candidate, candidate.standing, chosen.to);
        candidate.standing = chosen.to;
        candidate.beside = true;
    }
}

/// Cells of a pair's table, over categories.
fn table_cells(domain: &Domain, candidate: &Candidate) -> usize {
    let [a, b] = candidate.attributes.map(|a| domain.size(a));
    a.saturating_mul(b)
}

/// A move by its rank; of two with the same, the pair that comes first has the higher.
#[derive(Clone, Copy, Debug)]
struct Ranked {
    rank: f64,
    chosen: Move,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_rank = self.rank.total_cmp(&other.rank);
        by_rank.then(other.chosen.candidate.cmp(&self.chosen.candidate))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}
