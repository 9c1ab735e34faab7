//! Releases under encryption equal counts plus the holder's own noise, integer for integer, and
//! the crypto service refuses everything that is not a fresh, bound, affordable release.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_domain::{Domain, Schema, Table};
use fhaim_dp::{Allocator, Ladder, LadderPlan, Rho, Span};
use fhaim_he::{
    Cell, Ciphertext, Combination, EncryptedTable, Evaluator, Factors, Layout, P1, P1_LARGE, P2,
    PAGE, Page, ParameterSet, Parameters, Work, seal,
};
use fhaim_protocol::{
    Error,
    computation::{Answer, Computation, JobState},
    crypto::{CryptoService, Dataset},
    generation::EncryptedSource,
    holder::{self, Holder, Noise},
    request::{DatasetId, DecryptRequest, JobId, Part, SealedPage},
    upload::{Object, Upload, UploadPlan, decode_object},
};
use fhaim_synth::{Axis, ReleaseRequest, Source, SquaredTerm, Statistic};
use rand::{Rng, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha20Rng;
use std::{collections::HashMap, sync::Arc};

const DATASET: DatasetId = DatasetId([7; 16]);
const JOB: JobId = JobId([1; 16]);

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
    let mut rng = ChaCha20Rng::seed_from_u64(records as u64);
    let table = table(sizes, records, &mut rng);
    let params = Parameters::new(set).unwrap();
    let domain = table.domain().clone();
    let budget = Rho::from_f64_down(budget).unwrap();
    let dataset = Dataset {
        id: DATASET,
        domain: domain.clone(),
        record_bound: 10_000,
    };
    let crypto = CryptoService::new(dataset, &params, budget, &mut rng).unwrap();
    let public = crypto.public_key(&mut rng).unwrap();
    let keys = crypto.evaluation_keys(&mut rng).unwrap();
    let plan = LadderPlan::for_any_order(500, 1 << 30).unwrap();
    let ladder = Ladder::draw(plan, &mut rng);
    let upload_plan = UploadPlan::for_table(&domain, records, plan, &set).unwrap();
    let holder = Holder::new(&table, Noise::Drawn(&ladder), &public, upload_plan).unwrap();
    let upload = holder::encrypt(&holder, &mut rng, &|| ()).unwrap();
    let computation = Computation::new(DATASET, domain, public, keys, upload);
    Setting {
        table,
        ladder,
        computation,
        crypto,
    }
}

/// What the statistic is in the clear.
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
    let mut source =
        EncryptedSource::new(computation, crypto, JobState::new(JOB, 0, ladder.plan()));
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
        check(setting(P1, &[3, 2, 5], records, 100.0), &contrast_batches());
    }
}

#[test]
fn an_upload_comes_together_from_objects_made_by_themselves() {
    let mut setting = setting(P1, &[3, 2, 5], 9000, 100.0);
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let public = setting.crypto.public_key(&mut rng).unwrap();
    let keys = setting.crypto.evaluation_keys(&mut rng).unwrap();
    let (table, params) = (&setting.table, public.params());
    let domain = table.domain().clone();
    let plan = UploadPlan::for_table(&domain, 9000, setting.ladder.plan(), &P1).unwrap();
    let noise = Noise::Drawn(&setting.ladder);
    let holder = Holder::new(table, noise, &public, plan).unwrap();
    let mut objects: Vec<Object> = plan.objects().collect();
    objects.shuffle(&mut rng);
    let stored: HashMap<String, Vec<u8>> = objects
        .iter()
        .map(|&object| (object.name(), holder.encode(object, &mut rng).unwrap()))
        .collect();
    let fetch = |object: Object| decode_object(params, &plan, object, &stored[&object.name()]);
    let upload = Upload::from_objects(params, plan, fetch).unwrap();
    setting.computation = Computation::new(DATASET, domain, public, keys, upload);
    check(setting, &contrast_batches());
}

