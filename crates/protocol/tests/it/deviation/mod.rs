//! Tests a computation service that deviates from the protocol, under real encryption. Without
//! other services the key service releases its requests, and the holder with the ladder's key
//! detects it afterwards. Under terms with a second computation service nothing is released.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

mod afterwards;
mod witness;

use fhaim_domain::{Schema, Table};
use fhaim_dp::{KeyedLadder, LadderKey, LadderPlan, Rho};
use fhaim_he::{
    Ciphertext, EvaluationKeys, PAGE, Parameters, PublicKey, UploadKey, WIDE, coefficient,
};
use fhaim_protocol::encryption::Encryption;
use fhaim_protocol::terms::PlanCore;
use fhaim_protocol::{
    computation::Computation,
    crypto::{CryptoService, judge::Rules},
    encryption::{Encryptor, Payload},
    holder::{Holder, HolderNoise},
    joint::join_uploads,
    request::{DatasetId, DecryptRequest, JobId},
    sealing::SealingKey,
    upload::{Object, ReceivedUpload, UploadPlan},
};
use fhaim_release::{Axis, Holders, ReleaseRequest, Statistic};
use fhaim_synth::{
    exact,
    verify::{Difference, difference, expected},
};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

const DATASET: DatasetId = DatasetId([7; 16]);
const JOB: JobId = JobId([1; 16]);
const UNITS: u64 = 1000;

fn table() -> Table {
    let json = r#"{"name":"t","columns":[
        {"name":"a","kind":"categorical","categories":["x","y"]},
        {"name":"b","kind":"categorical","categories":["u","v","w"]}]}"#;
    let schema = Schema::from_json("t.json", json.as_bytes()).unwrap();
    let columns = vec![
        (0..100).map(|i| u32::from(i % 3 == 0)).collect(),
        (0..100).map(|i| i * i % 7 % 3).collect(),
    ];
    Table::new(Arc::new(schema), columns).unwrap()
}

/// One batch, all of it on one page.
fn requests() -> Vec<ReleaseRequest> {
    let pair = Statistic::Product(Axis::identity(0, 2), Axis::identity(1, 3));
    let statistics = [
        Statistic::Total,
        Statistic::OneWay(Axis::identity(1, 3)),
        pair,
    ];
    let request = |(number, statistic)| ReleaseRequest {
        number,
        statistic,
        variance_units: UNITS,
    };
    (0..).zip(statistics).map(request).collect()
}

/// The holder's upload.
type Objects = BTreeMap<Object, Payload>;

struct Setting {
    table: Table,
    key: LadderKey,
    run: LadderPlan,
    params: Parameters,
    crypto: CryptoService,
    public: PublicKey,
    evaluation: EvaluationKeys,
    /// The holder's upload key.
    own: UploadKey,
    rng: ChaCha20Rng,
}

impl Setting {
    fn generator() -> ChaCha20Rng {
        ChaCha20Rng::seed_from_u64(3)
    }

    /// `witness` is whether the terms have a second computation service.
    fn new(witness: bool) -> Self {
        let mut rng = Self::generator();
        let table = table();
        let run = LadderPlan::new(10, UNITS).unwrap();
        let params = Parameters::new(WIDE).unwrap();
        let rules = Rules {
            dataset: DATASET,
            plan: PlanCore {
                set: WIDE,
                budget: Rho::from_f64_down(100.0).unwrap(),
                run_budget: Rho::from_f64_down(100.0).unwrap(),
                runs: 1,
                run_ladder: run,
                domain: table.domain().clone(),
                record_bound: 1000,
                holders: Holders::one(),
                members: Vec::new(),
                witness,
                key_services: Vec::new(),
                encryption: Encryption::OwnKey,
            },
        };
        let crypto = CryptoService::new(rules, &params, &mut rng).unwrap();
        Self {
            public: crypto.public_key(&mut rng).unwrap(),
            evaluation: crypto.evaluation_keys(None, &mut rng).unwrap(),
            key: LadderKey::random(DATASET.0, &mut rng),
            own: UploadKey::random(&params, &mut rng).unwrap(),
            table,
            run,
            params,
            crypto,
            rng,
        }
    }

