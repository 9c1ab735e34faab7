//! Tests that releases under encryption equal counts plus the holder's own noise, integer for
//! integer. The crypto service refuses every request that is not a new, bound, affordable release.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_domain::{Domain, Schema, Table};
use fhaim_dp::{Allocator, Ladder, LadderPlan, Rho, Span};
use fhaim_he::{
    COMPACT, Cell, Ciphertext, Combination, EncryptedTable, EvaluationWork, Evaluator, Factors,
    Layout, PAGE, PackedPage, ParameterSet, Parameters, PublicKey, RosterShape, STANDARD,
    UploadKey, WIDE, seal,
};
use fhaim_protocol::terms::PlanCore;
use fhaim_protocol::{
    Error,
    computation::{Computation, SealedBatch},
    crypto::{CryptoService, chain::Freeze, judge::Rules},
    encryption::{Encryption, Encryptor},
    holder::{self, Holder, HolderNoise},
    joint::join_uploads,
    local::EncryptedSource,
    request::{DatasetId, DecryptRequest, JobId, PageSpan, SealedPage},
    sealing::SealingKey,
    upload::{Object, ReceivedUpload, UploadPlan},
    window::Window,
};
use fhaim_release::{Axis, Holders, ReleaseRequest, ReleaseSource, SquaredTerm, Statistic};
use rand::{Rng, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha20Rng;
use std::{collections::HashMap, sync::Arc};

const DATASET: DatasetId = DatasetId([7; 16]);

/// Largest number of records of a table.
const BOUND: u64 = 10_000;
const JOB: JobId = JobId([1; 16]);

/// Digest of an upload's manifest.
const UPLOAD: [u8; 32] = [4; 32];

fn key() -> SealingKey {
    SealingKey::from_bytes(&[6; 32]).unwrap()
}

fn table(sizes: &[usize], records: usize, rng: &mut ChaCha20Rng) -> Table {
    let column = |(i, n): (usize, &usize)| {
        let categories: Vec<String> = (0..*n).map(|c| format!("\"v{c}\"")).collect();
        format!(
            r#"{{"name":"a{i}","kind":"categorical","categories":[{}]}}"#,
            categories.join(",")
        )
    };
    let columns: Vec<String> = sizes.iter().enumerate().map(column).collect();
    let json = format!(r#"{{"name":"test","columns":[{}]}}"#, columns.join(","));
    let schema = Schema::from_json("test.json", json.as_bytes()).unwrap();
    let columns = sizes
        .iter()
        .map(|&n| {
            (0..records)
                .map(|_| rng.random_range(0..n as u32))
                .collect()
        })
        .collect();
    Table::new(Arc::new(schema), columns).unwrap()
}

struct Setting {
    table: Table,
    ladder: Ladder,
    computation: Computation,
    crypto: CryptoService,
}

fn setting(set: ParameterSet, sizes: &[usize], records: usize, budget: f64) -> Setting {
    setting_under(Encryption::OwnKey, set, sizes, records, budget)
}

fn setting_under(
    encryption: Encryption,
    set: ParameterSet,
    sizes: &[usize],
    records: usize,
    budget: f64,
) -> Setting {
    let mut rng = ChaCha20Rng::seed_from_u64(records as u64);
    let table = table(sizes, records, &mut rng);
    let params = Parameters::new(set).unwrap();
    let domain = table.domain().clone();
    let plan = LadderPlan::new(500, 1 << 30).unwrap();
    let rules = Rules {
        dataset: DATASET,
        plan: PlanCore {
            set,
            budget: Rho::from_f64_down(budget).unwrap(),
            run_budget: Rho::from_f64_down(budget).unwrap(),
            runs: 1,
            run_ladder: plan,
            domain: domain.clone(),
            record_bound: BOUND,
            holders: Holders::one(),
            members: Vec::new(),
            witness: false,
            key_services: Vec::new(),
            encryption: Encryption::OwnKey,
        },
    };
    let crypto = CryptoService::new(rules, &params, &mut rng).unwrap();
    let public = crypto.public_key(&mut rng).unwrap();
    let keys = crypto.evaluation_keys(shape(encryption), &mut rng).unwrap();
    let ladder = Ladder::draw(plan, &mut rng);
    let upload_plan = UploadPlan::for_table(&domain, records, plan, &set).unwrap();
    let upload_plan = upload_plan.under(encryption);
    let key = upload_key(encryption, &crypto, &params, &mut rng);
    let noise = HolderNoise::Drawn(&ladder);
    let encryptor = encryptor(encryption, &public, &key);
    let holder = Holder::new(&table, BOUND, noise, encryptor, upload_plan).unwrap();
    let upload = holder::encrypt(&holder, &mut rng, &|| ()).unwrap();
    let upload = join_uploads(&domain, &Holders::one(), &keys, &[upload]).unwrap();
    let computation = Computation::new(DATASET, domain, public, keys, upload);
    Setting {
        table,
        ladder,
        computation,
        crypto,
    }
}

/// Shape of the roster for which the key service makes upload keys: one holder, or none.
fn shape(encryption: Encryption) -> Option<RosterShape> {
    (encryption == Encryption::RosterKey).then_some(RosterShape::Records(1))
}

/// Returns the upload key of the only holder.
fn upload_key(
    encryption: Encryption,
    crypto: &CryptoService,
    params: &Parameters,
    rng: &mut ChaCha20Rng,
) -> UploadKey {
    match encryption {
        Encryption::OwnKey => UploadKey::random(params, rng),
        Encryption::RosterKey => UploadKey::from_seeds(params, vec![crypto.upload_seed(0)]),
    }
    .unwrap()
}

fn encryptor<'a>(
    encryption: Encryption,
    public: &'a PublicKey,
    key: &'a UploadKey,
) -> Encryptor<'a> {
    match encryption {
        Encryption::OwnKey => Encryptor::sole(public, key),
        Encryption::RosterKey => Encryptor::of_roster(key),
    }
}

