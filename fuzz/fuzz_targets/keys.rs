//! Public and secret keys, and the parameter set that any object names.

#![no_main]

use std::sync::LazyLock;

use fhaim_fuzz::{KEYS, choice, edited, mend_checksum};
use fhaim_he::{PublicKey, SecretKey, parameter_set};
use libfuzzer_sys::fuzz_target;

static PUBLIC: LazyLock<Vec<u8>> =
    LazyLock::new(|| KEYS[0].public.to_bytes().expect("the key is sound"));
static SECRET: LazyLock<Vec<u8>> = LazyLock::new(|| KEYS[0].secret.to_bytes().to_vec());

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let how = choice(&mut data);
    let params = &KEYS[0].params;
    let valid = if how & 1 == 0 { &PUBLIC } else { &SECRET };
    let mut bytes = edited(valid, data);
    if how & 2 == 0 {
        mend_checksum(&mut bytes);
    }
    let _ = parameter_set(&bytes);
    if let Ok(key) = PublicKey::from_bytes(params, &bytes) {
        assert!(key.to_bytes().is_ok_and(|again| again == bytes));
    }
    if let Ok(key) = SecretKey::from_bytes(params, &bytes) {
        assert!(*key.to_bytes() == bytes);
    }
});
