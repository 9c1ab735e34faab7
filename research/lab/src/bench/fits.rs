//! `fhaim-lab bench pgm TABLE ...` and `--attributes N`: measures the cost of fits, compared with the speed of the
//! machine, and how fast models give records, densities and files.

use std::{io, time::Instant};

use fhaim_domain::{Table, WriteOptions, write_csv};
use fhaim_dp::accounting;
use fhaim_files::progress::Progress;
use fhaim_pgm::{FitReport, Pace};
use fhaim_release::{MechanismJob, MechanismRun, ReleaseRequest, ReleaseSource, SourceError};
use fhaim_synth::{FittedModel, MechanismName, PlaintextSource, RunOutcome, drive};
use rand::{SeedableRng, rngs::StdRng};
use serde::Serialize;

use super::args::PgmArguments;
use super::rows::Rows;
use super::{Dataset, families, made, tables};
use crate::{args::DEFAULT_DELTA, error::Error, size};

/// The work of a fit. Each step is a calibration of the junction tree.
#[derive(Debug, Serialize)]
struct Fit {
    /// Number of cells in the cliques of the junction tree, over groups of categories where these are not
    /// distinguished.
    cells: usize,
    steps: usize,
    loss: f64,
    /// Elapsed seconds, including planning and the model's tables.
    seconds: f64,
    /// CPU seconds of all threads; `None` if the system does not report them.
    cpu_seconds: Option<f64>,
    /// Number of cells visited, and of products computed, in all steps.
    cells_passed: u64,
    products: u64,
    /// Time that one thread of this machine needs for these cells and products if they are in the nearest cache.
    limit_seconds: f64,
}

/// The times of queries to a model.
#[derive(Debug, Serialize)]
struct Asked {
    /// Number of records that are drawn, whose densities are computed, and that are written as CSV to a sink.
    records: usize,
    sample_seconds: f64,
    density_seconds: f64,
    csv_seconds: f64,
}

/// The results for one model.
#[derive(Debug, Serialize)]
struct Row {
    table: String,
    /// Budget of the default mechanism's run; `None` for a generated table.
    epsilon: Option<f64>,
    attributes: usize,
    cap_bytes: usize,
    model_bytes: usize,
    fit: Fit,
    /// Peak memory of the process after the fit, including all earlier models.
    peak_memory_bytes: Option<u64>,
    asked: Asked,
}

/// Fits every table with every budget and cap, and the generated tables with every cap.
pub fn run(arguments: &PgmArguments, progress: &Progress) -> Result<(), Error> {
    let pace = Pace::measure();
    let mut rows = Rows::begin(arguments.json, HEADING, line)?;
    let tables = match arguments.names_runs() {
        true => tables(&arguments.datasets, &arguments.own)?,
        false => Vec::new(),
    };
    for Dataset { name, table } in &tables {
        for &epsilon in &arguments.epsilon {
            for &megabytes in &arguments.model_mb {
                let phase = progress.uncounted(format!("fit {name} e{epsilon} {megabytes} MB"));
                let cap = bytes(megabytes);
                let (model, fit) = last_fit(table, epsilon, cap, &pace)?;
                let subject = Subject {
                    name: name.clone(),
                    epsilon: Some(epsilon),
                    table,
                    cap,
                };
                rows.push(&subject.row(&*model, fit, arguments.records)?)?;
                phase.finish();
            }
        }
    }
    for &attributes in &arguments.attributes {
        let table = families::hanging_table(made::RECORDS, attributes.into(), 0)?;
        for &megabytes in &arguments.model_mb {
            let phase = progress.uncounted(format!("fit {attributes} attributes, {megabytes} MB"));
            let (cap, started) = (bytes(megabytes), Clock::now());
            let model = made::model(&table, cap, arguments.steps)?;
            let fit = Fit::new(&model.report(), &started, &pace);
            let subject = Subject {
                name: "made up".to_owned(),
                epsilon: None,
                table: &table,
                cap,
            };
            rows.push(&subject.row(&model, fit, arguments.records)?)?;
            phase.finish();
        }
    }
    rows.end(&format!(
        "One thread visits {:.0} million cells a second in the nearest cache and {:.0} in memory, and \
         computes {:.0} million products; \"limit\" is the time of a fit's cells and products in cache.\n",
        1e-6 / pace.cached_cell,
        1e-6 / pace.cell,
        1e-6 / pace.product,
    ))
}

fn bytes(megabytes: f64) -> usize {
    (megabytes * 1e6) as usize
}

/// A time, with the CPU time of the process until then.
#[derive(Clone, Copy, Debug)]
struct Clock {
    wall: Instant,
    cpu_seconds: Option<f64>,
}

impl Clock {
    fn now() -> Self {
        Self {
            wall: Instant::now(),
            cpu_seconds: size::cpu_seconds("/proc/self/stat"),
        }
    }
}

impl Fit {
    /// Returns the work of a fit that began at `started` and has just ended.
    fn new(report: &FitReport, started: &Clock, pace: &Pace) -> Self {
        let now = Clock::now();
        let cpu_seconds = now.cpu_seconds.zip(started.cpu_seconds);
        let work = report.work;
        Self {
            cells: report.cells,
            steps: report.steps,
            loss: report.loss,
            seconds: (now.wall - started.wall).as_secs_f64(),
            cpu_seconds: cpu_seconds.map(|(now, then)| now - then),
            cells_passed: work.cells,
            products: work.products,
            limit_seconds: work.cells as f64 * pace.cached_cell
                + work.products as f64 * pace.product,
        }
    }
}

