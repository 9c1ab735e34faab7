//! What can go wrong between the entities.

use crate::crypto::chain::Freeze;
use fhaim_domain::counted;

/// An error of the protocol layer. None carries a secret or a table value; the number of records is
/// in [`Error::Records`], which is the holder's own.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The encryption layer failed.
    #[error(transparent)]
    Encryption(#[from] fhaim_he::Error),
    /// The noise ladder or the ledger refused.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// A statistic, a job or a noise need that cannot be.
    #[error(transparent)]
    Release(#[from] fhaim_release::Error),
    /// A job that cannot be gone on with.
    #[error(transparent)]
    Run(fhaim_release::Refusal),
    /// The mechanism refuses the terms.
    #[error(transparent)]
    Mechanism(fhaim_release::Refusal),
    /// Terms that cannot be met.
    #[error("{0}")]
    Terms(String),
    /// The table does not have what its schema promises.
    #[error("table: {0}")]
    Table(String),
    /// A table with more records than its dataset was made for: its statistics could change by more
    /// than is paid for.
    #[error(
        "the table has {records} records, and the dataset is for at most {bound}: leave records \
         out, or make a dataset with a larger record bound"
    )]
    Records {
        /// Records of the table.
        records: u64,
        /// The record bound of the terms.
        bound: u64,
    },
    /// An object that is not of an upload.
    #[error("upload: {0}")]
    Object(&'static str),
    /// What is kept elsewhere cannot be read, and will be when its store is back: worth any number of tries.
    #[error("what is kept elsewhere cannot be read at the moment: {0}")]
    Away(String),
    /// A request for decryption that does not hold together.
    #[error("request: {0}")]
    Request(&'static str),
    /// A statistic that is not of the dataset's domain.
    #[error("release {number}: {reason}")]
    Statistic {
        /// The release.
        number: u32,
        /// What is wrong with it.
        reason: String,
    },
    /// Every run that the terms have was given to a job.
    #[error("the dataset's budget is for {}, and none is left", counted(*.0, "run"))]
    NoRunLeft(u32),
    /// Holders that have not signed the terms and keys of their dataset.
    #[error(
        "no run begins before all holders have signed the terms and keys; missing: {}",
        .0.join(", ")
    )]
    Unsigned(Vec<String>),
    /// Holders that let no further run begin.
    #[error(
        "no further run begins: {} withdrew. Finished tables stay; the others can make a new dataset",
        .0.join(", ")
    )]
    Withdrawn(Vec<String>),
    /// A signature that is not the holder's, or that signs something else.
    #[error(
        "the signature is not that of {0} under the terms and keys of this dataset: repeat the command \
         with the signing key whose fingerprint is in the roster"
    )]
    Signature(String),
    /// Nothing is released of the dataset.
    #[error("{}", .0.detail())]
    Frozen(Freeze),
    /// What a key service stored of a dataset, which breaks its own rules.
    #[error("the stored ledger: {0}")]
    Stored(String),
    /// Something else was appended to the dataset's chain meanwhile: the same request can be made
    /// again.
    #[error("another request of the job was debited meanwhile")]
    Overtaken,
    /// A run over another upload than the dataset's first.
    #[error("the dataset's runs were begun over another upload")]
    OtherUpload,
    /// A dataset that needs no thawing.
    #[error("the dataset is not frozen")]
    NotFrozen,
    /// A dataset that cannot be thawed.
    #[error("{}", .0.way_forward())]
    FrozenForGood(Freeze),
    /// Key services of a split key that cannot be, or a message of theirs that must not be taken.
    #[error("key services: {0}")]
    Committee(&'static str),
    /// A key service did what none does that follows the protocol.
    #[error("key services: {name} {what}. If that stays so, make another key, with new shares")]
    Deviation {
        /// Its name in the committee.
        name: String,
        /// What it did.
        what: &'static str,
    },
    /// A message before its time: the same can be taken later.
    #[error("key services: the message is for later; other messages are missing")]
    Early,
    /// An upload key that cannot be fetched as the key services made it.
    #[error("upload key: {0}. Ask again; if that stays so, ask the operators of the key services")]
    Seed(&'static str),
    /// A batch that the second computation service has not computed: the same request can be made again.
    #[error("the second computation service has not computed the batch yet")]
    Unwitnessed,
    /// The crypto service's only refusal, whatever the reason: details go to its log alone.
    #[error("the crypto service refused the release")]
    Refused,
}

impl Error {
    /// [`Error::Stored`], for a reason.
    pub(crate) fn stored(reason: &dyn std::fmt::Display) -> Self {
        Self::Stored(reason.to_string())
    }
}

impl From<fhaim_release::codec::Malformed> for Error {
    fn from(fhaim_release::codec::Malformed(what): fhaim_release::codec::Malformed) -> Self {
        Self::Request(what)
    }
}
