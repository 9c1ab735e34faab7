//! The refusals of this service and the problem kind of each.
//!
//! A decryption has only one refusal for all reasons that depend on its pages: [`Failure::refused`]. States of the
//! ledger have their own.

use fhaim_api::problem::ProblemKind;
use fhaim_platform::Failure;
use fhaim_protocol::crypto::chain::Freeze;
use uuid::Uuid;

use crate::upload_keys::UPLOAD_KEYS_A_DAY;

/// A request that the service refuses. Repeating it gives the same refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Terms that have no plan.
    #[error("{0}")]
    Terms(String),
    /// The terms name a second computation service, but none is configured.
    #[error(
        "witness: this crypto service has no second computation service (`peers.witness`); create the \
         dataset without one, or ask the operator of the crypto service to configure one"
    )]
    NoWitness,
    /// The generation service does not vouch for the dataset.
    #[error(
        "voucher: the generation service does not confirm that this dataset exists and is yours; create \
         the dataset there first, and send the answer of `/v1/datasets/DATASET/voucher` as `voucher`"
    )]
    Voucher,
    /// The dataset had other keys, for which the caller has a receipt.
    #[error(
        "no keys are created for this dataset: the caller has a receipt for keys that this key service \
         does not have, so the key service was set back to a copy from before their creation. Finished \
         tables stay available. To continue, create a new dataset (`fhaim dataset create`). Over the \
         same records, its cost adds to the cost of this dataset"
    )]
    KeysLost,
    /// Another key service has no share of this dataset's keys, or the share of another key.
    #[error(
        "key service {0} does not have the keys of this dataset: it was set back to an older copy, or has lost them. \
         No holder gets an upload key, and nothing more is released. Finished tables stay available. To continue, \
         create a new dataset (`fhaim dataset create`). Over the same records, its cost adds to the cost of this \
         dataset"
    )]
    NoSeed(String),
    /// Another key service does not know releases that it debited.
    #[error(
        "key service {0} was set back to an older copy of its ledger: it does not know releases of this dataset that \
         it has debited. Nothing more is released. Finished tables stay available. To continue, create a new dataset \
         (`fhaim dataset create`). Over the same records, its cost adds to the cost of this dataset"
    )]
    OtherSetBack(String),
    /// The ledger of another key service excludes a run that this service's ledger permits: one of them was set back, or
    /// the other one is frozen.
    #[error("key service {0}: {1}")]
    OtherLedger(String, String),
    /// The account has reached its number of key sets.
    #[error(
        "key_sets: the account has reached its limit of keys for {0} datasets (keys of a large roster count as \
         several); delete a dataset, or ask the operator of the crypto service for a higher limit"
    )]
    KeySets(u64),
    /// The account has reached its number of key sets in a day.
    #[error(
        "key_sets_a_day: the account has reached its limit of {0} key sets in 24 hours (keys of a large roster \
         count as several); try again later, or ask the operator of the crypto service for a higher limit"
    )]
    KeySetsToday(u64),
    /// The holder has reached its number of requests for an upload key in a day.
    #[error(
        "your upload key of this dataset was fetched {UPLOAD_KEYS_A_DAY} times in 24 hours; try again later"
    )]
    UploadKeysToday,
    /// The dataset's keys were created with other terms.
    #[error(
        "the dataset's keys were created with other terms, which cannot change; use the original terms, \
         or create another dataset"
    )]
    OtherTerms,
    /// The dataset's runs are bound to another upload.
    #[error("the dataset's runs are bound to another upload; create a new dataset for this upload")]
    OtherUpload,
    /// The first key service assigns a run to a job, and this service's ledger has another assignment.
    #[error(
        "another job has this run in its ledger, so one of the key services was set back to an older copy, or deviates. \
         Nothing more is released. Finished tables stay available. To continue, create a new dataset (`fhaim dataset create`). Over \
         the same records, its cost adds to the cost of this dataset"
    )]
    OtherRun,
    /// Not all holders agree to the run.
    #[error("{0}")]
    Consent(String),
    /// The signature is not the holder's.
    #[error("{0}")]
    Signature(String),
    /// No run is left.
    #[error("{0}")]
    Spent(String),
    /// No run is left, but a job holds one that it has not used.
    #[error(
        "{reason}; job {job} holds a run and has released nothing: resume it with `fhaim job retry {job}`, or \
         with `fhaim job run DATASET --job {job}` if the generation service has forgotten it"
    )]
    Stranded {
        /// Why no run is left.
        reason: String,
        /// The job that holds an unused run.
        job: Uuid,
    },
    /// The dataset is frozen.
    #[error("{}", .0.detail())]
    Frozen(Freeze),
    /// A receipt of another dataset, or one that is malformed.
    #[error(
        "the receipt is malformed, or is for another dataset; show the last receipt for this dataset"
    )]
    Receipt,
    /// The dataset is frozen permanently.
    #[error("{}", .0.way_forward())]
    FrozenForGood(Freeze),
    /// The dataset is not frozen, so it cannot be thawed.
    #[error("the dataset is not frozen")]
    NotFrozen,
}

impl Refusal {
    /// Returns the problem kind of the refusal.
    pub fn kind(&self) -> ProblemKind {
        match self {
            Self::Terms(_) | Self::NoWitness | Self::Receipt | Self::Signature(_) => {
                ProblemKind::Invalid
            }
            Self::Voucher => ProblemKind::Forbidden,
            Self::KeySets(_) | Self::KeySetsToday(_) | Self::UploadKeysToday => ProblemKind::Quota,
            Self::OtherTerms
            | Self::OtherUpload
            | Self::OtherRun
            | Self::Consent(_)
            | Self::FrozenForGood(_)
            | Self::NotFrozen => ProblemKind::Conflict,
            Self::Spent(_) | Self::Stranded { .. } => ProblemKind::BudgetSpent,
            Self::KeysLost
            | Self::NoSeed(_)
            | Self::OtherSetBack(_)
            | Self::OtherLedger(..)
            | Self::Frozen(Freeze::Restored | Freeze::UnknownReceipt) => ProblemKind::Restored,
            Self::Frozen(Freeze::Noise | Freeze::Upload | Freeze::Witness) => ProblemKind::Frozen,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.kind(), refusal.to_string())
    }
}
