//! Counts the cells of a model that grows clique by clique.

use fhaim_domain::Clique;

use super::counting::Component;
use super::set::Set;
use super::{Adjacency, Elimination, ModelGraph, Rule, is_member, members};

/// A model's graph for a planner that weighs many moves and makes few. Its answers equal those of
/// [`ModelGraph`].
///
/// An elimination's choices in a component depend only on its earlier choices in that component.
/// Components can therefore be eliminated separately, and their cells added up. A move is weighed
/// by the component that its attributes end up in.
#[derive(Clone, Debug)]
pub struct GrowingModel {
    graph: ModelGraph,
    parts: Vec<GraphPart>,
}

/// A component of the graph and its cells under both rules.
#[derive(Clone, Debug)]
struct GraphPart {
    /// A row of bits.
    attributes: Vec<u64>,
    cells: Cells,
}

/// Cells under both rules, `None` where they do not fit `usize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cells {
    fill: Option<usize>,
    small: Option<usize>,
}

impl Cells {
    const NONE: Self = Self {
        fill: Some(0),
        small: Some(0),
    };

    /// Returns the cells of a component. With `rough`, the number of the second rule is replaced by
    /// that of min-fill if it is certainly at least as large.
    fn of(graph: &ModelGraph, attributes: &[u64], rough: bool) -> Self {
        let counted = match graph.adjacency.words {
            0..=1 => Self::counted::<1>(graph, attributes, rough),
            2 => Self::counted::<2>(graph, attributes, rough),
            3..=4 => Self::counted::<4>(graph, attributes, rough),
            5..=8 => Self::counted::<8>(graph, attributes, rough),
            9..=16 => Self::counted::<16>(graph, attributes, rough),
            _ => None,
        };
        counted.unwrap_or_else(|| Self::eliminated(graph, attributes))
    }

    /// Returns `None` if the graph does not fit [`Component`].
    fn counted<const W: usize>(
        graph: &ModelGraph,
        attributes: &[u64],
        rough: bool,
    ) -> Option<Self> {
        let row = |a| Set::of_row(graph.adjacency.row(a));
        let component = Component::<W>::new(&graph.sizes, Set::of_row(attributes), row)?;
        let (fill, added) = component.clone().weighted_fill();
        let small = match rough {
            true => component.fewest_cells_without(added).unwrap_or(fill),
            false => component.fewest_cells(),
        };
        Some(Self { fill, small })
    }

    /// Counts by eliminating the component, for any sizes.
    fn eliminated(graph: &ModelGraph, attributes: &[u64]) -> Self {
        let ModelGraph { sizes, adjacency } = graph;
        let cells = |rule| {
            let left = members(attributes).collect();
            Elimination::of(left, sizes, adjacency, rule).cells(sizes)
        };
        Self {
            fill: cells(Rule::WeightedFill),
            small: cells(Rule::Cells),
        }
    }

    fn plus(self, other: Self) -> Self {
        let sum = |x: Option<usize>, y: Option<usize>| x?.checked_add(y?);
        Self {
            fill: sum(self.fill, other.fill),
            small: sum(self.small, other.small),
        }
    }

    /// Returns the cells of the better rule: weighted min-fill, unless the other has fewer.
    fn best(self) -> Option<usize> {
        match self.is_fewest_by_fill() {
            true => self.fill,
            false => self.small,
        }
    }

    fn is_fewest_by_fill(self) -> bool {
        let count = |cells: Option<usize>| cells.unwrap_or(usize::MAX);
        count(self.fill) <= count(self.small)
    }
}

impl GrowingModel {
    /// Returns the model of a graph, and counts the cells of each component.
    pub fn new(graph: ModelGraph) -> Self {
        let mut new = Self {
            graph,
            parts: Vec::new(),
        };
        let mut seen = vec![0; new.graph.adjacency.words];
        for a in 0..new.graph.sizes.len() {
            if !is_member(&seen, a) {
                let part = GraphPart::of(&new.graph, component(&new.graph.adjacency, a));
                unite(&mut seen, &part.attributes);
                new.parts.push(part);
            }
        }
        new
    }

    /// Returns the current graph.
    #[cfg(test)]
    pub(super) fn graph(&self) -> &ModelGraph {
        &self.graph
    }

    /// As [`ModelGraph::cells`].
    pub fn cells(&self) -> Option<usize> {
        let all = self.parts.iter().map(|part| part.cells);
        all.fold(Cells::NONE, Cells::plus).best()
    }

    /// Returns the number of cells of the junction tree with `clique` added and its attributes
    /// counted with at least `groups` values each, in their order. Returns `None` if it does not
    /// fit `usize`. Attributes that the domain does not have are ignored.
    pub fn cells_with(&self, clique: &Clique, groups: &[usize]) -> Option<usize> {
        let mut with = self.graph.clone();
        with.grow(clique, groups);
        let mut attributes = vec![0; with.adjacency.words];
        let mut others = Cells::NONE;
        for part in &self.parts {
            match part.has_any(clique) {
                true => unite(&mut attributes, &part.attributes),
                false => others = others.plus(part.cells),
            }
        }
        // The exact number of the second rule does not matter if it cannot make that rule the
        // better one.
        let own = Cells::of(&with, &attributes, others.is_fewest_by_fill());
        others.plus(own).best()
    }

    /// Adds `clique` and counts its attributes with at least `groups` values each, in their order.
    pub fn grow(&mut self, clique: &Clique, groups: &[usize]) {
        self.graph.grow(clique, groups);
        let mut attributes = vec![0; self.graph.adjacency.words];
        self.parts.retain(|part| {
            let kept = !part.has_any(clique);
            if !kept {
                unite(&mut attributes, &part.attributes);
            }
            kept
        });
        if attributes.iter().any(|&word| word != 0) {
            self.parts.push(GraphPart::of(&self.graph, attributes));
        }
    }
}

impl GraphPart {
    fn of(graph: &ModelGraph, attributes: Vec<u64>) -> Self {
        let cells = Cells::of(graph, &attributes, false);
        Self { attributes, cells }
    }

    fn has_any(&self, clique: &Clique) -> bool {
        let known = self.attributes.len() * 64;
        let mut attributes = clique.attributes().iter().filter(|&&a| a < known);
        attributes.any(|&a| is_member(&self.attributes, a))
    }
}

impl ModelGraph {
    fn grow(&mut self, clique: &Clique, groups: &[usize]) {
        (clique.attributes().iter().zip(groups)).for_each(|(&a, &k)| self.refine(a, k));
        self.add(clique);
    }
}

/// Returns the component of an attribute.
fn component(adjacency: &Adjacency, first: usize) -> Vec<u64> {
    let mut found = vec![0; adjacency.words];
    found[first / 64] |= 1 << (first % 64);
    let mut open = vec![first];
    while let Some(a) = open.pop() {
        let new: Vec<usize> = members(adjacency.row(a))
            .filter(|&b| !is_member(&found, b))
            .collect();
        new.iter().for_each(|b| found[b / 64] |= 1 << (b % 64));
        open.extend(new);
    }
    found
}

/// Adds the attributes of a row of bits to another.
fn unite(row: &mut [u64], other: &[u64]) {
    row.iter_mut().zip(other).for_each(|(r, &o)| *r |= o);
}
