//! Key sets: made once per dataset, with a sealed secret key that is destroyed with the dataset.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use fhaim_api::Digest;
use fhaim_api::account::Secret;
use fhaim_api::dataset::WireTerms;
use fhaim_api::keys::{Confirmation, KeySet, NewKeySet, Receipt};
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_dp::generator;
use fhaim_he::{Parameters, SecretKey};
use fhaim_platform::store::Tx;
use fhaim_platform::token::Caller;
use fhaim_platform::{Failure, clock};
use fhaim_protocol::crypto::chain::{Act, ReceiptKey};
use fhaim_protocol::crypto::history::ChainState;
use fhaim_protocol::request::DatasetId;
use fhaim_protocol::terms::{Plan, PlanCore, Terms};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::State;
use crate::audit::Asked;
use crate::holders;
use crate::ledger;
use crate::limits;
use crate::problem::Refusal;
use crate::shares;
pub use crate::store::keys::StoredKeySet;
use crate::store::shares::{self as shared, SharedKey};
use crate::store::{keys as store, witnessed};

impl StoredKeySet {
    /// Returns whether the secret key is destroyed.
    pub fn is_destroyed(&self) -> bool {
        self.secret.is_none()
    }

    /// Returns the secret key's bytes, unless the key is destroyed.
    ///
    /// # Errors
    /// A key that cannot be unsealed.
    pub fn secret_bytes(&self, state: &State) -> Result<Option<Zeroizing<Vec<u8>>>, Failure> {
        let open = |sealed| state.base.sealer.open(&context(self.dataset), sealed);
        Ok(self.secret.as_deref().map(open).transpose()?)
    }

    /// Returns the secret key.
    ///
    /// # Errors
    /// [`ProblemKind::NotFound`] if the key is destroyed; a key that cannot be unsealed.
    pub fn secret(&self, state: &State, params: &Parameters) -> Result<SecretKey, Failure> {
        let bytes = self.secret_bytes(state)?.ok_or_else(Failure::not_found)?;
        SecretKey::from_bytes(params, &bytes).map_err(Failure::damaged)
    }

    /// Returns the key that signs the dataset's receipts.
    ///
    /// # Errors
    /// A key that cannot be unsealed.
    pub fn receipt_key(&self, state: &State) -> Result<ReceiptKey, Failure> {
        let sealer = &state.base.sealer;
        let bytes = sealer.open(&receipts(self.dataset), &self.receipt_key)?;
        ReceiptKey::from_bytes(&bytes).map_err(Failure::damaged)
    }

    /// Returns the first act of the dataset's chain.
    ///
    /// # Errors
    /// Never: terms are text.
    pub fn made(&self) -> Result<Act, Failure> {
        Ok(Act::KeysMade {
            terms: self.terms_digest()?,
            public_key: self.public_key.0,
            evaluation_keys: self.evaluation_keys.0,
        })
    }

    /// Checks that a service is one of the dataset's computation services. The second one must not take part in
    /// datasets whose terms do not name it.
    ///
    /// # Errors
    /// [`ProblemKind::Forbidden`].
    pub(crate) fn must_be_computed_by(&self, service: Service) -> Result<(), Failure> {
        match service {
            Service::Computation => Ok(()),
            Service::Witness if self.terms.witness => Ok(()),
            _ => Err(Failure::forbidden()),
        }
    }

    /// Returns the digest of the terms as they are stored.
    ///
    /// # Errors
    /// Never: terms are text.
    pub(crate) fn terms_digest(&self) -> Result<[u8; 32], Failure> {
        Ok(Digest::of(&serde_json::to_vec(&self.terms)?).0)
    }

    /// Returns whether an account is the owner or a holder of the roster.
    fn is_held_by(&self, user: Uuid) -> bool {
        self.owner == user || self.terms.part_of(&user.to_string()).is_some()
    }

    async fn describe(self, state: &State, plan: &PlanCore) -> Result<KeySet, Failure> {
        let mut tx = state.base.store.begin().await?;
        let runs = ledger::runs(&mut tx, self.dataset, plan.run_budget).await?;
        let chain_state = ledger::chain_state(&mut tx, self.dataset).await?;
        let shared = shared::find(&mut tx, self.dataset).await?;
        tx.commit().await?;
        let holders = holders::standings(&self, plan, &chain_state);
        let receipt_key = URL_SAFE_NO_PAD.encode(self.receipt_key(state)?.public());
        let receipt = ledger::receipt(state, &self, chain_state.tip())?;
        let spent = ledger::total(runs.iter().map(|run| run.ledger.spent()))?;
        Ok(KeySet {
            dataset: self.dataset,
            terms: WireTerms(self.terms),
            parameter_set: plan.set.id,
            public_key: self.public_key,
            evaluation_keys: self.evaluation_keys,
            budget: plan.budget.into(),
            spent: spent.into(),
            runs_begun: u32::try_from(runs.len()).unwrap_or(u32::MAX),
            receipt_key,
            receipt,
            holders,
            confirmation: shared.and_then(|shared| shared.confirmation),
            created_at: clock::date(self.created_at),
        })
    }
}

