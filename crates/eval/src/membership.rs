//! Runs membership attacks on a synthetic table and its model, for a report.

use fhaim_domain::Table;
use serde::Serialize;

use crate::{Attack, Error, MonteCarlo, ScoreAttacks, monte_carlo, nearby, score_attacks};

/// Maximum number of synthetic records that the attacks use.
const MAX_DRAWN: usize = 10_000;

/// Number of members in each try of the Monte Carlo attack, and of other records.
const RECORDS: usize = 100;
/// Number of tries of the Monte Carlo attack.
const TRIES: usize = 40;

/// Maximum number of members that are ranked by their nearest synthetic record, and of other records.
const RANKED: usize = 500;

/// An attack must exceed chance by more than this difference to count as successful.
const LEAST: f64 = 0.05;
/// An attack must exceed chance by more than this number of standard errors to count as successful.
const ERRORS: f64 = 3.0;

/// Seed for the choice of the attacked records. It is fixed, so that a report can be reproduced.
const SEED: u64 = 0;

/// Results of membership attacks, and their bound under differential privacy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Membership {
    /// Number of records that the synthetic table was made from.
    pub members: usize,
    /// Number of records of the same population that it was not made from.
    pub others: usize,
    /// Attacks with the likelihood of a record; absent without a model that has one.
    #[serde(flatten)]
    pub scores: Option<ScoreAttacks>,
    /// Attack with the nearest synthetic record: the share of pairs of a member and another record in the right order.
    pub nearby: Attack,
    /// Attack in tries of a hundred members and others. With few records, all tries are alike and have the same outcome
    /// by chance.
    pub monte_carlo: Attack,
    /// Number of synthetic records used.
    pub drawn: usize,
    /// Largest expected result of the likelihood attack on a model with the given epsilon and delta.
    pub bound: Option<f64>,
    /// Whether an attack finds more than chance explains.
    pub found: bool,
}

/// Attacks a synthetic table, and its model if `scores` has the log densities of members and others.
///
/// The tables are the members, the others and the synthetic table. `budget` is the model's epsilon and delta, if known.
///
/// # Errors
/// [`Error::Attack`] if the numbers of scores and records differ, or an attack lacks its inputs.
pub fn membership(
    [members, others, synthetic]: [&Table; 3],
    scores: Option<(&[f64], &[f64])>,
    budget: Option<(f64, f64)>,
) -> Result<Membership, Error> {
    let scores = scores.map(|(of_members, of_others)| score_attacks(of_members, of_others, SEED));
    let scores = scores.transpose()?;
    if scores.is_some_and(|s| (s.members, s.others) != (members.records(), others.records())) {
        return Err(Error::Attack("it needs exactly one score for each record"));
    }
    let drawn = first(synthetic, MAX_DRAWN);
    let options = MonteCarlo {
        records: RECORDS.min(members.records()).min(others.records()),
        tries: TRIES,
        seed: SEED,
    };
    let by_records = monte_carlo(members.columns(), others.columns(), &drawn, &options)?;
    let (members_of, others_of) = (members.columns(), others.columns());
    let (ranked, [ranked_members, ranked_others]) =
        nearby(members_of, others_of, &drawn, (RANKED, SEED))?;
    let luck = rank_error(ranked_members, ranked_others);
    let beyond =
        |attack: Attack, error: f64| attack.found - attack.chance > LEAST.max(ERRORS * error);
    Ok(Membership {
        members: members.records(),
        others: others.records(),
        scores,
        nearby: ranked,
        monte_carlo: by_records,
        drawn: drawn.first().map_or(0, Vec::len),
        bound: budget.map(|(epsilon, delta)| bound(epsilon, delta)),
        found: beyond(ranked, luck)
            || scores.is_some_and(|s| beyond(s.likelihood, rank_error(s.members, s.others))),
    })
}

/// Returns the columns of the first records.
fn first(table: &Table, most: usize) -> Vec<Vec<u32>> {
    let records = table.records().min(most);
    let columns = table.columns().iter();
    columns.map(|codes| codes[..records].to_vec()).collect()
}

/// Returns the standard error of the share of pairs in the right order (Mann and Whitney 1947), for uninformative
/// scores.
fn rank_error(members: usize, others: usize) -> f64 {
    let (members, others) = (members as f64, others as f64);
    ((members + others + 1.0) / (12.0 * members * others)).sqrt()
}

