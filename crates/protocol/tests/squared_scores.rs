//! Squared scores of a dataset of two holders. They contain the product of both holders' counts, so a holder that
//! uploads columns of its own making could read the other's counts.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_domain::{Clique, Domain, Schema, Table};
use fhaim_dp::{Ladder, LadderPlan, Rho};
use fhaim_he::{P2, Parameters, PublicKey};
use fhaim_protocol::Error;
use fhaim_protocol::computation::Computation;
use fhaim_protocol::counts::tally::Tally;
use fhaim_protocol::counts::upload::{CountsHolder, CountsPlan, CountsUpload};
use fhaim_protocol::crypto::{CryptoService, judge::Rules};
use fhaim_protocol::encryption::{Encryptor, Payload};
use fhaim_protocol::holder::{Holder, Noise};
use fhaim_protocol::joint::join_uploads;
use fhaim_protocol::panel::decryption::request_digest;
use fhaim_protocol::panel::docket::Record;
use fhaim_protocol::request::{DatasetId, DecryptRequest, JobId};
use fhaim_protocol::sealing::SealingKey;
use fhaim_protocol::upload::{Object, Upload, UploadPlan};
use fhaim_release::{Holders, ReleaseRequest, SquaredTerm, Statistic};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use std::collections::HashMap;
use std::sync::Arc;

const DATASET: DatasetId = DatasetId([7; 16]);
const JOB: JobId = JobId([1; 16]);
const BOUND: u64 = 20_000;

/// What the dishonest holder encrypts in the columns of its one row in place of 1. Its counts are the square.
const VALUE: i64 = 3200;

