//! Messages of services that share a key.

use crate::files::{golden, json, refuses_unknown_fields, stored};
use crate::terms::terms;
use crate::wire::DATASET;
use fhaim_api::Digest;
use fhaim_api::dataset::WireTerms;
use fhaim_api::keys::{Confirmation, KeyServiceDocument, KeyServices, NewShare};
use fhaim_protocol::committee::call::{CommitteeAnswer, CommitteeCall};
use fhaim_protocol::committee::{KeyService, ServiceSigningKey};
use fhaim_protocol::crypto::chain::Act;
use fhaim_protocol::terms::Terms;
use fhaim_synth::Mechanisms;

fn service(number: u8) -> KeyService {
    KeyService {
        name: format!("hospital {number}"),
        key: ServiceSigningKey::from_bytes(&[number; 32]).public(),
    }
}

fn shared() -> Terms {
    let shared = Terms {
        witness: true,
        key_services: vec![service(1), service(2)],
        ..terms("staged")
    };
    shared.complete(&Mechanisms).unwrap()
}

#[test]
fn terms_with_key_services_are_unchanged() {
    let shared = shared();
    assert_eq!(shared.plan().unwrap().parameters().unwrap().shares(), 2);
    json("terms.shared.json", &shared);
    refuses_unknown_fields::<Terms>("terms.shared.json");
    let text = String::from_utf8(stored("terms.shared.json")).unwrap();
    let twice = text.replacen("hospital 2", "hospital 1", 1);
    let twice: Terms = serde_json::from_str(&twice).unwrap();
    assert!(matches!(
        twice.plan(),
        Err(fhaim_protocol::Error::Committee(_))
    ));
    let squares = Terms {
        mechanism: "fhaim-l2".to_owned(),
        need: None,
        parameter_set: None,
        ..shared
    };
    let squares = squares.complete(&Mechanisms).unwrap();
    let refused = squares.plan().unwrap_err().to_string();
    assert!(refused.contains("squared scores"), "{refused}");
}

#[test]
fn messages_of_services_that_share_a_key_are_unchanged() {
    let confirmation = Confirmation::new(&[7; 16], &[vec![1, 2], vec![3]]);
    assert_eq!(confirmation.attempt().unwrap(), [7; 16]);
    assert_eq!(confirmation.messages().unwrap(), [vec![1, 2], vec![3]]);
    json("confirmation.json", &confirmation);
    refuses_unknown_fields::<Confirmation>("confirmation.json");
    let new = NewShare {
        owner: DATASET,
        terms: WireTerms(shared()),
        attempt: confirmation.attempt,
    };
    json("new-share.json", &new);
    refuses_unknown_fields::<NewShare>("new-share.json");
    let services = KeyServices {
        services: vec![KeyServiceDocument {
            name: "hospital 1".to_owned(),
            key: Digest(service(1).key),
        }],
    };
    json("key-services.json", &services);
    refuses_unknown_fields::<KeyServices>("key-services.json");
    let call = CommitteeCall {
        consents: vec![Act::Withdrawn { member: 1 }],
        attempt: [7; 16],
        confirmations: vec![vec![1, 2], vec![3]],
        assignment: vec![4; 10],
        verdicts: vec![vec![5]],
        request: vec![6; 20],
    };
    let bytes = golden("share.call", || call.to_bytes().unwrap());
    assert_eq!(CommitteeCall::from_bytes(&bytes).unwrap(), call);
    assert_eq!(call.to_bytes().unwrap(), bytes);
    let answer = CommitteeAnswer {
        verdict: vec![7; 5],
        share: Some(vec![8; 9]),
    };
    let bytes = golden("share.answer", || answer.to_bytes());
    assert_eq!(CommitteeAnswer::from_bytes(&bytes).unwrap(), answer);
    assert_eq!(answer.to_bytes(), bytes);
}
