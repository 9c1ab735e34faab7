//! Objects of an upload: decoded objects encode to the same bytes.

#![no_main]

use std::sync::LazyLock;

use fhaim_dp::LadderPlan;
use fhaim_fuzz::{KEYS, choice, edited, mend_checksum, rng};
use fhaim_he::Layout;
use fhaim_protocol::encryption::{Encryption, Payload};
use fhaim_protocol::upload::{Object, UploadPlan};
use libfuzzer_sys::fuzz_target;

static VALID: [LazyLock<Vec<u8>>; 2] = [LazyLock::new(|| valid(0)), LazyLock::new(|| valid(1))];

fn valid(which: usize) -> Vec<u8> {
    let keys = &KEYS[which];
    let sent = keys.upload.encrypt(&[1, -2, 3], &mut rng());
    Payload::Seeded(sent.expect("three coefficients fit")).encode(&keys.params)
}

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let how = choice(&mut data);
    let which = usize::from(how & 1);
    let name_length = usize::from(choice(&mut data) % 24).min(data.len());
    let (name, script) = data.split_at(name_length);
    let name = std::str::from_utf8(name).unwrap_or("column/1/0");
    let Ok(object) = name.parse::<Object>().or_else(|_| "column/1/0".parse()) else {
        return;
    };
    assert_eq!(object.name().parse::<Object>().ok(), Some(object));
    let params = &KEYS[which].params;
    let plan = UploadPlan {
        columns: 3,
        layout: Layout::for_records(100).expect("100 records have a layout"),
        ladder: LadderPlan::with_levels(8192, 2).expect("a small ladder"),
        residues: params.residues(),
        encryption: match how & 4 {
            0 => Encryption::OwnKey,
            _ => Encryption::RosterKey,
        },
    };
    let mut bytes = edited(&VALID[which], script);
    if how & 2 == 0 {
        let ciphertext = params.set().seeded_bytes();
        bytes.chunks_mut(ciphertext).for_each(mend_checksum);
    }
    if let Ok(payload) = plan.decode(params, object, &bytes) {
        assert!(plan.contains(object) && bytes.len() == plan.form().object_bytes(params, object));
        assert!(payload.encode(params) == bytes);
    }
});