fn table(rows: u32, salt: u32) -> Table {
    let json = r#"{"name":"t","columns":[
        {"name":"a","kind":"categorical","categories":["x","y","z"]},
        {"name":"b","kind":"categorical","categories":["p","q"]}]}"#;
    let schema = Arc::new(Schema::from_json("t.json", json.as_bytes()).unwrap());
    let columns = vec![
        (0..rows).map(|i| (i * 7 + salt) % 11 % 3).collect(),
        (0..rows).map(|i| (i * 5 + salt) % 7 % 2).collect(),
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

/// Services that follow the protocol, and the uploads of an honest and a dishonest holder.
struct Setting {
    params: Parameters,
    domain: Domain,
    holders: Holders,
    rules: Rules,
    crypto: CryptoService,
    public: PublicKey,
    honest: Upload,
    dishonest: Upload,
    rng: ChaCha20Rng,
}

fn setting() -> Setting {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let tables = [table(100, 1), table(1, 2)];
    let domain = tables[0].domain().clone();
    let params = Parameters::new(P2).unwrap();
    let holders = Holders::of_records(2, 1).unwrap();
    let plan = LadderPlan::new(500, 1 << 30).unwrap();
    let rules = Rules {
        dataset: DATASET,
        domain: domain.clone(),
        record_bound: BOUND,
        holders: holders.clone(),
        members: Vec::new(),
        runs: 1,
        run_budget: Rho::from_f64_down(1000.0).unwrap(),
        run_ladder: plan,
        residues: P2.plaintext_moduli.len(),
        witness: false,
    };
    let crypto = CryptoService::new(rules.clone(), &params, &mut rng).unwrap();
    let public = crypto.public_key(&mut rng).unwrap();
    let mut upload = |table: &Table, value: i64| {
        let ladder = Ladder::draw(plan, &mut rng);
        let plan = UploadPlan::for_table(&domain, table.records(), plan, &P2).unwrap();
        let holder = Holder::new(table, BOUND, Noise::Drawn(&ladder), &public, plan).unwrap();
        let objects = plan.objects().map(|object| {
            let payload = match object {
                Object::Column { column, .. } if value != 1 => {
                    let (attribute, category) = domain.one_hot_position(column).unwrap();
                    let has = table.column(attribute)[0] == category;
                    let values = [if has { value } else { 0 }];
                    Payload::Ciphertexts(public.encrypt(&values, &mut rng).unwrap())
                }
                _ => holder.encrypt(object, &mut rng).unwrap(),
            };
            (object, payload)
        });
        let objects: HashMap<Object, Payload> = objects.collect();
        Upload::from_objects(&params, plan, |object| Ok(objects[&object].clone())).unwrap()
    };
    let honest = upload(&tables[0], 1);
    let dishonest = upload(&tables[1], VALUE);
    Setting {
        params,
        domain,
        holders,
        rules,
        crypto,
        public,
        honest,
        dishonest,
        rng,
    }
}

impl Setting {
    fn joined(&self) -> Upload {
        let uploads = [self.honest.clone(), self.dishonest.clone()];
        join_uploads(&self.params, &self.domain, &self.holders, &uploads).unwrap()
    }

    /// What a computation service that holds `upload` makes of a request for squared scores.
    fn compute(&mut self, upload: Upload) -> Result<DecryptRequest, Error> {
        let keys = self.crypto.evaluation_keys(&mut self.rng).unwrap();
        let (domain, public) = (self.domain.clone(), self.public.clone());
        let computation = Computation::new(DATASET, domain, public, keys, upload);
        let window = self.crypto.begin(JOB, [4; 32]).unwrap().window().clone();
        let key = SealingKey::from_bytes(&[6; 32]).unwrap();
        Ok(computation.answer(&window, &scores(), &key)?.request)
    }

    /// The same of a computation service that deviates: it takes both holders' tables for those of one.
    fn compute_as_one(&mut self) -> DecryptRequest {
        let ladder = self.dishonest.ladder.clone();
        let upload = Upload {
            ladder,
            ..self.joined()
        };
        self.compute(upload).unwrap()
    }
}

/// The honest holder's count in the dishonest holder's cell, from a released score: the score has 2 w VALUE^2 times it.
fn read_count(released: i64) -> i64 {
    let (weight, amount) = (2, i128::from(VALUE * VALUE));
    let row = table(1, 2);
    let cell = row.column(0)[0] * 2 + row.column(1)[0];
    let known = weight * (amount.pow(2) - 2 * amount * i128::from(cell));
    let rest = i128::from(released) - known;
    (rest as f64 / (2 * weight * amount) as f64).round() as i64
}

fn exact_count() -> i64 {
    let (row, honest) = (table(1, 2), table(100, 1));
    let same = |&i: &usize| (0..2).all(|a| honest.column(a)[i] == row.column(a)[0]);
    (0..100).filter(same).count() as i64
}

fn is_refused(error: &Error) -> bool {
    matches!(error, Error::Statistic { number: 0, reason } if reason.contains("squared scores"))
}

#[test]
fn computation_service_refuses_squared_scores_of_two_holders() {
    let mut setting = setting();
    let joined = setting.joined();
    match setting.compute(joined) {
        Err(error) => assert!(is_refused(&error), "{error}"),
        Ok(request) => {
            let released = setting.crypto.decrypt(&request).unwrap();
            panic!(
                "the dishonest holder reads {}; the honest holder's count is {}",
                read_count(released[0][0]),
                exact_count()
            );
        }
    }
}

#[test]
fn computation_service_refuses_squared_scores_of_counts_of_two_holders() {
    let mut setting = setting();
    let plan = CountsPlan::new(&setting.domain, setting.rules.run_ladder).unwrap();
    let parts = [table(100, 1), table(50, 2)];
    let mut objects = HashMap::new();
    for (number, part) in parts.iter().enumerate() {
        let ladder = Ladder::draw(plan.ladder, &mut setting.rng);
        let tally = Tally::of_table(plan.tables.clone(), BOUND, part).unwrap();
        let encryptor = Encryptor::new(&setting.public, None);
        let holder = CountsHolder::new(&tally, Noise::Drawn(&ladder), encryptor, &plan).unwrap();
        for object in plan.objects() {
            let payload = holder.encrypt(object, &mut setting.rng).unwrap();
            objects.insert((number, object), payload);
        }
    }
    let get = |number, object| Ok(objects[&(number, object)].clone());
    let noise = Arc::new(objects.clone());
    let upload = CountsUpload::join(&setting.params, &plan, &setting.holders, get, noise).unwrap();
    let keys = setting.crypto.evaluation_keys(&mut setting.rng).unwrap();
    let computation =
        Computation::of_counts(DATASET, setting.public.clone(), keys, upload).unwrap();
    let window = setting.crypto.begin(JOB, [4; 32]).unwrap().window().clone();
    let key = SealingKey::from_bytes(&[6; 32]).unwrap();
    let refused = computation.answer(&window, &scores(), &key).map(|_| ());
    assert!(is_refused(&refused.unwrap_err()));
}

#[test]
fn key_service_refuses_squared_scores_of_two_holders() {
    let mut setting = setting();
    let request = setting.compute_as_one();
    if let Ok(released) = setting.crypto.decrypt(&request) {
        panic!(
            "the dishonest holder reads {}; the honest holder's count is {}",
            read_count(released[0][0]),
            exact_count()
        );
    }
    assert!(setting.crypto.record().standing().frozen().is_none());
    assert!(setting.crypto.ledger(JOB).unwrap().entries().is_empty());
}

#[test]
fn services_that_share_a_key_refuse_squared_scores_of_two_holders() {
    let mut setting = setting();
    let request = setting.compute_as_one();
    let mut record = Record::new(setting.rules.clone(), 2);
    record.assign(JOB, [4; 32]).unwrap();
    let digest = request_digest(&setting.params, &request);
    let error = record.judge(&request, &digest, None).unwrap_err();
    assert!(is_refused(&error), "{error}");
}
