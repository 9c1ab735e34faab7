//! Checks that saved models are restored and damaged ones are rejected, and that conditions are
//! exact and met by records.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{Clique, Domain};
use fhaim_pgm::{AxisView, Error, FitOptions, Measurement, Model, fit_once};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

const CAP: usize = 1 << 20;

/// Returns a model over a chain 0 - 1 - 2 - 3, in which two categories of 3 form a group, and an
/// independent attribute 4.
fn model() -> Model {
    let domain = Domain::new(vec![2, 3, 4, 3, 5]);
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut measurements = vec![
        Measurement::cells(Clique::new([]), vec![1000.0], 1.0),
        Measurement {
            clique: Clique::new([4]),
            axes: vec![AxisView {
                groups: Some(vec![0, 1, 0, 1, 2]),
                centred: false,
            }],
            values: vec![500.0, 300.0, 200.0],
            sigma: 3.0,
        },
    ];
    for pair in [[2, 3], [0, 1], [1, 2]] {
        let clique = Clique::new(pair);
        let cells = domain.cells(&clique).unwrap();
        let values = (0..cells).map(|_| rng.random_range(0.0..2000.0 / cells as f64));
        let mut measurement = Measurement::cells(clique, values.collect(), 5.0);
        if pair == [2, 3] {
            measurement.axes[1].groups = Some(vec![0, 1, 0]);
            measurement.values.truncate(8);
        }
        measurements.push(measurement);
    }
    measurements.push(Measurement::cells(
        Clique::new([3]),
        vec![300.0, 200.0, 500.0],
        5.0,
    ));
    fit_once(&domain, &measurements, &FitOptions::default(), None).unwrap()
}

/// Corrects the checksum of changed bytes, so that the checks behind it are reached.
pub fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 8;
    let digest = Sha256::digest(&bytes[..end]);
    bytes[end..].copy_from_slice(&digest[..8]);
    bytes
}

fn joint(model: &Model) -> Vec<f64> {
    model.marginal(&Clique::new(0..5)).unwrap()
}

#[test]
fn loaded_model_has_the_same_marginals_and_samples() {
    let model = model();
    let loaded = Model::load(&model.save(), CAP).unwrap();
    assert_eq!(loaded.total(), model.total());
    assert_eq!(loaded.report().steps, model.report().steps);
    assert_eq!(loaded.report().values, model.report().values);
    assert_eq!(loaded.loss(), model.loss());
    assert_eq!(joint(&loaded), joint(&model));
    let sample = |model: &Model| model.sample(5000, &mut ChaCha8Rng::seed_from_u64(3));
    assert_eq!(sample(&loaded), sample(&model));
    assert_eq!(loaded.save(), model.save());
}

#[test]
fn model_with_a_flipped_bit_is_rejected() {
    let bytes = model().save();
    let accepted = (0..8 * bytes.len()).filter(|bit| {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        Model::load(&damaged, CAP).is_ok()
    });
    assert_eq!(accepted.count(), 0, "of {} flips", 8 * bytes.len());
}

#[test]
fn damaged_model_bytes_are_rejected() {
    let bytes = model().save();
    for length in 0..bytes.len() {
        assert!(
            matches!(Model::load(&bytes[..length], CAP), Err(Error::Saved(..))),
            "{length}"
        );
    }
    let longer = [bytes.as_slice(), &[0]].concat();
    assert!(matches!(Model::load(&longer, CAP), Err(Error::Saved(_))));
    // Every change of these bytes changes magic, version or shape: the sizes, the groups of each
    // attribute (three numbers for attribute 3), and the number of cliques.
    let head = 8 + 4;
    let shape = head + 4 * 8..head + 4 * 8 + 4 + 5 * 4 + 5 * 4 + 3 * 4 + 4;
    for place in (0..head).chain(shape) {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x80;
        assert!(
            matches!(
                Model::load(&with_checksum(damaged), CAP),
                Err(Error::Saved(..))
            ),
            "{place}"
        );
    }
    for version in [0, 2, 255] {
        let mut other = bytes.clone();
        other[8] = version;
        let refused = Model::load(&other, CAP);
        assert!(matches!(refused, Err(Error::Saved(reason)) if reason.contains("version")));
    }
    let mut infinite = bytes.clone();
    // The last potential comes before the number of extra pairs and the checksum.
    let end = infinite.len() - 8 - 4;
    infinite[end - 8..end].copy_from_slice(&f64::INFINITY.to_le_bytes());
    let refused = Model::load(&with_checksum(infinite), CAP);
    assert!(matches!(refused, Err(Error::Saved(reason)) if reason.contains("finite")));
}

#[test]
fn random_damage_is_rejected_or_gives_a_valid_model() {
    let bytes = model().save();
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for _ in 0..3000 {
        let mut damaged = bytes.clone();
        for _ in 0..rng.random_range(1..4) {
            let place = rng.random_range(0..damaged.len());
            damaged[place] = rng.random();
        }
        if let Ok(model) = Model::load(&with_checksum(damaged), CAP) {
            let columns = model.sample(50, &mut rng);
            for (column, &size) in columns.iter().zip(model.domain().sizes()) {
                assert!(column.iter().all(|&code| (code as usize) < size));
            }
        }
    }
}

#[test]
fn loading_a_model_beyond_the_cap_is_rejected() {
    let bytes = model().save();
    assert!(matches!(
        Model::load(&bytes, 100),
        Err(Error::TooLarge { cap: 100, .. })
    ));
}

#[test]
fn conditions_on_several_attributes_are_exact_and_met_by_every_record() {
    let model = model();
    let domain = model.domain().clone();
    let joint = joint(&model);
    let inner = |a: usize| domain.sizes()[a + 1..].iter().product::<usize>();
    let value = |cell: usize, a: usize| cell / inner(a) % domain.size(a);
    for conditions in [
        vec![(3, 2)],
        vec![(0, 1), (3, 0)],
        vec![(4, 3), (1, 2), (2, 1)],
    ] {
        let meets = |cell: usize| {
            (conditions.iter()).all(|&(a, v): &(usize, u32)| value(cell, a) == v as usize)
        };
        let kept: f64 = (0..joint.len())
            .filter(|&c| meets(c))
            .map(|c| joint[c])
            .sum();
        let given = model.given(&conditions).unwrap();
        let found = given.marginal(&Clique::new(0..5)).unwrap();
        for cell in 0..joint.len() {
            let share = if meets(cell) { joint[cell] / kept } else { 0.0 };
            let expected = share * model.total();
            assert!(
                (found[cell] - expected).abs() < 1e-9 * model.total(),
                "{cell}"
            );
        }
        let columns = given.sample(20_000, &mut ChaCha8Rng::seed_from_u64(1));
        for &(a, v) in &conditions {
            assert!(columns[a].iter().all(|&code| code == v));
        }
    }
}

#[test]
fn unknown_and_impossible_conditions_are_rejected() {
    let model = model();
    assert_eq!(
        model.given(&[(5, 0)]).unwrap_err(),
        Error::UnknownAttribute {
            attribute: 5,
            attributes: 5
        }
    );
    assert_eq!(
        model.given(&[(0, 2)]).unwrap_err(),
        Error::UnknownValue {
            attribute: 0,
            value: 2
        }
    );
    assert_eq!(
        model.given(&[(2, 1), (0, 1), (2, 0)]).unwrap_err(),
        Error::Impossible {
            attribute: 2,
            value: 0
        }
    );
}
