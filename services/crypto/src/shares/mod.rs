//! Keys that several services share (docs/DESIGN.md, section 10): runs `fhaim_protocol::committee` over HTTP and a
//! database.
//!
//! | module | contents |
//! |---|---|
//! | this | a service's signing key, its peers, and its membership of a key's committee |
//! | [`first`] | the crypto service's part: makes a key with the others and collects their shares of releases |
//! | [`member`] | the other services' part |
//! | [`routes`] | the HTTP routes of the other services |
//!
//! The first service calls the others, which call nobody. Each of them judges, promises and debits for itself. The
//! first adds up the shares and measures the noise. The state of a key generation is only in memory: after a service
//! has stopped, another attempt begins with another share.

pub mod first;
pub mod member;
pub mod routes;

use fhaim_api::keys::{Confirmation, KeyServiceDocument};
use fhaim_api::token::Service;
use fhaim_dp::generator;
use fhaim_he::Parameters;
use fhaim_he::key_sharing::KeyShare;
use fhaim_platform::Failure;
use fhaim_platform::base::Base;
use fhaim_platform::peer::PeerClient;
use fhaim_platform::seal::SealError;
use fhaim_protocol::committee::member::CommitteeMember;
use fhaim_protocol::committee::{KeyCommittee, KeyService, ServiceSigningKey, confirmation};
use fhaim_protocol::request::DatasetId;
use fhaim_protocol::upload_key::SeedRequest;
use serde::Deserialize;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::State;
use crate::keys::StoredKeySet;
use crate::problem::Refusal;
use crate::store::shares as store;

/// Settings of a service that shares keys.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Public name of this service, such as its operator's name. The default is the kind of service.
    pub name: Option<String>,
    /// The other key services with which this one shares keys, by name and key. If the list is not empty, this service
    /// shares keys with no others.
    pub others: Vec<KeyServiceDocument>,
}

/// Identity, peers and key generations of a service that shares keys.
pub struct KeySharing {
    /// Name of this service.
    name: String,
    /// The key that this service signs with, or why it has none.
    key: Result<ServiceSigningKey, String>,
    others: Vec<KeyService>,
    /// The services with which this one shares keys, in the order of their numbers.
    pub(crate) peers: Vec<(Service, PeerClient)>,
    pub(crate) attempts: member::Attempts,
}

impl std::fmt::Debug for KeySharing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeySharing({})", self.name)
    }
}

impl KeySharing {
    /// Opens the key sharing of a service. The first start makes its signing key. With a damaged key, the service
    /// works for datasets whose keys are not shared.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn open(
        service: Service,
        base: &Base,
        settings: &Settings,
        peers: Vec<(Service, PeerClient)>,
    ) -> Result<Self, Failure> {
        let key = service_key(service, base).await?;
        let name = settings.name.clone();
        Ok(Self {
            name: name.unwrap_or_else(|| service.as_str().to_owned()),
            key,
            others: settings.others.iter().cloned().map(Into::into).collect(),
            peers,
            attempts: member::Attempts::default(),
        })
    }

    /// Returns the key that this service signs with.
    ///
    /// # Errors
    /// A damaged key.
    pub(crate) fn key(&self) -> Result<&ServiceSigningKey, Failure> {
        let key = self.key.as_ref();
        key.map_err(Failure::internal)
    }

    /// Returns name and key under which the others know this service.
    ///
    /// # Errors
    /// A damaged key.
    pub(crate) fn me(&self) -> Result<KeyService, Failure> {
        Ok(KeyService {
            name: self.name.clone(),
            key: self.key()?.public(),
        })
    }

    /// Checks that this service is member `number` and shares keys with all the others.
    ///
    /// # Errors
    /// The reason.
    pub(crate) fn check(&self, number: usize, services: &[KeyService]) -> Result<(), String> {
        let me = self.me().map_err(|damage| damage.to_string())?;
        if services.get(number) != Some(&me) {
            return Err(format!(
                "service {} must be {} with the key {}",
                number + 1,
                me.name,
                me.fingerprint()
            ));
        }
        let mut others = services.iter().filter(|service| **service != me);
        let strange = others.find(|other| !self.others.is_empty() && !self.others.contains(other));
        match strange {
            None => Ok(()),
            Some(strange) => Err(format!(
                "{} does not share keys with {}, whose key is {}",
                me.name,
                strange.name,
                strange.fingerprint()
            )),
        }
    }
}

