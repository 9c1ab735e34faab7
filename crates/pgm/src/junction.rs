//! Junction trees by greedy elimination, and the size of a model before it is built.
//!
//! Attributes are eliminated one at a time. Each forms a clique with its remaining neighbours,
//! which are then joined to one another (Koller and Friedman 2009, section 9.4).
//!
//! Two rules choose the next attribute. Weighted min-fill minimises the sum, over the edges to be
//! added, of the product of their ends' sizes. The other rule minimises the number of cells. The
//! elimination whose maximal cliques have fewer cells in total is kept. Ties go to the smaller
//! clique, then to the lower index, so that the tree depends only on the graph.

mod counting;
mod growing;
mod set;

use std::cmp::Ordering;

use fhaim_domain::{Clique, Domain};

pub use self::growing::GrowingModel;

/// Returns the number of cells of the junction tree for a model over `cliques`. Returns `None` if
/// the number does not fit `usize`, or a clique names an attribute that the domain does not have.
///
/// Every attribute counts, including those without a clique. To ask many questions about a growing
/// model, use a [`ModelGraph`].
pub fn model_cells(domain: &Domain, cliques: &[Clique]) -> Option<usize> {
    let mut graph = ModelGraph::new(domain);
    for clique in cliques {
        if clique
            .attributes()
            .last()
            .is_some_and(|&a| a >= domain.len())
        {
            return None;
        }
        graph.add(clique);
    }
    graph.cells()
}

/// The graph of a model, in which two attributes are joined if a clique has both.
///
/// A planner keeps a graph and asks what adding a clique would cost. Each answer takes microseconds
/// for a dozen attributes. To ask hundreds of such questions between two added cliques, use a
/// [`GrowingModel`].
#[derive(Clone, Debug)]
pub struct ModelGraph {
    sizes: Vec<usize>,
    adjacency: Adjacency,
}

impl ModelGraph {
    /// Returns a graph without edges.
    pub fn new(domain: &Domain) -> Self {
        Self {
            sizes: domain.sizes().to_vec(),
            adjacency: Adjacency::new(domain.len()),
        }
    }

    /// Returns a graph without edges over attributes whose categories no table distinguishes yet;
    /// see [`ModelGraph::refine`].
    pub fn unrefined(attributes: usize) -> Self {
        Self::new(&Domain::new(vec![1; attributes]))
    }

    /// Raises the number of values of `attribute` to at least `groups`. A fitted model's tree is
    /// over the groups that measurements of two or more attributes distinguish, for any number of
    /// categories.
    pub fn refine(&mut self, attribute: usize, groups: usize) {
        if let Some(size) = self.sizes.get_mut(attribute) {
            *size = groups.max(*size);
        }
    }

    /// Returns the number of values of an attribute; 0 if the attribute does not exist.
    pub fn size(&self, attribute: usize) -> usize {
        self.sizes.get(attribute).copied().unwrap_or(0)
    }

    /// Joins the attributes of `clique` to one another. Attributes that the domain does not have
    /// are ignored.
    pub fn add(&mut self, clique: &Clique) {
        self.adjacency.join_all(clique.attributes());
    }

    /// Checks whether all attributes of `clique` are already joined, so that adding it costs
    /// nothing.
    pub fn contains(&self, clique: &Clique) -> bool {
        let attributes = clique.attributes();
        (attributes.iter().enumerate()).all(|(i, &a)| {
            a < self.sizes.len()
                && (attributes[i + 1..].iter())
                    .all(|&b| b < self.sizes.len() && self.adjacency.joined(a, b))
        })
    }

    /// Returns the number of cells of the junction tree, or `None` if it does not fit `usize`.
    pub fn cells(&self) -> Option<usize> {
        best_elimination(&self.sizes, &self.adjacency).cells(&self.sizes)
    }

