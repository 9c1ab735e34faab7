//! What every service opens before it answers: its database, its blobs, its keys.

use fhaim_api::token::Service;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

use crate::Failure;
use crate::blobs::Blobs;
use crate::config::Common;
use crate::peer::{self, PeerClient};
use crate::peers::Peers;
use crate::seal::Sealer;
use crate::server::Ready;
use crate::store::{Step, Store};
use crate::token::{Signer, Verifier};

/// Database and blobs are written to at most so often to find out whether they can be.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The other services are asked at most so often whether they answer.
const ASK_PEERS_EVERY: Duration = Duration::from_secs(5);

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
    peers: Arc<Peers>,
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
            peers: Arc::new(Peers::new(service, common.peers.clone(), http.clone())),
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
        let address = self.peers.address(peer);
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

    /// Tells whether the other services answer at the addresses that this one knows, by clocks that
    /// agree with its own, and which does not.
    pub fn peers_readiness(&self) -> Ready {
        let peers = self.peers.clone();
        now_and_then(ASK_PEERS_EVERY, move || {
            let peers = peers.clone();
            Box::pin(async move { peers.check().await })
        })
    }
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
