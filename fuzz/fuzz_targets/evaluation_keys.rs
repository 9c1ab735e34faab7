//! Evaluation keys of a sole holder's dataset, and of rosters. Each run expands up to 51 seeds, so this target is
//! slower than the others.

#![no_main]

use std::sync::LazyLock;

use fhaim_fuzz::{KEYS, choice, edited, mend_checksum, rng};
use fhaim_he::{EvaluationKeys, RosterShape};
use libfuzzer_sys::fuzz_target;

static VALID: LazyLock<[Vec<u8>; 4]> = LazyLock::new(|| {
    let secret = &KEYS[0].secret;
    let of_roster = |shape| {
        let keys = secret.roster_evaluation_keys(shape, &mut rng());
        keys.expect("a roster may have two holders").to_bytes()
    };
    let keys = secret.evaluation_keys(&mut rng());
    [
        keys.expect("the key is sound").to_bytes(),
        of_roster(RosterShape::Counts(2)),
        of_roster(RosterShape::Records(2)),
        of_roster(RosterShape::Columns(2)),
    ]
});

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let how = choice(&mut data);
    let mut bytes = edited(&VALID[usize::from(how >> 1 & 3)], data);
    if how & 1 == 0 {
        mend_checksum(&mut bytes);
    }
    if let Ok(keys) = EvaluationKeys::from_bytes(&KEYS[0].params, &bytes) {
        assert!(keys.to_bytes() == bytes);
    }
});
