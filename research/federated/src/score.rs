//! Scores of candidates at one client. They are integers, so that the exponential mechanism can be sampled exactly.
//!
//! The size of the client's table is private. Marginals of the model are therefore scaled to the client's released
//! number of records, which is a constant, and rounded. One record then moves a distance by at most 1.

use fhaim_domain::{Clique, Table};
use fhaim_synth::{Candidate, MEAN_ABS};

use crate::setting::Penalty;
use crate::{Error, Method};

/// Factor on scores minus distances of 1-ways, so that means over one, two or three attributes are integers.
const PROXY_SCALE: i64 = 6;

/// The inputs of a client's scores.
pub(crate) struct Scoring<'a> {
    pub method: Method,
    pub table: &'a Table,
    /// The number of records that the party released, at least 1.
    pub records: f64,
    /// The model's number of records.
    pub total: f64,
    /// Standard deviation of the measurements' noise.
    pub sigma: f64,
    /// The model's 1-ways, by attribute.
    pub one_ways: &'a [Vec<f64>],
}

/// Returns the most by which one record can move a score, for candidates of weight at most `heaviest`.
pub(crate) fn sensitivity(method: Method, heaviest: u64) -> u64 {
    let step = match method.penalty() {
        Penalty::None => 1,
        // Two distances of the same marginal, which can both move by 1.
        Penalty::Pooled => 2,
        // A distance and a mean of such distances, each multiplied by 6.
        Penalty::OneWays => 2 * PROXY_SCALE as u64,
    };
    heaviest.saturating_mul(step)
}

impl Scoring<'_> {
    /// Returns the scores of candidates. `marginals` are theirs in the model; `pooled` are their shares in the pooled
    /// table, which only the oracle uses.
    pub(crate) fn scores<'c>(
        &self,
        candidates: impl Iterator<Item = &'c Candidate>,
        marginals: &[Vec<f64>],
        pooled: Option<&[Vec<f64>]>,
    ) -> Result<Vec<i64>, Error> {
        let skews = match self.method.penalty() {
            Penalty::OneWays => self.skews()?,
            _ => Vec::new(),
        };
        let score = |(position, candidate): (usize, &Candidate)| {
            let counts = self.table.counts(&candidate.clique)?;
            let marginal = marginals.get(position).map_or(&[][..], Vec::as_slice);
            let distance = distance(&counts, marginal, self.records / self.total);
            let penalty = (MEAN_ABS * self.sigma * candidate.cells as f64).round() as i64;
            let gain = match self.method.penalty() {
                Penalty::None => distance - penalty,
                Penalty::Pooled => {
                    let shares = pooled.and_then(|pooled| pooled.get(position));
                    let shares = shares.map_or(&[][..], Vec::as_slice);
                    distance - penalty - self::distance(&counts, shares, self.records)
                }
                Penalty::OneWays => {
                    let attributes = candidate.clique.attributes();
                    let skew: i64 = attributes.iter().map(|&a| skews[a]).sum();
                    // A clique has one, two or three attributes, so the division is exact.
                    PROXY_SCALE * (distance - penalty)
                        - PROXY_SCALE / attributes.len().max(1) as i64 * skew
                }
            };
            Ok(gain.saturating_mul(candidate.weight as i64))
        };
        candidates.enumerate().map(score).collect()
    }

    /// Returns the distance between each of the party's 1-ways and the model's.
    fn skews(&self) -> Result<Vec<i64>, Error> {
        let skew = |(attribute, marginal): (usize, &Vec<f64>)| {
            let counts = self.table.counts(&Clique::new([attribute]))?;
            Ok(distance(&counts, marginal, self.records / self.total))
        };
        self.one_ways.iter().enumerate().map(skew).collect()
    }
}