/// Computes a statistic in the clear.
fn exact(table: &Table, statistic: &Statistic) -> Vec<i64> {
    let sum = |f: &dyn Fn(usize) -> i64| (0..table.records()).map(f).sum::<i64>();
    match statistic {
        Statistic::Total => vec![table.records() as i64],
        Statistic::OneWay(axis) => {
            let column = table.column(axis.attribute);
            axis.functions
                .iter()
                .map(|u| sum(&|r| u[column[r] as usize]))
                .collect()
        }
        Statistic::Product(a, b) => {
            let (x, y) = (table.column(a.attribute), table.column(b.attribute));
            let cell = |u: &[i64], v: &[i64]| sum(&|r| u[x[r] as usize] * v[y[r] as usize]);
            a.functions
                .iter()
                .flat_map(|u| b.functions.iter().map(move |v| cell(u, v)))
                .collect()
        }
        Statistic::SquaredScores(terms) => terms
            .iter()
            .map(|term| {
                let counts = table.counts(&term.clique).unwrap();
                let squares = counts.iter().zip(&term.target);
                term.weight * squares.map(|(&m, &t)| (m as i64 - t).pow(2)).sum::<i64>()
            })
            .collect(),
    }
}

fn centred(attribute: usize, size: usize) -> Axis {
    let functions = (0..size)
        .map(|g| {
            (0..size)
                .map(|x| if x == g { size as i64 - 1 } else { -1 })
                .collect()
        })
        .collect();
    Axis {
        attribute,
        functions,
    }
}

fn contrast_batches() -> Vec<Vec<ReleaseRequest>> {
    let request = |number, statistic, variance_units| ReleaseRequest {
        number,
        statistic,
        variance_units,
    };
    vec![
        vec![
            request(0, Statistic::Total, 5),
            request(1, Statistic::OneWay(centred(0, 3)), 1000),
            request(2, Statistic::OneWay(centred(2, 5)), 1000),
        ],
        vec![
            request(3, Statistic::Product(centred(0, 3), centred(1, 2)), 77_777),
            request(
                4,
                Statistic::Product(Axis::identity(1, 2), Axis::identity(2, 5)),
                12,
            ),
            request(
                5,
                Statistic::Product(centred(0, 3), Axis::identity(2, 5)),
                77_777,
            ),
        ],
    ]
}

