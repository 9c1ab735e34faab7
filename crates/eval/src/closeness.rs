//! Whether synthetic records lie closer to the records they were made from than to others.
//!
//! After Platzer and Reutterer 2021 (Holdout-based empirical assessment of mixed-type synthetic
//! data, Frontiers in Big Data 4): the training and the held-out records come from the same
//! population, so a synthetic table that copies nobody is as close to the one as to the other.
//! A check of the whole chain, not a guarantee: that is differential privacy's.

use fhaim_domain::Table;
use rand::{Rng, seq::index};
use serde::Serialize;

/// So many records are compared: synthetic ones, and real ones on each side.
const MAX_SYNTHETIC: usize = 2_000;
const MAX_REAL: usize = 5_000;

/// How close synthetic records are to real ones. Shares are from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Closeness {
    /// Synthetic records compared.
    pub synthetic_records: usize,
    /// Training records compared, and as many held-out ones.
    pub real_records: usize,
    /// Share of synthetic records closer, in the number of columns that differ, to the nearest
    /// training record than to the nearest held-out one; ties count half. One half is ideal.
    pub closer_to_training: f64,
    /// Share of synthetic records equal to one of the training records.
    pub equal_to_training: f64,
    /// Share of synthetic records equal to one of the held-out records.
    pub equal_to_held_out: f64,
}

/// Compares random records of each table, equally many of both real ones.
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

/// Random records, each as its codes.
fn draw(table: &Table, count: usize, rng: &mut (impl Rng + ?Sized)) -> Vec<Vec<u32>> {
    index::sample(rng, table.records(), count)
        .into_iter()
        .map(|row| table.columns().iter().map(|codes| codes[row]).collect())
        .collect()
}

/// Columns in which `record` and the nearest of `others` differ.
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