    /// Returns the number of cells of the junction tree with `clique` added, or `None` if it does
    /// not fit `usize`.
    pub fn cells_with(&self, clique: &Clique) -> Option<usize> {
        if self.contains(clique) {
            return self.cells();
        }
        let mut with = self.clone();
        with.add(clique);
        with.cells()
    }

    /// Returns the junction tree. It is a forest if the graph is not connected.
    pub(crate) fn junction_tree(&self) -> JunctionTree {
        let elimination = best_elimination(&self.sizes, &self.adjacency);
        JunctionTree::new(&self.sizes, &elimination)
    }
}

/// Sets of attributes as rows of bits, one row for each attribute.
#[derive(Clone, Debug)]
struct Adjacency {
    words: usize,
    rows: Vec<u64>,
}

impl Adjacency {
    fn new(attributes: usize) -> Self {
        let words = attributes.div_ceil(64);
        Self {
            words,
            rows: vec![0; attributes * words],
        }
    }

    fn row(&self, a: usize) -> &[u64] {
        &self.rows[a * self.words..(a + 1) * self.words]
    }

    fn joined(&self, a: usize, b: usize) -> bool {
        is_member(self.row(a), b)
    }

    fn join_all(&mut self, attributes: &[usize]) {
        let count = self.rows.len().checked_div(self.words).unwrap_or(0);
        for &a in attributes.iter().filter(|&&a| a < count) {
            for &b in attributes.iter().filter(|&&b| b < count && b != a) {
                self.rows[a * self.words + b / 64] |= 1 << (b % 64);
            }
        }
    }

    /// Removes `a` and joins its neighbours, given as a row of bits, to one another.
    fn eliminate(&mut self, a: usize, around: &[u64]) {
        for b in members(around) {
            let row = &mut self.rows[b * self.words..(b + 1) * self.words];
            row.iter_mut().zip(around).for_each(|(r, &n)| *r |= n);
            row[b / 64] &= !(1 << (b % 64));
            row[a / 64] &= !(1 << (a % 64));
        }
    }
}

/// Returns the set bits of a word, ascending.
fn bits(word: u64) -> impl Iterator<Item = usize> {
    let mut rest = word;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let bit = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            bit
        })
    })
}

/// Returns the attributes of a row of bits, ascending.
fn members(row: &[u64]) -> impl Iterator<Item = usize> + '_ {
    (row.iter().enumerate()).flat_map(|(w, &word)| bits(word).map(move |bit| w * 64 + bit))
}

/// Checks whether a row of bits has an attribute.
fn is_member(row: &[u64], a: usize) -> bool {
    row[a / 64] >> (a % 64) & 1 == 1
}

/// Checks whether two rows of bits have at least two attributes in common.
fn shares_two(one: &[u64], other: &[u64]) -> bool {
    let common = one.iter().zip(other).map(|(x, y)| (x & y).count_ones());
    common.sum::<u32>() > 1
}

/// The cost that the choice of the next attribute minimises.
#[derive(Clone, Copy)]
enum Rule {
    WeightedFill,
    Cells,
}

/// The cost of eliminating an attribute now.
#[derive(Clone, Copy)]
struct Cost {
    /// Sum of the products of sizes over the edges that it would add.
    fill: f64,
    /// Cells of the clique that it would form.
    cells: f64,
}

impl Cost {
    fn of(sizes: &[usize], graph: &Adjacency, a: usize) -> Self {
        let around = graph.row(a);
        let (mut fill, mut cells) = (0.0, sizes[a] as f64);
        for u in members(around) {
            let size = sizes[u] as f64;
            cells *= size;
            let mut missing = 0.0;
            for (w, (&near, &joined)) in around.iter().zip(graph.row(u)).enumerate() {
                // Each pair (u, v) is counted once, with v > u.
                let above = match w.cmp(&(u / 64)) {
                    Ordering::Less => 0,
                    Ordering::Equal => u64::MAX << (u % 64) << 1,
                    Ordering::Greater => u64::MAX,
                };
                missing += bits(near & !joined & above)
                    .map(|bit| sizes[w * 64 + bit] as f64)
                    .sum::<f64>();
            }
            fill += size * missing;
        }
        Self { fill, cells }
    }