fn context(dataset: Uuid) -> String {
    format!("secret key of {dataset}")
}

fn receipts(dataset: Uuid) -> String {
    format!("receipt key of {dataset}")
}

/// Seals a dataset's secret key, or this service's share of it.
///
/// # Errors
/// A sealing key that cannot be used.
pub(crate) fn seal_secret(state: &State, dataset: Uuid, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    Ok(state.base.sealer.seal(&context(dataset), bytes)?)
}

/// Seals the key that signs a dataset's receipts.
///
/// # Errors
/// A sealing key that cannot be used.
pub fn seal_receipt_key(
    state: &State,
    dataset: Uuid,
    key: &ReceiptKey,
) -> Result<Vec<u8>, Failure> {
    let sealed = state.base.sealer.seal(&receipts(dataset), &*key.to_bytes());
    Ok(sealed?)
}

/// Returns a key set of any account.
///
/// # Errors
/// [`ProblemKind::NotFound`].
pub async fn find(state: &State, dataset: Uuid) -> Result<StoredKeySet, Failure> {
    let stored = store::find(&state.base.store, dataset).await?;
    stored.ok_or_else(Failure::not_found)
}

/// Returns a key set and locks its row.
///
/// # Errors
/// [`ProblemKind::NotFound`].
pub async fn lock(state: &State, tx: &mut Tx, dataset: Uuid) -> Result<StoredKeySet, Failure> {
    let stored = store::lock(&state.base.store, tx, dataset).await?;
    stored.ok_or_else(Failure::not_found)
}

/// Returns a user's key set.
///
/// # Errors
/// [`ProblemKind::NotFound`], also for another account's key set.
pub async fn find_owned(
    state: &State,
    dataset: Uuid,
    owner: Uuid,
) -> Result<StoredKeySet, Failure> {
    let stored = find(state, dataset).await?;
    if stored.owner == owner {
        Ok(stored)
    } else {
        Err(foreign(state, owner, dataset))
    }
}

/// Makes the failure for the key set of another account.
pub(crate) fn foreign(state: &State, user: Uuid, dataset: Uuid) -> Failure {
    Failure::foreign(state.base.service, user, "key set", dataset)
}

/// Returns a key set of which a user is a sole or joint holder.
///
/// # Errors
/// [`ProblemKind::NotFound`], also if the user is not a holder.
pub async fn find_held(state: &State, dataset: Uuid, user: Uuid) -> Result<StoredKeySet, Failure> {
    let stored = find(state, dataset).await?;
    if stored.is_held_by(user) {
        Ok(stored)
    } else {
        Err(foreign(state, user, dataset))
    }
}

/// Returns the description of a key set for a holder or the computation service, after comparing the
/// caller's receipts with its ledger.
///
/// # Errors
/// [`ProblemKind::NotFound`]; the errors of [`ledger::check_receipts`].
pub async fn show(
    state: &State,
    dataset: Uuid,
    caller: Caller,
    receipts: &[Receipt],
) -> Result<KeySet, Failure> {
    let stored = match caller {
        Caller::User(user) => find_held(state, dataset, user).await?,
        Caller::Service(service) => {
            let stored = find(state, dataset).await?;
            stored.must_be_computed_by(service)?;
            stored
        }
    };
    if stored.is_destroyed() {
        return Err(Failure::not_found());
    }
    ledger::check_receipts(state, &stored, receipts).await?;
    let plan = plan_core(&stored.terms)?;
    stored.describe(state, &plan).await
}

/// Returns the plan that follows from a key set's terms.
///
/// # Errors
/// [`Refusal::Terms`].
pub fn plan_core(terms: &Terms) -> Result<PlanCore, Refusal> {
    let plan_core = terms.plan_core();
    plan_core.map_err(|error| Refusal::Terms(error.to_string()))
}

/// A new key set before it is stored.
pub(crate) struct Fresh {
    /// The secret key, or this service's share of it.
    pub(crate) secret: Zeroizing<Vec<u8>>,
    pub(crate) receipt_key: ReceiptKey,
    pub(crate) public_key: Vec<u8>,
    pub(crate) evaluation_keys: Vec<u8>,
    /// Confirmations of all services for a shared key.
    pub(crate) shared: Option<Confirmation>,
}

