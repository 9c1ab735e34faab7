//! Errors between a holder and the services.

use fhaim_api::problem::{Problem, ProblemKind};
use fhaim_api::token::Service;
use std::path::PathBuf;
use uuid::Uuid;

/// An error of the SDK. No error contains a value of the table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A service answered with a problem.
    #[error("{problem}")]
    Problem {
        /// The problem in the answer.
        problem: Box<Problem>,
    },
    /// A service cannot be reached.
    #[error("no service answers at {address}: {reason}")]
    Unreachable {
        /// The address of the call.
        address: String,
        /// The system's reason.
        reason: String,
    },
    /// A password and tokens would cross a network in plain text.
    #[error(
        "{0}: this address would get the password and the tokens in plain text: use an https address. For \
         a service without https, make a tunnel to its machine (`ssh -L 8080:127.0.0.1:8080 MACHINE`) and use \
         http://127.0.0.1:8080"
    )]
    PlainHttp(String),
    /// A service gave an unexpected answer.
    #[error("{address}: unexpected answer: {reason}")]
    Answer {
        /// The address of the call.
        address: String,
        /// The problem with the answer.
        reason: String,
    },
    /// A dataset has a second computation service, but its address is not known.
    #[error(
        "dataset {0} has a second computation service, but its address is not known: sign in again with \
         `fhaim account login --witness URL`"
    )]
    NoWitness(Uuid),
    /// The generation service gave no token for a service.
    #[error(
        "the generation service gave no token for the {0} service: ask its operator to add `peers.{0}` to its \
         configuration"
    )]
    NoToken(Service),
    /// The second computation service lacks an upload, and this machine has no record of it.
    #[error(
        "the second computation service has no copy of your part of dataset {0}, and this machine has no record \
         of the upload: run the upload again where you ran it before, since `fhaim` keeps the record there with \
         the key of the noise; or delete the dataset and create it again"
    )]
    Uncopied(Uuid),
    /// The computation service lost an upload over which runs have begun.
    #[error(
        "the computation service no longer has your part of dataset {0}, and runs over it have begun: the key \
         service accepts no other upload for this dataset. Ask the operator of the computation service to \
         restore it from a backup with the upload. Finished tables stay available. Or create a new dataset: over \
         the same records, its cost adds to the cost of this one"
    )]
    UploadLost(Uuid),
    /// The terms require several services to share the keys, and not all of them have confirmed it.
    #[error(
        "the keys of dataset {0} are not used: several services must share them, and {1}. The operator of the \
         crypto service may have made them alone: do not upload"
    )]
    Unconfirmed(Uuid, String),
    /// There are fewer key services than the requested number.
    #[error(
        "{wanted} services must share the key, but only {known} are known: ask the operator of the crypto \
         service for more, or run `fhaim up --keys {wanted}`"
    )]
    KeyServices {
        /// Number of known services.
        known: usize,
        /// Number of requested services.
        wanted: usize,
    },
    /// Nobody is signed in.
    #[error("this machine has no stored login")]
    SignedOut,
    /// A sign-in with a wrong email address or password.
    #[error("the email address or the password is wrong")]
    WrongCredentials,
    /// The password is not that of the signed-in account.
    #[error("the password is wrong: nothing was changed")]
    WrongPassword,
    /// A service's key or plan differs from the one that this machine derives from the same terms.
    #[error(
        "the services compute something else than this machine from the dataset's terms: {0}. Update `fhaim` here, or \
         ask the operators of the services whether they changed something"
    )]
    Disagreement(&'static str),
    /// The generation service has forgotten a job that has a run.
    #[error(
        "the generation service has forgotten job {job} of dataset {dataset}, which has a run: it was set back to an \
         older copy. `fhaim job run {dataset} --job {job}` makes its table again from its releases, at no further \
         cost. Then another run can be started"
    )]
    ForgottenJob {
        /// The dataset.
        dataset: Uuid,
        /// The job.
        job: Uuid,
    },
    /// The crypto service has no ledger of a dataset that the generation service knows.
    #[error(
        "the crypto service has no ledger of dataset {0}. A ledger begins with the upload of the table. If the table \
         was uploaded, the crypto service was set back to an older copy: inform its operator"
    )]
    NoLedger(Uuid),
    /// The crypto service answered from an older copy of a dataset's ledger.
    #[error(
        "the crypto service was set back to an older copy of the ledger of dataset {dataset}, and \
         does not know what it released since then: no more releases of it are allowed. Tell its \
         operator. Finished tables stay; a new dataset over the same records adds its epsilon to \
         what was spent"
    )]
    Restored {
        /// The dataset.
        dataset: Uuid,
    },
    /// The identifier of a dataset belongs to another account, or to a deleted dataset.
    #[error(
        "the identifier of dataset {dataset} cannot be used: another account has it at {service}, \
         or the dataset was deleted there. Run `fhaim dataset create` to use another identifier"
    )]
    Taken {
        /// The dataset.
        dataset: Uuid,
        /// The service's address.
        service: String,
    },
    /// The account is not a holder of the dataset.
    #[error(
        "this account is not in the roster of dataset {0}: its maker must add the card that \
         `fhaim dataset join` writes, with `fhaim dataset create --holder`"
    )]
    Outsider(Uuid),
    /// The holder's key on this machine is not the one in the roster.
    #[error(
        "the roster of dataset {0} has another key for this account than this machine: sign on the \
         machine that wrote the card, or have the dataset created again with this machine's card"
    )]
    OtherKey(Uuid),
    /// Only the maker of a dataset can delete it.
    #[error(
        "dataset {0} was made by another holder, and only that holder can delete it: `fhaim dataset \
         withdraw {0}` prevents further runs, and deletes this account's part if no run has begun"
    )]
    OtherMaker(Uuid),
    /// A text is not a link.
    #[error(
        "this is not a link: it must have the form `SERVER/shared/LINK#SECRET`, as printed by `fhaim link make`"
    )]
    NoLink,
    /// A link belongs to another server than the one with the session.
    #[error(
        "the link belongs to {0}, and its secret is not sent to any other server: sign in there \
         with `fhaim account login --server`"
    )]
    OtherServer(String),
    /// Encryption or planning failed.
    #[error(transparent)]
    Protocol(#[from] fhaim_protocol::Error),
    /// The record of an upload is in use.
    #[error(
        "another upload of this dataset is running{}: wait until it ends. If dataset {dataset} is not complete \
         then, run this command again to upload the rest", process_of(*.process)
    )]
    UploadRunning {
        /// The dataset.
        dataset: Uuid,
        /// The process that uploads, if it is known.
        process: Option<u32>,
    },
    /// One part contains objects of two uploads.
    #[error(
        "the computation service has objects of another upload of this dataset among those of this one: dataset \
        {0} was uploaded from another machine or folder at the same time. Stop the other upload, then run this \
         command again: it sends everything again"
    )]
    Mixed(Uuid),
    /// Another upload of the same part was completed before this one.
    #[error(
        "dataset {0}: another upload of this part was completed, from another machine or folder of your account. \
         Objects of this upload are not used, and nothing was changed. To check releases, run `fhaim verify` on the \
         machine of the other upload, which has the key of its noise"
    )]
    UploadedElsewhere(Uuid),
    /// The record of an interrupted upload cannot be used.
    #[error("{}: {reason}", path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// The problem with the file.
        reason: String,
    },
    /// The key of an upload's noise cannot be used.
    #[error("{}: {reason}", path.display())]
    Ladder {
        /// The file.
        path: PathBuf,
        /// The problem with the file.
        reason: String,
    },
    /// The releases of a dataset cannot be checked here.
    #[error("dataset {dataset}: {reason}")]
    Unverifiable {
        /// The dataset.
        dataset: Uuid,
        /// The reason.
        reason: &'static str,
    },
    /// Records of a dataset's releases contradict each other.
    #[error("dataset {dataset}: {reason}")]
    Contradicted {
        /// The dataset.
        dataset: Uuid,
        /// The contradiction, and what to do about it.
        reason: String,
    },
    /// Downloaded data cannot be written.
    #[error("cannot write the downloaded data: {0}")]
    Write(#[from] std::io::Error),
    /// A background thread stopped before it finished.
    #[error("the program failed: a background thread stopped early. Run the command again")]
    Interrupted,
}

fn process_of(process: Option<u32>) -> String {
    process.map_or_else(String::new, |number| format!(" (process {number})"))
}

impl Error {
    /// Returns the kind of problem that a service answered with.
    pub fn kind(&self) -> Option<ProblemKind> {
        match self {
            Self::Problem { problem } => Some(problem.kind),
            Self::WrongCredentials => Some(ProblemKind::Unauthenticated),
            Self::NoLedger(_) => Some(ProblemKind::NotFound),
            _ => None,
        }
    }

    /// Interprets a service's answer about a dataset to be created there. A service gives the same
    /// answer for another account's dataset as for a deleted one.
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
