//! Checks whether synthetic records are closer to the records that they were made from than to others.
//!
//! The method is from Platzer and Reutterer 2021 (Holdout-based empirical assessment of mixed-type synthetic data,
//! Frontiers in Big Data 4). Training and held-out records are from the same population, so a synthetic table without
//! copies is equally close to both. This checks the whole process, but only differential privacy is a guarantee.

use fhaim_domain::Table;
use rand::{Rng, seq::index};
use serde::Serialize;

/// Maximum number of synthetic records to compare.
const MAX_SYNTHETIC: usize = 2_000;
/// Maximum number of training records to compare, and of held-out records.
const MAX_REAL: usize = 5_000;

/// Closeness of synthetic records to real ones. Shares are from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Closeness {
    /// Number of synthetic records compared.
    pub synthetic_records: usize,
    /// Number of training records compared, and of held-out records.
    pub real_records: usize,
    /// Share of synthetic records that are closer to the nearest training record than to the nearest held-out record.
    /// The distance is the number of columns that differ, and ties count half. One half is ideal.
    pub closer_to_training: f64,
    /// Share of synthetic records equal to one of the training records.
    pub equal_to_training: f64,
    /// Share of synthetic records equal to one of the held-out records.
    pub equal_to_held_out: f64,
}

/// Compares random records of each table, the same number from both real tables.
pub(crate) fn closeness(
    training: &Table,
    held_out: &Table,
    synthetic: &Table,
    rng: &mut (impl Rng + ?Sized),
) -> Closeness {
    let real_records = training.records().min(held_out.records()).min(MAX_REAL);
    let training = draw(training, real_records, rng);
    let held_out = draw(held_out, real_records, rng);
    let synthetic = draw(synthetic, MAX_SYNTHETIC.min(synthetic.records()), rng);
    let (mut closer, mut equal_training, mut equal_held_out) = (0.0, 0usize, 0usize);
    for record in &synthetic {
        let to_training = nearest(record, &training);
        let to_held_out = nearest(record, &held_out);
        closer += match to_training.cmp(&to_held_out) {
            std::cmp::Ordering::Less => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Greater => 0.0,
        };
        equal_training += usize::from(to_training == 0);
        equal_held_out += usize::from(to_held_out == 0);
    }
    let share = |count: f64| count / synthetic.len() as f64;
    Closeness {
        synthetic_records: synthetic.len(),
        real_records,
        closer_to_training: share(closer),
        equal_to_training: share(equal_training as f64),
        equal_to_held_out: share(equal_held_out as f64),
    }
}

/// Draws random records, each as its codes.
fn draw(table: &Table, count: usize, rng: &mut (impl Rng + ?Sized)) -> Vec<Vec<u32>> {
    index::sample(rng, table.records(), count)
        .into_iter()
        .map(|row| table.columns().iter().map(|codes| codes[row]).collect())
        .collect()
}

/// Returns the number of columns in which `record` and the nearest of `others` differ.
fn nearest(record: &[u32], others: &[Vec<u32>]) -> usize {
    let differing = |other: &Vec<u32>| {
        record
            .iter()
            .zip(other)
            .filter(|(one, two)| one != two)
            .count()
    };
    others.iter().map(differing).min().unwrap_or(record.len())
}
