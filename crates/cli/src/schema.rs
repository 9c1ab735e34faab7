//! `fhaim schema`: drafts and checks schemas.

mod rules;

use crate::input::Data;
use clap::{Args, Subcommand};
use fhaim_files::{FormatArguments, StrictnessArguments};
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use fhaim_domain::{Schema, SchemaCost, check_schema, counted, form::KindForm};
use fhaim_dp::{Rho, accounting};
use fhaim_files::{
    UseConsent, ask, can_ask,
    memory::{self, RecordSource, Use, UseCost},
    named, note, tell,
};
use fhaim_intake::{Draft, InferOptions, Note, RecordUse, SHARED_BY, infer_schema};
use fhaim_release::{Holders, MechanismJob};
use fhaim_synth::{
    MechanismName,
    forecast::{Forecast, RecordCount},
};
use serde::Serialize;

use crate::{
    division::HoldersArguments,
    error::Error,
    flags::{DEFAULT_DELTA, DEFAULT_MODEL_MB, count, mechanism},
    generate::{Request, args::GenerateArguments},
    held::Held,
    input,
    output::{self, OverwriteArguments, StagedFile},
    randomness::system,
    size,
    spending::PROGRAM,
};

/// Subcommands of `schema`.
#[derive(Debug, Subcommand)]
pub enum SchemaCommand {
    /// Draft a schema from a table, for its owner to correct and confirm as public
    #[command(after_help = INFER_EXAMPLES)]
    Infer(Box<InferArguments>),
    /// Show the size of a schema, and check whether a table matches it
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArguments),
}

/// Examples in the command's help.
pub const INFER_EXAMPLES: &str = "\
Examples:
  fhaim schema infer --data patients.csv > draft.schema.json
  fhaim schema infer --data patients.csv --kind ward=code --code-book icd=icd10.txt \\
      --out draft.schema.json
  fhaim schema infer --data patients.csv --target outcome --leave-out id --out draft.schema.json
  fhaim schema infer --data patients.csv --epsilon 0.1 --out public.schema.json

A schema is public: it lists the columns, and the categories or limits of each. Without --epsilon, the
draft is read from the records. It lists only values that many records share, and on a terminal it asks
about each list. Its owner must check every line, and keep only public knowledge.

The command also prints rules between columns that hold in all records, such as a label that follows from a
code. They are not in the draft. On a terminal the command asks about each rule. A script accepts a rule by
its text, so that another table cannot change which rules it accepts:
  fhaim schema infer --data patients.csv --accept-rule '\"admitted\" is at most \"discharged\"' \\
      --out draft.schema.json

With --epsilon, the draft is differentially private and may be published. It contains its privacy cost,
which adds to the cost of runs over the same records.";

/// Examples in the command's help.
pub const CHECK_EXAMPLES: &str = "\
Examples:
  fhaim schema check patients.schema.json
  fhaim schema check patients.schema.json --data patients.csv --missing '?' --json
  fhaim schema check patients.schema.json --rows 3000 --epsilon 1

With --data, the command lists all kinds of problems of the table, and rejects everything that a run with
default options would reject before it spends any budget.

With --data or --rows, the command forecasts what a run can measure: for each column, the expected error
of a share and the part of the records that are expected in wrong places; the same for pairs; and what
would help. The forecast uses the schema, the number of rows and the budget, and no value of the table.";

