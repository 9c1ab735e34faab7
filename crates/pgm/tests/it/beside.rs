//! Checks extra pairs: marginals, records, conditions, and saved models.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{Clique, Domain};
use fhaim_pgm::{AxisView, Error, FitOptions, Measurement, Model, fit_once};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::saved::with_checksum;

const TOTAL: f64 = 10_000.0;

fn pair(a: usize, b: usize) -> Clique {
    Clique::new([a, b])
}

/// Returns a model of four attributes. The first two depend on each other. The measurement of the
/// last two distinguishes two groups of the third attribute's four categories.
fn tree() -> Model {
    let domain = Domain::new(vec![2, 3, 4, 2]);
    let cells = |clique: Clique, values: &[f64]| Measurement::cells(clique, values.to_vec(), 1.0);
    let measurements = [
        cells(pair(0, 1), &[3000.0, 1000.0, 1000.0, 500.0, 1500.0, 3000.0]),
        cells(Clique::new([2]), &[4000.0, 3000.0, 2000.0, 1000.0]),
        Measurement {
            axes: vec![
                AxisView {
                    groups: Some(vec![0, 0, 1, 1]),
                    centred: false,
                },
                AxisView::default(),
            ],
            ..cells(pair(2, 3), &[5000.0, 2000.0, 1000.0, 2000.0])
        },
    ];
    fit_once(&domain, &measurements, &FitOptions::default(), None).unwrap()
}

/// A table of attributes 1 and 2 that differs from the tree's, in which they are independent.
const TABLE: [f64; 12] = [
    3000.0, 300.0, 100.0, 100.0, 500.0, 1500.0, 400.0, 100.0, 500.0, 1200.0, 1500.0, 800.0,
];

fn both() -> Model {
    tree().with_beside([(pair(1, 2), TABLE.to_vec())]).unwrap()
}

fn counts(columns: &[Vec<u32>], a: usize, b: usize, size: usize, cells: usize) -> Vec<f64> {
    let mut counts = vec![0.0; cells];
    for (x, y) in columns[a].iter().zip(&columns[b]) {
        counts[*x as usize * size + *y as usize] += 1.0;
    }
    counts
}

fn distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(x, y)| (x - y).abs()).sum()
}

#[test]
fn extra_pair_has_its_table_and_other_pairs_have_the_trees_marginals() {
    let (tree, both) = (tree(), both());
    assert_eq!(both.marginal(&pair(1, 2)).unwrap(), TABLE);
    let pairs = [pair(0, 1), pair(1, 2), pair(2, 3)];
    let many = both.pair_marginals(&pairs).unwrap();
    assert_eq!(many[1], TABLE);
    let of_tree = tree.pair_marginals(&pairs).unwrap();
    assert_eq!([&many[0], &many[2]], [&of_tree[0], &of_tree[2]]);
    assert!(distance(&of_tree[1], &TABLE) > 0.3 * TOTAL);
    assert_eq!(both.bytes() - tree.bytes(), 12 * 8);
    assert_eq!(both.pairs_beside().collect::<Vec<_>>(), [&pair(1, 2)]);
}

#[test]
fn records_follow_extra_tables_closely_and_keep_the_trees_pairs() {
    let model = both();
    let columns = model.sample(10_000, &mut ChaCha8Rng::seed_from_u64(1));
    let extra = counts(&columns, 1, 2, 4, 12);
    assert!(distance(&extra, &TABLE) < 80.0, "{extra:?}");
    for (a, b, cells) in [(0, 1, 6), (2, 3, 8)] {
        let drawn = counts(&columns, a, b, model.domain().size(b), cells);
        let wanted = model.marginal(&pair(a, b)).unwrap();
        assert!(
            distance(&drawn, &wanted) < 80.0,
            "{a} {b}: {drawn:?} {wanted:?}"
        );
    }
    // Attributes 1 and 3 have no table. Both depend on 2, which determines their joint counts.
    let share = |two: usize, three: usize| match (two < 2, three) {
        (true, 0) => 5.0 / 7.0,
        (true, _) => 2.0 / 7.0,
        (false, 0) => 1.0 / 3.0,
        (false, _) => 2.0 / 3.0,
    };
    let follows = (0..6).map(|cell| {
        let (one, three) = (cell / 2, cell % 2);
        let sum = (0..4).map(|two| TABLE[4 * one + two] * share(two, three));
        sum.sum::<f64>()
    });
    let drawn = counts(&columns, 1, 3, 2, 6);
    let wanted: Vec<f64> = follows.collect();
    let of_tree = tree().marginal(&pair(1, 3)).unwrap();
    assert!(
        distance(&drawn, &wanted) < 0.3 * distance(&of_tree, &wanted),
        "{drawn:?}"
    );
}

