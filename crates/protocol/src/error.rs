//! Errors of the protocol layer.

use crate::crypto::chain::Freeze;
use fhaim_domain::counted;

/// An error of the protocol layer. No variant carries a secret or a table value. [`Error::Records`]
/// has the number of records, which only the holder sees.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The encryption layer failed.
    #[error(transparent)]
    Encryption(#[from] fhaim_he::Error),
    /// The noise ladder or the ledger refused the operation.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// A statistic, job or noise need is invalid.
    #[error(transparent)]
    Release(#[from] fhaim_release::Error),
    /// A job cannot be continued.
    #[error(transparent)]
    Run(fhaim_release::Refusal),
    /// The mechanism refuses the terms.
    #[error(transparent)]
    Mechanism(fhaim_release::Refusal),
    /// The terms cannot be met.
    #[error("{0}")]
    Terms(String),
    /// The table does not match its schema.
    #[error("table: {0}")]
    Table(String),
    /// The table has more records than the dataset's terms allow. Its statistics could then change
    /// by more than the dataset's budget pays for.
    #[error(
        "the table has {records} records, but the dataset allows at most {bound}: leave records \
         out, or make a dataset with a larger record bound"
    )]
    Records {
        /// Number of records in the table.
        records: u64,
        /// Record bound of the terms.
        bound: u64,
    },
    /// An object does not belong to the upload, or its bytes are invalid.
    #[error("upload: {0}")]
    Object(&'static str),
    /// Data in another store cannot be read at the moment. Retry until the store is available
    /// again.
    #[error("data in another store cannot be read at the moment: {0}")]
    Away(String),
    /// A request for decryption is inconsistent.
    #[error("request: {0}")]
    Request(&'static str),
    /// A statistic does not fit the dataset's domain.
    #[error("release {number}: {reason}")]
    Statistic {
        /// Number of the release.
        number: u32,
        /// Reason for the refusal.
        reason: String,
    },
    /// Every run that the terms allow has been given to a job.
    #[error("the dataset's budget allows {}, and none is left", counted(*.0, "run"))]
    NoRunLeft(u32),
    /// Some holders have not signed the terms and keys of their dataset.
    #[error(
        "a run can begin only when all holders have signed the terms and keys; still missing: {}",
        .0.join(", ")
    )]
    Unsigned(Vec<String>),
    /// Some holders have withdrawn, so that no further run can begin.
    #[error(
        "no further run can begin: {} withdrew. Finished tables stay available; \
         the other holders can make a new dataset",
        .0.join(", ")
    )]
    Withdrawn(Vec<String>),
    /// The signature was not made with the holder's key, or it covers other terms or keys.
    #[error(
        "the signature is not that of {0} under the terms and keys of this dataset: repeat the command \
         with the signing key whose fingerprint is in the roster"
    )]
    Signature(String),
    /// The dataset is frozen: nothing is released.
    #[error("{}", .0.detail())]
    Frozen(Freeze),
    /// A key service's stored ledger breaks its own rules.
    #[error("the stored ledger: {0}")]
    Stored(String),
    /// Another request was appended to the dataset's chain in the meantime. The caller can repeat
    /// the request.
    #[error("another request of the job was debited in the meantime")]
    Overtaken,
    /// A run names another upload than the dataset's first run.
    #[error("the dataset's earlier runs used another upload")]
    OtherUpload,
    /// The dataset is not frozen, so it cannot be thawed.
    #[error("the dataset is not frozen")]
    NotFrozen,
    /// The dataset is frozen permanently.
    #[error("{}", .0.way_forward())]
    FrozenForGood(Freeze),
    /// The key services of a shared key are invalid, or one of their messages is.
    #[error("key services: {0}")]
    Committee(&'static str),
    /// A key service deviated from the protocol.
    #[error("key services: {name} {what}. If this happens again, make another key with new shares")]
    Deviation {
        /// Name of the service in the committee.
        name: String,
        /// What the service did, as a predicate of its name.
        what: &'static str,
    },
    /// A message arrived before the messages that it depends on. The caller can deliver it again
    /// later.
    #[error("key services: the message is too early: messages that it depends on are missing")]
    Early,
    /// The fetched upload key is not the one that the key services made.
    #[error(
        "upload key: {0}. Try again; if the error persists, contact the operators of the key services"
    )]
    Seed(&'static str),
    /// The second computation service has not computed the batch yet. The caller can repeat the
    /// request.
    #[error("the second computation service has not computed the batch yet")]
    Unwitnessed,
    /// The crypto service's only refusal, for any reason. The details go only to its log.
    #[error("the crypto service refused the release")]
    Refused,
}

impl Error {
    /// Makes an [`Error::Stored`] from a reason.
    pub(crate) fn stored(reason: &dyn std::fmt::Display) -> Self {
        Self::Stored(reason.to_string())
    }
}

impl From<fhaim_release::codec::Malformed> for Error {
    fn from(fhaim_release::codec::Malformed(what): fhaim_release::codec::Malformed) -> Self {
        Self::Request(what)
    }
}
