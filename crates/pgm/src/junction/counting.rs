//! Cells of the junction tree of one component of a graph, without the tree.
//!
//! What [`super::Elimination`] says of a graph's cells, faster, and the same to the last cell:
//!
//! * Weighted min-fill takes attributes that add no edge (simplicial ones) before all others.
//!   Taking one leaves the others simplicial, so whichever goes first the same ones go, and the
//!   same graph is left: they need no order. The maximal cliques are those of the graph with all
//!   edges added, whatever the order they are found in.
//! * Fewest cells needs costs of edges only among attributes with as few cells.
//! * Once fewest cells has added all edges that min-fill does, it comes to no fewer cells, where all
//!   sizes are at least 2: from a chordal graph to another with more edges there is a chain of
//!   chordal graphs, each with one edge more (Rose, Tarjan and Lueker 1976, lemma 2), and an edge
//!   x y between the common neighbours S puts a clique of s x y cells in the place of at most two, of
//!   s x + s y <= s x y.
//!
//! Costs are integers as long as they stay below 2^53: then sums and products are exact, so that
//! the order in which they are taken does not matter.

use super::set::Set;

/// Floating-point integers below this are exact.
const EXACT: f64 = (1u64 << f64::MANTISSA_DIGITS) as f64;

/// One component of a graph.
#[derive(Clone, Debug)]
pub(super) struct Component<'a, const W: usize> {
    sizes: &'a [usize],
    left: Set<W>,
    /// Of each attribute that is left the clique that taking it would form: itself and the neighbours that are left.
    rows: Vec<Set<W>>,
    /// The attributes taken, and their cliques.
    taken: Vec<(usize, Set<W>)>,
}

impl<'a, const W: usize> Component<'a, W> {
    /// The component of these attributes with their neighbours; none where costs are not exact: where the sum of sizes
    /// has a square from 2^53 on, or some size is 0.
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

    /// Cells by weighted min-fill, or `None` if they do not fit `usize`; and the edges that it adds.
    pub fn weighted_fill(mut self) -> (Option<usize>, Vec<[usize; 2]>) {
        let mut added = Vec::new();
        // Those that may have become simplicial.
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

    /// Cells by the rule of fewest cells, or `None` if they do not fit `usize`.
    pub fn fewest_cells(self) -> Option<usize> {
        self.fewest_cells_unless(|_| false).flatten()
    }

    /// As [`Self::fewest_cells`]; none where it is certain that they are no fewer than those by weighted min-fill, which
    /// adds these edges.
    pub fn fewest_cells_without(self, mut added: Vec<[usize; 2]>) -> Option<Option<usize>> {
        if self.left.iter().any(|a| self.sizes[a] < 2) {
            return Some(self.fewest_cells());
        }
        self.fewest_cells_unless(|of| {
            // What was taken still has its neighbours of then.
            added.retain(|&[u, v]| !of.rows[u].has(v) && !of.rows[v].has(u));
            added.is_empty()
        })
    }

    /// Stops where `stops` says so, which is asked at the beginning and whenever edges were added.
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

    /// The edges that taking `a` would add.
    fn missing(&self, a: usize) -> impl Iterator<Item = [usize; 2]> + '_ {
        let clique = self.rows[a];
        let missing = move |u: usize| clique.minus(&self.rows[u]).iter().map(move |v| [u, v]);
        clique.iter().flat_map(missing).filter(|[u, v]| u < v)
    }

    /// Whether the neighbours of `a` are joined to one another, so that taking it adds no edge.
    fn is_simplicial(&self, a: usize) -> bool {
        let clique = self.rows[a];
        (clique.iter()).all(|u| clique.minus(&self.rows[u]).is_empty())
    }

    /// Sum of the products of sizes over the edges that taking `a` would add, each counted from both ends.
    fn fill(&self, a: usize) -> f64 {
        let clique = self.rows[a];
        let size = |u: usize| self.sizes[u] as f64;
        let missing = |u: usize| clique.minus(&self.rows[u]).iter().map(size).sum::<f64>();
        clique.iter().map(|u| size(u) * missing(u)).sum()
    }

    /// Cells of the clique that taking `a` would form, multiplied in the order of [`super::Cost`]: it decides about
    /// ties where they are not exact.
    fn clique_cells(&self, a: usize) -> f64 {
        let around = self.rows[a].without(a);
        (around.iter()).fold(self.sizes[a] as f64, |n, u| n * self.sizes[u] as f64)
    }

    /// The attribute that adds least; of several that with the fewest cells, then the first.
    fn least_fill(&self) -> Option<usize> {
        let keyed = self.left.iter().map(|a| (self.fill(a), a));
        let best = keyed.reduce(|best, next| {
            let fewer = || self.clique_cells(next.1) < self.clique_cells(best.1);
            let less = next.0 < best.0 || (next.0 == best.0 && fewer());
            if less { next } else { best }
        });
        best.map(|(_, a)| a)
    }

    /// Those left whose costs may have changed, where edges were added in a clique.
    fn near(&self, clique: Set<W>) -> Set<W> {
        let joined = |&b: &usize| (self.rows[b] & clique).has_two();
        (self.left.iter().filter(joined)).fold(Set::EMPTY, |near, b| near | Set::only(b))
    }

    /// Takes `a` out and joins its neighbours. Whether its clique was all that was left: those of the others are part
    /// of it.
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

    /// The sum of the cells of the maximal cliques among those formed; see [`super::Elimination`].
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

/// What is known of the costs of what is left.
struct Costs {
    /// Cells of the clique that taking each would form.
    cells: Vec<f64>,
    /// Costs of the edges that each would add, as [`Component::fill`] has them; not a number where they are not known.
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

    /// The attribute with the fewest cells; of several the one that adds least, then the first.
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

    /// `a` was taken: the costs of its neighbours are others, and where it added edges those of attributes joined to
    /// both ends.
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
