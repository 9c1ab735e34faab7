//! Tests that key services refuse squared scores of two holders in every request of a computation
//! service. They contain the product of both holders' counts, so a holder that uploads forged
//! columns could read the other's counts. `holders.rs` tests that computation services refuse them
//! too.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_domain::{Clique, Domain, Schema, Table};
use fhaim_dp::{Ladder, LadderPlan, Rho};
use fhaim_he::{Parameters, UploadKey, WIDE};
use fhaim_protocol::Error;
use fhaim_protocol::committee::decryption::request_digest;
use fhaim_protocol::committee::state::SharedDatasetState;
use fhaim_protocol::computation::Computation;
use fhaim_protocol::crypto::{CryptoService, judge::Rules};
use fhaim_protocol::encryption::Encryption;
use fhaim_protocol::encryption::Encryptor;
use fhaim_protocol::holder::{self, Holder, HolderNoise};
use fhaim_protocol::joint::join_uploads;
use fhaim_protocol::request::{DatasetId, DecryptRequest, JobId};
use fhaim_protocol::sealing::SealingKey;
use fhaim_protocol::terms::PlanCore;
use fhaim_protocol::upload::UploadPlan;
use fhaim_release::{Holders, ReleaseRequest, SquaredTerm, Statistic};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use std::sync::Arc;

const DATASET: DatasetId = DatasetId([7; 16]);
const JOB: JobId = JobId([1; 16]);
const BOUND: u64 = 20_000;
const RECORDS: u32 = 100;

fn table() -> Table {
    let json = r#"{"name":"t","columns":[
        {"name":"a","kind":"categorical","categories":["x","y","z"]},
        {"name":"b","kind":"categorical","categories":["p","q"]}]}"#;
    let schema = Arc::new(Schema::from_json("t.json", json.as_bytes()).unwrap());
    let columns = vec![
        (0..RECORDS).map(|i| i * 7 % 11 % 3).collect(),
        (0..RECORDS).map(|i| i * 5 % 7 % 2).collect(),
    ];
    Table::new(schema, columns).unwrap()
}

fn scores() -> Vec<ReleaseRequest> {
    let term = SquaredTerm {
        clique: Clique::new([0, 1]),
        weight: 2,
        target: (0..6).collect(),
    };
    vec![ReleaseRequest {
        number: 0,
        statistic: Statistic::SquaredScores(vec![term]),
        variance_units: 1 << 29,
    }]
}

fn rules(domain: &Domain, plan: LadderPlan) -> Rules {
    Rules {
        dataset: DATASET,
        plan: PlanCore {
            set: WIDE,
            budget: Rho::from_f64_down(1000.0).unwrap(),
            run_budget: Rho::from_f64_down(1000.0).unwrap(),
            runs: 1,
            run_ladder: plan,
            domain: domain.clone(),
            record_bound: BOUND,
            holders: Holders::of_records(2, 1).unwrap(),
            members: Vec::new(),
            witness: false,
            key_services: Vec::new(),
            encryption: Encryption::RosterKey,
        },
    }
}

/// A key service of a dataset with two holders, and the request of a computation service that
/// treats the dataset as one of a sole holder, with the keys of such a dataset.
fn setting(params: &Parameters) -> (CryptoService, Rules, DecryptRequest) {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let table = table();
    let domain = table.domain().clone();
    let plan = LadderPlan::new(500, 1 << 30).unwrap();
    let rules = rules(&domain, plan);
    let mut crypto = CryptoService::new(rules.clone(), params, &mut rng).unwrap();
    let public = crypto.public_key(&mut rng).unwrap();
    let keys = crypto.evaluation_keys(None, &mut rng).unwrap();
    let ladder = Ladder::draw(plan, &mut rng);
    let key = UploadKey::random(params, &mut rng).unwrap();
    let encryptor = Encryptor::sole(&public, &key);
    let plan = UploadPlan::for_table(&domain, table.records(), plan, &WIDE).unwrap();
    let holder = Holder::new(&table, BOUND, HolderNoise::Drawn(&ladder), encryptor, plan).unwrap();
    let upload = holder::encrypt(&holder, &mut rng, &|| ()).unwrap();
    let upload = join_uploads(&domain, &Holders::one(), &keys, &[upload]).unwrap();
    let computation = Computation::new(DATASET, domain, public, keys, upload);
    let window = crypto.begin(JOB, [4; 32]).unwrap().window().clone();
    let key = SealingKey::from_bytes(&[6; 32]).unwrap();
    let request = computation
        .answer(&window, &scores(), &key)
        .unwrap()
        .request;
    (crypto, rules, request)
}

fn is_refused(error: &Error) -> bool {
    matches!(error, Error::Statistic { number: 0, reason } if reason.contains("squared scores"))
}

#[test]
fn key_service_refuses_squared_scores_of_two_holders() {
    let params = Parameters::new(WIDE).unwrap();
    let (mut crypto, _, request) = setting(&params);
    assert!(matches!(crypto.decrypt(&request), Err(Error::Refused)));
    assert!(crypto.record().chain_state().frozen().is_none());
    assert!(crypto.ledger(JOB).unwrap().entries().is_empty());
}

#[test]
fn services_that_share_a_key_refuse_squared_scores_of_two_holders() {
    let params = Parameters::new(WIDE).unwrap();
    let (_, rules, request) = setting(&params);
    let mut record = SharedDatasetState::new(rules, 2);
    record.assign(JOB, [4; 32]).unwrap();
    let digest = request_digest(&params, &request);
    let error = record.judge(&request, &digest, None).unwrap_err();
    assert!(is_refused(&error), "{error}");
}
