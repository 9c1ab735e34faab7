use super::*;
use fhaim_api::Cost;
use fhaim_api::keys::DebitedRelease;
use fhaim_domain::{Schema, Table};
use fhaim_dp::{Entry, Ladder, LadderPlan, Rho, Span};
use fhaim_he::STANDARD;
use fhaim_protocol::committee::ServiceSigningKey;
use fhaim_protocol::crypto::judge::{Replay, Rules};
use fhaim_protocol::encryption::Encryption;
use fhaim_protocol::request::JobId;
use fhaim_protocol::roster::{HolderSigningKey, Member, Partition, Roster};
use fhaim_protocol::shares::{Masks, unmask};
use fhaim_protocol::terms::PlanCore;
use fhaim_release::{Axis, Holders, Statistic};
use fhaim_synth::exact;
use fhaim_synth::verify::expected;
use std::sync::Arc;

const DATASET: Uuid = Uuid::from_u128(1);
const JOB: Uuid = Uuid::from_u128(2);
const UNITS: u64 = 20_000;

fn schema() -> Schema {
    let json = br#"{"name":"t","columns":[
        {"name":"a","kind":"categorical","categories":["x","y","z"]},
        {"name":"b","kind":"categorical","categories":["p","q"]}]}"#;
    Schema::from_json("t.json", json).unwrap()
}

fn table(rows: u32, salt: u32) -> Table {
    let columns = vec![
        (0..rows).map(|i| (i * 7 + salt) % 11 % 3).collect(),
        (0..rows).map(|i| (i * 5 + salt) % 7 % 2).collect(),
    ];
    Table::new(Arc::new(schema()), columns).unwrap()
}

/// Three holders, one of their releases, and an invented release at the same positions.
struct Setting {
    rules: Rules,
    keys: Vec<HolderSigningKey>,
    tables: Vec<Table>,
    ladders: Vec<Ladder>,
    real: Shown,
    invented: Shown,
}

/// A release as a key service shows it.
struct Shown {
    request: ReleaseRequest,
    spans: Vec<Span>,
    entries: Vec<Entry>,
}

impl Shown {
    fn new(rules: &Rules, statistic: Statistic) -> Self {
        let request = ReleaseRequest {
            number: 0,
            statistic,
            variance_units: UNITS,
        };
        let mut replay = Replay::new(rules, JobId(JOB.into_bytes()), 0);
        let placed = replay.batch(rules, std::slice::from_ref(&request));
        let (placement, entries) = placed.unwrap();
        Self {
            request,
            spans: placement.spans[0].clone(),
            entries,
        }
    }

    fn statement(&self) -> [u8; 32] {
        self.entries[0].debit.digest
    }

    fn batch(&self, released: &[i64]) -> ReleasedBatch {
        ReleasedBatch {
            height: 3,
            job: JOB,
            run: 0,
            entries: self.entries.clone(),
            requests: vec![self.request.clone()],
            answers: vec![released.to_vec()],
        }
    }

    /// The generation service's record, if it asked for these releases.
    fn at_generation(&self, released: &[i64]) -> (Uuid, Vec<ReleasedStatistic>) {
        let release = ReleasedStatistic {
            number: 0,
            phase: "pairs".to_owned(),
            attributes: Vec::new(),
            statistic: self.request.statistic.clone(),
            variance_units: UNITS,
            sigma: 1.0,
            values: released.to_vec(),
            cost: Cost::from(Rho::ZERO),
        };
        (JOB, vec![release])
    }

    /// The statement of a further key service that debited these releases.
    fn debited(&self, key: &ServiceSigningKey) -> DebitedByServices {
        let release = DebitedRelease {
            job: JOB,
            number: 0,
            statement: Digest(self.statement()),
        };
        DebitedByServices {
            services: vec![DebitedReleases::sign(DATASET, vec![release], key)],
        }
    }

    fn act(&self, released: &[i64]) -> Act {
        Act::Released {
            job: JobId(JOB.into_bytes()),
            entries: self.entries.clone(),
            answers: answers_digest(&[released.to_vec()]),
        }
    }
}

