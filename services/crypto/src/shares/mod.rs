//! Keys that several services share (docs/DESIGN.md, section 10): what `fhaim_protocol::committee` decides, over
//! HTTP and a database.
//!
//! | module | for |
//! |---|---|
//! | this | what a service signs with, whom it shares keys with, its own_member |
//! | [`first`] | what the crypto service does: it has the others make a key with it, and share releases |
//! | [`member`] | what the others do, for the first |
//! | [`routes`] | their HTTP surface |
//!
//! The first service calls the others, and they call no one. Each judges, promises and debits for itself; the first
//! adds up the shares and measures the noise. What is under way of a key generation is in memory alone:
//! whoever is stopped begins another attempt, with another share.

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

/// How a service takes part in sharing keys.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// What people call this service, such as the name of who runs it; else what it is.
    pub name: Option<String>,
    /// The other key services that this one shares keys with, by name and key: where any are named, no key is
    /// shared with others.
    pub others: Vec<KeyServiceDocument>,
}

/// What a service shares keys with.
pub struct KeySharing {
    /// How it is known to the others.
    pub(crate) me: KeyService,
    key: ServiceSigningKey,
    others: Vec<KeyService>,
    /// The services that this one has share keys with it, in the order of their numbers.
    pub(crate) peers: Vec<(Service, PeerClient)>,
    pub(crate) attempts: member::Attempts,
}

impl std::fmt::Debug for KeySharing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Office({})", self.me.name)
    }
}

impl KeySharing {
    /// Of a service: what it signs with is made at its first start.
    ///
    /// # Errors
    /// A failure of the store, a key that cannot be opened.
    pub async fn open(
        service: Service,
        base: &Base,
        settings: &Settings,
        peers: Vec<(Service, PeerClient)>,
    ) -> Result<Self, Failure> {
        let key = service_key(service, base).await?;
        let name = settings.name.clone();
        Ok(Self {
            me: KeyService {
                name: name.unwrap_or_else(|| service.as_str().to_owned()),
                key: key.public(),
            },
            key,
            others: settings.others.iter().cloned().map(Into::into).collect(),
            peers,
            attempts: member::Attempts::default(),
        })
    }

    /// Refuses services that this one does not share keys with, or that it is not one of.
    ///
    /// # Errors
    /// Why.
    pub(crate) fn check(&self, number: usize, services: &[KeyService]) -> Result<(), String> {
        if services.get(number) != Some(&self.me) {
            return Err(format!(
                "service {} is to be {} with the key {}",
                number + 1,
                self.me.name,
                self.me.fingerprint()
            ));
        }
        let mut others = services.iter().filter(|service| **service != self.me);
        let strange = others.find(|other| !self.others.is_empty() && !self.others.contains(other));
        match strange {
            None => Ok(()),
            Some(strange) => Err(format!(
                "{} does not share keys with {}, whose key is {}",
                self.me.name,
                strange.name,
                strange.fingerprint()
            )),
        }
    }
}

async fn service_key(service: Service, base: &Base) -> Result<ServiceSigningKey, Failure> {
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
    let bytes = base.sealer.open(&context, &sealed)?;
    let bytes = <&[u8; 32]>::try_from(bytes.as_slice());
    let bytes = bytes.map_err(|_| Failure::internal("a service key of another length"))?;
    Ok(ServiceSigningKey::from_bytes(bytes))
}

/// The committee of a dataset's terms, in an attempt to make its key.
fn committee(
    dataset: Uuid,
    terms: &[u8; 32],
    services: &[KeyService],
    attempt: &[u8; 16],
) -> Result<KeyCommittee, Failure> {
    let id = DatasetId(dataset.into_bytes());
    KeyCommittee::new(id, terms, attempt, services.to_vec()).map_err(Failure::internal)
}

/// The committee of a key that was confirmed, and which key it is.
fn confirmed(
    stored: &StoredKeySet,
    said: &Confirmation,
) -> Result<(KeyCommittee, [u8; 32]), Failure> {
    let attempt = said.attempt().map_err(Failure::internal)?;
    let messages = said.messages().map_err(Failure::internal)?;
    let services = &stored.terms.key_services;
    let committee = committee(stored.dataset, &stored.terms_digest()?, services, &attempt)?;
    let (public, evaluation) = (stored.public_key.0, stored.evaluation_keys.0);
    let transcript = confirmation::check(&committee, &public, &evaluation, &messages);
    Ok((committee, transcript.map_err(Failure::internal)?))
}

/// This service's own_member, under a key that was confirmed.
///
/// # Errors
/// [`ProblemKind::NotFound`](fhaim_api::problem::ProblemKind::NotFound) once destroyed; a share that
/// cannot be opened, or is of another key.
fn own_member(
    state: &State,
    stored: &StoredKeySet,
    params: &Parameters,
    said: &Confirmation,
) -> Result<CommitteeMember, Failure> {
    let (committee, transcript) = confirmed(stored, said)?;
    let bytes: Zeroizing<Vec<u8>> = stored.secret_bytes(state)?.ok_or_else(Failure::not_found)?;
    let share = KeyShare::from_bytes(params, &bytes).map_err(Failure::internal)?;
    let key = state.sharing.key.clone();
    CommitteeMember::new(committee, share, key, transcript).map_err(Failure::internal)
}

/// This service's seed of a holder's upload key, encrypted for the holder.
///
/// # Errors
/// [`Refusal::Terms`] for an invalid one-time key.
fn upload_seed(own_member: &CommitteeMember, request: &SeedRequest) -> Result<Vec<u8>, Failure> {
    let seed = own_member.key_share().upload_seed(request.holder as usize);
    let sealed = request.seal(own_member.number(), &seed);
    Ok(sealed.map_err(|error| Refusal::Terms(error.to_string()))?)
}
