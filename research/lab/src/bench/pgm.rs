//! `fhaim-lab bench pgm`: fits reference measurements, and compares the results with the marginals and the loss of
//! private-pgm (mirror descent, 20,000 steps).

use std::{
    fmt,
    path::{Path, PathBuf},
};

use fhaim_domain::{Clique, Domain};
use fhaim_files::progress::Progress;
use fhaim_pgm::{FitOptions, Measurement, Model, Passes, fit_once};
use serde::{
    Deserialize, Serialize,
    de::{Deserializer, MapAccess, Visitor},
};

use super::args::PgmArguments;
use super::fits;
use crate::{error::Error, output};

/// Environment variable with the folder of the reference fits, files `pgm-*.json`.
const FOLDER: &str = "FHAIM_REFERENCE_DIR";

/// A reference fit: measurements of the marginals of a table, and the results.
#[derive(Debug, Deserialize)]
struct Reference {
    dataset: String,
    #[serde(deserialize_with = "in_order")]
    domain: Vec<(String, usize)>,
    measurements: Vec<NamedTable>,
    marginals: Vec<NamedTable>,
    #[serde(rename = "loss_half_sum_of_squares_over_sigma2")]
    loss: f64,
    total: f64,
    seconds: f64,
}

/// A table over one or two named attributes, row-major in the given order.
#[derive(Debug, Deserialize)]
struct NamedTable {
    clique: Vec<String>,
    values: Vec<f64>,
    #[serde(default)]
    sigma: f64,
}

/// Deserialises the entries of a JSON object in their order, which is that of the attributes.
fn in_order<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, usize)>, D::Error> {
    struct Entries;
    impl<'de> Visitor<'de> for Entries {
        type Value = Vec<(String, usize)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("attribute sizes by name")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = map.next_entry()? {
                entries.push(entry);
            }
            Ok(entries)
        }
    }
    deserializer.deserialize_map(Entries)
}

/// A fit next to its reference.
#[derive(Debug, Serialize)]
struct Row {
    dataset: String,
    /// Seconds of the fit, and of the reference.
    seconds: f64,
    reference_seconds: f64,
    steps: usize,
    /// 0.5 sum ||Q mu - y||^2 / sigma^2.
    loss: f64,
    reference_loss: f64,
    /// Largest L1 distance between a marginal and the reference's, divided by the total.
    largest_difference: f64,
    /// Whether every marginal is within 1e-3, or the loss is lower.
    agrees: bool,
}

/// Runs the command: fits every reference file, or the tables that are named.
pub fn run(arguments: &PgmArguments, progress: &Progress) -> Result<(), Error> {
    if arguments.names_tables() {
        return fits::run(arguments, progress);
    }
    let mut rows = Vec::new();
    for path in reference_files()? {
        let reference = read(&path)?;
        let phase = progress.uncounted(format!("fit {}", reference.dataset));
        rows.push(compare(&path, &reference, arguments.steps)?);
        phase.finish();
    }
    if arguments.json {
        return output::print_json(&rows);
    }
    let mut text = String::from(
        "dataset             seconds (reference)        loss (reference)   largest difference\n",
    );
    for row in &rows {
        text.push_str(&format!(
            "{:16} {:>10.3} ({:>9.2})  {:>10.5} ({:>10.5})   {:.2e} {}\n",
            row.dataset,
            row.seconds,
            row.reference_seconds,
            row.loss,
            row.reference_loss,
            row.largest_difference,
            if row.agrees { "agrees" } else { "DIFFERS" },
        ));
    }
    output::print(&text)
}

fn reference_files() -> Result<Vec<PathBuf>, Error> {
    let folder = std::env::var_os(FOLDER)
        .map(PathBuf::from)
        .ok_or(Error::Environment(FOLDER, "of the reference fits"))?;
    let entries = std::fs::read_dir(&folder).map_err(|source| Error::Read {
        path: folder.clone(),
        source,
    })?;
    let is_reference = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("pgm-") && name.ends_with(".json")
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(is_reference)
        .collect();
    files.sort();
    if files.is_empty() {
        let problem = "the folder has no files pgm-*.json".to_owned();
        return Err(Error::Content {
            path: folder,
            problem,
        });
    }
    Ok(files)
}

fn read(path: &Path) -> Result<Reference, Error> {
    let json = std::fs::read(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    serde_json::from_slice(&json).map_err(|error| Error::Content {
        path: path.to_owned(),
        problem: error.to_string(),
    })
}

fn compare(path: &Path, reference: &Reference, steps: usize) -> Result<Row, Error> {
    let domain = Domain::new(reference.domain.iter().map(|(_, size)| *size).collect());
    let measurements = reference
        .measurements
        .iter()
        .map(|table| {
            let (clique, values) = ascending(path, reference, table)?;
            Ok(Measurement::cells(clique, values, table.sigma))
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let options = FitOptions {
        steps,
        tolerance: 0.0,
        total: Some(reference.total),
        // As in the fits of the default mechanism.
        passes: Passes::Contractions,
        ..FitOptions::default()
    };
    let model = fit_once(&domain, &measurements, &options, None)?;
    let largest_difference = largest_difference(path, reference, &model)?;
    let report = model.report();
    Ok(Row {
        dataset: reference.dataset.clone(),
        seconds: report.seconds,
        reference_seconds: reference.seconds,
        steps: report.steps,
        loss: report.loss,
        reference_loss: reference.loss,
        largest_difference,
        agrees: largest_difference <= 1e-3 || report.loss < reference.loss,
    })
}

fn largest_difference(path: &Path, reference: &Reference, model: &Model) -> Result<f64, Error> {
    let mut largest = 0.0f64;
    for table in &reference.marginals {
        let (clique, theirs) = ascending(path, reference, table)?;
        let ours = model.marginal(&clique)?;
        let difference: f64 = (ours.iter().zip(&theirs)).map(|(a, b)| (a - b).abs()).sum();
        largest = largest.max(difference / reference.total);
    }
    Ok(largest)
}

/// Returns a table's attributes in ascending order, and its cells in the matching order.
fn ascending(
    path: &Path,
    reference: &Reference,
    table: &NamedTable,
) -> Result<(Clique, Vec<f64>), Error> {
    let refuse = |problem: &str| Error::Content {
        path: path.to_owned(),
        problem: format!("table over {:?}: {problem}", table.clique),
    };
    let index = |name: &String| reference.domain.iter().position(|(n, _)| n == name);
    let attributes: Option<Vec<usize>> = table.clique.iter().map(index).collect();
    let attributes = attributes.ok_or_else(|| refuse("an attribute is unknown"))?;
    let size = |attribute: usize| reference.domain[attribute].1;
    if attributes.iter().map(|&a| size(a)).product::<usize>() != table.values.len() {
        return Err(refuse(
            "the number of values differs from the number of cells",
        ));
    }
    let values = match *attributes {
        [a, b] if a > b => (0..size(b))
            .flat_map(|column| (0..size(a)).map(move |row| row * size(b) + column))
            .map(|cell| table.values[cell])
            .collect(),
        [_] | [_, _] => table.values.clone(),
        _ => return Err(refuse("only one or two attributes are supported")),
    };
    Ok((Clique::new(attributes), values))
}
