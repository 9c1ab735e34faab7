//! `fhaim-lab bench scale`: runs complete encrypted runs on generated tables of growing length and width, each in its
//! own process. Measures seconds, bytes and memory, and how they grow.

mod chart;
mod kept;

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use fhaim_cli::shared::HolderUpload;
use fhaim_files::progress::Progress;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

use self::kept::Kept;
use super::rows::Rows;
use crate::{
    args::megabytes,
    error::Error,
    output::{Existing, StagedFile, print},
    size,
};

pub const SCALE_EXAMPLES: &str = "\
Examples:
  fhaim-lab bench scale
  fhaim-lab bench scale --contribution counts --records 1000 --records 1000000 --picture scale.svg
  fhaim-lab bench scale --records 1000 --records 100000 --columns 10 --columns 100 --kept scale.jsonl
  fhaim-lab bench scale --contribution counts --records 10000 --columns 10 --columns 100 --columns 600 --json";

/// Categories of a generated column.
const CATEGORIES: [&str; 4] = ["a", "b", "c", "d"];

/// Probability that a value is drawn independently, instead of copied from the column before.
const DRAWN_ANEW: f64 = 0.3;

/// Interval at which a running process is measured.
const LOOK: Duration = Duration::from_millis(20);

/// Arguments of `bench scale`.
#[derive(Debug, Args)]
pub struct ScaleArguments {
    /// Number of records of a table (may be repeated)
    #[arg(long, value_name = "N", default_values_t = [1_000, 10_000, 100_000, 1_000_000])]
    pub records: Vec<usize>,
    /// Number of columns of a table, each with four values (may be repeated)
    #[arg(long, value_name = "N", default_values_t = [20])]
    pub columns: Vec<usize>,
    /// What the holder uploads (may be repeated)
    #[arg(long, value_name = "WHAT", default_values = ["counts", "records"])]
    pub contribution: Vec<HolderUpload>,
    /// Privacy budget of a run
    #[arg(long, value_name = "E", default_value_t = 1.0)]
    pub epsilon: f64,
    /// Maximum memory for a model, in MB
    #[arg(long, value_name = "MB", value_parser = megabytes, default_value_t = 8.0)]
    pub model_mb: f64,
    /// Maximum number of values of a table (records times columns); larger tables are listed as not run
    #[arg(long, value_name = "N", default_value_t = 1_000_000_000)]
    pub most_values: usize,
    /// File that keeps every finished run, so that an interrupted bench can resume
    #[arg(long, value_name = "JSONL")]
    pub kept: Option<PathBuf>,
    /// File for a picture of the figures (SVG)
    #[arg(long, value_name = "SVG")]
    pub picture: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

/// The results of one run.
#[derive(Clone, Debug, Serialize)]
struct Row {
    contribution: String,
    records: usize,
    columns: usize,
    /// `None` if the run was refused or failed.
    #[serde(flatten)]
    figures: Option<Figures>,
    /// The error message of such a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Figures {
    /// Elapsed time from the input file to the synthetic file.
    seconds: f64,
    /// CPU time of all threads; `None` if the system does not report it.
    cpu_seconds: Option<f64>,
    /// Time for keys and the upload.
    encrypt_seconds: f64,
    /// Time between the upload and the released counts.
    release_seconds: f64,
    /// Time for fits of models, including the last one.
    fit_seconds: f64,
    upload_bytes: u64,
    peak_memory_bytes: Option<u64>,
}

/// Runs the command: all tables, from the shortest to the longest for each width.
pub fn run(arguments: &ScaleArguments, progress: &Progress) -> Result<(), Error> {
    let picture = arguments.picture.as_deref();
    let picture = picture.map(|path| StagedFile::create(path, Existing::Replace));
    let picture = picture.transpose()?;
    let mut bench = Bench {
        arguments,
        progress,
        folder: TempDir::new().map_err(|source| Error::Write {
            path: std::env::temp_dir(),
            source,
        })?,
        kept: match &arguments.kept {
            Some(path) => Some(Kept::open(path, arguments)?),
            None => None,
        },
    };
    let mut rows = Rows::begin(arguments.json, HEADING, line)?;
    let mut done: Vec<Row> = Vec::new();
    let mut lengths = arguments.records.clone();
    lengths.sort_unstable();
    for &columns in &arguments.columns {
        for &records in &lengths {
            bench.table([records, columns], &mut |row| {
                rows.push(&row)?;
                done.push(row);
                Ok(())
            })?;
        }
    }
    rows.end("")?;
    if !arguments.json {
        print(&slopes(&done))?;
    }
    match picture {
        Some(mut picture) => {
            picture.write_bytes(chart::picture(&done).as_bytes())?;
            Ok(picture.commit()?)
        }
        None => Ok(()),
    }
}

struct Bench<'a> {
    arguments: &'a ScaleArguments,
    progress: &'a Progress,
    folder: TempDir,
    kept: Option<Kept>,
}

