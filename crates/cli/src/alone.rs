//! Compares the result that each of several holders would get by itself with their common result.

use fhaim_domain::{Clique, Table};
use fhaim_release::{Holders, MechanismJob};
use fhaim_synth::MechanismName;
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

use crate::{error::Error, holders::parts};

/// Result of one holder by itself: the same mechanism on its part, with the same budget and its own noise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alone {
    /// Number of the holder, from 1.
    pub holder: usize,
    /// Number of records in its part.
    pub records: usize,
    /// Number of pairs of columns in its part.
    pub pairs: usize,
    /// Mean L1 error of these pairs' shares, compared with the whole table; absent for a single column.
    pub error: Option<f64>,
    /// Mean L1 error of the same pairs in the common result of all holders.
    pub together: Option<f64>,
}

/// Runs the mechanism in the clear for each holder by itself, and compares the results with the whole table.
///
/// The result is not private, because this reads the records. It is meant for their holders, or for public tables.
pub fn alone(
    mechanism: MechanismName,
    job: &MechanismJob,
    table: &Table,
    synthetic: &Table,
    rng: &mut ChaCha20Rng,
) -> Result<Vec<Alone>, Error> {
    let parts = parts(table, &job.holders)?;
    let owners = job.holders.owners();
    let mut all = Vec::with_capacity(parts.len());
    for (number, part) in parts.iter().enumerate() {
        let own: Vec<usize> = (0..table.domain().len())
            .filter(|&a| owners.is_none_or(|owners| owners[a] as usize == number))
            .collect();
        let job = MechanismJob {
            model_bytes: job.model_bytes,
            leak: job.leak,
            holders: Holders::one(),
            ..MechanismJob::new(part.domain().clone(), job.rho, job.record_bound)
        };
        let outcome = mechanism.run_in_the_clear(part, &job, rng, &mut |_| ())?;
        let columns = outcome.model.sample(table.records(), rng);
        let drawn = Table::new(part.shared_schema(), columns);
        let drawn = drawn.map_err(fhaim_domain::Error::from)?;
        let places: Vec<usize> = (0..own.len()).collect();
        all.push(Alone {
            holder: number + 1,
            records: part.records(),
            pairs: own.len() * own.len().saturating_sub(1) / 2,
            error: pair_error((table, &own), (&drawn, &places))?,
            together: pair_error((table, &own), (synthetic, &own))?,
        });
    }
    Ok(all)
}

/// Returns the mean L1 distance of two tables' shares over all pairs of columns, or `None` without a pair.
fn pair_error(
    (real, own): (&Table, &[usize]),
    (other, places): (&Table, &[usize]),
) -> Result<Option<f64>, Error> {
    let shares = |table: &Table, a, b| -> Result<Vec<f64>, Error> {
        let counts = table.counts(&Clique::new([a, b]));
        let counts = counts.map_err(fhaim_domain::Error::from)?;
        let records = table.records() as f64;
        Ok(counts
            .into_iter()
            .map(|count| count as f64 / records)
            .collect())
    };
    let (mut sum, mut pairs) = (0.0, 0);
    for first in 0..own.len() {
        for second in first + 1..own.len() {
            let real = shares(real, own[first], own[second])?;
            let other = shares(other, places[first], places[second])?;
            sum += real
                .iter()
                .zip(&other)
                .map(|(x, y)| (x - y).abs())
                .sum::<f64>();
            pairs += 1;
        }
    }
    Ok((pairs > 0).then(|| sum / f64::from(pairs)))
}

impl Alone {
    /// Describes the holder's part and both errors.
    pub fn words(&self) -> String {
        let has = format!("{} records, {} pairs of columns", self.records, self.pairs);
        match (self.error, self.together) {
            (Some(error), Some(together)) => {
                format!("{has}: error {error:.3} on its own, {together:.3} together")
            }
            _ => format!("{has}: nothing to compare"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Schema;

    #[test]
    fn pair_error_compares_shares_of_pairs() {
        let column =
            |name| format!(r#"{{"name":"{name}","kind":"categorical","categories":["x","y"]}}"#);
        let columns = ["a", "b"].map(column).join(",");
        let json = format!(r#"{{"name":"t","columns":[{columns}]}}"#);
        let schema = Schema::from_json("t.json", json.as_bytes()).unwrap();
        let table = |codes: [Vec<u32>; 2]| Table::new(schema.clone(), codes.to_vec()).unwrap();
        let one = table([vec![0, 0, 1, 1], vec![0, 0, 1, 1]]);
        let two = table([vec![0, 1], vec![1, 0]]);
        let error = |x, y| pair_error((x, &[0, 1]), (y, &[0, 1])).unwrap();
        assert_eq!(error(&one, &one), Some(0.0));
        assert_eq!(error(&one, &two), Some(2.0));
        assert_eq!(pair_error((&one, &[0]), (&two, &[0])).unwrap(), None);
    }
}
