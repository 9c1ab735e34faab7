//! Computes the marginals of many pairs of attributes at once.
//!
//! A pair within a clique is a sum of the clique's cells. The other pairs share their work. From
//! the leaves up, every node gets the conditional distributions, given the state of its separator,
//! of all attributes at or below it, side by side in one matrix.
//!
//! A pair is then settled at the node where its paths meet. It joins an attribute of the node with
//! one below a child, or two attributes below two children. Its marginal is a product of such
//! matrices with marginals of the node's separators. No step processes more states at once than a
//! clique has, and every inner loop runs along a matrix row.

use std::collections::BTreeMap;

use fhaim_domain::Clique;

use crate::measurement::check_clique;
use crate::node_tables::union;
use crate::observations::ranked;
use crate::propagation::{NodePlan, inverse, sum_onto};
use crate::table::{Axis, Embedding, cells};
use crate::{Error, Model, kernel};

impl Model {
    /// Returns the marginals over several cliques, in their order. They equal those of
    /// [`Model::marginal`]. Pairs share their work, so all pairs of a dozen attributes take
    /// milliseconds.
    ///
    /// # Errors
    /// As [`Model::marginal`].
    pub fn pair_marginals(&self, cliques: &[Clique]) -> Result<Vec<Vec<f64>>, Error> {
        let others = cliques
            .iter()
            .filter(|clique| self.extra_pairs.of(clique).is_none());
        let others: Vec<Clique> = others.cloned().collect();
        let mut of_tree = self.pair_marginals_of_tree(&others)?.into_iter();
        let tables = cliques.iter().map(|clique| {
            let beside = self.extra_pairs.of(clique).map(<[f64]>::to_vec);
            // `of_tree` has a marginal for each clique without an extra table, in their order.
            beside.or_else(|| of_tree.next()).unwrap_or_default()
        });
        Ok(tables.collect())
    }

    /// As [`Model::pair_marginals`], from the tree only.
    pub(crate) fn pair_marginals_of_tree(
        &self,
        cliques: &[Clique],
    ) -> Result<Vec<Vec<f64>>, Error> {
        let mut across = Across::new(self);
        let mut marginals = Vec::with_capacity(cliques.len());
        for clique in cliques {
            check_clique(clique, &self.domain)?;
            let axes = ranked(clique, self.resolution.domain(), &self.tree);
            let within = self.propagation.marginal(&self.beliefs, &axes);
            if let (None, [first, second]) = (&within, axes.as_slice()) {
                across.wanted.insert((first.rank, second.rank), Vec::new());
            }
            marginals.push(within);
        }
        across.run();
        let tables = cliques.iter().zip(marginals).map(|(clique, within)| {
            let axes = ranked(clique, self.resolution.domain(), &self.tree);
            match (within, axes.as_slice()) {
                (Some(table), _) => self.expand(clique, &table),
                (None, [first, second]) => {
                    let table = across.wanted.get(&(first.rank, second.rank));
                    self.expand(clique, table.map_or(&[], Vec::as_slice))
                }
                (None, _) => self.marginal_of_tree(clique),
            }
        });
        tables.collect()
    }
}

/// Distributions of several attributes side by side: a matrix with a row for each state of some
/// separator and a column for each value of each attribute.
#[derive(Default)]
struct Beside {
    /// The attributes with their first columns.
    axes: Vec<(Axis, usize)>,
    columns: usize,
    cells: Vec<f64>,
}

impl Beside {
    fn push(&mut self, axis: Axis) {
        self.axes.push((axis, self.columns));
        self.columns += axis.size;
    }

    fn of(axes: impl Iterator<Item = Axis>, rows: usize) -> Self {
        let mut beside = Self::default();
        axes.for_each(|axis| beside.push(axis));
        beside.cells = vec![0.0; rows * beside.columns];
        beside
    }
}

/// The pairs of attributes that no clique has both of.
struct Across<'a> {
    model: &'a Model,
    /// Marginals by pair of ranks, the lower first; empty until computed.
    wanted: BTreeMap<(usize, usize), Vec<f64>>,
}

impl<'a> Across<'a> {
    fn new(model: &'a Model) -> Self {
        Self {
            model,
            wanted: BTreeMap::new(),
        }
    }

    /// Computes all wanted marginals.
    fn run(&mut self) {
        if self.wanted.is_empty() {
            return;
        }
        let nodes = self.model.propagation.nodes();
        let mut children: Vec<Vec<(usize, Beside)>> = nodes.iter().map(|_| Vec::new()).collect();
        let mut roots = Vec::new();
        for node in (0..nodes.len()).rev() {
            let below = std::mem::take(&mut children[node]);
            for (i, (child, first)) in below.iter().enumerate() {
                self.settle_own(node, *child, first);
                for (other, second) in &below[i + 1..] {
                    self.settle_children(node, (*child, first), (*other, second));
                }
            }
            let beside = self.climb(node, &below);
            match nodes[node].parent {
                Some(parent) => children[parent].push((node, beside)),
                None => roots.push(beside),
            }
        }
        self.settle_roots(&roots);
    }

    fn marginal(&self, node: usize, axes: &[Axis]) -> Vec<f64> {
        let plan = self.plan(node);
        sum_onto(&plan.axes, self.model.beliefs.node(plan, node), axes)
    }