#[test]
fn a_plan_that_is_not_the_tables_is_refused() {
    let setting = setting(P1, &[3, 2, 5], 30, 1.0);
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    let public = setting.crypto.public_key(&mut rng).unwrap();
    let ladder = setting.ladder.plan();
    let plan = |sizes: Vec<usize>, records, ladder, set| {
        UploadPlan::for_table(&Domain::new(sizes), records, ladder, set).unwrap()
    };
    let refused = |plan| {
        let holder = Holder::new(&setting.table, Noise::Drawn(&setting.ladder), &public, plan);
        assert!(matches!(holder, Err(Error::Object(_))));
    };
    refused(plan(vec![3, 2, 6], 30, ladder, &P1));
    refused(plan(vec![3, 2, 5], 300, ladder, &P1));
    refused(plan(vec![3, 2, 5], 30, ladder, &P2));
    refused(plan(
        vec![3, 2, 5],
        30,
        LadderPlan::new(500, 1).unwrap(),
        &P1,
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
        check(setting(P2, &[3, 2, 5], records, 1e9), &batches);
    }
}

fn answer(
    computation: &mut Computation,
    state: &JobState,
    batch: &[ReleaseRequest],
    rng: &mut ChaCha20Rng,
) -> Answer {
    computation.answer(state, batch, rng).unwrap()
}

fn refused(crypto: &mut CryptoService, request: &DecryptRequest) {
    let before = crypto.ledger(request.job).unwrap();
    let error = crypto.decrypt(request).unwrap_err();
    assert!(matches!(error, Error::Refused), "{error}");
    assert_eq!(crypto.ledger(request.job).unwrap(), before);
}

#[test]
fn refusals_are_generic_and_leave_the_ledger_unchanged() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let Setting {
        mut computation,
        mut crypto,
        ladder,
        ..
    } = setting(P1, &[3, 2, 5], 100, 0.5);
    let start = JobState::new(JOB, 0, ladder.plan());
    let batches = contrast_batches();
    let Answer {
        request: sealed,
        state,
    } = answer(&mut computation, &start, &batches[0], &mut rng);
    let changes: [fn(&mut DecryptRequest); 12] = [
        |r| r.dataset = DatasetId([8; 16]),
        |r| r.releases[1].variance_units += 1,
        |r| r.releases[2].number = 1,
        |r| r.releases[0].statistic = Statistic::OneWay(centred(0, 4)),
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
        refused(&mut crypto, &changed);
    }
    let first = crypto.decrypt(&sealed).unwrap();
    assert_eq!(crypto.decrypt(&sealed).unwrap(), first);
    // The same numbers with other ciphertexts: a second draw of mask and flood.
    let again = answer(&mut computation, &start, &batches[0], &mut rng).request;
    refused(&mut crypto, &again);
    // Over budget: variance 4 for a block that one record moves by 6 in squared norm.
    let costly = [ReleaseRequest {
        number: 3,
        statistic: Statistic::Product(centred(0, 3), centred(1, 2)),
        variance_units: 1,
    }];
    let costly = answer(&mut computation, &state, &costly, &mut rng);
    refused(&mut crypto, &costly.request);
}

#[test]
fn ciphertexts_of_another_set_are_refused() {
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let mut small = setting(P1, &[3, 2, 5], 100, 0.5);
    let mut large = setting(P1_LARGE, &[3, 2, 5], 100, 0.5);
    let state = JobState::new(JOB, 0, small.ladder.plan());
    let batch = &contrast_batches()[0];
    let request = answer(&mut large.computation, &state, batch, &mut rng).request;
    refused(&mut small.crypto, &request);
    let request = answer(&mut small.computation, &state, batch, &mut rng).request;
    refused(&mut large.crypto, &request);
}

