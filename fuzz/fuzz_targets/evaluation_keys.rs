//! Evaluation keys. Each run expands 22 seeds: slower than the other targets.

#![no_main]

use std::sync::LazyLock;

use fhaim_fuzz::{KEYS, choice, edited, rng, mend_checksum};
use fhaim_he::EvaluationKeys;
use libfuzzer_sys::fuzz_target;

static VALID: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let keys = KEYS[0].secret.evaluation_keys(&mut rng());
    keys.expect("the key is sound").to_bytes()
});

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let how = choice(&mut data);
    let mut bytes = edited(&VALID, data);
    if how & 1 == 0 {
        mend_checksum(&mut bytes);
    }
    if let Ok(keys) = EvaluationKeys::from_bytes(&KEYS[0].params, &bytes) {
        assert!(keys.to_bytes() == bytes);
    }
});