fn make(terms: &Terms, plan: &Plan) -> Result<Fresh, fhaim_protocol::Error> {
    let mut rng = generator()?;
    let params = plan.parameters()?;
    let secret = SecretKey::random(&params, &mut rng)?;
    let evaluation_keys = match terms.roster_shape() {
        None => secret.evaluation_keys(&mut rng)?.to_bytes(),
        Some(shape) => secret.encoded_roster_evaluation_keys(shape, &mut rng)?,
    };
    Ok(Fresh {
        public_key: secret.public_key(&mut rng)?.to_bytes()?,
        evaluation_keys,
        receipt_key: ReceiptKey::random(&mut rng),
        secret: secret.to_bytes(),
        shared: None,
    })
}

/// Datasets whose keys are being made. Without this set, two concurrent attempts could leave this service with the keys
/// of one attempt and another key service with its share of the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct InTheMaking(Arc<Mutex<BTreeSet<Uuid>>>);

impl InTheMaking {
    /// Begins an attempt, which ends when the returned value is dropped.
    ///
    /// # Errors
    /// [`ProblemKind::Unavailable`] while another attempt is under way.
    fn begin(&self, dataset: Uuid) -> Result<Attempt, Failure> {
        if self.datasets().insert(dataset) {
            return Ok(Attempt(self.clone(), dataset));
        }
        let reason = "the keys of this dataset are being created for another request; try again";
        Err(Failure::unavailable(reason.to_owned()))
    }