impl Bench<'_> {
    /// Takes all runs of a table. The table is only generated if one of them was not made before.
    fn table(
        &mut self,
        [records, columns]: [usize; 2],
        take: &mut dyn FnMut(Row) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let arguments = self.arguments;
        let mut made = None;
        for contribution in &arguments.contribution {
            let name = name(*contribution);
            let kept = self.kept.as_ref();
            if let Some(row) = kept.and_then(|kept| kept.find([records, columns], &name)) {
                take(row)?;
                continue;
            }
            if records.saturating_mul(columns) > arguments.most_values {
                let most = arguments.most_values;
                take(Row {
                    contribution: name,
                    records,
                    columns,
                    figures: None,
                    refused: Some(format!("not run: more than --most-values {most}")),
                })?;
                continue;
            }
            let table = match made.take() {
                Some(table) => table,
                None => make_table(self.folder.path(), records, columns)?,
            };
            let phase = self
                .progress
                .uncounted(format!("{records} x {columns} by {name}"));
            let (row, ended) = measure(&table, arguments, [records, columns], &name)?;
            made = Some(table);
            phase.finish();
            if let (Some(kept), true) = (&mut self.kept, ended) {
                kept.push(&row)?;
            }
            take(row)?;
        }
        Ok(())
    }
}

fn name(contribution: HolderUpload) -> String {
    let value = contribution.to_possible_value();
    value.map_or(String::new(), |value| value.get_name().to_owned())
}

/// The files of a run.
struct Made {
    table: PathBuf,
    schema: PathBuf,
    out: PathBuf,
}

/// Writes a table in which each value is that of the column before, or is drawn independently with probability
/// [`DRAWN_ANEW`].
fn make_table(folder: &Path, records: usize, columns: usize) -> Result<Made, Error> {
    let made = Made {
        table: folder.join("table.csv"),
        schema: folder.join("schema.json"),
        out: folder.join("synthetic.csv"),
    };
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Write { path, source }
    };
    let kinds = (0..columns)
        .map(|i| json!({"name": format!("c{i}"), "kind": "categorical", "categories": CATEGORIES}));
    let schema = json!({"name": "scale", "columns": kinds.collect::<Vec<_>>()});
    std::fs::write(&made.schema, schema.to_string()).map_err(failed(&made.schema))?;
    let file = File::create(&made.table).map_err(failed(&made.table))?;
    write_table(BufWriter::new(file), records, columns).map_err(failed(&made.table))?;
    Ok(made)
}

fn write_table(mut file: impl Write, records: usize, columns: usize) -> std::io::Result<()> {
    let names: Vec<String> = (0..columns).map(|i| format!("c{i}")).collect();
    writeln!(file, "{}", names.join(","))?;
    let mut rng = StdRng::seed_from_u64(1);
    let mut line = Vec::with_capacity(2 * columns);
    for _ in 0..records {
        line.clear();
        let mut value = rng.random_range(0..CATEGORIES.len());
        for _ in 0..columns {
            if rng.random_bool(DRAWN_ANEW) {
                value = rng.random_range(0..CATEGORIES.len());
            }
            // The index is below the number of categories.
            line.extend_from_slice(CATEGORIES.get(value).unwrap_or(&"a").as_bytes());
            line.push(b',');
        }
        line.pop();
        line.push(b'\n');
        file.write_all(&line)?;
    }
    file.flush()
}

