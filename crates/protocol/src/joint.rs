//! Joins several holders' uploads into one, on which the computation service computes.
//!
//! Each holder of records has its own record chunks, with all columns. Each holder of columns has
//! the columns of its attributes, in all chunks. Every holder uploads a whole noise ladder of the
//! common plan. When a page is sealed, the noise of all holders at its positions is added, so that
//! a release has the sum of it. Each upload is under its own upload key.

use crate::Error;
use crate::encryption::{Encryption, NO_SUCH_OBJECT, OTHER_KEY, Payload};
use crate::noise::{EncryptedLadder, NoiseObjects};
use crate::upload::{Object, ReceivedUpload, UploadPlan};
use fhaim_domain::Domain;
use fhaim_he::{
    Columns, EvaluationKeys, JointTable, ProductKey, Rectangle, RosterKeys, RosterShape,
    UploadSwitchKeys,
};
use fhaim_release::Holders;
use std::sync::Arc;

/// One holder's upload without its noise: its shape, and its table in any store.
#[derive(Clone, Debug)]
pub struct UploadedPart {
    /// The public shape of this holder's objects.
    pub plan: UploadPlan,
    /// The one-hot columns.
    pub table: Arc<dyn Columns>,
}

/// The switching keys that bring uploads under the dataset's key.
#[derive(Clone, Debug)]
pub enum SwitchKeys<'a> {
    /// Those of a sole holder, from its upload.
    Own(Arc<UploadSwitchKeys>),
    /// Those of a roster, made by the key services.
    Roster(&'a RosterKeys),
}

impl<'a> SwitchKeys<'a> {
    /// Reads a sole holder's keys from its upload, with `get`.
    ///
    /// # Errors
    /// Errors of `get`; [`Error::Object`] for an object of another kind.
    pub fn own(get: impl FnMut(Object) -> Result<Payload, Error>) -> Result<Self, Error> {
        let keys = Encryption::OwnKey.keys(get)?;
        keys.map(Self::Own).ok_or(NO_SUCH_OBJECT)
    }

    /// Returns the switching keys of a dataset with this roster, from its evaluation keys.
    ///
    /// # Errors
    /// [`Error::Object`] if the evaluation keys are for uploads of another roster.
    pub fn of_roster(keys: &'a EvaluationKeys, shape: RosterShape) -> Result<Self, Error> {
        let roster = keys.roster().filter(|roster| roster.shape() == shape);
        roster.map(Self::Roster).ok_or(OTHER_ROSTER)
    }

    /// Returns the keys of each holder, in the order of the roster.
    ///
    /// # Errors
    /// [`Error::Object`] if the number of holders is not `holders`.
    pub(crate) fn of_each(&self, holders: usize) -> Result<Vec<Arc<UploadSwitchKeys>>, Error> {
        match self {
            Self::Own(keys) if holders == 1 => Ok(vec![keys.clone()]),
            Self::Own(_) => Err(OTHER_ROSTER),
            Self::Roster(roster) if roster.shape().holders() != holders => Err(OTHER_ROSTER),
            Self::Roster(roster) => {
                let keys = (0..holders).map(|holder| roster.upload(holder).cloned());
                keys.collect::<Option<_>>().ok_or(OTHER_ROSTER)
            }
        }
    }

    /// Returns a sole holder's keys, for the evaluator.
    fn into_own(self) -> Option<Arc<UploadSwitchKeys>> {
        match self {
            Self::Own(keys) => Some(keys),
            Self::Roster(_) => None,
        }
    }
}

/// The error for keys and uploads that do not belong together.
const OTHER_ROSTER: Error = Error::Object("the dataset's keys are for another roster");

/// The records of all holders, as one upload.
#[derive(Clone, Debug)]
pub struct JoinedUpload {
    /// Public shape of the whole.
    pub plan: UploadPlan,
    /// The one-hot columns.
    pub table: Arc<dyn Columns>,
    /// Noise for all future releases.
    pub ladder: EncryptedLadder,
    /// A sole holder's switching keys. The keys of a roster are part of the evaluation keys.
    pub own: Option<Arc<UploadSwitchKeys>>,
}

