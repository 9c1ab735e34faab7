//! Secrets at rest: values that are sealed under keys of a file.

use crate::files::{flipped, golden};
use fhaim_platform::seal::{SealError, Sealer};

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f # for tests\n";
const CONTEXT: &str = "secret key of d5d5d5d5-d5d5-d5d5-d5d5-d5d5d5d5d5d5";

#[test]
fn sealed_value_can_be_opened() {
    let sealer = Sealer::from_text(KEY).unwrap();
    let sealed = golden("sealed", || sealer.seal(CONTEXT, b"a value").unwrap());
    let opened = sealer.open(CONTEXT, &sealed).unwrap();
    assert_eq!(opened.as_slice(), b"a value");
    // Each sealing draws a new nonce, so only the form can be compared.
    let again = sealer.seal(CONTEXT, b"a value").unwrap();
    assert_eq!((again.len(), &again[..8]), (sealed.len(), &sealed[..8]));
    let refused = |context: &str, bytes: &[u8]| {
        assert!(matches!(
            sealer.open(context, bytes),
            Err(SealError::Unopened)
        ));
    };
    let names_no_key = |bytes: &[u8]| {
        let opened = sealer.open(CONTEXT, bytes);
        assert!(matches!(opened, Err(SealError::UnknownKey)));
    };
    refused("another context", &sealed);
    for length in 0..sealed.len() {
        refused(CONTEXT, &sealed[..length]);
    }
    refused(CONTEXT, &[sealed.as_slice(), &[0]].concat());
    // The first 8 bytes name the key.
    for bit in 0..8 * 8 {
        names_no_key(&flipped(&sealed, bit));
    }
    for bit in 8 * 8..8 * sealed.len() {
        refused(CONTEXT, &flipped(&sealed, bit));
    }
}