    fn key(self, rule: Rule) -> (f64, f64) {
        match rule {
            Rule::WeightedFill => (self.fill, self.cells),
            Rule::Cells => (self.cells, self.fill),
        }
    }
}

/// An elimination order with the remaining neighbours at each step.
struct Elimination {
    order: Vec<usize>,
    /// One row of bits for each step.
    neighbours: Vec<u64>,
    words: usize,
    /// The step itself if its clique is maximal. Otherwise, the first step of a chain of steps that
    /// share a maximal clique.
    owner: Vec<usize>,
    /// The step of the neighbour that is eliminated first.
    parent: Vec<Option<usize>>,
}

impl Elimination {
    fn run(sizes: &[usize], adjacency: &Adjacency, rule: Rule) -> Self {
        Self::of((0..sizes.len()).collect(), sizes, adjacency, rule)
    }

    /// Eliminates only these attributes, given in ascending order, which have no other neighbours.
    fn of(mut left: Vec<usize>, sizes: &[usize], adjacency: &Adjacency, rule: Rule) -> Self {
        let mut graph = adjacency.clone();
        let all = 0..sizes.len();
        let mut costs: Vec<Cost> = all.map(|a| Cost::of(sizes, &graph, a)).collect();
        let mut order = Vec::with_capacity(sizes.len());
        let mut neighbours = Vec::with_capacity(adjacency.rows.len());
        while let Some(a) = cheapest(&left, &costs, rule) {
            left.retain(|&b| b != a);
            let start = neighbours.len();
            neighbours.extend_from_slice(graph.row(a));
            let around = &neighbours[start..];
            graph.eliminate(a, around);
            // New edges change the fill of all attributes that are joined to both ends. Without new
            // edges, only neighbours change.
            if costs[a].fill > 0.0 {
                let changed =
                    |&&b: &&usize| is_member(around, b) || shares_two(graph.row(b), around);
                left.iter()
                    .filter(changed)
                    .for_each(|&b| costs[b] = Cost::of(sizes, &graph, b));
            } else {
                members(around).for_each(|b| costs[b] = Cost::of(sizes, &graph, b));
            }
            order.push(a);
        }
        Self::chained(order, neighbours, adjacency.words)
    }

    /// Finds the maximal cliques. The clique of step p is contained in an earlier one exactly if
    /// the clique of some child (a step whose first neighbour is p's attribute) has one attribute
    /// more (Blair and Peyton 1993, section 4).
    fn chained(order: Vec<usize>, neighbours: Vec<u64>, words: usize) -> Self {
        let mut step_of = vec![0; order.iter().max().map_or(0, |last| last + 1)];
        for (step, &a) in order.iter().enumerate() {
            step_of[a] = step;
        }
        let row = |step: usize| &neighbours[step * words..(step + 1) * words];
        let degree = |step: usize| row(step).iter().map(|w| w.count_ones()).sum::<u32>();
        let mut owner: Vec<usize> = (0..order.len()).collect();
        let mut parent = Vec::with_capacity(order.len());
        for step in 0..order.len() {
            let next = members(row(step)).map(|b| step_of[b]).min();
            if let Some(next) = next
                && owner[next] == next
                && degree(step) == degree(next) + 1
            {
                owner[next] = owner[step];
            }
            parent.push(next);
        }
        Self {
            order,
            neighbours,
            words,
            owner,
            parent,
        }
    }