/// Runs `fhaim run` in its own process. Also returns whether the process ended by itself, because a killed run can be
/// repeated.
fn measure(
    made: &Made,
    arguments: &ScaleArguments,
    [records, columns]: [usize; 2],
    contribution: &str,
) -> Result<(Row, bool), Error> {
    let row = |figures, refused| Row {
        contribution: contribution.to_owned(),
        records,
        columns,
        figures,
        refused,
    };
    let program = std::env::current_exe().map_err(|source| failed(&source))?;
    let started = Instant::now();
    let mut child = Command::new(program)
        .args(["fhaim", "run", "--yes", "--quiet", "--json"])
        .args(["--epsilon", &arguments.epsilon.to_string()])
        .args(["--model-mb", &arguments.model_mb.ceil().to_string()])
        .args(["--contribution", contribution])
        .arg("--data")
        .arg(&made.table)
        .arg("--schema")
        .arg(&made.schema)
        .arg("--out")
        .arg(&made.out)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| failed(&source))?;
    let (mut peak, mut cpu) = (None, None);
    // The output fits into the pipe's buffer, so the process does not block on it.
    while child
        .try_wait()
        .map_err(|source| failed(&source))?
        .is_none()
    {
        let process = format!("/proc/{}", child.id());
        peak = size::linux_bytes(&format!("{process}/status"), "VmHWM:").or(peak);
        cpu = size::cpu_seconds(&format!("{process}/stat")).or(cpu);
        thread::sleep(LOOK);
    }
    let seconds = started.elapsed().as_secs_f64();
    let output = child.wait_with_output().map_err(|source| failed(&source))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or("no error message");
        let refused = format!("{}: {last}", output.status);
        return Ok((row(None, Some(refused)), output.status.code().is_some()));
    }
    let summary: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| Error::Usage(format!("fhaim run: {error}")))?;
    let figures = figures(&summary, seconds, cpu, peak);
    Ok((row(Some(figures), None), true))
}

fn failed(source: &std::io::Error) -> Error {
    Error::Usage(format!("cannot start fhaim run: {source}"))
}

fn figures(summary: &Value, seconds: f64, cpu: Option<f64>, peak: Option<u64>) -> Figures {
    let of = |value: &Value, name: &str| value.get(name).and_then(Value::as_f64).unwrap_or(0.0);
    let encryption = summary.get("encryption").unwrap_or(&Value::Null);
    let phases = summary.get("timings").and_then(Value::as_array);
    let sum = |name: &str| -> f64 { phases.into_iter().flatten().map(|p| of(p, name)).sum() };
    let bytes = encryption.get("upload_bytes").and_then(Value::as_u64);
    Figures {
        seconds,
        cpu_seconds: cpu,
        encrypt_seconds: of(encryption, "keys_seconds") + of(encryption, "encrypt_seconds"),
        release_seconds: sum("release_seconds"),
        fit_seconds: sum("plan_seconds"),
        upload_bytes: bytes.unwrap_or(0),
        peak_memory_bytes: peak,
    }
}

const HEADING: &str =
    "by          records columns | seconds    cpu s | encrypt release    fits |   MB up peak MB\n";

fn line(row: &Row) -> String {
    let start = format!(
        "{:8} {:10} {:7}",
        row.contribution, row.records, row.columns
    );
    let Some(figures) = &row.figures else {
        let refused = row.refused.as_deref().unwrap_or("");
        return format!("{start} | {refused}\n");
    };
    let optional = |value: Option<f64>, digits: usize| match value {
        Some(value) => format!("{value:.digits$}"),
        None => "-".to_owned(),
    };
    format!(
        "{start} | {:7.2} {:>8} | {:7.2} {:7.2} {:7.2} | {:7.1} {:>7}\n",
        figures.seconds,
        optional(figures.cpu_seconds, 2),
        figures.encrypt_seconds,
        figures.release_seconds,
        figures.fit_seconds,
        figures.upload_bytes as f64 / 1e6,
        optional(figures.peak_memory_bytes.map(|bytes| bytes as f64 / 1e6), 0),
    )
}

