//! Saved models: a loaded model answers any query without a panic, and is saved with the same bytes.

#![no_main]

use std::sync::LazyLock;

use fhaim_domain::{Clique, Domain};
use fhaim_fuzz::{choice, correct_model_checksum, edited, rng};
use fhaim_pgm::{FitOptions, Measurement, Model, fit_once};
use libfuzzer_sys::fuzz_target;

/// Largest size of a model in this target.
const CAP: usize = 1 << 20;

static VALID: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let domain = Domain::new(vec![2, 3, 4, 3]);
    let mut measurements = vec![Measurement::cells(Clique::new([]), vec![100.0], 1.0)];
    for pair in [[0, 1], [1, 2]] {
        let clique = Clique::new(pair);
        let cells = domain.cells(&clique).expect("12 cells at most");
        let values = (0..cells).map(|cell| cell as f64).collect();
        measurements.push(Measurement::cells(clique, values, 2.0));
    }
    let options = FitOptions {
        steps: 20,
        ..FitOptions::default()
    };
    let model = fit_once(&domain, &measurements, &options, None);
    model.expect("the measurements fit the domain").save()
});

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let mut bytes = match choice(&mut data) % 2 {
        0 => edited(&VALID, data),
        _ => [&VALID[..12], data].concat(), // after the magic and the version
    };
    correct_model_checksum(&mut bytes);
    let Ok(model) = Model::load(&bytes, CAP) else {
        return;
    };
    assert!(model.save() == bytes);
    let attributes = model.domain().len();
    for attribute in 0..attributes.min(8) {
        let _ = model.marginal(&Clique::new([attribute]));
        let _ = model.marginal(&Clique::new([0, attribute]));
    }
    let drawn = model.sample(5, &mut rng());
    let sizes = model.domain().sizes();
    assert!(drawn.iter().zip(sizes).all(|(column, &size)| {
        column.len() == 5 && column.iter().all(|&code| (code as usize) < size)
    }));
    if attributes > 0
        && let Ok(given) = model.given(&[(0, 0)])
    {
        assert!(
            given
                .sample(3, &mut rng())
                .first()
                .is_some_and(|c| c.iter().all(|&x| x == 0))
        );
    }
});
