//! Holders' uploads: registration, checks of each object on arrival, completion.

mod copies;
mod deletion;
mod objects;
mod registration;

use fhaim_api::upload::{Contribution, Upload, WireLayout};
use fhaim_dp::LadderPlan;
use fhaim_he::Layout;
use fhaim_platform::Failure;
use fhaim_platform::threads::blocking;
use fhaim_protocol::counts::upload::CountsPlan;
use fhaim_protocol::encryption::{Encryption, Form};
use fhaim_protocol::part::PartPlan;
use fhaim_protocol::roster;
use fhaim_protocol::terms::{PlanCore, Terms};
use fhaim_protocol::upload::{Object, UploadPlan};
use uuid::Uuid;

use crate::State;
use crate::problem::Refusal;
use crate::store::uploads as store;

pub(crate) use self::copies::must_be_witnessed;
pub use self::copies::{listing, object};
pub use self::deletion::{delete, finish_deletions, take_back};
pub use self::objects::{complete, discard, missing, objects, put, upload_key};
pub use self::registration::register;
pub use crate::store::uploads::{Kept, Keys, StoredPart, StoredUpload};

/// Number of the contribution of a single holder.
pub const WHOLE: u32 = 0;

/// Returns the plan that follows from an upload's terms.
///
/// # Errors
/// [`Refusal::Terms`].
pub fn plan_core(terms: &Terms) -> Result<PlanCore, Refusal> {
    let plan_core = terms.plan_core();
    plan_core.map_err(|error| Refusal::Terms(error.to_string()))
}

/// Returns the objects of a contribution.
///
/// # Errors
/// [`Refusal::Terms`], also for a layout that is impossible within the holder's record bound.
pub fn part_plan(
    terms: &Terms,
    number: u32,
    layout: Option<WireLayout>,
) -> Result<PartPlan, Refusal> {
    let plan = || {
        let layout = layout.map(|layout| Layout::from_parts(layout.chunks, layout.stride));
        terms.part_plan(number, layout.transpose()?)
    };
    plan().map_err(|error: fhaim_protocol::Error| Refusal::Terms(error.to_string()))
}

/// Returns the objects of a registered contribution.
async fn registered(
    state: &State,
    stored: &StoredUpload,
    number: u32,
) -> Result<PartPlan, Failure> {
    let parts = store::parts(&state.base.store, stored.dataset).await?;
    let part = parts.iter().find(|part| part.number == number);
    let part = part.ok_or_else(Failure::not_found)?;
    // A plan of counts iterates over all pairs of columns, so it must not block an asynchronous thread.
    let (terms, layout) = (stored.terms.clone(), part.layout);
    Ok(blocking(move || part_plan(&terms, number, layout)).await??)
}

/// Returns an upload of any account.
///
/// # Errors
/// [`ProblemKind::NotFound`](fhaim_api::problem::ProblemKind::NotFound).
pub async fn find(state: &State, dataset: Uuid) -> Result<StoredUpload, Failure> {
    let stored = store::find(&state.base.store, dataset).await?;
    stored.ok_or_else(Failure::not_found)
}

/// Returns a user's upload.
///
/// # Errors
/// [`ProblemKind::NotFound`](fhaim_api::problem::ProblemKind::NotFound), also for another account's upload.
pub async fn find_owned(
    state: &State,
    dataset: Uuid,
    owner: Uuid,
) -> Result<StoredUpload, Failure> {
    let stored = find(state, dataset).await?;
    if stored.owner == owner {
        Ok(stored)
    } else {
        Err(foreign(state, owner, dataset))
    }
}

/// Returns an upload of which a user is a holder, and the number of the user's contribution.
///
/// # Errors
/// [`ProblemKind::NotFound`](fhaim_api::problem::ProblemKind::NotFound), also if the user is not a holder.
pub async fn find_held(
    state: &State,
    dataset: Uuid,
    user: Uuid,
) -> Result<(StoredUpload, u32), Failure> {
    let stored = find(state, dataset).await?;
    match number_of(&stored.terms, stored.owner, user) {
        Some(number) => Ok((stored, number)),
        None => Err(foreign(state, user, dataset)),
    }
}

