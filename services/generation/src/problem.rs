//! The refusals of this service and the problem kind of each.

use fhaim_api::job::JobState;
use fhaim_api::problem::ProblemKind;
use fhaim_domain::counted;
use fhaim_platform::Failure;
use uuid::Uuid;

use fhaim_domain::ConditionError;

/// A request that the service refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Sign-up is closed: only the operator creates accounts.
    #[error("sign-up is closed on this service; ask its operator for an account")]
    SignUpClosed,
    /// The terms name a second computation service, but none is configured.
    #[error(
        "witness: this service has no second computation service (`peers.witness`); create the \
         dataset without one, or ask the operator of this service to configure one"
    )]
    NoWitness,
    /// An invalid email address.
    #[error("email: must be a valid email address")]
    Email,
    /// A password that is too short or too long.
    #[error("password: must have {least} to {most} characters")]
    Password {
        /// Fewest characters.
        least: usize,
        /// Most characters.
        most: usize,
    },
    /// The email address already has an account.
    #[error("an account with this email address already exists; sign in instead")]
    AccountExists,
    /// An invalid name.
    #[error("{field}: must have 1 to {most} characters and no control characters")]
    Name {
        /// The field.
        field: &'static str,
        /// Most characters.
        most: usize,
    },
    /// A link's lifetime is out of range.
    #[error("days: must be 1 to {0}; without `days`, the link is valid until it is revoked")]
    LinkDays(u16),
    /// Wrong credentials; the message does not say which part is wrong.
    #[error("the email address or the password is wrong")]
    Credentials,
    /// The password is not the account's.
    #[error("password: not the password of this account; enter it again")]
    WrongPassword,
    /// The operator has disabled the account.
    #[error("the account is disabled; ask the operator of this service")]
    Disabled,
    /// A stored model is damaged or missing.
    #[error(
        "the stored model of job {job} of dataset {dataset} is damaged; other jobs are not affected. `fhaim job retry \
         {job}` fits it again to the stored releases, at no cost"
    )]
    DamagedModel {
        /// The job.
        job: Uuid,
        /// Its dataset.
        dataset: Uuid,
    },
    /// The account still has datasets.
    #[error(
        "the account still has {}; delete all datasets first, at all services", counted(*.0, "dataset")
    )]
    HasDatasets(u64),
    /// A token or an API key that is unknown, expired or revoked.
    #[error("the token or API key is not accepted; sign in again or use another key")]
    Token,
    /// Too many sign-in attempts.
    #[error("too many sign-in attempts; try again in {0} s")]
    TooManyTries(u64),
    /// An API key with this identifier has another name.
    #[error(
        "an API key with this identifier and another name already exists; choose another identifier"
    )]
    OtherKey,
    /// An API key with this identifier has already been used.
    #[error("this API key has been used, so its text cannot be replaced; create another key")]
    UsedKey,
    /// A session from an API key makes an API key.
    #[error("an API key cannot make API keys: sign in with the password")]
    KeyByKey,
    /// Too many API keys.
    #[error(
        "api_keys: the account has reached its limit of {0} API keys; delete one, or ask the \
         operator of this service for a higher limit"
    )]
    TooManyKeys(u64),
    /// A link with this identifier has another name or lifetime.
    #[error(
        "a link with this identifier and another name or lifetime already exists; choose another \
         identifier"
    )]
    OtherLink,
    /// A link with this identifier has already been opened.
    #[error("this link has been opened, so its secret cannot be replaced; create another link")]
    OpenedLink,
    /// Too many links.
    #[error(
        "links: the account has reached its limit of {0} links; revoke one, or ask the operator of \
         this service for a higher limit"
    )]
    TooManyLinks(u64),
    /// Too many datasets.
    #[error(
        "datasets: the account has reached its limit of {0} datasets; delete one, or ask the \
         operator of this service for a higher limit"
    )]
    TooManyDatasets(u64),
    /// Too many jobs.
    #[error(
        "jobs: the account has reached its limit of {0} jobs; delete a dataset, which deletes its \
         jobs, or ask the operator of this service for a higher limit"
    )]
    TooManyJobs(u64),
    /// Too many jobs queued or running.
    #[error(
        "jobs_under_way: the account has reached its limit of {0} queued or running jobs; wait \
         until one ends, or cancel one"
    )]
    TooManyUnderWay(u64),
    /// A page length out of range.
    #[error("limit: must be 1 to {0}")]
    PageLimit(u32),
    /// A cursor that does not come from a page.
    #[error("after: must be the value of `next` in another page")]
    PageAfter,
    /// An invalid `Last-Event-ID` header.
    #[error("Last-Event-ID: must be the number of an event")]
    LastEvent,
    /// The dataset with this identifier is being deleted.
    #[error("the dataset with this identifier is being deleted; choose another identifier")]
    Deleting,
    /// A dataset with this identifier has another name or other terms.
    #[error(
        "a dataset with this identifier and another name or other terms already exists; choose \
         another identifier"
    )]
    OtherDataset,
    /// The model size of the terms exceeds the service's limit.
    #[error("model_bytes: must be at most {most} on this service, and is {asked}")]
    ModelBytes {
        /// Limit of the service.
        most: usize,
        /// Model size in the terms.
        asked: usize,
    },
    /// The columns have too many categories: no request could carry their one-ways.
    #[error(
        "schema: the columns have too many categories: their one-ways take {values} numbers, the sum \
         of the squared numbers of categories, and a request carries at most {most}, such as one \
         column of {categories} categories; merge categories, or make codes of chapters and parts \
         (kind `code`)"
    )]
    Wide {
        /// The numbers of the schema.
        values: usize,
        /// Most numbers.
        most: usize,
        /// Most categories of a schema with one column.
        categories: usize,
    },
    /// Terms that have no plan.
    #[error("{0}")]
    Terms(String),
    /// The roster does not begin with the account that creates the dataset.
    #[error(
        "roster: the first holder must be the account that creates the dataset, with identifier {0}"
    )]
    First(Uuid),
    /// The roster has too many holders.
    #[error("roster: a dataset can have at most {0} holders")]
    Holders(usize),
    /// A holder of the roster has no account here.
    #[error(
        "roster: holder {0} has no account on this service; each holder gets a valid card from \
         `fhaim dataset join` after signing in"
    )]
    Holder(usize),
    /// Some contributions are not registered yet.
    #[error("{there} of {of} holders have started to upload; all holders must upload first")]
    Absent {
        /// Number of registered contributions.
        there: usize,
        /// Number of contributions in the terms.
        of: usize,
    },
    /// No upload has been started.
    #[error("no upload has been started for this dataset; upload the table first")]
    NotUploaded,
    /// The upload is not complete.
    #[error(
        "the upload is not complete: {} missing, or `complete` was not called; resume the upload",
        counted(*.0, "object")
    )]
    Incomplete(u64),
    /// A voucher for a dataset that already has keys.
    #[error(
        "keys have already been created for this dataset: this service has a receipt for them, or \
         a job that released something. New keys are not created. If the key service does not have \
         the keys, it was set back to a copy from before their creation: inform its operator and \
         create a new dataset. Over the same records, its cost adds to the cost of this dataset"
    )]
    HasKeys,
    /// An unreadable receipt, or the receipt of another dataset.
    #[error("receipt: it cannot be read, or belongs to another dataset")]
    Receipt,
    /// A job with this identifier belongs to another dataset.
    #[error(
        "a job with this identifier already exists on another dataset; choose another identifier"
    )]
    OtherJob,
    /// The dataset has no records yet.
    #[error("the dataset is not ready: upload its records first")]
    NotReady,
    /// The dataset's owner is deleting it.
    #[error(
        "the dataset is being deleted; its owner can repeat `fhaim dataset delete` to finish that"
    )]
    BeingDeleted,
    /// All runs of the dataset are taken.
    #[error(
        "the dataset's budget allows {}, and none is left; {}",
        counted(*.runs, "run"), way_out(*.stranded)
    )]
    Spent {
        /// Number of runs of the dataset.
        runs: usize,
        /// A failed or cancelled job that holds a run.
        stranded: Option<Uuid>,
    },
    /// The job has already ended.
    #[error("the job has already ended")]
    Ended,
    /// The job is done.
    #[error("the job is done and cannot be retried")]
    Done,
    /// The job has no model.
    #[error("the job has no model: its state is {}, and must be done", state_name(*.0))]
    NoModel(JobState),
    /// The model has no marginals.
    #[error("the job's model has no marginals; draw a synthetic table from it instead")]
    NoMarginals,
    /// The model does not support conditions.
    #[error("where: the job's model does not support conditions; leave out `where`")]
    NoConditions,
    /// The number of records is out of range.
    #[error("rows: must be 1 to {0}")]
    Rows(u64),
    /// Conditions that cannot be parsed.
    #[error(transparent)]
    Conditions(#[from] ConditionError),
    /// The model has no records that satisfy the conditions.
    #[error("where: the model has no records with {0}; relax the conditions")]
    Impossible(String),
    /// The schema's constraints exclude almost all records that satisfy the conditions.
    #[error(
        "where: almost no record matching {0:?} satisfies the schema's constraints; relax the \
         conditions"
    )]
    Excluded(String),
    /// The output format cannot hold the table.
    #[error("{0}")]
    Format(String),
}

fn way_out(stranded: Option<Uuid>) -> String {
    match stranded {
        Some(job) => format!("job {job} holds a run: resume it with `fhaim job retry {job}`"),
        None => {
            "a new dataset over the same records adds its epsilon to the total spent".to_owned()
        }
    }
}

fn state_name(state: JobState) -> String {
    fhaim_platform::rows::name(state).unwrap_or_default()
}

impl Refusal {
    /// Returns the problem kind of the refusal.
    pub fn kind(&self) -> ProblemKind {
        match self {
            Self::DamagedModel { .. } => ProblemKind::Damaged,
            Self::SignUpClosed | Self::Disabled | Self::WrongPassword | Self::KeyByKey => {
                ProblemKind::Forbidden
            }
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
            | Self::Wide { .. }
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
            | Self::BeingDeleted
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
