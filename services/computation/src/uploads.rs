//! What holders send: registered, checked object by object on arrival, then sealed.

use bytes::Bytes;
use fhaim_api::Digest;
use fhaim_api::problem::ProblemKind;
use fhaim_api::upload::{
    Complete, Contribution, Missing, NewUpload, Upload, UploadState, WireLayout,
};
use fhaim_domain::counted;
use fhaim_he::{EvaluationKeys, Layout, Parameters, PublicKey};
use fhaim_platform::peer::{Body, PeerError};
use fhaim_platform::store::{Row, Tx, is_duplicate};
use fhaim_platform::{Failure, clock};
use fhaim_protocol::terms::{Plan, Terms};
use fhaim_protocol::upload::{Object, UploadPlan, decode_object, object_bytes};
use reqwest::Method;
use sha2::{Digest as _, Sha256};
use sqlx::Row as _;
use std::collections::BTreeMap;
use uuid::Uuid;

use crate::State;

/// The one contribution that a dataset has today.
pub const WHOLE: u32 = 0;

/// An upload as it is stored.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The dataset.
    pub dataset: Uuid,
    /// Its owner.
    pub owner: Uuid,
    /// Its terms.
    pub terms: Terms,
    /// What is told of the number of records.
    pub layout: WireLayout,
    /// Where its objects and keys are.
    pub folder: String,
}

impl Stored {
    fn from_row(row: &Row) -> Result<Self, Failure> {
        let text = |name: &str| row.try_get::<String, _>(name);
        let size =
            |name: &str| usize::try_from(row.try_get::<i64, _>(name)?).map_err(Failure::internal);
        Ok(Self {
            dataset: text("dataset")?.parse().map_err(Failure::internal)?,
            owner: text("owner")?.parse().map_err(Failure::internal)?,
            terms: serde_json::from_str(&text("terms")?)?,
            layout: WireLayout {
                chunks: size("chunks")?,
                stride: size("stride")?,
            },
            folder: text("folder")?,
        })
    }

    /// The blob that holds an object.
    pub fn blob(&self, contribution: u32, object: Object) -> String {
        format!("{}/{contribution}/{object}", self.folder)
    }

    /// What the plan of the objects follows from.
    ///
    /// # Errors
    /// [`ProblemKind::Invalid`] with the reason.
    pub async fn plans(&self) -> Result<(Plan, UploadPlan), Failure> {
        plans(self.terms.clone(), self.layout).await
    }
}

