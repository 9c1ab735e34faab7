//! The commands for programs that embed this library.
//!
//! Tables and results are in memory, remarks are collected, and a listener receives progress and can stop the work.
//! Everything else is as in the command: the same checks, releases, ledger, errors and usage history. All randomness is
//! from the operating system.

use std::{
    any::Any,
    borrow::Cow,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::PathBuf,
    sync::Arc,
};

pub use fhaim_api::account::Secret;
use fhaim_domain::Schema;
use fhaim_files::{FormatArguments, StrictnessArguments, keeping, memory, progress::Progress};
use fhaim_he::Layout;
use fhaim_intake::{ProposedRule, RULES_STATEMENT, SHARED_BY, with_rules};
pub use fhaim_sdk::Endpoints;
use fhaim_synth::MechanismName;
use uuid::Uuid;

use crate::{
    division::HoldersArguments,
    error::Error,
    evaluate::{self, EvaluateArguments},
    generate::{Command, Journal, Request, args::GenerateArguments, modelled_records},
    input,
    output::{self, OverwriteArguments},
    remote::{args::UploadArguments, dataset, login},
    sample::{self, SampleArguments},
    schema::{self, InferArguments},
    serve,
};
pub use fhaim_files::{LeftOut, data::Data, is_unnamed_index, progress::Listener, typed};

/// Result of successful work.
#[derive(Debug)]
pub struct Done<T> {
    /// The result itself.
    pub result: T,
    /// Remarks for the user, a sentence or two each.
    pub remarks: Vec<String>,
}

/// Reason why some work has no result.
#[derive(Debug, thiserror::Error)]
pub enum WorkFailure {
    /// The request is invalid, or carrying it out failed.
    #[error("{reason}")]
    Refused {
        /// The problem, with its place.
        reason: String,
        /// What to do about it, in terms of the command's flags, unless the reason says it.
        way_out: Option<String>,
        /// Whether the work stopped because the records were used before, or may have been.
        used_before: bool,
        /// Remarks for the user, such as the earlier uses of the records.
        remarks: Vec<String>,
    },
    /// The listener stopped the work.
    #[error("the work was stopped")]
    Stopped,
}

impl From<Error> for WorkFailure {
    fn from(error: Error) -> Self {
        Self::Refused {
            reason: error.to_string(),
            way_out: error.way_out().map(Cow::into_owned),
            used_before: matches!(
                error,
                Error::Files(fhaim_files::Error::UsedBefore | fhaim_files::Error::UnknownUses)
            ),
            remarks: Vec::new(),
        }
    }
}

impl WorkFailure {
    fn with_remarks(mut self, told: Vec<String>) -> Self {
        if let Self::Refused { remarks, .. } = &mut self {
            *remarks = told;
        }
        self
    }
}

/// Options for reading tables.
#[derive(Clone, Debug, Default)]
pub struct ReadingOptions {
    /// Texts that mark a missing value, in addition to an empty field.
    pub missing: Vec<String>,
    /// Clips numbers outside the schema's range to the nearest limit.
    pub clamp: bool,
    /// Ignores columns that are not in the schema.
    pub ignore_columns: bool,
}

impl ReadingOptions {
    fn arguments(self) -> (FormatArguments, StrictnessArguments) {
        let format = FormatArguments {
            missing: self.missing,
            ..FormatArguments::default()
        };
        let strictness = StrictnessArguments {
            clamp: self.clamp,
            ignore_columns: self.ignore_columns,
        };
        (format, strictness)
    }
}

/// Request to draft a schema from a table.
#[derive(Debug)]
pub struct SchemaDraftRequest {
    /// The table.
    pub table: Data,
    /// The schema's name.
    pub name: Option<String>,
    /// The column that the table is meant to predict.
    pub target: Option<String>,
    /// Columns to leave out.
    pub leave_out: Vec<String>,
    /// Texts that mark a missing value, in addition to an empty field.
    pub missing: Vec<String>,
    /// Budget of a private draft. Without it, the draft is not private: it has no cost, but must not be published
    /// unchecked.
    pub epsilon: Option<f64>,
    /// Delta of a private draft.
    pub delta: f64,
    /// Whether to make a private draft of records that were used before.
    pub yes: bool,
}

