//! An upload key, ciphertexts under it and its switching keys: decoded objects encode to the same bytes. One set has
//! one special prime, and the other has two.

#![no_main]

use std::sync::LazyLock;

use fhaim_fuzz::{HolderObjects, choice, edited, mend_checksum};
use fhaim_he::{COMPACT, STANDARD, SeededCiphertext, UploadKey, UploadSwitchKeys, parameter_set};
use libfuzzer_sys::fuzz_target;

static OBJECTS: [LazyLock<HolderObjects>; 2] = [
    LazyLock::new(|| HolderObjects::new(STANDARD)),
    LazyLock::new(|| HolderObjects::new(COMPACT)),
];

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let how = choice(&mut data);
    let objects = &OBJECTS[usize::from(how >> 4) % OBJECTS.len()];
    let valid = &objects.encoded[usize::from(how >> 2 & 3)];
    let mut bytes = edited(valid, data);
    if how & 2 == 0 {
        mend_checksum(&mut bytes);
    }
    let _ = parameter_set(&bytes);
    let params = &objects.params;
    if let Ok(key) = UploadKey::from_bytes(params, &bytes) {
        assert!(*key.to_bytes() == bytes);
    }
    if let Ok(ciphertext) = SeededCiphertext::from_bytes(params, &bytes) {
        assert!(ciphertext.to_bytes(params) == bytes);
        assert!(ciphertext.expand(params).is_ok());
    }
    for layout in [None, Some(objects.layout)] {
        if let Ok(keys) = UploadSwitchKeys::from_bytes(params, layout, &bytes) {
            assert!(keys.to_bytes() == bytes);
        }
    }
});
