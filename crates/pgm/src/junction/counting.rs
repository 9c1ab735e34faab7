//! Counts the cells of the junction tree of one component of a graph, without building the tree.
//!
//! The results equal those of [`super::Elimination`] exactly, and are computed faster:
//!
//! * Weighted min-fill takes attributes that add no edge (simplicial ones) before all others.
//!   Taking one leaves the others simplicial, so in any order the same ones are taken and the same
//!   graph remains: they need no order. The maximal cliques are those of the graph with all edges
//!   added, found in any order.
//! * The rule of fewest cells needs costs of edges only among attributes with equally few cells.
//! * Once the rule of fewest cells has added all edges that min-fill adds, its result has no fewer
//!   cells, if all sizes are at least 2. From a chordal graph to another with more edges there is a
//!   chain of chordal graphs, each with one more edge (Rose, Tarjan and Lueker 1976, lemma 2). An
//!   edge x y between the common neighbours S replaces at most two cliques, of s x + s y <= s x y
//!   cells, by a clique of s x y cells.
//!
//! Costs are integers as long as they stay below 2^53. Sums and products are then exact, so that
//! their order does not matter.

use super::set::Set;

/// Floating-point integers below this are exact.
const EXACT: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;

/// One component of a graph.
#[derive(Clone, Debug)]
pub(super) struct Component<'a, const W: usize> {
    sizes: &'a [usize],
    left: Set<W>,
    /// For each remaining attribute, the clique that taking it would form: itself and its remaining
    /// neighbours.
    rows: Vec<Set<W>>,
    /// The attributes taken, and their cliques.
    taken: Vec<(usize, Set<W>)>,
}

impl<'a, const W: usize> Component<'a, W> {
    /// Returns the component of these attributes with their neighbours. Returns `None` if costs are
    /// not exact: if the square of the sum of sizes is at least 2^53, or some size is 0.
    pub fn new(sizes: &'a [usize], left: Set<W>, around: impl Fn(usize) -> Set<W>) -> Option<Self> {
        let sum: f64 = left.iter().map(|a| sizes[a] as f64).sum();
        if sum * sum >= EXACT || left.iter().any(|a| sizes[a] == 0) {
            return None;
        }
        let mut rows = vec![Set::EMPTY; sizes.len()];
        (left.iter()).for_each(|a| rows[a] = around(a) | Set::only(a));
        Some(Self {
            sizes,
            left,
            rows,
            taken: Vec::with_capacity(sizes.len()),
        })
    }

    /// Returns the number of cells by weighted min-fill, or `None` if it does not fit `usize`, and
    /// the added edges.
    pub fn weighted_fill(mut self) -> (Option<usize>, Vec<[usize; 2]>) {
        let mut added = Vec::new();
        // Attributes that may have become simplicial.
        let mut open = self.left;
        loop {
            while let Some(a) = open.first() {
                open = open.without(a);
                if self.is_simplicial(a) {
                    open |= self.rows[a].without(a);
                    if self.take(a) {
                        return (self.cells(), added);
                    }
                }
            }
            let Some(a) = self.least_fill() else {
                return (self.cells(), added);
            };
            added.extend(self.missing(a));
            if self.take(a) {
                return (self.cells(), added);
            }
            open = self.near(self.rows[a]);
        }
    }

    /// Returns the number of cells by the rule of fewest cells, or `None` if it does not fit
    /// `usize`.
    pub fn fewest_cells(self) -> Option<usize> {
        self.fewest_cells_unless(|_| false).flatten()
    }

    /// As [`Self::fewest_cells`]. Returns `None` if the number is certainly at least that by weighted
    /// min-fill, which adds the edges `added`.
    pub fn fewest_cells_without(self, mut added: Vec<[usize; 2]>) -> Option<Option<usize>> {
        if self.left.iter().any(|a| self.sizes[a] < 2) {
            return Some(self.fewest_cells());
        }
        self.fewest_cells_unless(|of| {
            // The row of a taken attribute still has the neighbours that it had then.
            added.retain(|&[u, v]| !of.rows[u].has(v) && !of.rows[v].has(u));
            added.is_empty()
        })
    }

    /// As [`Self::fewest_cells`], but returns `None` once `stops` returns `true`. `stops` is called
    /// at the beginning and whenever edges were added.
    fn fewest_cells_unless(
        mut self,
        mut stops: impl FnMut(&Self) -> bool,
    ) -> Option<Option<usize>> {
        if stops(&self) {
            return None;
        }
        let mut costs = Costs::new(&self);
        while let Some(a) = costs.cheapest(&self) {
            let adds_none = self.is_simplicial(a);
            if self.take(a) {
                break;
            }
            if !adds_none && stops(&self) {
                return None;
            }
            costs.change(&self, a, adds_none);
        }
        Some(self.cells())
    }

