//! Tests releases under a key that two or three services share: they equal counts plus the holder's
//! noise, integer for integer. If one service refuses a batch, no service debits or shares it.
//! Fewer than all services cannot read a page.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_domain::{Schema, Table};
use fhaim_dp::{Ladder, LadderPlan, Rho};
use fhaim_he::key_sharing::{KeyShare, Opening, combine};
use fhaim_he::{
    DEGREE, PAGE, ParameterSet, Parameters, RosterShape, STANDARD, SecretKey, UploadKey, WIDE,
};
use fhaim_protocol::Error;
use fhaim_protocol::committee::decryption::{
    InMemoryKeyService, Opened, ShareReader, request_digest,
};
use fhaim_protocol::committee::keygen::KeyGeneration;
use fhaim_protocol::committee::state::SharedDatasetState;
use fhaim_protocol::committee::{KeyCommittee, KeyService, ServiceSigningKey};
use fhaim_protocol::computation::Computation;
use fhaim_protocol::crypto::{chain::Freeze, judge::Rules};
use fhaim_protocol::encryption::{Encryption, Encryptor};
use fhaim_protocol::holder::{self, Holder, HolderNoise};
use fhaim_protocol::joint::join_uploads;
use fhaim_protocol::request::{DatasetId, DecryptRequest, JobId};
use fhaim_protocol::sealing::SealingKey;
use fhaim_protocol::terms::PlanCore;
use fhaim_protocol::upload::{ReceivedUpload, UploadPlan};
use fhaim_protocol::upload_key::upload_key;
use fhaim_protocol::window::Window;
use fhaim_release::{Axis, Holders, ReleaseRequest, ReleaseSource, SquaredTerm, Statistic};
use fhaim_synth::PlaintextSource;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use std::sync::Arc;

const DATASET: DatasetId = DatasetId([7; 16]);
const JOB: JobId = JobId([1; 16]);
const UPLOAD: [u8; 32] = [4; 32];
const BOUND: u64 = 10_000;
const SIZES: [usize; 3] = [3, 2, 5];

