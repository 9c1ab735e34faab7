//! One holder's part of a dataset: the data that it encrypts, and the objects that it uploads.
//!
//! Holder and computation service both compute a part's objects from the terms, the holder's number
//! in the roster and the [`Layout`] of its records. Terms without a roster have one holder, number
//! 0.

use crate::Error;
use crate::counts::pair_counts::PairCounts;
use crate::counts::upload::{CountsHolder, CountsPlan};
use crate::encryption::{Encryptor, Form, Payload};
use crate::holder::{Holder, HolderNoise, check_records};
use crate::roster::ContributionKind;
use crate::terms::Terms;
use crate::upload::{Object, UploadPlan};
use fhaim_domain::{Schema, Table};
use fhaim_dp::LadderPlan;
use fhaim_he::{Layout, Parameters};
use rand::{CryptoRng, RngCore};

/// The public shape of one holder's upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartPlan {
    /// One-hot columns of its records.
    Records(UploadPlan),
    /// Counts of all pairs of columns.
    Counts(CountsPlan),
}

impl PartPlan {
    /// Returns all objects, in the order of the upload.
    pub fn objects(&self) -> Vec<Object> {
        match self {
            Self::Records(plan) => plan.objects().collect(),
            Self::Counts(plan) => plan.objects().collect(),
        }
    }

    /// Returns the number of objects.
    pub fn object_count(&self) -> usize {
        match self {
            Self::Records(plan) => plan.object_count(),
            Self::Counts(plan) => plan.object_count(),
        }
    }

    /// Returns the size of the noise ladder of all runs.
    pub fn ladder(&self) -> LadderPlan {
        match self {
            Self::Records(plan) => plan.ladder,
            Self::Counts(plan) => plan.ladder,
        }
    }

    /// Returns the form of the objects.
    pub fn form(&self) -> Form {
        match self {
            Self::Records(plan) => plan.form(),
            Self::Counts(plan) => plan.form(),
        }
    }

    /// Returns the size in bytes of all objects.
    pub fn bytes(&self, params: &Parameters) -> u64 {
        let polynomials = match self {
            Self::Records(plan) => plan.polynomials(),
            Self::Counts(plan) => plan.polynomials(),
        };
        self.form().bytes(params, polynomials)
    }

    /// Whether the plan has this object.
    pub fn contains(&self, object: Object) -> bool {
        match self {
            Self::Records(plan) => plan.contains(object),
            Self::Counts(plan) => plan.contains(object),
        }
    }

    /// Decodes an object.
    ///
    /// # Errors
    /// [`Error::Object`] for an object that the plan does not have, or that has another size;
    /// [`Error::Encryption`] with the first rule that its bytes break.
    pub fn decode(
        &self,
        params: &Parameters,
        object: Object,
        bytes: &[u8],
    ) -> Result<Payload, Error> {
        match self {
            Self::Records(plan) => plan.decode(params, object, bytes),
            Self::Counts(plan) => plan.decode(params, object, bytes),
        }
    }
}

impl Terms {
    /// Returns the number of holders that upload a part.
    pub fn part_count(&self) -> usize {
        let roster = self.roster.as_ref();
        roster.map_or(1, |roster| roster.holders.len())
    }

    /// Returns the number of an account in the roster.
    pub fn part_of(&self, account: &str) -> Option<u32> {
        let holders = self.roster.iter().flat_map(|roster| &roster.holders);
        let mut holders = (0..).zip(holders);
        let found = holders.find(|(_, member)| member.account == account);
        found.map(|(number, _)| number)
    }

    /// Returns the schema of a holder's part of the table, and the most records that it may have.
    ///
    /// # Errors
    /// [`Error::Terms`] for a holder that is not in the roster.
    pub fn part_schema(&self, holder: u32) -> Result<(Schema, u64), Error> {
        match &self.roster {
            Some(roster) => {
                let part = roster.part(&self.schema, holder as usize)?;
                let member = roster.holders.get(holder as usize);
                let bound = member.map_or(self.record_bound, |member| member.record_bound);
                Ok((part, bound))
            }
            None if holder == 0 => Ok((self.schema.clone(), self.record_bound)),
            None => Err(Error::Terms(
                "roster: the dataset has one holder".to_owned(),
            )),
        }
    }

