//! `fhaim evaluate`: compares a synthetic table with the real one.

use clap::Args;
use fhaim_files::{FormatArguments, StrictnessArguments};
use std::path::{Path, PathBuf};

use fhaim_domain::{Schema, Table, counted};
use fhaim_eval::{
    Assessment, ConstraintReport, Membership, REPORT_STATEMENT, Report, Severity, html_page,
    membership,
};
use fhaim_files::progress::Progress;
use serde::Deserialize;

use crate::{
    error::Error,
    input::{self, Data},
    made_table::MadeTable,
    output::{self, OverwriteArguments, StagedFile},
    randomness::{InsecureTestSeed, Purpose, generator},
};

/// Examples in the command's help.
pub const EVALUATE_EXAMPLES: &str = "\
Examples:
  fhaim evaluate --real patients.csv --synthetic synthetic.csv --schema patients.schema.json \\
      --out report.html
  fhaim evaluate --real train.csv --held-out test.csv --synthetic synthetic.csv \\
      --schema patients.schema.json --json > report.json
  fhaim evaluate --real train.csv --held-out test.csv --synthetic synthetic.csv \\
      --schema patients.schema.json --model synthetic.model --releases synthetic.releases.json

The report contains exact statistics of the real records. It is not private: only their holder may see it.

--skip-rows, --skip-footer, --sheet, --encoding, --comment and --quote describe the real tables. The synthetic table
is read as fhaim writes it.

With held-out records, the report includes membership attacks, which try to tell which records the
synthetic table was made from. They use the synthetic records and, with --model, the model's likelihood.";

/// Maximum number of findings that are printed.
const SHOWN_FINDINGS: usize = 20;

/// Flags of `evaluate`.
#[derive(Debug, Args)]
pub struct EvaluateArguments {
    /// Real table
    #[arg(long, value_name = "TABLE")]
    pub real: Data,
    /// Synthetic table
    #[arg(long, value_name = "TABLE")]
    pub synthetic: Data,
    /// Real records that the synthetic table was not made from
    #[arg(long, value_name = "TABLE")]
    pub held_out: Option<Data>,
    /// Schema of all tables
    #[arg(long, value_name = "JSON")]
    pub schema: PathBuf,
    /// Model of the synthetic table, for membership attacks with its likelihood
    #[arg(long, value_name = "FILE", requires = "held_out")]
    pub model: Option<PathBuf>,
    /// Maximum memory for reading the model, in MB
    #[arg(long, value_name = "MB", default_value_t = 1000, requires = "model")]
    pub model_mb: usize,
    /// Releases file of the run, to show the largest result that its budget allows an attack
    #[arg(
        long,
        value_name = "JSON",
        requires = "held_out",
        help_heading = "Input"
    )]
    pub releases: Option<PathBuf>,
    /// Output file for the report as an HTML page
    #[arg(long, value_name = "HTML")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub overwriting: OverwriteArguments,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub format: FormatArguments,
    #[command(flatten)]
    pub strictness: StrictnessArguments,
}

