//! The service with real blobs and a real database, a stand-in for the crypto service, and a holder
//! with a table.
#![allow(dead_code, clippy::unwrap_used)] // helpers outside #[test] functions

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use bytes::Bytes;
use fhaim_api::dataset::WireTerms;
use fhaim_api::keys::Receipt;
use fhaim_api::token::Service;
use fhaim_api::upload::{Complete, NewUpload, UploadState, WireLayout};
use fhaim_api::{Cost, Digest};
use fhaim_computation::datasets::Cache;
use fhaim_computation::uploads::{self, StoredUpload, WHOLE};
use fhaim_computation::{Config, Memory, State};
use fhaim_domain::{Schema, Table};
use fhaim_dp::Rho;
use fhaim_he::{EvaluationKeys, PublicKey, SecretKey, UploadKey};
use fhaim_platform::Failure;
use fhaim_platform::program::Program;
use fhaim_protocol::crypto::chain::{ReceiptKey, Tip};
use fhaim_protocol::encryption::{Encryption, Encryptor};
use fhaim_protocol::holder::{Holder, HolderNoise};
use fhaim_protocol::request::{DatasetId, JobId};
use fhaim_protocol::sealing::SealingKey;
use fhaim_protocol::terms::Terms;
use fhaim_protocol::upload::{Object, UploadPlan};
use fhaim_protocol::window::Window;
use fhaim_release::{ReleaseRequest, Statistic};
use rand::rngs::OsRng;
use rand::{SeedableRng, TryRngCore, rngs::StdRng};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use uuid::Uuid;

const RECORDS: usize = 100;

pub fn terms(record_bound: u64) -> Terms {
    let json = r#"{"name":"t","columns":[
        {"name":"a","kind":"categorical","categories":["x","y"]},
        {"name":"b","kind":"categorical","categories":["u","v","w"]}]}"#;
    let schema = Schema::from_json("t.json", json.as_bytes()).unwrap();
    let terms = Terms::new(schema, 1.0, 1e-9, record_bound);
    terms.complete(&fhaim_synth::Mechanisms).unwrap()
}

pub fn table() -> Table {
    let column = |sizes: u32| (0..RECORDS as u32).map(|i| i * 5 % 7 % sizes).collect();
    Table::new(terms(1).schema, vec![column(2), column(3)]).unwrap()
}

/// Keys of all datasets of a test.
pub struct Keys {
    pub public: PublicKey,
    pub evaluation: EvaluationKeys,
    /// The upload key of each holder.
    pub uploads: Vec<UploadKey>,
    /// Terms of every dataset's keys, as the stand-in reports them.
    pub agreed: Arc<Mutex<Option<Terms>>>,
}

/// Returns a key set as the crypto service shows it.
fn key_set(dataset: Uuid, terms: Terms, [public, evaluation]: [Digest; 2]) -> Value {
    let key = ReceiptKey::random(&mut StdRng::seed_from_u64(1));
    let receipt: Receipt = key
        .sign(DatasetId(dataset.into_bytes()), Tip::default())
        .into();
    let nothing = Cost::from(Rho::ZERO);
    json!({
        "dataset": dataset, "terms": WireTerms(terms), "parameter_set": 1,
        "public_key": public, "evaluation_keys": evaluation, "budget": nothing, "spent": nothing,
        "runs_begun": 0, "receipt_key": "", "receipt": receipt,
        "created_at": "2026-01-01T00:00:00Z"
    })
}

impl Keys {
    /// Makes keys for terms, with the upload keys of their holders.
    pub fn new(terms: &Terms) -> Self {
        let params = terms.plan().unwrap().parameters().unwrap();
        let mut rng = OsRng.unwrap_err();
        let secret = SecretKey::random(&params, &mut rng).unwrap();
        let (evaluation, seeds) = match terms.roster_shape() {
            None => (secret.evaluation_keys(&mut rng), None),
            Some(shape) => {
                let seeds = (0..shape.holders()).map(|holder| secret.upload_seed(holder));
                let keys = secret.roster_evaluation_keys(shape, &mut rng);
                (keys, Some(seeds.collect::<Vec<_>>()))
            }
        };
        let uploads = match seeds {
            None => vec![UploadKey::random(&params, &mut rng).unwrap()],
            Some(seeds) => {
                let key = |seed| UploadKey::from_seeds(&params, vec![seed]).unwrap();
                seeds.into_iter().map(key).collect()
            }
        };
        Self {
            public: secret.public_key(&mut rng).unwrap(),
            evaluation: evaluation.unwrap(),
            uploads,
            agreed: Arc::new(Mutex::new(Some(terms.clone()))),
        }
    }

