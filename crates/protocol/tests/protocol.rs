//! Releases under encryption equal counts plus the holder's own noise, integer for integer, and
//! the crypto service refuses everything that is not a fresh, bound, affordable release.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_domain::{Domain, Schema, Table};
use fhaim_dp::{Allocator, Ladder, LadderPlan, Rho};
use fhaim_he::{P1, P2, ParameterSet, Parameters};
use fhaim_protocol::{
    Error,
    computation::Computation,
    crypto::CryptoService,
    generation::EncryptedSource,
    holder::{self, Holder, Noise},
    upload::{Object, Upload, UploadPlan, decode_object},
};
use fhaim_synth::{Axis, ReleaseRequest, Source, SquaredTerm, Statistic};
use rand::{Rng, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha20Rng;
use std::{collections::HashMap, sync::Arc};

const DATASET: [u8; 16] = [7; 16];

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
    let crypto =
        CryptoService::new(DATASET, &params, domain.clone(), 10_000, budget, &mut rng).unwrap();
    let public = crypto.public_key(&mut rng).unwrap();
    let keys = crypto.evaluation_keys(&mut rng).unwrap();
    let plan = LadderPlan::for_any_order(500, 1 << 44).unwrap();
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
    let mut source = EncryptedSource::new(computation, crypto);
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
    assert_eq!(source.crypto().ledger().entries().len(), debits);
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

#[test]
fn refusals_are_generic_and_leave_the_ledger_unchanged() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let Setting {
        mut computation,
        mut crypto,
        ..
    } = setting(P1, &[3, 2, 5], 100, 0.5);
    let batches = contrast_batches();
    let sealed = computation.answer(&batches[0], &mut rng).unwrap();
    let refused = |crypto: &mut CryptoService, request: &_| {
        let before = crypto.ledger().clone();
        let error = crypto.decrypt(request).unwrap_err();
        assert!(matches!(error, Error::Refused), "{error}");
        assert_eq!(crypto.ledger(), &before);
    };
    let mut other = sealed.clone();
    other.dataset = [8; 16];
    refused(&mut crypto, &other);
    let mut less_noise = sealed.clone();
    less_noise.releases[1].variance_units += 1;
    refused(&mut crypto, &less_noise);
    let mut missing = sealed.clone();
    missing.pages.pop();
    refused(&mut crypto, &missing);
    crypto.decrypt(&sealed).unwrap();
    // The same numbers with other ciphertexts: a second draw of mask and flood.
    let Setting {
        computation: mut twin,
        ..
    } = setting(P1, &[3, 2, 5], 100, 0.5);
    let mut conflicting = twin.answer(&batches[0], &mut rng).unwrap();
    refused(&mut crypto, &conflicting);
    conflicting.releases[0].number = 90;
    refused(&mut crypto, &conflicting);
    // Over budget: variance 4 for a block that one record moves by 6 in squared norm.
    let statistic = Statistic::Product(centred(0, 3), centred(1, 2));
    let costly = [ReleaseRequest {
        number: 3,
        statistic,
        variance_units: 1,
    }];
    let costly = computation.answer(&costly, &mut rng).unwrap();
    refused(&mut crypto, &costly);
}