/// A drafted schema.
#[derive(Debug)]
pub struct Drafted {
    /// The schema, as JSON.
    pub schema: String,
    /// Notes about decisions for its columns, and about its permitted use.
    pub notes: Vec<String>,
    /// Rules between columns that hold in all records, as JSON. They are not in the schema until the owner accepts
    /// them with [`accept_rules`].
    pub rules: String,
}

impl SchemaDraftRequest {
    /// Drafts the schema.
    ///
    /// # Errors
    /// [`WorkFailure`].
    pub fn run(self, listener: &Arc<dyn Listener>) -> Result<Done<Drafted>, WorkFailure> {
        let reading = ReadingOptions {
            missing: self.missing,
            ..ReadingOptions::default()
        };
        let arguments = InferArguments {
            data: self.table,
            name: self.name,
            target: self.target,
            leave_out: self.leave_out,
            bins: 10,
            max_categories: 100,
            kind: Vec::new(),
            code_book: Vec::new(),
            shared_by: SHARED_BY,
            accept_rule: Vec::new(),
            json: false,
            epsilon: self.epsilon,
            delta: self.delta,
            yes: self.yes,
            out: None,
            overwriting: OverwriteArguments::default(),
            format: reading.arguments().0,
        };
        within(listener, |progress| {
            let phase = progress.uncounted("draft");
            let drafted = schema::draft(&arguments)?;
            phase.finish();
            let rules = drafted.draft.map_or_else(Vec::new, |draft| draft.rules);
            let mut notes = drafted.notes;
            notes.push(drafted.statement);
            if !rules.is_empty() {
                notes.push(RULES_STATEMENT.to_owned());
            }
            Ok(Drafted {
                schema: drafted.schema.to_json(),
                notes,
                rules: output::to_json(&rules)?,
            })
        })
    }
}

/// Adds accepted rules to a drafted schema, which may have been edited. Returns the schema as JSON.
///
/// `rules` is a list of rules of [`Drafted::rules`], as JSON.
///
/// # Errors
/// [`WorkFailure::Refused`] if the schema or the rules are invalid, or do not fit together.
pub fn accept_rules(schema: &str, rules: &str) -> Result<String, WorkFailure> {
    let schema = Schema::from_json("the schema", schema.as_bytes()).map_err(Error::from)?;
    let rules: Vec<ProposedRule> =
        serde_json::from_str(rules).map_err(|error| Error::Usage(format!("the rules: {error}")))?;
    let accepted = with_rules(schema, &rules).map_err(Error::from)?;
    Ok(accepted.to_json())
}

/// Request to fit a model to a table.
#[derive(Debug)]
pub struct Fit {
    /// The table.
    pub table: Data,
    /// Its schema, as JSON.
    pub schema: String,
    /// Privacy budget: epsilon.
    pub epsilon: f64,
    /// Privacy budget: delta.
    pub delta: f64,
    /// Name of the mechanism.
    pub mechanism: String,
    /// Whether to work under encryption.
    pub encrypted: bool,
    /// Public upper bound on the number of records; by default the bound that the size of an upload reveals.
    pub record_bound: Option<u64>,
    /// Maximum memory for the model, in MB.
    pub model_mb: usize,
    /// Weight of pairs of columns that include the schema's target column.
    pub target_weight: u32,
    /// Maximum memory for the work, in MB; by default the available memory.
    pub memory_mb: Option<u64>,
    /// Whether to use records that were used before.
    pub yes: bool,
    /// Options for reading the table.
    pub reading: ReadingOptions,
    /// Name of the calling program, for the usage history.
    pub program: String,
}

/// A fitted model with its ledger and summary, all of them differentially private.
#[derive(Debug)]
pub struct Fitted {
    /// The model, in the format that [`Sample`] reads.
    pub model: Vec<u8>,
    /// The releases and their costs, as JSON.
    pub ledger: String,
    /// The summary of the run, as JSON.
    pub summary: String,
}