    /// Serves the routes of the crypto service that an upload needs, and returns its address.
    pub async fn serve(&self) -> String {
        let public = self.public.to_bytes().unwrap();
        let evaluation = self.evaluation.to_bytes();
        let digests = [&public, &evaluation].map(|key| Digest::of(key));
        let agreed = self.agreed.clone();
        let show = async move |Path(dataset): Path<Uuid>| {
            let terms = agreed.lock().unwrap().clone();
            axum::Json(key_set(dataset, terms.unwrap(), digests))
        };
        let routes = Router::new()
            .route("/v1/datasets/{dataset}", get(show))
            .route("/v1/datasets/{dataset}/public-key", get(async || public))
            .route(
                "/v1/datasets/{dataset}/evaluation-keys",
                get(async || evaluation),
            );
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        address
    }
}

/// The service and a holder with a table.
pub struct Fixture {
    pub state: State,
    pub keys: Keys,
    pub plan: UploadPlan,
    pub folder: TempDir,
}

impl Fixture {
    pub async fn new() -> Self {
        Self::under(&terms(1000)).await
    }

    /// Like [`Self::new`], with the keys of these terms.
    pub async fn under(terms: &Terms) -> Self {
        let plan = terms.plan().unwrap();
        let keys = Keys::new(terms);
        let folder = tempfile::tempdir().unwrap();
        let upload = UploadPlan::for_table(
            table().domain(),
            RECORDS,
            plan.ladder().unwrap(),
            &plan.core.set,
        );
        Self {
            state: open(folder.path(), &keys.serve().await, 1 << 30).await,
            plan: upload.unwrap().under(plan.core.encryption),
            keys,
            folder,
        }
    }

    /// Opens the service again with another limit of an account's bytes.
    pub async fn reopened(&self, stored_bytes: u64) -> State {
        open(self.folder.path(), &self.keys.serve().await, stored_bytes).await
    }

    /// Registers a dataset.
    pub async fn register(&self) -> StoredUpload {
        self.register_as(terms(1000), 128).await.unwrap()
    }

    pub async fn register_as(&self, terms: Terms, stride: usize) -> Result<StoredUpload, Failure> {
        let (dataset, owner) = (Uuid::new_v4(), Uuid::new_v4());
        let layout = Some(WireLayout { chunks: 1, stride });
        let terms = WireTerms(terms);
        uploads::register(&self.state, dataset, owner, NewUpload { terms, layout }).await?;
        uploads::find(&self.state, dataset).await
    }

    /// Encodes an object. Another seed gives other bytes.
    pub fn encode(&self, object: Object, seed: u64) -> Bytes {
        self.encode_as(0, object, seed)
    }

    /// Encodes an object of a holder of the roster.
    pub fn encode_as(&self, holder: usize, object: Object, seed: u64) -> Bytes {
        let (table, key) = (table(), &self.keys.uploads[holder]);
        let encryptor = match self.plan.encryption {
            Encryption::OwnKey => Encryptor::sole(&self.keys.public, key),
            Encryption::RosterKey => Encryptor::of_roster(key),
        };
        let holder = Holder::new(&table, 1000, HolderNoise::Fresh, encryptor, self.plan).unwrap();
        let mut rng = StdRng::seed_from_u64(seed);
        holder.encode(object, &mut rng).unwrap().into()
    }

    pub async fn put(
        &self,
        stored: &StoredUpload,
        object: Object,
        bytes: &Bytes,
    ) -> Result<(), Failure> {
        let digest = Digest::of(bytes);
        let name = object.name();
        uploads::put(&self.state, stored, WHOLE, &name, digest, bytes.clone()).await
    }