/// Returns the key that a service signs with, or a description of its damage.
async fn service_key(
    service: Service,
    base: &Base,
) -> Result<Result<ServiceSigningKey, String>, Failure> {
    let context = format!("service key of {service}");
    let sealed = match store::service_key(&base.store, service).await? {
        Some(sealed) => sealed,
        None => {
            let key = ServiceSigningKey::random(&mut generator().map_err(Failure::internal)?);
            let sealed = base.sealer.seal(&context, &*key.to_bytes())?;
            store::insert_service_key(&base.store, service, &sealed).await?;
            let stored = store::service_key(&base.store, service).await?;
            stored.ok_or_else(|| Failure::internal("the service key is not stored"))?
        }
    };
    let bytes = match base.sealer.open(&context, &sealed) {
        Err(SealError::Unopened) => None,
        opened => Some(opened?),
    };
    let bytes = bytes.as_deref().map(Vec::as_slice);
    Ok(match bytes.map(<&[u8; 32]>::try_from) {
        Some(Ok(bytes)) => Ok(ServiceSigningKey::from_bytes(bytes)),
        _ => {
            let damage = format!(
                "the signing key of the {service} service (table service_keys) is damaged: datasets whose \
                 keys are shared have to wait until its operator restores the table from a backup"
            );
            tracing::error!(damage);
            Err(damage)
        }
    })
}

/// Returns the committee of a dataset's terms in an attempt to make its key.
fn committee(
    dataset: Uuid,
    terms: &[u8; 32],
    services: &[KeyService],
    attempt: &[u8; 16],
) -> Result<KeyCommittee, Failure> {
    let id = DatasetId(dataset.into_bytes());
    KeyCommittee::new(id, terms, attempt, services.to_vec()).map_err(Failure::internal)
}

/// Returns the committee of a confirmed key, with the transcript that identifies the key.
fn confirmed(
    stored: &StoredKeySet,
    confirmation: &Confirmation,
) -> Result<(KeyCommittee, [u8; 32]), Failure> {
    let attempt = confirmation.attempt().map_err(Failure::damaged)?;
    let messages = confirmation.messages().map_err(Failure::damaged)?;
    let services = &stored.terms.key_services;
    let committee = committee(stored.dataset, &stored.terms_digest()?, services, &attempt)?;
    let (public, evaluation) = (stored.public_key.0, stored.evaluation_keys.0);
    let transcript = confirmation::check(&committee, &public, &evaluation, &messages);
    Ok((committee, transcript.map_err(Failure::damaged)?))
}

/// Returns this service's membership of the committee of a confirmed key.
///
/// # Errors
/// [`ProblemKind::NotFound`](fhaim_api::problem::ProblemKind::NotFound) if the share is destroyed; a share that
/// cannot be unsealed, or that belongs to another key.
fn own_member(
    state: &State,
    stored: &StoredKeySet,
    params: &Parameters,
    confirmation: &Confirmation,
) -> Result<CommitteeMember, Failure> {
    let (committee, transcript) = confirmed(stored, confirmation)?;
    let bytes: Zeroizing<Vec<u8>> = stored.secret_bytes(state)?.ok_or_else(Failure::not_found)?;
    let share = KeyShare::from_bytes(params, &bytes).map_err(Failure::damaged)?;
    let key = state.sharing.key()?.clone();
    CommitteeMember::new(committee, share, key, transcript).map_err(Failure::internal)
}

/// Returns this service's seed of a holder's upload key, encrypted for the holder.
///
/// # Errors
/// [`Refusal::Terms`] for an invalid one-time key.
fn upload_seed(own_member: &CommitteeMember, request: &SeedRequest) -> Result<Vec<u8>, Failure> {
    let seed = own_member.key_share().upload_seed(request.holder as usize);
    let sealed = request.seal(own_member.number(), &seed);
    Ok(sealed.map_err(|error| Refusal::Terms(error.to_string()))?)
}