/// Returns the runs of each contribution that differ in records only, or in columns only, from the smallest to the
/// largest.
fn series(rows: &[Row]) -> Vec<(String, Vec<(f64, Figures)>)> {
    let mut all: Vec<(String, Vec<(f64, Figures)>)> = Vec::new();
    for row in rows {
        let Some(figures) = row.figures else { continue };
        let names = [
            (
                format!("{}, {} columns, by records", row.contribution, row.columns),
                row.records,
            ),
            (
                format!("{}, {} records, by columns", row.contribution, row.records),
                row.columns,
            ),
        ];
        for (name, size) in names {
            let point = (size as f64, figures);
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some((_, points)) => points.push(point),
                None => all.push((name, vec![point])),
            }
        }
    }
    all.retain(|(_, points)| points.len() > 1);
    for (_, points) in &mut all {
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    }
    all
}

/// Describes the exponents with which results grow over the last step of each series.
fn slopes(rows: &[Row]) -> String {
    let mut text = String::new();
    for (name, points) in series(rows) {
        let [.., (before, less), (size, more)] = points.as_slice() else {
            continue;
        };
        let power = |less: f64, more: f64| (more / less).ln() / (size / before).ln();
        let of = |value: &dyn Fn(&Figures) -> f64| power(value(less), value(more));
        text.push_str(&format!(
            "{name}: from {before} to {size}, seconds grow with exponent {:.2}, bytes {:.2}, memory {:.2}\n",
            of(&|f| f.seconds),
            of(&|f| f.upload_bytes as f64),
            of(&|f| f.peak_memory_bytes.unwrap_or(1) as f64),
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that uploads counts.
    pub(super) fn row(records: usize, columns: usize, seconds: f64) -> Row {
        Row {
            contribution: "counts".to_owned(),
            records,
            columns,
            figures: Some(Figures {
                seconds,
                cpu_seconds: Some(2.0 * seconds),
                encrypt_seconds: 0.1,
                release_seconds: 0.2,
                fit_seconds: 0.3,
                upload_bytes: 1_000_000,
                peak_memory_bytes: Some(records as u64),
            }),
            refused: None,
        }
    }

    #[test]
    fn exponents_are_those_of_the_last_step() {
        let rows = [
            row(10, 5, 7.0),
            row(100, 5, 1.0),
            row(10_000, 5, 10.0),
            row(100, 50, 100.0),
        ];
        let text = slopes(&rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(
            lines[0].contains("seconds grow with exponent 0.50, bytes 0.00, memory 1.00"),
            "{text}"
        );
        assert!(
            lines[1].contains("from 5 to 50, seconds grow with exponent 2.00"),
            "{text}"
        );
        let refused = Row {
            figures: None,
            refused: Some("too large".to_owned()),
            ..row(1, 1, 1.0)
        };
        assert!(line(&refused).contains("too large"));
        assert_eq!(slopes(&[refused, row(1, 1, 1.0)]), "");
    }

    #[test]
    fn generated_table_has_its_size_and_correlated_neighbours() {
        let mut text = Vec::new();
        write_table(&mut text, 2_000, 3).unwrap();
        let text = String::from_utf8(text).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("c0,c1,c2"));
        let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), 2_000);
        let agree = rows.iter().filter(|row| row[0] == row[1]).count() as f64 / 2_000.0;
        // 0.7, plus a quarter of the values that are drawn independently.
        assert!((agree - 0.775).abs() < 0.05, "{agree}");
    }

    #[test]
    fn picture_has_one_line_per_series() {
        let rows = [
            row(1_000, 5, 1.0),
            row(10_000, 5, 3.0),
            row(100_000, 5, 12.0),
        ];
        let picture = chart::picture(&rows);
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
        // One panel each for seconds, megabytes sent, and memory.
        assert_eq!(picture.matches("<polyline").count(), 3);
        assert!(picture.contains("counts, 5 columns"));
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
    }
}