fn foreign(state: &State, user: Uuid, dataset: Uuid) -> Failure {
    Failure::foreign(state.base.service, user, "upload", dataset)
}

/// Returns the number of a user's contribution to a dataset with these terms.
fn number_of(terms: &Terms, owner: Uuid, user: Uuid) -> Option<u32> {
    match &terms.roster {
        Some(_) => terms.part_of(&user.to_string()),
        None => (owner == user).then_some(WHOLE),
    }
}

/// Returns the upload of a user's contribution with this number.
///
/// # Errors
/// [`ProblemKind::NotFound`](fhaim_api::problem::ProblemKind::NotFound), also for the dataset or
/// contribution of another account.
pub async fn find_part(
    state: &State,
    dataset: Uuid,
    user: Uuid,
    contribution: u32,
) -> Result<StoredUpload, Failure> {
    match find_held(state, dataset, user).await? {
        (stored, number) if number == contribution => Ok(stored),
        _ => Err(foreign(state, user, dataset)),
    }
}

/// Returns the public state of an upload.
///
/// # Errors
/// A failure of the store.
pub async fn show(state: &State, stored: &StoredUpload) -> Result<Upload, Failure> {
    let plan_core = plan_core(&stored.terms)?;
    let params = plan_core.parameters().map_err(Failure::internal)?;
    let shape = Shape::new(stored, &plan_core)?;
    let contribution = |part: StoredPart| {
        let layout = part
            .layout
            .map(|layout| Layout::from_parts(layout.chunks, layout.stride));
        let layout = layout.transpose();
        let layout = layout.map_err(|error| Refusal::Terms(error.to_string()))?;
        let form = Form {
            encryption: plan_core.encryption,
            layout,
        };
        let object_bytes = form.polynomial_bytes(params.set()) as u64;
        let polynomials = part.present.saturating_sub(part.keys);
        let keys = form.object_bytes(&params, Object::Keys) as u64;
        Ok(Contribution {
            number: part.number,
            chunks: [0, part.layout.map_or(0, |layout| layout.chunks)],
            columns: [0, part.columns],
            state: part.state,
            objects_present: part.present,
            objects: shape.objects(&part, layout),
            bytes_present: polynomials
                .saturating_mul(object_bytes)
                .saturating_add(part.keys.saturating_mul(keys)),
            object_bytes,
        })
    };
    let parts = store::parts(&state.base.store, stored.dataset).await?;
    let contributions: Result<Vec<_>, Refusal> = parts.into_iter().map(contribution).collect();
    Ok(Upload {
        dataset: stored.dataset,
        layout: stored.layout,
        contributions: contributions?,
    })
}

/// Counts the objects of contributions from their rows. Plans of many holders take long to compute, since each
/// is made from the whole schema, and any of the holders may ask often.
struct Shape {
    ladder: LadderPlan,
    residues: usize,
    encryption: Encryption,
    /// Number of objects of a contribution of counts, which is the same for all holders.
    counts: Option<u64>,
}

impl Shape {
    fn new(stored: &StoredUpload, plan_core: &PlanCore) -> Result<Self, Refusal> {
        let terms = |error: fhaim_protocol::Error| Refusal::Terms(error.to_string());
        let ladder = plan_core.ladder().map_err(terms)?;
        let counts = match stored.terms.contribution {
            roster::ContributionKind::Records => None,
            roster::ContributionKind::Counts => {
                let plan = CountsPlan::new(&plan_core.domain, ladder).map_err(terms)?;
                Some(plan.under(plan_core.encryption).object_count() as u64)
            }
        };
        Ok(Self {
            ladder,
            residues: plan_core.set.plaintext_moduli.len(),
            encryption: plan_core.encryption,
            counts,
        })
    }

    fn objects(&self, part: &StoredPart, layout: Option<Layout>) -> u64 {
        let Some(layout) = layout else {
            return self.counts.unwrap_or_default();
        };
        let plan = UploadPlan {
            columns: part.columns,
            layout,
            ladder: self.ladder,
            residues: self.residues,
            encryption: self.encryption,
        };
        plan.object_count() as u64
    }
}