impl Fit {
    /// Makes the mechanism's releases, and fits a model to them.
    ///
    /// # Errors
    /// [`WorkFailure`]. In this case, no data of the records is kept, and nothing was released.
    pub fn run(self, listener: &Arc<dyn Listener>) -> Result<Done<Fitted>, WorkFailure> {
        let schema = self.schema;
        let (format, strictness) = self.reading.arguments();
        let encrypted = self.encrypted;
        let arguments = GenerateArguments {
            data: self.table,
            schema: PathBuf::from(SCHEMA),
            epsilon: self.epsilon,
            delta: self.delta,
            mechanism: mechanism(&self.mechanism)?,
            out: PathBuf::from(self.program),
            report: None,
            force: false,
            rows: None,
            record_bound: self.record_bound,
            model_mb: self.model_mb,
            target_weight: self.target_weight,
            memory_mb: self.memory_mb,
            yes: self.yes,
            json: false,
            holders: HoldersArguments::default(),
            format,
            strictness,
        };
        within(listener, |progress| {
            let request = Request::read(&arguments, read_schema(&schema)?, None)?;
            let command = match encrypted {
                true => Command::Run,
                false => Command::Local,
            };
            let (form, out) = (request.form(command), arguments.out.clone());
            let mut journal = Journal::in_memory(form, request.job.rho, out);
            let made = request.make(command, &mut journal, None, progress)?;
            let records = modelled_records(&*made.model);
            Ok(Fitted {
                model: made.model.save(),
                ledger: journal.text()?,
                summary: output::to_json(&request.summary(command, &made, records))?,
            })
        })
    }
}

/// Request to draw records from a model.
#[derive(Debug)]
pub struct Sample {
    /// The model.
    pub model: Vec<u8>,
    /// The schema of the table that the model was fitted to, as JSON.
    pub schema: String,
    /// Number of records; by default the model's estimate of the number of real records.
    pub records: Option<usize>,
    /// Values that every record must have, as COLUMN=VALUE, separated by commas.
    pub conditions: Option<String>,
    /// Maximum memory for the model, in MB.
    pub model_mb: usize,
}

impl Sample {
    /// Draws the records. Returns CSV with a header, and with values in the schema's format.
    ///
    /// # Errors
    /// [`WorkFailure`].
    pub fn run(self, listener: &Arc<dyn Listener>) -> Result<Done<Vec<u8>>, WorkFailure> {
        let records = match self.records.map(NonZeroUsize::new) {
            Some(None) => {
                let reason = "the number of records must be at least 1";
                return Err(Error::Usage(reason.to_owned()).into());
            }
            records => records.flatten(),
        };
        let arguments = SampleArguments {
            model: PathBuf::from("the model"),
            schema: PathBuf::from(SCHEMA),
            out: PathBuf::from("the synthetic table"),
            overwriting: OverwriteArguments::default(),
            rows: records,
            conditions: self.conditions.into_iter().collect(),
            delimiter: None,
            model_mb: self.model_mb,
        };
        within(listener, |progress| {
            let mut text = Vec::new();
            let schema = read_schema(&self.schema)?;
            sample::draw(&arguments, &self.model, schema, None, &mut text, progress)?;
            Ok(text)
        })
    }
}

/// Request to compare a synthetic table with the real one.
#[derive(Debug)]
pub struct Evaluate {
    /// The real table.
    pub real: Data,
    /// The synthetic table.
    pub synthetic: Data,
    /// Real records that the synthetic table was not made from.
    pub held_out: Option<Data>,
    /// The schema of all tables, as JSON.
    pub schema: String,
    /// Options for reading the tables.
    pub reading: ReadingOptions,
}

/// A report. It is not private: only the holder of the real table may see it.
#[derive(Debug)]
pub struct Evaluated {
    /// The report, as JSON.
    pub report: String,
    /// The report as an HTML page.
    pub page: String,
}

impl Evaluate {
    /// Compares the tables.
    ///
    /// # Errors
    /// [`WorkFailure`].
    pub fn run(self, listener: &Arc<dyn Listener>) -> Result<Done<Evaluated>, WorkFailure> {
        let (format, strictness) = self.reading.arguments();
        let arguments = EvaluateArguments {
            real: self.real,
            synthetic: self.synthetic,
            held_out: self.held_out,
            schema: PathBuf::from(SCHEMA),
            model: None,
            model_mb: 0,
            releases: None,
            out: None,
            overwriting: OverwriteArguments::default(),
            json: true,
            format,
            strictness,
        };
        within(listener, |progress| {
            let schema = read_schema(&self.schema)?;
            let report = evaluate::compare(&arguments, &schema, None, progress)?;
            Ok(Evaluated {
                page: fhaim_eval::html_page(&report, &[]),
                report: output::to_json(&report)?,
            })
        })
    }
}