fn check(setting: Setting, batches: &[Vec<ReleaseRequest>]) {
    let Setting {
        table,
        ladder,
        computation,
        crypto,
    } = setting;
    let mut allocator = Allocator::new(ladder.plan());
    let mut source = EncryptedSource::new(computation, crypto, JOB, key()).unwrap();
    for batch in batches {
        let answers = source.release(batch).unwrap();
        assert_eq!(
            source.release(batch).unwrap(),
            answers,
            "a retry is a replay"
        );
        for (request, answer) in batch.iter().zip(answers) {
            let spans = allocator
                .allocate(request.number, request.statistic.cells())
                .unwrap();
            let noise = ladder
                .release_noise(&spans, request.variance_units)
                .unwrap();
            let exact = exact(&table, &request.statistic);
            let expected: Vec<i64> = exact.iter().zip(noise.iter()).map(|(e, n)| e + n).collect();
            assert_eq!(answer, expected, "release {}", request.number);
        }
    }
    let debits: usize = batches.iter().map(Vec::len).sum();
    assert_eq!(source.crypto().ledger(JOB).unwrap().entries().len(), debits);
}

#[test]
fn contrasts_are_exact_with_and_without_slots_and_over_chunks() {
    for records in [30, 700, 9000] {
        check(
            setting(COMPACT, &[3, 2, 5], records, 100.0),
            &contrast_batches(),
        );
    }
}

/// Upload keys drawn by holders and made by key services give the same counts and the same noise.
#[test]
fn contrasts_are_exact_under_either_upload_key() {
    for encryption in [Encryption::OwnKey, Encryption::RosterKey] {
        for (set, records) in [
            (COMPACT, 30),
            (COMPACT, 700),
            (COMPACT, 9000),
            (STANDARD, 500),
            (WIDE, 500),
        ] {
            let setting = setting_under(encryption, set, &[3, 2, 5], records, 100.0);
            check(setting, &contrast_batches());
        }
    }
}

#[test]
fn upload_is_assembled_from_objects_made_in_any_order() {
    for encryption in [Encryption::OwnKey, Encryption::RosterKey] {
        comes_together(encryption);
    }
}

fn comes_together(encryption: Encryption) {
    let mut setting = setting(COMPACT, &[3, 2, 5], 9000, 100.0);
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let public = setting.crypto.public_key(&mut rng).unwrap();
    let keys = setting.crypto.evaluation_keys(shape(encryption), &mut rng);
    let keys = keys.unwrap();
    let (table, params) = (&setting.table, public.params());
    let domain = table.domain().clone();
    let plan = UploadPlan::for_table(&domain, 9000, setting.ladder.plan(), &COMPACT).unwrap();
    let plan = plan.under(encryption);
    let key = upload_key(encryption, &setting.crypto, params, &mut rng);
    let encryptor = encryptor(encryption, &public, &key);
    let noise = HolderNoise::Drawn(&setting.ladder);
    let holder = Holder::new(table, BOUND, noise, encryptor, plan).unwrap();
    let mut objects: Vec<Object> = plan.objects().collect();
    objects.shuffle(&mut rng);
    let stored: HashMap<String, Vec<u8>> = objects
        .iter()
        .map(|&object| (object.name(), holder.encode(object, &mut rng).unwrap()))
        .collect();
    let fetch = |object: Object| plan.decode(params, object, &stored[&object.name()]);
    let upload = ReceivedUpload::from_objects(params, plan, fetch).unwrap();
    let upload = join_uploads(&domain, &Holders::one(), &keys, &[upload]).unwrap();
    setting.computation = Computation::new(DATASET, domain, public, keys, upload);
    check(setting, &contrast_batches());
}

