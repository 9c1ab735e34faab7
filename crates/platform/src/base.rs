//! What every service opens before it answers: its database, its blobs, its keys.

use fhaim_api::token::Service;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

use crate::Failure;
use crate::blobs::Blobs;
use crate::config::Common;
use crate::peer::{self, PeerClient};
use crate::seal::Sealer;
use crate::server::Ready;
use crate::store::{Step, Store};
use crate::token::{Signer, Verifier};

/// Database and blobs are written to at most so often to find out whether they can be.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The other services are asked at most so often whether they answer,
const ASK_PEERS_EVERY: Duration = Duration::from_secs(5);

/// and do not where they take longer than this.
const PEER_ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// What every service's handlers and workers share. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Base {
    /// Its database.
    pub store: Store,
    /// Its blobs.
    pub blobs: Blobs,
    /// Seals what must not rest in the open.
    pub sealer: Arc<Sealer>,
    /// Signs its tokens.
    pub signer: Arc<Signer>,
    /// Says who is asking.
    pub verifier: Arc<Verifier>,
    /// A blob that no row names is deleted when it is so old: whoever wrote it is gone.
    pub orphan_age: Duration,
    peers: BTreeMap<Service, String>,
    http: reqwest::Client,
}

/// What a check found, and when.
type Found = (Instant, Result<(), Failure>);

impl Base {
    /// Opens what a configuration names. Tokens are accepted from the service itself and from
    /// those of its peers that `trusted` names.
    ///
    /// # Errors
    /// What cannot be opened.
    pub async fn open(
        service: Service,
        common: &Common,
        steps: &[Step],
        trusted: &[Service],
    ) -> Result<Self, Failure> {
        let store = Store::open(&common.database, steps).await?;
        let sealer = Arc::new(Sealer::from_config(&common.sealing)?);
        let signer = Signer::open(service, store.clone(), sealer.clone()).await?;
        let signer = Arc::new(signer);
        let http = peer::http_client().map_err(Failure::internal)?;
        let mut issuers = common.peers.clone();
        issuers.retain(|peer, _| trusted.contains(peer));
        Ok(Self {
            verifier: Arc::new(Verifier::new(signer.clone(), &issuers, http.clone())),
            blobs: Blobs::open(&common.blobs)?,
            orphan_age: Duration::from_secs(common.orphan_seconds),
            peers: common.peers.clone(),
            store,
            sealer,
            signer,
            http,
        })
    }

    /// A client of another service.
    ///
    /// # Errors
    /// No address of it.
    pub fn peer(&self, peer: Service) -> Result<PeerClient, Failure> {
        let address = self.peers.get(&peer);
        let address =
            address.ok_or_else(|| Failure::internal(format!("peers: {peer} is missing")))?;
        let (signer, http) = (self.signer.clone(), self.http.clone());
        Ok(PeerClient::new(peer, address, signer, http))
    }

    /// Tells whether database and blobs can be written to. Anyone may ask, so what was found
    /// stands for a second.
    pub fn readiness(&self) -> Ready {
        let (store, blobs) = (self.store.clone(), self.blobs.clone());
        now_and_then(CHECK_EVERY, move || {
            let (store, blobs) = (store.clone(), blobs.clone());
            Box::pin(async move {
                let checked = store.check().await;
                checked.map_err(|error| {
                    let address = store.address();
                    let cause = format!("the database at {address}: {error}");
                    Failure::from(error).because(cause)
                })?;
                Ok(blobs.check().await?)
            })
        })
    }

    /// Tells whether the other services answer at the addresses that this one knows, and which does
    /// not.
    pub fn peers_readiness(&self) -> Ready {
        let (peers, http) = (self.peers.clone(), self.http.clone());
        now_and_then(ASK_PEERS_EVERY, move || {
            let (peers, http) = (peers.clone(), http.clone());
            Box::pin(async move {
                for (peer, base) in &peers {
                    let answers = answers(&http, base).await;
                    let up = if answers.is_ok() { 1.0 } else { 0.0 };
                    metrics::gauge!("peer_up", "peer" => peer.as_str()).set(up);
                    answers.map_err(|reason| {
                        let detail = format!("the {peer} service does not answer at {base}");
                        Failure::unavailable(detail).because(reason)
                    })?;
                }
                Ok(())
            })
        })
    }
}

/// Whether a service answers that it is well.
async fn answers(http: &reqwest::Client, base: &str) -> Result<(), String> {
    let address = format!("{}/healthz", base.trim_end_matches('/'));
    let asked = http.get(address).timeout(PEER_ANSWERS_WITHIN).send().await;
    let answer = asked.and_then(reqwest::Response::error_for_status);
    answer
        .map(drop)
        .map_err(|error| error.without_url().to_string())
}

/// A check whose findings stand for a while.
fn now_and_then(
    every: Duration,
    check: impl Fn() -> BoxFuture<'static, Result<(), Failure>> + Send + Sync + 'static,
) -> Ready {
    let (found, check): (Arc<Mutex<Option<Found>>>, _) = (Arc::default(), Arc::new(check));
    Arc::new(move || {
        let (found, check) = (found.clone(), check.clone());
        Box::pin(async move {
            let mut found = found.lock().await;
            if let Some((at, found)) = &*found
                && at.elapsed() < every
            {
                return found.clone();
            }
            let checked = check().await;
            *found = Some((Instant::now(), checked.clone()));
            checked
        })
    })
}