impl Setting {
    fn new() -> Self {
        let tables = vec![table(300, 1), table(200, 2), table(100, 3)];
        let keys: Vec<_> = (1..4)
            .map(|n| HolderSigningKey::from_bytes(&[n; 32]))
            .collect();
        let plan = LadderPlan::new(100, 1 << 16).unwrap();
        let rules = Rules {
            dataset: DatasetId(DATASET.into_bytes()),
            plan: PlanCore {
                set: STANDARD,
                budget: Rho::from_f64_down(0.015).unwrap(),
                run_budget: Rho::from_f64_down(0.015).unwrap(),
                runs: 1,
                run_ladder: plan,
                domain: tables[0].domain().clone(),
                record_bound: 1500,
                holders: Holders::of_records(3, 1).unwrap(),
                members: members(&keys),
                witness: false,
                key_services: Vec::new(),
                encryption: Encryption::RosterKey,
            },
        };
        let mut rng = fhaim_dp::generator().unwrap();
        let ladders = tables.iter().map(|_| Ladder::draw(plan, &mut rng));
        let pair = Statistic::Product(Axis::identity(0, 3), Axis::identity(1, 2));
        let zero = Statistic::OneWay(Axis {
            attribute: 0,
            functions: vec![vec![0; 3]; 6],
        });
        Self {
            real: Shown::new(&rules, pair),
            invented: Shown::new(&rules, zero),
            ladders: ladders.collect(),
            rules,
            keys,
            tables,
        }
    }

    /// Each holder's summands of a release.
    fn summands(&self, shown: &Shown) -> Vec<Vec<i64>> {
        let parties = self.tables.iter().zip(&self.ladders);
        let of_one = |(table, ladder): (&Table, &Ladder)| {
            let noise = ladder.release_noise(&shown.spans, UNITS).unwrap();
            expected(table, &shown.request.statistic, &noise).unwrap()
        };
        parties.map(of_one).collect()
    }

    fn released(&self) -> Vec<i64> {
        let summands = self.summands(&self.real);
        (0..6)
            .map(|cell| summands.iter().map(|own| own[cell]).sum())
            .collect()
    }

    fn exact(&self) -> Vec<i64> {
        let mut sums = vec![0; 6];
        for table in &self.tables {
            let counts = exact(table, &self.real.request.statistic).unwrap();
            sums.iter_mut()
                .zip(counts)
                .for_each(|(sum, count)| *sum += count);
        }
        sums
    }
}

fn members(keys: &[HolderSigningKey]) -> Vec<Member> {
    let member = |key: &HolderSigningKey| Member {
        account: format!("{:02x}", key.public()[0]),
        columns: Vec::new(),
        record_bound: 500,
        key: key.public(),
    };
    keys.iter().map(member).collect()
}

fn entries(acts: &[Act]) -> Vec<LedgerEntry> {
    let entry = |(height, act)| LedgerEntry {
        height,
        act: serde_json::to_string(act).unwrap(),
    };
    (1..).zip(acts).map(entry).collect()
}

fn begun() -> Vec<Act> {
    let made = Act::KeysMade {
        terms: [1; 32],
        public_key: [2; 32],
        evaluation_keys: [3; 32],
    };
    let run = Act::RunBegun {
        job: JobId(JOB.into_bytes()),
        run: 0,
        upload: [4; 32],
    };
    vec![made, run]
}

fn no_services() -> DebitedByServices {
    DebitedByServices {
        services: Vec::new(),
    }
}

/// The reason for all comparisons: the holders' shares of the invented release are the noise of the real one.
#[test]
fn shares_of_an_invented_release_would_show_exact_counts() {
    let setting = Setting::new();
    assert_eq!(setting.invented.spans, setting.real.spans);
    let statement = setting.invented.statement();
    let summands = setting.summands(&setting.invented);
    let holders = (0..).zip(&setting.keys).zip(&summands);
    let shares: Vec<Vec<u64>> = holders
        .map(|((number, key), own)| {
            let masks = Masks::new(number, &setting.rules.plan.members, key).unwrap();
            masks.mask(&statement, own)
        })
        .collect();
    let shares: Vec<&[u64]> = shares.iter().map(Vec::as_slice).collect();
    let noise = unmask(&shares).unwrap();
    let released = setting.released();
    let rest: Vec<i64> = released.iter().zip(noise).map(|(a, b)| a - b).collect();
    assert_eq!(rest, setting.exact());
}

#[test]
fn invented_release_differs_from_the_generation_services_record() {
    let setting = Setting::new();
    let released = setting.released();
    let generation = [setting.real.at_generation(&released)];
    let agree =
        |batches: &[ReleasedBatch]| compare(DATASET, batches, &generation, &[], &no_services());
    agree(&[setting.real.batch(&released)]).unwrap();
    let invented = agree(&[setting.invented.batch(&released)]).unwrap_err();
    assert!(
        invented.starts_with("release 0 of job") && invented.contains("generation service"),
        "{invented}"
    );
    let mut changed = released.clone();
    changed[2] += 1;
    let differing = agree(&[setting.real.batch(&changed)]).unwrap_err();
    assert!(
        differing.starts_with("release 0 of job") && differing.contains("generation service"),
        "{differing}"
    );
    let missing = agree(&[]).unwrap_err();
    assert!(missing.contains("shows 0 releases"), "{missing}");
}

