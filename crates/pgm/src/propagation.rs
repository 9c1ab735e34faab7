//! Belief propagation on a junction tree (calibration), planned once and run many times.
//!
//! Potentials are small log-tables over measured cliques, each of which is hosted by one node of
//! the tree. A node's weights are the exponentials of the sums of its potentials and of its
//! children's messages.
//!
//! On the way up, a node sums the weights of the cells that share a separator state, which are
//! contiguous. The logarithms of the sums are its message. On the way down, each block is scaled to
//! the parent's marginal of its separator state, and smaller marginals are summed.
//!
//! Only the small tables are exponentiated, each relative to its largest entry. The node's weights
//! are products of these exponentials. Such a product may lose digits to underflow, if some block's
//! sum is below 1e-200. The node is then computed again with sums of logarithms and a maximum for
//! each block. This keeps the digits of a separator state that one side considers almost
//! impossible, because the other side may be equally sure of the opposite.
//!
//! The small tables of a node form a tree: a table is carried by the node's own table or by a
//! smaller one that has all its axes. This minimises the passes over large tables.

use std::ops::Range;

use crate::blocked::{self, SLAB, Weights};
use crate::junction::{JunctionTree, Node};
use crate::node_tables::{Flow, NodeTables, outlines};
use crate::resolution::Folding;
use crate::table::{Axis, Embedding, cells, is_subset};
use crate::{FitWork, kernel};

/// If the sum of a block of weights, each of which is at most 1, exceeds this, none of the largest
/// weights has underflowed.
pub(crate) const MIN_SUM: f64 = 1e-200;

/// A table of a node, with its range in the node's memory.
#[derive(Clone, Debug)]
struct SmallTable {
    axes: Vec<Axis>,
    range: Range<usize>,
    carrier: Range<usize>,
    embedding: Embedding,
    flows: Vec<Flow>,
    /// Indices of the tables that it carries.
    carried: Vec<usize>,
}

/// A node, with everything needed to pass a message.
#[derive(Clone, Debug)]
pub(crate) struct NodePlan {
    pub axes: Vec<Axis>,
    /// Number of leading axes that are shared with the parent.
    pub separator: usize,
    pub parent: Option<usize>,
    cells: usize,
    /// Flows of the node's own table.
    flows: Vec<Flow>,
    /// Indices of the small tables that the node's own table carries.
    carried: Vec<usize>,
    /// Small tables, carriers before carried ones.
    tables: Vec<SmallTable>,
    /// Number of cells of all tables.
    memory: usize,
}

impl NodePlan {
    fn new(node: &Node, outlines: &[NodeTables]) -> Self {
        let mut starts = Vec::with_capacity(outlines.len());
        let mut memory = 0;
        for table in outlines {
            starts.push(memory);
            memory += cells(&table.axes);
        }
        let range = |i: usize| starts[i]..starts[i] + cells(&outlines[i].axes);
        // Indices of small tables do not count the node's own table.
        let carried = |by: usize| -> Vec<usize> {
            let by = Some(by);
            (1..outlines.len())
                .filter(|&i| outlines[i].carrier == by)
                .map(|i| i - 1)
                .collect()
        };
        let tables = (outlines.iter().enumerate())
            .filter_map(|(i, table)| {
                let carrier = table.carrier?;
                Some(SmallTable {
                    axes: table.axes.clone(),
                    range: range(i),
                    carrier: range(carrier),
                    embedding: Embedding::new(&outlines[carrier].axes, &table.axes),
                    flows: table.flows.clone(),
                    carried: carried(i),
                })
            })
            .collect();
        Self {
            axes: outlines[0].axes.clone(),
            separator: node.separator,
            parent: node.parent,
            cells: cells(&outlines[0].axes),
            flows: outlines[0].flows.clone(),
            carried: carried(0),
            tables,
            memory,
        }
    }

    /// Returns the range, the flows and the carried tables of the node's own table (0) or of a
    /// small one (from 1).
    fn table(&self, i: usize) -> (Range<usize>, &[Flow], &[usize]) {
        match i.checked_sub(1) {
            None => (0..self.cells, &self.flows, &self.carried),
            Some(i) => {
                let table = &self.tables[i];
                (table.range.clone(), &table.flows, &table.carried)
            }
        }
    }

    fn separator_cells(&self) -> usize {
        cells(&self.axes[..self.separator])
    }

    /// Returns the number of cells that share a separator state.
    pub fn block(&self) -> usize {
        cells(&self.axes[self.separator..])
    }
}

