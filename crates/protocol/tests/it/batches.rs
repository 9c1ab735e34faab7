//! Tests that batches of one dataset are computed at the same time, with the results of separate
//! computations.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_domain::{Schema, Table};
use fhaim_dp::{Ladder, LadderPlan, Rho};
use fhaim_he::{Chunks, Columns, Error, Layout, Parameters, Section, UploadKey, WIDE};
use fhaim_protocol::encryption::Encryption;
use fhaim_protocol::terms::PlanCore;
use fhaim_protocol::{
    computation::{Computation, SealedBatch},
    crypto::{CryptoService, judge::Rules},
    encryption::Encryptor,
    holder::{self, Holder, HolderNoise},
    joint::join_uploads,
    request::{DatasetId, JobId},
    sealing::SealingKey,
    upload::UploadPlan,
    window::Window,
};
use fhaim_release::{Axis, Holders, ReleaseRequest, SquaredTerm, Statistic};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const DATASET: DatasetId = DatasetId([7; 16]);

/// Time that a read waits for the other batches before it fails. It elapses only if batches wait
/// for each other.
const PATIENCE: Duration = Duration::from_secs(60);

/// A table whose columns can be read only once the expected number of batches read.
#[derive(Debug)]
struct Gated {
    table: Arc<dyn Columns>,
    /// Reads that must still begin before the first one continues.
    missing: Mutex<usize>,
    opened: Condvar,
}

impl Columns for Gated {
    fn params(&self) -> &Parameters {
        self.table.params()
    }

    fn layout(&self) -> Layout {
        self.table.layout()
    }

    fn count(&self) -> usize {
        self.table.count()
    }

    fn sections(&self) -> Vec<Section> {
        self.table.sections()
    }

    fn read(
        &self,
        residue: usize,
        columns: &[usize],
        chunks: Range<usize>,
    ) -> fhaim_he::Result<Vec<Chunks>> {
        let mut missing = self.missing.lock().unwrap();
        *missing = missing.saturating_sub(1);
        self.opened.notify_all();
        let waited = self
            .opened
            .wait_timeout_while(missing, PATIENCE, |missing| *missing > 0);
        if waited.unwrap().1.timed_out() {
            return Err(Error::Unavailable("no other batch reads".to_owned()));
        }
        self.table.read(residue, columns, chunks)
    }
}

/// A dataset whose columns can be read once `jobs` batches read at the same time, and the windows
/// of as many jobs.
fn dataset(jobs: usize) -> (Computation, Vec<Window>) {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let json = r#"{"name":"t","columns":[
        {"name":"a","kind":"categorical","categories":["x","y"]},
        {"name":"b","kind":"categorical","categories":["u","v","w"]},
        {"name":"c","kind":"categorical","categories":["s","t"]}]}"#;
    let schema = Schema::from_json("t.json", json.as_bytes()).unwrap();
    let column = |size: u32| (0..100).map(|i| i * 5 % 7 % size).collect();
    let table = Table::new(Arc::new(schema), vec![column(2), column(3), column(2)]).unwrap();
    let domain = table.domain().clone();
    let run = LadderPlan::new(100, 1 << 10).unwrap();
    let rules = Rules {
        dataset: DATASET,
        plan: PlanCore {
            set: WIDE,
            budget: Rho::from_f64_down(100.0).unwrap(),
            run_budget: Rho::from_f64_down(100.0).unwrap(),
            runs: jobs as u32,
            run_ladder: run,
            domain: domain.clone(),
            record_bound: 1000,
            holders: Holders::one(),
            members: Vec::new(),
            witness: false,
            key_services: Vec::new(),
            encryption: Encryption::OwnKey,
        },
    };
    let params = Parameters::new(WIDE).unwrap();
    let mut crypto = CryptoService::new(rules, &params, &mut rng).unwrap();
    let public = crypto.public_key(&mut rng).unwrap();
    let keys = crypto.evaluation_keys(None, &mut rng).unwrap();
    let positions = run.pages() * jobs * fhaim_he::PAGE;
    let plan = LadderPlan::with_levels(positions, run.levels()).unwrap();
    let ladder = Ladder::draw(plan, &mut rng);
    let upload_plan = UploadPlan::for_table(&domain, 100, plan, &WIDE).unwrap();
    let own = UploadKey::random(&params, &mut rng).unwrap();
    let encryptor = Encryptor::sole(&public, &own);
    let noise = HolderNoise::Drawn(&ladder);
    let holder = Holder::new(&table, 1000, noise, encryptor, upload_plan).unwrap();
    let mut upload = holder::encrypt(&holder, &mut rng, &|| ()).unwrap();
    upload.table = Arc::new(Gated {
        table: upload.table,
        missing: Mutex::new(jobs),
        opened: Condvar::new(),
    });
    let upload = join_uploads(&domain, &Holders::one(), &keys, &[upload]).unwrap();
    let window = |job: usize| {
        let begun = crypto.begin(JobId([job as u8; 16]), [4; 32]);
        begun.unwrap().window().clone()
    };
    let windows = (0..jobs).map(window).collect();
    (
        Computation::new(DATASET, domain, public, keys, upload),
        windows,
    )
}

/// Computes each window's batch, all at the same time.
fn answers(computation: &Computation, batches: &[(Window, ReleaseRequest)]) -> Vec<SealedBatch> {
    let key = SealingKey::from_bytes(&[6; 32]).unwrap();
    std::thread::scope(|scope| {
        let answer = |(window, request): &'_ (Window, ReleaseRequest)| {
            let request = std::slice::from_ref(request);
            computation.answer(window, request, &key).unwrap()
        };
        let running: Vec<_> = batches
            .iter()
            .map(|batch| scope.spawn(move || answer(batch)))
            .collect();
        let answers = running.into_iter().map(|batch| batch.join().unwrap());
        answers.collect()
    })
}

fn check(statistics: Vec<Statistic>) {
    let (computation, windows) = dataset(statistics.len());
    let params = Parameters::new(WIDE).unwrap();
    let request = |statistic| ReleaseRequest {
        number: 0,
        statistic,
        variance_units: 7,
    };
    let batches: Vec<_> = windows
        .into_iter()
        .zip(statistics.into_iter().map(request))
        .collect();
    let together = answers(&computation, &batches);
    for (batch, answer) in batches.iter().zip(&together) {
        // All reads succeed from now on.
        let alone = answers(&computation, std::slice::from_ref(batch));
        assert!(alone[0].request.to_bytes(&params) == answer.request.to_bytes(&params));
    }
}

/// With a lock on the dataset, the first batch would wait forever for the second one to read.
#[test]
fn batches_of_one_dataset_are_computed_at_the_same_time() {
    check(vec![
        Statistic::OneWay(Axis::identity(0, 2)),
        Statistic::Product(Axis::identity(1, 3), Axis::identity(2, 2)),
        Statistic::Total,
    ]);
}

/// Squares of scores are cached. Two batches compute the squares that only they need in parallel,
/// and one waits for the squares that both need.
#[test]
fn squares_of_one_dataset_are_computed_at_the_same_time() {
    let term = |a: usize, b: usize, cells: i64| SquaredTerm {
        clique: fhaim_domain::Clique::new([a, b]),
        target: (0..cells).collect(),
        weight: 3,
    };
    check(vec![
        Statistic::SquaredScores(vec![term(0, 1, 6), term(0, 2, 4)]),
        Statistic::SquaredScores(vec![term(0, 2, 4), term(1, 2, 6)]),
    ]);
}