#[test]
fn condition_scales_probabilities_by_the_extra_table() {
    let given = both().given(&[(1, 0)]).unwrap();
    let counts = given.marginal(&Clique::new([2])).unwrap();
    let wanted: Vec<f64> = TABLE[..4].iter().map(|x| x * TOTAL / 3500.0).collect();
    assert!(distance(&counts, &wanted) < 1.0, "{counts:?} {wanted:?}");
    assert_eq!(given.pairs_beside().len(), 0);
    // The effects of several conditions combine, in either order.
    for conditions in [[(1, 0), (0, 1)], [(0, 1), (1, 0)]] {
        let given = both().given(&conditions).unwrap();
        let counts = given.marginal(&Clique::new([2])).unwrap();
        assert!(
            distance(&counts, &wanted) < 1.0,
            "{conditions:?}: {counts:?}"
        );
        assert_eq!(given.marginal(&Clique::new([1])).unwrap()[1..], [0.0, 0.0]);
    }
}

#[test]
fn saved_extra_pairs_are_restored() {
    let both = both();
    let bytes = both.save();
    let loaded = Model::load(&bytes, 1 << 20).unwrap();
    assert_eq!(loaded.marginal(&pair(1, 2)).unwrap(), TABLE);
    assert_eq!(loaded.save(), bytes);
    let seeded = || ChaCha8Rng::seed_from_u64(7);
    assert_eq!(
        loaded.sample(50, &mut seeded()),
        both.sample(50, &mut seeded())
    );
    for length in 0..bytes.len() {
        assert!(
            matches!(
                Model::load(&bytes[..length], 1 << 20),
                Err(Error::Saved(..))
            ),
            "{length}"
        );
    }
    assert!(matches!(
        Model::load(&[&bytes[..], &[0]].concat(), 1 << 20),
        Err(Error::Saved(..))
    ));
    // A model without such pairs ends with their number and the checksum.
    let none = tree().save();
    let end = none.len() - 8;
    assert_eq!(none[end - 4..end], [0; 4]);
    // The second attribute of the pair, before its 12 counts.
    let mut same = bytes.clone();
    let at = bytes.len() - 8 - 12 * 8 - 4;
    same[at] = 1;
    assert!(matches!(
        Model::load(&with_checksum(same), 1 << 20),
        Err(Error::Saved(..))
    ));
}

#[test]
fn invalid_extra_tables_are_rejected() {
    let refused = |tables: Vec<(Clique, Vec<f64>)>| tree().with_beside(tables).unwrap_err();
    for (table, named) in [
        ((Clique::new([1]), vec![TOTAL / 3.0; 3]), "two attributes"),
        ((pair(1, 2), vec![TOTAL / 6.0; 6]), "number of cells"),
        (
            (pair(1, 2), vec![f64::NAN; 12]),
            "negative or non-finite counts",
        ),
        ((pair(1, 2), vec![1.0; 12]), "does not add up"),
    ] {
        let error = refused(vec![table]);
        assert!(error.to_string().contains(named), "{error}");
    }
    let twice = vec![(pair(1, 2), TABLE.to_vec()), (pair(2, 1), TABLE.to_vec())];
    assert!(refused(twice).to_string().contains("twice"));
    let unknown = vec![(pair(1, 9), TABLE.to_vec())];
    assert!(matches!(
        refused(unknown),
        Error::UnknownAttribute { attribute: 9, .. }
    ));
}
