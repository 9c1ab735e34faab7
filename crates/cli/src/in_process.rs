//! The commands for programs that link this library: tables come and results go in memory, remarks
//! are kept, and whoever listens hears where the work stands and may end it.
//!
//! Everything else is as with the command: the same checks, releases, ledger and errors, and the same
//! memory of which records were used before. Randomness is the operating system's alone.

use std::{
    any::Any,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::PathBuf,
    sync::Arc,
};

pub use fhaim_api::account::Secret;
use fhaim_domain::Schema;
use fhaim_files::{FormatArguments, StrictnessArguments};
use fhaim_files::{keeping, progress::Progress};
use fhaim_he::Layout;
pub use fhaim_sdk::Endpoints;
use fhaim_synth::MechanismName;
use uuid::Uuid;

use crate::{
    division::HoldersArguments,
    error::Error,
    evaluate::{self, EvaluateArguments},
    generate::{Request, args::GenerateArguments, modelled_records},
    input, output,
    remote::{args::UploadArguments, dataset, login},
    sample::{self, SampleArguments},
    schema::{self, InferArguments},
    serve,
};
pub use fhaim_files::{data::Data, progress::Listener};

/// What some work has come to.
#[derive(Debug)]
pub struct Done<T> {
    /// What was asked for.
    pub result: T,
    /// What the user should know beside it, a sentence or two each.
    pub remarks: Vec<String>,
}

/// Why some work has come to nothing.
#[derive(Debug, thiserror::Error)]
pub enum WorkFailure {
    /// It cannot be carried out, or went wrong.
    #[error("{reason}")]
    Refused {
        /// What is wrong, with the place.
        reason: String,
        /// What to do about it, in the command's words, where the reason does not say.
        way_out: Option<String>,
    },
    /// Whoever listened has ended it.
    #[error("the work was ended")]
    Stopped,
}

impl From<Error> for WorkFailure {
    fn from(error: Error) -> Self {
        Self::Refused {
            reason: error.to_string(),
            way_out: error.way_out().map(str::to_owned),
        }
    }
}

/// How tables are read.
#[derive(Clone, Debug, Default)]
pub struct ReadingOptions {
    /// Texts that stand for a missing value, beside the empty one.
    pub missing: Vec<String>,
    /// Takes categories that the schema lacks for the one that it declares as `other`.
    pub use_other: bool,
    /// Takes numbers outside the schema's range for the nearest limit.
    pub clamp: bool,
    /// Leaves out columns that the schema lacks.
    pub ignore_columns: bool,
}

impl ReadingOptions {
    fn arguments(self) -> (FormatArguments, StrictnessArguments) {
        let format = FormatArguments {
            delimiter: None,
            missing: self.missing,
        };
        let strictness = StrictnessArguments {
            use_other: self.use_other,
            clamp: self.clamp,
            ignore_columns: self.ignore_columns,
        };
        (format, strictness)
    }
}

/// A schema to be drafted from a table.
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
    /// Texts that stand for a missing value, beside the empty one.
    pub missing: Vec<String>,
    /// What a private draft may cost; one that is read off the records costs nothing, and may not
    /// be published unseen.
    pub epsilon: Option<f64>,
    /// Delta of a private draft.
    pub delta: f64,
}

/// A schema that was drafted.
#[derive(Debug)]
pub struct Drafted {
    /// The schema, as JSON.
    pub schema: String,
    /// What was decided of its columns, and what may be done with it.
    pub notes: Vec<String>,
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
            epsilon: self.epsilon,
            delta: self.delta,
            // Whoever called reads the remarks; there is nobody to ask.
            yes: true,
            out: None,
            format: reading.arguments().0,
        };
        within(listener, |progress| {
            let phase = progress.uncounted("draft");
            let drafted = schema::draft(&arguments)?;
            phase.finish();
            let mut notes = drafted.notes;
            notes.push(drafted.statement);
            Ok(Drafted {
                schema: drafted.schema.to_json(),
                notes,
            })
        })
    }
}

/// A model to be fitted to a table.
#[derive(Debug)]
pub struct Fit {
    /// The table.
    pub table: Data,
    /// Its schema, as JSON.
    pub schema: String,
    /// Privacy budget: epsilon,
    pub epsilon: f64,
    /// and delta.
    pub delta: f64,
    /// The mechanism's name.
    pub mechanism: String,
    /// Under encryption, or in the clear.
    pub encrypted: bool,
    /// Public bound on the number of records, unless it is what an upload would show.
    pub record_bound: Option<u64>,
    /// Most memory the model may take, in MB.
    pub model_mb: usize,
    /// Weight of the pairs with the schema's target column.
    pub target_weight: u32,
    /// Most memory the work may take, in MB, unless it is what is free.
    pub memory_mb: Option<u64>,
    /// How the table is read.
    pub reading: ReadingOptions,
    /// Whose program it is, for the memory of what records were used for.
    pub program: String,
}

/// A model that was fitted: everything in it is differentially private.
#[derive(Debug)]
pub struct Fitted {
    /// The model, as [`Sample`] reads it.
    pub model: Vec<u8>,
    /// What was released and what it cost, as JSON.
    pub ledger: String,
    /// What was done, as JSON.
    pub summary: String,
}

