//! Reads reference fits of the Python implementation of Private-PGM from JSON files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fhaim_domain::{Clique, Domain};
use fhaim_pgm::Measurement;
use serde::Deserialize;

/// Environment variable that names the folder of the reference files.
pub const FOLDER: &str = "FHAIM_REFERENCE_DIR";

#[derive(Deserialize)]
struct File {
    domain: BTreeMap<String, usize>,
    measurements: Vec<FileMeasurement>,
    marginals: Vec<FileMarginal>,
    loss_half_sum_of_squares_over_sigma2: f64,
    total: f64,
}

#[derive(Deserialize)]
struct FileMeasurement {
    clique: Vec<String>,
    sigma: f64,
    values: Vec<f64>,
}

#[derive(Deserialize)]
struct FileMarginal {
    clique: Vec<String>,
    values: Vec<f64>,
}

/// A problem, with the marginals and the loss that the reference implementation found.
pub struct Reference {
    pub domain: Domain,
    pub measurements: Vec<Measurement>,
    pub marginals: Vec<(Clique, Vec<f64>)>,
    pub loss: f64,
    pub total: f64,
}

impl Reference {
    /// Reads the reference of a data set.
    pub fn load(dataset: &str) -> Self {
        let folder = std::env::var_os(FOLDER)
            .expect("FHAIM_REFERENCE_DIR names the folder of the reference fits");
        let path = PathBuf::from(folder).join(format!("pgm-{dataset}.json"));
        let text = std::fs::read_to_string(&path).expect("the reference file can be read");
        Self::from(serde_json::from_str::<File>(&text).expect("the reference file is complete"))
    }
}

impl From<File> for Reference {
    fn from(file: File) -> Self {
        // Attributes are numbered by name, so tables may have to be transposed.
        let names: Vec<&String> = file.domain.keys().collect();
        let domain = Domain::new(file.domain.values().copied().collect());
        let indices = |clique: &[String]| -> Vec<usize> {
            let index = |name| names.iter().position(|n| *n == name);
            clique
                .iter()
                .map(|name| index(name).expect("a known attribute"))
                .collect()
        };
        let measurements = (file.measurements.iter())
            .map(|m| {
                let (clique, values) = ascending(&domain, &indices(&m.clique), &m.values);
                Measurement::cells(clique, values, m.sigma)
            })
            .collect();
        let marginals = (file.marginals.iter())
            .map(|m| ascending(&domain, &indices(&m.clique), &m.values))
            .collect();
        Self {
            domain,
            measurements,
            marginals,
            loss: file.loss_half_sum_of_squares_over_sigma2,
            total: file.total,
        }
    }
}

/// Reorders a row-major table over at most two attributes to ascending order.
fn ascending(domain: &Domain, attributes: &[usize], values: &[f64]) -> (Clique, Vec<f64>) {
    let values = match *attributes {
        [a, b] if a > b => (0..domain.size(b))
            .flat_map(|j| (0..domain.size(a)).map(move |i| values[i * domain.size(b) + j]))
            .collect(),
        _ => values.to_vec(),
    };
    (Clique::new(attributes.iter().copied()), values)
}
