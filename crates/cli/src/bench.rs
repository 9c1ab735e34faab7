//! `fhaim bench compute`: every cell of every pair, encrypted under a holder's own key, checked against its
//! count.

use fhaim_files::progress::Progress;
use fhaim_he::{DEGREE, ParameterSet};
use fhaim_ntt::{Modulus, Transform};
use fhaim_protocol::bench::{Compute, compute};
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;

use super::args::ComputeArguments;
use super::{Dataset, tables};
use crate::{error::Error, output, randomness::system, size};

/// One table's figures. Seconds of tensor, switching and packing are summed over threads, and so are the
/// limits: what its multiply-accumulates and its transforms take by themselves, in cache, on this machine.
#[derive(Debug, Serialize)]
struct Row {
    dataset: String,
    parameter_set: u8,
    seconds: f64,
    /// Of all threads: what a busy machine leaves alone.
    cpu_seconds: Option<f64>,
    records: usize,
    cells: usize,
    threads: usize,
    tensor_seconds: f64,
    switching_seconds: f64,
    packing_seconds: f64,
    tensor_limit_seconds: f64,
    transform_limit_seconds: f64,
    key_switches: u64,
    multiply_accumulates: u64,
    transforms: u64,
    encrypt_seconds: f64,
    expand_seconds: f64,
    bytes_up: u64,
    noise_bits_left: f64,
    /// Most memory the process has held so far.
    peak_memory_bytes: Option<u64>,
}

/// Measures the tables named, or all.
pub fn run(arguments: &ComputeArguments, progress: &Progress) -> Result<(), Error> {
    let mut rows = Vec::new();
    for dataset in tables(&arguments.datasets, &arguments.own)? {
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
    // No count is larger than the number of records.
    let records = dataset.table.records() as u64;
    // Products are of single columns.
    let set = ParameterSet::choose_for_holder(records, records.into(), false, 1, 1)?;
    let done = compute(&dataset.table, set, &mut system()?)?;
    Ok(row(&dataset.name, &set, &done))
}

fn row(dataset: &str, set: &ParameterSet, done: &Compute) -> Row {
    let (multiply, transform) = limits(set);
    Row {
        parameter_set: done.set,
        tensor_limit_seconds: multiply * done.work.multiply_accumulates as f64,
        transform_limit_seconds: transform * done.work.transforms as f64,
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
        expand_seconds: done.expand_seconds,
        bytes_up: done.bytes_up,
        noise_bits_left: done.noise_bits_left,
        peak_memory_bytes: size::linux_bytes("/proc/self/status", "VmHWM:"),
    }
}

/// Coefficients that a product's strips have.
const STRIP: usize = 256;

/// Seconds that a multiply-accumulate and a transform take by themselves modulo the first prime of a set,
/// the least of many rounds, of operands in cache.
fn limits(set: &ParameterSet) -> (f64, f64) {
    const ROUNDS: usize = 200;
    const TERMS: usize = 8;
    let Some(&q) = set.ciphertext_moduli.first() else {
        return (0.0, 0.0);
    };
    let least = |mut work: Box<dyn FnMut()>| {
        let mut round = || {
            let started = Instant::now();
            work();
            started.elapsed().as_secs_f64()
        };
        (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
    };
    let strip: [u64; STRIP] = std::array::from_fn(|i| q - 1 - i as u64);
    let (modulus, mut out) = (Modulus::new(q), [[0; STRIP]; 3]);
    let tensor = least(Box::new(move || {
        let strip = black_box(&strip);
        modulus.tensor(&[[strip; 4]; TERMS], black_box(&mut out));
    }));
    let transform = Transform::new(DEGREE, q).map_or(0.0, |transform| {
        let mut values = vec![1; DEGREE];
        let both = least(Box::new(move || {
            transform.forward(black_box(&mut values));
            transform.inverse(black_box(&mut values));
        }));
        both / 2.0
    });
    (tensor / (4 * TERMS * STRIP) as f64, transform)
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "dataset        records  cells set  seconds   cpu s | tensor (limit) switch  pack (thread s) | \
         switches transforms (limit) | encrypt s expand s  MB up | noise bits left  peak MB\n",
    );
    for row in rows {
        text.push_str(&format!(
            "{:14} {:7} {:6} {:3} {:8.3} {:>7} | {:6.2} {:7.2} {:6.2} {:5.2}            | {:8} {:10} \
             {:7.2} | {:9.2} {:8.2} {:6.1} | {:15.0} {:8}\n",
            row.dataset,
            row.records,
            row.cells,
            row.parameter_set,
            row.seconds,
            row.cpu_seconds
                .map_or("-".to_owned(), |s| format!("{s:.2}")),
            row.tensor_seconds,
            row.tensor_limit_seconds,
            row.switching_seconds,
            row.packing_seconds,
            row.key_switches,
            row.transforms,
            row.transform_limit_seconds,
            row.encrypt_seconds,
            row.expand_seconds,
            row.bytes_up as f64 / 1e6,
            row.noise_bits_left,
            row.peak_memory_bytes
                .map_or("-".to_owned(), |b| (b / 1_000_000).to_string()),
        ));
    }
    text.push_str("Every cell was decrypted and equals its count.\n");
    text
}