impl Fit {
    /// Releases what the mechanism asks for, and fits.
    ///
    /// # Errors
    /// [`WorkFailure`]; nothing of the records is kept then, and nothing was released.
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
            ledger: None,
            report: None,
            model_out: None,
            records: None,
            record_bound: self.record_bound,
            model_mb: self.model_mb,
            target_weight: self.target_weight,
            memory_mb: self.memory_mb,
            yes: true,
            json: false,
            holders: HoldersArguments::default(),
            format,
            strictness,
        };
        within(listener, |progress| {
            let request = Request::read(&arguments, read_schema(&schema)?, None)?;
            let made = if encrypted {
                request.make_encrypted(progress)?
            } else {
                request.make_in_the_clear(progress)?
            };
            let records = modelled_records(&made.outcome);
            Ok(Fitted {
                model: made.outcome.model.save(),
                ledger: request.ledger(&made.outcome)?,
                summary: output::to_json(&request.summary(&made, records))?,
            })
        })
    }
}

/// Records to be drawn from a model.
#[derive(Debug)]
pub struct Sample {
    /// The model.
    pub model: Vec<u8>,
    /// The schema of the table that it was fitted to, as JSON.
    pub schema: String,
    /// How many, unless it is as many as the model estimates there were.
    pub records: Option<usize>,
    /// Values that every record has: COLUMN=VALUE, separated by commas.
    pub conditions: Option<String>,
    /// Most memory the model may take, in MB.
    pub model_mb: usize,
}

impl Sample {
    /// Draws them: CSV with a header, as the schema writes its values.
    ///
    /// # Errors
    /// [`WorkFailure`].
    pub fn run(self, listener: &Arc<dyn Listener>) -> Result<Done<Vec<u8>>, WorkFailure> {
        let records = match self.records.map(NonZeroUsize::new) {
            Some(None) => return Err(Error::Usage("no records were asked for".to_owned()).into()),
            records => records.flatten(),
        };
        let arguments = SampleArguments {
            model: PathBuf::from("the model"),
            schema: PathBuf::from(SCHEMA),
            out: PathBuf::from("the synthetic table"),
            records,
            conditions: self.conditions,
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

/// A synthetic table to be compared with the real one.
#[derive(Debug)]
pub struct Evaluate {
    /// The real table.
    pub real: Data,
    /// The synthetic table.
    pub synthetic: Data,
    /// Real records that it was not made from.
    pub held_out: Option<Data>,
    /// The schema of all of them, as JSON.
    pub schema: String,
    /// How they are read.
    pub reading: ReadingOptions,
}

/// A report, which is not private: it stays with the holder of the real table.
#[derive(Debug)]
pub struct Evaluated {
    /// The report, as JSON.
    pub report: String,
    /// The same as a page.
    pub page: String,
}

impl Evaluate {
    /// Compares them.
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
            ledger: None,
            out: None,
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

/// A table whose upload would show something of its number of records.
#[derive(Debug)]
pub struct RecordBound {
    /// The table.
    pub table: Data,
    /// Its schema, as JSON.
    pub schema: String,
    /// How it is read.
    pub reading: ReadingOptions,
}

impl RecordBound {
    /// The most records of a table whose upload looks the same.
    ///
    /// # Errors
    /// [`WorkFailure`], where the table does not fit its schema.
    pub fn run(self, listener: &Arc<dyn Listener>) -> Result<Done<u64>, WorkFailure> {
        let (format, strictness) = self.reading.arguments();
        within(listener, |_| {
            let schema = read_schema(&self.schema)?;
            let table = input::table(&self.table, schema, &format, &strictness)?;
            Ok(Layout::for_records(table.records())?.max_records() as u64)
        })
    }
}

/// A table to be encrypted here and uploaded for a dataset that the services know.
pub struct UploadRequest {
    /// The account's part of the table.
    pub table: Data,
    /// The dataset's identifier.
    pub dataset: String,
    /// Addresses of the services.
    pub endpoints: Endpoints,
    /// What signs in.
    pub api_key: Secret,
    /// The folder of the journal, so that a second call sends only the missing objects; of the key of the noise; and of the
    /// key that a holder signs with.
    pub folder: PathBuf,
    /// How the table is read.
    pub reading: ReadingOptions,
}

impl UploadRequest {
    /// Encrypts and uploads it, or what is missing of it.
    ///
    /// # Errors
    /// [`WorkFailure`]; what was sent is not sent again.
    pub fn run(self, listener: &Arc<dyn Listener>) -> Result<Done<()>, WorkFailure> {
        let dataset = Uuid::parse_str(&self.dataset)
            .map_err(|_| Error::Usage(format!("{:?} is no dataset's identifier", self.dataset)))?;
        let (format, strictness) = self.reading.arguments();
        let arguments = UploadArguments {
            dataset,
            data: self.table,
            format,
            strictness,
            yes: true,
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

/// What messages call a schema that is in memory.
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
            "there is no mechanism {name:?}; there are {}",
            known()
        ))
    })
}

/// Does some work that `listener` hears of, with its remarks kept.
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
    // What the work had in hands is dropped as it unwinds: nobody sees it half done.
    let (done, remarks) = keeping(|| catch_unwind(AssertUnwindSafe(|| work(&progress))));
    let result = done.map_err(unwound)??;
    Ok(Done { result, remarks })
}
