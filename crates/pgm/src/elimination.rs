//! Computes marginals across cliques of the junction tree.

use std::borrow::Cow;

use fhaim_domain::Clique;

use crate::node_tables::union;
use crate::propagation::{inverse, sum_onto};
use crate::table::{Axis, Embedding, cells};
use crate::{Error, Model};

/// A table with its axes.
struct Factor {
    axes: Vec<Axis>,
    table: Vec<f64>,
}

/// One value of an axis.
#[derive(Clone, Copy)]
struct AxisValue {
    axis: Axis,
    value: usize,
}

impl Model {
    /// Computes the marginal over `query` (axes by rank) if no single node has all of it.
    ///
    /// If a table of the elimination is above the model's limit, the marginal is computed in
    /// slices, one for each value of the table's largest queried axis. No table of a slice has this
    /// axis.
    pub(crate) fn eliminate(&self, query: &[Axis]) -> Result<Vec<f64>, Error> {
        self.affordable(query)?;
        let result = self.eliminate_slice(query, None);
        let Err(Error::TooLarge { largest, .. }) = &result else {
            return result;
        };
        let queried = query.iter().filter(|&&axis| self.has(largest, axis));
        match queried.max_by_key(|axis| axis.size) {
            Some(&axis) => self.eliminate_by_value(query, axis),
            None => result,
        }
    }

    /// Computes the marginal over `query` from one slice for each value of `axis`.
    fn eliminate_by_value(&self, query: &[Axis], axis: Axis) -> Result<Vec<f64>, Error> {
        let row: usize = (query.iter().filter(|other| other.rank > axis.rank))
            .map(|other| other.size)
            .product();
        let mut marginal = vec![0.0; cells(query)];
        for value in 0..axis.size {
            let slice = self.eliminate_slice(query, Some(AxisValue { axis, value }))?;
            let slabs = marginal.chunks_exact_mut(axis.size * row);
            for (slab, cells) in slabs.zip(slice.chunks_exact(row)) {
                slab[value * row..][..row].copy_from_slice(cells);
            }
        }
        Ok(marginal)
    }

    /// Computes the marginal over `query`, or only the cells with one value of one of its axes.
    ///
    /// From the leaves up, each node sends its parent the distribution of the queried attributes in
    /// or below it, conditional on their separator. The first node that has all of a component's
    /// queried attributes in or below it ends the climb with a joint distribution.
    fn eliminate_slice(&self, query: &[Axis], at: Option<AxisValue>) -> Result<Vec<f64>, Error> {
        let nodes = self.propagation.nodes();
        let known = self.queried_below(query);
        let mut inbox: Vec<Vec<Factor>> = nodes.iter().map(|_| Vec::new()).collect();
        let mut ended = vec![false; nodes.len()];
        let mut parts = Vec::new();
        for node in (0..nodes.len()).rev() {
            let (plan, root) = (&nodes[node], self.root(node));
            let received = std::mem::take(&mut inbox[node]);
            let own = intersection(&plan.axes[plan.separator..], query);
            if ended[root] || (own.is_empty() && received.is_empty()) {
                continue;
            }
            ended[root] = known[node].len() == known[root].len();
            let factor = self.combine(node, &received, &known[node], ended[root], at)?;
            match plan.parent {
                Some(parent) if !ended[root] => inbox[parent].push(factor),
                _ => parts.push(factor),
            }
        }
        self.outer_product(&others(query, at), &parts)
    }

    /// Returns the distribution of `known` at a node. At the top of the climb it is joint and
    /// scaled to the total; otherwise it is conditional on the separator.
    fn combine(
        &self,
        node: usize,
        received: &[Factor],
        known: &[Axis],
        top: bool,
        at: Option<AxisValue>,
    ) -> Result<Factor, Error> {
        let plan = &self.propagation.nodes()[node];
        let separator = if top {
            &[]
        } else {
            &plan.axes[..plan.separator]
        };
        let result = others(&union(separator, known), at);
        let all = received
            .iter()
            .fold(result.clone(), |axes, f| union(&axes, &f.axes));
        let belief = slice(&plan.axes, self.beliefs.node(plan, node), at);
        let kept = intersection(&belief.axes, &all);
        let mut own = sum_onto(&belief.axes, &belief.table, &kept);
        if !top {
            let sums = slice(separator, self.beliefs.separator(node), at);
            let inverse: Vec<f64> = sums.table.iter().map(|&p| inverse(p)).collect();
            Embedding::new(&kept, &sums.axes).multiply(&inverse, &mut own);
        }
        let mut factor = Factor {
            axes: kept,
            table: own,
        };
        for (i, other) in received.iter().enumerate() {
            let needed =
                (received[i + 1..].iter()).fold(result.clone(), |axes, f| union(&axes, &f.axes));
            factor = self.multiply(&factor, other, &needed)?;
        }
        Ok(Factor {
            table: sum_onto(&factor.axes, &factor.table, &result),
            axes: result,
        })
    }

