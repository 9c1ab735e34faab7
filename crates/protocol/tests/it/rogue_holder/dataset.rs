//! Datasets whose services follow the protocol: with several holders, and with one holder under an
//! unrelated key.

use super::forge::extractor;
use fhaim_domain::{Schema, Table};
use fhaim_dp::{Ladder, LadderPlan, Rho};
use fhaim_he::key_sharing::{KeyShare, Opening, combine};
use fhaim_he::{
    DEGREE, EvaluationKeys, PAGE, ParameterSet, Parameters, PublicKey, RosterShape, SecretKey,
    UploadKey, coefficient,
};
use fhaim_protocol::Error;
use fhaim_protocol::committee::decryption::{InMemoryKeyService, Opened, ShareReader};
use fhaim_protocol::committee::keygen::KeyGeneration;
use fhaim_protocol::committee::{KeyCommittee, KeyService, ServiceSigningKey};
use fhaim_protocol::computation::Computation;
use fhaim_protocol::counts::pair_counts::PairCounts;
use fhaim_protocol::counts::upload::{CountsPlan, CountsUpload};
use fhaim_protocol::crypto::chain::Freeze;
use fhaim_protocol::crypto::judge::Rules;
use fhaim_protocol::crypto::{CryptoService, Digests};
use fhaim_protocol::encryption::{Encryption, Encryptor, Payload};
use fhaim_protocol::holder::HolderNoise;
use fhaim_protocol::joint::{SwitchKeys, join_uploads};
use fhaim_protocol::part::{Content, PartHolder, PartPlan};
use fhaim_protocol::request::{DatasetId, DecryptRequest, JobId};
use fhaim_protocol::roster::ContributionKind;
use fhaim_protocol::sealing::SealingKey;
use fhaim_protocol::terms::PlanCore;
use fhaim_protocol::upload::{Object, ReceivedUpload, UploadPlan};
use fhaim_protocol::upload_key::upload_key;
use fhaim_protocol::window::Window;
use fhaim_release::{Axis, Holders, ReleaseRequest, ReleaseSource, Statistic};
use fhaim_synth::PlaintextSource;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

const DATASET: DatasetId = DatasetId([7; 16]);
const JOB: JobId = JobId([1; 16]);
const MANIFEST: [u8; 32] = [4; 32];
const BOUND: u64 = 10_000;
const SIZES: [usize; 3] = [3, 2, 5];

/// The variance of every release takes one vector of the ladder: level 2, index 0.
pub const UNITS: u64 = 1 << 4;

/// The objects of one holder.
pub type Objects = BTreeMap<Object, Payload>;

/// A holder's table. Other salts give other records.
pub fn table(records: u32, salt: u32) -> Table {
    let column = |(number, size): (usize, &usize)| {
        let categories: Vec<String> = (0..*size).map(|c| format!("\"v{c}\"")).collect();
        let categories = categories.join(",");
        format!(r#"{{"name":"a{number}","kind":"categorical","categories":[{categories}]}}"#)
    };
    let columns: Vec<String> = SIZES.iter().enumerate().map(column).collect();
    let json = format!(r#"{{"name":"t","columns":[{}]}}"#, columns.join(","));
    let schema = Schema::from_json("t.json", json.as_bytes()).unwrap();
    let codes = |(number, &size): (u32, &usize)| {
        let code = |i: u32| (i * i + i * (7 + number) + salt * (3 + number)) % 13 % size as u32;
        (0..records).map(code).collect()
    };
    let columns = (0..).zip(&SIZES).map(codes).collect();
    Table::new(Arc::new(schema), columns).unwrap()
}

/// As many functions as cells. None of them is constant.
fn axis(attribute: usize, cells: usize) -> Axis {
    let size = SIZES[attribute];
    let function = |f: usize| {
        (0..size)
            .map(|c| i64::from((c + f).is_multiple_of(size)))
            .collect()
    };
    Axis {
        attribute,
        functions: (0..cells).map(function).collect(),
    }
}

/// Releases of one-way tables and of products, with the given numbers of cells.
pub fn requests(one_way: usize, products: [usize; 2]) -> Vec<ReleaseRequest> {
    let mut statistics = vec![Statistic::OneWay(axis(2, one_way))];
    if products != [0, 0] {
        let [first, second] = products;
        statistics.push(Statistic::Product(axis(0, first), axis(2, second)));
    }
    let request = |(number, statistic)| ReleaseRequest {
        number,
        statistic,
        variance_units: UNITS,
    };
    (0..).zip(statistics).map(request).collect()
}

/// The public facts of a dataset, and its holders' tables.
#[derive(Clone)]
pub struct Case {
    pub set: ParameterSet,
    pub contribution: ContributionKind,
    /// 1 if one service has the whole secret key. Otherwise two or three services share it.
    pub key_services: usize,
    pub tables: Vec<Table>,
    pub requests: Vec<ReleaseRequest>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case")
            .field("set", &self.set.id)
            .field("contribution", &self.contribution)
            .field("key_services", &self.key_services)
            .field(
                "records",
                &self.tables.iter().map(Table::records).collect::<Vec<_>>(),
            )
            .finish_non_exhaustive()
    }
}

/// Whether the services released a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The integers of all releases, by position in the page.
    Released(Vec<i64>),
    /// The noise was too large. The dataset is frozen, and nothing was released.
    Frozen,
}