/// The terms pay for a change by one record of at most `record_bound`, so a larger table is
/// rejected.
#[test]
fn holder_with_a_table_over_the_record_bound_is_rejected() {
    let setting = setting(COMPACT, &[3, 2, 5], 30, 1.0);
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    let public = setting.crypto.public_key(&mut rng).unwrap();
    let domain = setting.table.domain();
    let plan = UploadPlan::for_table(domain, 30, setting.ladder.plan(), &COMPACT).unwrap();
    let own = UploadKey::random(public.params(), &mut rng).unwrap();
    let holder = |bound| {
        let noise = HolderNoise::Drawn(&setting.ladder);
        let encryptor = Encryptor::sole(&public, &own);
        Holder::new(&setting.table, bound, noise, encryptor, plan)
    };
    holder(30).unwrap();
    let error = holder(29).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Records {
                records: 30,
                bound: 29
            }
        ),
        "{error}"
    );
}

#[test]
fn plan_that_does_not_fit_the_table_is_rejected() {
    let setting = setting(COMPACT, &[3, 2, 5], 30, 1.0);
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    let public = setting.crypto.public_key(&mut rng).unwrap();
    let own = UploadKey::random(public.params(), &mut rng).unwrap();
    let ladder = setting.ladder.plan();
    let plan = |sizes: Vec<usize>, records, ladder, set| {
        UploadPlan::for_table(&Domain::new(sizes), records, ladder, set).unwrap()
    };
    let refused = |plan| {
        let noise = HolderNoise::Drawn(&setting.ladder);
        let encryptor = Encryptor::sole(&public, &own);
        let holder = Holder::new(&setting.table, BOUND, noise, encryptor, plan);
        assert!(matches!(holder, Err(Error::Object(_))));
    };
    refused(plan(vec![3, 2, 6], 30, ladder, &COMPACT));
    refused(plan(vec![3, 2, 5], 300, ladder, &COMPACT));
    refused(plan(vec![3, 2, 5], 30, ladder, &WIDE));
    refused(plan(
        vec![3, 2, 5],
        30,
        LadderPlan::new(500, 1).unwrap(),
        &COMPACT,
    ));
}

#[test]
fn squared_scores_are_exact() {
    let terms = [([0, 1], 3), ([0, 2], 2), ([1, 2], 5)].map(|(pair, weight)| {
        let cells: usize = pair.iter().map(|&a| [3, 2, 5][a]).product();
        SquaredTerm {
            clique: pair.to_vec().into(),
            weight,
            target: (0..cells as i64).map(|c| 40 + 13 * c).collect(),
        }
    });
    let request = |number, statistic| ReleaseRequest {
        number,
        statistic,
        variance_units: 1 << 30,
    };
    let batches = vec![
        vec![request(0, Statistic::SquaredScores(terms.to_vec()))],
        vec![request(
            1,
            Statistic::Product(Axis::identity(0, 3), Axis::identity(2, 5)),
        )],
        vec![request(2, Statistic::SquaredScores(terms[1..].to_vec()))],
    ];
    for records in [300, 9000] {
        check(setting(WIDE, &[3, 2, 5], records, 1e9), &batches);
    }
}

fn answer(computation: &Computation, window: &Window, batch: &[ReleaseRequest]) -> SealedBatch {
    computation.answer(window, batch, &key()).unwrap()
}

/// Returns the first window of a job, as the crypto service assigns it.
fn begin(crypto: &mut CryptoService, job: JobId) -> Window {
    crypto.begin(job, UPLOAD).unwrap().window().clone()
}

fn refused(crypto: &mut CryptoService, request: &DecryptRequest) {
    let before = crypto.record().job_ledger(request.job).cloned();
    let tip = crypto.record().chain_state().tip();
    let error = crypto.decrypt(request).unwrap_err();
    assert!(matches!(error, Error::Refused), "{error}");
    assert_eq!(crypto.record().job_ledger(request.job).cloned(), before);
    assert_eq!(crypto.record().chain_state().tip(), tip);
}

