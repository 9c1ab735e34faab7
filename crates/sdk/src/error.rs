//! What can go wrong between a holder and the services.

use fhaim_api::problem::{Problem, ProblemKind};
use fhaim_api::token::Service;
use std::path::PathBuf;
use uuid::Uuid;

/// An error of the SDK. None carries a value of the table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A service answered with a problem.
    #[error("{problem}")]
    Problem {
        /// What it said.
        problem: Box<Problem>,
    },
    /// A service cannot be reached.
    #[error("{address}: {reason}")]
    Unreachable {
        /// Where it should be.
        address: String,
        /// What the system says.
        reason: String,
    },
    /// A service answered with something else than it should.
    #[error("{address}: not an answer of this service: {reason}")]
    Answer {
        /// Who answered.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A dataset with a second computation service, whose address is not known.
    #[error(
        "dataset {0} has a second computation service, and its address is not known: sign in again with \
         `fhaim account login --witness URL`"
    )]
    NoWitness(Uuid),
    /// A service for which the generation service gave no token.
    #[error(
        "the generation service gave no token for the {0} service: ask its operator to add `peers.{0}` to its \
         configuration"
    )]
    NoToken(Service),
    /// An upload that the second computation service lacks, where nothing is kept of it.
    #[error(
        "the second computation service has no copy of your part of dataset {0}, and nothing here says what you \
         uploaded: upload from where you did before, since `fhaim` keeps that with the key of its noise; or delete \
         the dataset and make it again"
    )]
    Uncopied(Uuid),
    /// Keys that the terms say several services share, and that not all of them say they do.
    #[error(
        "the keys of dataset {0} are not used: several services are to share them, and {1}. Whoever runs the \
         crypto service may have made them alone: do not upload"
    )]
    Unconfirmed(Uuid, String),
    /// Fewer key services than are to share a key.
    #[error(
        "{wanted} services are to share the key, and there are {known}: ask who runs the crypto service for \
         more, or run `fhaim up --keys {wanted}`"
    )]
    KeyServices {
        /// How many there are.
        known: usize,
        /// How many were asked for.
        wanted: usize,
    },
    /// Nobody is signed in.
    #[error("nobody is signed in")]
    SignedOut,
    /// A service's key or plan is not what this machine worked out from the same terms.
    #[error("the services do not agree with this machine: {0}")]
    Disagreement(&'static str),
    /// The crypto service answered from an older copy of a dataset's ledger.
    #[error(
        "the crypto service was set back to an older copy of the ledger of dataset {dataset}, and \
         does not know what it released since: nothing more may be released of it. Its operator \
         has to know. Finished tables stay; a new dataset over the same records adds its epsilon \
         to what was spent"
    )]
    Restored {
        /// The dataset.
        dataset: Uuid,
    },
    /// A service has the identifier for something that is not the caller's, or no longer there.
    #[error(
        "the identifier of dataset {dataset} cannot be used: somebody else took it at {service}, \
         or the dataset was deleted there. `fhaim dataset create` makes a dataset with another"
    )]
    Taken {
        /// The dataset.
        dataset: Uuid,
        /// The service's address.
        service: String,
    },
    /// The account is no holder of the dataset.
    #[error(
        "the roster of dataset {0} does not have this account: its maker adds the card that \
         `fhaim dataset join` writes, with `fhaim dataset create --holder`"
    )]
    Outsider(Uuid),
    /// The holder's key on this machine is not the one of the roster.
    #[error(
        "the roster of dataset {0} has another key for this account than this machine: sign where \
         the card was written, or have the dataset made again with the card of this machine"
    )]
    OtherKey(Uuid),
    /// Only who made a dataset deletes it.
    #[error(
        "dataset {0} was made by another of its holders, who can delete it: `fhaim dataset \
         withdraw {0}` takes this account's part back, and lets no further run begin"
    )]
    OtherMaker(Uuid),
    /// A text that should be a link is none.
    #[error("this is not a link: `SERVER/shared/LINK#SECRET`, as `fhaim link make` prints it")]
    NoLink,
    /// A link of another server than the one that is signed in to.
    #[error(
        "the link is of {0}, and its secret is shown to no other server: sign in there, with \
         `fhaim account login --server`"
    )]
    OtherServer(String),
    /// Encryption or planning failed.
    #[error(transparent)]
    Protocol(#[from] fhaim_protocol::Error),
    /// The record of an upload is in use.
    #[error(
        "another upload of this dataset is running{}: wait until it ends. Dataset {dataset} is complete then, or \
         the same command goes on with what is missing", process_of(*.process)
    )]
    UploadRunning {
        /// The dataset.
        dataset: Uuid,
        /// The process that uploads, where it is known.
        process: Option<u32>,
    },
    /// Objects of two uploads in one part.
    #[error(
        "the computation service has objects of another upload of this dataset among those of this one: dataset \
         {0} was uploaded from another machine or folder at the same time. Stop the other upload, and then run \
         this command again: it sends everything again"
    )]
    Mixed(Uuid),
    /// Another upload of the same part was completed before this one.
    #[error(
        "dataset {0}: another upload of this part was completed, from another machine or folder of your account. \
         Nothing of this upload is used, and nothing was changed. To check releases, run `fhaim verify` on the machine \
         of the other upload: only that one has the key of its noise"
    )]
    UploadedElsewhere(Uuid),
    /// The record of an interrupted upload cannot be used.
    #[error("{}: {reason}", path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The key of an upload's noise cannot be used.
    #[error("{}: {reason}", path.display())]
    Ladder {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Nothing that was released of a dataset can be checked here.
    #[error("dataset {dataset}: {reason}")]
    Unverifiable {
        /// The dataset.
        dataset: Uuid,
        /// Why not.
        reason: &'static str,
    },
    /// Accounts of a dataset's releases contradict each other.
    #[error("dataset {dataset}: {reason}")]
    Contradicted {
        /// The dataset.
        dataset: Uuid,
        /// Which do, and what to do.
        reason: String,
    },
    /// Downloaded data cannot be written.
    #[error("cannot write what was downloaded: {0}")]
    Write(#[from] std::io::Error),
    /// A thread ended before its work.
    #[error("a thread ended before its work")]
    Interrupted,
}

fn process_of(process: Option<u32>) -> String {
    process.map_or_else(String::new, |number| format!(" (process {number})"))
}

impl Error {
    /// The kind of problem a service answered with.
    pub fn kind(&self) -> Option<ProblemKind> {
        match self {
            Self::Problem { problem } => Some(problem.kind),
            _ => None,
        }
    }

    /// What a service says of a dataset that is to be made there: to someone else's it says what
    /// it says to one that is gone.
    pub(crate) fn of_new_dataset(self, dataset: Uuid, service: &str) -> Self {
        match self.kind() {
            Some(ProblemKind::NotFound) => Self::Taken {
                dataset,
                service: service.to_owned(),
            },
            _ => self,
        }
    }

    pub(crate) fn unreachable(address: &str, error: reqwest::Error) -> Self {
        // The address of the error may carry a query; ours does not.
        let error = error.without_url();
        let mut reason = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            reason = cause.to_string();
            source = cause.source();
        }
        Self::Unreachable {
            address: address.to_owned(),
            reason,
        }
    }
}