impl Case {
    pub fn ladder(&self) -> LadderPlan {
        let cells = self
            .requests
            .iter()
            .map(|request| request.statistic.cells());
        let plan = LadderPlan::new(cells.sum(), UNITS).unwrap();
        assert_eq!(plan.pages(), 1);
        plan
    }

    /// Returns the case with one holder only, under a whole key.
    pub fn alone(&self, holder: usize) -> Self {
        Self {
            key_services: 1,
            tables: vec![self.tables[holder].clone()],
            ..self.clone()
        }
    }

    fn holders(&self) -> Holders {
        Holders::of_records(self.tables.len() as u32, 1).unwrap()
    }

    pub fn shape(&self) -> RosterShape {
        match self.contribution {
            ContributionKind::Records => RosterShape::Records(self.tables.len()),
            ContributionKind::Counts => RosterShape::Counts(self.tables.len()),
        }
    }

    fn rules(&self) -> Rules {
        Rules {
            dataset: DATASET,
            plan: PlanCore {
                set: self.set,
                budget: Rho::from_f64_down(1e9).unwrap(),
                run_budget: Rho::from_f64_down(1e9).unwrap(),
                runs: 1,
                run_ladder: self.ladder(),
                domain: self.tables[0].domain().clone(),
                record_bound: BOUND,
                holders: self.holders(),
                members: Vec::new(),
                witness: self.key_services == 1,
                key_services: Vec::new(),
                encryption: Encryption::RosterKey,
            },
        }
    }

    /// Draws a holder's noise. It is the same under all keys.
    fn noise(&self, holder: usize) -> Ladder {
        let mut rng = ChaCha20Rng::seed_from_u64(100 + holder as u64);
        Ladder::draw(self.ladder(), &mut rng)
    }

    /// Returns the noisy sums of all holders except the rogue.
    pub fn sums_without(&self, rogue: usize) -> Vec<i64> {
        let others: Vec<usize> = (0..self.tables.len()).filter(|&h| h != rogue).collect();
        let columns = (0..SIZES.len()).map(|a| {
            let parts = others.iter().map(|&h| self.tables[h].column(a).to_vec());
            parts.collect::<Vec<_>>().concat()
        });
        let columns = columns.collect();
        let pooled = Table::new(self.tables[0].schema().clone(), columns).unwrap();
        let ladders: Vec<Ladder> = others.iter().map(|&h| self.noise(h)).collect();
        let ladder = Ladder::sum(&ladders).unwrap();
        let mut source = PlaintextSource::with_ladder(&pooled, &ladder);
        source.release(&self.requests).unwrap().concat()
    }

    pub fn part_plan(&self, holder: usize, encryption: Encryption) -> PartPlan {
        let (table, ladder) = (&self.tables[holder], self.ladder());
        match self.contribution {
            ContributionKind::Records => {
                let (domain, records) = (table.domain(), table.records());
                let plan = UploadPlan::for_table(domain, records, ladder, &self.set);
                PartPlan::Records(plan.unwrap().under(encryption))
            }
            ContributionKind::Counts => {
                let plan = CountsPlan::new(table.domain(), ladder).unwrap();
                PartPlan::Counts(plan.under(encryption))
            }
        }
    }

    /// Returns the objects of a holder that follows the protocol, read back from the bytes that it
    /// sends.
    pub fn honest_objects(&self, holder: usize, key: &UploadKey) -> Objects {
        let (table, noise) = (&self.tables[holder], self.noise(holder));
        let plan = self.part_plan(holder, Encryption::RosterKey);
        let pair_counts = match &plan {
            PartPlan::Records(_) => None,
            PartPlan::Counts(plan) => {
                Some(PairCounts::of_table(plan.tables.clone(), BOUND, table).unwrap())
            }
        };
        let content = pair_counts
            .as_ref()
            .map_or(Content::Records(table), Content::Counts);
        let encryptor = Encryptor::of_roster(key);
        let part = PartHolder::new(
            &content,
            BOUND,
            HolderNoise::Drawn(&noise),
            encryptor,
            &plan,
        );
        let part = part.unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(200 + holder as u64);
        let object = |object: Object| {
            let bytes = part.encode(object, &mut rng).unwrap();
            (object, plan.decode(key.params(), object, &bytes).unwrap())
        };
        plan.objects().into_iter().map(object).collect()
    }
}

