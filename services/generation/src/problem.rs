//! What this service refuses, and which problem each refusal is.

use fhaim_api::job::JobState;
use fhaim_api::problem::ProblemKind;
use fhaim_domain::counted;
use fhaim_platform::Failure;
use uuid::Uuid;

use fhaim_domain::ConditionError;

/// A refusal: what is asked for cannot be had as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Only the operator makes accounts.
    #[error("sign-up is closed: ask who runs this service for an account")]
    SignUpClosed,
    /// Terms with a second computation service, where there is none.
    #[error(
        "witness: there is no second computation service here: make the dataset without, or ask who runs \
         this service for one (`peers.witness`)"
    )]
    NoWitness,
    /// Not an address.
    #[error("email: this is not an address")]
    Email,
    /// A password that is too short or too long.
    #[error("password: it must have {least} to {most} characters")]
    Password {
        /// Fewest characters.
        least: usize,
        /// Most characters.
        most: usize,
    },
    /// An address that has an account.
    #[error("there is an account of this address: sign in")]
    AccountExists,
    /// A name that cannot be used.
    #[error("{field}: it must have 1 to {most} characters, none of them control")]
    Name {
        /// The field.
        field: &'static str,
        /// Most characters.
        most: usize,
    },
    /// Days of a link that are too few or too many.
    #[error("days: a link is good for 1 to {0} days, or without `days` until it is revoked")]
    LinkDays(u16),
    /// Wrong credentials, without saying which part.
    #[error("there is no account with this address and password")]
    Credentials,
    /// Another password than the account's.
    #[error("password: it is not the account's")]
    WrongPassword,
    /// An account that its operator has closed.
    #[error("the account is disabled: ask who runs this service")]
    Disabled,
    /// An account that still has datasets.
    #[error(
        "the account has {}: delete them first, at all services", counted(*.0, "dataset")
    )]
    HasDatasets(u64),
    /// A token or a key that is unknown or of no more use.
    #[error("this token or key is not accepted: sign in again")]
    Token,
    /// Too many tries at signing in.
    #[error("too many tries: wait {0} s")]
    TooManyTries(u64),
    /// A key of this identifier is named otherwise.
    #[error("there is a key of this identifier with another name")]
    OtherKey,
    /// A key of this identifier has been used.
    #[error("the key has been used, so that its text is known: make another")]
    UsedKey,
    /// Too many keys.
    #[error(
        "api_keys: an account can have {0} keys: delete one first, or ask who runs this service \
         for more"
    )]
    TooManyKeys(u64),
    /// A link of this identifier is named otherwise.
    #[error("there is a link of this identifier with another name, or good for another time")]
    OtherLink,
    /// A link of this identifier has been opened.
    #[error("the link has been opened, so that its secret is known: make another")]
    OpenedLink,
    /// Too many links.
    #[error(
        "links: an account can have {0} links: revoke one first, or ask who runs this service for \
         more"
    )]
    TooManyLinks(u64),
    /// Too many datasets.
    #[error(
        "datasets: an account can have {0} datasets: delete one first, or ask who runs this \
         service for more"
    )]
    TooManyDatasets(u64),
    /// Too many jobs.
    #[error(
        "jobs: an account can have {0} jobs: delete a dataset, with which its jobs go, or ask who \
         runs this service for more"
    )]
    TooManyJobs(u64),
    /// Too many jobs queued or running.
    #[error(
        "jobs_under_way: an account can have {0} jobs queued or running: wait until one ends, or \
         cancel one"
    )]
    TooManyUnderWay(u64),
    /// A page that is too long, or empty.
    #[error("limit must be 1 to {0}")]
    PageLimit(u32),
    /// A cursor that no page gave.
    #[error("after must be `next` of another page")]
    PageAfter,
    /// A header that is none.
    #[error("Last-Event-ID must be the number of an event")]
    LastEvent,
    /// A dataset of this identifier is being deleted.
    #[error("the dataset of this identifier is being deleted")]
    Deleting,
    /// A dataset of this identifier is another.
    #[error("there is a dataset of this identifier with another name or other terms")]
    OtherDataset,
    /// A model cap above the service's.
    #[error("model_bytes: at most {most} here, not {asked}")]
    ModelBytes {
        /// The service's.
        most: usize,
        /// What was asked for.
        asked: usize,
    },
    /// Terms without a plan.
    #[error("{0}")]
    Terms(String),
    /// A roster that does not begin with whoever makes the dataset.
    #[error(
        "roster: the first holder is the account that makes the dataset, by its identifier {0}"
    )]
    First(Uuid),
    /// A roster of more holders than a dataset has.
    #[error("roster: a dataset has at most {0} holders")]
    Holders(usize),
    /// A roster of an account that there is not.
    #[error(
        "roster: holder {0}: there is no account of this identifier: `fhaim dataset join` prints \
         the card of who is signed in"
    )]
    Holder(usize),
    /// Contributions that were not registered yet.
    #[error("of {of} holders {there} have begun to upload: all must be there")]
    Absent {
        /// Contributions that are registered.
        there: usize,
        /// Those there will be.
        of: usize,
    },
    /// Nothing of an upload is there.
    #[error("nothing has been uploaded yet")]
    NotUploaded,
    /// An upload that is not complete.
    #[error(
        "the upload is not complete: it lacks {}, or `complete` was not called",
        counted(*.0, "object")
    )]
    Incomplete(u64),
    /// A voucher for a dataset that has had keys.
    #[error(
        "keys were made for this dataset before: there is a receipt for them, or a job that released \
         something. No others are made in their place. If the key service does not have them, it was set back \
         to before they were made: tell its operator, and make a new dataset, which over the same records \
         adds its cost to what was spent on this one"
    )]
    HasKeys,
    /// A receipt of something else.
    #[error("the receipt is of another dataset, or none")]
    Receipt,
    /// A job of this identifier is of another dataset.
    #[error("there is a job of this identifier on another dataset")]
    OtherJob,
    /// A dataset without records yet.
    #[error("the dataset is not ready: upload its records first")]
    NotReady,
    /// All runs are taken.
    #[error(
        "the dataset's budget is for {}, and other jobs left none; {}",
        counted(*.runs, "run"), way_out(*.stranded)
    )]
    Spent {
        /// Runs of the dataset.
        runs: usize,
        /// A job that holds one without being done or under way.
        stranded: Option<Uuid>,
    },
    /// The job is at its end.
    #[error("the job has ended already")]
    Ended,
    /// The job is done.
    #[error("the job is done: there is nothing to try again")]
    Done,
    /// A job without a model.
    #[error("the job has no model: it is {}", state_name(*.0))]
    NoModel(JobState),
    /// A model that can tell no marginals.
    #[error("the job's model has no marginals: draw a table from it")]
    NoMarginals,
    /// A model that takes no conditions.
    #[error("where: the job's model takes no conditions")]
    NoConditions,
    /// Too many records, or none.
    #[error("rows: it must be 1 to {0}")]
    Rows(u64),
    /// Conditions that say nothing.
    #[error(transparent)]
    Conditions(#[from] ConditionError),
    /// Conditions that no record meets.
    #[error("where: the model has no records with {0}")]
    Impossible(String),
    /// Conditions that the schema's constraints exclude.
    #[error(
        "where: the schema's constraints allow next to no record of {0:?}: they say what never is so"
    )]
    Excluded(String),
    /// A table that the format cannot hold.
    #[error("{0}")]
    Format(String),
}

