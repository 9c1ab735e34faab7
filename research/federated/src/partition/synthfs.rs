//! SynthFS: a synthetic table whose feature distributions differ between parties (FLAIM, appendix B.1.1).

use fhaim_domain::{Schema, Table};
use rand::RngCore;

use super::draw::{normal, zipf};
use crate::Error;

/// Number of features of the table.
pub const SYNTHFS_ATTRIBUTES: usize = 10;

/// Number of bins of a feature: 0 to 40.
pub const SYNTHFS_BINS: u32 = 41;

/// The largest mean of a feature.
const LARGEST_MEAN: u32 = 40;

/// Makes a table of `parties` times `records` records, and returns it with the rows of each party.
///
/// For every party and feature, a mean is drawn from 1..=40 with probability proportional to mean^-skew. Values are
/// normal around the mean with variance 1, rounded to 0..=40. A larger `skew` makes the parties more similar.
///
/// # Errors
/// [`Error::TooFewRecords`] for zero parties or records.
pub fn synthfs(
    parties: usize,
    records: usize,
    skew: f64,
    rng: &mut dyn RngCore,
) -> Result<(Table, Vec<Vec<usize>>), Error> {
    if parties == 0 || records == 0 {
        return Err(Error::TooFewRecords { parties, records });
    }
    let mut columns = vec![Vec::new(); SYNTHFS_ATTRIBUTES];
    for _ in 0..parties {
        for column in &mut columns {
            let mean = f64::from(zipf(LARGEST_MEAN, skew, rng));
            for _ in 0..records {
                let value = (mean + normal(rng)).round();
                // Between 0 and 40 after the clamp.
                column.push(value.clamp(0.0, f64::from(SYNTHFS_BINS - 1)) as u32);
            }
        }
    }
    let table = Table::new(schema()?, columns)?;
    let rows = |party: usize| (party * records..(party + 1) * records).collect();
    Ok((table, (0..parties).map(rows).collect()))
}

fn schema() -> Result<Schema, Error> {
    let categories: Vec<String> = (0..SYNTHFS_BINS).map(|bin| format!("\"{bin}\"")).collect();
    let categories = categories.join(", ");
    let column = |feature: usize| {
        format!(r#"{{"name": "x{feature}", "kind": "categorical", "categories": [{categories}]}}"#)
    };
    let columns: Vec<String> = (0..SYNTHFS_ATTRIBUTES).map(column).collect();
    let json = format!(
        r#"{{"name": "synthfs", "columns": [{}]}}"#,
        columns.join(", ")
    );
    Schema::from_json("synthfs", json.as_bytes())
        .map_err(|_| Error::OutOfTurn("the built-in schema is invalid"))
}