/// Request for the bound on a table's number of records that the size of its upload reveals.
#[derive(Debug)]
pub struct RecordBound {
    /// The table.
    pub table: Data,
    /// Its schema, as JSON.
    pub schema: String,
    /// Options for reading the table.
    pub reading: ReadingOptions,
}

impl RecordBound {
    /// Returns the maximum number of records of a table whose upload has the same size.
    ///
    /// # Errors
    /// [`WorkFailure`] if the table does not match its schema.
    pub fn run(self, listener: &Arc<dyn Listener>) -> Result<Done<u64>, WorkFailure> {
        let (format, strictness) = self.reading.arguments();
        within(listener, |_| {
            let schema = read_schema(&self.schema)?;
            let table = input::table(&self.table, schema, &format, &strictness)?;
            Ok(Layout::for_records(table.records())?.max_records() as u64)
        })
    }
}

/// Request to encrypt a table locally and upload it to an existing dataset.
pub struct UploadRequest {
    /// The account's part of the table.
    pub table: Data,
    /// The dataset's identifier.
    pub dataset: String,
    /// Addresses of the services.
    pub endpoints: Endpoints,
    /// The API key for signing in.
    pub api_key: Secret,
    /// Folder of the upload's journal, of the key of the noise, and of the holder's signing key. With the journal, a
    /// second call sends only the missing objects.
    pub folder: PathBuf,
    /// Whether to upload records that were used before.
    pub yes: bool,
    /// Options for reading the table.
    pub reading: ReadingOptions,
}

impl UploadRequest {
    /// Encrypts the table and uploads the missing objects.
    ///
    /// # Errors
    /// [`WorkFailure`]. A second call does not send again the objects that were sent.
    pub fn run(self, listener: &Arc<dyn Listener>) -> Result<Done<()>, WorkFailure> {
        let dataset = dataset_identifier(&self.dataset)?;
        let (format, strictness) = self.reading.arguments();
        let arguments = UploadArguments {
            dataset,
            data: self.table,
            format,
            strictness,
            yes: self.yes,
            json: false,
        };
        within(listener, |progress| {
            serve::runtime()?.block_on(async {
                let client = login::with_api_key(self.endpoints, self.api_key).await?;
                dataset::send(&client, &arguments, &self.folder, None, progress).await?;
                Ok(())
            })
        })
    }
}

/// Removes a dataset from the usage history. Call it only if the dataset released nothing, and cannot release anything.
///
/// Returns remarks for the user.
///
/// # Errors
/// [`WorkFailure::Refused`] if `dataset` is no identifier.
pub fn forget_dataset(dataset: &str) -> Result<Vec<String>, WorkFailure> {
    let dataset = dataset_identifier(dataset)?;
    Ok(keeping(|| memory::forget_dataset(dataset)).1)
}

fn dataset_identifier(text: &str) -> Result<Uuid, Error> {
    let is_none = |_| Error::Usage(format!("{text:?} is not a dataset identifier"));
    Uuid::parse_str(text).map_err(is_none)
}

/// Name in messages for a schema in memory.
const SCHEMA: &str = "the schema";

fn read_schema(json: &str) -> Result<Schema, Error> {
    Ok(Schema::from_json(SCHEMA, json.as_bytes())?)
}

fn mechanism(name: &str) -> Result<MechanismName, Error> {
    let known = || {
        MechanismName::all()
            .map(MechanismName::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    };
    name.parse().map_err(|_| {
        Error::Usage(format!(
            "there is no mechanism {name:?}: choose from {}",
            known()
        ))
    })
}

/// Runs `work`, reports its progress to `listener`, and collects its remarks.
fn within<T>(
    listener: &Arc<dyn Listener>,
    work: impl FnOnce(&Progress) -> Result<T, Error>,
) -> Result<Done<T>, WorkFailure> {
    let progress = Progress::told_to(listener.clone());
    let unwound = |panic: Box<dyn Any + Send>| {
        if listener.is_stopped() {
            return WorkFailure::Stopped;
        }
        resume_unwind(panic)
    };
    // Unwinding drops all values of the work, so nobody can observe them in an inconsistent state.
    let (done, remarks) = keeping(|| catch_unwind(AssertUnwindSafe(|| work(&progress))));
    match done.map_err(unwound)? {
        Ok(result) => Ok(Done { result, remarks }),
        Err(error) => Err(WorkFailure::from(error).with_remarks(remarks)),
    }
}