#[test]
fn refusals_are_generic_and_leave_the_ledger_unchanged() {
    let mut setting = setting(COMPACT, &[3, 2, 5], 100, 0.5);
    let crypto = &mut setting.crypto;
    let batches = contrast_batches();
    let start = begin(crypto, JOB);
    let SealedBatch {
        request: sealed,
        window,
    } = answer(&setting.computation, &start, &batches[0]);
    let changes: [fn(&mut DecryptRequest); 15] = [
        |r| r.dataset = DatasetId([8; 16]),
        |r| r.job = JobId([8; 16]),
        |r| r.releases[1].variance_units += 1,
        |r| r.releases[2].number = 1,
        |r| r.releases.iter_mut().for_each(|r| r.number += 9),
        |r| r.releases[0].statistic = Statistic::OneWay(centred(0, 4)),
        |r| r.releases.clear(),
        |r| drop(r.pages.pop()),
        |r| r.pages[0].parts.clear(),
        |r| r.pages[0].parts[0].number = 9,
        |r| r.pages[1].parts[1].span.start -= 1,
        |r| r.pages[1].parts[1].span.start = 8190,
        |r| r.pages[1].parts[1].span.start = usize::MAX,
        |r| r.pages[1].parts[1].span.page += 1,
        |r| r.pages[1].parts[1].span.len = 0,
    ];
    for change in changes {
        let mut changed = sealed.clone();
        change(&mut changed);
        assert_ne!(changed, sealed);
        refused(crypto, &changed);
    }
    let first = crypto.decrypt(&sealed).unwrap();
    let after = crypto.record().chain_state().tip();
    // The same releases are answered from the store, without a debit or a decryption.
    let mut other = sealed.clone();
    other.pages[0].ciphertexts.clear();
    for again in [&sealed, &other] {
        assert_eq!(crypto.decrypt(again).unwrap(), first);
        assert_eq!(crypto.record().chain_state().tip(), after);
    }
    // Over budget: variance 4 for a block whose squared norm one record can change by 6.
    let costly = [ReleaseRequest {
        number: 3,
        statistic: Statistic::Product(centred(0, 3), centred(1, 2)),
        variance_units: 1,
    }];
    let costly = answer(&setting.computation, &window, &costly);
    refused(crypto, &costly.request);
}

/// Sealing is a function of the key and of the sealed content. A computation service that lost its
/// stored data sends the same bytes, and does not show the same noise twice in different ways.
#[test]
fn sealing_again_gives_the_same_bytes() {
    let mut setting = setting(COMPACT, &[3, 2, 5], 100, 0.5);
    let start = begin(&mut setting.crypto, JOB);
    let batch = &contrast_batches()[0];
    let first = answer(&setting.computation, &start, batch);
    let again = answer(&setting.computation, &start, batch);
    assert_eq!(first.request, again.request);
    let placed = answer(&setting.computation, &first.window, batch);
    assert_eq!(first.request, placed.request);
    let other = SealingKey::from_bytes(&[7; 32]).unwrap();
    let other = setting.computation.answer(&start, batch, &other).unwrap();
    assert_ne!(first.request, other.request);
    // Every batch has its own mask: ciphertexts of the same page for other releases differ.
    let mut moved = contrast_batches()[0].clone();
    moved[1].variance_units += 1;
    let moved = answer(&setting.computation, &start, &moved);
    assert_ne!(first.request.pages, moved.request.pages);
}

/// Checks that a page of a deviating service freezes the dataset. The key service sees its cells,
/// so it is paid for.
fn frozen(crypto: &mut CryptoService, request: &DecryptRequest) {
    let before = crypto.ledger(request.job).unwrap();
    assert!(matches!(crypto.decrypt(request), Err(Error::Refused)));
    let after = crypto.ledger(request.job).unwrap();
    let debited = after.entries().len() - before.entries().len();
    assert_eq!(
        debited,
        request.releases.len(),
        "releases that are paid for"
    );
    let error = crypto.decrypt(request).unwrap_err();
    assert!(matches!(error, Error::Frozen(Freeze::Noise)), "{error}");
    assert!(matches!(
        crypto.begin(request.job, UPLOAD),
        Err(Error::Frozen(..))
    ));
    assert_eq!(crypto.ledger(request.job).unwrap(), after);
}

