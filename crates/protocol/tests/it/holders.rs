//! Tests that releases of several holders equal those of their joined tables with the sum of their
//! noise, integer for integer, by records and by columns. Their price relies on the noise of only
//! the honest holders.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_domain::{Counted, Schema, Table};
use fhaim_dp::{Allocator, Ladder, LadderPlan, Rho};
use fhaim_he::{COMPACT, ParameterSet, Parameters, RosterShape, STANDARD, UploadKey, WIDE};
use fhaim_protocol::Error;
use fhaim_protocol::computation::Computation;
use fhaim_protocol::counts::CountTables;
use fhaim_protocol::counts::pair_counts::PairCounts;
use fhaim_protocol::counts::upload::{CountsHolder, CountsPlan, CountsUpload};
use fhaim_protocol::crypto::{CryptoService, judge::Rules};
use fhaim_protocol::encryption::{Encryption, Encryptor, Payload};
use fhaim_protocol::holder::{self, Holder, HolderNoise};
use fhaim_protocol::joint::{SwitchKeys, join_uploads};
use fhaim_protocol::local::EncryptedSource;
use fhaim_protocol::request::{DatasetId, JobId};
use fhaim_protocol::sealing::SealingKey;
use fhaim_protocol::terms::PlanCore;
use fhaim_protocol::upload::{Object, ReceivedUpload, UploadPlan};
use fhaim_release::{
    Axis, Holders, MechanismJob, MechanismRun, ReleaseRequest, ReleaseSource, SquaredTerm,
    Statistic, UNIT_VARIANCE,
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

/// Splits a table into parts with these numbers of rows, or into its columns by owner.
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
        plan: PlanCore {
            set,
            budget: Rho::from_f64_down(100.0).unwrap(),
            run_budget: Rho::from_f64_down(100.0).unwrap(),
            runs: 1,
            run_ladder: plan,
            domain: domain.clone(),
            record_bound: BOUND,
            holders: holders.clone(),
            members: Vec::new(),
            witness: false,
            key_services: Vec::new(),
            encryption: Encryption::RosterKey,
        },
    };
    let crypto = CryptoService::new(rules, &params, &mut rng).unwrap();
    let public = crypto.public_key(&mut rng).unwrap();
    let shape = Some(roster_shape(holders));
    let keys = crypto.evaluation_keys(shape, &mut rng).unwrap();
    let parts = parts(&pooled, holders, rows);
    let ladders: Vec<Ladder> = parts.iter().map(|_| Ladder::draw(plan, &mut rng)).collect();
    let uploads = parts.iter().zip(&ladders).enumerate();
    let uploads = uploads.map(|(number, (part, ladder))| {
        let key = UploadKey::from_seeds(&params, vec![crypto.upload_seed(number)]);
        upload(part, ladder, &key.unwrap(), &mut rng)
    });
    let uploads: Vec<ReceivedUpload> = uploads.collect();
    let upload = join_uploads(&domain, holders, &keys, &uploads).unwrap();
    let computation = Computation::new(DATASET, domain, public, keys, upload);
    let key = SealingKey::from_bytes(&[6; 32]).unwrap();
    Setting {
        pooled,
        ladder: Ladder::sum(&ladders).unwrap(),
        source: EncryptedSource::new(computation, crypto, JOB, key).unwrap(),
    }
}

/// The shape of a roster of holders who upload records or columns.
fn roster_shape(holders: &Holders) -> RosterShape {
    let count = holders.count() as usize;
    match holders.owners() {
        None => RosterShape::Records(count),
        Some(_) => RosterShape::Columns(count),
    }
}

