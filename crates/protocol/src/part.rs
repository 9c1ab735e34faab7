//! One holder's part of a dataset: what it encrypts, and the objects that it uploads.
//!
//! Holder and computation service work a part's objects out from the terms, the holder's number in
//! the roster and the [`Layout`] of its records. Terms without a roster have one holder, number 0.

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

/// The public shape of what one holder uploads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartPlan {
    /// One-hot columns of its records.
    Records(UploadPlan),
    /// Counts of all pairs of columns.
    Counts(CountsPlan),
}

impl PartPlan {
    /// All objects, in the order of the upload.
    pub fn objects(&self) -> Vec<Object> {
        match self {
            Self::Records(plan) => plan.objects().collect(),
            Self::Counts(plan) => plan.objects().collect(),
        }
    }

    /// Number of objects.
    pub fn object_count(&self) -> usize {
        match self {
            Self::Records(plan) => plan.object_count(),
            Self::Counts(plan) => plan.object_count(),
        }
    }

    /// Size of the noise ladder, for all runs.
    pub fn ladder(&self) -> LadderPlan {
        match self {
            Self::Records(plan) => plan.ladder,
            Self::Counts(plan) => plan.ladder,
        }
    }

    /// What its objects are.
    pub fn form(&self) -> Form {
        match self {
            Self::Records(plan) => plan.form(),
            Self::Counts(plan) => plan.form(),
        }
    }

    /// Bytes of all objects.
    pub fn bytes(&self, params: &Parameters) -> u64 {
        let polynomials = match self {
            Self::Records(plan) => plan.polynomials(),
            Self::Counts(plan) => plan.polynomials(),
        };
        self.form().bytes(params, polynomials)
    }

    /// Whether the object is one of the plan's.
    pub fn contains(&self, object: Object) -> bool {
        match self {
            Self::Records(plan) => plan.contains(object),
            Self::Counts(plan) => plan.contains(object),
        }
    }

    /// Decodes an object.
    ///
    /// # Errors
    /// [`Error::Object`] for an object that the plan does not have, or of another size;
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
    /// How many holders upload a part.
    pub fn part_count(&self) -> usize {
        let roster = self.roster.as_ref();
        roster.map_or(1, |roster| roster.holders.len())
    }

    /// The number of an account in the roster.
    pub fn part_of(&self, account: &str) -> Option<u32> {
        let holders = self.roster.iter().flat_map(|roster| &roster.holders);
        let mut holders = (0..).zip(holders);
        let found = holders.find(|(_, member)| member.account == account);
        found.map(|(number, _)| number)
    }

    /// The schema of a holder's part of the table, and the most records that it may have.
    ///
    /// # Errors
    /// [`Error::Terms`] for a holder that the roster does not have.
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

    /// What a holder uploads; `layout` is that of its records, and absent where it uploads counts.
    ///
    /// # Errors
    /// [`Error::Terms`] for a holder that the roster does not have, terms without a plan, and a layout
    /// that is missing, of no use, or of more records than the holder may have: they would be
    /// more sensitive than what is charged for them.
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
                refuse("counts have none: leave it out".to_owned())
            }
            (ContributionKind::Records, None) => refuse("an upload of records has one".to_owned()),
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

/// What a holder encrypts.
#[derive(Debug)]
pub enum Content<'a> {
    /// Its records.
    Records(&'a Table),
    /// The counts of its records.
    Counts(&'a PairCounts),
}

/// A holder's part about to be encrypted, an object at a time.
#[derive(Clone, Copy, Debug)]
pub enum PartHolder<'a> {
    /// Of records.
    Records(Holder<'a>),
    /// Of counts.
    Counts(CountsHolder<'a>),
}

impl<'a> PartHolder<'a> {
    /// A holder who follows `plan`, of a part of at most `record_bound` records.
    ///
    /// # Errors
    /// [`Error::Records`] beyond the bound; [`Error::Object`] where the plan is not the content's, the
    /// ladder's or the key's.
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
            _ => Err(Error::Object("the plan is not this table's")),
        }
    }

    /// Encrypts one object, with a generator of its own, keyed from `rng`, and encodes it.
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