    /// Plans the upload of a holder. `layout` is the layout of its records, and absent if it
    /// uploads counts.
    ///
    /// # Errors
    /// [`Error::Terms`] for a holder that is not in the roster, for terms without a plan, and for a
    /// layout that is missing, unexpected, or for more records than the holder may have. Such
    /// records would be more sensitive than the price assumes.
    pub fn part_plan(&self, holder: u32, layout: Option<Layout>) -> Result<PartPlan, Error> {
        let (schema, bound) = self.part_schema(holder)?;
        let outline = self.plan_core()?;
        let ladder = outline.ladder()?;
        let refuse = |reason: String| Err(Error::Terms(format!("layout: {reason}")));
        match (self.contribution, layout) {
            (ContributionKind::Counts, None) => {
                let plan = CountsPlan::new(schema.domain(), ladder)?;
                Ok(PartPlan::Counts(plan.under(self.encryption())))
            }
            (ContributionKind::Counts, Some(_)) => {
                refuse("an upload of counts has no layout: leave the field out".to_owned())
            }
            (ContributionKind::Records, None) => {
                refuse("an upload of records needs a layout".to_owned())
            }
            (ContributionKind::Records, Some(layout)) if layout.min_records() as u64 > bound => {
                refuse(format!(
                    "{} chunks of stride {} have at least {} records, more than the record bound \
                     of {bound}",
                    layout.chunks(),
                    layout.stride(),
                    layout.min_records()
                ))
            }
            (ContributionKind::Records, Some(layout)) => Ok(PartPlan::Records(UploadPlan {
                columns: schema.domain().columns(),
                layout,
                ladder,
                residues: outline.set.plaintext_moduli.len(),
                encryption: self.encryption(),
            })),
        }
    }
}

/// The data that a holder encrypts.
#[derive(Debug)]
pub enum Content<'a> {
    /// Its records.
    Records(&'a Table),
    /// The counts of its records.
    Counts(&'a PairCounts),
}

/// A holder's part that is about to be encrypted, one object at a time.
#[derive(Clone, Copy, Debug)]
pub enum PartHolder<'a> {
    /// A part with records.
    Records(Holder<'a>),
    /// A part with counts.
    Counts(CountsHolder<'a>),
}

impl<'a> PartHolder<'a> {
    /// Creates a holder that follows `plan`, for a part of at most `record_bound` records.
    ///
    /// # Errors
    /// [`Error::Records`] if there are more records; [`Error::Object`] if the plan does not fit the
    /// content, the ladder or the key.
    pub fn new(
        content: &Content<'a>,
        record_bound: u64,
        noise: HolderNoise<'a>,
        encryptor: Encryptor<'a>,
        plan: &'a PartPlan,
    ) -> Result<Self, Error> {
        match (content, plan) {
            (Content::Records(table), PartPlan::Records(plan)) => {
                let holder = Holder::new(table, record_bound, noise, encryptor, *plan)?;
                Ok(Self::Records(holder))
            }
            (Content::Counts(pair_counts), PartPlan::Counts(plan)) => {
                let records = usize::try_from(pair_counts.records()).unwrap_or(usize::MAX);
                check_records(records, record_bound)?;
                let holder = CountsHolder::new(pair_counts, noise, encryptor, plan)?;
                Ok(Self::Counts(holder))
            }
            _ => Err(Error::Object("the plan does not fit this table")),
        }
    }

    /// Encrypts one object with its own generator, keyed from `rng`, and encodes it.
    ///
    /// # Errors
    /// [`Error::Object`] for an object that the plan does not have.
    pub fn encode<R: RngCore + CryptoRng>(
        &self,
        object: Object,
        rng: &mut R,
    ) -> Result<Vec<u8>, Error> {
        match self {
            Self::Records(holder) => holder.encode(object, rng),
            Self::Counts(holder) => holder.encode(object, rng),
        }
    }
}
