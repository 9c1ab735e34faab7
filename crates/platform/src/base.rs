//! The resources that every service opens before it answers: database, blobs and keys.

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
use crate::reserve::Reserve;
use crate::seal::Sealer;
use crate::server::Ready;
use crate::store::{Step, Store};
use crate::token::{Signer, Verifier};

/// Shortest time between two checks whether database and blobs can be written to.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Shortest time between two checks whether the other services answer.
const ASK_PEERS_EVERY: Duration = Duration::from_secs(5);

/// The resources that a service's handlers and workers share. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Base {
    /// The service. Two services may share their handlers, so that its name is not a constant.
    pub service: Service,
    /// The database.
    pub store: Store,
    /// The blobs.
    pub blobs: Blobs,
    /// Seals values that must not be stored in plaintext.
    pub sealer: Arc<Sealer>,
    /// Signs the service's tokens.
    pub signer: Arc<Signer>,
    /// Verifies callers' tokens.
    pub verifier: Arc<Verifier>,
    /// Age at which a blob that no row names is deleted. Its writer must be gone by then.
    pub orphan_age: Duration,
    /// Space on the disk for deletions and sign-ins.
    pub reserve: Reserve,
    peers: Arc<Peers>,
    http: reqwest::Client,
}

/// The result of a check, and its time.
type Found = (Instant, Result<(), Failure>);

impl Base {
    /// Opens the database, the blobs and the keys that a configuration names. The service accepts its own tokens, and
    /// those of the peers in `trusted`.
    ///
    /// # Errors
    /// The error of the first resource that cannot be opened.
    pub async fn open(
        service: Service,
        common: &Common,
        steps: &[Step],
        trusted: &[Service],
    ) -> Result<Self, Failure> {
        let store = Store::open_of(service, &common.database, steps).await?;
        let sealer = Arc::new(Sealer::from_config(&common.sealing)?);
        let signer = Signer::open(service, store.clone(), sealer.clone()).await?;
        let signer = Arc::new(signer);
        let http = peer::http_client().map_err(Failure::internal)?;
        let mut issuers = common.peers.clone();
        issuers.retain(|peer, _| trusted.contains(peer));
        Ok(Self {
            service,
            verifier: Arc::new(Verifier::new(signer.clone(), &issuers, http.clone())),
            blobs: Blobs::open(&common.blobs)?,
            orphan_age: Duration::from_secs(common.orphan_seconds),
            reserve: Reserve::open(common),
            peers: Arc::new(Peers::new(service, common.peers.clone(), http.clone())),
            store,
            sealer,
            signer,
            http,
        })
    }

    /// Returns a client of another service.
    ///
    /// # Errors
    /// [`Failure::internal`] if the configuration has no address of that service.
    pub fn peer(&self, peer: Service) -> Result<PeerClient, Failure> {
        let address = self.peers.address(peer);
        let address = address.ok_or_else(|| {
            Failure::internal(format!(
                "the configuration has no address of the {peer} service: add it to `peers`"
            ))
        })?;
        let (signer, http) = (self.signer.clone(), self.http.clone());
        Ok(PeerClient::new(peer, address, signer, http))
    }

    /// Returns a check that database and blobs can be written to. Anyone may call it, so a result is reused for a
    /// second.
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

    /// Returns a check that the other services answer at their configured addresses, and that their clocks agree with
    /// this service's. The failure names a service that does not.
    pub fn peers_readiness(&self) -> Ready {
        let peers = self.peers.clone();
        now_and_then(ASK_PEERS_EVERY, move || {
            let peers = peers.clone();
            Box::pin(async move { peers.check().await })
        })
    }
}

/// Returns a check that reuses its result for a while.
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