enum Services {
    /// The service, and a copy of its secret key.
    One(Box<(CryptoService, SecretKey)>),
    Several {
        services: Vec<InMemoryKeyService>,
        reader: ShareReader,
    },
}

/// A dataset's keys and the services that have them.
pub struct Dataset {
    pub case: Case,
    pub params: Parameters,
    pub public: PublicKey,
    pub evaluation: EvaluationKeys,
    encryption: Encryption,
    services: Services,
}

impl Dataset {
    /// Creates a dataset of a roster, whose keys come from a seed.
    pub fn of_roster(case: &Case, seed: u64) -> Self {
        match case.key_services {
            1 => Self::whole(case, Encryption::RosterKey, seed),
            services => Self::split(case, services, seed),
        }
    }

    /// Creates a dataset of a sole holder.
    pub fn of_one(case: &Case, seed: u64) -> Self {
        Self::whole(case, Encryption::OwnKey, seed)
    }

    fn whole(case: &Case, encryption: Encryption, seed: u64) -> Self {
        let params = Parameters::shared(case.set).unwrap();
        let generator = || ChaCha20Rng::seed_from_u64(seed);
        let mut rng = generator();
        // The service draws its key first.
        let crypto = CryptoService::new(case.rules(), &params, &mut rng).unwrap();
        let secret = SecretKey::random(&params, &mut generator()).unwrap();
        let shape = (encryption == Encryption::RosterKey).then(|| case.shape());
        Self {
            case: case.clone(),
            public: crypto.public_key(&mut rng).unwrap(),
            evaluation: crypto.evaluation_keys(shape, &mut rng).unwrap(),
            params,
            encryption,
            services: Services::One(Box::new((crypto, secret))),
        }
    }

    fn split(case: &Case, count: usize, seed: u64) -> Self {
        let params = Parameters::shared(case.set).unwrap();
        let params = params.with_shares(count).unwrap();
        let key = |number: usize| ServiceSigningKey::from_bytes(&[number as u8 + 1; 32]);
        let service = |number| KeyService {
            name: format!("hospital {number}"),
            key: key(number).public(),
        };
        let named = (0..count).map(service).collect();
        let committee = KeyCommittee::new(DATASET, &[5; 32], &[6; 16], named).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut begin = |number| {
            let share = KeyShare::random(&params, &mut rng).unwrap();
            let shape = Some(case.shape());
            KeyGeneration::new(committee.clone(), shape, share, key(number)).unwrap()
        };
        let mut making: Vec<_> = (0..count).map(&mut begin).collect();
        while !making.iter().all(KeyGeneration::is_done) {
            let sent = making.iter().map(|one| one.message().unwrap().unwrap());
            let sent: Vec<_> = sent.collect();
            for one in &mut making {
                for message in &sent {
                    one.take(message).unwrap();
                }
            }
        }
        let service =
            |one: KeyGeneration| InMemoryKeyService::new(one.finish().unwrap(), case.rules());
        let services = making.into_iter().map(|one| service(one).unwrap());
        let services: Vec<InMemoryKeyService> = services.collect();
        let key = services[0].key();
        let member = key.member();
        let reader = ShareReader::new(
            member.committee().clone(),
            params.clone(),
            *member.transcript(),
        );
        Self {
            case: case.clone(),
            params,
            public: key.public_key().clone(),
            evaluation: key.evaluation_keys().clone(),
            encryption: Encryption::RosterKey,
            services: Services::Several {
                reader: reader.unwrap(),
                services,
            },
        }
    }

    /// Returns the upload key of a holder, from the seeds of all key services.
    pub fn upload_key(&self, holder: usize) -> UploadKey {
        let seeds = match &self.services {
            Services::One(one) => vec![one.0.upload_seed(holder)],
            Services::Several { services, .. } => {
                let shares = services
                    .iter()
                    .map(|service| service.key().member().key_share());
                shares.map(|share| share.upload_seed(holder)).collect()
            }
        };
        upload_key(&self.params, seeds).unwrap()
    }

    /// Returns the coefficients of the secret key. Under a split key, no one has them.
    pub fn secret(&self) -> Vec<i64> {
        let services = match &self.services {
            Services::One(one) => return one.1.coefficients().to_vec(),
            Services::Several { services, .. } => services,
        };
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let like = self.public.encrypt(&[0], &mut rng).unwrap();
        let planted = extractor(&self.params, &like[0]);
        let positions: Vec<usize> = (0..PAGE).collect();
        let opening = Opening::new(&self.params, &planted, &positions).unwrap();
        let shares = services.iter().map(|service| {
            let share = service.key().member().key_share();
            let share = share.decryption_share(&planted, &positions, &[0; 32], 0);
            vec![share.unwrap()]
        });
        let shares: Vec<_> = shares.collect();
        let (values, _) = combine(&self.params, &[opening], &shares).unwrap();
        let mut secret = vec![0; DEGREE];
        for (position, &value) in values.iter().enumerate() {
            secret[coefficient(position)] = i64::try_from(value).unwrap();
        }
        secret
    }

