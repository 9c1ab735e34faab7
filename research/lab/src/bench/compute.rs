//! `fhaim-lab bench compute`: runs the measurements of `fhaim bench` on the published tables.

use fhaim_cli::shared::{compute_lines, measure_compute};
use fhaim_files::progress::Progress;

use super::{args::ComputeArguments, tables};
use crate::{error::Error, output};

/// Runs the command: measures the named tables, or all.
pub fn run(arguments: &ComputeArguments, progress: &Progress) -> Result<(), Error> {
    let mut rows = Vec::new();
    for dataset in tables(&arguments.datasets, &arguments.own)? {
        let phase = progress.uncounted(format!("compute {}", dataset.name));
        rows.push(measure_compute(&dataset.name, &dataset.table)?);
        phase.finish();
    }
    match arguments.json {
        true => output::print_json(&rows),
        false => output::print(&compute_lines(&rows)),
    }
}