/// Flags of `schema infer`.
#[derive(Debug, Args)]
pub struct InferArguments {
    /// Input table (CSV, Excel or Parquet)
    #[arg(long, value_name = "TABLE")]
    pub data: Data,
    /// Name of the schema [default: the table's file name]
    #[arg(long)]
    pub name: Option<String>,
    /// Column that the table is meant to predict
    #[arg(long, value_name = "COLUMN")]
    pub target: Option<String>,
    /// Column to leave out (may be repeated)
    #[arg(long, value_name = "COLUMN")]
    pub leave_out: Vec<String>,
    /// Number of bins of a numeric column
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub bins: u32,
    /// Maximum number of categories of a text column
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub max_categories: usize,
    /// Kind of a column, in place of the drafted one (may be repeated)
    #[arg(long, value_name = "COLUMN=KIND", value_parser = column_kind)]
    pub kind: Vec<(String, KindForm)>,
    /// Public code book of a column: a file with one code per line (may be repeated)
    #[arg(long, value_name = "COLUMN=FILE", value_parser = column_file)]
    pub code_book: Vec<(String, PathBuf)>,
    /// List a value only if at least N records share it
    #[arg(long, value_name = "N", default_value_t = SHARED_BY, conflicts_with = "epsilon")]
    pub shared_by: u64,
    /// Add a proposed rule to the schema, by the text that this command prints for it (may be repeated)
    #[arg(long, value_name = "RULE", conflicts_with = "epsilon")]
    pub accept_rule: Vec<String>,
    /// Print the draft as JSON, with its evidence, flags and rules
    #[arg(long, conflicts_with = "epsilon")]
    pub json: bool,
    /// Make a private draft with this epsilon
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub epsilon: Option<f64>,
    /// Delta of a private draft
    #[arg(
        long,
        value_name = "D",
        default_value = "1e-10",
        allow_negative_numbers = true,
        requires = "epsilon"
    )]
    pub delta: f64,
    /// Do not ask about lists and rules: keep the lists and add no rules. Make a private draft also of records that
    /// were used before
    #[arg(long)]
    pub yes: bool,
    /// Output file for the draft [default: standard output]
    #[arg(long, value_name = "JSON")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub overwriting: OverwriteArguments,
    #[command(flatten)]
    pub format: FormatArguments,
}

/// Flags of `schema check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// Schema to check
    #[arg(value_name = "JSON")]
    pub schema: PathBuf,
    /// Table to check against the schema
    #[arg(long, value_name = "TABLE")]
    pub data: Option<PathBuf>,
    /// Number of rows for the forecast, if there is no table: a public bound, or an estimate
    #[arg(long, value_name = "N", conflicts_with = "data", value_parser = count)]
    pub rows: Option<NonZeroUsize>,
    /// Privacy budget of the forecast: epsilon of (epsilon, delta)-differential privacy
    #[arg(
        long,
        value_name = "E",
        default_value_t = 1.0,
        allow_negative_numbers = true
    )]
    pub epsilon: f64,
    /// Privacy budget of the forecast: delta of (epsilon, delta)-differential privacy
    #[arg(long, value_name = "D", default_value_t = DEFAULT_DELTA, allow_negative_numbers = true)]
    pub delta: f64,
    /// Mechanism of the forecast
    #[arg(long, value_name = "M", default_value_t, value_parser = mechanism())]
    pub mechanism: MechanismName,
    /// Number of holders of the records, in the forecast
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub holders: u32,
    /// Number of holders whose noise the privacy guarantee relies on, in the forecast
    #[arg(long, value_name = "H", default_value_t = 1)]
    pub honest: u32,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub format: FormatArguments,
    #[command(flatten)]
    pub strictness: StrictnessArguments,
}

/// Parses the value of `--kind`.
fn column_kind(text: &str) -> Result<(String, KindForm), String> {
    let (column, kind) = text
        .rsplit_once('=')
        .ok_or("use COLUMN=KIND, such as ward=code")?;
    let kind = kind
        .parse::<KindForm>()
        .map_err(|error| error.to_string())?;
    Ok((column.to_owned(), kind))
}

/// Parses the value of `--code-book`.
fn column_file(text: &str) -> Result<(String, PathBuf), String> {
    let (column, path) = text
        .split_once('=')
        .ok_or("use COLUMN=FILE, such as icd=icd10.txt")?;
    Ok((column.to_owned(), path.into()))
}

/// A drafted schema, with information for its owner.
pub struct Drafted {
    /// The schema.
    pub schema: Schema,
    /// Decisions for its columns, and their reasons.
    pub notes: Vec<String>,
    /// The permitted use of the schema.
    pub statement: String,
    /// The whole draft, unless it is private.
    pub draft: Option<Draft>,
}

