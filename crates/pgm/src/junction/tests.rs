//! Checks trees of random graphs and their sizes.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

fn random_graph(rng: &mut ChaCha8Rng, attributes: usize) -> (Domain, Vec<Clique>) {
    let sizes = (0..attributes).map(|_| rng.random_range(1..9)).collect();
    let cliques = (0..rng.random_range(0..2 * attributes))
        .map(|_| {
            let size = rng.random_range(0..4);
            Clique::new((0..size).map(|_| rng.random_range(0..attributes)))
        })
        .collect();
    (Domain::new(sizes), cliques)
}

fn tree(domain: &Domain, cliques: &[Clique]) -> JunctionTree {
    let mut graph = ModelGraph::new(domain);
    cliques.iter().for_each(|clique| graph.add(clique));
    graph.junction_tree()
}

/// Returns the order of an elimination that computes every cost again after each step.
fn plain_order(sizes: &[usize], adjacency: &Adjacency, rule: Rule) -> Vec<usize> {
    let mut graph = adjacency.clone();
    let mut left: Vec<usize> = (0..sizes.len()).collect();
    let mut order = Vec::new();
    loop {
        let all = 0..sizes.len();
        let costs: Vec<Cost> = all.map(|b| Cost::of(sizes, &graph, b)).collect();
        let Some(a) = cheapest(&left, &costs, rule) else {
            return order;
        };
        left.retain(|&b| b != a);
        let around = graph.row(a).to_vec();
        graph.eliminate(a, &around);
        order.push(a);
    }
}

#[test]
fn costs_that_are_not_recomputed_are_unchanged() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for round in 0..200 {
        let attributes = if round < 150 { 2 + round / 8 } else { 70 };
        let (domain, cliques) = random_graph(&mut rng, attributes);
        let mut graph = ModelGraph::new(&domain);
        cliques.iter().for_each(|clique| graph.add(clique));
        for rule in [Rule::WeightedFill, Rule::Cells] {
            let ModelGraph { sizes, adjacency } = &graph;
            let found = Elimination::run(sizes, adjacency, rule).order;
            assert_eq!(found, plain_order(sizes, adjacency, rule));
        }
    }
}

#[test]
fn trees_of_random_graphs_have_the_running_intersection_property() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for round in 0..300 {
        // Above 64 attributes a row of bits has two words.
        let attributes = if round < 270 {
            1 + round / 20
        } else {
            60 + round % 20
        };
        let (domain, cliques) = random_graph(&mut rng, attributes);
        let tree = tree(&domain, &cliques);
        let sets: Vec<Clique> = tree.nodes.iter().map(Node::clique).collect();
        for wanted in &cliques {
            assert!(sets.iter().any(|set| wanted.is_subset(set)));
        }
        let mut seen = Clique::new([]);
        for (i, node) in tree.nodes.iter().enumerate() {
            // The part of a node that earlier nodes hold lies in its parent.
            let separator = Clique::new(node.axes[..node.separator].iter().copied());
            assert_eq!(sets[i].intersection(&seen), separator);
            match node.parent {
                Some(parent) => assert!(parent < i && separator.is_subset(&sets[parent])),
                None => assert!(separator.is_empty()),
            }
            assert!(node.axes.is_sorted_by_key(|&a| tree.rank[a]));
            seen = seen.union(&sets[i]);
            assert!((0..i).all(|j| !sets[i].is_subset(&sets[j]) && !sets[j].is_subset(&sets[i])));
        }
        assert_eq!(seen.len(), domain.len());
        let cells = sets.iter().map(|set| domain.cells(set).unwrap()).sum();
        assert_eq!(model_cells(&domain, &cliques), Some(cells));
    }
}

#[test]
fn cycle_is_cut_through_its_small_attributes() {
    // 0 - 1 - 2 - 3 - 0: the chord 1 - 3 gives 2 * (10 * 2 * 2), the other twice 200.
    let domain = Domain::new(vec![10, 2, 10, 2]);
    let cycle = [[0, 1], [1, 2], [2, 3], [3, 0]].map(Clique::new);
    assert_eq!(model_cells(&domain, &cycle), Some(80));
}

