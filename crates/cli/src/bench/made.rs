//! `fhaim bench pgm --attributes N`: a model of a table made up, and what it takes to fit it and to ask it.

use std::{io, time::Instant};

use fhaim_domain::{Clique, Table, WriteOptions, write_csv};
use fhaim_pgm::{FitOptions, Measurement, Model, ModelGraph, Passes, fit};
use rand::{SeedableRng, rngs::StdRng};
use serde::Serialize;

use super::args::PgmArguments;
use super::families::{hanging_table, normal};
use crate::{error::Error, output, progress::Progress, size};

/// Records of the table that is measured.
const RECORDS: usize = 20_000;

/// Standard deviation of the noise of every measured cell, in records.
const SIGMA: f64 = 30.0;

/// At most so many pairs are measured for each attribute.
const PAIRS: usize = 3;

/// The default mechanism's last fits combine so many steps, and end below this tolerance.
const MEMORY: usize = 20;
const TOLERANCE: f64 = 1e-4;

/// One model.
#[derive(Debug, Serialize)]
struct Row {
    attributes: usize,
    /// Pairs measured beside all single attributes.
    pairs: usize,
    /// Bytes that the model holds.
    model_bytes: usize,
    /// Seconds of the fit on all threads, planning included.
    fit_seconds: f64,
    steps: usize,
    loss: f64,
    /// Most memory that the process has had once the model was fitted: of this model or one before it.
    peak_memory_bytes: Option<u64>,
    /// Records drawn, and then asked for their densities and written as CSV to nowhere.
    records: usize,
    sample_seconds: f64,
    density_seconds: f64,
    csv_seconds: f64,
}

/// Measures each number of attributes with each cap.
pub fn run(arguments: &PgmArguments, progress: &Progress) -> Result<(), Error> {
    let mut rows = Vec::new();
    for &attributes in &arguments.attributes {
        let table = hanging_table(RECORDS, attributes.into(), 0)?;
        for &megabytes in &arguments.model_mb {
            let phase = progress.uncounted(format!("fit {attributes} attributes, {megabytes} MB"));
            rows.push(measure(&table, megabytes, arguments)?);
            phase.finish();
        }
    }
    match arguments.json {
        true => output::print_json(&rows),
        false => output::print(&text(&rows)),
    }
}

fn measure(table: &Table, megabytes: f64, arguments: &PgmArguments) -> Result<Row, Error> {
    let mut rng = StdRng::seed_from_u64(1);
    let pairs = strongest(table, megabytes)?;
    let singles = (0..table.domain().len()).map(|attribute| Clique::new([attribute]));
    let measurements = (singles.chain(pairs.iter().cloned()))
        .map(|clique| noisy(table, clique, &mut rng))
        .collect::<Result<Vec<_>, Error>>()?;
    let options = FitOptions {
        steps: arguments.steps,
        tolerance: TOLERANCE,
        passes: Passes::Contractions,
        memory: MEMORY,
        max_bytes: usize::MAX,
        ..FitOptions::default()
    };
    let model = fit(table.domain(), &measurements, &options, None)?;
    let peak_memory_bytes = size::linux_bytes("/proc/self/status", "VmHWM:");
    let [sample_seconds, density_seconds, csv_seconds] =
        ask(table, &model, arguments.records, &mut rng)?;
    let report = model.report();
    Ok(Row {
        attributes: table.domain().len(),
        pairs: pairs.len(),
        model_bytes: model.bytes(),
        fit_seconds: report.seconds,
        steps: report.steps,
        loss: report.loss,
        peak_memory_bytes,
        records: arguments.records,
        sample_seconds,
        density_seconds,
        csv_seconds,
    })
}

/// The pairs that are furthest from independent, as many as a model within the cap has and [`PAIRS`] allows.
fn strongest(table: &Table, megabytes: f64) -> Result<Vec<Clique>, Error> {
    let domain = table.domain();
    let mut pairs = (domain.pairs().into_iter())
        .map(|pair| Ok((dependence(table, &pair)?, pair)))
        .collect::<Result<Vec<_>, Error>>()?;
    pairs.sort_by(|(x, _), (y, _)| y.total_cmp(x));
    let cap = (megabytes * 1e6) as usize / size_of::<f64>();
    let mut graph = ModelGraph::new(domain);
    let mut chosen = Vec::new();
    for (_, pair) in pairs {
        if chosen.len() == PAIRS * domain.len() {
            break;
        }
        if graph.cells_with(&pair).is_some_and(|cells| cells <= cap) {
            graph.add(&pair);
            chosen.push(pair);
        }
    }
    Ok(chosen)
}

/// The L1 distance of a pair's counts to those of independent attributes, in records.
fn dependence(table: &Table, pair: &Clique) -> Result<f64, Error> {
    let [a, b] = [0, 1].map(|i| Clique::new([pair.attributes()[i]]));
    let (rows, columns) = (counts(table, &a)?, counts(table, &b)?);
    let records = table.records() as f64;
    let expected = (rows.iter()).flat_map(|x| columns.iter().map(move |y| x * y / records));
    let counted = counts(table, pair)?;
    Ok((counted.iter().zip(expected))
        .map(|(x, y)| (x - y).abs())
        .sum())
}

fn counts(table: &Table, clique: &Clique) -> Result<Vec<f64>, Error> {
    let counts = table.counts(clique).map_err(fhaim_synth::Error::from)?;
    Ok(counts.into_iter().map(|count| count as f64).collect())
}

/// Counts with noise. The table is made up, so that nothing private depends on how it is drawn.
fn noisy(table: &Table, clique: Clique, rng: &mut StdRng) -> Result<Measurement, Error> {
    let counts = counts(table, &clique)?;
    let values = counts.iter().map(|count| count + SIGMA * normal(rng));
    let values = values.collect();
    Ok(Measurement::cells(clique, values, SIGMA))
}

/// Seconds to draw records, to tell their densities, and to write them.
fn ask(table: &Table, model: &Model, records: usize, rng: &mut StdRng) -> Result<[f64; 3], Error> {
    let started = Instant::now();
    let columns = model.sample(records, rng);
    let sample = started.elapsed().as_secs_f64();
    let started = Instant::now();
    model.log_densities(&columns)?;
    let density = started.elapsed().as_secs_f64();
    let drawn = Table::new(table.shared_schema(), columns).map_err(fhaim_synth::Error::from)?;
    let started = Instant::now();
    write_csv(&drawn, io::sink(), rng, &WriteOptions::new("CSV"))?;
    Ok([sample, density, started.elapsed().as_secs_f64()])
}

fn text(rows: &[Row]) -> String {
    let mut text = String::from(
        "attributes  pairs  model MB  fit seconds  steps  peak MB | thousand records a second: drawn  densities    CSV\n",
    );
    for row in rows {
        let rate = |seconds: f64| row.records as f64 / seconds / 1e3;
        let peak = row
            .peak_memory_bytes
            .map(|bytes| (bytes / 1_000_000).to_string());
        text.push_str(&format!(
            "{:10} {:6} {:9.1} {:12.2} {:6} {:>8} | {:31.0} {:10.0} {:6.0}\n",
            row.attributes,
            row.pairs,
            row.model_bytes as f64 / 1e6,
            row.fit_seconds,
            row.steps,
            peak.as_deref().unwrap_or("-"),
            rate(row.sample_seconds),
            rate(row.density_seconds),
            rate(row.csv_seconds),
        ));
    }
    text
}