/// A page with the noise of 64 floods decrypts to the right integers still, but with less room
/// than a sealed page has: refused like everything else, and nothing debited.
#[test]
fn a_page_with_too_much_noise_is_refused() {
    let mut rng = ChaCha20Rng::seed_from_u64(8);
    let mut setting = setting(P1, &[3, 2, 5], 100, 0.5);
    let public = setting.crypto.public_key(&mut rng).unwrap();
    let keys = setting.crypto.evaluation_keys(&mut rng).unwrap();
    let layout = Layout::for_records(100).unwrap();
    let ones = vec![public.encrypt(&[1; 100], &mut rng).unwrap()];
    let table = EncryptedTable::new(public.params(), layout, vec![ones]).unwrap();
    let evaluator = Evaluator::new(&keys, layout);
    let factors = Factors {
        left: &[Combination::column(0)],
        right: &[],
    };
    let cells = [0, 1].map(|position| vec![(position, Cell::Sum { left: 0 })]);
    let pages = evaluator.pages(&table, 0, factors, &cells, &mut Work::default());
    let [page, zero] = pages.unwrap().try_into().unwrap();
    let (page, zero): (Page, Page) = (page.unwrap(), zero.unwrap());
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
            parts: vec![Part { number: 0, span }],
        }],
    };
    refused(&mut setting.crypto, &request(&floods));
    let granted = setting.crypto.decrypt(&request(&floods[..1])).unwrap();
    assert_eq!(granted, [[100]]);
}

/// Two jobs share the budget, each on pages of its own, and neither ledger sees the other's
/// numbers; state and batches pass through their stored forms between steps.
#[test]
fn jobs_are_restored_and_share_the_budget() {
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let sizes = [3, 2, 5];
    let mut setting = setting(P1, &sizes, 100, 0.5);
    let run = LadderPlan::new(500, 1 << 10).unwrap();
    let plan = LadderPlan::with_levels(2 * PAGE, run.levels()).unwrap();
    let public = setting.crypto.public_key(&mut rng).unwrap();
    let keys = setting.crypto.evaluation_keys(&mut rng).unwrap();
    let ladder = Ladder::draw(plan, &mut rng);
    let domain = setting.table.domain().clone();
    let upload_plan = UploadPlan::for_table(&domain, 100, plan, &P1).unwrap();
    let noise = Noise::Drawn(&ladder);
    let holder = Holder::new(&setting.table, noise, &public, upload_plan).unwrap();
    let upload = holder::encrypt(&holder, &mut rng, &|| ()).unwrap();
    let params = public.params().clone();
    let mut computation = Computation::new(DATASET, domain, public, keys, upload);

    let statistic = Statistic::OneWay(centred(2, 5));
    // rho = 20 / (2 * 4 * 11), 0.23 of 0.5: two fit, a third does not.
    let request = |number| ReleaseRequest {
        number,
        statistic: statistic.clone(),
        variance_units: 11,
    };
    let exact = exact(&setting.table, &statistic);
    for run_number in 0..3u32 {
        let job = JobId([run_number as u8; 16]);
        let state = JobState::new(job, run_number, run);
        if run_number == 2 {
            let beyond = computation.answer(&state, &[request(0)], &mut rng);
            assert!(matches!(beyond, Err(Error::Encryption(_))));
            continue;
        }
        let Answer {
            request: sealed,
            state,
        } = computation.answer(&state, &[request(0)], &mut rng).unwrap();
        let bytes = sealed.to_bytes(&params);
        let sealed = DecryptRequest::from_bytes(&params, &bytes).unwrap();
        let cells = setting.crypto.decrypt(&sealed).unwrap().remove(0);
        let span = Span {
            page: run_number as usize,
            start: 0,
            len: 5,
        };
        let noise = ladder.noise(span, 11).unwrap();
        let expected: Vec<i64> = exact.iter().zip(noise.iter()).map(|(e, n)| e + n).collect();
        assert_eq!(cells, expected);
        // The same batch is found again, another under its numbers is not.
        assert!(sealed.answers(&[request(0)]).unwrap());
        assert!(!sealed.answers(&[request(1)]).unwrap());
        assert!(sealed.answers(&[request(0), request(1)]).is_err());
        // The stored state goes on behind what is used up.
        let json = serde_json::to_string(&state).unwrap();
        let state: JobState = serde_json::from_str(&json).unwrap();
        assert!(
            computation
                .answer(&state, &[request(0)], &mut rng)
                .is_ok_and(|answer| {
                    answer.request.pages[0].parts[0].span == span && answer.state == state
                })
        );
        let next = computation.answer(&state, &[request(1)], &mut rng).unwrap();
        assert_eq!(next.request.pages[0].parts[0].span.start, 5);
        if run_number == 1 {
            refused(&mut setting.crypto, &next.request);
        }
        assert_eq!(setting.crypto.ledger(job).unwrap().entries().len(), 1);
    }
}