/// Runs `fhaim schema infer`. Information for the schema's owner goes to standard error.
pub fn infer(arguments: &InferArguments) -> Result<(), Error> {
    let inputs: Vec<&Path> = arguments.data.file().into_iter().collect();
    let outputs: Vec<&Path> = arguments.out.as_deref().into_iter().collect();
    output::check_distinct(&inputs, &outputs)?;
    let file = arguments
        .out
        .as_deref()
        .map(|out| StagedFile::create(out, arguments.overwriting.existing()))
        .transpose()?;
    let mut drafted = draft(arguments)?;
    drafted.notes.iter().for_each(note);
    tell(&drafted.statement);
    if let Some(draft) = &mut drafted.draft {
        let asks = !arguments.yes && can_ask();
        if asks {
            confirm_lists(draft)?;
        }
        rules::accept_by_text(draft, &arguments.accept_rule)?;
        rules::propose(draft, asks.then_some(ask))?;
        drafted.schema = draft.schema.clone();
    }
    match &drafted.draft {
        Some(draft) if arguments.json => write(file, &output::to_json(draft)?),
        _ => write(file, &drafted.schema.to_json()),
    }
}

/// Asks about each list that was read from the records. Leaves out the columns whose list may not be public.
fn confirm_lists(draft: &mut Draft) -> Result<(), Error> {
    let mut refused = Vec::new();
    for column in &draft.columns {
        let RecordUse::List { values, shared_by } = column.taken else {
            continue;
        };
        let name = &column.column;
        let list = draft.listed(name);
        fhaim_files::tell_line(format_args!(
            "\ncolumn {name:?} lists {}, each shared by at least {shared_by} records:",
            counted(values, "value")
        ));
        fhaim_files::tell_line(format_args!("  {}", shown_list(&list)));
        if !ask("May this list be public?")? {
            refused.push(name.clone());
        }
    }
    for name in &refused {
        note(format_args!(
            "column {name:?}: left out, because its list may not be public"
        ));
    }
    draft.leave_out(&refused)?;
    Ok(())
}

