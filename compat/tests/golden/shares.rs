//! Keys that several services share.

use crate::counts::dense;
use crate::files::{SHARED, golden, json, refuses_unknown_fields};
use crate::terms::terms;
use crate::wire::DATASET;
use fhaim_api::Digest;
use fhaim_api::dataset::WireTerms;
use fhaim_api::keys::{Confirmation, KeyServiceDocument, KeyServices, NewShare};
use fhaim_protocol::crypto::chain::Act;
use fhaim_protocol::panel::call::{Answer, Call};
use fhaim_protocol::panel::{KeyService, ServiceKey};
use fhaim_protocol::terms::Terms;
use fhaim_synth::Mechanisms;

fn service(number: u8) -> KeyService {
    KeyService {
        name: format!("hospital {number}"),
        key: ServiceKey::from_bytes(&[number; 32]).public(),
    }
}

fn shared() -> Terms {
    let shared = Terms {
        witness: true,
        key_services: vec![service(1), service(2)],
        need: None,
        version: 1,
        ..dense(terms("staged"))
    };
    shared.complete(&Mechanisms).unwrap()
}

#[test]
fn terms_that_name_key_services_are_of_the_seventh_version() {
    let shared = shared();
    assert_eq!(shared.version, 7);
    assert_eq!(shared.plan().unwrap().parameters().unwrap().shares(), 2);
    json(SHARED, "terms.shared.json", &shared);
    refuses_unknown_fields::<Terms>(SHARED, "terms.shared.json");
    let text = String::from_utf8(golden(SHARED, "terms.shared.json", Vec::new)).unwrap();
    let begin = text.find(r#","key_services":["#).unwrap();
    let without = format!("{}}}", &text[..begin]);
    for other in [
        text.replacen(r#""version":7"#, r#""version":6"#, 1),
        text.replacen("hospital 2", "hospital 1", 1),
        without,
    ] {
        assert_ne!(other, text);
        let other: Terms = serde_json::from_str(&other).unwrap();
        assert!(other.plan().is_err());
    }
    let squares = Terms {
        mechanism: "fhaim-l2".to_owned(),
        need: None,
        version: 1,
        ..shared
    };
    let squares = squares.complete(&Mechanisms).unwrap();
    let refused = squares.plan().unwrap_err().to_string();
    assert!(refused.contains("squared scores"), "{refused}");
}

#[test]
fn what_services_that_share_a_key_send() {
    let confirmation = Confirmation::new(&[7; 16], &[vec![1, 2], vec![3]]);
    assert_eq!(confirmation.attempt().unwrap(), [7; 16]);
    assert_eq!(confirmation.messages().unwrap(), [vec![1, 2], vec![3]]);
    json(SHARED, "confirmation.json", &confirmation);
    refuses_unknown_fields::<Confirmation>(SHARED, "confirmation.json");
    let new = NewShare {
        owner: DATASET,
        terms: WireTerms(shared()),
        attempt: confirmation.attempt,
    };
    json(SHARED, "new-share.json", &new);
    refuses_unknown_fields::<NewShare>(SHARED, "new-share.json");
    let services = KeyServices {
        services: vec![KeyServiceDocument {
            name: "hospital 1".to_owned(),
            key: Digest(service(1).key),
        }],
    };
    json(SHARED, "key-services.json", &services);
    refuses_unknown_fields::<KeyServices>(SHARED, "key-services.json");
    let call = Call {
        consents: vec![Act::Withdrawn { member: 1 }],
        attempt: [7; 16],
        confirmations: vec![vec![1, 2], vec![3]],
        assignment: vec![4; 10],
        verdicts: vec![vec![5]],
        request: vec![6; 20],
    };
    let bytes = golden(SHARED, "share.call", || call.to_bytes().unwrap());
    assert_eq!(Call::from_bytes(&bytes).unwrap(), call);
    assert_eq!(call.to_bytes().unwrap(), bytes);
    let answer = Answer {
        verdict: vec![7; 5],
        share: Some(vec![8; 9]),
    };
    let bytes = golden(SHARED, "share.answer", || answer.to_bytes());
    assert_eq!(Answer::from_bytes(&bytes).unwrap(), answer);
    assert_eq!(answer.to_bytes(), bytes);
}