#[test]
fn ciphertexts_of_another_set_freeze_the_dataset() {
    let mut small = setting(COMPACT, &[3, 2, 5], 100, 0.5);
    let mut large = setting(STANDARD, &[3, 2, 5], 100, 0.5);
    let window = begin(&mut small.crypto, JOB);
    assert_eq!(begin(&mut large.crypto, JOB), window);
    let batch = &contrast_batches()[0];
    let request = answer(&large.computation, &window, batch).request;
    frozen(&mut small.crypto, &request);
    let request = answer(&small.computation, &window, batch).request;
    frozen(&mut large.crypto, &request);
}

/// A page with the noise of 64 floods still decrypts to the right integers, but with less room than
/// a sealed page has. It is debited, and the dataset is frozen, since the refusal is an answer
/// about the key.
#[test]
fn page_with_too_much_noise_freezes_the_dataset() {
    let mut rng = ChaCha20Rng::seed_from_u64(8);
    let mut setting = setting(STANDARD, &[3, 2, 5], 100, 0.5);
    let public = setting.crypto.public_key(&mut rng).unwrap();
    let keys = setting.crypto.evaluation_keys(None, &mut rng).unwrap();
    let layout = Layout::for_records(100).unwrap();
    let own = UploadKey::random(public.params(), &mut rng).unwrap();
    let switch_keys = own.switch_keys(&public, Some(layout), &mut rng).unwrap();
    let ones = own.encrypt(&[1; 100], &mut rng).unwrap();
    let ones = ones.into_iter().map(|c| c.expand(public.params()).unwrap());
    let ones = vec![ones.collect()];
    let table = EncryptedTable::new(public.params(), layout, vec![ones]).unwrap();
    let evaluator = Evaluator::new(&keys, layout);
    let evaluator = evaluator.with_switch_keys(&switch_keys).unwrap();
    let factors = Factors {
        left: &[Combination::column(0)],
        right: &[],
    };
    let cells = [0, 1].map(|position| vec![(position, Cell::Sum { left: 0 })]);
    let pages = evaluator.pages(&table, 0, factors, &cells, &mut EvaluationWork::default());
    let [page, zero] = pages.unwrap().try_into().unwrap();
    let (page, zero): (PackedPage, PackedPage) = (page.unwrap(), zero.unwrap());
    let flooded =
        |page, noise: &[Ciphertext], rng: &mut _| seal(&public, page, noise, 0..PAGE, rng).unwrap();
    let floods: Vec<_> = (0..64).map(|_| flooded(&zero, &[], &mut rng)).collect();
    let release = ReleaseRequest {
        number: 0,
        statistic: Statistic::Total,
        variance_units: 1000,
    };
    let span = Span {
        page: 0,
        start: 0,
        len: 1,
    };
    let mut request = |floods: &[Ciphertext]| DecryptRequest {
        dataset: DATASET,
        job: JOB,
        releases: vec![release.clone()],
        pages: vec![SealedPage {
            ciphertexts: vec![flooded(&page, floods, &mut rng)],
            variance_units: 1000,
            parts: vec![PageSpan { number: 0, span }],
        }],
    };
    let (noisy, sound) = (request(&floods), request(&floods[..1]));
    let mut other = self::setting(STANDARD, &[3, 2, 5], 100, 0.5).crypto;
    begin(&mut setting.crypto, JOB);
    begin(&mut other, JOB);
    // The setting's keys depend only on its number of records, so both services have the same.
    assert_eq!(other.decrypt(&sound).unwrap(), [[100]]);
    frozen(&mut setting.crypto, &noisy);
    assert!(matches!(
        setting.crypto.decrypt(&sound),
        Err(Error::Frozen(..))
    ));
}