    /// Builds the state of a computation service that follows the protocol from all uploads.
    pub fn computation(&self, uploads: &[Objects]) -> Result<Computation, Error> {
        let (case, params) = (&self.case, &self.params);
        let plan = |holder| case.part_plan(holder, self.encryption);
        let (public, evaluation) = (self.public.clone(), self.evaluation.clone());
        match plan(0) {
            PartPlan::Records(_) => {
                let upload =
                    |(holder, objects): (usize, &Objects)| {
                        let PartPlan::Records(plan) = plan(holder) else {
                            panic!("a plan of counts");
                        };
                        ReceivedUpload::from_objects(params, plan, |object| {
                            Ok(objects[&object].clone())
                        })
                    };
                let uploads = uploads.iter().enumerate().map(upload);
                let uploads = uploads.collect::<Result<Vec<_>, Error>>()?;
                let domain = case.tables[0].domain();
                let upload = join_uploads(domain, &case.holders(), &self.evaluation, &uploads)?;
                let domain = domain.clone();
                Ok(Computation::new(
                    DATASET, domain, public, evaluation, upload,
                ))
            }
            PartPlan::Counts(plan) => {
                let get = |holder: usize, object| Ok(uploads[holder][&object].clone());
                let keys = match self.encryption {
                    Encryption::OwnKey => SwitchKeys::own(|object| get(0, object))?,
                    Encryption::RosterKey => SwitchKeys::of_roster(&self.evaluation, case.shape())?,
                };
                let noise = uploads.iter().enumerate().flat_map(|(holder, objects)| {
                    let all = objects.iter();
                    all.map(move |(object, payload)| ((holder, *object), payload.clone()))
                });
                let noise = Arc::new(noise.collect::<HashMap<_, _>>());
                let holders = case.holders();
                let upload = CountsUpload::join(params, &plan, &holders, &keys, get, noise)?;
                Computation::of_counts(DATASET, public, evaluation, upload)
            }
        }
    }

    fn window(&mut self) -> Window {
        match &mut self.services {
            Services::One(one) => one.0.begin(JOB, MANIFEST).unwrap().window().clone(),
            Services::Several { services, .. } => {
                let assignment = services[0].assign(JOB, MANIFEST).unwrap();
                for service in &mut services[1..] {
                    service.follow(&assignment).unwrap();
                }
                let run_record = services[0].record().run_record(JOB).unwrap();
                run_record.window().clone()
            }
        }
    }

    /// Releases the batch with services that follow the protocol: the computation service computes
    /// it and the key services decrypt it. Under a whole key, a second computation service computes
    /// the same.
    pub fn release(&mut self, uploads: &[Objects]) -> Result<Outcome, Error> {
        let window = self.window();
        let sealing = SealingKey::from_bytes(&[6; 32]).unwrap();
        let requests = &self.case.requests;
        let compute = || {
            let computation = self.computation(uploads)?;
            Ok::<_, Error>(computation.answer(&window, requests, &sealing)?.request)
        };
        let request = compute()?;
        assert_eq!(request.pages.len(), 1, "all cells are in one page");
        let params = self.params.clone();
        let answers = match &mut self.services {
            Services::One(one) => {
                let digest = |request: &DecryptRequest| -> [u8; 32] {
                    Sha256::digest(request.to_bytes(&params)).into()
                };
                let digests = Digests {
                    sent: digest(&request),
                    witness: Some(digest(&request)),
                };
                let released = one.0.decrypt_witnessed(&request, digests);
                let frozen = one.0.record().chain_state().frozen();
                if frozen == Some(Freeze::Upload) {
                    assert!(matches!(released, Err(Error::Refused)), "{released:?}");
                    return Ok(Outcome::Frozen);
                }
                released?
            }
            Services::Several { services, reader } => {
                let verdicts = services
                    .iter_mut()
                    .map(|s| s.judge(&request, None).unwrap());
                let verdicts: Vec<_> = verdicts.collect();
                for service in services.iter_mut() {
                    for verdict in &verdicts {
                        service.hear(verdict).unwrap();
                    }
                }
                let shares = services.iter_mut().map(|s| s.share(&request).unwrap());
                let shares: Vec<_> = shares.collect();
                let opened = Opened::of(&params, &request).unwrap();
                match reader.read(requests, &opened, &shares) {
                    Err(Error::Frozen(Freeze::Noise)) => return Ok(Outcome::Frozen),
                    read => read?,
                }
            }
        };
        Ok(Outcome::Released(answers.concat()))
    }
}
