//! Key sets: made once, for good; the secret key sealed; destroyed with the dataset.

use bytes::Bytes;
use fhaim_api::Digest;
use fhaim_api::dataset::WireTerms;
use fhaim_api::keys::KeySet;
use fhaim_api::problem::ProblemKind;
use fhaim_he::{Parameters, SecretKey};
use fhaim_platform::store::{Row, Tx, is_duplicate};
use fhaim_platform::token::Caller;
use fhaim_platform::{Failure, clock};
use fhaim_protocol::terms::{Plan, Terms};
use rand::TryRngCore;
use rand::rngs::OsRng;
use sqlx::Row as _;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::State;
use crate::audit::Act;
use crate::ledger;

/// A key set as it is stored.
#[derive(Debug)]
pub struct Stored {
    /// The dataset.
    pub dataset: Uuid,
    /// Its owner.
    pub owner: Uuid,
    /// What was fixed.
    pub terms: Terms,
    /// Where its public and evaluation keys are.
    folder: String,
    /// The secret key, sealed; absent once destroyed.
    secret: Option<Vec<u8>>,
    public_key: Digest,
    evaluation_keys: Digest,
    created_at: i64,
}

impl Stored {
    fn from_row(row: &Row) -> Result<Self, Failure> {
        let text = |name: &str| row.try_get::<String, _>(name);
        let digest = |name: &str| text(name)?.parse().map_err(Failure::internal);
        Ok(Self {
            dataset: text("dataset")?.parse().map_err(Failure::internal)?,
            owner: text("owner")?.parse().map_err(Failure::internal)?,
            terms: serde_json::from_str(&text("terms")?)?,
            folder: text("folder")?,
            secret: row.try_get("secret")?,
            public_key: digest("public_key")?,
            evaluation_keys: digest("evaluation_keys")?,
            created_at: row.try_get("created_at")?,
        })
    }

    /// Whether the secret key is gone.
    pub fn is_destroyed(&self) -> bool {
        self.secret.is_none()
    }

    /// The secret key.
    ///
    /// # Errors
    /// [`ProblemKind::NotFound`] once destroyed; a key that cannot be opened.
    pub fn secret(&self, state: &State, params: &Parameters) -> Result<SecretKey, Failure> {
        let sealed = self.secret.as_ref().ok_or_else(Failure::not_found)?;
        let bytes = state.base.sealer.open(&context(self.dataset), sealed)?;
        SecretKey::from_bytes(params, &bytes).map_err(Failure::internal)
    }

    async fn describe(self, state: &State, plan: &Plan) -> Result<KeySet, Failure> {
        let runs = ledger::runs(state, self.dataset).await?;
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
            created_at: clock::date(self.created_at),
        })
    }
}

fn context(dataset: Uuid) -> String {
    format!("secret key of {dataset}")
}

/// A key set, whoever it belongs to.
///
/// # Errors
/// [`ProblemKind::NotFound`].
pub async fn find(state: &State, dataset: Uuid) -> Result<Stored, Failure> {
    let row = sqlx::query("SELECT * FROM key_sets WHERE dataset = $1")
        .bind(dataset.to_string())
        .fetch_optional(state.base.store.pool())
        .await?;
    Stored::from_row(&row.ok_or_else(Failure::not_found)?)
}