/// A calibration plan: the tree with all tables and their embeddings.
#[derive(Clone, Debug)]
pub(crate) struct Propagation {
    nodes: Vec<NodePlan>,
    /// Range of each potential in the list of all potentials.
    potentials: Vec<Range<usize>>,
}

/// The memory of a calibration. After the calibration, it has the marginals of all nodes.
#[derive(Clone, Debug)]
pub(crate) struct Beliefs {
    /// For each node, its own table and then the small ones.
    tables: Vec<Vec<f64>>,
    /// For each node, the sums of its blocks on the way up.
    sums: Vec<Vec<f64>>,
    /// For each node, the message to its parent. After calibration, the separator's marginal.
    messages: Vec<Vec<f64>>,
}

impl Beliefs {
    /// Returns the marginal of a whole node.
    pub fn node(&self, plan: &NodePlan, node: usize) -> &[f64] {
        &self.tables[node][..plan.cells]
    }

    /// Returns the marginal of a node's separator; for a root, one cell with the total.
    pub fn separator(&self, node: usize) -> &[f64] {
        &self.messages[node]
    }
}

impl Propagation {
    /// Plans for potentials over `cliques` (axes by rank, each within a node of the tree).
    pub fn new(tree: &JunctionTree, sizes: &[usize], cliques: &[Vec<Axis>]) -> Self {
        let outlines = outlines(tree, sizes, cliques);
        let nodes = (tree.nodes.iter().zip(outlines))
            .map(|(node, outlines)| NodePlan::new(node, &outlines))
            .collect();
        let mut end = 0;
        let potentials = (cliques.iter())
            .map(|axes| {
                end += cells(axes);
                end - cells(axes)..end
            })
            .collect();
        Self { nodes, potentials }
    }

    /// Returns zeroed memory for a calibration.
    pub fn beliefs(&self) -> Beliefs {
        let separators = || -> Vec<Vec<f64>> {
            (self.nodes.iter())
                .map(|n| vec![0.0; n.separator_cells()])
                .collect()
        };
        Beliefs {
            tables: self.nodes.iter().map(|n| vec![0.0; n.memory]).collect(),
            sums: separators(),
            messages: separators(),
        }
    }

    /// Returns the bytes of the plan and of its beliefs.
    pub fn bytes(&self) -> usize {
        let node = |plan: &NodePlan| {
            let offsets: usize = plan.tables.iter().map(|t| t.embedding.held_bytes()).sum();
            (plan.memory + 2 * plan.separator_cells()) * size_of::<f64>() + offsets
        };
        self.nodes.iter().map(node).sum()
    }

    /// Returns the number of cells of all nodes.
    pub fn cells(&self) -> usize {
        self.nodes.iter().map(|plan| plan.cells).sum()
    }

    /// Returns the work of a calibration.
    pub fn work(&self) -> FitWork {
        let node = |plan: &NodePlan| -> usize {
            let tables = (0..=plan.tables.len()).map(|i| plan.table(i));
            let passed = tables.map(|(range, _, carried)| range.len() * (2 * carried.len() + 2));
            passed.sum()
        };
        FitWork {
            cells: self.nodes.iter().map(node).sum::<usize>() as u64,
            products: 0,
        }
    }

    /// Returns the nodes of the tree, parents before children.
    pub fn nodes(&self) -> &[NodePlan] {
        &self.nodes
    }

    /// Returns the marginal over `axes` by summing the smallest table that has them all, or `None`
    /// if no node has them all.
    pub fn marginal(&self, beliefs: &Beliefs, axes: &[Axis]) -> Option<Vec<f64>> {
        let tables = (self.nodes.iter().zip(&beliefs.tables)).flat_map(|(plan, memory)| {
            let own = (plan.axes.as_slice(), &memory[..plan.cells]);
            let small = (plan.tables.iter()).map(|t| (t.axes.as_slice(), &memory[t.range.clone()]));
            std::iter::once(own).chain(small)
        });
        let (large, table) = tables
            .filter(|(large, _)| is_subset(axes, large))
            .min_by_key(|(_, table)| table.len())?;
        Some(sum_onto(large, table, axes))
    }

