//! What this service refuses, and which problem each refusal is.

use fhaim_api::problem::ProblemKind;
use fhaim_domain::counted;
use fhaim_platform::Failure;

/// A refusal: the same call would be refused again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Terms without a plan, or a layout that no table has.
    #[error("{0}")]
    Terms(String),
    /// A roster that the account is not in.
    #[error("roster: the account that uploads is one of its holders, by its identifier")]
    Outsider,
    /// An upload larger than this service accepts.
    #[error(
        "the upload would take {megabytes} MB, and this service accepts {most} MB: {} of the table \
         and {vectors} of noise; use fewer categories or bins, or fewer records",
        counted(*.objects, "ciphertext")
    )]
    Large {
        /// What it would take.
        megabytes: u64,
        /// What is accepted.
        most: u64,
        /// Its objects beside the noise.
        objects: usize,
        /// Its vectors of noise.
        vectors: usize,
    },
    /// Counts of more pairs than this service keeps in memory.
    #[error(
        "contribution: the counts would take {megabytes} MB of memory, and this service accepts \
         {most} MB: use fewer categories or bins, or upload records"
    )]
    Counts {
        /// What they would take.
        megabytes: u64,
        /// What is accepted.
        most: u64,
    },
    /// A holder of columns with other rows than another.
    #[error(
        "layout: the table has {} to {} rows, and holder {holder}'s {} to {}: holders of columns \
         upload the same records in one order, as `fhaim align` writes them",
        .own[0], .own[1], .other[0], .other[1]
    )]
    OtherRows {
        /// The least and the most rows of the table.
        own: [usize; 2],
        /// Another holder, counted from 1.
        holder: u32,
        /// The least and the most rows of its table.
        other: [usize; 2],
    },
    /// A contribution that runs were begun over.
    #[error(
        "a run over the contribution has begun: it stays with its dataset; `fhaim dataset withdraw` \
         lets no further run begin"
    )]
    Used,
    /// More than an account may store.
    #[error(
        "stored_bytes: the upload would take {megabytes} MB, and the account's take {used} MB of \
         the {most} MB that they may take together: delete a dataset first, or ask who runs the \
         computation service for more"
    )]
    Stored {
        /// What it would take.
        megabytes: u64,
        /// What the account's others take.
        used: u64,
        /// What they may take together.
        most: u64,
    },
    /// The upload is there, and another.
    #[error("the upload was registered with other terms or another layout")]
    OtherUpload,
    /// An object under another upload key than its holder's.
    #[error(
        "the object is under another upload key than the key services made for this holder: fetch the key \
         again, and upload again from the beginning"
    )]
    OtherKey,
    /// Keys that not all of the services that share them have confirmed.
    #[error("the dataset's keys are not used: several services are to share them, and {0}")]
    Unconfirmed(String),
    /// The dataset's keys were not made.
    #[error("the crypto service has no keys of this dataset: make them first")]
    NoKeys,
    /// Nothing can be added to a complete upload.
    #[error(
        "the upload is complete, and takes no more objects: if this is another upload of the same part, the dataset \
         has the first one"
    )]
    Complete,
    /// A header that is none, or another.
    #[error("the header Content-Digest must be sha-256=:<base64>:")]
    ContentDigest,
    /// An object whose bytes are others than announced.
    #[error("the object's bytes are not those of its digest")]
    ObjectDigest,
    /// An object that breaks a rule of its encoding.
    #[error("{0}")]
    Object(String),
    /// An upload that cannot be sealed yet.
    #[error("the upload lacks {}, {first} the first", counted(*.objects, "object"))]
    Lacking {
        /// Objects that are missing.
        objects: usize,
        /// Name of the first.
        first: String,
    },
    /// A manifest of other objects.
    #[error(
        "the objects here are not those of the manifest: another upload of this part may have overwritten some. \
         Stop the other upload, and send all objects again"
    )]
    Manifest,
    /// A dataset of one computation service, at the second.
    #[error("the terms of this dataset have no second computation service, which this is")]
    Unwitnessed,
    /// An object sent to the second computation service.
    #[error(
        "this is the second computation service, which copies objects from the first: send them there, \
         and then say here that they are complete"
    )]
    Second,
    /// A batch under another's address.
    #[error("the address names another release than the batch begins with")]
    Address,
    /// A batch that was asked for before, and was another.
    #[error("release {0} of the job was asked for with other content")]
    OtherBatch(u32),
    /// A batch over an upload that is not there yet.
    #[error("the dataset's upload is not complete")]
    Incomplete,
    /// A batch that cannot be computed.
    #[error("{0}")]
    Batch(String),
    /// A run that the crypto service knows otherwise.
    #[error(
        "the crypto service and this one know the job's run differently: one of them was set back \
         to an older copy. Nothing more is sealed for it"
    )]
    OtherRun,
}

impl Refusal {
    /// Which problem it is.
    pub fn kind(&self) -> ProblemKind {
        match self {
            Self::Terms(_)
            | Self::Outsider
            | Self::Large { .. }
            | Self::Counts { .. }
            | Self::ContentDigest
            | Self::Second
            | Self::Unwitnessed
            | Self::Object(_)
            | Self::OtherKey
            | Self::Address
            | Self::Batch(_) => ProblemKind::Invalid,
            Self::OtherUpload
            | Self::OtherRows { .. }
            | Self::Used
            | Self::Complete
            | Self::Lacking { .. }
            | Self::OtherBatch(_)
            | Self::Incomplete
            | Self::OtherRun => ProblemKind::Conflict,
            Self::ObjectDigest | Self::Manifest => ProblemKind::DigestMismatch,
            Self::NoKeys => ProblemKind::NotFound,
            Self::Unconfirmed(_) => ProblemKind::Unavailable,
            Self::Stored { .. } => ProblemKind::Quota,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.kind(), refusal.to_string())
    }
}
