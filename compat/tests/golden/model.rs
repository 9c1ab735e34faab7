//! Stored fitted models.

use crate::files::{flipped, golden, refuses_damage};
use fhaim_domain::{Clique, Domain};
use fhaim_pgm::{AxisView, Error, FitOptions, Measurement, Model, fit};

const MAX_BYTES: usize = 1 << 20;

/// Magic and version.
const HEADER: usize = 8 + 4;

/// Fits a model to two pairs of three attributes. One pair is seen in groups.
fn fresh() -> Model {
    let domain = Domain::new(vec![2, 4, 3]);
    let pair = Measurement::cells(Clique::new([0, 2]), vec![30., 5., 15., 10., 25., 15.], 2.0);
    let grouped = Measurement {
        clique: Clique::new([1, 2]),
        axes: vec![
            AxisView {
                groups: Some(vec![0, 1, 1, 0]),
                centred: false,
            },
            AxisView::default(),
        ],
        values: vec![20., 10., 20., 20., 20., 10.],
        sigma: 3.0,
    };
    let fine = Measurement::cells(Clique::new([1]), vec![10., 20., 30., 40.], 1.0);
    let measurements = [pair, grouped, fine];
    fit(&domain, &measurements, &FitOptions::default(), None).unwrap()
}

fn marginals(model: &Model) -> Vec<Vec<f64>> {
    let cliques = [
        vec![0],
        vec![1],
        vec![2],
        vec![0, 2],
        vec![1, 2],
        vec![0, 1],
    ];
    let marginal = |clique: &Vec<usize>| model.marginal(&Clique::new(clique.clone())).unwrap();
    cliques.iter().map(marginal).collect()
}

fn refused(bytes: &[u8]) {
    match Model::load(bytes, MAX_BYTES) {
        Err(Error::Saved(_)) => {}
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("a damaged model was accepted"),
    }
}

#[test]
fn model_is_unchanged() {
    let bytes = golden("model", || fresh().save());
    let model = Model::load(&bytes, MAX_BYTES).unwrap();
    assert_eq!(model.save(), bytes);
    assert_eq!(model.domain().sizes(), [2, 4, 3]);
    let expected = golden("model.marginals.json", || {
        serde_json::to_vec(&marginals(&model)).unwrap()
    });
    let expected: Vec<Vec<f64>> = serde_json::from_slice(&expected).unwrap();
    let found = marginals(&model);
    let pairs = expected.iter().flatten().zip(found.iter().flatten());
    for (expected, found) in pairs {
        assert!(
            (expected - found).abs() < 1e-9 * model.total(),
            "{expected} {found}"
        );
    }
    refuses_damaged_models(&bytes);
}

/// Attributes 0 and 1 are a pair outside the tree of [`fresh`].
#[test]
fn model_with_pairs_outside_its_tree_is_unchanged() {
    let bytes = golden("model.beside", || {
        let model = fresh();
        let pair = Clique::new([0, 1]);
        let mut counts = model.marginal(&pair).unwrap();
        // Moves one count between two values of the second attribute, in opposite directions for the first's values.
        for (cell, moved) in [(0, -1.0), (3, 1.0), (4, 1.0), (7, -1.0)] {
            counts[cell] += moved;
        }
        model.with_beside([(pair, counts)]).unwrap().save()
    });
    let model = Model::load(&bytes, MAX_BYTES).unwrap();
    assert_eq!(model.save(), bytes);
    let pair = Clique::new([0, 1]);
    assert_eq!(model.pairs_beside().collect::<Vec<_>>(), [&pair]);
    let moved = fresh().marginal(&pair).unwrap();
    let moved = model.marginal(&pair).unwrap()[3] - moved[3];
    assert!((moved - 1.0).abs() < 1e-9 * model.total(), "{moved}");
    refuses_damaged_models(&bytes);
}

fn refuses_damaged_models(bytes: &[u8]) {
    refuses_damage(bytes, HEADER, refused);
    for length in 0..bytes.len() {
        refused(&bytes[..length]);
    }
    for bit in 0..8 * bytes.len() {
        match Model::load(&flipped(bytes, bit), MAX_BYTES) {
            Ok(other) => assert_eq!(other.save(), flipped(bytes, bit), "bit {bit}"),
            Err(Error::Saved(_) | Error::TooLarge { .. }) => {}
            Err(other) => panic!("bit {bit}: {other}"),
        }
    }
}
