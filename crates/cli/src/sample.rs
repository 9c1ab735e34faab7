//! `fhaim sample`: draws records from a saved model, without the real table.

use crate::flags::{DEFAULT_MODEL_MB, count};
use clap::Args;
use fhaim_files::delimiter;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::{io::Write, sync::Arc};

use fhaim_domain::parse_conditions;
use fhaim_domain::{Schema, WriteOptions, counted};
use fhaim_files::{OutputFormat, progress::Progress, shown_path};
use fhaim_synth::{FittedModel, ModelError, load_model};

use crate::{
    drawing,
    error::Error,
    input,
    output::{self, OverwriteArguments, StagedFile},
    randomness::{InsecureTestSeed, Purpose, generator},
};

/// Examples in the command's help.
pub const SAMPLE_EXAMPLES: &str = "\
Examples:
  fhaim sample --model patients.model --schema patients.schema.json --out more.csv
  fhaim sample --model patients.model --schema patients.schema.json --rows 1000 \\
      --where race=Asian --where age=47 --out some.csv";

/// Flags of `sample`.
#[derive(Debug, Args)]
pub struct SampleArguments {
    /// Model, as saved by `fhaim run`, `fhaim local` or `fhaim download --model-out`
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,
    /// Schema of the model's run
    #[arg(long, value_name = "JSON")]
    pub schema: PathBuf,
    /// Output file for the synthetic table: CSV or, with the extension .parquet, Parquet
    #[arg(long, value_name = "TABLE")]
    pub out: PathBuf,
    #[command(flatten)]
    pub overwriting: OverwriteArguments,
    /// Number of synthetic records [default: the model's estimate of the number of real records]
    #[arg(long, value_name = "N", value_parser = count)]
    pub rows: Option<NonZeroUsize>,
    /// Condition that every record must meet (may be repeated)
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub conditions: Vec<String>,
    /// Field delimiter of the synthetic table [default: a comma]
    #[arg(long, value_name = "CHAR", help_heading = "Output", value_parser = delimiter)]
    pub delimiter: Option<u8>,
    /// Maximum memory for the model, in MB
    #[arg(long, value_name = "MB", default_value_t = DEFAULT_MODEL_MB)]
    pub model_mb: usize,
}

/// Runs `fhaim sample`.
pub fn run(
    arguments: &SampleArguments,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<(), Error> {
    let schema = input::schema(&arguments.schema)?;
    let inputs = [arguments.model.as_path(), arguments.schema.as_path()];
    output::check_distinct(&inputs, &[&arguments.out])?;
    OutputFormat::of(&arguments.out)?;
    let mut file = StagedFile::create(&arguments.out, arguments.overwriting.existing())?;
    let path = &arguments.model;
    let model = std::fs::read(path).map_err(|source| Error::Read {
        path: path.clone(),
        source,
    })?;
    let records = draw(arguments, &model, schema, seed, &mut file, progress)?;
    file.commit()?;
    let out = shown_path(&arguments.out);
    output::print(&format!(
        "{} written to {out}\n",
        counted(records, "synthetic record")
    ))
}

/// Draws records from a saved model, writes them, and returns their number.
pub fn draw(
    arguments: &SampleArguments,
    model: &[u8],
    schema: Schema,
    seed: Option<InsecureTestSeed>,
    writer: &mut (dyn Write + Send),
    progress: &Progress,
) -> Result<usize, Error> {
    let refuse = |problem: String| Error::Content {
        path: arguments.model.clone(),
        problem,
    };
    let most = arguments.model_mb.saturating_mul(1_000_000);
    let model = load_model(model, most).map_err(|error| refuse(error.to_string()))?;
    // A saved model does not distinguish digits from other attributes, so only sizes are compared.
    if model.domain().sizes() != schema.domain().sizes() {
        return Err(refuse(format!(
            "the model has other columns than schema {:?}: name the schema of its run",
            schema.name()
        )));
    }
    let model = conditioned(model, arguments, &schema)?;
    let records = arguments
        .rows
        .map_or_else(|| (model.total().round() as usize).max(1), usize::from);
    let mut rng = generator(seed, Purpose::Records)?;
    let blocks = drawing::blocks(&Arc::new(schema), &model, records, &mut rng);
    let mut options = WriteOptions::new(arguments.out.to_string_lossy());
    options.delimiter = arguments.delimiter.unwrap_or(options.delimiter);
    let phase = progress.counted("sample", records as u64, "records");
    drawing::write(&blocks, &options, writer, None, &phase)?;
    phase.finish();
    Ok(records)
}

/// Returns the model of the records that meet the conditions.
fn conditioned(
    model: Arc<dyn FittedModel>,
    arguments: &SampleArguments,
    schema: &Schema,
) -> Result<Arc<dyn FittedModel>, Error> {
    if arguments.conditions.is_empty() {
        return Ok(model);
    }
    let text = arguments.conditions.join(",");
    let conditions =
        parse_conditions(&text, schema).map_err(|error| Error::Usage(error.to_string()))?;
    let of = model.conditions().ok_or_else(|| {
        Error::Usage("this model does not support conditions: leave out --where".to_owned())
    })?;
    of.given(&conditions).map_err(|error| match error {
        ModelError::Impossible { attribute, .. } => {
            let column = schema.field_of(attribute).map_or("", |field| field.name());
            Error::Usage(format!(
                "--where: no record of the model meets all conditions; the conflict is at column {column:?}"
            ))
        }
        other => Error::Content {
            path: arguments.model.clone(),
            problem: other.to_string(),
        },
    })
}
