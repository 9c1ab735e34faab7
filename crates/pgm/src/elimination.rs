//! Computes marginals across cliques of the junction tree.

use fhaim_domain::Clique;

use crate::factor::{Factor, intersection};
use crate::node_tables::union;
use crate::propagation::{inverse, sum_onto};
use crate::table::{Axis, Embedding};
use crate::{Error, Model};

impl Model {
    /// Computes the marginal over `query` (axes by rank) if no single node has all of it.
    ///
    /// From the leaves up, each node sends its parent the distribution of the queried attributes in
    /// or below it, conditional on their separator. The first node that has all of a component's
    /// queried attributes in or below it ends the climb with a joint distribution.
    pub(crate) fn eliminate(&self, query: &[Axis]) -> Result<Vec<f64>, Error> {
        let nodes = self.propagation.nodes();
        let wanted = self.queried_by_root(query);
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
            let within = intersection(&plan.axes, query);
            let known = received.iter().fold(within, |axes, factor| {
                union(&axes, &intersection(&factor.axes, query))
            });
            ended[root] = known.len() == wanted[root].len();
            let factor = self.combine(node, &received, &known, ended[root])?;
            match plan.parent {
                Some(parent) if !ended[root] => inbox[parent].push(factor),
                _ => parts.push(factor),
            }
        }
        self.outer_product(query, &parts)
    }

    /// Returns the distribution of `known` at a node. At the top of the climb it is joint and
    /// scaled to the total; otherwise it is conditional on the separator.
    fn combine(
        &self,
        node: usize,
        received: &[Factor],
        known: &[Axis],
        top: bool,
    ) -> Result<Factor, Error> {
        let plan = &self.propagation.nodes()[node];
        let separator = if top {
            &[]
        } else {
            &plan.axes[..plan.separator]
        };
        let result = union(separator, known);
        let all = received
            .iter()
            .fold(result.clone(), |axes, f| union(&axes, &f.axes));
        let kept = intersection(&plan.axes, &all);
        let mut own = sum_onto(&plan.axes, self.beliefs.node(plan, node), &kept);
        if !top {
            let inverse: Vec<f64> = (self.beliefs.separator(node).iter())
                .map(|&p| inverse(p))
                .collect();
            Embedding::new(&kept, separator).multiply(&inverse, &mut own);
        }
        let mut factor = Factor {
            axes: kept,
            table: own,
        };
        for (i, other) in received.iter().enumerate() {
            let needed =
                (received[i + 1..].iter()).fold(result.clone(), |axes, f| union(&axes, &f.axes));
            self.affordable(&intersection(&union(&factor.axes, &other.axes), &needed))?;
            factor = factor.contract(other, &needed);
        }
        Ok(Factor {
            table: sum_onto(&factor.axes, &factor.table, &result),
            axes: result,
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

    fn root(&self, node: usize) -> usize {
        let mut node = node;
        while let Some(parent) = self.propagation.nodes()[node].parent {
            node = parent;
        }
        node
    }

    /// Returns the queried axes in the component of each root.
    fn queried_by_root(&self, query: &[Axis]) -> Vec<Vec<Axis>> {
        let nodes = self.propagation.nodes();
        let mut wanted = vec![Vec::new(); nodes.len()];
        for (node, plan) in nodes.iter().enumerate() {
            let root = self.root(node);
            wanted[root] = union(&wanted[root], &intersection(&plan.axes, query));
        }
        wanted
    }
}