#[test]
fn invented_release_differs_from_another_key_services_debits() {
    let setting = Setting::new();
    let released = setting.released();
    let key = ServiceSigningKey::from_bytes(&[7; 32]);
    let service = |name: &str, key: &ServiceSigningKey| KeyService {
        name: name.to_owned(),
        key: key.public(),
    };
    let first = service("crypto", &ServiceSigningKey::from_bytes(&[6; 32]));
    let services = [first, service("keyshare1", &key)];
    // The generation service deviates as well.
    let agree = |shown: &Shown, debited: &DebitedByServices| {
        let generation = [shown.at_generation(&released)];
        let batches = [shown.batch(&released)];
        compare(DATASET, &batches, &generation, &services, debited)
    };
    let debited = setting.real.debited(&key);
    agree(&setting.real, &debited).unwrap();
    let invented = agree(&setting.invented, &debited).unwrap_err();
    assert!(invented.contains("keyshare1"), "{invented}");
    // Leaving the service out does not help, nor does signing in its place.
    let left_out = agree(&setting.invented, &no_services()).unwrap_err();
    assert!(left_out.contains("shows the debits of 0"), "{left_out}");
    let forged = setting
        .invented
        .debited(&ServiceSigningKey::from_bytes(&[8; 32]));
    let forged = agree(&setting.invented, &forged).unwrap_err();
    assert!(forged.contains("did not sign"), "{forged}");
}

#[test]
fn invented_ledger_differs_from_a_receipt_of_the_real_one() {
    let setting = Setting::new();
    let released = setting.released();
    let chain = |shown: &Shown| {
        let acts = [begun(), vec![shown.act(&released)]].concat();
        LedgerChain::read(DATASET, &entries(&acts)).unwrap()
    };
    let (real, invented) = (chain(&setting.real), chain(&setting.invented));
    let receipt = |chain: &LedgerChain| Receipt {
        dataset: DATASET,
        height: chain.tip().height,
        head: Digest(chain.tip().head),
        signature: String::new(),
    };
    real.check_receipt(&receipt(&real)).unwrap();
    let words = invented.check_receipt(&receipt(&real)).unwrap_err();
    assert!(words.contains("entry 3"), "{words}");
    // Batches match the ledger one for one.
    let batch = setting.real.batch(&released);
    real.check_batches(std::slice::from_ref(&batch)).unwrap();
    for refused in [
        invented.check_batches(std::slice::from_ref(&batch)),
        real.check_batches(&[]),
        real.check_batches(&[batch.clone(), batch]),
    ] {
        let words = refused.unwrap_err();
        assert!(words.contains("entry 3 of its own ledger"), "{words}");
    }
}

#[test]
fn ledger_out_of_order_is_rejected() {
    let mut entries = entries(&begun());
    assert!(LedgerChain::read(DATASET, &entries).is_ok());
    entries.swap(0, 1);
    let first_is_refused = |entries: &[LedgerEntry]| {
        let words = LedgerChain::read(DATASET, entries).err().unwrap();
        assert!(words.starts_with("entry 1 of"), "{words}");
        assert!(words.contains("malformed or out of order"), "{words}");
    };
    first_is_refused(&entries);
    let unknown = LedgerEntry {
        height: 1,
        act: "{}".to_owned(),
    };
    first_is_refused(&[unknown]);
}

/// Other terms may name other key services, or other keys of holders, whose masks a third party would know.
#[test]
fn unsigned_terms_are_rejected() {
    let keys: Vec<_> = (1..4)
        .map(|n| HolderSigningKey::from_bytes(&[n; 32]))
        .collect();
    let terms = Terms {
        roster: Some(Roster {
            partition: Partition::Records,
            honest: 1,
            holders: members(&keys),
        }),
        ..Terms::new(schema(), 1.0, 1e-9, 1500)
    };
    let digest = Digest::of(&serde_json::to_vec(&terms).unwrap()).0;
    let agreement = Agreement {
        dataset: DatasetId(DATASET.into_bytes()),
        terms: digest,
        public_key: [2; 32],
        evaluation_keys: [3; 32],
    };
    let signed = Act::Signed {
        member: 1,
        signature: keys[1].sign(&agreement),
    };
    let acts = [begun(), vec![signed]].concat();
    let chain = LedgerChain::read(DATASET, &entries(&acts)).unwrap();
    chain.check_terms(DATASET, &terms, 1).unwrap();
    let unsigned = chain.check_terms(DATASET, &terms, 0).unwrap_err();
    let words = "the ledger has no signature of this holder";
    assert!(unsigned.starts_with(words), "{unsigned}");
    let mut other = terms;
    let roster = other.roster.as_mut().unwrap();
    roster.holders[0].key = HolderSigningKey::from_bytes(&[9; 32]).public();
    let changed = chain.check_terms(DATASET, &other, 1).unwrap_err();
    assert!(changed.starts_with(words), "{changed}");
}