/// Joins the contributions of all holders, in the order of the roster. The noise is not copied.
///
/// # Errors
/// [`Error::Object`] if the number of contributions is not the number of holders, if ladders differ
/// in size, if a contribution is not under its holder's upload key, and for keys of another roster.
/// [`Error::Encryption`] for parts that leave a gap, overlap, or have other rows than each other.
pub fn join(
    domain: &Domain,
    holders: &Holders,
    contributions: Vec<UploadedPart>,
    keys: SwitchKeys<'_>,
    noise: Arc<dyn NoiseObjects>,
) -> Result<JoinedUpload, Error> {
    let plans: Vec<UploadPlan> = contributions.iter().map(|part| part.plan).collect();
    let count = plans.len();
    let first = *plans
        .first()
        .ok_or(Error::Object("a dataset needs at least one holder"))?;
    if count != holders.count() as usize {
        return Err(Error::Object("the roster has another number of holders"));
    }
    if plans.iter().any(|plan| plan.ladder != first.ladder) {
        return Err(Error::Object("a holder's noise ladder has another size"));
    }
    let of_each = keys.of_each(count)?;
    for (part, keys) in contributions.iter().zip(&of_each) {
        let own = ProductKey::Upload(keys.id());
        if part
            .table
            .sections()
            .iter()
            .any(|section| section.key != own)
        {
            return Err(OTHER_KEY);
        }
    }
    let joint = JointTable::new(
        domain.columns(),
        rectangles(domain, holders, contributions)?,
    )?;
    let plan = UploadPlan {
        columns: domain.columns(),
        layout: joint.layout(),
        ..first
    };
    Ok(JoinedUpload {
        plan,
        table: Arc::new(joint),
        ladder: EncryptedLadder::new(plan.ladder, of_each, noise),
        own: keys.into_own(),
    })
}

/// Returns the place of each holder's part in the whole table.
fn rectangles(
    domain: &Domain,
    holders: &Holders,
    contributions: Vec<UploadedPart>,
) -> Result<Vec<Rectangle>, Error> {
    let mut first_chunk = 0;
    let mut rectangles = Vec::with_capacity(contributions.len());
    for (holder, part) in (0..).zip(contributions) {
        if part.plan.columns != part.table.count() || part.plan.layout != part.table.layout() {
            return Err(Error::Object("the plan does not fit this table"));
        }
        rectangles.push(Rectangle {
            first_chunk,
            columns: columns_of(domain, holders, holder),
            table: part.table,
        });
        if holders.owners().is_none() {
            first_chunk += part.plan.layout.chunks();
        }
    }
    Ok(rectangles)
}

/// Returns the numbers of a holder's one-hot columns in the whole table, in the holder's order: the
/// order of its attributes in the dataset's schema.
pub fn columns_of(domain: &Domain, holders: &Holders, holder: u32) -> Vec<usize> {
    let all = 0..domain.columns();
    let Some(owners) = holders.owners() else {
        return all.collect();
    };
    let own = |column: &usize| {
        let (attribute, _) = domain.one_hot_position(*column)?;
        (owners.get(attribute) == Some(&holder)).then_some(())
    };
    all.filter(|column| own(column).is_some()).collect()
}

/// Joins uploads that are in memory as a whole. `keys` are the dataset's evaluation keys.
///
/// # Errors
/// Those of [`join`].
pub fn join_uploads(
    domain: &Domain,
    holders: &Holders,
    keys: &EvaluationKeys,
    uploads: &[ReceivedUpload],
) -> Result<JoinedUpload, Error> {
    let contribution = |upload: &ReceivedUpload| UploadedPart {
        plan: upload.plan,
        table: upload.table.clone(),
    };
    let contributions = uploads.iter().map(contribution).collect();
    let ladders: Vec<_> = uploads.iter().map(|upload| upload.ladder.clone()).collect();
    let own = uploads.first().and_then(|upload| upload.keys.clone());
    let keys = match (own, keys.roster()) {
        (Some(own), _) => SwitchKeys::Own(own),
        (None, Some(roster)) => SwitchKeys::Roster(roster),
        (None, None) => return Err(OTHER_ROSTER),
    };
    join(domain, holders, contributions, keys, Arc::new(ladders))
}