/// A key set in a transaction, its row locked.
///
/// # Errors
/// [`ProblemKind::NotFound`].
pub async fn lock(state: &State, tx: &mut Tx, dataset: Uuid) -> Result<Stored, Failure> {
    let select = state
        .base
        .store
        .locking("SELECT * FROM key_sets WHERE dataset = $1");
    let row = sqlx::query(select)
        .bind(dataset.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    Stored::from_row(&row.ok_or_else(Failure::not_found)?)
}

/// A user's key set.
///
/// # Errors
/// [`ProblemKind::NotFound`], also where it is someone else's.
pub async fn find_owned(state: &State, dataset: Uuid, owner: Uuid) -> Result<Stored, Failure> {
    let stored = find(state, dataset).await?;
    if stored.owner == owner {
        Ok(stored)
    } else {
        Err(Failure::not_found())
    }
}

/// What a user may see of a key set.
///
/// # Errors
/// [`ProblemKind::NotFound`].
pub async fn show(state: &State, dataset: Uuid, owner: Uuid) -> Result<KeySet, Failure> {
    let stored = find_owned(state, dataset, owner).await?;
    if stored.is_destroyed() {
        return Err(Failure::not_found());
    }
    let plan = plan(stored.terms.clone()).await?;
    stored.describe(state, &plan).await
}

/// What follows from terms.
///
/// # Errors
/// [`ProblemKind::Invalid`] with the reason.
pub async fn plan(terms: Terms) -> Result<Plan, Failure> {
    tokio::task::spawn_blocking(move || terms.plan())
        .await
        .map_err(Failure::internal)?
        .map_err(|error| Failure::new(ProblemKind::Invalid, error.to_string()))
}

/// A key set just made, before it is stored.
struct Fresh {
    secret: Zeroizing<Vec<u8>>,
    public_key: Vec<u8>,
    evaluation_keys: Vec<u8>,
}

fn make(plan: &Plan) -> Result<Fresh, fhaim_protocol::Error> {
    let mut rng = OsRng.unwrap_err();
    let params = plan.parameters()?;
    let secret = SecretKey::random(&params, &mut rng)?;
    Ok(Fresh {
        public_key: secret.public_key(&mut rng)?.to_bytes()?,
        evaluation_keys: secret.evaluation_keys(&mut rng)?.to_bytes(),
        secret: secret.to_bytes(),
    })
}

/// Makes a dataset's key set; the same again changes nothing. Whether it was made now.
///
/// # Errors
/// [`ProblemKind::Conflict`] where it was made with other terms, [`ProblemKind::NotFound`] where
/// it is someone else's or destroyed, [`ProblemKind::Invalid`] for terms that cannot be met.
pub async fn create(
    state: &State,
    dataset: Uuid,
    owner: Uuid,
    terms: Terms,
) -> Result<(KeySet, bool), Failure> {
    let plan = plan(terms.clone()).await?;
    match find_owned(state, dataset, owner).await {
        Ok(stored) => return existing(state, stored, &terms, &plan).await,
        Err(failure) if failure.kind() == ProblemKind::NotFound => {}
        Err(failure) => return Err(failure),
    }
    let made = plan.clone();
    let fresh = tokio::task::spawn_blocking(move || make(&made))
        .await
        .map_err(Failure::internal)?
        .map_err(Failure::internal)?;
    let stored = Stored {
        dataset,
        owner,
        terms: terms.clone(),
        folder: format!("keys/{dataset}/{}", Uuid::new_v4()),
        secret: Some(state.base.sealer.seal(&context(dataset), &fresh.secret)?),
        public_key: Digest::of(&fresh.public_key),
        evaluation_keys: Digest::of(&fresh.evaluation_keys),
        created_at: clock::now(),
    };
    let public = format!("{}/public", stored.folder);
    state
        .base
        .blobs
        .put(&public, fresh.public_key.into())
        .await?;
    let evaluation = format!("{}/evaluation", stored.folder);
    let keys = fresh.evaluation_keys.into();
    state.base.blobs.put(&evaluation, keys).await?;
    if insert(state, &stored).await? {
        return Ok((stored.describe(state, &plan).await?, true));
    }
    // Someone else was faster; their key set stands.
    state.base.blobs.delete_folder(&stored.folder).await?;
    let stored = find_owned(state, dataset, owner).await?;
    existing(state, stored, &terms, &plan).await
}

async fn existing(
    state: &State,
    stored: Stored,
    terms: &Terms,
    plan: &Plan,
) -> Result<(KeySet, bool), Failure> {
    if stored.is_destroyed() {
        return Err(Failure::not_found());
    }
    if stored.terms != *terms {
        let detail = "the dataset's keys were made with other terms, and terms cannot change";
        return Err(Failure::new(ProblemKind::Conflict, detail));
    }
    Ok((stored.describe(state, plan).await?, false))
}

async fn insert(state: &State, stored: &Stored) -> Result<bool, Failure> {
    let mut tx = state.base.store.begin().await?;
    let inserted = sqlx::query(
        "INSERT INTO key_sets (dataset, owner, terms, folder, secret, public_key, \
         evaluation_keys, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(stored.dataset.to_string())
    .bind(stored.owner.to_string())
    .bind(serde_json::to_string(&stored.terms)?)
    .bind(&stored.folder)
    .bind(&stored.secret)
    .bind(stored.public_key.to_string())
    .bind(stored.evaluation_keys.to_string())
    .bind(stored.created_at)
    .execute(&mut *tx)
    .await;
    match inserted {
        Err(error) if is_duplicate(&error) => return Ok(false),
        other => other?,
    };
    let act = Act {
        dataset: stored.dataset,
        actor: Caller::User(stored.owner),
        action: "make the key set",
    };
    act.write(&mut tx, true).await?;
    tx.commit().await?;
    Ok(true)
}

/// Which of a key set's public parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The key to encrypt under.
    Public,
    /// The keys to compute with.
    Evaluation,
}

/// The bytes of a public part.
///
/// # Errors
/// [`ProblemKind::NotFound`] once destroyed.
pub async fn part(state: &State, stored: &Stored, part: Part) -> Result<Bytes, Failure> {
    if stored.is_destroyed() {
        return Err(Failure::not_found());
    }
    let name = match part {
        Part::Public => "public",
        Part::Evaluation => "evaluation",
    };
    Ok(state
        .base
        .blobs
        .get(&format!("{}/{name}", stored.folder))
        .await?)
}

/// Destroys a dataset's keys. Its ledger and audit log stay.
///
/// # Errors
/// [`ProblemKind::NotFound`].
pub async fn destroy(state: &State, dataset: Uuid, owner: Uuid) -> Result<(), Failure> {
    find_owned(state, dataset, owner).await?;
    let mut tx = state.base.store.begin().await?;
    let stored = lock(state, &mut tx, dataset).await?;
    if !stored.is_destroyed() {
        sqlx::query("UPDATE key_sets SET secret = NULL WHERE dataset = $1")
            .bind(dataset.to_string())
            .execute(&mut *tx)
            .await?;
        let act = Act {
            dataset,
            actor: Caller::User(owner),
            action: "destroy the keys",
        };
        act.write(&mut tx, true).await?;
    }
    tx.commit().await?;
    Ok(state.base.blobs.delete_folder(&stored.folder).await?)
}