    fn plan(&self) -> UploadPlan {
        UploadPlan::for_table(self.table.domain(), 100, self.run, &WIDE).unwrap()
    }

    fn objects(&mut self) -> Objects {
        let plan = self.plan();
        let noise = HolderNoise::Keyed(&self.key);
        let encryptor = Encryptor::sole(&self.public, &self.own);
        let holder = Holder::new(&self.table, 1000, noise, encryptor, plan).unwrap();
        let mut objects = Objects::new();
        for object in plan.objects() {
            objects.insert(object, holder.encrypt(object, &mut self.rng).unwrap());
        }
        objects
    }

    /// Makes the batch's request as a computation service does from these objects.
    fn request(&mut self, objects: &Objects) -> DecryptRequest {
        let of = |object: Object| Ok(objects[&object].clone());
        let upload = ReceivedUpload::from_objects(&self.params, self.plan(), of).unwrap();
        let domain = self.table.domain().clone();
        let keys = self.evaluation.clone();
        let upload = join_uploads(&domain, &Holders::one(), &keys, &[upload]).unwrap();
        let computation = Computation::new(DATASET, domain, self.public.clone(), keys, upload);
        let job_ledger = self.crypto.begin(JOB, [4; 32]).unwrap();
        let window = job_ledger.window().clone();
        let sealing = SealingKey::from_bytes(&[6; 32]).unwrap();
        let answer = computation.answer(&window, &requests(), &sealing).unwrap();
        answer.request
    }

    /// Makes a request deviate: adds these coefficients, encrypted, to its page.
    fn add(&mut self, request: &mut DecryptRequest, coefficients: &[i64]) {
        let more = self.public.encrypt(coefficients, &mut self.rng).unwrap();
        for (sealed, more) in request.pages[0].ciphertexts.iter_mut().zip(&more) {
            *sealed = Ciphertext::sum(&self.params, [&*sealed, more]).unwrap();
        }
    }

    /// Returns the differences that the holder finds, release by release.
    fn found(&self, released: &[Vec<i64>]) -> Vec<Option<Difference>> {
        let job_ledger = self.crypto.record().job_ledger(JOB).unwrap();
        let window = fhaim_protocol::window::Window::new(DATASET, JOB, 0, self.run);
        let placement = window.place(&requests()).unwrap();
        assert_eq!(placement.placed, job_ledger.window().placed());
        let mut ladder = KeyedLadder::new(&self.key, self.run);
        let of = requests().into_iter().zip(&placement.spans).zip(released);
        of.map(|((request, spans), released)| {
            let noise = ladder.release_noise(spans, UNITS).unwrap();
            let expected = expected(&self.table, &request.statistic, &noise).unwrap();
            difference(&expected, released)
        })
        .collect()
    }
}

/// Replaces the holder's noise by zeros.
fn without_noise(setting: &mut Setting, objects: &Objects) -> Objects {
    let mut objects = objects.clone();
    let zero = setting.own.encrypt(&vec![0; PAGE], &mut setting.rng);
    let zero = Payload::Seeded(zero.unwrap());
    for (object, taken) in &mut objects {
        if let Object::Noise { .. } = object {
            taken.clone_from(&zero);
        }
    }
    objects
}

/// One, to add to the second cell of the one-way table, whose positions follow the number of
/// records.
fn one_more() -> Vec<i64> {
    let mut one = vec![0; PAGE];
    one[coefficient(2)] = 1;
    one
}

/// Replaces a column that was requested and paid for by another one.
fn another_column(objects: &Objects) -> Objects {
    let mut objects = objects.clone();
    let column = |column| Object::Column { column, chunk: 0 };
    let other = objects[&column(3)].clone();
    objects.insert(column(2), other);
    objects
}
