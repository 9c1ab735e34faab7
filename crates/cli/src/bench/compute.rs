//! `fhaim bench compute`: every cell of every pair, under encryption, checked against its count.

use fhaim_he::{P1, P1_LARGE};
use fhaim_protocol::bench::{Compute, compute};
use serde::Serialize;

use super::args::ComputeArguments;
use super::{Dataset, datasets};
use crate::{error::Error, output, progress::Progress, randomness::system, size};

/// One table's figures. Seconds of tensor, switching and packing are summed over threads.
#[derive(Debug, Serialize)]
struct Row {
    dataset: String,
    seconds: f64,
    /// Of all threads: what a busy machine leaves alone.
    cpu_seconds: Option<f64>,
    records: usize,
    cells: usize,
    threads: usize,
    tensor_seconds: f64,
    switching_seconds: f64,
    packing_seconds: f64,
    key_switches: u64,
    multiply_accumulates: u64,
    transforms: u64,
    encrypt_seconds: f64,
    bytes_up: u64,
    noise_bits_left: f64,
    /// Most memory the process has held so far.
    peak_memory_bytes: Option<u64>,
}

/// Measures the tables named, or all.
pub fn run(arguments: &ComputeArguments, progress: &Progress) -> Result<(), Error> {
    let mut rows = Vec::new();
    for dataset in datasets(&arguments.datasets)? {
        let phase = progress.uncounted(format!("compute {}", dataset.name));
        rows.push(measure(&dataset)?);
        phase.finish();
    }
    if arguments.json {
        return output::print_json(&rows);
    }
    output::print(&table(&rows))
}

fn measure(dataset: &Dataset) -> Result<Row, Error> {
    let set = if dataset.table.records() as u64 <= P1.max_records {
        P1
    } else {
        P1_LARGE
    };
    let done = compute(&dataset.table, set, &mut system()?)?;
    Ok(row(&dataset.name, &done))
}

fn row(dataset: &str, done: &Compute) -> Row {
    Row {
        dataset: dataset.to_owned(),
        seconds: done.seconds,
        cpu_seconds: done.cpu_seconds,
        records: done.records,
        cells: done.cells,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        tensor_seconds: done.work.tensor,
        switching_seconds: done.work.switching,
        packing_seconds: done.work.packing,
        key_switches: done.work.key_switches,
        multiply_accumulates: done.work.multiply_accumulates,
        transforms: done.work.transforms,
        encrypt_seconds: done.encrypt_seconds,
        bytes_up: done.bytes_up,
        noise_bits_left: done.noise_bits_left,
        peak_memory_bytes: size::linux_bytes("/proc/self/status", "VmHWM:"),
    }
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "dataset        records  cells  seconds   cpu s | tensor switch  pack (thread s) | switches \
         transforms | encrypt s  MB up | noise bits left  peak MB\n",
    );
    for row in rows {
        text.push_str(&format!(
            "{:14} {:7} {:6} {:8.3} {:>7} | {:6.2} {:6.2} {:5.2}            | {:8} {:10} | \
             {:9.2} {:6.1} | {:15.0} {:8}\n",
            row.dataset,
            row.records,
            row.cells,
            row.seconds,
            row.cpu_seconds
                .map_or("-".to_owned(), |s| format!("{s:.2}")),
            row.tensor_seconds,
            row.switching_seconds,
            row.packing_seconds,
            row.key_switches,
            row.transforms,
            row.encrypt_seconds,
            row.bytes_up as f64 / 1e6,
            row.noise_bits_left,
            row.peak_memory_bytes
                .map_or("-".to_owned(), |b| (b / 1_000_000).to_string()),
        ));
    }
    text.push_str("Every cell was decrypted and equals its count.\n");
    text
}