    fn neighbours(&self, step: usize) -> impl Iterator<Item = usize> + '_ {
        members(&self.neighbours[step * self.words..(step + 1) * self.words])
    }

    /// Returns the steps that form maximal cliques.
    fn maximal(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.order.len()).filter(|&step| self.owner[step] == step)
    }

    /// Returns the number of cells of the clique formed at `step`.
    fn clique_cells(&self, step: usize, sizes: &[usize]) -> Option<usize> {
        self.neighbours(step)
            .try_fold(sizes[self.order[step]], |n, b| n.checked_mul(sizes[b]))
    }

    /// Returns the sum of the cells of the maximal cliques.
    fn cells(&self, sizes: &[usize]) -> Option<usize> {
        self.maximal().try_fold(0usize, |sum, step| {
            sum.checked_add(self.clique_cells(step, sizes)?)
        })
    }
}

/// Returns the better one of the two rules' eliminations.
fn best_elimination(sizes: &[usize], adjacency: &Adjacency) -> Elimination {
    let fill = Elimination::run(sizes, adjacency, Rule::WeightedFill);
    let small = Elimination::run(sizes, adjacency, Rule::Cells);
    let cells = |e: &Elimination| e.cells(sizes).unwrap_or(usize::MAX);
    if cells(&small) < cells(&fill) {
        small
    } else {
        fill
    }
}

fn cheapest(left: &[usize], costs: &[Cost], rule: Rule) -> Option<usize> {
    let key = |a: &usize| costs[*a].key(rule);
    (left.iter().copied()).reduce(|best, a| if key(&a) < key(&best) { a } else { best })
}

/// A clique of the junction tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Attributes by rank: first the shared ones of the parent, then the others.
    pub axes: Vec<usize>,
    /// Number of axes shared with the parent.
    pub separator: usize,
    /// Position of the parent, which is lower than the node's; `None` for a root.
    pub parent: Option<usize>,
}

impl Node {
    /// Returns the attributes as a set.
    pub fn clique(&self) -> Clique {
        Clique::new(self.axes.iter().copied())
    }
}

/// A junction tree over all attributes of a domain. It is a forest if the graph is not connected.
///
/// Attributes are ranked so that in every node the separator's attributes come before the others.
/// In tables in the order of rank, all cells that share a separator state are therefore contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JunctionTree {
    /// Parents before children.
    pub nodes: Vec<Node>,
    /// Rank of each attribute.
    pub rank: Vec<usize>,
}

impl JunctionTree {
    fn new(sizes: &[usize], elimination: &Elimination) -> Self {
        let steps = elimination.order.len();
        // The last step of a chain is the one whose parent lies in another clique. In the order
        // from late to early steps, parents come before children.
        let mut node_of_owner = vec![None; steps];
        let mut tops = Vec::new();
        for step in (0..steps).rev() {
            let owner = elimination.owner[step];
            if node_of_owner[owner].is_none() {
                node_of_owner[owner] = Some(tops.len());
                tops.push(step);
            }
        }
        let mut residuals = vec![Vec::new(); tops.len()];
        for (step, &a) in elimination.order.iter().enumerate() {
            if let Some(node) = node_of_owner[elimination.owner[step]] {
                residuals[node].push(a);
            }
        }
        let mut rank = vec![0; steps];
        let mut next_rank = 0..;
        for residual in &mut residuals {
            // The largest attribute varies fastest, which makes long contiguous rows.
            residual.sort_by_key(|&a| (sizes[a], a));
            residual
                .iter()
                .zip(&mut next_rank)
                .for_each(|(&a, r)| rank[a] = r);
        }
        let nodes = (tops.iter().zip(&residuals))
            .map(|(&top, residual)| {
                let mut axes: Vec<usize> = elimination.neighbours(top).collect();
                axes.sort_by_key(|&a| rank[a]);
                let separator = axes.len();
                axes.extend(residual);
                let parent =
                    elimination.parent[top].and_then(|step| node_of_owner[elimination.owner[step]]);
                Node {
                    axes,
                    separator,
                    parent,
                }
            })
            .collect();
        Self { nodes, rank }
    }
}

#[cfg(test)]
mod tests;