fn upload(
    table: &Table,
    ladder: &Ladder,
    key: &UploadKey,
    rng: &mut ChaCha20Rng,
) -> ReceivedUpload {
    let set = key.params().set();
    let plan = UploadPlan::for_table(table.domain(), table.records(), ladder.plan(), set);
    let plan = plan.unwrap().under(Encryption::RosterKey);
    let noise = HolderNoise::Drawn(ladder);
    let holder = Holder::new(table, BOUND, noise, Encryptor::of_roster(key), plan);
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

/// Squared scores of two pairs, with the noise that their sensitivity needs.
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

/// Releases that continue on the next page of the ladder: more than ten thousand cells.
fn many() -> Vec<ReleaseRequest> {
    let product = Statistic::Product(Axis::identity(2, 5), Axis::identity(3, 4));
    let mut statistics = vec![Statistic::Total, Statistic::OneWay(Axis::identity(2, 5))];
    statistics.resize(512, product);
    requests(statistics, 0b11_10_01_00_11)
}

fn two_page_plan() -> LadderPlan {
    let cells = many().iter().map(|request| request.statistic.cells()).sum();
    let plan = LadderPlan::new(cells, 1 << 12).unwrap();
    // One of them has positions on both pages.
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
    for set in [COMPACT, STANDARD] {
        check(setting(set, &holders, &rows, two_page_plan()), &many(), 1);
        let counted = counted(set, &holders, &rows, two_page_plan(), Encryption::RosterKey);
        check(counted, &many(), 1);
    }
}

fn ladder_plan() -> LadderPlan {
    LadderPlan::new(500, 1 << 30).unwrap()
}

/// Three holders with different numbers of records, below and above one chunk, and a single holder.
#[test]
fn releases_of_holders_of_records_equal_those_of_the_pooled_table() {
    for (set, rows, honest) in [
        (COMPACT, &[30, 700, 65][..], 1),
        (COMPACT, &[9000, 40, 200], 2),
        (COMPACT, &[100], 1),
        (STANDARD, &[30, 700, 65], 1),
        (WIDE, &[30, 700], 1),
    ] {
        let holders = by_records(rows.len() as u32, honest);
        let setting = setting(set, &holders, rows, ladder_plan());
        check(setting, &contrasts(), honest);
    }
}

#[test]
fn releases_of_holders_of_columns_equal_those_of_the_joined_table() {
    for (set, owners, records) in [
        (COMPACT, [0, 1, 2, 2], 300),
        (COMPACT, [2, 0, 1, 0], 9000),
        (STANDARD, [2, 0, 1, 0], 30),
        (STANDARD, [0, 1, 2, 2], 300),
    ] {
        let holders = by_columns(&owners);
        let setting = setting(set, &holders, &[records], ladder_plan());
        check(setting, &contrasts(), 1);
    }
}

/// Squared scores of a roster contain products of two holders' counts, so a holder with forged
/// counts could read the other's. The computation service has no keys to compute them.
#[test]
fn squared_scores_of_several_holders_are_refused() {
    let rows = [60, 100];
    let records = by_records(2, 1);
    for mut setting in [
        setting(WIDE, &records, &rows, ladder_plan()),
        setting(WIDE, &by_columns(&[0, 1, 2, 1]), &rows[..1], ladder_plan()),
        counted(WIDE, &records, &rows, ladder_plan(), Encryption::RosterKey),
    ] {
        let refused = setting.source.release(&scores()).unwrap_err();
        assert!(refused.to_string().contains("squared scores"), "{refused}");
        let ledger = setting.source.crypto().ledger(JOB).unwrap();
        assert!(ledger.entries().is_empty());
    }
}

/// In a whole run of the default mechanism the model equals that of the run in the clear. The
/// holders' program, the key service and the plan agree on every price.
#[test]
fn run_of_several_holders_equals_the_run_of_the_pooled_table() {
    for holders in [by_records(3, 2), by_columns(&[0, 1, 2, 0])] {
        let mechanism: MechanismName = "staged".parse().unwrap();
        let rho = Rho::from_f64_down(0.5).unwrap();
        let domain = fhaim_domain::Domain::new(vec![3, 2, 5, 4]);
        let mut job = MechanismJob::new(domain, rho, BOUND);
        job.leak.ciphertext = fhaim_protocol::crypto::ciphertext_leak().unwrap();
        job.holders = holders.clone();
        let need = fhaim_synth::need(&*mechanism, &job).unwrap();
        let rows = [400, 300, 500];
        let rows = if holders.owners().is_some() {
            &rows[..1]
        } else {
            &rows
        };
        let mut setting = setting(COMPACT, &holders, rows, need.ladder.plan().unwrap());
        let run = |source: &mut dyn ReleaseSource| {
            let machine = mechanism.start(job.clone()).unwrap();
            let run = MechanismRun::new(machine, job.clone(), Vec::new()).unwrap();
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

/// Uploads of two holders, and the dataset's keys.
struct Uploads {
    secret: fhaim_he::SecretKey,
    keys: Vec<UploadKey>,
    whole: Table,
    rng: ChaCha20Rng,
}

impl Uploads {
    fn new() -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let params = Parameters::new(COMPACT).unwrap();
        let secret = fhaim_he::SecretKey::random(&params, &mut rng).unwrap();
        let key = |n| UploadKey::from_seeds(&params, vec![secret.upload_seed(n)]).unwrap();
        Self {
            keys: (0..3).map(key).collect(),
            whole: table(&[3, 2], 50, &mut rng),
            secret,
            rng,
        }
    }

    /// Uploads the table under the upload key of holder number `key`.
    fn upload(&mut self, key: usize, plan: LadderPlan) -> ReceivedUpload {
        let ladder = Ladder::draw(plan, &mut self.rng);
        upload(&self.whole, &ladder, &self.keys[key], &mut self.rng)
    }

    fn join(
        &mut self,
        holders: &Holders,
        shape: Option<RosterShape>,
        uploads: &[ReceivedUpload],
    ) -> Result<(), Error> {
        let keys = match shape {
            Some(shape) => self.secret.roster_evaluation_keys(shape, &mut self.rng),
            None => self.secret.evaluation_keys(&mut self.rng),
        };
        join_uploads(self.whole.domain(), holders, &keys.unwrap(), uploads).map(drop)
    }
}

/// Parts that do not fit the roster are rejected before anything is computed.
#[test]
fn parts_that_do_not_form_a_table_are_rejected() {
    let mut uploads = Uploads::new();
    let [one, two] = [0, 1].map(|key| uploads.upload(key, ladder_plan()));
    let other = uploads.upload(1, LadderPlan::new(500, 1 << 20).unwrap());
    let (records, both) = (by_records(2, 1), Some(RosterShape::Records(2)));
    let sent = [one.clone(), two.clone()];
    uploads.join(&records, both, &sent).unwrap();
    for sent in [vec![one.clone()], vec![one.clone(), other], vec![]] {
        let refused = uploads.join(&records, both, &sent);
        assert!(matches!(refused, Err(Error::Object(_))), "{refused:?}");
    }
    let columns = records.with_columns(vec![0, 1]).unwrap();
    let refused = uploads.join(&columns, Some(RosterShape::Columns(2)), &sent);
    let Err(Error::Encryption(refused)) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        refused
            .to_string()
            .contains("does not have the columns that its rectangle names"),
        "{refused}"
    );
}

/// Each holder's objects are under its own upload key. Under another holder's key, a holder could
/// send a copy of that holder's objects, or pass for that holder.
#[test]
fn uploads_under_another_holders_key_are_refused() {
    let mut uploads = Uploads::new();
    let [one, two, third] = [0, 1, 2].map(|key| uploads.upload(key, ladder_plan()));
    let (records, both) = (by_records(2, 1), Some(RosterShape::Records(2)));
    for sent in [
        [one.clone(), one.clone()],
        [two.clone(), two.clone()],
        [two.clone(), one.clone()],
        [one.clone(), third],
    ] {
        let refused = uploads.join(&records, both, &sent);
        let Err(Error::Object(refused)) = refused else {
            panic!("{refused:?}");
        };
        assert!(refused.contains("another key"), "{refused}");
    }
    // Without the roster's keys, and with the keys of another roster.
    let sent = [one, two];
    for shape in [None, Some(RosterShape::Records(3))] {
        let refused = uploads.join(&records, shape, &sent);
        let Err(Error::Object(refused)) = refused else {
            panic!("{refused:?}");
        };
        assert!(refused.contains("another roster"), "{refused}");
    }
}

/// Encrypted counts give exactly the same statistics, for one holder and for three. A table may be
/// counted in pieces.
#[test]
fn releases_from_counts_equal_those_of_the_pooled_table() {
    for (set, rows) in [
        (COMPACT, &[9000][..]),
        (COMPACT, &[30, 700, 65]),
        (STANDARD, &[30, 700, 65]),
        (WIDE, &[30, 70, 65]),
    ] {
        let holders = by_records(rows.len() as u32, 1);
        let counted = counted(set, &holders, rows, ladder_plan(), Encryption::RosterKey);
        check(counted, &contrasts(), 1);
    }
}

/// The same, for counts under an upload key that a sole holder drew.
#[test]
fn releases_from_counts_of_a_sole_holder_equal_those_of_its_table() {
    let one = Holders::one();
    for (set, ladder, batches) in [
        (COMPACT, ladder_plan(), contrasts()),
        (COMPACT, two_page_plan(), many()),
        (STANDARD, ladder_plan(), contrasts()),
        (WIDE, ladder_plan(), scores()),
    ] {
        let counted = counted(set, &one, &[900], ladder, Encryption::OwnKey);
        check(counted, &batches, 1);
    }
}

/// With a hundred columns, the tables of all pairs take a quarter of the ciphertexts. Checks pairs
/// far apart, a single column and the total, for one holder and for two.
#[test]
fn dense_counts_of_a_wide_table_release_the_same() {
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
    for (holders, rows, encryption) in [
        (Holders::one(), &[300][..], Encryption::OwnKey),
        (by_records(2, 1), &[120, 80], Encryption::RosterKey),
    ] {
        let counted = counted_of(&sizes, (COMPACT, encryption), &holders, rows, ladder);
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
        plan: PlanCore {
            set,
            budget: Rho::from_f64_down(100.0).unwrap(),
            run_budget: Rho::from_f64_down(100.0).unwrap(),
            runs: 1,
            run_ladder: ladder,
            domain: domain.clone(),
            record_bound: BOUND,
            holders: holders.clone(),
            members: Vec::new(),
            witness: false,
            key_services: Vec::new(),
            encryption: Encryption::RosterKey,
        },
    };
    let crypto = CryptoService::new(rules, &params, &mut rng).unwrap();
    let public = crypto.public_key(&mut rng).unwrap();
    let shape = RosterShape::Counts(holders.count() as usize);
    let of_roster = encryption == Encryption::RosterKey;
    let keys = crypto.evaluation_keys(of_roster.then_some(shape), &mut rng);
    let keys = keys.unwrap();
    let plan = CountsPlan::new(&domain, ladder).unwrap().under(encryption);
    let parts = parts(&pooled, holders, rows);
    let ladders: Vec<Ladder> = parts
        .iter()
        .map(|_| Ladder::draw(plan.ladder, &mut rng))
        .collect();
    // The bytes that each holder sends.
    let mut stored = HashMap::new();
    for (number, (part, ladder)) in parts.iter().zip(&ladders).enumerate() {
        let mut pair_counts = PairCounts::new(plan.tables.clone(), BOUND);
        for first in (0..part.records()).step_by(100) {
            let columns = part.columns().iter();
            let piece = columns.map(|c| &c[first..c.len().min(first + 100)]);
            pair_counts.add(&piece.collect::<Vec<_>>()).unwrap();
        }
        let key = match encryption {
            Encryption::OwnKey => UploadKey::random(&params, &mut rng),
            Encryption::RosterKey => {
                UploadKey::from_seeds(&params, vec![crypto.upload_seed(number)])
            }
        };
        let key = key.unwrap();
        let encryptor = match encryption {
            Encryption::OwnKey => Encryptor::sole(&public, &key),
            Encryption::RosterKey => Encryptor::of_roster(&key),
        };
        let holder =
            CountsHolder::new(&pair_counts, HolderNoise::Drawn(ladder), encryptor, &plan).unwrap();
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
    let switch_keys = match encryption {
        Encryption::OwnKey => SwitchKeys::own(|object| get(0, object)),
        Encryption::RosterKey => SwitchKeys::of_roster(&keys, shape),
    };
    let switch_keys = switch_keys.unwrap();
    let upload = CountsUpload::join(&params, &plan, holders, &switch_keys, get, noise).unwrap();
    let computation = Computation::of_counts(DATASET, public, keys, upload).unwrap();
    let key = SealingKey::from_bytes(&[6; 32]).unwrap();
    Setting {
        pooled,
        ladder: Ladder::sum(&ladders).unwrap(),
        source: EncryptedSource::new(computation, crypto, JOB, key).unwrap(),
    }
}

#[test]
fn pair_counts_equal_the_tables_and_reject_invalid_records() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let table = table(&[3, 2, 5], 500, &mut rng);
    let tables = CountTables::new(table.domain()).unwrap();
    let pair_counts = PairCounts::of_table(tables.clone(), 500, &table).unwrap();
    for [a, b] in [[0, 1], [0, 2], [1, 2]] {
        let expected = table.counts(&fhaim_domain::Clique::new([a, b])).unwrap();
        let found = pair_counts
            .table(a, b)
            .unwrap()
            .iter()
            .map(|&count| count as u64);
        assert!(found.eq(expected), "{a}, {b}");
    }
    assert_eq!(Counted::records(&pair_counts), 500);
    for clique in [vec![], vec![0], vec![1], vec![2], vec![1, 2]] {
        let clique = fhaim_domain::Clique::new(clique);
        assert_eq!(
            pair_counts.marginal(&clique),
            table.marginal(&clique),
            "{clique:?}"
        );
    }
    let triple = fhaim_domain::Clique::new([0, 1, 2]);
    assert_eq!(pair_counts.marginal(&triple), None);
    let refused = PairCounts::of_table(tables.clone(), 499, &table).unwrap_err();
    assert!(matches!(refused, Error::Records { bound: 499, .. }));
    let mut pair_counts = PairCounts::new(tables.clone(), 500);
    for columns in [
        &[&[0u32][..], &[0]][..],
        &[&[0], &[0], &[5]],
        &[&[0], &[0], &[]],
    ] {
        assert!(matches!(pair_counts.add(columns), Err(Error::Table(..))));
    }
    assert_eq!(pair_counts.records(), 0);
    let params = Parameters::new(COMPACT).unwrap();
    let key = UploadKey::random(&params, &mut rng).unwrap();
    let plan = CountsPlan::new(table.domain(), ladder_plan()).unwrap();
    let plan = plan.under(Encryption::RosterKey);
    let encryptor = Encryptor::of_roster(&key);
    let refused = CountsHolder::new(&pair_counts, HolderNoise::Fresh, encryptor, &plan);
    assert!(matches!(refused, Err(Error::Table(_))), "{refused:?}");
}

#[test]
fn counts_of_another_roster_are_refused() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let params = Parameters::new(COMPACT).unwrap();
    let secret = fhaim_he::SecretKey::random(&params, &mut rng).unwrap();
    let domain = fhaim_domain::Domain::new(vec![3, 2, 5]);
    let plan = CountsPlan::new(&domain, ladder_plan()).unwrap();
    let plan = plan.under(Encryption::RosterKey);
    let (two, three) = (RosterShape::Counts(2), RosterShape::Counts(3));
    let keys = secret.roster_evaluation_keys(two, &mut rng).unwrap();
    let switch_keys = SwitchKeys::of_roster(&keys, two).unwrap();
    for other in [three, RosterShape::Records(2)] {
        let refused = SwitchKeys::of_roster(&keys, other);
        assert!(matches!(refused, Err(Error::Object(_))), "{refused:?}");
    }
    let key = |n| UploadKey::from_seeds(&params, vec![secret.upload_seed(n)]).unwrap();
    let key = [key(0), key(1)];
    let encrypted = |holder: usize| Payload::Seeded(key[holder].encrypt(&[1], &mut rng).unwrap());
    let sent = [0, 1].map(encrypted);
    let join = |holders: &Holders, sent: [&Payload; 2]| {
        let get = |holder: usize, _| Ok(sent[holder].clone());
        let noise = Arc::new(HashMap::new());
        CountsUpload::join(&params, &plan, holders, &switch_keys, get, noise).map(drop)
    };
    let [one, other] = &sent;
    join(&by_records(2, 1), [one, other]).unwrap();
    for sent in [[one, one], [other, other], [other, one]] {
        let refused = join(&by_records(2, 1), sent);
        let Err(Error::Encryption(fhaim_he::Error::Mismatch(refused))) = refused else {
            panic!("{refused:?}");
        };
        assert!(refused.contains("another holder's key"), "{refused}");
    }
    let columns = by_records(2, 1).with_columns(vec![0, 1, 1]).unwrap();
    for other in [by_records(3, 1), columns] {
        let refused = join(&other, [&sent[0], &sent[1]]);
        assert!(matches!(refused, Err(Error::Object(_))), "{refused:?}");
    }
}
