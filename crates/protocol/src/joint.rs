//! Several holders' uploads as one: what the computation service computes on.
//!
//! Holders of records have record chunks of their own over all columns; holders of columns have the
//! columns of their attributes over all chunks. Every holder uploads a whole noise ladder of the
//! common plan, and what a page takes of them is added when it is sealed: a release takes the sum of all
//! holders' noise. One holder is the case of one rectangle; what lies
//! under its own key is put together with nothing.

use crate::Error;
use crate::encryption::{NO_SUCH_OBJECT, Payload};
use crate::noise::{EncryptedLadder, NoiseObjects};
use crate::upload::{Object, Upload, UploadPlan};
use fhaim_domain::Domain;
use fhaim_he::{Ciphertext, Columns, Mosaic, Parameters, Rectangle};
use fhaim_release::Holders;
use std::sync::Arc;

/// One holder's upload without its noise: its shape, and its table wherever that is kept.
#[derive(Clone, Debug)]
pub struct Contribution {
    /// The public shape of this holder's objects.
    pub plan: UploadPlan,
    /// Its one-hot columns.
    pub table: Arc<dyn Columns>,
}

/// Puts the contributions of all holders together, in the order of the roster; `keys` is asked for the keys of a
/// holder's own, where there are any, and noise stays where it is.
///
/// # Errors
/// [`Error::Object`] for another number of contributions than of holders, or ladders of different
/// sizes; [`Error::Encryption`] for parts that leave a gap, overlap, or are of other rows than each
/// other; what `keys` returns.
pub fn join(
    domain: &Domain,
    holders: &Holders,
    contributions: Vec<Contribution>,
    keys: impl FnMut(Object) -> Result<Payload, Error>,
    noise: Arc<dyn NoiseObjects>,
) -> Result<Upload, Error> {
    let plans: Vec<UploadPlan> = contributions.iter().map(|part| part.plan).collect();
    let count = plans.len();
    let first = *plans
        .first()
        .ok_or(Error::Object("a dataset needs a holder"))?;
    if count != holders.count() as usize {
        return Err(Error::Object("the roster has another number of holders"));
    }
    if plans.iter().any(|plan| plan.ladder != first.ladder) {
        return Err(Error::Object("a holder's noise is of another size"));
    }
    if !first.encryption.is_public() {
        return alone(contributions, keys, noise);
    }
    let mosaic = Mosaic::new(
        domain.columns(),
        rectangles(domain, holders, contributions)?,
    )?;
    let plan = UploadPlan {
        columns: domain.columns(),
        layout: mosaic.layout(),
        ..first
    };
    let ladder = EncryptedLadder::new(plan.ladder, None, count, noise);
    Upload::over(plan, Arc::new(mosaic), None, ladder)
}

/// The upload of a holder who encrypts under a key of its own.
fn alone(
    contributions: Vec<Contribution>,
    mut get: impl FnMut(Object) -> Result<Payload, Error>,
    noise: Arc<dyn NoiseObjects>,
) -> Result<Upload, Error> {
    let Ok([Contribution { plan, table }]) = <[Contribution; 1]>::try_from(contributions) else {
        return Err(Error::Object("several holders encrypt under one key"));
    };
    if plan.columns != table.count() || plan.layout != table.layout() {
        return Err(Error::Object("the plan is not this table's"));
    }
    let keys = plan.encryption.keys(&mut get)?;
    let ladder = EncryptedLadder::new(plan.ladder, keys.clone(), 1, noise);
    Upload::over(plan, table, keys, ladder)
}

/// Where each holder's part is in the whole table.
fn rectangles(
    domain: &Domain,
    holders: &Holders,
    contributions: Vec<Contribution>,
) -> Result<Vec<Rectangle>, Error> {
    let mut first_chunk = 0;
    let mut rectangles = Vec::with_capacity(contributions.len());
    for (holder, part) in (0..).zip(contributions) {
        if part.plan.columns != part.table.count() || part.plan.layout != part.table.layout() {
            return Err(Error::Object("the plan is not this table's"));
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

/// The numbers of a holder's one-hot columns in the whole table, in the order in which it has them:
/// that of its attributes in the dataset's schema.
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

/// The sum of several holders' objects of one name, under each plaintext modulus.
pub(crate) fn add(
    params: &Parameters,
    objects: impl Iterator<Item = Result<Payload, Error>>,
) -> Result<Payload, Error> {
    let objects = objects.map(|object| object?.ciphertexts());
    let objects = objects.collect::<Result<Vec<Vec<Ciphertext>>, Error>>()?;
    let residue = |k: usize| {
        let terms = objects.iter().map(|object| object.get(k));
        let terms = terms.collect::<Option<Vec<&Ciphertext>>>();
        let terms = terms.ok_or(Error::Object("a plaintext modulus is missing"))?;
        Ok(Ciphertext::sum(params, terms)?)
    };
    let sums = (0..params.residues()).map(residue);
    Ok(Payload::Ciphertexts(sums.collect::<Result<_, Error>>()?))
}

/// Puts uploads together that are in memory as a whole; one under its holder's own key is so already.
///
/// # Errors
/// As [`join`].
pub fn join_uploads(
    params: &Parameters,
    domain: &Domain,
    holders: &Holders,
    uploads: &[Upload],
) -> Result<Upload, Error> {
    if let [upload] = uploads
        && upload.keys.is_some()
    {
        return Ok(upload.clone());
    }
    let contribution = |upload: &Upload| Contribution {
        plan: upload.plan,
        table: upload.table.clone(),
    };
    let contributions = uploads.iter().map(contribution).collect();
    let noise = LaddersOfEach {
        params: params.clone(),
        ladders: uploads.iter().map(|upload| upload.ladder.clone()).collect(),
    };
    let none = |_| Err(NO_SUCH_OBJECT);
    join(domain, holders, contributions, none, Arc::new(noise))
}

/// The ladders of uploads that are in memory.
#[derive(Debug)]
struct LaddersOfEach {
    params: Parameters,
    ladders: Vec<EncryptedLadder>,
}

impl NoiseObjects for LaddersOfEach {
    fn read(&self, holder: usize, objects: &[Object]) -> Result<Vec<Payload>, Error> {
        let ladder = self.ladders.get(holder).ok_or(NO_SUCH_OBJECT)?;
        ladder.read(&self.params, objects)
    }
}
