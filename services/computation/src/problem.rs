//! The refusals of this service and the problem kind of each.

use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_domain::counted;
use fhaim_platform::Failure;
use uuid::Uuid;

/// A request that the service refuses. Repeating it gives the same refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Terms that have no plan, or an impossible layout.
    #[error("{0}")]
    Terms(String),
    /// The account is not in the roster.
    #[error("roster: the account is not one of the holders; sign in with a holder's account")]
    Outsider,
    /// The upload exceeds the service's limit.
    #[error(
        "the upload would take {megabytes} MB ({} of the table and {vectors} of noise), but this \
         service accepts at most {most} MB; use fewer categories, bins or records",
        counted(*.objects, "ciphertext")
    )]
    Large {
        /// Size of the upload.
        megabytes: u64,
        /// Limit of the service.
        most: u64,
        /// Number of objects without the noise.
        objects: usize,
        /// Number of vectors of noise.
        vectors: usize,
    },
    /// Counts that take more memory than this service allows.
    #[error(
        "contribution: the counts would take {megabytes} MB of memory, but this service accepts at \
         most {most} MB; use fewer categories or bins, or upload records instead"
    )]
    Counts {
        /// Memory of the counts.
        megabytes: u64,
        /// Limit of the service.
        most: u64,
    },
    /// Holders of columns have different numbers of rows.
    #[error(
        "layout: the table has {} to {} rows, but the table of holder {holder} has {} to {}; holders \
         of columns must upload the same records in the same order, as `fhaim align` writes them",
        .own[0], .own[1], .other[0], .other[1]
    )]
    OtherRows {
        /// Minimum and maximum rows of the table.
        own: [usize; 2],
        /// The other holder, counted from 1.
        holder: u32,
        /// Minimum and maximum rows of the other holder's table.
        other: [usize; 2],
    },
    /// A run over the contribution has begun.
    #[error(
        "the contribution cannot be deleted, because a run over it has begun; use `fhaim dataset \
         withdraw` to prevent further runs"
    )]
    Used,
    /// The account reaches its storage limit.
    #[error(
        "stored_bytes: the upload would take {megabytes} MB, but the account already uses {used} MB \
         of its limit of {most} MB; delete a dataset, or ask the operator of the computation \
         service for a higher limit"
    )]
    Stored {
        /// Size of the upload.
        megabytes: u64,
        /// Size of the account's other uploads.
        used: u64,
        /// Limit of the account.
        most: u64,
    },
    /// The dataset is registered with other terms or another layout.
    #[error(
        "the dataset is already registered with other terms or another layout; upload with the \
         original terms and table, or create another dataset"
    )]
    OtherUpload,
    /// The object is not under the holder's upload key.
    #[error(
        "the object is not under the upload key that the key services created for this holder; fetch the \
         key again and restart the upload from the beginning"
    )]
    OtherKey,
    /// Not all services that share the keys have confirmed them.
    #[error("the dataset's keys cannot be used: several services must share them, and {0}")]
    Unconfirmed(String),
    /// The dataset has no keys.
    #[error("the crypto service has no keys for this dataset; create them first")]
    NoKeys,
    /// The upload is complete and cannot be changed.
    #[error(
        "the upload is complete and accepts no more objects; if this is another upload of the same \
         part, the dataset has the first one"
    )]
    Complete,
    /// An invalid `Content-Digest` header.
    #[error("Content-Digest: must have the form sha-256=:<base64>:")]
    ContentDigest,
    /// The object's bytes do not have the announced digest.
    #[error("the object's bytes do not match its digest; send the object again")]
    ObjectDigest,
    /// The object breaks a rule of its encoding.
    #[error("{0}")]
    Object(String),
    /// The upload is not complete.
    #[error(
        "the upload is not complete: {} missing, first {first}; send the missing objects and \
         complete the upload again",
        counted(*.objects, "object")
    )]
    Lacking {
        /// Number of missing objects.
        objects: usize,
        /// Name of the first one.
        first: String,
    },
    /// The manifest is not that of the stored objects.
    #[error(
        "the stored objects do not match the manifest: another upload of this part may have overwritten \
         some. Stop the other upload, and send all objects again"
    )]
    Manifest,
    /// A dataset without a second computation service, at the second computation service.
    #[error(
        "this service is a second computation service, but the dataset's terms do not name one"
    )]
    Unwitnessed,
    /// An object was sent to the second computation service.
    #[error(
        "this is the second computation service, which copies objects from the first; send the objects \
         to the first service, and then complete the upload here"
    )]
    Second,
    /// The batch is not the one of the URL.
    #[error("the number in the URL must be that of the batch's first release")]
    Address,
    /// Another batch with this number was requested before.
    #[error("release {0} of the job was already requested with other content")]
    OtherBatch(u32),
    /// The upload of the batch's dataset is not complete.
    #[error("the dataset's upload is not complete; complete it first")]
    Incomplete,
    /// The batch cannot be computed.
    #[error("{0}")]
    Batch(String),
    /// A stored object or key of the dataset is missing or damaged.
    #[error(
        "the stored {what} of dataset {dataset} is damaged: it is missing, or its bytes do not match their digest. \
         Ask the operator of the computation service to restore it from a backup, and then resume with \
         `fhaim job retry`. Without a backup, create a new dataset (`fhaim dataset create`) and upload the table to it. \
         Over the same records, its cost adds to the cost of this dataset"
    )]
    Damaged {
        /// The dataset.
        dataset: Uuid,
        /// The object or key.
        what: String,
    },
    /// The dataset's runs use an upload that this service has lost.
    #[error(
        "runs over this dataset have begun, and this service no longer has their upload: it was set back to an older \
         copy. The key service accepts no other upload. Ask the operator of the computation service to restore it from \
         a backup with the upload. Finished tables stay available. Or create a new dataset (`fhaim dataset create`). \
         Over the same records, its cost adds to the cost of this dataset"
    )]
    RunsBegun,
    /// A key service does not know the dataset, whose upload is complete.
    #[error(
        "the {0} service does not have the keys of this dataset: it was set back to a copy from before their \
         creation, or they were destroyed. Nothing more is released. Finished tables stay available. To continue, \
         create a new dataset (`fhaim dataset create`). Over the same records, its cost adds to the cost of this \
         dataset"
    )]
    KeysLost(Service),
    /// The crypto service has another record of the run.
    #[error(
        "the crypto service and this service disagree about the job's run: one of them was set back \
         to an older copy. Nothing more is sealed for this job; inform the operators"
    )]
    OtherRun,
}

impl Refusal {
    /// Returns the problem kind of the refusal.
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
            | Self::RunsBegun
            | Self::OtherRun => ProblemKind::Conflict,
            Self::Damaged { .. } => ProblemKind::Damaged,
            Self::ObjectDigest | Self::Manifest => ProblemKind::DigestMismatch,
            Self::NoKeys | Self::KeysLost(_) => ProblemKind::NotFound,
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