fn way_out(stranded: Option<Uuid>) -> String {
    match stranded {
        Some(job) => format!("job {job} holds a run: `fhaim job retry {job}` goes on with it"),
        None => "a new dataset over the same records adds its epsilon to what was spent".to_owned(),
    }
}

fn state_name(state: JobState) -> String {
    fhaim_platform::rows::name(state).unwrap_or_default()
}

impl Refusal {
    /// Which problem it is.
    pub fn kind(&self) -> ProblemKind {
        match self {
            Self::SignUpClosed | Self::Disabled | Self::WrongPassword => ProblemKind::Forbidden,
            Self::Credentials | Self::Token => ProblemKind::Unauthenticated,
            Self::TooManyTries(_) => ProblemKind::TooManyRequests,
            Self::TooManyKeys(_)
            | Self::TooManyLinks(_)
            | Self::TooManyDatasets(_)
            | Self::TooManyJobs(_)
            | Self::TooManyUnderWay(_) => ProblemKind::Quota,
            Self::LastEvent => ProblemKind::Malformed,
            Self::Spent { .. } => ProblemKind::BudgetSpent,
            Self::Email
            | Self::Password { .. }
            | Self::Name { .. }
            | Self::LinkDays(_)
            | Self::PageLimit(_)
            | Self::PageAfter
            | Self::ModelBytes { .. }
            | Self::Terms(_)
            | Self::NoWitness
            | Self::First(_)
            | Self::Holders(_)
            | Self::Holder(_)
            | Self::Receipt
            | Self::NoConditions
            | Self::Rows(_)
            | Self::Conditions(_)
            | Self::Impossible(_)
            | Self::Excluded(_)
            | Self::Format(_) => ProblemKind::Invalid,
            Self::AccountExists
            | Self::HasDatasets(_)
            | Self::OtherKey
            | Self::UsedKey
            | Self::OtherLink
            | Self::OpenedLink
            | Self::Deleting
            | Self::OtherDataset
            | Self::HasKeys
            | Self::NotUploaded
            | Self::Incomplete(_)
            | Self::Absent { .. }
            | Self::OtherJob
            | Self::NotReady
            | Self::Ended
            | Self::Done
            | Self::NoMarginals
            | Self::NoModel(_) => ProblemKind::Conflict,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let mut failure = Self::new(refusal.kind(), refusal.to_string());
        if let Refusal::TooManyTries(seconds) = refusal {
            failure.problem.retry_after = Some(seconds);
        }
        failure
    }
}
