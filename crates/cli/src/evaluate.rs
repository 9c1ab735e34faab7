//! `fhaim evaluate`: how close a synthetic table is to the real one.

use std::path::Path;

use fhaim_domain::{Reading, Schema, counted};
use fhaim_eval::{REPORT_STATEMENT, Report, html_page};

use crate::{
    args::EvaluateArguments,
    error::Error,
    input,
    output::{self, Staged},
    progress::Progress,
    randomness::{InsecureTestSeed, Purpose, generator},
};

/// Reads the tables, compares them, and writes the report.
pub fn run(
    arguments: &EvaluateArguments,
    seed: Option<InsecureTestSeed>,
    progress: &Progress,
) -> Result<(), Error> {
    let schema = input::schema(&arguments.schema)?;
    let mut page = arguments.out.as_deref().map(Staged::create).transpose()?;
    let real = read(arguments, &arguments.real, &schema)?;
    let synthetic = read(arguments, &arguments.synthetic, &schema)?;
    let held_out = match &arguments.held_out {
        Some(path) => Some(read(arguments, path, &schema)?),
        None => None,
    };
    let mut rng = generator(seed, Purpose::Records)?;
    let phase = progress.uncounted("evaluate");
    let held_out = held_out.as_ref().map(|held_out| &held_out.table);
    let mut report = fhaim_eval::evaluate(&real.table, &synthetic.table, held_out, &mut rng)?;
    report.add_values(&real.values, &synthetic.values);
    phase.finish();
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

fn read(arguments: &EvaluateArguments, path: &Path, schema: &Schema) -> Result<Reading, Error> {
    input::reading(
        path,
        schema.clone(),
        &arguments.format,
        &arguments.strictness,
    )
}

fn text(report: &Report) -> String {
    let mut text = format!(
        "{}: {} real and {} synthetic records\n",
        report.name, report.real_records, report.synthetic_records
    );
    for sentence in &report.verdict.sentences {
        text.push_str(sentence);
        text.push('\n');
    }
    for finding in &report.verdict.findings {
        text.push_str(&format!("  {:.3}  {}\n", finding.distance, finding.text));
    }
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
