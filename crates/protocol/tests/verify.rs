//! A computation service that does other than it was asked, under real encryption: the key service
//! releases what it is sent, and the holder of the ladder's key finds it out.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_domain::{Schema, Table};
use fhaim_dp::{KeyedLadder, LadderKey, LadderPlan, Rho};
use fhaim_he::{Ciphertext, EvaluationKeys, P2, PAGE, Parameters, PublicKey, coefficient};
use fhaim_protocol::{
    computation::Computation,
    crypto::{CryptoService, judge::Rules},
    holder::{Holder, Noise},
    request::{DatasetId, JobId},
    sealing::SealingKey,
    upload::{Object, Upload, UploadPlan},
};
use fhaim_release::{Axis, Holders, ReleaseRequest, Statistic};
use fhaim_synth::{
    exact,
    verify::{Difference, difference, expected},
};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use std::sync::Arc;

const DATASET: DatasetId = DatasetId([7; 16]);
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

struct Setting {
    table: Table,
    key: LadderKey,
    run: LadderPlan,
    params: Parameters,
    crypto: CryptoService,
    public: PublicKey,
    evaluation: EvaluationKeys,
    rng: ChaCha20Rng,
}

impl Setting {
    fn new() -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let table = table();
        let run = LadderPlan::dense(10, UNITS).unwrap();
        let params = Parameters::new(P2).unwrap();
        let rules = Rules {
            dataset: DATASET,
            domain: table.domain().clone(),
            record_bound: 1000,
            holders: Holders::one(),
            members: Vec::new(),
            runs: 1,
            run_budget: Rho::from_f64_down(100.0).unwrap(),
            run_ladder: run,
            residues: P2.plaintext_moduli.len(),
        };
        let crypto = CryptoService::new(rules, &params, &mut rng).unwrap();
        Self {
            public: crypto.public_key(&mut rng).unwrap(),
            evaluation: crypto.evaluation_keys(&mut rng).unwrap(),
            key: LadderKey::random(DATASET.0, &mut rng),
            table,
            run,
            params,
            crypto,
            rng,
        }
    }

    fn plan(&self) -> UploadPlan {
        UploadPlan::for_table(self.table.domain(), 100, self.run, &P2).unwrap()
    }

    fn encrypt(&mut self, coefficients: &[i64]) -> Vec<Ciphertext> {
        self.public.encrypt(coefficients, &mut self.rng).unwrap()
    }

    /// What the holder uploads, each object as the computation service then takes it.
    fn upload(&mut self, mut taken: impl FnMut(Object) -> Taken) -> Upload {
        let plan = self.plan();
        let zero = self.encrypt(&vec![0; PAGE]);
        let (public, key, table) = (self.public.clone(), self.key.clone(), self.table.clone());
        let holder = Holder::new(&table, 1000, Noise::Keyed(&key), &public, plan).unwrap();
        let rng = &mut self.rng;
        Upload::from_objects(&self.params, plan, |object| match taken(object) {
            Taken::Asked => holder.encrypt(object, rng),
            Taken::Other(other) => holder.encrypt(other, rng),
            Taken::Zero => Ok(zero.clone()),
        })
        .unwrap()
    }

    /// What is released when the computation service works on this upload, and adds `more` to its page.
    fn released(&mut self, upload: Upload, more: Option<Vec<i64>>) -> Vec<Vec<i64>> {
        let domain = self.table.domain().clone();
        let keys = self.evaluation.clone();
        let computation = Computation::new(DATASET, domain, self.public.clone(), keys, upload);
        let book = self.crypto.begin(JobId([1; 16]), [4; 32]).unwrap();
        let window = book.window().clone();
        let sealing = SealingKey::from_bytes(&[6; 32]).unwrap();
        let answer = computation.answer(&window, &requests(), &sealing).unwrap();
        let mut request = answer.request;
        if let Some(more) = more {
            let more = self.encrypt(&more);
            let page = &mut request.pages[0];
            for (sealed, more) in page.ciphertexts.iter_mut().zip(&more) {
                *sealed = Ciphertext::sum(&self.params, [&*sealed, more]).unwrap();
            }
        }
        self.crypto.decrypt(&request).unwrap()
    }

    /// What the holder finds, release by release.
    fn found(&self, released: &[Vec<i64>]) -> Vec<Option<Difference>> {
        let book = self.crypto.record().book(JobId([1; 16])).unwrap();
        let window = fhaim_protocol::window::Window::new(DATASET, JobId([1; 16]), 0, self.run);
        let placement = window.place(&requests()).unwrap();
        assert_eq!(placement.placed, book.window().placed());
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

enum Taken {
    Asked,
    Other(Object),
    Zero,
}

#[test]
fn an_honest_computation_is_found_to_be_one() {
    let mut setting = Setting::new();
    let upload = setting.upload(|_| Taken::Asked);
    let released = setting.released(upload, None);
    assert_eq!(setting.found(&released), [None; 3]);
    let bare = exact(&setting.table, &requests()[1].statistic).unwrap();
    assert_ne!(released[1], bare);
}

/// Without noise the key service would hand out exact counts.
#[test]
fn noise_left_out_is_found() {
    let mut setting = Setting::new();
    let upload = setting.upload(|object| match object {
        Object::Noise { .. } => Taken::Zero,
        _ => Taken::Asked,
    });
    let released = setting.released(upload, None);
    for (request, released) in requests().iter().zip(&released) {
        let bare = exact(&setting.table, &request.statistic).unwrap();
        assert_eq!(*released, bare);
    }
    assert!(setting.found(&released).iter().all(Option::is_some));
}

#[test]
fn a_cell_changed_by_one_is_found() {
    let mut setting = Setting::new();
    let upload = setting.upload(|_| Taken::Asked);
    // The second cell of the one-way table, behind the number of records.
    let mut one = vec![0; PAGE];
    one[coefficient(2)] = 1;
    let released = setting.released(upload, Some(one));
    let found = setting.found(&released);
    assert_eq!((found[0], found[2]), (None, None));
    let Some(Difference::Cells {
        count: 1,
        first: 1,
        expected,
        released,
    }) = found[1]
    else {
        panic!("{found:?}");
    };
    assert_eq!(released, expected + 1);
}

/// Counting another column than was asked for, and paid.
#[test]
fn another_columns_ciphertext_is_found() {
    let mut setting = Setting::new();
    let upload = setting.upload(|object| match object {
        Object::Column { column: 2, chunk } => Taken::Other(Object::Column { column: 3, chunk }),
        _ => Taken::Asked,
    });
    let released = setting.released(upload, None);
    let found = setting.found(&released);
    assert_eq!(found[0], None);
    assert!(found[1].is_some() && found[2].is_some(), "{found:?}");
}