/// Shows the first values of a list.
fn shown_list(list: &[String]) -> String {
    const MOST: usize = 40;
    let first: Vec<String> = list
        .iter()
        .take(MOST)
        .map(|value| format!("{value:?}"))
        .collect();
    let more = list.len().saturating_sub(MOST);
    match more {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Drafts a schema from a table. Adds its cost to the usage history before it is shown.
pub fn draft(arguments: &InferArguments) -> Result<Drafted, Error> {
    match arguments.epsilon {
        Some(epsilon) => draft_privately(arguments, epsilon),
        None => draft_openly(arguments),
    }
}

fn draft_privately(arguments: &InferArguments, epsilon: f64) -> Result<Drafted, Error> {
    let half = arguments.delta / 2.0;
    let budget = accounting::rho(epsilon, half)?;
    // The other half of delta bounds the probability that the text of a single record passes its threshold.
    let cost = |rho| UseCost::zcdp_but_for(PROGRAM, rho, half);
    let consent = UseConsent {
        yes: arguments.yes,
        question: Some(format!(
            "Spend epsilon {epsilon} of these records on a draft?"
        )),
        objection: None,
    };
    let records = memory::look_up(
        RecordSource::Table(&arguments.data, &arguments.format),
        cost(budget),
        arguments.delta,
        None,
        consent,
    )?;
    let (text, dialect) = input::text(&arguments.data, &arguments.format)?;
    let open = infer_options(arguments);
    let options = fhaim_draft::DraftOptions {
        target: open.target,
        dialect,
        missing: open.missing,
        leave_out: open.leave_out,
        max_categories: open.max_categories,
        bins: open.bins,
        ..fhaim_draft::DraftOptions::new(open.file, open.name, epsilon, arguments.delta)
    };
    let draft = fhaim_draft::draft(text, &options, &mut system()?);
    let (out, spent) = match &draft {
        Ok(draft) => (arguments.out.as_deref(), draft.spent),
        Err(fhaim_draft::Error::Guess { spent, .. }) => (Some(Path::new("nothing")), *spent),
        Err(_) => (None, Rho::ZERO),
    };
    if let Some(records) = records.filter(|_| spent > Rho::ZERO) {
        let out = out.unwrap_or(Path::new("standard output"));
        let out = out.display().to_string();
        records.remember(&Use::Draft { out }, cost(spent))?;
    }
    let draft = draft?;
    let statement = format!(
        "This draft may be published. It cost rho {:.6} (epsilon {epsilon}, delta {:e}), which adds to the \
         cost of runs over the same records. If the table has numbers outside the limits of the draft, use \
         --clamp.",
        draft.spent.to_f64(),
        arguments.delta
    );
    Ok(Drafted {
        schema: draft.schema,
        notes: merged(&draft.notes),
        statement,
        draft: None,
    })
}

/// Returns notes about columns as texts, with a single text for all columns that it is about.
fn merged(notes: &[Note]) -> Vec<String> {
    let mut texts: Vec<(&str, Vec<&str>)> = Vec::new();
    for Note { column, text } in notes {
        match texts.iter_mut().find(|(known, _)| known == text) {
            Some((_, columns)) => columns.push(column),
            None => texts.push((text, vec![column])),
        }
    }
    let texts = texts.into_iter();
    texts
        .map(|(text, columns)| format!("{}: {text}", named(&columns)))
        .collect()
}

fn write(file: Option<StagedFile>, json: &str) -> Result<(), Error> {
    match file {
        Some(mut file) => {
            file.write_bytes(json.as_bytes())?;
            Ok(file.commit()?)
        }
        None => output::print(json),
    }
}

fn draft_openly(arguments: &InferArguments) -> Result<Drafted, Error> {
    let (text, dialect) = input::text(&arguments.data, &arguments.format)?;
    let options = InferOptions {
        dialect,
        code_books: code_books(&arguments.code_book)?,
        ..infer_options(arguments)
    };
    let draft = infer_schema(text, &options)?;
    let remarks = draft.remarks.iter().cloned();
    Ok(Drafted {
        notes: remarks.chain(merged(&draft.notes())).collect(),
        statement: draft.statement().to_string(),
        schema: draft.schema.clone(),
        draft: Some(draft),
    })
}

fn infer_options(arguments: &InferArguments) -> InferOptions {
    let name = arguments.name.clone().unwrap_or_else(|| {
        let stem = arguments.data.file().and_then(Path::file_stem);
        stem.map_or_else(|| "table".into(), |stem| stem.to_string_lossy())
            .into_owned()
    });
    let mut options = InferOptions::new(arguments.data.name(), name);
    options.target.clone_from(&arguments.target);
    options.leave_out.clone_from(&arguments.leave_out);
    options.bins = arguments.bins;
    options.max_categories = arguments.max_categories;
    options.missing = arguments.format.missing();
    options.kinds = arguments.kind.iter().cloned().collect();
    options.shared_by = arguments.shared_by;
    options
}

/// Reads code books: one code per line, up to the first delimiter.
fn code_books(books: &[(String, PathBuf)]) -> Result<BTreeMap<String, Vec<String>>, Error> {
    let mut all = BTreeMap::new();
    for (column, path) in books {
        let text = fs::read_to_string(path).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
        all.insert(column.clone(), fhaim_intake::code_book(&text));
    }
    Ok(all)
}

/// Result of `schema check`.
#[derive(Debug, Serialize)]
struct CheckReport {
    schema: String,
    cost: SchemaCost,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<usize>,
    /// Memory of `fhaim local`, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    local_bytes: Option<u64>,
    /// Memory of `fhaim run`, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_bytes: Option<u64>,
    /// What a run can be expected to measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    forecast: Option<Forecast>,
}

/// Runs `fhaim schema check`.
pub fn check(arguments: &CheckArguments) -> Result<(), Error> {
    let schema = input::schema(&arguments.schema)?;
    let mut report = CheckReport {
        schema: schema.name().to_owned(),
        cost: check_schema(&schema, None),
        records: None,
        local_bytes: None,
        run_bytes: None,
        forecast: None,
    };
    if let Some(rows) = arguments.rows {
        report.forecast = forecast_rows(arguments, &schema, rows.get() as u64)?;
    }
    if let Some(path) = &arguments.data {
        check_table(arguments, path.into(), schema, &mut report)?;
    }
    if arguments.json {
        output::print_json(&report)
    } else {
        output::print(&report_text(&report))
    }
}

/// Rejects everything that a run of the table would reject before its first release.
fn check_table(
    arguments: &CheckArguments,
    data: Data,
    schema: Schema,
    report: &mut CheckReport,
) -> Result<(), Error> {
    let (format, strictness) = (&arguments.format, &arguments.strictness);
    let reading = input::checked(&data, schema, format, strictness)?;
    input::remark_on_integers(&reading);
    let records = reading.table.records();
    input::remark_on_identifiers(reading.table.schema(), records);
    let run = usual_run(arguments, data);
    let request = Request::of(&run, Held::Table(reading.table), None)?;
    report.records = Some(records);
    report.forecast = forecast_rows(arguments, request.held.schema(), records as u64)?;
    report.local_bytes = Some(request.check_in_the_clear()?);
    // An encrypted run needs more memory, and a larger epsilon or another machine may allow it.
    match request.check_encrypted() {
        Ok(bytes) => report.run_bytes = Some(bytes),
        Err(error) => note(format_args!(
            "on this machine, `fhaim run` with epsilon {} would be rejected: {error}",
            run.epsilon
        )),
    }
    Ok(())
}

/// Returns the forecast of a run over a number of rows.
fn forecast_rows(
    arguments: &CheckArguments,
    schema: &Schema,
    rows: u64,
) -> Result<Option<Forecast>, Error> {
    let CheckArguments {
        epsilon,
        delta,
        mechanism,
        ..
    } = *arguments;
    let rho = accounting::rho(epsilon, delta)?;
    let mut job = MechanismJob::new(schema.domain().clone(), rho, rows);
    let holders = Holders::of_records(arguments.holders, arguments.honest);
    job.holders = holders.map_err(fhaim_synth::Error::from)?;
    fhaim_synth::check_start(&*mechanism, &job)?;
    let records = match arguments.data {
        Some(_) => RecordCount::Exactly(rows),
        None => RecordCount::AtMost(rows),
    };
    let budget = (epsilon, delta);
    Ok(fhaim_synth::forecast(
        &*mechanism,
        &job,
        schema,
        budget,
        records,
    ))
}

/// Returns a run with the default options.
fn usual_run(arguments: &CheckArguments, data: Data) -> GenerateArguments {
    GenerateArguments {
        data,
        schema: arguments.schema.clone(),
        epsilon: arguments.epsilon,
        delta: arguments.delta,
        mechanism: MechanismName::default(),
        out: PathBuf::new(),
        report: None,
        force: false,
        rows: None,
        record_bound: None,
        model_mb: DEFAULT_MODEL_MB,
        target_weight: 1,
        memory_mb: None,
        yes: true,
        json: false,
        holders: HoldersArguments::default(),
        format: arguments.format.clone(),
        strictness: StrictnessArguments::default(),
    }
}

/// Writes a forecast with a line for each column.
fn forecast_lines(forecast: &Forecast, line: &mut impl FnMut(String)) {
    line(crate::forecast::text(forecast).trim_end().to_owned());
    line(format!(
        "{:>7}  {:>12}  {:>6}  column",
        "values", "a share is", "wrong"
    ));
    for column in &forecast.columns {
        line(format!(
            "{:>7}  {:>12}  {:>5.1}%  {}{}",
            column.values,
            format!("+-{:.2}%", 100.0 * column.share_error),
            100.0 * column.error,
            column.name,
            if column.above_noise { "" } else { " (noise)" }
        ));
    }
}

fn report_text(report: &CheckReport) -> String {
    let cost = &report.cost;
    let mut text = String::new();
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    line(format!("schema {}", report.schema));
    line(format!(
        "{:>7}  {:>12}  {:>6}  column",
        "values", "pair cells", "share"
    ));
    for column in &cost.columns {
        let share = 100.0 * column.share;
        line(format!(
            "{:>7}  {:>12}  {share:>5.1}%  {}",
            column.size, column.pair_cells, column.name
        ));
    }
    line(format!(
        "{}, {}, {} over all pairs",
        counted(cost.one_hot_columns, "one-hot column"),
        counted(cost.pairs, "pair"),
        counted(cost.pair_cells, "cell")
    ));
    if let Some(pair) = &cost.largest_pair {
        let (first, second) = &pair.columns;
        line(format!(
            "largest pair: {first} and {second}, {}",
            counted(pair.cells, "cell")
        ));
    }
    for suggestion in &cost.suggestions {
        line(format!(
            "consider coarsening {}: from {} values to {}",
            suggestion.column, suggestion.from, suggestion.to
        ));
    }
    if let Some(records) = report.records {
        let records = counted(records, "record");
        line(format!("the table matches the schema: {records}"));
    }
    if let Some(forecast) = &report.forecast {
        forecast_lines(forecast, &mut line);
    }
    for (command, bytes) in [("local", report.local_bytes), ("run", report.run_bytes)] {
        if let Some(bytes) = bytes {
            let megabytes = size::megabytes(bytes);
            line(format!(
                "`fhaim {command}` needs about {megabytes} MB of memory"
            ));
        }
    }
    text
}