    /// Calibrates from log-potentials of the measured cliques to their marginals. Applies a folding
    /// if there is one.
    pub fn calibrate_folded(
        &self,
        folding: Option<&mut Folding>,
        potentials: &[f64],
        total: f64,
        beliefs: &mut Beliefs,
        marginals: &mut [f64],
    ) {
        let Some(folding) = folding else {
            return self.calibrate(potentials, total, beliefs, marginals);
        };
        folding.fold(potentials);
        self.calibrate(&folding.potentials, total, beliefs, &mut folding.marginals);
        folding.unfold(potentials, marginals);
    }

    /// Calibrates from log-potentials to the marginals of a distribution scaled to `total`.
    pub fn calibrate(
        &self,
        potentials: &[f64],
        total: f64,
        beliefs: &mut Beliefs,
        marginals: &mut [f64],
    ) {
        kernel::with_avx2!(
            self.calibrate_avx2(potentials, total, beliefs, marginals),
            self.calibrate_portable(potentials, total, beliefs, marginals)
        );
    }

    /// [`Propagation::calibrate_portable`] with wider vectors; the results have the same bits.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn calibrate_avx2(
        &self,
        potentials: &[f64],
        total: f64,
        beliefs: &mut Beliefs,
        marginals: &mut [f64],
    ) {
        self.calibrate_portable(potentials, total, beliefs, marginals);
    }

    #[inline(always)]
    fn calibrate_portable(
        &self,
        potentials: &[f64],
        total: f64,
        beliefs: &mut Beliefs,
        marginals: &mut [f64],
    ) {
        for node in (0..self.nodes.len()).rev() {
            if !self.send_up(node, potentials, beliefs) {
                self.send_up_in_logarithms(node, potentials, beliefs);
            }
        }
        for (node, plan) in self.nodes.iter().enumerate() {
            if plan.parent.is_none() {
                beliefs.messages[node][0] = total;
            }
            self.send_down(node, beliefs, marginals);
        }
    }

    /// Adds everything that flows up into a table.
    #[inline(always)]
    fn collect(
        &self,
        flows: &[Flow],
        potentials: &[f64],
        messages: &[Vec<f64>],
        table: &mut [f64],
    ) {
        for flow in flows {
            match *flow {
                Flow::Potential(i) => kernel::add(table, &potentials[self.potentials[i].clone()]),
                Flow::Message(child) => kernel::add(table, &messages[child]),
            }
        }
    }

    /// Computes a node's weights, the sums of its blocks, and its message. Returns whether all sums
    /// are far from underflow.
    #[inline(always)]
    fn send_up(&self, node: usize, potentials: &[f64], beliefs: &mut Beliefs) -> bool {
        let plan = &self.nodes[node];
        let Beliefs {
            tables,
            sums,
            messages,
        } = beliefs;
        let memory = &mut tables[node];
        let mut log_scale = 0.0;
        let mut sound = true;
        for i in (0..=plan.tables.len()).rev() {
            // The order is from the last small table to the node's own, which has index 0.
            let (range, flows, carried) = plan.table(i);
            let (own, smaller) = memory[range.start..].split_at_mut(range.len());
            let mut top = None;
            if !flows.is_empty() {
                own.fill(0.0);
                self.collect(flows, potentials, messages, own);
                let largest = kernel::max(own);
                log_scale += largest;
                top = Some(largest);
            }
            let carried = carried.iter().map(|&j| {
                let table = &plan.tables[j];
                let from = &smaller[table.range.start - range.end..][..table.range.len()];
                (&table.embedding, from)
            });
            let weights = Weights {
                top,
                carried: carried.collect(),
            };
            match i {
                0 => sound = weights.fill_blocks(own, plan.block(), &mut sums[node], MIN_SUM),
                _ => weights.fill(own),
            }
        }
        let parts = sums[node].chunks(SLAB);
        let parts = parts.zip(messages[node].chunks_mut(SLAB));
        blocked::all(
            parts,
            sums[node].len(),
            |(sums, messages): (&[f64], &mut [f64])| {
                for (sum, message) in sums.iter().zip(messages) {
                    *message = log_scale + sum.ln();
                }
                true
            },
        );
        sound
    }

    /// [`Propagation::send_up`] with sums of logarithms, each block relative to its largest entry.
    #[inline(always)]
    fn send_up_in_logarithms(&self, node: usize, potentials: &[f64], beliefs: &mut Beliefs) {
        let plan = &self.nodes[node];
        let Beliefs {
            tables,
            sums,
            messages,
        } = beliefs;
        let memory = &mut tables[node];
        memory.fill(0.0);
        self.collect(&plan.flows, potentials, messages, &mut memory[..plan.cells]);
        for table in plan.tables.iter().rev() {
            let (larger, rest) = memory.split_at_mut(table.range.start);
            let own = &mut rest[..table.range.len()];
            self.collect(&table.flows, potentials, messages, own);
            table.embedding.add(own, &mut larger[table.carrier.clone()]);
        }
        let blocks = memory[..plan.cells].chunks_exact_mut(plan.block());
        for (block, message) in blocks.zip(&mut messages[node]) {
            *message = kernel::max(block);
            kernel::shift(block, -*message);
        }
        kernel::exponentiate_nonpositive(&mut memory[..plan.cells]);
        let blocks = memory[..plan.cells].chunks_exact(plan.block());
        for ((block, sum), message) in blocks.zip(&mut sums[node]).zip(&mut messages[node]) {
            *sum = kernel::sum(block);
            *message += sum.ln();
        }
    }

    /// Scales a node's blocks to the separator's marginal, and passes its marginals on.
    #[inline(always)]
    fn send_down(&self, node: usize, beliefs: &mut Beliefs, marginals: &mut [f64]) {
        let plan = &self.nodes[node];
        let Beliefs {
            tables,
            sums,
            messages,
        } = beliefs;
        let memory = &mut tables[node];
        let own = &mut memory[..plan.cells];
        blocked::scale_blocks(own, plan.block(), &sums[node], &messages[node]);
        // Slices of the node's own table and of the small ones behind it.
        let ends = plan.tables.iter().map(|table| table.range.len());
        let mut rest = &mut memory[..];
        let mut slices = Vec::with_capacity(plan.tables.len() + 1);
        for cells in std::iter::once(plan.cells).chain(ends) {
            let (slice, others) = rest.split_at_mut(cells);
            slices.push(slice);
            rest = others;
        }
        for i in 0..slices.len() {
            let (carriers, others) = slices.split_at_mut(i + 1);
            let (_, _, carried) = plan.table(i);
            // Indices of carried tables do not count the node's own table.
            let tables = (i..).zip(others).filter(|(j, _)| carried.contains(j));
            let tables = tables.map(|(j, small)| (&plan.tables[j].embedding, &mut **small));
            blocked::sum_onto_all(carriers[i], tables);
        }
        let mut hand_out = |flows: &[Flow], table: &[f64]| {
            for flow in flows {
                let to = match *flow {
                    Flow::Potential(i) => &mut marginals[self.potentials[i].clone()],
                    Flow::Message(child) => &mut messages[child],
                };
                to.copy_from_slice(table);
            }
        };
        hand_out(&plan.flows, &memory[..plan.cells]);
        for table in &plan.tables {
            hand_out(&table.flows, &memory[table.range.clone()]);
        }
    }
}