    /// Returns the edges that taking `a` would add.
    fn missing(&self, a: usize) -> impl Iterator<Item = [usize; 2]> + '_ {
        let clique = self.rows[a];
        let missing = move |u: usize| clique.minus(&self.rows[u]).iter().map(move |v| [u, v]);
        clique.iter().flat_map(missing).filter(|[u, v]| u < v)
    }

    /// Checks whether the neighbours of `a` are joined to one another, so that taking it adds no
    /// edge.
    fn is_simplicial(&self, a: usize) -> bool {
        let clique = self.rows[a];
        (clique.iter()).all(|u| clique.minus(&self.rows[u]).is_empty())
    }

    /// Returns the sum of the products of sizes over the edges that taking `a` would add, each
    /// counted from both ends.
    fn fill(&self, a: usize) -> f64 {
        let clique = self.rows[a];
        let size = |u: usize| self.sizes[u] as f64;
        let missing = |u: usize| clique.minus(&self.rows[u]).iter().map(size).sum::<f64>();
        clique.iter().map(|u| size(u) * missing(u)).sum()
    }

    /// Returns the number of cells of the clique that taking `a` would form. The order of
    /// multiplication is that of [`super::Cost`], because it decides ties of inexact products.
    fn clique_cells(&self, a: usize) -> f64 {
        let around = self.rows[a].without(a);
        (around.iter()).fold(self.sizes[a] as f64, |n, u| n * self.sizes[u] as f64)
    }

    /// Returns the attribute that adds least. Among equals, it has the fewest cells, then the
    /// lowest index.
    fn least_fill(&self) -> Option<usize> {
        let keyed = self.left.iter().map(|a| (self.fill(a), a));
        let best = keyed.reduce(|best, next| {
            let fewer = || self.clique_cells(next.1) < self.clique_cells(best.1);
            let less = next.0 < best.0 || (next.0 == best.0 && fewer());
            if less { next } else { best }
        });
        best.map(|(_, a)| a)
    }

    /// Returns the remaining attributes whose costs may have changed after edges were added in a
    /// clique.
    fn near(&self, clique: Set<W>) -> Set<W> {
        let joined = |&b: &usize| (self.rows[b] & clique).has_two();
        (self.left.iter().filter(joined)).fold(Set::EMPTY, |near, b| near | Set::only(b))
    }

    /// Removes `a` and joins its neighbours. Returns whether its clique is all that remains: the
    /// cliques of the others are then part of it.
    fn take(&mut self, a: usize) -> bool {
        let clique = self.rows[a];
        self.taken.push((a, clique));
        if clique == self.left {
            return true;
        }
        self.left = self.left.without(a);
        let around = clique.without(a);
        (around.iter()).for_each(|u| self.rows[u] = (self.rows[u] | around).without(a));
        false
    }

    /// Returns the sum of the cells of the maximal cliques among the formed ones; see
    /// [`super::Elimination`].
    fn cells(&self) -> Option<usize> {
        let mut step_of = vec![usize::MAX; self.sizes.len()];
        for (step, &(a, _)) in self.taken.iter().enumerate() {
            step_of[a] = step;
        }
        let mut maximal = vec![true; self.taken.len()];
        for &(a, clique) in &self.taken {
            let around = clique.without(a);
            let next = around.iter().fold(usize::MAX, |n, b| n.min(step_of[b]));
            if self
                .taken
                .get(next)
                .is_some_and(|(_, inner)| *inner == around)
            {
                maximal[next] = false;
            }
        }
        let kept = self.taken.iter().zip(maximal).filter(|(_, kept)| *kept);
        kept.map(|((_, clique), _)| clique)
            .try_fold(0, |sum: usize, clique| {
                let product = clique
                    .iter()
                    .try_fold(1, |n: usize, b| n.checked_mul(self.sizes[b]));
                sum.checked_add(product?)
            })
    }
}

/// The known costs of the remaining attributes.
struct Costs {
    /// Cells of the clique that taking each would form.
    cells: Vec<f64>,
    /// Costs of the edges that each would add, as in [`Component::fill`]; NaN if not known.
    fill: Vec<f64>,
}

impl Costs {
    fn new<const W: usize>(of: &Component<'_, W>) -> Self {
        let mut cells = vec![f64::INFINITY; of.sizes.len()];
        (of.left.iter()).for_each(|a| cells[a] = of.clique_cells(a));
        Self {
            cells,
            fill: vec![f64::NAN; of.sizes.len()],
        }
    }

    /// Returns the attribute with the fewest cells. Among equals, it adds least, then has the
    /// lowest index.
    fn cheapest<const W: usize>(&mut self, of: &Component<'_, W>) -> Option<usize> {
        let none = (f64::INFINITY, Set::<W>::EMPTY);
        let (_, fewest) = of.left.iter().fold(none, |(least, ties), a| {
            let cells = self.cells[a];
            match cells < least {
                true => (cells, Set::only(a)),
                false if cells == least => (least, ties | Set::only(a)),
                false => (least, ties),
            }
        });
        let less = |best, a| match self.fill(of, a) < self.fill(of, best) {
            true => a,
            false => best,
        };
        fewest.iter().reduce(less)
    }

    fn fill<const W: usize>(&mut self, of: &Component<'_, W>, a: usize) -> f64 {
        if self.fill[a].is_nan() {
            self.fill[a] = of.fill(a);
        }
        self.fill[a]
    }

    /// Updates the costs after `a` was taken. The costs of its neighbours change; if it added
    /// edges, so do those of attributes joined to both ends.
    fn change<const W: usize>(&mut self, of: &Component<'_, W>, a: usize, adds_none: bool) {
        let clique = of.rows[a];
        let size = of.sizes[a] as f64;
        for u in clique.without(a).iter() {
            self.fill[u] = f64::NAN;
            self.cells[u] = match adds_none && self.cells[u] < EXACT {
                true => self.cells[u] / size,
                false => of.clique_cells(u),
            };
        }
        if !adds_none {
            of.near(clique).iter().for_each(|u| self.fill[u] = f64::NAN);
        }
    }
}