    fn datasets(&self) -> MutexGuard<'_, BTreeSet<Uuid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt to make the keys of a dataset.
struct Attempt(InTheMaking, Uuid);

impl Drop for Attempt {
    fn drop(&mut self) {
        self.0.datasets().remove(&self.1);
    }
}

/// Makes a dataset's key set if the generation service vouches for the dataset. Repeating the call changes
/// nothing. Returns whether the key set is new.
///
/// # Errors
/// [`ProblemKind::Conflict`] if it was made with other terms; [`ProblemKind::NotFound`] if it is another
/// account's or destroyed; [`ProblemKind::Invalid`] for terms without a plan;
/// [`ProblemKind::Forbidden`] without a voucher; [`ProblemKind::Quota`] beyond the account's limits;
/// [`ProblemKind::Restored`] for a receipt of unknown keys; the errors of [`ledger::check_receipts`].
pub async fn create(
    state: &State,
    dataset: Uuid,
    owner: Uuid,
    new: NewKeySet,
    receipts: &[Receipt],
) -> Result<(KeySet, bool), Failure> {
    let terms = new.terms.0;
    if let Some(stored) = store::find(&state.base.store, dataset).await? {
        if stored.owner != owner {
            return Err(foreign(state, owner, dataset));
        }
        ledger::check_receipts(state, &stored, receipts).await?;
        return existing(state, stored, &terms).await;
    }
    if !receipts.is_empty() {
        tracing::error!(%dataset, "a caller showed a receipt for keys that this service does not have");
        return Err(Refusal::KeysLost.into());
    }
    must_be_vouched_for(state, dataset, owner, new.voucher).await?;
    check_roster(&terms, owner)?;
    if terms.witness && !state.has_witness {
        return Err(Refusal::NoWitness.into());
    }
    let mut tx = state.base.store.begin().await?;
    limits::check(state, &mut tx, owner, limits::counted_as(&terms)?).await?;
    drop(tx); // counted again when the key set is stored
    let _one_at_a_time = state.in_the_making.begin(dataset)?;
    let fresh = fresh(state, dataset, owner, &terms).await?;
    let stored = seal(state, dataset, owner, &terms, &fresh)?;
    let shared = fresh.shared.clone();
    store_public(state, &stored.folder, fresh).await?;
    match insert(state, &stored, shared).await {
        Ok(true) => {
            let plan_core = plan_core(&terms)?;
            return Ok((stored.describe(state, &plan_core).await?, true));
        }
        Ok(false) => state.base.blobs.delete_folder(&stored.folder).await?,
        Err(failure) => {
            if failure.kind() == ProblemKind::Quota {
                state.base.blobs.delete_folder(&stored.folder).await?;
            }
            return Err(failure);
        }
    }
    // Another request was faster; its key set is used.
    let stored = find_owned(state, dataset, owner).await?;
    existing(state, stored, &terms).await
}

/// Makes a key set, by itself or with the services that the terms name.
async fn fresh(state: &State, dataset: Uuid, owner: Uuid, terms: &Terms) -> Result<Fresh, Failure> {
    let planned = terms.clone();
    let planning = move || {
        let plan = planned.plan();
        let plan = plan.map_err(|error| Failure::from(Refusal::Terms(error.to_string())))?;
        Ok::<_, Failure>((planned, plan))
    };
    if !terms.key_services.is_empty() {
        let (_, plan) = state.making.blocking(owner, planning).await??;
        return shares::first::make(state, dataset, owner, terms, &plan).await;
    }
    let making = move || {
        let (terms, plan) = planning()?;
        make(&terms, &plan).map_err(Failure::internal)
    };
    state.making.blocking(owner, making).await?
}

/// Checks that the account is the first holder of the roster, because every service counts the dataset as that
/// account's. Holders are found by the text of their identifiers, so only one spelling is accepted.
fn check_roster(terms: &Terms, owner: Uuid) -> Result<(), Refusal> {
    let Some(roster) = &terms.roster else {
        return Ok(());
    };
    let refuse = |reason: String| Err(Refusal::Terms(format!("roster: {reason}")));
    if terms.part_of(&owner.to_string()) != Some(0) {
        return refuse("the first holder must be the account that makes the keys".to_owned());
    }
    for (number, member) in (1..).zip(&roster.holders) {
        let account = member.account.parse::<Uuid>();
        if account.is_ok_and(|account| account.to_string() != member.account) {
            return refuse(format!(
                "holder {number}: the account must be a lower-case identifier with hyphens"
            ));
        }
    }
    Ok(())
}

/// Checks that the generation service vouches for the dataset and its owner.
async fn must_be_vouched_for(
    state: &State,
    dataset: Uuid,
    owner: Uuid,
    voucher: Option<Secret>,
) -> Result<(), Failure> {
    let voucher = voucher.ok_or(Refusal::Voucher)?;
    match state
        .base
        .verifier
        .vouches(&voucher.0, owner, dataset)
        .await
    {
        Ok(true) => Ok(()),
        Err(failure) if failure.kind() != ProblemKind::Unauthenticated => Err(failure),
        _ => Err(Refusal::Voucher.into()),
    }
}

/// Returns a key set in the form in which it is stored.
fn seal(
    state: &State,
    dataset: Uuid,
    owner: Uuid,
    terms: &Terms,
    fresh: &Fresh,
) -> Result<StoredKeySet, Failure> {
    Ok(StoredKeySet {
        dataset,
        owner,
        terms: terms.clone(),
        folder: format!("keys/{dataset}/{}", Uuid::new_v4()),
        secret: Some(seal_secret(state, dataset, &fresh.secret)?),
        public_key: Digest::of(&fresh.public_key),
        evaluation_keys: Digest::of(&fresh.evaluation_keys),
        receipt_key: seal_receipt_key(state, dataset, &fresh.receipt_key)?,
        created_at: clock::now(),
        counted_as: limits::counted_as(terms)?,
    })
}

/// Stores the public parts of a key set.
async fn store_public(state: &State, folder: &str, fresh: Fresh) -> Result<(), Failure> {
    let blobs = &state.base.blobs;
    let public = format!("{folder}/public");
    blobs.put(&public, fresh.public_key.into()).await?;
    let evaluation = format!("{folder}/evaluation");
    blobs.put(&evaluation, fresh.evaluation_keys.into()).await?;
    Ok(())
}

async fn existing(
    state: &State,
    stored: StoredKeySet,
    terms: &Terms,
) -> Result<(KeySet, bool), Failure> {
    if stored.is_destroyed() {
        return Err(Failure::not_found());
    }
    if stored.terms != *terms {
        return Err(Refusal::OtherTerms.into());
    }
    let plan_core = plan_core(&stored.terms)?;
    Ok((stored.describe(state, &plan_core).await?, false))
}

async fn insert(
    state: &State,
    stored: &StoredKeySet,
    shared: Option<Confirmation>,
) -> Result<bool, Failure> {
    let mut tx = state.base.store.begin().await?;
    limits::check(state, &mut tx, stored.owner, stored.counted_as).await?;
    if !store::insert(&mut tx, stored).await? {
        return Ok(false);
    }
    let (dataset, made) = (stored.dataset, stored.made()?);
    if let Some(confirmation) = shared {
        let key = SharedKey {
            attempt: confirmation.attempt.clone(),
            confirmation: Some(confirmation),
        };
        shared::insert(&mut tx, dataset, &key).await?;
    }
    let made = ChainState::new(DatasetId(dataset.into_bytes())).append(made);
    ledger::append(&mut tx, dataset, &made.map_err(ledger::failure)?, None).await?;
    let asked = Asked {
        dataset,
        actor: Caller::User(stored.owner),
        action: "make the key set",
    };
    asked.write(&mut tx, true).await?;
    tx.commit().await?;
    Ok(true)
}

/// A public part of a key set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublicPart {
    /// The key for encryption.
    Public,
    /// The keys for computing on ciphertexts.
    Evaluation,
}

