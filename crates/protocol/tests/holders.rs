//! Several holders' releases are those of their tables together with the sum of their noise, integer
//! for integer, by records and by columns; and what they cost relies on some holders' noise alone.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_domain::{Counted, Schema, Table};
use fhaim_dp::{Allocator, Ladder, LadderPlan, Rho};
use fhaim_he::{HolderKey, P1, P1_LARGE, P2, P5, ParameterSet, Parameters, PublicKey};
use fhaim_protocol::computation::Computation;
use fhaim_protocol::counts::CountTables;
use fhaim_protocol::counts::tally::Tally;
use fhaim_protocol::counts::upload::{CountsHolder, CountsPlan, CountsUpload};
use fhaim_protocol::crypto::{CryptoService, judge::Rules};
use fhaim_protocol::encryption::{Encryption, Encryptor};
use fhaim_protocol::holder::{self, Holder, Noise};
use fhaim_protocol::joint::join_uploads;
use fhaim_protocol::local::EncryptedSource;
use fhaim_protocol::request::{DatasetId, JobId};
use fhaim_protocol::sealing::SealingKey;
use fhaim_protocol::upload::{Object, Upload, UploadPlan};
use fhaim_release::{
    Axis, Holders, Job, ReleaseRequest, Run, Source, SquaredTerm, Statistic, UNIT_VARIANCE,
};
use fhaim_synth::{MechanismName, PlaintextSource};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use std::collections::HashMap;
use std::sync::Arc;

const DATASET: DatasetId = DatasetId([7; 16]);
const JOB: JobId = JobId([1; 16]);
const BOUND: u64 = 20_000;