#[test]
fn cells_with_a_clique_equal_those_after_adding_it() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for _ in 0..50 {
        let (domain, mut cliques) = random_graph(&mut rng, 10);
        let mut graph = ModelGraph::new(&domain);
        cliques.iter().for_each(|clique| graph.add(clique));
        let extra = Clique::new([0, 5, 9]);
        let with = graph.cells_with(&extra);
        cliques.push(extra);
        assert_eq!(with, model_cells(&domain, &cliques));
    }
}

#[test]
fn overflowing_sizes_and_unknown_attributes_have_no_cell_count() {
    let domain = Domain::new(vec![1 << 20; 5]);
    assert_eq!(model_cells(&domain, &[Clique::new(0..5)]), None);
    assert_eq!(model_cells(&domain, &[Clique::new([0, 7])]), None);
    assert_eq!(model_cells(&domain, &[]), Some(5 << 20));
    assert_eq!(model_cells(&Domain::new(vec![]), &[]), Some(0));
}

/// Returns a graph with sizes from 1 up to inexact products, and several components.
fn growing_graph(rng: &mut ChaCha8Rng, round: usize) -> (Domain, Vec<Clique>) {
    let attributes = match round % 10 {
        0 => 70 + round % 7,
        1 => 130,
        // More attributes than `Component` supports.
        2 if round < 10 => 1030,
        _ => 1 + round / 4,
    };
    let largest = [2, 3, 9, 40, 1 << 12, 1 << 30][round % 6];
    let sizes = (0..attributes).map(|_| rng.random_range(1..=largest));
    let domain = Domain::new(sizes.collect());
    let count = rng.random_range(0..=[1, 2, 4][round % 3] * attributes.min(50) / 2);
    let cliques = (0..count).map(|_| {
        // Attributes of a clique are close to one another, so that cliques overlap without forming
        // a single component.
        let (first, size) = (rng.random_range(0..attributes), rng.random_range(1..4));
        let spread = attributes.min(9);
        Clique::new((0..size).map(|_| (first + rng.random_range(0..spread)) % attributes))
    });
    let cliques = cliques.collect();
    (domain, cliques)
}

#[test]
fn components_have_the_cells_of_the_whole_graph() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let (mut none, mut by_cells) = (0, 0);
    for round in 0..120 {
        let (domain, cliques) = growing_graph(&mut rng, round);
        let mut plain = ModelGraph::new(&domain);
        let mut growing = GrowingModel::new(plain.clone());
        for clique in &cliques {
            let most = [1, 5, 70][round % 3];
            let groups = clique
                .attributes()
                .iter()
                .map(|_| rng.random_range(1..=most));
            let groups: Vec<usize> = groups.collect();
            let with = growing.cells_with(clique, &groups);
            assert_eq!(growing.cells(), plain.cells());
            let refined = clique.attributes().iter().zip(&groups);
            refined.for_each(|(&a, &k)| plain.refine(a, k));
            plain.add(clique);
            assert_eq!(
                with,
                plain.cells(),
                "{round}: {:?} {cliques:?}",
                domain.sizes()
            );
            none += usize::from(with.is_none());
            let rule =
                |rule| Elimination::run(&plain.sizes, &plain.adjacency, rule).cells(&plain.sizes);
            by_cells += usize::from(rule(Rule::Cells) < rule(Rule::WeightedFill));
            // Some moves are only weighed.
            if rng.random_range(0..3) > 0 {
                growing.grow(clique, &groups);
            } else {
                plain = growing.graph().clone();
            }
        }
        assert_eq!(growing.cells(), plain.cells());
    }
    assert!(
        none > 0 && by_cells > 0,
        "{none} without an answer, {by_cells} by cells"
    );
}

#[test]
fn growing_model_ignores_unknown_attributes() {
    let plain = ModelGraph::new(&Domain::new(vec![3, 4]));
    let mut growing = GrowingModel::new(plain);
    for (clique, cells) in [([0, 7], 7), ([70, 200], 7), ([0, 1], 12)] {
        let clique = Clique::new(clique);
        assert_eq!(growing.cells_with(&clique, &[1, 1]), Some(cells));
        growing.grow(&clique, &[1, 1]);
        assert_eq!(growing.cells(), Some(cells));
    }
}