    fn plan(&self, node: usize) -> &'a NodePlan {
        &self.model.propagation.nodes()[node]
    }

    fn separator(&self, node: usize) -> &'a [Axis] {
        let plan = self.plan(node);
        &plan.axes[..plan.separator]
    }

    /// Returns the conditional distributions of all attributes at or below a node, given its
    /// separator.
    fn climb(&self, node: usize, below: &[(usize, Beside)]) -> Beside {
        let (plan, separator) = (self.plan(node), self.separator(node));
        let own = plan.axes[plan.separator..].iter().copied();
        let inherited = below
            .iter()
            .flat_map(|(_, b)| b.axes.iter().map(|&(axis, _)| axis));
        let rows = cells(separator);
        let mut result = Beside::of(own.chain(inherited), rows);
        let columns = result.columns;
        for (axis, start) in &result.axes[..plan.axes.len() - plan.separator] {
            let table = self.marginal(node, &union(separator, &[*axis]));
            for (row, values) in table.chunks_exact(axis.size).enumerate() {
                let place = row * columns + start;
                result.cells[place..place + axis.size].copy_from_slice(values);
            }
        }
        let mut start = columns - below.iter().map(|(_, b)| b.columns).sum::<usize>();
        for (child, beside) in below {
            let moved = self.transfer(node, separator, self.separator(*child), beside);
            for row in 0..rows {
                let place = row * columns + start;
                let from = row * beside.columns;
                result.cells[place..place + beside.columns]
                    .copy_from_slice(&moved[from..from + beside.columns]);
            }
            start += beside.columns;
        }
        let rows = result.cells.chunks_exact_mut(columns);
        for (row, &share) in rows.zip(self.model.beliefs.separator(node)) {
            kernel::scale(row, inverse(share));
        }
        result
    }

    /// Converts distributions given the states of `from` to joint ones with the states of `to`,
    /// both within a node. Row t of the result is the sum over f of P(t, f) times row f.
    fn transfer(&self, node: usize, to: &[Axis], from: &[Axis], beside: &Beside) -> Vec<f64> {
        let both = union(to, from);
        let joint = self.marginal(node, &both);
        let (to_rows, from_rows) = (Embedding::new(&both, to), Embedding::new(&both, from));
        let mut result = vec![0.0; cells(to) * beside.columns];
        let places = to_rows.places().zip(from_rows.places());
        let terms = joint
            .iter()
            .zip(places)
            .map(|(&share, (t, f))| (share, t, f));
        kernel::add_rows(&mut result, &beside.cells, beside.columns, terms);
        result
    }

    /// Settles the pairs of a node's own attributes with those below a child.
    fn settle_own(&mut self, node: usize, child: usize, below: &Beside) {
        let plan = self.plan(node);
        for &axis in &plan.axes[plan.separator..] {
            let lacking =
                |&(other, _): &(Axis, usize)| self.wanted.contains_key(&(axis.rank, other.rank));
            if below.axes.iter().any(lacking) {
                let table = self.transfer(node, &[axis], self.separator(child), below);
                let first = [(axis, 0)];
                self.keep(&first, &below.axes, below.columns, &table);
            }
        }
    }

    /// Settles the pairs of attributes below one child with those below another.
    fn settle_children(&mut self, node: usize, first: (usize, &Beside), second: (usize, &Beside)) {
        // Moving the narrower matrix takes less time.
        let ((one, below), (other, beside)) = if first.1.columns <= second.1.columns {
            (first, second)
        } else {
            (second, first)
        };
        let moved = self.transfer(node, self.separator(other), self.separator(one), below);
        let mut table = vec![0.0; below.columns * beside.columns];
        let terms = moved.iter().enumerate().map(|(i, &share)| {
            let (row, column) = (i / below.columns, i % below.columns);
            (share, column, row)
        });
        kernel::add_rows(&mut table, &beside.cells, beside.columns, terms);
        self.keep(&below.axes, &beside.axes, beside.columns, &table);
    }

    /// Settles the pairs of attributes in different components, which are independent.
    fn settle_roots(&mut self, roots: &[Beside]) {
        for (i, first) in roots.iter().enumerate() {
            for second in &roots[i + 1..] {
                let total = self.model.total;
                let table: Vec<f64> = (first.cells.iter())
                    .flat_map(|x| second.cells.iter().map(move |y| total * x * y))
                    .collect();
                self.keep(&first.axes, &second.axes, second.columns, &table);
            }
        }
    }

    /// Copies the wanted marginals from a matrix of many, transposed so that the lower rank comes
    /// first.
    fn keep(
        &mut self,
        rows: &[(Axis, usize)],
        columns: &[(Axis, usize)],
        width: usize,
        table: &[f64],
    ) {
        for &(a, top) in rows {
            for &(b, left) in columns {
                let place = |i: usize, j: usize| (top + i) * width + left + j;
                if let Some(kept) = self.wanted.get_mut(&(a.rank, b.rank)) {
                    let cells = (0..a.size).flat_map(|i| (0..b.size).map(move |j| (i, j)));
                    *kept = cells.map(|(i, j)| table[place(i, j)]).collect();
                } else if let Some(kept) = self.wanted.get_mut(&(b.rank, a.rank)) {
                    let cells = (0..b.size).flat_map(|j| (0..a.size).map(move |i| (i, j)));
                    *kept = cells.map(|(i, j)| table[place(i, j)]).collect();
                }
            }
        }
    }
}
