//! What holders send: registered, checked object by object on arrival, then sealed.

mod deletion;
mod objects;
mod registration;

use fhaim_api::token::Service;
use fhaim_api::upload::{Contribution, Upload, WireLayout};
use fhaim_he::Layout;
use fhaim_platform::Failure;
use fhaim_protocol::terms::{Outline, Terms};
use fhaim_protocol::upload::{UploadPlan, object_bytes};
use uuid::Uuid;

use crate::State;
use crate::problem::Refusal;
use crate::store::uploads as store;

pub use self::deletion::{delete, finish_deletions};
pub use self::objects::{complete, complete_manifest, discard, missing, objects, put};
pub use self::registration::{check_layout, register};
pub use crate::store::uploads::{Kept, KeyDigests, Stored};

/// The one contribution that a dataset has today.
pub const WHOLE: u32 = 0;

/// What follows from an upload's terms, and the objects that it has.
///
/// # Errors
/// [`Refusal::Terms`].
pub fn plans(stored: &Stored) -> Result<(Outline, UploadPlan), Refusal> {
    outline(&stored.terms, stored.layout)
}

fn outline(terms: &Terms, layout: WireLayout) -> Result<(Outline, UploadPlan), Refusal> {
    let plans = || {
        let outline = terms.outline()?;
        let upload = UploadPlan {
            columns: outline.domain.columns(),
            layout: Layout::from_parts(layout.chunks, layout.stride)?,
            ladder: outline.ladder()?,
            residues: outline.set.plaintext_moduli.len(),
        };
        Ok((outline, upload))
    };
    plans().map_err(|error: fhaim_protocol::Error| Refusal::Terms(error.to_string()))
}

/// An upload, whoever it belongs to.
///
/// # Errors
/// [`ProblemKind::NotFound`].
pub async fn find(state: &State, dataset: Uuid) -> Result<Stored, Failure> {
    let stored = store::find(&state.base.store, dataset).await?;
    stored.ok_or_else(Failure::not_found)
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
        Err(Failure::foreign(
            Service::Computation,
            owner,
            "upload",
            dataset,
        ))
    }
}

/// What may be seen of an upload.
///
/// # Errors
/// A failure of the store.
pub async fn show(state: &State, stored: &Stored) -> Result<Upload, Failure> {
    let (plan, upload_plan) = plans(stored)?;
    let object_bytes = object_bytes(&plan.set) as u64;
    let contribution = |part: store::Part| Contribution {
        number: part.number,
        chunks: part.chunks,
        columns: part.columns,
        state: part.state,
        objects_present: part.present,
        objects: upload_plan.object_count() as u64,
        bytes_present: part.present.saturating_mul(object_bytes),
        object_bytes,
    };
    let parts = store::parts(&state.base.store, stored.dataset).await?;
    Ok(Upload {
        dataset: stored.dataset,
        layout: stored.layout,
        contributions: parts.into_iter().map(contribution).collect(),
    })
}