/// A release source that records the time of its last answer.
struct Remembering<'a> {
    source: PlaintextSource<'a>,
    answered: Clock,
}

impl ReleaseSource for Remembering<'_> {
    fn release(&mut self, requests: &[ReleaseRequest]) -> Result<Vec<Vec<i64>>, SourceError> {
        let answers = self.source.release(requests)?;
        self.answered = Clock::now();
        Ok(answers)
    }
}

/// Runs the default mechanism on a whole table in the clear, and measures its last fit: all work after the last
/// answers.
fn last_fit(
    table: &Table,
    epsilon: f64,
    cap: usize,
    pace: &Pace,
) -> Result<(std::sync::Arc<dyn FittedModel>, Fit), Error> {
    let rho = accounting::rho(epsilon, DEFAULT_DELTA)?;
    let mut job = MechanismJob::new(table.domain().clone(), rho, table.records() as u64);
    job.model_bytes = cap;
    let name = MechanismName::default();
    let run = MechanismRun::new(name.start(job.clone())?, job, Vec::new())
        .map_err(fhaim_synth::Error::from)?;
    let mut rng = StdRng::seed_from_u64(0);
    let mut source = Remembering {
        source: PlaintextSource::with_rng(table, &mut rng),
        answered: Clock::now(),
    };
    let RunOutcome { model, .. } = drive(run, &mut source, &mut |_| {})?;
    let report = model.fit().unwrap_or_default();
    let fit = Fit::new(&report, &source.answered, pace);
    Ok((model, fit))
}

/// The table and the settings of a model.
struct Subject<'a> {
    name: String,
    epsilon: Option<f64>,
    table: &'a Table,
    cap: usize,
}

impl Subject<'_> {
    fn row(self, model: &dyn FittedModel, fit: Fit, records: usize) -> Result<Row, Error> {
        let peak_memory_bytes = size::linux_bytes("/proc/self/status", "VmHWM:");
        Ok(Row {
            asked: ask(self.table, model, records)?,
            table: self.name,
            epsilon: self.epsilon,
            attributes: model.domain().len(),
            cap_bytes: self.cap,
            model_bytes: model.bytes(),
            fit,
            peak_memory_bytes,
        })
    }
}

/// Draws records from a model, computes their densities, and writes them.
fn ask(table: &Table, model: &dyn FittedModel, records: usize) -> Result<Asked, Error> {
    let mut rng = StdRng::seed_from_u64(2);
    let started = Instant::now();
    let columns = model.sample(records, &mut rng);
    let sample_seconds = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let density = model
        .density()
        .ok_or(fhaim_synth::Error::Internal("a model without a density"))?;
    density
        .log_densities(&columns)
        .map_err(fhaim_synth::Error::from)?;
    let density_seconds = started.elapsed().as_secs_f64();
    let drawn = Table::new(table.shared_schema(), columns).map_err(fhaim_synth::Error::from)?;
    let started = Instant::now();
    write_csv(&drawn, io::sink(), &mut rng, &WriteOptions::new("CSV"))?;
    Ok(Asked {
        records,
        sample_seconds,
        density_seconds,
        csv_seconds: started.elapsed().as_secs_f64(),
    })
}

const HEADING: &str = "\
table       epsilon attributes   cap MB  model MB  million cells  steps  seconds  cpu s  limit  \
million cells/s  products/s  peak MB | thousand records/s: drawn densities   CSV\n";

fn line(row: &Row) -> String {
    let fit = &row.fit;
    let optional = |x: Option<f64>, digits: usize| match x {
        Some(x) => format!("{x:.digits$}"),
        None => "-".to_owned(),
    };
    let of_processor = |count: u64| {
        let rate = |seconds: f64| format!("{:.0}", count as f64 / seconds / 1e6);
        fit.cpu_seconds
            .filter(|&s| s > 0.0)
            .map_or_else(|| "-".to_owned(), rate)
    };
    let rate = |seconds: f64| row.asked.records as f64 / seconds / 1e3;
    let peak = row.peak_memory_bytes.map(|bytes| bytes as f64 / 1e6);
    format!(
        "{:11} {:>7} {:10} {:8} {:9.1} {:14.3} {:6} {:8.2} {:>6} {:6.2} {:>16} {:>11} {:>8} | {:25.0} {:9.0} {:5.0}\n",
        row.table,
        row.epsilon
            .map_or_else(|| "-".to_owned(), |epsilon| epsilon.to_string()),
        row.attributes,
        row.cap_bytes as f64 / 1e6,
        row.model_bytes as f64 / 1e6,
        fit.cells as f64 / 1e6,
        fit.steps,
        fit.seconds,
        optional(fit.cpu_seconds, 2),
        fit.limit_seconds,
        of_processor(fit.cells_passed),
        of_processor(fit.products),
        optional(peak, 0),
        rate(row.asked.sample_seconds),
        rate(row.asked.density_seconds),
        rate(row.asked.csv_seconds),
    )
}