fn table(records: usize, rng: &mut ChaCha20Rng) -> Table {
    let column = |(i, n): (usize, &usize)| {
        let categories: Vec<String> = (0..*n).map(|c| format!("\"v{c}\"")).collect();
        let categories = categories.join(",");
        format!(r#"{{"name":"a{i}","kind":"categorical","categories":[{categories}]}}"#)
    };
    let columns: Vec<String> = SIZES.iter().enumerate().map(column).collect();
    let json = format!(r#"{{"name":"test","columns":[{}]}}"#, columns.join(","));
    let schema = Schema::from_json("test.json", json.as_bytes()).unwrap();
    let mut column = |&n: &usize| {
        (0..records)
            .map(|_| rng.random_range(0..n as u32))
            .collect()
    };
    let columns = SIZES.iter().map(&mut column).collect();
    Table::new(Arc::new(schema), columns).unwrap()
}

/// Makes a key and passes each message to all services in turn.
fn services(
    set: ParameterSet,
    count: usize,
    shape: Option<RosterShape>,
    rules: &Rules,
) -> Vec<InMemoryKeyService> {
    let params = Parameters::shared(set).unwrap();
    let params = params.with_shares(count).unwrap();
    let key = |number: usize| ServiceSigningKey::from_bytes(&[number as u8 + 1; 32]);
    let service = |number| KeyService {
        name: format!("hospital {number}"),
        key: key(number).public(),
    };
    let named = (0..count).map(service).collect();
    let committee = KeyCommittee::new(DATASET, &[5; 32], &[6; 16], named).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(count as u64);
    let mut begin = |number| {
        let share = KeyShare::random(&params, &mut rng).unwrap();
        KeyGeneration::new(committee.clone(), shape, share, key(number)).unwrap()
    };
    let mut making: Vec<_> = (0..count).map(&mut begin).collect();
    while !making.iter().all(KeyGeneration::is_done) {
        let sent = making.iter().map(|one| one.message().unwrap().unwrap());
        let sent: Vec<_> = sent.collect();
        for one in &mut making {
            sent.iter().for_each(|message| {
                one.take(message).unwrap();
            });
        }
    }
    let service =
        |one: KeyGeneration| InMemoryKeyService::new(one.finish().unwrap(), rules.clone()).unwrap();
    making.into_iter().map(service).collect()
}

fn rules(table: &Table, plan: LadderPlan, set: ParameterSet) -> Rules {
    Rules {
        dataset: DATASET,
        plan: PlanCore {
            set,
            budget: Rho::from_f64_down(100.0).unwrap(),
            run_budget: Rho::from_f64_down(100.0).unwrap(),
            runs: 2,
            run_ladder: plan,
            domain: table.domain().clone(),
            record_bound: BOUND,
            holders: Holders::one(),
            members: Vec::new(),
            witness: false,
            key_services: Vec::new(),
            encryption: Encryption::OwnKey,
        },
    }
}

struct Setting {
    table: Table,
    ladder: Ladder,
    params: Parameters,
    computation: Computation,
    services: Vec<InMemoryKeyService>,
    reader: ShareReader,
}

fn setting(set: ParameterSet, count: usize) -> Setting {
    setting_with(set, count, Roster::None, false)
}

/// The holders that upload the table.
#[derive(Clone, Copy, Debug)]
enum Roster {
    /// A sole holder.
    None,
    /// Two holders of records.
    Records,
    /// Two holders of columns. The second one has the middle column.
    Columns,
}

impl Roster {
    fn holders(self) -> Holders {
        let two = || Holders::of_records(2, 1).unwrap();
        match self {
            Self::None => Holders::one(),
            Self::Records => two(),
            Self::Columns => two().with_columns(vec![0, 1, 0]).unwrap(),
        }
    }

    fn shape(self) -> Option<RosterShape> {
        match self {
            Self::None => None,
            Self::Records => Some(RosterShape::Records(2)),
            Self::Columns => Some(RosterShape::Columns(2)),
        }
    }

    fn parts(self, table: &Table) -> Vec<Table> {
        let records = |from, to| table.select(&(from..to).collect::<Vec<_>>()).unwrap();
        let attributes = |all: &[usize]| {
            let columns = all.iter().map(|&a| table.column(a).to_vec());
            let schema = table.schema().part(all).unwrap();
            Table::new(Arc::new(schema), columns.collect()).unwrap()
        };
        match self {
            Self::None => vec![table.clone()],
            Self::Records => vec![records(0, 130), records(130, table.records())],
            Self::Columns => vec![attributes(&[0, 2]), attributes(&[1])],
        }
    }
}

/// Makes a setting with a roster, or with a second computation service in the terms.
fn setting_with(set: ParameterSet, count: usize, roster: Roster, witness: bool) -> Setting {
    let mut rng = ChaCha20Rng::seed_from_u64(9);
    let table = table(200, &mut rng);
    let plan = LadderPlan::new(200, 1 << 30).unwrap();
    let holders = roster.holders();
    let mut rules = rules(&table, plan, set);
    rules.plan.witness = witness;
    rules.plan.holders = holders.clone();
    let services = services(set, count, roster.shape(), &rules);
    let key = services[0].key();
    let (public, evaluation) = (key.public_key().clone(), key.evaluation_keys().clone());
    let params = public.params().clone();
    let parts = roster.parts(&table);
    let ladders: Vec<Ladder> = parts.iter().map(|_| Ladder::draw(plan, &mut rng)).collect();
    let upload = |(number, (part, ladder)): (usize, (&Table, &Ladder))| {
        let upload = UploadPlan::for_table(part.domain(), part.records(), plan, &set).unwrap();
        let upload_key = match roster {
            Roster::None => UploadKey::random(&params, &mut rng).unwrap(),
            Roster::Records | Roster::Columns => {
                let shares = services
                    .iter()
                    .map(|service| service.key().member().key_share());
                let seeds = shares.map(|share| share.upload_seed(number)).collect();
                upload_key(&params, seeds).unwrap()
            }
        };
        let (encryptor, upload) = match roster {
            Roster::None => (Encryptor::sole(&public, &upload_key), upload),
            Roster::Records | Roster::Columns => {
                let encryptor = Encryptor::of_roster(&upload_key);
                (encryptor, upload.under(Encryption::RosterKey))
            }
        };
        let holder =
            Holder::new(part, BOUND, HolderNoise::Drawn(ladder), encryptor, upload).unwrap();
        holder::encrypt(&holder, &mut rng, &|| ()).unwrap()
    };
    let uploads: Vec<ReceivedUpload> = parts.iter().zip(&ladders).enumerate().map(upload).collect();
    let upload = join_uploads(table.domain(), &holders, &evaluation, &uploads).unwrap();
    let reader = ShareReader::new(
        key.member().committee().clone(),
        params.clone(),
        *key.member().transcript(),
    );
    let domain = table.domain().clone();
    Setting {
        computation: Computation::new(DATASET, domain, public, evaluation, upload),
        reader: reader.unwrap(),
        table,
        ladder: Ladder::sum(&ladders).unwrap(),
        params,
        services,
    }
}

impl Setting {
    fn begin(&mut self, job: JobId) {
        let assignment = self.services[0].assign(job, UPLOAD).unwrap();
        for service in &mut self.services[1..] {
            service.follow(&assignment).unwrap();
        }
    }

    fn window(&self, job: JobId) -> Window {
        self.services[0]
            .record()
            .run_record(job)
            .unwrap()
            .window()
            .clone()
    }

    fn seal(&self, requests: &[ReleaseRequest]) -> DecryptRequest {
        let key = SealingKey::from_bytes(&[6; 32]).unwrap();
        let sealed = self.computation.answer(&self.window(JOB), requests, &key);
        sealed.unwrap().request
    }

    /// All services judge the batch and receive each other's promises.
    fn promise(&mut self, request: &DecryptRequest) {
        let verdicts = self
            .services
            .iter_mut()
            .map(|s| s.judge(request, None).unwrap());
        let verdicts: Vec<_> = verdicts.collect();
        for service in &mut self.services {
            for verdict in &verdicts {
                service.hear(verdict).unwrap();
            }
        }
    }

    fn shares(&mut self, request: &DecryptRequest) -> Vec<Vec<u8>> {
        let services = self.services.iter_mut();
        services.map(|s| s.share(request).unwrap()).collect()
    }

    fn opened(&self, request: &DecryptRequest) -> Opened {
        Opened::of(&self.params, request).unwrap()
    }

    fn release(&mut self, requests: &[ReleaseRequest]) -> Vec<Vec<i64>> {
        let request = self.seal(requests);
        self.promise(&request);
        let shares = self.shares(&request);
        let opened = self.opened(&request);
        let mut answers = self.reader.read(requests, &opened, &shares).unwrap();
        for (request, answer) in requests.iter().zip(&mut answers) {
            request.statistic.add_public_part(answer).unwrap();
        }
        answers
    }

    /// Returns the size of each service's ledger and chain. Equal values mean that they did not
    /// change.
    fn ledgers(&self) -> Vec<(usize, u64)> {
        let of = |service: &InMemoryKeyService| {
            let run_record = service.record().run_record(JOB);
            let entries = run_record.map_or(0, |run_record| run_record.ledger().entries().len());
            (entries, service.record().chain_state().tip().height)
        };
        self.services.iter().map(of).collect()
    }
}

fn requests(first: u32, statistics: Vec<Statistic>, variance_units: u64) -> Vec<ReleaseRequest> {
    let request = |(number, statistic)| ReleaseRequest {
        number,
        statistic,
        variance_units,
    };
    (first..).zip(statistics).map(request).collect()
}

fn contrasts() -> Vec<ReleaseRequest> {
    let centred = Axis {
        attribute: 0,
        functions: vec![vec![2, -1, -1], vec![-1, 2, -1], vec![-1, -1, 2]],
    };
    let statistics = vec![
        Statistic::Total,
        Statistic::OneWay(centred.clone()),
        Statistic::Product(centred, Axis::identity(2, 5)),
    ];
    requests(0, statistics, 77_777)
}

fn scores(first: u32) -> Vec<ReleaseRequest> {
    let term = |a, b, cells: usize| SquaredTerm {
        clique: fhaim_domain::Clique::new([a, b]),
        weight: 2,
        target: (0..cells as i64).collect(),
    };
    let scores = Statistic::SquaredScores(vec![term(0, 1, 6), term(1, 2, 10)]);
    requests(first, vec![scores], 1 << 29)
}

#[test]
#[ignore = "slow"]
fn batch_is_released_as_in_the_clear() {
    for (set, count, roster) in [
        (STANDARD, 2, Roster::None),
        (STANDARD, 3, Roster::None),
        (WIDE, 2, Roster::None),
        (STANDARD, 2, Roster::Records),
        (STANDARD, 3, Roster::Records),
        (STANDARD, 2, Roster::Columns),
        (STANDARD, 3, Roster::Columns),
    ] {
        let mut setting = setting_with(set, count, roster, false);
        setting.begin(JOB);
        let answers = setting.release(&contrasts());
        let mut clear = PlaintextSource::with_ladder(&setting.table, &setting.ladder);
        let expected = clear.release(&contrasts()).unwrap();
        assert_eq!(answers, expected, "{count} services, {roster:?}");
        let first = setting.services[0]
            .record()
            .run_record(JOB)
            .unwrap()
            .clone();
        for service in &setting.services {
            assert_eq!(*service.record().run_record(JOB).unwrap(), first);
        }
        assert_eq!(first.ledger().entries().len(), contrasts().len());
    }
}

/// Split keys have no switching keys for squared scores.
#[test]
fn squared_scores_under_split_keys_are_refused() {
    for count in [2, 3] {
        let mut setting = setting(WIDE, count);
        setting.begin(JOB);
        let key = SealingKey::from_bytes(&[6; 32]).unwrap();
        let refused = setting
            .computation
            .answer(&setting.window(JOB), &scores(0), &key);
        let refused = refused.unwrap_err();
        assert!(refused.to_string().contains("squared scores"), "{refused}");
    }
}

/// Only the first service assigns runs, and the others accept only the run that they would assign
/// themselves.
#[test]
fn runs_are_assigned_by_the_first_service_and_checked_by_the_others() {
    let mut setting = setting(STANDARD, 2);
    let jobs = [JOB, JobId([2; 16]), JobId([3; 16])];
    let [first, second] = &mut setting.services[..] else {
        panic!("two services");
    };
    assert!(matches!(
        second.assign(JOB, UPLOAD),
        Err(Error::Committee(_))
    ));
    let assigned = [0, 1].map(|job: usize| first.assign(jobs[job], UPLOAD).unwrap());
    assert_eq!(first.assign(JOB, UPLOAD).unwrap(), assigned[0]);
    assert!(matches!(
        first.assign(jobs[2], UPLOAD),
        Err(Error::NoRunLeft(2))
    ));
    assert!(matches!(second.follow(&assigned[1]), Err(Error::Early)));
    for assignment in [&assigned[0], &assigned[1], &assigned[0]] {
        second.follow(assignment).unwrap();
    }
    assert_eq!(
        first.record().chain_state().tip(),
        second.record().chain_state().tip()
    );
    // A first service that was set back to an older copy gives the first run to another job.
    let plan = setting.ladder.plan();
    let empty = SharedDatasetState::new(rules(&setting.table, plan, STANDARD), 2);
    first.restore(empty);
    let swapped = first.assign(jobs[1], UPLOAD).unwrap();
    assert!(matches!(second.follow(&swapped), Err(Error::Committee(_))));
}

/// No service debits before all have promised the same request: not if one refuses, not if the
/// computation service shows each another request, and not because all others have promised.
#[test]
fn batch_refused_by_one_service_is_debited_by_none() {
    let mut setting = setting(STANDARD, 3);
    setting.begin(JOB);
    let (request, other) = (setting.seal(&contrasts()), {
        let mut other = contrasts();
        other[0].variance_units += 1;
        setting.seal(&other)
    });
    // The third service has frozen the dataset, and the others do not know it.
    setting.services[2].freeze().unwrap();
    let before = setting.ledgers();
    let refused = setting.services[2].judge(&request, None);
    assert!(matches!(refused, Err(Error::Frozen(_))), "{refused:?}");
    let verdicts = [0, 1].map(|n: usize| setting.services[n].judge(&request, None).unwrap());
    for service in &mut setting.services[..2] {
        for verdict in &verdicts {
            service.hear(verdict).unwrap();
        }
        let refused = service.share(&request);
        assert!(matches!(refused, Err(Error::Early)), "{refused:?}");
    }
    assert_eq!(setting.ledgers(), before);
    // A promise is binding: the service does not promise the same releases for another request.
    let refused = setting.services[0].judge(&other, None);
    assert!(matches!(refused, Err(Error::Request(_))), "{refused:?}");
    assert_eq!(
        setting.services[0].judge(&request, None).unwrap(),
        verdicts[0]
    );

    // A service that is shown another request promises that one, and no request has all promises.
    let mut setting = self::setting(STANDARD, 3);
    setting.begin(JOB);
    let before = setting.ledgers();
    let verdicts = [(0, &request), (1, &request), (2, &other)];
    let verdicts = verdicts.map(|(n, request)| setting.services[n].judge(request, None).unwrap());
    for (number, service) in setting.services.iter_mut().enumerate() {
        for (of, verdict) in verdicts.iter().enumerate() {
            let heard = service.hear(verdict);
            assert_eq!(heard.is_ok(), (number == 2) == (of == 2), "{heard:?}");
        }
        for request in [&request, &other] {
            assert!(matches!(service.share(request), Err(Error::Early)));
        }
    }
    assert_eq!(setting.ledgers(), before);
}

/// A repetition gives the same bytes and is debited once. A service that was set back to an older
/// copy shares nothing else as long as another service was not.
#[test]
fn repeated_request_gets_the_same_share() {
    let mut setting = setting(STANDARD, 2);
    setting.begin(JOB);
    let older = setting.services[0].record().clone();
    let request = setting.seal(&contrasts());
    let mut other = contrasts();
    other[0].variance_units += 1;
    let other = setting.seal(&other);
    setting.promise(&request);
    let promised = setting.services[0].record().clone();
    let shares = setting.shares(&request);
    let ledgers = setting.ledgers();
    assert_eq!(setting.shares(&request), shares);
    setting.promise(&request);
    assert_eq!(setting.shares(&request), shares);
    assert_eq!(setting.ledgers(), ledgers);
    for service in &mut setting.services {
        let refused = service.judge(&other, None);
        assert!(matches!(refused, Err(Error::Privacy(..))), "{refused:?}");
    }
    // A service that was killed between promise and debit continues from the promise.
    setting.services[0].restore(promised);
    assert_eq!(setting.shares(&request), shares);
    assert_eq!(setting.ledgers(), ledgers);
    // A service that was set back to before its promise promises another request, but no other
    // service does.
    setting.services[0].restore(older);
    let verdict = setting.services[0].judge(&other, None).unwrap();
    assert!(matches!(
        setting.services[1].hear(&verdict),
        Err(Error::Early)
    ));
    assert!(matches!(
        setting.services[1].judge(&other, None),
        Err(Error::Privacy(..))
    ));
    let refused = setting.services[0].share(&other);
    assert!(matches!(refused, Err(Error::Early)), "{refused:?}");
}

/// All services but one, with all their stored data, cannot read a page that a computation service
/// planted: a column of an upload, which no ledger pays for.
#[test]
fn planted_page_is_unreadable_without_every_share() {
    let mut setting = setting(STANDARD, 3);
    setting.begin(JOB);
    let column: Vec<i64> = (0..DEGREE as i64).map(|i| i % 2).collect();
    let public = setting.services[0].key().public_key().clone();
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let planted = public.encrypt(&column, &mut rng).unwrap();
    let positions: Vec<usize> = (0..PAGE).collect();
    let opened = [Opening::new(&setting.params, &planted[0], &positions).unwrap()];
    let share = |n: usize| {
        let share = setting.services[n].key().member().key_share();
        let share = share.decryption_share(&planted[0], &positions, &[0; 32], 0);
        vec![share.unwrap()]
    };
    let all = [share(0), share(1), share(2)];
    let (values, _) = combine(&setting.params, &opened, &all).unwrap();
    assert_eq!(
        values.iter().sum::<i128>(),
        i128::from(column.iter().sum::<i64>())
    );
    for pair in [[0, 1], [0, 2], [1, 2]] {
        let two = pair.map(|n| all[n].clone());
        let refused = combine(&setting.params, &opened, &two);
        assert!(matches!(refused, Err(fhaim_he::Error::Mismatch(_))));
        for third in pair {
            let three = [two[0].clone(), two[1].clone(), all[third].clone()];
            let refused = combine(&setting.params, &opened, &three);
            assert!(matches!(refused, Err(fhaim_he::Error::NoiseBudget)));
        }
    }
    // Through the services: two services that would release anything cannot make the third one
    // share.
    let mut request = setting.seal(&contrasts());
    request.pages[0].ciphertexts = planted;
    let before = setting.ledgers();
    let verdicts = [0, 1].map(|n: usize| setting.services[n].judge(&request, None).unwrap());
    let third = &mut setting.services[2];
    for verdict in &verdicts {
        assert!(matches!(third.hear(verdict), Err(Error::Early)));
    }
    assert!(matches!(third.share(&request), Err(Error::Early)));
    assert_eq!(setting.ledgers(), before);
}

/// A deviating computation service plants a page of its own, such as the one that reveals a share
/// (`chosen_second_half_reveals_the_share` in `he`). If a second service must have computed the
/// same page, no key service shares or debits it.
#[test]
fn page_that_the_second_service_did_not_compute_is_not_shared() {
    let mut setting = setting_with(STANDARD, 2, Roster::None, true);
    setting.begin(JOB);
    let honest = setting.seal(&contrasts());
    let witness = request_digest(&setting.params, &honest);
    let mut planted = honest.clone();
    let public = setting.services[0].key().public_key().clone();
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    planted.pages[0].ciphertexts = public.encrypt(&[1], &mut rng).unwrap();
    let early = setting.services[0].judge(&planted, None);
    assert!(matches!(early, Err(Error::Unwitnessed)), "{early:?}");
    let entries = |setting: &Setting| setting.ledgers().iter().map(|(n, _)| *n).sum::<usize>();
    for service in &mut setting.services {
        let refused = service.judge(&planted, Some(witness));
        assert!(
            matches!(refused, Err(Error::Frozen(Freeze::Witness))),
            "{refused:?}"
        );
        let refused = service.share(&planted);
        assert!(
            matches!(refused, Err(Error::Frozen(Freeze::Witness))),
            "{refused:?}"
        );
        let late = service.judge(&honest, Some(witness));
        assert!(
            matches!(late, Err(Error::Frozen(Freeze::Witness))),
            "{late:?}"
        );
    }
    assert_eq!(entries(&setting), 0);

    // A page that both computed is promised, and shared once all services have promised.
    let mut setting = setting_with(STANDARD, 2, Roster::None, true);
    setting.begin(JOB);
    let honest = setting.seal(&contrasts());
    let witness = request_digest(&setting.params, &honest);
    let promise = |service: &mut InMemoryKeyService| service.judge(&honest, Some(witness)).unwrap();
    let verdicts: Vec<_> = setting.services.iter_mut().map(promise).collect();
    for service in &mut setting.services {
        for verdict in &verdicts {
            service.hear(verdict).unwrap();
        }
    }
    assert_eq!(setting.shares(&honest).len(), 2);
    assert!(entries(&setting) > 0);
}

/// Whether a page can be decrypted is an answer about the key. The first page that cannot is the
/// last one: nothing more is read, and services that are informed judge and share nothing more.
#[test]
fn first_undecryptable_page_ends_all_reading() {
    let mut setting = setting(STANDARD, 2);
    setting.begin(JOB);
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    // Under another key, so that its noise is as large as possible.
    let other = SecretKey::random(&Parameters::shared(STANDARD).unwrap(), &mut rng).unwrap();
    let other = other.public_key(&mut rng).unwrap();
    // With 19 cells. A single cell would be within the bound once in five times.
    let (first, second) = (contrasts(), requests(3, vec![Statistic::Total], 8));
    let mut planted = setting.seal(&first);
    planted.pages[0].ciphertexts = other.encrypt(&[1], &mut rng).unwrap();
    setting.promise(&planted);
    let shares = setting.shares(&planted);
    let opened = setting.opened(&planted);
    let refused = setting.reader.read(&first, &opened, &shares);
    let frozen = |error: &Error| matches!(error, Error::Frozen(Freeze::Noise));
    assert!(refused.is_err_and(|error| frozen(&error)) && setting.reader.is_frozen());
    // The services see no noise. Before they are informed, they still share the next request.
    let honest = setting.seal(&second);
    setting.promise(&honest);
    let shares = setting.shares(&honest);
    let opened = setting.opened(&honest);
    let refused = setting.reader.read(&second, &opened, &shares);
    assert!(refused.is_err_and(|error| frozen(&error)));
    let third = setting.seal(&requests(4, vec![Statistic::Total], 9));
    for service in &mut setting.services {
        service.freeze().unwrap();
        assert!(
            service
                .judge(&third, None)
                .is_err_and(|error| frozen(&error))
        );
        assert!(service.share(&honest).is_err_and(|error| frozen(&error)));
    }
}

/// Shares for another request, for another number of pages, of one service twice, or truncated or
/// extended are rejected, and do not freeze the dataset.
#[test]
fn malformed_or_unrelated_shares_are_rejected() {
    let mut setting = setting(STANDARD, 2);
    setting.begin(JOB);
    let [first, second] = [0..1, 1..3].map(|part| contrasts()[part].to_vec());
    let request = setting.seal(&first);
    setting.promise(&request);
    let shares = setting.shares(&request);
    let opened = setting.opened(&request);
    let behind = setting.seal(&second);
    setting.promise(&behind);
    let others = setting.shares(&behind);
    let mut refused = |shares: &[Vec<u8>]| {
        let read = setting.reader.read(&first, &opened, shares);
        assert!(
            matches!(read, Err(Error::Committee(_) | Error::Early)),
            "{read:?}"
        );
    };
    refused(&shares[..1]);
    refused(&[shares[0].clone(), shares[0].clone()]);
    refused(&[shares[0].clone(), others[1].clone()]);
    for length in (0..200).chain([shares[1].len() - 1]) {
        refused(&[shares[0].clone(), shares[1][..length].to_vec()]);
    }
    for at in 0..shares[1].len() {
        let mut flipped = shares[1].clone();
        flipped[at] ^= 1 << (at % 8);
        refused(&[shares[0].clone(), flipped]);
    }
    let read = setting.reader.read(&first, &opened, &shares).unwrap();
    let mut clear = PlaintextSource::with_ladder(&setting.table, &setting.ladder);
    assert_eq!(read, clear.release(&first).unwrap());
}
