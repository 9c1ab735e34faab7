//! The tables of a node of the junction tree: its own, one for everything that flows through it,
//! and intermediate tables that save passes over a larger one.

use crate::junction::JunctionTree;
use crate::table::{Axis, cells, is_subset};

/// The flow through a small table, up into it and down out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The potential of a measured clique, and its marginal.
    Potential(usize),
    /// The message of a child node, and the marginal of their separator.
    Message(usize),
}

/// A table of a node before its memory is allocated. The node's own table comes first, carriers
/// before carried tables.
#[derive(Clone, Debug)]
pub(crate) struct NodeTables {
    pub axes: Vec<Axis>,
    /// Index of the table that carries this one; the node's own has none.
    pub carrier: Option<usize>,
    pub flows: Vec<Flow>,
}

/// Returns the tables of a node: its own, one for each distinct set of axes in `flows`, and
/// intermediate tables that save passes over their carrier.
fn outline(own: Vec<Axis>, flows: Vec<(Vec<Axis>, Flow)>) -> Vec<NodeTables> {
    let mut tables = vec![NodeTables {
        axes: own,
        carrier: None,
        flows: Vec::new(),
    }];
    for (axes, flow) in flows {
        match tables.iter_mut().find(|table| table.axes == axes) {
            Some(table) => table.flows.push(flow),
            None => tables.push(NodeTables {
                axes,
                carrier: Some(0),
                flows: vec![flow],
            }),
        }
    }
    while let Some(axes) = best_intermediate(&tables) {
        tables.push(NodeTables {
            axes,
            carrier: Some(0),
            flows: Vec::new(),
        });
    }
    // Carriers come before carried tables, because a table with all axes of another has at least as
    // many axes.
    tables[1..].sort_by_key(|table| std::cmp::Reverse(table.axes.len()));
    for i in 1..tables.len() {
        tables[i].carrier = Some(carrier(&tables, i));
    }
    tables
}

/// Returns the smallest other table that has all axes of table `i`.
fn carrier(tables: &[NodeTables], i: usize) -> usize {
    (0..tables.len())
        .filter(|&j| j != i && is_subset(&tables[i].axes, &tables[j].axes))
        .min_by_key(|&j| (cells(&tables[j].axes), j))
        .unwrap_or(0)
}

/// Returns the axes of the most useful intermediate table. m tables would be carried by it instead
/// of a larger one, and m - 1 passes over the larger one cost more than m over the new one.
fn best_intermediate(tables: &[NodeTables]) -> Option<Vec<Axis>> {
    let carriers: Vec<usize> = (0..tables.len()).map(|i| carrier(tables, i)).collect();
    let mut best = (0, None);
    for top in 0..tables.len() {
        let carried: Vec<&[Axis]> = (1..tables.len())
            .filter(|&i| carriers[i] == top)
            .map(|i| tables[i].axes.as_slice())
            .collect();
        for (i, first) in carried.iter().enumerate() {
            for second in &carried[i + 1..] {
                let union = union(first, second);
                if union == tables[top].axes {
                    continue;
                }
                let members = carried
                    .iter()
                    .filter(|axes| is_subset(axes, &union))
                    .count();
                let saved = (members - 1) * cells(&tables[top].axes);
                let spent = members * cells(&union);
                if saved > spent + best.0 {
                    best = (saved - spent, Some(union));
                }
            }
        }
    }
    best.1
}

/// Returns the axes in either, by rank.
pub(crate) fn union(a: &[Axis], b: &[Axis]) -> Vec<Axis> {
    let mut all: Vec<Axis> = a.iter().chain(b).copied().collect();
    all.sort_unstable_by_key(|axis| axis.rank);
    all.dedup();
    all
}

/// Returns the tables of every node, with each clique at the smallest node that has it.
pub(crate) fn outlines(
    tree: &JunctionTree,
    sizes: &[usize],
    cliques: &[Vec<Axis>],
) -> Vec<Vec<NodeTables>> {
    let axes = |attributes: &[usize]| -> Vec<Axis> {
        (attributes.iter())
            .map(|&a| Axis {
                rank: tree.rank[a],
                size: sizes[a],
            })
            .collect()
    };
    let own: Vec<Vec<Axis>> = tree.nodes.iter().map(|node| axes(&node.axes)).collect();
    let mut flows = vec![Vec::new(); own.len()];
    for (child, node) in tree.nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            flows[parent].push((axes(&node.axes[..node.separator]), Flow::Message(child)));
        }
    }
    for (i, clique) in cliques.iter().enumerate() {
        let host = (0..own.len())
            .filter(|&node| is_subset(clique, &own[node]))
            .min_by_key(|&node| (cells(&own[node]), node));
        if let Some(host) = host {
            flows[host].push((clique.clone(), Flow::Potential(i)));
        }
    }
    (own.into_iter().zip(flows))
        .map(|(own, flows)| outline(own, flows))
        .collect()
}