    /// Puts all objects and returns their digests.
    pub async fn put_all(&self, stored: &StoredUpload) -> BTreeMap<String, Digest> {
        let mut digests = BTreeMap::new();
        for object in self.plan.objects() {
            let bytes = self.encode(object, 1);
            self.put(stored, object, &bytes).await.unwrap();
            digests.insert(object.name(), Digest::of(&bytes));
        }
        digests
    }

    pub async fn complete(
        &self,
        stored: &StoredUpload,
        digests: &BTreeMap<String, Digest>,
    ) -> Result<(), Failure> {
        self.complete_part(stored, WHOLE, digests).await
    }

    pub async fn complete_part(
        &self,
        stored: &StoredUpload,
        number: u32,
        digests: &BTreeMap<String, Digest>,
    ) -> Result<(), Failure> {
        let mut hash = Sha256::new();
        for (name, digest) in digests {
            hash.update(format!("{name} {digest}\n"));
        }
        let manifest = Digest(hash.finalize().into());
        let complete = Complete { manifest };
        let upload = uploads::complete(&self.state, stored, number, &complete).await?;
        let part = upload
            .contributions
            .iter()
            .find(|part| part.number == number);
        assert_eq!(part.unwrap().state, UploadState::Complete);
        Ok(())
    }

    /// Makes a complete upload.
    pub async fn upload(&self) -> StoredUpload {
        let stored = self.register().await;
        let digests = self.put_all(&stored).await;
        self.complete(&stored, &digests).await.unwrap();
        stored
    }

    /// Loads a dataset like a worker with an empty cache.
    pub async fn load(&self, stored: &StoredUpload) -> Result<(), Failure> {
        Cache::new(1).get(&self.state, stored).await.map(|_| ())
    }

    /// Computes and seals the first batch of a run like a worker. The batch's noise has this variance.
    pub async fn answer(
        &self,
        stored: &StoredUpload,
        variance_units: u64,
    ) -> Result<Vec<u8>, Failure> {
        let loaded = Cache::new(1).get(&self.state, stored).await?;
        let dataset = DatasetId(stored.dataset.into_bytes());
        let window = Window::new(dataset, JobId([0; 16]), 0, self.plan.ladder);
        let total = ReleaseRequest {
            number: 0,
            statistic: Statistic::Total,
            variance_units,
        };
        let params = uploads::plan_core(&stored.terms).unwrap().parameters();
        let params = params.unwrap();
        let sealing = move || {
            let key = SealingKey::random(&mut StdRng::seed_from_u64(7));
            let answer = loaded.answer(&window, &[total], &key)?;
            Ok(answer.request.to_bytes(&params))
        };
        tokio::task::spawn_blocking(sealing).await.unwrap()
    }

    /// Returns the path of the only blob with this name or prefix.
    pub fn blob(&self, stored: &StoredUpload, name: &str) -> PathBuf {
        let path = self.blobs().join(&stored.folder).join(name);
        let (parent, begin) = (path.parent().unwrap(), path.file_name().unwrap());
        let begin = begin.to_str().unwrap();
        let mut found = std::fs::read_dir(parent).unwrap().filter_map(|file| {
            let name = file.unwrap().file_name().into_string().unwrap();
            let of_it = name == begin || name.starts_with(&format!("{begin}."));
            of_it.then(|| parent.join(name))
        });
        let first = found.next().unwrap();
        assert!(found.next().is_none(), "{name} has two blobs");
        first
    }

    pub fn blobs(&self) -> PathBuf {
        self.folder.path().join("blobs")
    }
}

async fn open(folder: &std::path::Path, crypto: &str, stored_bytes: u64) -> State {
    let mut common = fhaim_kit::config::in_folder(folder);
    common.peers.insert(Service::Crypto, crypto.to_owned());
    let config = Config {
        common,
        datasets_in_memory: 1,
        upload_bytes: 1 << 30,
        stored_bytes,
        memory: Memory::default(),
        engine: None,
    };
    State::open(&config).await.unwrap()
}
