//! What this service refuses, and which problem each refusal is.
//!
//! A decryption has one refusal, whatever the reason: it is [`Failure::refused`].

use fhaim_api::problem::ProblemKind;
use fhaim_platform::Failure;
use fhaim_protocol::crypto::chain::Freeze;
use uuid::Uuid;

use crate::upload_keys::UPLOAD_KEYS_A_DAY;

/// A refusal: the same call would be refused again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Terms without a plan.
    #[error("{0}")]
    Terms(String),
    /// Terms with a second computation service, where there is none.
    #[error(
        "witness: the terms want a second computation service, and this crypto service knows none: make \
         the dataset without, or ask who runs it for one (`peers.witness`)"
    )]
    NoWitness,
    /// Nobody says that there is such a dataset.
    #[error(
        "the generation service does not say that this dataset is there and yours: make it there \
         first, and send what `/v1/datasets/DATASET/voucher` answers as `voucher`"
    )]
    Voucher,
    /// Keys of a dataset that had others, of which the caller has a receipt.
    #[error(
        "no keys are made for this dataset: the caller has a receipt for keys that this key service \
         does not have, so it was set back to before they were made. Finished tables stay. To continue, \
         make a new dataset (`fhaim dataset create`): over the same records it adds its cost to what was \
         spent on this one"
    )]
    KeysLost,
    /// Another key service has no share of this dataset's keys, or has another one.
    #[error(
        "key service {0} does not have the keys of this dataset: it was set back, or lost them. No holder gets an upload \
         key, and nothing more is released. Finished tables stay. To continue, make a new dataset (`fhaim dataset \
         create`): over the same records it adds its cost to what was spent on this one"
    )]
    NoSeed(String),
    /// As many key sets as an account may have.
    #[error(
        "key_sets: an account can have the keys of {0} datasets, and those of a large roster count as several: \
         delete a dataset first, or ask the operator of the crypto service for more"
    )]
    KeySets(u64),
    /// As many key sets as an account may make in a day.
    #[error(
        "key_sets_a_day: an account can have keys made {0} times in 24 hours, and those of a large roster count \
         as several: try again later, or ask the operator of the crypto service for more"
    )]
    KeySetsToday(u64),
    /// As many requests for an upload key as a holder may make in a day.
    #[error(
        "your upload key of this dataset was fetched {UPLOAD_KEYS_A_DAY} times in 24 hours: try again later"
    )]
    UploadKeysToday,
    /// Keys of other terms.
    #[error("the dataset's keys were made with other terms, and terms cannot change")]
    OtherTerms,
    /// Runs over another upload.
    #[error("the dataset's runs were begun over another upload")]
    OtherUpload,
    /// A run that not all holders agree to.
    #[error("{0}")]
    Consent(String),
    /// A signature that is not the holder's.
    #[error("{0}")]
    Signature(String),
    /// No run is left.
    #[error("{0}")]
    Spent(String),
    /// No run is left, and a job holds one that it has not used.
    #[error(
        "{reason}; job {job} has a run and has released nothing: `fhaim job retry {job}`, or \
         `fhaim job run DATASET --job {job}` where it was forgotten, goes on with it"
    )]
    Stranded {
        /// Why there is none.
        reason: String,
        /// The job.
        job: Uuid,
    },
    /// Nothing is released of the dataset.
    #[error("{}", .0.detail())]
    Frozen(Freeze),
    /// A receipt of another dataset, or one that is malformed.
    #[error(
        "the receipt is malformed, or is for another dataset: show the last receipt for this one"
    )]
    Receipt,
    /// A dataset that cannot be thawed.
    #[error("{}", .0.way_forward())]
    FrozenForGood(Freeze),
    /// A dataset that needs no thawing.
    #[error("the dataset is not frozen")]
    NotFrozen,
}

impl Refusal {
    /// Which problem it is.
    pub fn kind(&self) -> ProblemKind {
        match self {
            Self::Terms(_) | Self::NoWitness | Self::Receipt | Self::Signature(_) => {
                ProblemKind::Invalid
            }
            Self::Voucher => ProblemKind::Forbidden,
            Self::KeySets(_) | Self::KeySetsToday(_) | Self::UploadKeysToday => ProblemKind::Quota,
            Self::OtherTerms
            | Self::OtherUpload
            | Self::Consent(_)
            | Self::FrozenForGood(_)
            | Self::NotFrozen => ProblemKind::Conflict,
            Self::Spent(_) | Self::Stranded { .. } => ProblemKind::BudgetSpent,
            Self::KeysLost
            | Self::NoSeed(_)
            | Self::Frozen(Freeze::Restored | Freeze::UnknownReceipt) => ProblemKind::Restored,
            Self::Frozen(Freeze::Noise | Freeze::Witness) => ProblemKind::Frozen,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.kind(), refusal.to_string())
    }
}
