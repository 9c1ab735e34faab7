//! `fhaim bench`: measures encrypted computation with the user's table on the user's machine.
//!
//! Computes every cell of every pair of columns, with the columns encrypted under an upload key, and compares each cell
//! with its count.

use std::{hint::black_box, path::PathBuf, time::Instant};

use clap::Args;
use fhaim_domain::{Table, counted};
use fhaim_files::{FormatArguments, StrictnessArguments, progress::Progress};
use fhaim_he::{DEGREE, Demand, Layout, ParameterSet};
use fhaim_ntt::{Modulus, Transform};
use fhaim_protocol::bench::{Compute, compute};
use serde::Serialize;

use crate::{error::Error, input, input::Data, output, randomness::system, size};

pub const BENCH_EXAMPLES: &str = "\
Examples:
  fhaim bench --data patients.csv --schema patients.schema.json

The command releases nothing and spends no privacy budget.";

/// Flags of `bench`.
#[derive(Debug, Args)]
pub struct BenchArguments {
    /// Input table (CSV, Excel or Parquet)
    #[arg(long, value_name = "TABLE")]
    pub data: Data,
    /// Schema of the table
    #[arg(long, value_name = "JSON")]
    pub schema: PathBuf,
    #[command(flatten)]
    pub format: FormatArguments,
    #[command(flatten)]
    pub strictness: StrictnessArguments,
}

/// Results for one table.
///
/// The seconds of tensor, switching and packing are summed over threads. So are the limits, which are the times of the
/// multiply-accumulates and transforms by themselves, with operands in the cache of this machine.
#[derive(Debug, Serialize)]
pub struct BenchRow {
    dataset: String,
    parameter_set: u8,
    seconds: f64,
    /// Processor time of all threads, which other load on the machine does not change.
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
    /// Largest memory of the process so far.
    peak_memory_bytes: Option<u64>,
}

/// Runs `fhaim bench`.
pub fn run(arguments: &BenchArguments, progress: &Progress) -> Result<(), Error> {
    let BenchArguments {
        data,
        format,
        strictness,
        ..
    } = arguments;
    let schema = input::schema(&arguments.schema)?;
    let table = input::table(data, schema, format, strictness)?;
    let name = table.schema().name().to_owned();
    let phase = progress.uncounted(format!("compute {name}"));
    let row = measure(&name, &table)?;
    phase.finish();
    output::print(&row.screen(table.domain().len()))
}

/// Computes every cell of every pair of a table's columns under encryption.
///
/// # Errors
/// If no parameter set fits, or a decrypted cell differs from its count.
pub fn measure(name: &str, table: &Table) -> Result<BenchRow, Error> {
    let records = table.records() as u64;
    let set = ParameterSet::choose(&Demand {
        records,
        largest: records.into(),
        squares: false,
        layout: Layout::for_records(table.records())?,
        // The factors are single columns.
        energy: 1,
        shares: 1,
        strip_bits: 0.0,
    })?;
    let done = compute(table, set, &mut system()?)?;
    Ok(row(name, &set, &done))
}

/// Last line of the output. It is always true, because [`measure`] fails otherwise.
const CHECKED: &str = "Every cell was decrypted and equals its count.\n";

impl BenchRow {
    /// Formats the results of one table as a screen of text.
    fn screen(&self, columns: usize) -> String {
        let pairs = columns * columns.saturating_sub(1) / 2;
        let megabytes = |bytes: u64| size::megabytes(bytes);
        let of_all = |seconds: f64| format!("{seconds:9.2} s");
        let mut text = format!(
            "{}: {}, {} of {}, {}; {}\n",
            self.dataset,
            counted(self.records, "record"),
            counted(pairs, "pair"),
            counted(columns, "column"),
            counted(self.cells, "cell"),
            counted(self.threads, "thread"),
        );
        let mut line = |name: &str, figure: String, note: String| {
            text.push_str(&format!("{name:28}{figure}{note}\n"));
        };
        line(
            "encrypt the table",
            of_all(self.encrypt_seconds),
            format!(", {} MB to upload", megabytes(self.bytes_up)),
        );
        line(
            "expand the upload",
            of_all(self.expand_seconds),
            String::new(),
        );
        line("compute all pairs", of_all(self.seconds), String::new());
        line(
            "  all threads: products",
            of_all(self.tensor_seconds),
            format!(" (pure arithmetic {:.2} s)", self.tensor_limit_seconds),
        );
        line(
            "  key switches",
            of_all(self.switching_seconds),
            format!(", {}", self.key_switches),
        );
        line("  packing", of_all(self.packing_seconds), String::new());
        if let Some(seconds) = self.cpu_seconds {
            line("  processor time", of_all(seconds), String::new());
        }
        if let Some(bytes) = self.peak_memory_bytes {
            let figure = format!("{:9} MB", megabytes(bytes));
            line("peak memory", figure, String::new());
        }
        let figure = format!("{:9.0} bits", self.noise_bits_left);
        line(
            "noise margin",
            figure,
            format!(", parameter set {}", self.parameter_set),
        );
        text + CHECKED
    }
}

fn row(dataset: &str, set: &ParameterSet, done: &Compute) -> BenchRow {
    let (multiply, transform) = limits(set);
    BenchRow {
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

/// Number of coefficients in a strip of a product.
const STRIP: usize = 256;

/// Returns the seconds of a single multiply-accumulate and a single transform modulo the first prime of a set.
///
/// The operands are in cache, and the result is the minimum of many rounds.
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

/// Formats the results of several tables, one line each.
pub fn lines(rows: &[BenchRow]) -> String {
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
    text + CHECKED
}
