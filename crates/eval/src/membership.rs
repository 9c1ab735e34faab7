//! What membership attacks find of a synthetic table and the model behind it, for a report.

use fhaim_domain::Table;
use serde::Serialize;

use crate::{Attack, Error, MonteCarlo, ScoreAttacks, monte_carlo, nearby, score_attacks};

/// So many synthetic records serve the attack that goes by them.
const MAX_DRAWN: usize = 10_000;

/// Members, and others, of each of its tries, and the tries.
const RECORDS: usize = 100;
const TRIES: usize = 40;

/// Members, and others, that are ranked by the synthetic record nearest to them.
const RANKED: usize = 500;

/// An attack that finds less than this beyond chance is not said to find anything,
const LEAST: f64 = 0.05;
/// nor one within so many standard errors of chance.
const ERRORS: f64 = 3.0;

/// Decides which records are attacked: public, so that a report can be made again.
const SEED: u64 = 0;

/// What was found, and what could be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Membership {
    /// Records that the synthetic table was made from.
    pub members: usize,
    /// Records of the same population that it was not made from.
    pub others: usize,
    /// By how likely the model finds a record; absent without a model that can tell.
    #[serde(flatten)]
    pub scores: Option<ScoreAttacks>,
    /// By the nearest synthetic record: the share of pairs of a member and another that it puts in order.
    pub nearby: Attack,
    /// The same in tries of a hundred records of each: of few records all tries are alike, and luck
    /// decides all of them at once.
    pub monte_carlo: Attack,
    /// Synthetic records that it goes by.
    pub drawn: usize,
    /// The most that the likelihood attack may find, in expectation, of a model of the epsilon and
    /// delta that were named.
    pub bound: Option<f64>,
    /// Whether any attack finds more than luck explains.
    pub found: bool,
}

/// Attacks: by the synthetic records, and where `scores` has the log densities of members and of
/// others, by these. `budget` is the model's epsilon and delta, where they are known.
///
/// # Errors
/// [`Error::Attack`] for scores that are not those of the records; [`Error::Schema`].
pub fn membership(
    [members, others, synthetic]: [&Table; 3],
    scores: Option<(&[f64], &[f64])>,
    budget: Option<(f64, f64)>,
) -> Result<Membership, Error> {
    let scores = scores.map(|(of_members, of_others)| score_attacks(of_members, of_others, SEED));
    let scores = scores.transpose()?;
    if scores.is_some_and(|s| (s.members, s.others) != (members.records(), others.records())) {
        return Err(Error::Attack("every record needs a score"));
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

/// Columns of the first records.
fn first(table: &Table, most: usize) -> Vec<Vec<u32>> {
    let records = table.records().min(most);
    let columns = table.columns().iter();
    columns.map(|codes| codes[..records].to_vec()).collect()
}

/// Standard error of the share of pairs that are in order (Mann and Whitney 1947), of scores that
/// say nothing.
fn rank_error(members: usize, others: usize) -> f64 {
    let (members, others) = (members as f64, others as f64);
    ((members + others + 1.0) / (12.0 * members * others)).sqrt()
}

/// The most that the chance of a member's being scored above another record can be, where both are
/// drawn from one population. A table with the other record in the member's place differs in two
/// records, one that goes and one that comes, and gives the same scores the other way round: with p the
/// chance, p <= e^(2 epsilon) (1 - p) + (1 + e^epsilon) delta.
fn bound(epsilon: f64, delta: f64) -> f64 {
    let twice = (2.0 * epsilon).exp();
    if twice.is_infinite() {
        return 1.0;
    }
    ((twice + (1.0 + epsilon.exp()) * delta) / (1.0 + twice)).min(1.0)
}

impl Membership {
    /// What was found, in a sentence.
    pub(crate) fn sentence(&self) -> String {
        let mut attacks = Vec::new();
        if let Some(scores) = &self.scores {
            let Attack { found, chance } = scores.likelihood;
            attacks.push(format!(
                "{found:.2} by the model's likelihood where guessing gives {chance:.2}"
            ));
        }
        let Attack { found, chance } = self.nearby;
        attacks.push(format!(
            "{found:.2} by the nearest record where guessing gives {chance:.2}"
        ));
        let attacks = attacks.join(", ");
        let bound = self.scores.and(self.bound);
        let bound = bound.map_or_else(String::new, |bound| {
            format!(" Of likelihoods, differential privacy allows {bound:.2} at most.")
        });
        if self.found {
            format!(
                "Membership attacks tell records that the table was made from: {attacks}. Whoever has it \
                 can tell who was in the data.{bound}"
            )
        } else {
            format!("Membership attacks find no more than luck does: {attacks}.{bound}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Schema;
    use rand::{Rng, SeedableRng, rngs::StdRng};
    use std::sync::Arc;

    /// What is allowed is of likelihoods: it is not said where no model was attacked.
    #[test]
    fn the_bound_is_said_of_likelihoods_alone() {
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
        let words = "Of likelihoods, differential privacy allows 0.88 at most.";
        assert!(told.sentence().ends_with(words), "{}", told.sentence());
        told.scores = None;
        assert!(!told.sentence().contains("0.88"), "{}", told.sentence());
    }

    /// Small tables whose synthetic ones were drawn without a look at them were said to leak, every
    /// second one: all tries took the same records.
    #[test]
    fn harmless_small_tables_are_not_said_to_leak() {
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
    fn the_bound_is_a_half_without_budget_and_one_without_privacy() {
        assert_eq!(bound(0.0, 0.0), 0.5);
        assert_eq!(bound(1e6, 1e-9), 1.0);
        assert_eq!(bound(1.0, 1.0), 1.0);
        let one = bound(1.0, 0.0);
        assert!((one - 1f64.exp().powi(2) / (1.0 + 1f64.exp().powi(2))).abs() < 1e-12);
        // p of randomised response on which of two records is in: at the bound of the two steps.
        assert!(one > 1f64.exp() / (1.0 + 1f64.exp()));
    }

    #[test]
    fn errors_of_ranks_are_those_of_the_textbook() {
        // Mann and Whitney: the variance of U is m n (m + n + 1) / 12; the share is U / (m n).
        let (m, n) = (20.0f64, 30.0f64);
        let share = (m * n * (m + n + 1.0) / 12.0).sqrt() / (m * n);
        assert!((rank_error(20, 30) - share).abs() < 1e-12);
    }
}