/// Returns the largest possible probability that a member scores above another record of the same population.
///
/// Replacing the member by the other record changes two records (one removed, one added) and exchanges the roles of the
/// two scores. With p the probability, p <= e^(2 epsilon) (1 - p) + (1 + e^epsilon) delta.
fn bound(epsilon: f64, delta: f64) -> f64 {
    let twice = (2.0 * epsilon).exp();
    if twice.is_infinite() {
        return 1.0;
    }
    ((twice + (1.0 + epsilon.exp()) * delta) / (1.0 + twice)).min(1.0)
}

impl Membership {
    /// Describes the results in sentences.
    pub(crate) fn sentence(&self) -> String {
        let mut attacks = Vec::new();
        if let Some(scores) = &self.scores {
            let Attack { found, chance } = scores.likelihood;
            attacks.push(format!(
                "{found:.2} with the model's likelihood (guessing gives {chance:.2})"
            ));
        }
        let Attack { found, chance } = self.nearby;
        attacks.push(format!(
            "{found:.2} with the nearest record (guessing gives {chance:.2})"
        ));
        let attacks = attacks.join(", ");
        let bound = self.scores.and(self.bound);
        let bound = bound.map_or_else(String::new, |bound| {
            format!(" With likelihoods, differential privacy allows at most {bound:.2}.")
        });
        if self.found {
            format!(
                "Membership attacks recognise records that the table was made from: {attacks}. Anyone who \
                 has the table can tell who was in the data.{bound}"
            )
        } else {
            format!("Membership attacks do no better than guessing: {attacks}.{bound}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Schema;
    use rand::{Rng, SeedableRng, rngs::StdRng};
    use std::sync::Arc;

    /// The bound holds for likelihoods, so the sentence must not mention it if no model was attacked.
    #[test]
    fn bound_is_stated_only_with_likelihoods() {
        let guess = Attack {
            found: 0.5,
            chance: 0.5,
        };
        let scores = ScoreAttacks {
            white_box: guess,
            total_variation: guess,
            likelihood: guess,
            members: 9,
            others: 9,
        };
        let mut told = Membership {
            members: 9,
            others: 9,
            scores: Some(scores),
            nearby: guess,
            monte_carlo: guess,
            drawn: 9,
            bound: Some(0.88),
            found: false,
        };
        let words = "With likelihoods, differential privacy allows at most 0.88.";
        assert!(told.sentence().ends_with(words), "{}", told.sentence());
        told.scores = None;
        assert!(!told.sentence().contains("0.88"), "{}", told.sentence());
    }

    /// With small tables, all tries of the Monte Carlo attack use the same records. That attack by itself would report
    /// a leak for every second synthetic table that is independent of the members.
    #[test]
    fn independent_small_tables_are_not_reported_as_leaking() {
        let column =
            |n| format!(r#"{{"name":"c{n}","kind":"categorical","categories":["a","b","c","d"]}}"#);
        let columns: Vec<String> = (0..6).map(column).collect();
        let json = format!(r#"{{"name":"t","columns":[{}]}}"#, columns.join(","));
        let schema = Arc::new(Schema::from_json("t", json.as_bytes()).unwrap());
        let mut found = 0;
        for seed in 0..60 {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut table = |records: usize| {
                let mut column = || (0..records).map(|_| rng.random_range(0..4)).collect();
                let columns: Vec<Vec<u32>> = (0..6).map(|_| column()).collect();
                Table::new(schema.clone(), columns).unwrap()
            };
            let tables = [table(100), table(100), table(100)];
            let [members, others, synthetic] = &tables;
            let told = membership([members, others, synthetic], None, None).unwrap();
            found += usize::from(told.found);
        }
        assert!(found <= 2, "{found} of 60");
    }

    #[test]
    fn bound_is_half_for_epsilon_zero_and_one_without_privacy() {
        assert_eq!(bound(0.0, 0.0), 0.5);
        assert_eq!(bound(1e6, 1e-9), 1.0);
        assert_eq!(bound(1.0, 1.0), 1.0);
        let one = bound(1.0, 0.0);
        assert!((one - 1f64.exp().powi(2) / (1.0 + 1f64.exp().powi(2))).abs() < 1e-12);
        // This is p of randomised response about which of two records is in the table.
        assert!(one > 1f64.exp() / (1.0 + 1f64.exp()));
    }

    #[test]
    fn rank_error_matches_mann_and_whitney() {
        // Mann and Whitney: the variance of U is m n (m + n + 1) / 12; the share is U / (m n).
        let (m, n) = (20.0f64, 30.0f64);
        let share = (m * n * (m + n + 1.0) / 12.0).sqrt() / (m * n);
        assert!((rank_error(20, 30) - share).abs() < 1e-12);
    }
}