/// Two jobs, each with its own pages and budget. Windows are stored and read back between steps,
/// and a lost one is recovered from the crypto service.
#[test]
fn jobs_are_restored_and_have_separate_runs() {
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let (records, sizes) = (100, [3, 2, 5]);
    let run = LadderPlan::new(500, 1 << 10).unwrap();
    let plan = LadderPlan::with_levels(2 * PAGE, run.levels()).unwrap();
    let table = table(&sizes, records, &mut rng);
    let domain = table.domain().clone();
    let params = Parameters::new(COMPACT).unwrap();
    // rho = 20 / (2 * 4 * 11), 0.23 of 0.25: one release fits, a second does not.
    let rules = Rules {
        dataset: DATASET,
        plan: PlanCore {
            set: *params.set(),
            budget: Rho::from_f64_down(0.25).unwrap(),
            run_budget: Rho::from_f64_down(0.25).unwrap(),
            runs: 2,
            run_ladder: run,
            domain: domain.clone(),
            record_bound: 10_000,
            holders: Holders::one(),
            members: Vec::new(),
            witness: false,
            key_services: Vec::new(),
            encryption: Encryption::OwnKey,
        },
    };
    let mut crypto = CryptoService::new(rules, &params, &mut rng).unwrap();
    let public = crypto.public_key(&mut rng).unwrap();
    let keys = crypto.evaluation_keys(None, &mut rng).unwrap();
    let ladder = Ladder::draw(plan, &mut rng);
    let upload_plan = UploadPlan::for_table(&domain, records, plan, &COMPACT).unwrap();
    let own = UploadKey::random(&params, &mut rng).unwrap();
    let encryptor = Encryptor::sole(&public, &own);
    let noise = HolderNoise::Drawn(&ladder);
    let holder = Holder::new(&table, BOUND, noise, encryptor, upload_plan).unwrap();
    let upload = holder::encrypt(&holder, &mut rng, &|| ()).unwrap();
    let upload = join_uploads(&domain, &Holders::one(), &keys, &[upload]).unwrap();
    let computation = Computation::new(DATASET, domain, public, keys, upload);

    let statistic = Statistic::OneWay(centred(2, 5));
    let request = |number| ReleaseRequest {
        number,
        statistic: statistic.clone(),
        variance_units: 11,
    };
    let exact = exact(&table, &statistic);
    for number in 0..2u32 {
        let job = JobId([number as u8; 16]);
        let start = begin(&mut crypto, job);
        assert_eq!((start.run(), start.placed().len()), (number, 0));
        let SealedBatch {
            request: sealed,
            window,
        } = answer(&computation, &start, &[request(0)]);
        let bytes = sealed.to_bytes(&params);
        let sealed = DecryptRequest::from_bytes(&params, &bytes).unwrap();
        let cells = crypto.decrypt(&sealed).unwrap().remove(0);
        let span = Span {
            page: number as usize,
            start: 0,
            len: 5,
        };
        let noise = ladder.noise(span, 11).unwrap();
        let expected: Vec<i64> = exact.iter().zip(noise.iter()).map(|(e, n)| e + n).collect();
        assert_eq!(cells, expected);
        // The stored window continues after the used positions, and so does an older window that
        // has caught up.
        let json = serde_json::to_string(&window).unwrap();
        assert_eq!(serde_json::from_str::<Window>(&json).unwrap(), window);
        let mut older = start.clone();
        older.catch_up(begin(&mut crypto, job).placed()).unwrap();
        assert_eq!(older, window);
        let next = answer(&computation, &window, &[request(1)]);
        assert_eq!(next.request.pages[0].parts[0].span.start, 5);
        refused(&mut crypto, &next.request);
        assert_eq!(crypto.ledger(job).unwrap().entries().len(), 1);
    }
    let third = crypto.begin(JobId([2; 16]), UPLOAD);
    assert!(matches!(third, Err(Error::NoRunLeft(2))));
    // A window beyond the ladder is rejected.
    let beyond = Window::new(DATASET, JobId([2; 16]), 2, run);
    let beyond = computation.answer(&beyond, &[request(0)], &key());
    assert!(matches!(beyond, Err(Error::Encryption(_))));
}