/// Runs `fhaim evaluate`.
pub fn run(
    arguments: &EvaluateArguments,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<(), Error> {
    let schema = input::schema(&arguments.schema)?;
    let tables = [&arguments.real, &arguments.synthetic].into_iter();
    let tables = tables.chain(&arguments.held_out).filter_map(Data::file);
    let models = [&arguments.model, &arguments.releases]
        .into_iter()
        .flatten();
    let files = models.chain([&arguments.schema]).map(PathBuf::as_path);
    let outputs: Vec<&Path> = arguments.out.as_deref().into_iter().collect();
    output::check_distinct(&tables.chain(files).collect::<Vec<_>>(), &outputs)?;
    let mut page = arguments
        .out
        .as_deref()
        .map(|out| StagedFile::create(out, arguments.overwriting.existing()))
        .transpose()?;
    let report = compare(arguments, &schema, seed, progress)?;
    if let Some(page) = &mut page {
        page.write_bytes(html_page(&report, &[]).as_bytes())?;
    }
    output::commit_all(page)?;
    if arguments.json {
        output::print_json(&report)
    } else {
        output::print(&text(&report))
    }
}

/// Reads the tables and compares them.
pub fn compare(
    arguments: &EvaluateArguments,
    schema: &Schema,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<Report, Error> {
    let format = &arguments.format;
    let made = format.of_output();
    let read = |data, format| input::looking(data, schema.clone(), format, &arguments.strictness);
    let real = read(&arguments.real, format)?;
    let MadeTable {
        reading: synthetic,
        texts: synthetic_texts,
    } = MadeTable::read(&arguments.synthetic, schema, &made, &arguments.strictness)?;
    let held_out = arguments.held_out.as_ref();
    let held_out = held_out.map(|data| read(data, format)).transpose()?;
    let mut rng = generator(seed, Purpose::Records)?;
    let phase = progress.uncounted("evaluate");
    let held_out = held_out.as_ref().map(|held_out| &held_out.table);
    let mut report = fhaim_eval::evaluate(&real.table, &synthetic.table, held_out, &mut rng)?;
    report.add_values(&real.values, &synthetic.values);
    let texts = input::texts(&arguments.real, format, &arguments.strictness)?;
    report.add_texts(&texts, &synthetic_texts);
    report.add_constraints(schema.rules(), &real.broken, &synthetic.broken);
    phase.finish();
    if let Some(held_out) = held_out {
        let phase = progress.uncounted("attack");
        let tables = [&real.table, held_out, &synthetic.table];
        report.add_membership(attacked(arguments, tables)?);
        phase.finish();
    }
    Ok(report)
}

/// Returns the results of membership attacks.
fn attacked(arguments: &EvaluateArguments, tables: [&Table; 3]) -> Result<Membership, Error> {
    let [members, others, _] = tables;
    let budget = arguments.releases.as_deref().map(budget).transpose()?;
    let scores = match &arguments.model {
        None => None,
        Some(path) => {
            let model = input::model(path, arguments.model_mb, members.schema())?;
            let density = model.density().ok_or_else(|| Error::Content {
                path: path.clone(),
                problem: "this model has no likelihood of records: leave out --model".to_owned(),
            })?;
            let of = |table: &Table| {
                let scores = density.log_densities(table.columns());
                scores.map_err(fhaim_synth::Error::from)
            };
            Some((of(members)?, of(others)?))
        }
    };
    let scores = scores.as_ref();
    let scores = scores.map(|(members, others)| (members.as_slice(), others.as_slice()));
    Ok(membership(tables, scores, budget)?)
}

/// Reads epsilon and delta of a run from its releases file.
fn budget(path: &Path) -> Result<(f64, f64), Error> {
    #[derive(Deserialize)]
    struct Budget {
        epsilon: f64,
        delta: f64,
    }
    let text = std::fs::read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    let budget: Budget = serde_json::from_slice(&text).map_err(|error| Error::Content {
        path: path.to_owned(),
        problem: format!("not the releases file of a run: {error}"),
    })?;
    Ok((budget.epsilon, budget.delta))
}

fn text(report: &Report) -> String {
    let mut text = format!(
        "{}: {} real and {} synthetic records\n",
        report.name, report.real_records, report.synthetic_records
    );
    let Assessment {
        summary,
        findings,
        areas,
        ..
    } = &report.assessment;
    for sentence in summary {
        text.push_str(sentence);
        text.push('\n');
    }
    for finding in findings.iter().take(SHOWN_FINDINGS) {
        text.push_str(&format!(
            "  {}: {}\n",
            match finding.severity {
                Severity::Major => "severe",
                Severity::Minor => "slight",
            },
            finding.text
        ));
    }
    let more = findings.len().saturating_sub(SHOWN_FINDINGS);
    if more > 0 {
        text.push_str(&format!(
            "  and {}\n",
            counted(more, "further failed check")
        ));
    }
    for area in areas {
        if let (Some(score), Some(baseline)) = (area.score, area.baseline) {
            text.push_str(&format!(
                "{}: {score:.3} (a second real sample: {baseline:.3})\n",
                area.name.title()
            ));
        }
    }
    text.push_str(&rules_text(report));
    for workload in &report.workloads {
        text.push_str(&format!(
            "mean L1 error over {} of {} of {}: {:.4}\n",
            workload.sets,
            counted(workload.of, "set"),
            counted(workload.order, "column"),
            workload.mean_l1
        ));
    }
    text.push_str(&format!(
        "mean difference of Cram\u{e9}r's V: {:.4}\n{REPORT_STATEMENT}\n",
        report.association.mean_absolute_difference
    ));
    text
}

/// Names the rules of the schema that synthetic records break.
fn rules_text(report: &Report) -> String {
    let rules = &report.constraints;
    let broken = || rules.iter().filter(|rule| rule.broken.synthetic > 0.0);
    if !rules.is_empty() && broken().next().is_none() {
        let all = counted(rules.len(), "rule");
        return format!("No synthetic record breaks any of the schema's {all}.\n");
    }
    let say = |rule: &ConstraintReport| {
        let share = 100.0 * rule.broken.synthetic;
        format!(
            "{share:.1}% of the synthetic records break a rule of the schema: {}\n",
            rule.text
        )
    };
    broken().map(say).collect()
}
