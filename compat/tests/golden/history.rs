//! A dataset's chain of acts, its receipts, the windows of its noise, and the randomness that seals its pages.

use crate::files::{golden, json, refuses_unknown_fields, stored};
use crate::request::{DATASET, JOB, releases};
use fhaim_api::keys::Receipt;
use fhaim_dp::{Debit, Entry, LadderPlan, Rho};
use fhaim_protocol::crypto::chain::{Act, Freeze, ReceiptKey, Tip, answers_digest};
use fhaim_protocol::sealing::{Context, SealingKey};
use fhaim_protocol::window::Window;
use fhaim_release::ReleaseRequest;
use rand::RngCore;
use std::fmt::Write;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn entry() -> Entry {
    Entry::price(Debit {
        number: 0,
        description: "the total".to_owned(),
        digest: [9; 32],
        delta2_squared: 1,
        variance_units: 77,
        honest: 1,
        cells: 1,
        leak: Rho::ratio_up(1, 1 << 40).unwrap(),
    })
    .unwrap()
}

/// Returns acts of most kinds. Other tests cover holders' acts and the other reasons for a freeze.
fn acts() -> Vec<Act> {
    let mut acts = vec![
        Act::KeysMade {
            terms: [1; 32],
            public_key: [2; 32],
            evaluation_keys: [3; 32],
        },
        Act::RunBegun {
            job: JOB,
            run: 0,
            upload: [4; 32],
        },
        Act::Debited {
            job: JOB,
            entries: vec![entry()],
            request: [5; 32],
        },
        Act::Released {
            job: JOB,
            entries: vec![entry()],
            answers: answers_digest(&[vec![1, -2], vec![i64::MIN]]),
        },
    ];
    let reasons = [Freeze::Noise, Freeze::Restored];
    acts.extend(reasons.map(|reason| Act::Frozen { reason }));
    acts.extend([Act::Thawed, Act::KeysDestroyed]);
    acts
}

fn receipt_key() -> ReceiptKey {
    ReceiptKey::from_bytes(&[7; 32]).unwrap()
}

/// Returns the golden chain's tip with its signature.
pub fn receipt() -> Receipt {
    let tip = Tip {
        height: 9,
        head: [0xa5; 32],
    };
    receipt_key().sign(DATASET, tip).into()
}

/// The stored text of an act is the text that is hashed.
#[test]
fn freeze_for_disagreeing_computation_services_is_unchanged() {
    let reason = Freeze::Witness;
    json("act.witness.json", &Act::Frozen { reason });
    refuses_unknown_fields::<Act>("act.witness.json");
}

#[test]
fn freeze_over_an_uploaded_object_is_unchanged() {
    let reason = Freeze::Upload;
    json("act.upload.json", &Act::Frozen { reason });
}

#[test]
fn act_of_an_unknown_receipt_is_unchanged() {
    let reason = Freeze::UnknownReceipt;
    json("act.unknown-receipt.json", &Act::Frozen { reason });
}

#[test]
fn acts_and_their_hashes_are_unchanged() {
    json("acts.json", &acts());
    let mut tip = Tip::default();
    let mut lines = String::new();
    for (number, act) in acts().iter().enumerate() {
        let name = format!("act.{number}.json");
        json(&name, act);
        let text = stored(&name);
        tip = tip.append(DATASET, std::str::from_utf8(&text).unwrap());
        writeln!(lines, "{} {}", tip.height, hex(&tip.head)).unwrap();
    }
    let made = || lines.clone().into_bytes();
    assert_eq!(golden("chain", made), lines.as_bytes());
    json("tip.json", &tip);
    refuses_unknown_fields::<Tip>("tip.json");
}

#[test]
fn receipt_keys_are_unchanged() {
    let lines = format!("{}\n", hex(&receipt_key().public()));
    let made = || lines.clone().into_bytes();
    assert_eq!(golden("receipt-keys", made), lines.as_bytes());
    let public = receipt_key().public();
    let signed = fhaim_protocol::crypto::chain::ChainReceipt::try_from(&receipt()).unwrap();
    signed.verify(&public).unwrap();
    let other = ReceiptKey::from_bytes(&[8; 32]).unwrap();
    assert!(matches!(
        signed.verify(&other.public()),
        Err(fhaim_protocol::Error::Request(..))
    ));
}

/// Places the batches of a run: the total and a marginal, then a product.
fn placed() -> (Window, Vec<ReleaseRequest>) {
    let plan = LadderPlan::new(9000, 1 << 33).unwrap();
    let mut window = Window::new(DATASET, JOB, 2, plan);
    let releases = releases()[..3].to_vec();
    for batch in releases.chunks(2) {
        let placement = window.place(batch).unwrap();
        window.take(&placement);
    }
    (window, releases)
}

/// Both services store statements. A release that is requested again must have the same statement.
#[test]
fn window_with_statements_is_unchanged() {
    let (window, releases) = placed();
    json("window.json", &window);
    refuses_unknown_fields::<Window>("window.json");
    let text = stored("window.json");
    let stored: Window = serde_json::from_slice(&text).unwrap();
    assert!(stored.place(&releases).unwrap().repeated);
}

/// Sealing the same inputs again must give the same randomness.
#[test]
fn sealing_randomness_is_unchanged() {
    let key = SealingKey::from_bytes(&[3; 32]).unwrap();
    let (window, releases) = placed();
    let statements: Vec<[u8; 32]> = window.placed().iter().map(|p| p.statement).collect();
    let spans = window.place(&releases).unwrap().spans.concat();
    let mut generator = key.generator(&Context {
        dataset: DATASET,
        job: JOB,
        run: 2,
        first: 0,
        statements: &statements,
        spans: &spans,
        variance_units: 77,
        residue: 1,
        ciphertexts: [8; 32],
    });
    let mut drawn = [0; 64];
    generator.fill_bytes(&mut drawn);
    let lines = format!("{}\n{}\n", hex(&key.commitment(&[4; 32])), hex(&drawn));
    let made = || lines.clone().into_bytes();
    assert_eq!(golden("sealing", made), lines.as_bytes());
}