    /// Returns the product of two factors, summed onto the `needed` ones of its axes.
    fn multiply(&self, a: &Factor, b: &Factor, needed: &[Axis]) -> Result<Factor, Error> {
        let all = union(&a.axes, &b.axes);
        let mut product = vec![0.0; self.affordable(&all)?];
        Embedding::new(&all, &a.axes).copy(&a.table, &mut product);
        Embedding::new(&all, &b.axes).multiply(&b.table, &mut product);
        let axes = intersection(&all, needed);
        Ok(Factor {
            table: sum_onto(&all, &product, &axes),
            axes,
        })
    }

    /// Returns the joint distribution of independent parts, each scaled to the total.
    fn outer_product(&self, query: &[Axis], parts: &[Factor]) -> Result<Vec<f64>, Error> {
        let mut product = vec![self.total; self.affordable(query)?];
        for part in parts {
            let shares: Vec<f64> = part.table.iter().map(|x| x / self.total).collect();
            Embedding::new(query, &part.axes).multiply(&shares, &mut product);
        }
        Ok(product)
    }

    /// Returns the number of cells of a table, if it is within the model's limit.
    fn affordable(&self, axes: &[Axis]) -> Result<usize, Error> {
        let cells = (axes.iter()).try_fold(1usize, |n, axis| n.checked_mul(axis.size));
        self.check_cells(&self.clique(axes), cells)?;
        Ok(cells.unwrap_or(usize::MAX))
    }

    fn clique(&self, axes: &[Axis]) -> Clique {
        let rank = &self.tree.rank;
        Clique::new((0..rank.len()).filter(|&a| axes.iter().any(|axis| axis.rank == rank[a])))
    }

    /// Checks whether a clique has the attribute of an axis.
    fn has(&self, clique: &Clique, axis: Axis) -> bool {
        let rank = &self.tree.rank;
        clique.attributes().iter().any(|&a| rank[a] == axis.rank)
    }

    fn root(&self, node: usize) -> usize {
        let mut node = node;
        while let Some(parent) = self.propagation.nodes()[node].parent {
            node = parent;
        }
        node
    }

    /// Returns the queried axes of each node and of the nodes below it.
    fn queried_below(&self, query: &[Axis]) -> Vec<Vec<Axis>> {
        let nodes = self.propagation.nodes();
        let mut below: Vec<_> = (nodes.iter())
            .map(|plan| intersection(&plan.axes, query))
            .collect();
        for (node, plan) in nodes.iter().enumerate().rev() {
            if let Some(parent) = plan.parent {
                below[parent] = union(&below[parent], &below[node]);
            }
        }
        below
    }
}

/// Returns the axes without the one whose value is given.
fn others(axes: &[Axis], at: Option<AxisValue>) -> Vec<Axis> {
    let is_other = |axis: &&Axis| at.is_none_or(|at| at.axis != **axis);
    axes.iter().filter(is_other).copied().collect()
}

/// A table that may be borrowed, with its axes.
struct Slice<'a> {
    axes: Vec<Axis>,
    table: Cow<'a, [f64]>,
}

/// Returns the cells of a table with the given value, or all if the table does not have the axis.
fn slice<'a>(axes: &[Axis], table: &'a [f64], at: Option<AxisValue>) -> Slice<'a> {
    let place = at.and_then(|at| Some((axes.iter().position(|&axis| axis == at.axis)?, at.value)));
    let table = match place {
        None => Cow::Borrowed(table),
        Some((place, value)) => {
            let row = cells(&axes[place + 1..]);
            let slabs = table.chunks_exact(axes[place].size * row);
            Cow::Owned(
                slabs
                    .flat_map(|slab| &slab[value * row..][..row])
                    .copied()
                    .collect(),
            )
        }
    };
    Slice {
        axes: others(axes, at),
        table,
    }
}

/// Returns the axes in both, by rank.
fn intersection(a: &[Axis], b: &[Axis]) -> Vec<Axis> {
    a.iter().filter(|axis| b.contains(axis)).copied().collect()
}