fn schema(sizes: &[usize], names: &[usize]) -> Arc<Schema> {
    let column = |(name, n): (&usize, &usize)| {
        let categories: Vec<String> = (0..*n).map(|c| format!("\"v{c}\"")).collect();
        let categories = categories.join(",");
        format!(r#"{{"name":"a{name}","kind":"categorical","categories":[{categories}]}}"#)
    };
    let columns: Vec<String> = names.iter().zip(sizes).map(column).collect();
    let json = format!(r#"{{"name":"test","columns":[{}]}}"#, columns.join(","));
    Arc::new(Schema::from_json("test.json", json.as_bytes()).unwrap())
}

fn table(sizes: &[usize], records: usize, rng: &mut ChaCha20Rng) -> Table {
    let names: Vec<usize> = (0..sizes.len()).collect();
    let mut column = |&n: &usize| {
        (0..records)
            .map(|_| rng.random_range(0..n as u32))
            .collect()
    };
    let columns = sizes.iter().map(&mut column).collect();
    Table::new(schema(sizes, &names), columns).unwrap()
}

/// The rows of a table in parts of these sizes, or its columns as they are owned.
fn parts(table: &Table, holders: &Holders, rows: &[usize]) -> Vec<Table> {
    let Some(owners) = holders.owners() else {
        let mut first = 0;
        let part = |&n: &usize| {
            first += n;
            table
                .select(&(first - n..first).collect::<Vec<_>>())
                .unwrap()
        };
        return rows.iter().map(part).collect();
    };
    let part = |holder| {
        let own: Vec<usize> = (0..owners.len()).filter(|&a| owners[a] == holder).collect();
        let sizes: Vec<usize> = own.iter().map(|&a| table.domain().size(a)).collect();
        let columns = own.iter().map(|&a| table.column(a).to_vec()).collect();
        Table::new(schema(&sizes, &own), columns).unwrap()
    };
    (0..holders.count()).map(part).collect()
}

struct Setting {
    pooled: Table,
    ladder: Ladder,
    source: EncryptedSource,
}

fn setting(set: ParameterSet, holders: &Holders, rows: &[usize], plan: LadderPlan) -> Setting {
    let mut rng = ChaCha20Rng::seed_from_u64(rows.len() as u64);
    let sizes = [3, 2, 5, 4];
    let pooled = table(&sizes, rows.iter().sum(), &mut rng);
    let domain = pooled.domain().clone();
    let params = Parameters::new(set).unwrap();
    let rules = Rules {
        dataset: DATASET,
        domain: domain.clone(),
        record_bound: BOUND,
        holders: holders.clone(),
        members: Vec::new(),
        runs: 1,
        run_budget: Rho::from_f64_down(100.0).unwrap(),
        run_ladder: plan,
        residues: set.plaintext_moduli.len(),
        witness: false,
    };
    let crypto = CryptoService::new(rules, &params, &mut rng).unwrap();
    let public = crypto.public_key(&mut rng).unwrap();
    let keys = crypto.evaluation_keys(&mut rng).unwrap();
    let parts = parts(&pooled, holders, rows);
    let ladders: Vec<Ladder> = parts.iter().map(|_| Ladder::draw(plan, &mut rng)).collect();
    let uploads = parts.iter().zip(&ladders);
    let uploads = uploads.map(|(part, ladder)| upload(part, ladder, &public, &mut rng));
    let upload = join_uploads(&params, &domain, holders, &uploads.collect::<Vec<_>>()).unwrap();
    let computation = Computation::new(DATASET, domain, public, keys, upload);
    let key = SealingKey::from_bytes(&[6; 32]).unwrap();
    Setting {
        pooled,
        ladder: Ladder::sum(&ladders).unwrap(),
        source: EncryptedSource::new(computation, crypto, JOB, key).unwrap(),
    }
}

fn upload(table: &Table, ladder: &Ladder, public: &PublicKey, rng: &mut ChaCha20Rng) -> Upload {
    let set = public.params().set();
    let plan = UploadPlan::for_table(table.domain(), table.records(), ladder.plan(), set);
    let holder = Holder::new(table, BOUND, Noise::Drawn(ladder), public, plan.unwrap());
    holder::encrypt(&holder.unwrap(), rng, &|| ()).unwrap()
}

fn by_records(count: u32, honest: u32) -> Holders {
    Holders::of_records(count, honest).unwrap()
}

fn by_columns(owners: &[u32]) -> Holders {
    by_records(3, 1).with_columns(owners.to_vec()).unwrap()
}

fn requests(statistics: Vec<Statistic>, variance_units: u64) -> Vec<ReleaseRequest> {
    let request = |(number, statistic)| ReleaseRequest {
        number,
        statistic,
        variance_units,
    };
    (0..).zip(statistics).map(request).collect()
}

/// Squared scores of two pairs, with the noise that their sensitivity asks for.
fn scores() -> Vec<ReleaseRequest> {
    let term = |a, b, cells: usize| SquaredTerm {
        clique: fhaim_domain::Clique::new([a, b]),
        weight: 2,
        target: (0..cells as i64).collect(),
    };
    let scores = Statistic::SquaredScores(vec![term(0, 1, 6), term(1, 2, 10)]);
    requests(vec![scores], 1 << 29)
}

fn contrasts() -> Vec<ReleaseRequest> {
    let centred = Axis {
        attribute: 0,
        functions: vec![vec![2, -1, -1], vec![-1, 2, -1], vec![-1, -1, 2]],
    };
    let statistics = vec![
        Statistic::Total,
        Statistic::OneWay(centred.clone()),
        Statistic::OneWay(Axis::identity(2, 5)),
        Statistic::Product(centred.clone(), Axis::identity(1, 2)),
        Statistic::Product(centred, Axis::identity(2, 5)),
        Statistic::Product(Axis::identity(2, 5), Axis::identity(3, 4)),
    ];
    requests(statistics, 77_777)
}

fn check(mut setting: Setting, requests: &[ReleaseRequest], honest: u32) {
    let answers = setting.source.release(requests).unwrap();
    let mut clear = PlaintextSource::with_ladder(&setting.pooled, &setting.ladder);
    assert_eq!(answers, clear.release(requests).unwrap());
    let ledger = setting.source.crypto().ledger(JOB).unwrap();
    for (entry, request) in ledger.entries().iter().zip(requests) {
        let units = u128::from(request.variance_units);
        let relied_upon = 2 * u128::from(UNIT_VARIANCE) * units * u128::from(honest);
        let rho = Rho::ratio_up(entry.debit.delta2_squared, relied_upon).unwrap();
        assert_eq!((entry.rho, entry.debit.honest), (rho, honest));
    }
}

/// Releases that go on into the next page of the ladder: ten thousand cells and some.
fn many() -> Vec<ReleaseRequest> {
    let product = Statistic::Product(Axis::identity(2, 5), Axis::identity(3, 4));
    let mut statistics = vec![Statistic::Total, Statistic::OneWay(Axis::identity(2, 5))];
    statistics.resize(512, product);
    requests(statistics, 0b11_10_01_00_11)
}

fn two_page_plan() -> LadderPlan {
    let cells = many().iter().map(|request| request.statistic.cells()).sum();
    let plan = LadderPlan::new(cells, 1 << 12).unwrap();
    // One of them has positions in both pages.
    let mut allocator = Allocator::new(plan);
    let spans = many().into_iter().map(|request| {
        let cells = request.statistic.cells();
        allocator.allocate(request.number, cells).unwrap().len()
    });
    assert_eq!(
        (plan.pages(), spans.filter(|&spans| spans == 2).count()),
        (2, 1)
    );
    plan
}

#[test]
fn noise_of_releases_across_pages_is_added_to_records_and_counts() {
    let (holders, rows) = (by_records(2, 1), [120, 80]);
    check(setting(P1, &holders, &rows, two_page_plan()), &many(), 1);
    let counted = counted(P1, &holders, &rows, two_page_plan(), Encryption::PublicKey);
    check(counted, &many(), 1);
}

fn ladder_plan() -> LadderPlan {
    LadderPlan::new(500, 1 << 30).unwrap()
}

/// Three holders of different numbers of records, below and above one chunk, and one alone.
#[test]
fn holders_of_records_release_what_their_pooled_table_would() {
    for (rows, honest) in [(&[30, 700, 65][..], 1), (&[9000, 40, 200], 2), (&[100], 1)] {
        let holders = by_records(rows.len() as u32, honest);
        check(
            setting(P1, &holders, rows, ladder_plan()),
            &contrasts(),
            honest,
        );
    }
}

#[test]
fn holders_of_columns_release_what_their_joined_table_would() {
    for owners in [[0, 1, 2, 2], [2, 0, 1, 0]] {
        let holders = by_columns(&owners);
        check(
            setting(P1, &holders, &[300], ladder_plan()),
            &contrasts(),
            1,
        );
    }
}

/// A whole run of the default mechanism: the model is that of the run in the clear, and the
/// holders' program, the key service and the plan agree on every price.
#[test]
fn a_run_of_several_holders_is_that_of_the_pooled_table() {
    for holders in [by_records(3, 2), by_columns(&[0, 1, 2, 0])] {
        let mechanism: MechanismName = "staged".parse().unwrap();
        let rho = Rho::from_f64_down(0.5).unwrap();
        let domain = fhaim_domain::Domain::new(vec![3, 2, 5, 4]);
        let mut job = Job::new(domain, rho, BOUND);
        job.leak.ciphertext = fhaim_protocol::crypto::ciphertext_leak().unwrap();
        job.holders = holders.clone();
        let need = fhaim_synth::need(&*mechanism, &job).unwrap();
        let rows = [400, 300, 500];
        let rows = if holders.owners().is_some() {
            &rows[..1]
        } else {
            &rows
        };
        let mut setting = setting(P1, &holders, rows, need.ladder.plan().unwrap());
        let run = |source: &mut dyn Source| {
            let machine = mechanism.start(job.clone()).unwrap();
            let run = Run::new(machine, job.clone(), Vec::new()).unwrap();
            fhaim_synth::drive(run, source, &mut |_| ()).unwrap()
        };
        let encrypted = run(&mut setting.source);
        let mut clear = PlaintextSource::with_ladder(&setting.pooled, &setting.ladder);
        let clear = run(&mut clear);
        assert_eq!(encrypted.releases, clear.releases);
        let ledger = setting.source.crypto().ledger(JOB).unwrap();
        assert_eq!(ledger.spent(), encrypted.spent);
        assert!(encrypted.spent <= rho && encrypted.spent.to_f64() > 0.9 * rho.to_f64());
    }
}

/// Parts that are not those of the roster are refused before anything is computed.
#[test]
fn parts_that_do_not_make_a_table_are_refused() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let params = Parameters::new(P1).unwrap();
    let secret = fhaim_he::SecretKey::random(&params, &mut rng).unwrap();
    let public = secret.public_key(&mut rng).unwrap();
    let plan = ladder_plan();
    let whole = table(&[3, 2], 50, &mut rng);
    let domain = whole.domain().clone();
    let mut of = |table: &Table, plan| {
        let ladder = Ladder::draw(plan, &mut rng);
        upload(table, &ladder, &public, &mut rng)
    };
    let one = of(&whole, plan);
    let other = of(&whole, LadderPlan::new(500, 1 << 20).unwrap());
    let join =
        |holders: &Holders, uploads: Vec<Upload>| join_uploads(&params, &domain, holders, &uploads);
    let two = by_records(2, 1);
    assert!(join(&two, vec![one.clone(), one.clone()]).is_ok());
    assert!(join(&two, vec![one.clone()]).is_err());
    assert!(join(&two, vec![one.clone(), other]).is_err());
    assert!(join(&by_records(1, 1), vec![]).is_err());
    let columns = two.with_columns(vec![0, 1]).unwrap();
    assert!(join(&columns, vec![one.clone(), one]).is_err());
}

/// The same statistics from encrypted counts, of one holder and of three, exactly; and a table may be
/// counted in pieces.
#[test]
fn counts_release_what_the_pooled_table_would() {
    for rows in [&[9000][..], &[30, 700, 65]] {
        let holders = by_records(rows.len() as u32, 1);
        let counted = counted(P1, &holders, rows, ladder_plan(), Encryption::PublicKey);
        check(counted, &contrasts(), 1);
    }
    let (holders, ladder) = (by_records(3, 2), ladder_plan());
    let three = counted(P1, &holders, &[30, 70, 65], ladder, Encryption::PublicKey);
    check(three, &contrasts(), 2);
    let one = counted(P2, &Holders::one(), &[165], ladder, Encryption::PublicKey);
    check(one, &scores(), 1);
}

/// And from counts under a key of the holder's own, of which there is one.
#[test]
fn counts_under_a_key_of_the_holders_own_release_the_same() {
    let one = Holders::one();
    for (set, ladder, batches) in [
        (P1, ladder_plan(), contrasts()),
        (P1, two_page_plan(), many()),
        (P1_LARGE, ladder_plan(), contrasts()),
        (P2, ladder_plan(), scores()),
    ] {
        let counted = counted(set, &one, &[900], ladder, Encryption::HolderKey);
        check(counted, &batches, 1);
    }
}

/// Of a hundred columns, all pairs' tables in a quarter of the ciphertexts: pairs far apart, a column by itself and
/// the total, of one holder under a key of its own and of two.
#[test]
fn counts_of_a_wide_table_lie_close_together_and_release_the_same() {
    let sizes = [4; 100];
    let domain = fhaim_domain::Domain::new(sizes.to_vec());
    let tables = CountTables::new(&domain).unwrap();
    let layout = tables.layout();
    assert_eq!((layout.stride(), layout.ciphertexts()), (256, 310));
    let centred = |attribute| Axis {
        attribute,
        functions: vec![vec![3, -1, -1, -1], vec![1, 1, -1, -1]],
    };
    let pairs = [(0, 1), (0, 99), (41, 77), (98, 99)];
    let mut statistics = vec![
        Statistic::Total,
        Statistic::OneWay(Axis::identity(50, 4)),
        Statistic::Product(Axis::identity(12, 4), Axis::identity(13, 4)),
    ];
    statistics.extend(pairs.map(|(a, b)| Statistic::Product(centred(a), centred(b))));
    let requests = requests(statistics, 77_777);
    let ladder = LadderPlan::new(60, 1 << 20).unwrap();
    for (set, holders, rows, encryption) in [
        (P5, Holders::one(), &[300][..], Encryption::HolderKey),
        (P1, by_records(2, 1), &[120, 80], Encryption::PublicKey),
    ] {
        let counted = counted_of(&sizes, (set, encryption), &holders, rows, ladder);
        check(counted, &requests, 1);
    }
}

fn counted(
    set: ParameterSet,
    holders: &Holders,
    rows: &[usize],
    ladder: LadderPlan,
    encryption: Encryption,
) -> Setting {
    counted_of(&[3, 2, 5, 4], (set, encryption), holders, rows, ladder)
}

fn counted_of(
    sizes: &[usize],
    (set, encryption): (ParameterSet, Encryption),
    holders: &Holders,
    rows: &[usize],
    ladder: LadderPlan,
) -> Setting {
    let mut rng = ChaCha20Rng::seed_from_u64(17);
    let pooled = table(sizes, rows.iter().sum(), &mut rng);
    let domain = pooled.domain().clone();
    let params = Parameters::new(set).unwrap();
    let rules = Rules {
        dataset: DATASET,
        domain: domain.clone(),
        record_bound: BOUND,
        holders: holders.clone(),
        members: Vec::new(),
        runs: 1,
        run_budget: Rho::from_f64_down(100.0).unwrap(),
        run_ladder: ladder,
        residues: set.plaintext_moduli.len(),
        witness: false,
    };
    let crypto = CryptoService::new(rules, &params, &mut rng).unwrap();
    let public = crypto.public_key(&mut rng).unwrap();
    let keys = crypto.evaluation_keys(&mut rng).unwrap();
    let plan = CountsPlan::new(&domain, ladder).unwrap().under(encryption);
    let own = HolderKey::random(&params, &mut rng).unwrap();
    let own = (!encryption.is_public()).then_some(&own);
    let encryptor = Encryptor::new(&public, own);
    let parts = parts(&pooled, holders, rows);
    let ladders: Vec<Ladder> = parts
        .iter()
        .map(|_| Ladder::draw(plan.ladder, &mut rng))
        .collect();
    // What each sends, as bytes.
    let mut stored = HashMap::new();
    for (number, (part, ladder)) in parts.iter().zip(&ladders).enumerate() {
        let mut tally = Tally::new(plan.tables.clone(), BOUND);
        for first in (0..part.records()).step_by(100) {
            let columns = part.columns().iter();
            let piece = columns.map(|c| &c[first..c.len().min(first + 100)]);
            tally.add(&piece.collect::<Vec<_>>()).unwrap();
        }
        let holder = CountsHolder::new(&tally, Noise::Drawn(ladder), encryptor, &plan).unwrap();
        for object in plan.objects() {
            stored.insert((number, object), holder.encode(object, &mut rng).unwrap());
        }
    }
    let get = |holder, object| plan.decode(&params, object, &stored[&(holder, object)]);
    let noise = stored
        .keys()
        .filter(|(_, object)| matches!(object, Object::Noise { .. }));
    let noise = noise.map(|&(holder, object)| ((holder, object), get(holder, object).unwrap()));
    let noise = Arc::new(noise.collect::<HashMap<_, _>>());
    let upload = CountsUpload::join(&params, &plan, holders, get, noise).unwrap();
    let computation = Computation::of_counts(DATASET, public, keys, upload).unwrap();
    let key = SealingKey::from_bytes(&[6; 32]).unwrap();
    Setting {
        pooled,
        ladder: Ladder::sum(&ladders).unwrap(),
        source: EncryptedSource::new(computation, crypto, JOB, key).unwrap(),
    }
}

#[test]
fn a_tally_counts_what_its_terms_allow() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let table = table(&[3, 2, 5], 500, &mut rng);
    let tables = CountTables::new(table.domain()).unwrap();
    let tally = Tally::of_table(tables.clone(), 500, &table).unwrap();
    for [a, b] in [[0, 1], [0, 2], [1, 2]] {
        let expected = table.counts(&fhaim_domain::Clique::new([a, b])).unwrap();
        let found = tally.table(a, b).unwrap().iter().map(|&count| count as u64);
        assert!(found.eq(expected), "{a}, {b}");
    }
    assert_eq!(Counted::records(&tally), 500);
    for clique in [vec![], vec![0], vec![1], vec![2], vec![1, 2]] {
        let clique = fhaim_domain::Clique::new(clique);
        assert_eq!(
            tally.marginal(&clique),
            table.marginal(&clique),
            "{clique:?}"
        );
    }
    let triple = fhaim_domain::Clique::new([0, 1, 2]);
    assert_eq!(tally.marginal(&triple), None);
    let refused = Tally::of_table(tables.clone(), 499, &table).unwrap_err();
    assert!(matches!(
        refused,
        fhaim_protocol::Error::Records { bound: 499, .. }
    ));
    let mut tally = Tally::new(tables.clone(), 500);
    for columns in [
        &[&[0u32][..], &[0]][..],
        &[&[0], &[0], &[5]],
        &[&[0], &[0], &[]],
    ] {
        assert!(tally.add(columns).is_err());
    }
    assert_eq!(tally.records(), 0);
    let params = Parameters::new(P1).unwrap();
    let secret = fhaim_he::SecretKey::random(&params, &mut rng).unwrap();
    let public = secret.public_key(&mut rng).unwrap();
    let plan = CountsPlan::new(table.domain(), ladder_plan()).unwrap();
    assert!(CountsHolder::new(&tally, Noise::Fresh, &public, &plan).is_err());
    let owners = by_columns(&[0, 1, 2]);
    let none = |_, _| Err(fhaim_protocol::Error::Object("none"));
    let noise = Arc::new(HashMap::new());
    assert!(CountsUpload::join(&params, &plan, &owners, none, noise).is_err());
}