/// Returns the factor that divides a conditional distribution by `share`. Returns 0 for states that
/// are almost impossible, because the inverse of a number that has lost digits may be infinite.
pub(crate) fn inverse(share: f64) -> f64 {
    if share > MIN_SUM { share.recip() } else { 0.0 }
}

/// Sums a table onto some of its axes.
pub(crate) fn sum_onto(large: &[Axis], table: &[f64], small: &[Axis]) -> Vec<f64> {
    let mut sums = vec![0.0; cells(small)];
    Embedding::new(large, small).sum(table, &mut sums);
    sums
}

/// Returns the bytes that calibration over `tree` will take. Every node's cells must fit `usize`.
pub(crate) fn bytes(tree: &JunctionTree, sizes: &[usize], cliques: &[Vec<Axis>]) -> Option<usize> {
    let mut sum = 0usize;
    for tables in outlines(tree, sizes, cliques) {
        for table in &tables {
            let offsets = table.carrier.map_or(0, |carrier| {
                Embedding::bytes(&tables[carrier].axes, &table.axes)
            });
            let own = cells(&table.axes).checked_mul(size_of::<f64>())?;
            sum = sum.checked_add(own)?.checked_add(offsets)?;
        }
    }
    for node in tree.nodes.iter() {
        let separator = node.axes[..node.separator].iter().map(|&a| sizes[a]);
        sum = sum.checked_add(separator.product::<usize>() * 2 * size_of::<f64>())?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverse_of_an_underflowed_share_is_zero() {
        assert_eq!(inverse(0.25), 4.0);
        for share in [0.0, f64::from_bits(1), 1e-310] {
            assert_eq!(inverse(share), 0.0);
        }
    }
}