/// Releases from windows that were set back, belong to another job, or are beyond the ladder: no
/// position of the ladder carries two releases.
#[test]
fn noise_positions_are_never_used_twice() {
    let mut setting = setting(COMPACT, &[3, 2, 5], 100, 100.0);
    let crypto = &mut setting.crypto;
    let computation = &setting.computation;
    let start = begin(crypto, JOB);
    let batches = contrast_batches();
    let first = answer(computation, &start, &batches[0]);
    let released = crypto.decrypt(&first.request).unwrap();

    // Another statistic with the same noise, from the same window: the difference of the two would
    // reveal exact counts.
    let mut other = batches[0].clone();
    other[1].statistic = Statistic::OneWay(Axis::identity(0, 3));
    for number in [0, 3] {
        let mut other = other.clone();
        for (release, number) in other.iter_mut().zip(number..) {
            release.number = number;
        }
        if number == 0 {
            let sealed = answer(computation, &start, &other).request;
            refused(crypto, &sealed);
            assert!(matches!(
                computation.answer(&first.window, &other, &key()),
                Err(Error::Privacy(..))
            ));
        } else {
            // Later release numbers with earlier positions.
            let moved = answer(computation, &first.window, &other).request;
            let mut sealed = answer(computation, &start, &batches[0]).request;
            sealed.releases = moved.releases;
            renumber(&mut sealed, 3);
            refused(crypto, &sealed);
        }
    }
    // A second job in the same run.
    let second = JobId([2; 16]);
    assert!(matches!(
        crypto.begin(second, UPLOAD),
        Err(Error::NoRunLeft(..))
    ));
    let stolen = Window::new(DATASET, second, 0, start.plan());
    let stolen = answer(computation, &stolen, &batches[0]).request;
    refused_unknown(crypto, &stolen);
    // A page outside the run's window.
    let mut far = first.request.clone();
    for page in &mut far.pages {
        for part in &mut page.parts {
            part.span.page = 123_456;
        }
    }
    for release in &mut far.releases {
        release.number += 3;
    }
    renumber(&mut far, 3);
    refused(crypto, &far);
    // A first release that is not the next one.
    let mut later = batches[1].clone();
    for release in &mut later {
        release.number += 6;
    }
    assert!(matches!(
        computation.answer(&first.window, &later, &key()),
        Err(Error::Request(..))
    ));
    // A batch that was partly released before.
    let mut overlapping = batches[0][2..].to_vec();
    overlapping.extend(batches[1].clone());
    assert!(matches!(
        computation.answer(&first.window, &overlapping, &key()),
        Err(Error::Request(..))
    ));
    let next = answer(computation, &first.window, &batches[1]);
    let mut overlapping = next.request.clone();
    overlapping.releases.insert(0, batches[0][2].clone());
    refused(crypto, &overlapping);
    // Another upload: another table with the same ledger.
    assert!(matches!(
        crypto.begin(JOB, [5; 32]),
        Err(Error::OtherUpload)
    ));
    // The job can still continue.
    assert_eq!(crypto.decrypt(&first.request).unwrap(), released);
    crypto.decrypt(&next.request).unwrap();
    assert_eq!(crypto.ledger(JOB).unwrap().entries().len(), 6);
}

/// Raises the release numbers of all pages' parts, to match the releases.
fn renumber(request: &mut DecryptRequest, by: u32) {
    for page in &mut request.pages {
        for part in &mut page.parts {
            part.number += by;
        }
    }
}

fn refused_unknown(crypto: &mut CryptoService, request: &DecryptRequest) {
    assert!(matches!(crypto.decrypt(request), Err(Error::Refused)));
    assert!(crypto.record().job_ledger(request.job).is_none());
}
