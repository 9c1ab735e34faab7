//! The service with a real database, and a stand-in for the generation service that vouches for datasets.
#![allow(dead_code, clippy::unwrap_used)] // helpers outside #[test] functions

use axum::Router;
use axum::routing::get;
use fhaim_api::account::Secret;
use fhaim_api::dataset::WireTerms;
use fhaim_api::keys::NewKeySet;
use fhaim_api::token::Service;
use fhaim_crypto::{Config, Limits, State};
use fhaim_domain::Schema;
use fhaim_platform::program::Program;
use fhaim_platform::seal::Sealer;
use fhaim_platform::store::Store;
use fhaim_platform::token::Signer;
use fhaim_protocol::terms::Terms;
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use uuid::Uuid;

pub const OWNER: Uuid = Uuid::from_u128(1);

pub fn terms(runs: u32) -> Terms {
    let json = br#"{"name":"t","columns":[
        {"name":"a","kind":"categorical","categories":["1","2"]},
        {"name":"b","kind":"categorical","categories":["1","2","3"]}]}"#;
    let terms = Terms {
        runs,
        ..Terms::new(Schema::from_json("t", json).unwrap(), 1.0, 1e-9, 600)
    };
    terms.complete(&fhaim_synth::Mechanisms).unwrap()
}

/// A stand-in for the generation service.
pub struct Generation {
    signer: Arc<Signer>,
    base: String,
    _folder: TempDir,
}

impl Generation {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = fhaim_kit::config::sqlite(folder.path());
        let store = Store::open(&database, &[]).await.unwrap();
        let sealer = Sealer::from_text(&Sealer::new_key().unwrap()).unwrap();
        let signer = Signer::open(Service::Generation, store, Arc::new(sealer)).await;
        let signer = Arc::new(signer.unwrap());
        let keys = signer.clone();
        let jwks = get(async move || axum::Json(keys.jwks()));
        let routes = Router::new().route("/.well-known/jwks.json", jwks);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self {
            signer,
            base,
            _folder: folder,
        }
    }

    /// Returns a voucher for a dataset.
    pub fn voucher(&self, owner: Uuid, dataset: Uuid) -> Option<Secret> {
        let voucher = self.signer.voucher(owner, dataset, Duration::from_secs(60));
        Some(Secret(voucher.unwrap()))
    }

    /// Returns a user's token.
    pub fn user_token(&self, owner: Uuid) -> Option<Secret> {
        let token = self
            .signer
            .token_for_user(Service::Crypto, owner, Duration::from_secs(60));
        Some(Secret(token.unwrap()))
    }

    /// Returns a user's request for a key set, with a voucher.
    pub fn key_set(&self, dataset: Uuid, runs: u32) -> NewKeySet {
        NewKeySet {
            terms: WireTerms(terms(runs)),
            voucher: self.voucher(OWNER, dataset),
        }
    }
}

/// A folder and the configuration of the service in it.
pub struct Place {
    pub folder: TempDir,
    pub config: Config,
    pub generation: Generation,
}

impl Place {
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut common = fhaim_kit::config::in_folder(folder.path());
        let generation = Generation::start().await;
        let base = generation.base.clone();
        common.peers.insert(Service::Generation, base);
        let limits = Limits::default();
        Self {
            folder,
            config: Config {
                limits,
                ..Config::from(common)
            },
            generation,
        }
    }

    pub async fn open(&self) -> State {
        State::open(&self.config).await.unwrap()
    }

    /// Makes the keys of a new dataset.
    pub async fn dataset(&self, state: &State, runs: u32) -> Uuid {
        let id = Uuid::new_v4();
        let new = self.generation.key_set(id, runs);
        let (_, made) = fhaim_crypto::keys::create(state, id, OWNER, new, &[])
            .await
            .unwrap();
        assert!(made);
        id
    }

    /// Executes a statement that the service itself never makes.
    pub async fn execute(&self, statement: &str) {
        let url = format!("sqlite://{}/store.db", self.folder.path().display());
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        sqlx::query(AssertSqlSafe(statement.to_owned()))
            .execute(&mut connection)
            .await
            .unwrap();
    }
}