/// Returns the bytes of a public part.
///
/// # Errors
/// [`ProblemKind::NotFound`] if the keys are destroyed.
pub async fn part(
    state: &State,
    stored: &StoredKeySet,
    part: PublicPart,
) -> Result<Bytes, Failure> {
    if stored.is_destroyed() {
        return Err(Failure::not_found());
    }
    let (name, digest) = match part {
        PublicPart::Public => ("public", stored.public_key),
        PublicPart::Evaluation => ("evaluation", stored.evaluation_keys),
    };
    let blob = format!("{}/{name}", stored.folder);
    let bytes = state.base.blobs.get(&blob).await?;
    if Digest::of(&bytes) != digest {
        return Err(Failure::damaged(format!("the {name} key")).because(blob));
    }
    Ok(bytes)
}

/// Destroys a dataset's keys. Its ledger and audit log remain.
///
/// # Errors
/// [`ProblemKind::NotFound`].
pub async fn destroy(state: &State, dataset: Uuid, owner: Uuid) -> Result<(), Failure> {
    match forget(state, dataset, Caller::User(owner)).await {
        // This service may have been set back to before the keys. The others may still have their shares.
        Err(failure) if failure.kind() == ProblemKind::NotFound => {
            match shares::first::destroy_forgotten(state, dataset, owner).await {
                true => Ok(()),
                false => Err(failure),
            }
        }
        forgotten => {
            forgotten?;
            shares::first::tell(state).await;
            Ok(())
        }
    }
}

/// Destroys a dataset's secret key, or this service's share of it, for `actor`: its owner or the first key service. The
/// rest of the dataset's data may be damaged.
///
/// # Errors
/// [`ProblemKind::NotFound`].
pub(crate) async fn forget(state: &State, dataset: Uuid, actor: Caller) -> Result<(), Failure> {
    let mut tx = state.base.store.begin().await?;
    let found = store::lock_deletable(&state.base.store, &mut tx, dataset).await?;
    let found = found.ok_or_else(Failure::not_found)?;
    if let Caller::User(user) = actor
        && user != found.owner
    {
        return Err(foreign(state, user, dataset));
    }
    // A repeated call reaches the others again, one of which may have been set back to before the deletion.
    shares::first::orphan(state, &mut tx, dataset).await?;
    if !found.is_destroyed {
        store::forget_secret(&mut tx, dataset).await?;
        witnessed::forget(&mut tx, dataset).await?;
        record_destruction(&mut tx, dataset).await?;
        let asked = Asked {
            dataset,
            actor,
            action: "destroy the keys",
        };
        asked.write(&mut tx, true).await?;
    }
    state.base.store.owe_forgetting();
    tx.commit().await?;
    if !state.base.store.forget_deleted().await? {
        tracing::warn!(%dataset, "the destroyed key remains in the database's log for a while");
    }
    Ok(state.base.blobs.delete_folder(&found.folder).await?)
}

/// Appends the destruction of the key to the dataset's ledger. A damaged ledger has no end to append it to.
async fn record_destruction(tx: &mut Tx, dataset: Uuid) -> Result<(), Failure> {
    let mut chain_state = match ledger::chain_state(tx, dataset).await {
        Err(failure) if failure.kind() == ProblemKind::Damaged => {
            tracing::warn!(%dataset, %failure, "a key is destroyed without an entry in the ledger");
            return Ok(());
        }
        read => read?,
    };
    let destroyed = chain_state.append(Act::KeysDestroyed);
    ledger::append(tx, dataset, &destroyed.map_err(ledger::failure)?, None).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_attempt_to_make_the_same_keys_is_refused() {
        let making = InTheMaking::default();
        let [one, other] = [Uuid::from_u128(1), Uuid::from_u128(2)];
        let first = making.begin(one).unwrap();
        let refused = making.clone().begin(one).map(|_| ()).unwrap_err();
        assert_eq!(refused.kind(), ProblemKind::Unavailable);
        assert!(making.begin(other).is_ok());
        drop(first);
        assert!(making.begin(one).is_ok());
    }
}