/// ||M - round(scale * marginal)||_1.
fn distance(counts: &[u64], marginal: &[f64], scale: f64) -> i64 {
    let cells = counts.iter().zip(marginal);
    let differences = cells.map(|(&count, mu)| count.abs_diff((mu * scale).round() as u64));
    let sum: u64 = differences.sum();
    i64::try_from(sum).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Schema;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    fn table(columns: Vec<Vec<u32>>) -> Table {
        let column = |i| {
            format!(r#"{{"name": "{i}", "kind": "categorical", "categories": ["x", "y", "z"]}}"#)
        };
        let columns_json: Vec<String> = (0..3).map(column).collect();
        let json = format!(
            r#"{{"name": "t", "columns": [{}]}}"#,
            columns_json.join(", ")
        );
        Table::new(Schema::from_json("t", json.as_bytes()).unwrap(), columns).unwrap()
    }

    fn all_candidates() -> Vec<Candidate> {
        let domain = fhaim_domain::Domain::new(vec![3; 3]);
        let subsets = (1..=3).flat_map(|size| domain.subsets(size));
        let candidate = |clique: Clique| Candidate {
            cells: domain.cells(&clique).unwrap(),
            weight: 1 + clique.len() as u64,
            clique,
        };
        subsets.map(candidate).collect()
    }

    /// Over many tables, models and records, adding a record moves no score by more than the sensitivity, and every
    /// method has a score that moves by exactly that much.
    #[test]
    fn score_sensitivities_are_tight_bounds() {
        let mut rng = StdRng::seed_from_u64(5);
        let candidates = all_candidates();
        let heaviest = 4;
        for method in [Method::Naive, Method::AugOracle, Method::AugPrivate] {
            let mut largest = 0;
            for _ in 0..60 {
                let records = rng.random_range(1..12);
                let column =
                    |rng: &mut StdRng| (0..records).map(|_| rng.random_range(0..3)).collect();
                let columns: Vec<Vec<u32>> = (0..3).map(|_| column(&mut rng)).collect();
                let marginals: Vec<Vec<f64>> = candidates
                    .iter()
                    .map(|c| (0..c.cells).map(|_| rng.random_range(0.0..6.0)).collect())
                    .collect();
                let pooled: Vec<Vec<f64>> = candidates
                    .iter()
                    .map(|c| (0..c.cells).map(|_| rng.random_range(0.0..0.4)).collect())
                    .collect();
                let one_ways = marginals[..3].to_vec();
                let scores = |table: &Table| {
                    let scoring = Scoring {
                        method,
                        table,
                        records: 9.0,
                        total: 20.0,
                        sigma: 2.5,
                        one_ways: &one_ways,
                    };
                    let candidates = candidates.iter();
                    scoring
                        .scores(candidates, &marginals, Some(&pooled))
                        .unwrap()
                };
                let before = scores(&table(columns.clone()));
                for record in 0..27u32 {
                    let added = columns.iter().enumerate().map(|(a, codes)| {
                        let code = record / 3u32.pow(a as u32) % 3;
                        codes.iter().copied().chain([code]).collect()
                    });
                    let after = scores(&table(added.collect()));
                    let moves = before.iter().zip(&after).map(|(b, a)| b.abs_diff(*a));
                    largest = largest.max(moves.max().unwrap());
                }
            }
            assert_eq!(largest, sensitivity(method, heaviest), "{method}");
        }
    }

    /// One record is in exactly one cell of a marginal, for any number of attributes.
    #[test]
    fn marginals_of_three_attributes_have_sensitivity_one() {
        let before = table(vec![vec![0, 1, 2], vec![1, 1, 0], vec![2, 0, 0]]);
        for record in 0..27u32 {
            let columns = before.columns().iter().enumerate();
            let columns = columns.map(|(a, codes)| {
                let code = record / 3u32.pow(a as u32) % 3;
                codes.iter().copied().chain([code]).collect()
            });
            let after = table(columns.collect());
            for candidate in all_candidates() {
                let one = before.counts(&candidate.clique).unwrap();
                let two = after.counts(&candidate.clique).unwrap();
                let moved: u64 = one
                    .iter()
                    .zip(&two)
                    .map(|(a, b)| a.abs_diff(*b).pow(2))
                    .sum();
                assert_eq!(moved, 1);
            }
        }
    }
}
