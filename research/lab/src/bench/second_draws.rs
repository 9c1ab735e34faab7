//! `fhaim-lab bench second-draws`: what an assessment says about a second sample of the same population.
//!
//! Each generated table is split at random into two halves, and one is assessed as if it were a synthetic version of
//! the other. A finding is a false alarm.

use clap::Args;
use fhaim_eval::evaluate;
use fhaim_files::progress::Progress;
use rand::{SeedableRng, rngs::StdRng};
use serde::Serialize;

use super::{families::Family, rows::Rows};
use crate::error::Error;

pub const SECOND_DRAWS_EXAMPLES: &str = "\
Examples:
  fhaim-lab bench second-draws
  fhaim-lab bench second-draws --family tree --family wide --seeds 100 --json";

/// Arguments of `bench second-draws`.
#[derive(Debug, Args)]
pub struct SecondDrawsArguments {
    /// Family of generated tables (may be repeated): tree, copula, mixture, independent, functions, wide or narrow
    #[arg(long, value_name = "FAMILY", default_values_t = Family::ALL)]
    pub family: Vec<Family>,
    /// Number of tables of each family: seeds 0, 1, ...
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

/// The assessments of a family.
#[derive(Debug, Serialize)]
struct Row {
    family: &'static str,
    reports: u64,
    /// Number of reports without any finding.
    clean: u64,
    /// Findings of the other reports, each with its seed.
    findings: Vec<(u64, String)>,
}

/// Runs the command.
pub fn run(arguments: &SecondDrawsArguments, progress: &Progress) -> Result<(), Error> {
    let mut rows = Rows::begin(
        arguments.json,
        "family        reports  without findings\n",
        line,
    )?;
    for &family in &arguments.family {
        let phase = progress.counted(family.as_str(), arguments.seeds, "reports");
        let mut row = Row {
            family: family.as_str(),
            reports: arguments.seeds,
            clean: 0,
            findings: Vec::new(),
        };
        for seed in 0..arguments.seeds {
            let findings = findings(family, seed)?;
            row.clean += u64::from(findings.is_empty());
            row.findings
                .extend(findings.into_iter().map(|text| (seed, text)));
            phase.reach(seed + 1);
        }
        phase.finish();
        rows.push(&row)?;
    }
    rows.end("")
}

/// Compares the halves of a table, and returns the findings.
fn findings(family: Family, seed: u64) -> Result<Vec<String>, Error> {
    let table = family.table(seed)?;
    let mut rng = StdRng::seed_from_u64(seed);
    let halves = table.split(table.records() / 2, &mut rng);
    let (real, second) = halves.map_err(fhaim_synth::Error::from)?;
    let report = evaluate(&real, &second, None, &mut rng)?;
    let findings = report.assessment.findings.into_iter();
    Ok(findings.map(|finding| finding.text).collect())
}

fn line(row: &Row) -> String {
    let mut text = format!("{:12} {:>8} {:>17}\n", row.family, row.reports, row.clean);
    for (seed, finding) in &row.findings {
        text.push_str(&format!("  seed {seed}: {finding}\n"));
    }
    text
}