/// The plan that follows from terms, and the objects of an upload with a layout.
async fn plans(terms: Terms, layout: WireLayout) -> Result<(Plan, UploadPlan), Failure> {
    let work = move || {
        let plan = terms.plan()?;
        let upload = UploadPlan {
            columns: plan.job.domain.columns(),
            layout: Layout::from_parts(layout.chunks, layout.stride)?,
            ladder: plan.ladder()?,
            residues: plan.set.plaintext_moduli.len(),
        };
        Ok((plan, upload))
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(Failure::internal)?
        .map_err(|error: fhaim_protocol::Error| {
            Failure::new(ProblemKind::Invalid, error.to_string())
        })
}

/// An upload, whoever it belongs to.
///
/// # Errors
/// [`ProblemKind::NotFound`].
pub async fn find(state: &State, dataset: Uuid) -> Result<Stored, Failure> {
    let row = sqlx::query("SELECT * FROM uploads WHERE dataset = $1")
        .bind(dataset.to_string())
        .fetch_optional(state.base.store.pool())
        .await?;
    Stored::from_row(&row.ok_or_else(Failure::not_found)?)
}

/// A user's upload.
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

/// Registers an upload; the same again changes nothing. Whether it was registered now.
///
/// # Errors
/// [`ProblemKind::Conflict`] where it was registered otherwise, [`ProblemKind::NotFound`] where
/// it is someone else's or has no keys, [`ProblemKind::Invalid`] for terms that cannot be met.
pub async fn register(
    state: &State,
    dataset: Uuid,
    owner: Uuid,
    new: NewUpload,
) -> Result<(Upload, bool), Failure> {
    let terms = new.terms.0;
    let (plan, upload_plan) = plans(terms.clone(), new.layout).await?;
    check_layout(&plan, &upload_plan)?;
    check_size(&plan, &upload_plan, state.upload_bytes)?;
    match find_owned(state, dataset, owner).await {
        Ok(stored) => return existing(state, &stored, &terms, new.layout).await,
        Err(failure) if failure.kind() == ProblemKind::NotFound => {}
        Err(failure) => return Err(failure),
    }
    let stored = Stored {
        dataset,
        owner,
        terms,
        layout: new.layout,
        folder: format!("uploads/{dataset}/{}", Uuid::new_v4()),
    };
    fetch_keys(state, &stored, &plan).await?;
    if insert(state, &stored, &upload_plan).await? {
        return Ok((show(state, &stored).await?, true));
    }
    state.base.blobs.delete_folder(&stored.folder).await?;
    let other = find_owned(state, dataset, owner).await?;
    existing(state, &other, &stored.terms, stored.layout).await
}

async fn existing(
    state: &State,
    stored: &Stored,
    terms: &Terms,
    layout: WireLayout,
) -> Result<(Upload, bool), Failure> {
    if stored.terms != *terms || stored.layout != layout {
        let detail = "the upload was registered with other terms or another layout";
        return Err(Failure::new(ProblemKind::Conflict, detail));
    }
    Ok((show(state, stored).await?, false))
}

fn check_layout(plan: &Plan, upload: &UploadPlan) -> Result<(), Failure> {
    let least = upload.layout.chunks().saturating_sub(1) * upload.layout.stride();
    if least as u64 >= plan.job.record_bound {
        let detail = format!(
            "{} chunks of {} records are more than the record bound of {}",
            upload.layout.chunks(),
            upload.layout.stride(),
            plan.job.record_bound
        );
        return Err(Failure::new(ProblemKind::Invalid, detail));
    }
    Ok(())
}

/// Refuses an upload that would not fit into memory when it is computed on.
fn check_size(plan: &Plan, upload: &UploadPlan, most: u64) -> Result<(), Failure> {
    let bytes = (upload.object_count() as u64).saturating_mul(object_bytes(&plan.set) as u64);
    if bytes <= most {
        return Ok(());
    }
    let detail = format!(
        "the upload would take {} MB, and this service accepts {} MB: {} of {} and {} \
         of noise; use fewer categories or bins, or fewer records",
        bytes >> 20,
        most >> 20,
        counted(upload.columns, "column"),
        counted(upload.layout.chunks(), "chunk"),
        upload.ladder.vectors()
    );
    Err(Failure::new(ProblemKind::Invalid, detail))
}

/// Fetches the dataset's public and evaluation keys, and checks that they are what they say.
async fn fetch_keys(state: &State, stored: &Stored, plan: &Plan) -> Result<(), Failure> {
    let dataset = stored.dataset;
    let fetch = async |name: &str| {
        let path = format!("/v1/datasets/{dataset}/{name}");
        let keys = state.crypto.bytes(Method::GET, &path, Body::Empty).await;
        keys.map_err(|error| match error {
            PeerError::Problem { problem, .. } if problem.kind == ProblemKind::NotFound => {
                let detail = "the crypto service has no keys of this dataset: make them first";
                Failure::new(ProblemKind::NotFound, detail)
            }
            other => other.into(),
        })
    };
    let public = fetch("public-key").await?;
    let evaluation = fetch("evaluation-keys").await?;
    let params = plan.parameters().map_err(Failure::internal)?;
    let (public_bytes, evaluation_bytes) = (public.clone(), evaluation.clone());
    let check = move || {
        PublicKey::from_bytes(&params, &public_bytes)?;
        EvaluationKeys::from_bytes(&params, &evaluation_bytes)?;
        Ok(())
    };
    tokio::task::spawn_blocking(check)
        .await
        .map_err(Failure::internal)?
        .map_err(|error: fhaim_he::Error| Failure::internal(error))?;
    state
        .base
        .blobs
        .put(&format!("{}/public", stored.folder), public)
        .await?;
    let name = format!("{}/evaluation", stored.folder);
    Ok(state.base.blobs.put(&name, evaluation).await?)
}

async fn insert(state: &State, stored: &Stored, plan: &UploadPlan) -> Result<bool, Failure> {
    let number = |n: usize| i64::try_from(n).map_err(Failure::internal);
    let dataset = stored.dataset.to_string();
    let mut tx = state.base.store.begin().await?;
    let inserted = sqlx::query(
        "INSERT INTO uploads (dataset, owner, terms, chunks, stride, folder, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(&dataset)
    .bind(stored.owner.to_string())
    .bind(serde_json::to_string(&stored.terms)?)
    .bind(number(stored.layout.chunks)?)
    .bind(number(stored.layout.stride)?)
    .bind(&stored.folder)
    .bind(clock::now())
    .execute(&mut *tx)
    .await;
    match inserted {
        Err(error) if is_duplicate(&error) => return Ok(false),
        other => other?,
    };
    sqlx::query(
        "INSERT INTO contributions (dataset, number, first_chunk, chunks, first_column, columns, \
         state) VALUES ($1, $2, 0, $3, 0, $4, 'open')",
    )
    .bind(&dataset)
    .bind(i64::from(WHOLE))
    .bind(number(plan.layout.chunks())?)
    .bind(number(plan.columns)?)
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(true)
}

/// What may be seen of an upload.
///
/// # Errors
/// A failure of the store.
pub async fn show(state: &State, stored: &Stored) -> Result<Upload, Failure> {
    let (plan, upload_plan) = stored.plans().await?;
    let dataset = stored.dataset.to_string();
    let rows = sqlx::query("SELECT * FROM contributions WHERE dataset = $1 ORDER BY number")
        .bind(&dataset)
        .fetch_all(state.base.store.pool())
        .await?;
    let mut contributions = Vec::with_capacity(rows.len());
    for row in &rows {
        let number: i64 = row.try_get("number")?;
        let present: i64 = sqlx::query(
            "SELECT COUNT(*) AS n FROM objects WHERE dataset = $1 AND contribution = $2",
        )
        .bind(&dataset)
        .bind(number)
        .fetch_one(state.base.store.pool())
        .await?
        .try_get("n")?;
        let size =
            |name: &str| usize::try_from(row.try_get::<i64, _>(name)?).map_err(Failure::internal);
        let object_bytes = object_bytes(&plan.set) as u64;
        contributions.push(Contribution {
            number: u32::try_from(number).map_err(Failure::internal)?,
            chunks: [size("first_chunk")?, size("chunks")?],
            columns: [size("first_column")?, size("columns")?],
            state: upload_state(row)?,
            objects_present: present.unsigned_abs(),
            objects: upload_plan.object_count() as u64,
            bytes_present: present.unsigned_abs().saturating_mul(object_bytes),
            object_bytes,
        });
    }
    Ok(Upload {
        dataset: stored.dataset,
        layout: stored.layout,
        contributions,
    })
}

fn upload_state(row: &Row) -> Result<UploadState, Failure> {
    let state: String = row.try_get("state")?;
    Ok(match state.as_str() {
        "complete" => UploadState::Complete,
        _ => UploadState::Open,
    })
}

/// The state of a contribution, its row locked.
async fn lock(
    state: &State,
    tx: &mut Tx,
    dataset: Uuid,
    contribution: u32,
) -> Result<UploadState, Failure> {
    let select = state
        .base
        .store
        .locking("SELECT state FROM contributions WHERE dataset = $1 AND number = $2");
    let row = sqlx::query(select)
        .bind(dataset.to_string())
        .bind(i64::from(contribution))
        .fetch_optional(&mut **tx)
        .await?;
    upload_state(&row.ok_or_else(Failure::not_found)?)
}

/// Whether every contribution of a dataset is complete.
///
/// # Errors
/// A failure of the store.
pub async fn is_complete(state: &State, dataset: Uuid) -> Result<bool, Failure> {
    let row = sqlx::query(
        "SELECT COUNT(*) AS n FROM contributions WHERE dataset = $1 AND state <> 'complete'",
    )
    .bind(dataset.to_string())
    .fetch_one(state.base.store.pool())
    .await?;
    Ok(row.try_get::<i64, _>("n")? == 0)
}

/// Digests of the objects that are there, by name.
async fn present(
    state: &State,
    dataset: Uuid,
    contribution: u32,
) -> Result<BTreeMap<String, Digest>, Failure> {
    let rows =
        sqlx::query("SELECT name, digest FROM objects WHERE dataset = $1 AND contribution = $2")
            .bind(dataset.to_string())
            .bind(i64::from(contribution))
            .fetch_all(state.base.store.pool())
            .await?;
    let entry = |row: &Row| {
        let digest: String = row.try_get("digest")?;
        let digest = digest.parse().map_err(Failure::internal)?;
        Ok((row.try_get("name")?, digest))
    };
    rows.iter().map(entry).collect()
}

/// The objects that are still missing.
///
/// # Errors
/// [`ProblemKind::NotFound`] for a contribution that is not there.
pub async fn missing(
    state: &State,
    stored: &Stored,
    contribution: u32,
) -> Result<Missing, Failure> {
    must_be_whole(contribution)?;
    let (_, plan) = stored.plans().await?;
    let present = present(state, stored.dataset, contribution).await?;
    let names = plan.objects().map(|object| object.name());
    let objects = names.filter(|name| !present.contains_key(name)).collect();
    Ok(Missing { objects })
}

fn must_be_whole(contribution: u32) -> Result<(), Failure> {
    if contribution == WHOLE {
        Ok(())
    } else {
        Err(Failure::not_found())
    }
}

/// Takes an object in: its bytes must be what their digest says and decode as ciphertexts of the
/// dataset's parameters. Before the upload is complete an object may be sent again, also with
/// other bytes: nothing has been computed from it.
///
/// # Errors
/// [`ProblemKind::DigestMismatch`], [`ProblemKind::Invalid`] with the rule that the bytes break,
/// [`ProblemKind::NotFound`] for a name that is none of the upload's, [`ProblemKind::Conflict`]
/// once it is complete.
pub async fn put(
    state: &State,
    stored: &Stored,
    contribution: u32,
    name: &str,
    digest: Digest,
    body: Bytes,
) -> Result<(), Failure> {
    must_be_whole(contribution)?;
    let object: Object = name.parse().map_err(|_| Failure::not_found())?;
    let (plan, upload_plan) = stored.plans().await?;
    let params = plan.parameters().map_err(Failure::internal)?;
    let bytes = check(params, upload_plan, object, digest, body).await?;
    let mut tx = state.base.store.begin().await?;
    if lock(state, &mut tx, stored.dataset, contribution).await? == UploadState::Complete {
        return Err(Failure::new(
            ProblemKind::Conflict,
            "the upload is complete",
        ));
    }
    drop(tx);
    state
        .base
        .blobs
        .put(&stored.blob(contribution, object), bytes)
        .await?;
    let mut tx = state.base.store.begin().await?;
    if lock(state, &mut tx, stored.dataset, contribution).await? == UploadState::Complete {
        return Err(Failure::new(
            ProblemKind::Conflict,
            "the upload is complete",
        ));
    }
    sqlx::query(
        "INSERT INTO objects (dataset, contribution, name, digest) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (dataset, contribution, name) DO UPDATE SET digest = excluded.digest",
    )
    .bind(stored.dataset.to_string())
    .bind(i64::from(contribution))
    .bind(name)
    .bind(digest.to_string())
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    metrics::counter!("objects_received_total").increment(1);
    Ok(())
}

async fn check(
    params: Parameters,
    plan: UploadPlan,
    object: Object,
    digest: Digest,
    body: Bytes,
) -> Result<Bytes, Failure> {
    if !plan.contains(object) {
        return Err(Failure::not_found());
    }
    let work = move || {
        if Digest::of(&body) != digest {
            return Err(Failure::bare(ProblemKind::DigestMismatch));
        }
        match decode_object(&params, &plan, object, &body) {
            Ok(_) => Ok(body),
            Err(error) => Err(Failure::new(ProblemKind::Invalid, error.to_string())),
        }
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(Failure::internal)?
}

/// Seals an upload whose manifest is what its holder says.
///
/// # Errors
/// [`ProblemKind::Conflict`] where objects are missing, [`ProblemKind::DigestMismatch`] where
/// the manifest is another.
pub async fn complete(
    state: &State,
    stored: &Stored,
    contribution: u32,
    complete: &Complete,
) -> Result<Upload, Failure> {
    must_be_whole(contribution)?;
    let missing = missing(state, stored, contribution).await?.objects;
    if let Some(first) = missing.first() {
        let lacks = counted(missing.len(), "object");
        let detail = format!("the upload lacks {lacks}, {first} the first");
        return Err(Failure::new(ProblemKind::Conflict, detail));
    }
    let mut tx = state.base.store.begin().await?;
    lock(state, &mut tx, stored.dataset, contribution).await?;
    let manifest = manifest(&present(state, stored.dataset, contribution).await?);
    if manifest != complete.manifest {
        let detail = "the objects here are not those of the manifest";
        return Err(Failure::new(ProblemKind::DigestMismatch, detail));
    }
    sqlx::query("UPDATE contributions SET state = 'complete' WHERE dataset = $1 AND number = $2")
        .bind(stored.dataset.to_string())
        .bind(i64::from(contribution))
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    show(state, stored).await
}

fn manifest(objects: &BTreeMap<String, Digest>) -> Digest {
    let mut hash = Sha256::new();
    for (name, digest) in objects {
        hash.update(format!("{name} {digest}\n"));
    }
    Digest(hash.finalize().into())
}

/// Deletes an upload: rows, objects and keys.
///
/// # Errors
/// A failure of the store.
pub async fn delete(state: &State, stored: &Stored) -> Result<(), Failure> {
    let dataset = stored.dataset.to_string();
    let mut tx = state.base.store.begin().await?;
    for statement in [
        "DELETE FROM batches WHERE dataset = $1",
        "DELETE FROM jobs WHERE dataset = $1",
        "DELETE FROM objects WHERE dataset = $1",
        "DELETE FROM contributions WHERE dataset = $1",
        "DELETE FROM uploads WHERE dataset = $1",
    ] {
        sqlx::query(statement)
            .bind(&dataset)
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await?;
    state.datasets.forget(stored.dataset);
    Ok(state.base.blobs.delete_folder(&stored.folder).await?)
}
