//! Membership attacks: given a model or records drawn from it, which records was it made from?
//!
//! *White box*, *total variation* and *likelihood* use a score for each record, which is larger for records that the
//! model fits better. For a model of marginals it is the log density, for a GAN the discriminator's score. *Monte
//! Carlo* (Hilprecht, Härterich and Bernau 2019) needs no score: it counts the drawn records near a record. Every
//! result comes with the value that guessing would give.

use rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};
use serde::Serialize;

use crate::{Error, prediction::auc};

/// Number of bins of the histograms that total variation compares.
pub const TVD_BINS: usize = 50;

/// Result of an attack, with the result of guessing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Attack {
    /// Result of the attack.
    pub found: f64,
    /// Result of guessing, without any leak.
    pub chance: f64,
}

/// Results of the attacks that use scores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScoreAttacks {
    /// Share of members among the records with the best scores, as many as there are members (Hayes et al. 2019).
    /// Chance: their share among all records.
    pub white_box: Attack,
    /// Half the L1 distance between the score histograms of members and other records. Chance: its mean over random
    /// choices of the members.
    pub total_variation: Attack,
    /// Probability that a member scores above another record, with ties counted half (Yeom et al. 2018 use the mean).
    /// Chance: one half.
    pub likelihood: Attack,
    /// Number of members.
    pub members: usize,
    /// Number of other records.
    pub others: usize,
}

/// Number of random divisions that estimate the chance of total variation.
const DIVISIONS: usize = 20;

/// Runs the attacks that use scores, given the scores of members and of other records.
///
/// A score is larger if the model fits the record better.
///
/// # Errors
/// [`Error::Attack`] if there are no members or no others, or if a score is NaN.
pub fn score_attacks(members: &[f64], others: &[f64], seed: u64) -> Result<ScoreAttacks, Error> {
    if members.is_empty() || others.is_empty() {
        return Err(Error::Attack("it needs members and other records"));
    }
    let all: Vec<f64> = members.iter().chain(others).copied().collect();
    if all.iter().any(|score| score.is_nan()) {
        return Err(Error::Attack("a score is not a number"));
    }
    let is_member: Vec<bool> = (0..all.len()).map(|n| n < members.len()).collect();
    let share = members.len() as f64 / all.len() as f64;
    let likelihood = auc(&is_member, &all);
    let bins = quantile_bins(&all);
    Ok(ScoreAttacks {
        white_box: Attack {
            found: top_share(members, others),
            chance: share,
        },
        total_variation: Attack {
            found: total_variation(&bins, &is_member),
            chance: chance_variation(&bins, &is_member, seed),
        },
        likelihood: Attack {
            // This has a value, because there are members and others.
            found: likelihood.unwrap_or(0.5),
            chance: 0.5,
        },
        members: members.len(),
        others: others.len(),
    })
}

/// Returns the share of members among the records with the best scores, as many as there are members.
///
/// Records that tie with the last one count in proportion to the members among them.
fn top_share(members: &[f64], others: &[f64]) -> f64 {
    let mut all: Vec<f64> = members.iter().chain(others).copied().collect();
    all.sort_by(|x, y| y.total_cmp(x));
    let last = all[members.len() - 1];
    let above = |scores: &[f64]| scores.iter().filter(|&&s| s > last).count() as f64;
    let level = |scores: &[f64]| scores.iter().filter(|&&s| s == last).count() as f64;
    let taken = above(members) + above(others);
    let left = members.len() as f64 - taken;
    let tied = level(members) + level(others);
    (above(members) + left * level(members) / tied) / members.len() as f64
}

/// Returns each score's bin. Bins hold equal shares of all scores.
///
/// Histograms with bins of equal width are usual for scores from 0 to 1, but would put unbounded scores into one bin.
fn quantile_bins(scores: &[f64]) -> Vec<usize> {
    let mut sorted = scores.to_vec();
    sorted.sort_by(f64::total_cmp);
    // Equal scores must have the same bin.
    let bin = |score: &f64| {
        let below = sorted.partition_point(|s| s < score);
        below * TVD_BINS / sorted.len()
    };
    scores.iter().map(bin).collect()
}

fn total_variation(bins: &[usize], is_member: &[bool]) -> f64 {
    let mut counts = [[0usize; TVD_BINS]; 2];
    for (&bin, &member) in bins.iter().zip(is_member) {
        counts[usize::from(member)][bin] += 1;
    }
    let sums = counts.map(|of| of.iter().sum::<usize>().max(1) as f64);
    let moved = |bin| counts[1][bin] as f64 / sums[1] - counts[0][bin] as f64 / sums[0];
    (0..TVD_BINS).map(|bin| moved(bin).abs()).sum::<f64>() / 2.0
}

fn chance_variation(bins: &[usize], is_member: &[bool], seed: u64) -> f64 {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut shuffled = is_member.to_vec();
    let mut sum = 0.0;
    for _ in 0..DIVISIONS {
        shuffled.shuffle(&mut rng);
        sum += total_variation(bins, &shuffled);
    }
    sum / DIVISIONS as f64
}

/// Options of the Monte Carlo attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MonteCarlo {
    /// M, the number of members in a try, and of other records.
    pub records: usize,
    /// Number of tries, at least one.
    pub tries: usize,
    /// Seed for the choice of records.
    pub seed: u64,
}

impl Default for MonteCarlo {
    fn default() -> Self {
        Self {
            records: 100,
            tries: 10,
            seed: 0,
        }
    }
}

/// Runs the Monte Carlo attack and returns the share of successful tries.
///
/// A try takes M members and M other records, and ranks them by the number of drawn records near them. It succeeds if
/// more than half of the M top records are members. Exactly half counts as half a success, so that guessing succeeds in
/// every second try. The distance of two records is the number of attributes in which they differ. A drawn record is
/// near if it is at most as far away as the nearest drawn record of the median record.
///
/// Tables are given as columns of codes, one for each attribute.
///
/// # Errors
/// [`Error::Attack`] if there are fewer than M members or others, no drawn records, or tables with different
/// attributes.
pub fn monte_carlo(
    members: &[Vec<u32>],
    others: &[Vec<u32>],
    drawn: &[Vec<u32>],
    options: &MonteCarlo,
) -> Result<Attack, Error> {
    if [others, drawn].iter().any(|c| c.len() != members.len()) {
        return Err(Error::Attack("the tables have different attributes"));
    }
    let [members, others, drawn] = [members, others, drawn].map(rows);
    try_records(&members, &others, &drawn, options, |x, y| unlike(x, y))
}

/// Runs the attack by the nearest drawn record.
///
/// The result is the share of pairs of a member and another record in which the member's nearest drawn record is
/// nearer, with ties counted half. It uses at most `most` members and `most` others, and also returns how many it used.
/// Tables and distances are as in [`monte_carlo`]. With few records, the tries of that attack use the same records
/// again and again and all have the same outcome; this attack does not have that problem.
///
/// # Errors
/// [`Error::Attack`] if there are no members, others or drawn records, or if tables have different attributes.
pub fn nearby(
    members: &[Vec<u32>],
    others: &[Vec<u32>],
    drawn: &[Vec<u32>],
    (most, seed): (usize, u64),
) -> Result<(Attack, [usize; 2]), Error> {
    if [others, drawn].iter().any(|c| c.len() != members.len()) {
        return Err(Error::Attack("the tables have different attributes"));
    }
    let [members, others, drawn] = [members, others, drawn].map(rows);
    let mut rng = StdRng::seed_from_u64(seed);
    let [members, others] = [&members, &others].map(|of| pick(of, most.min(of.len()), &mut rng));
    let taken = [members.len(), others.len()];
    if drawn.is_empty() || taken.contains(&0) {
        return Err(Error::Attack(
            "it needs members, other records and drawn records",
        ));
    }
    let chosen = members.into_iter().chain(others);
    let near = |record: &Vec<u32>| {
        let apart = drawn.iter().map(|other| unlike(record, other));
        -f64::from(apart.fold(f32::INFINITY, f32::min))
    };
    let near: Vec<f64> = chosen.map(near).collect();
    let is_member: Vec<bool> = (0..near.len()).map(|n| n < taken[0]).collect();
    let found = auc(&is_member, &near).unwrap_or(0.5);
    Ok((Attack { found, chance: 0.5 }, taken))
}

/// Returns the number of attributes in which two records differ.
fn unlike(x: &[u32], y: &[u32]) -> f32 {
    let both = x.iter().zip(y);
    both.filter(|(x, y)| x != y).count() as f32
}

/// Vectors of the same width, stored one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Vectors<'a> {
    /// Number of values in a vector.
    pub width: usize,
    /// The values of all vectors.
    pub values: &'a [f32],
}

/// Runs the attack of [`monte_carlo`] on vectors, with their Euclidean distance.
///
/// # Errors
/// [`Error::Attack`] if there are fewer than M members or others, no drawn vectors, or vectors of different widths.
pub fn monte_carlo_vectors(
    members: Vectors<'_>,
    others: Vectors<'_>,
    drawn: Vectors<'_>,
    options: &MonteCarlo,
) -> Result<Attack, Error> {
    let width = members.width;
    let whole =
        |v: &Vectors<'_>| v.width == width && width > 0 && v.values.len().is_multiple_of(width);
    if ![members, others, drawn].iter().all(whole) {
        return Err(Error::Attack("the vectors have different widths"));
    }
    let [members, others, drawn] =
        [members, others, drawn].map(|v| v.values.chunks_exact(width).collect::<Vec<_>>());
    // The squared distance has the same order as the distance.
    let apart = |x: &&[f32], y: &&[f32]| {
        let both = x.iter().zip(*y);
        both.map(|(x, y)| (x - y) * (x - y)).sum::<f32>()
    };
    try_records(&members, &others, &drawn, options, apart)
}

/// Runs the tries of the Monte Carlo attack on any records with a distance.
fn try_records<T>(
    members: &[T],
    others: &[T],
    drawn: &[T],
    options: &MonteCarlo,
    distance: impl Fn(&T, &T) -> f32,
) -> Result<Attack, Error> {
    let m = options.records;
    if m == 0 || members.len() < m || others.len() < m || drawn.is_empty() || options.tries == 0 {
        return Err(Error::Attack(
            "it needs at least one try, enough members and other records for a try, and drawn records",
        ));
    }
    let mut rng = StdRng::seed_from_u64(options.seed);
    let mut wins = 0.0;
    for _ in 0..options.tries {
        let chosen = pick(members, m, &mut rng).into_iter();
        let chosen: Vec<&T> = chosen.chain(pick(others, m, &mut rng)).collect();
        let near = nearness(&chosen, drawn, &distance);
        // Break ties at random, because the list starts with the members.
        let mut order: Vec<usize> = (0..chosen.len()).collect();
        order.shuffle(&mut rng);
        order.sort_by(|&x, &y| near[y].cmp(&near[x]));
        let hits = order[..m].iter().filter(|&&n| n < m).count();
        wins += match (2 * hits).cmp(&m) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        };
    }
    Ok(Attack {
        found: wins / options.tries as f64,
        chance: 0.5,
    })
}

fn rows(columns: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let records = columns.first().map_or(0, Vec::len);
    (0..records)
        .map(|row| columns.iter().map(|column| column[row]).collect())
        .collect()
}

fn pick<'a, T>(records: &'a [T], m: usize, rng: &mut impl Rng) -> Vec<&'a T> {
    let picked = rand::seq::index::sample(rng, records.len(), m);
    picked.into_iter().map(|n| &records[n]).collect()
}

/// Returns for each record the number of drawn records within the radius: the distance of the median record to its
/// nearest drawn record.
fn nearness<T>(chosen: &[&T], drawn: &[T], distance: impl Fn(&T, &T) -> f32) -> Vec<usize> {
    let distances =
        |record: &&T| -> Vec<f32> { drawn.iter().map(|d| distance(record, d)).collect() };
    let distances: Vec<Vec<f32>> = chosen.iter().map(distances).collect();
    let nearest = |of: &Vec<f32>| of.iter().copied().fold(f32::INFINITY, f32::min);
    let mut radii: Vec<f32> = distances.iter().map(nearest).collect();
    radii.sort_by(f32::total_cmp);
    let radius = radii.get(radii.len() / 2).copied().unwrap_or(0.0);
    let within = |of: &Vec<f32>| of.iter().filter(|&&d| d <= radius).count();
    distances.iter().map(within).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's own values")]
mod tests {
    use super::*;

    fn normals(n: usize, mean: f64, rng: &mut StdRng) -> Vec<f64> {
        let uniform = |rng: &mut StdRng| (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        (0..n).map(|_| mean + uniform(rng)).collect()
    }

    #[test]
    fn score_attacks_find_members_only_if_scores_leak() {
        let mut rng = StdRng::seed_from_u64(1);
        let (members, others) = (normals(500, 0.0, &mut rng), normals(4500, 0.0, &mut rng));
        let none = score_attacks(&members, &others, 0).unwrap();
        assert_eq!(none.white_box.chance, 0.1);
        assert!((none.white_box.found - 0.1).abs() < 0.04, "{none:?}");
        assert!((none.likelihood.found - 0.5).abs() < 0.04, "{none:?}");
        let excess = none.total_variation.found - none.total_variation.chance;
        assert!(excess.abs() < 0.04, "{none:?}");
        // Positive control: members' scores are two standard deviations higher.
        let leaked = score_attacks(&normals(500, 2.0, &mut rng), &others, 0).unwrap();
        assert!(leaked.white_box.found > 0.5, "{leaked:?}");
        assert!(leaked.likelihood.found > 0.9, "{leaked:?}");
        assert!(leaked.total_variation.found > 0.6, "{leaked:?}");
        let all = score_attacks(&[1.0; 5], &[0.0; 45], 0).unwrap();
        assert_eq!((all.white_box.found, all.total_variation.found), (1.0, 1.0));
        assert_eq!(all.likelihood.found, 1.0);
        let level = score_attacks(&[1.0; 5], &[1.0; 45], 0).unwrap();
        assert!((level.white_box.found - 0.1).abs() < 1e-12);
        assert_eq!(
            (level.likelihood.found, level.total_variation.found),
            (0.5, 0.0)
        );
        // Records that are impossible under the model also have a score.
        let impossible = [f64::NEG_INFINITY, 0.0];
        assert!(score_attacks(&[0.0, 1.0], &impossible, 0).is_ok());
        assert!(matches!(
            score_attacks(&[], &[1.0], 0),
            Err(Error::Attack(..))
        ));
        assert!(matches!(
            score_attacks(&[f64::NAN], &[1.0], 0),
            Err(Error::Attack(..))
        ));
    }

    #[test]
    fn monte_carlo_finds_copies_but_nothing_in_independent_records() {
        let mut rng = StdRng::seed_from_u64(2);
        let mut table = |records: usize| -> Vec<Vec<u32>> {
            (0..8)
                .map(|_| (0..records).map(|_| rng.random_range(0..6)).collect())
                .collect()
        };
        let (members, others, fresh) = (table(400), table(400), table(2000));
        let options = MonteCarlo {
            tries: 40,
            ..MonteCarlo::default()
        };
        // Positive control: the drawn records are the members themselves.
        let copied = monte_carlo(&members, &others, &members, &options).unwrap();
        assert_eq!((copied.found, copied.chance), (1.0, 0.5));
        let independent = monte_carlo(&members, &others, &fresh, &options).unwrap();
        assert!((independent.found - 0.5).abs() < 0.35, "{independent:?}");
        let few = MonteCarlo {
            records: 500,
            ..options
        };
        assert!(matches!(
            monte_carlo(&members, &others, &members, &few),
            Err(Error::Attack(..))
        ));
        assert!(matches!(
            monte_carlo(&members, &others[1..], &members, &options),
            Err(Error::Attack(..))
        ));
    }

    #[test]
    fn monte_carlo_on_vectors_finds_vectors_near_members() {
        let mut rng = StdRng::seed_from_u64(3);
        let mut vectors = |records: usize| normals(6 * records, 0.0, &mut rng);
        let single = |values: Vec<f64>| values.into_iter().map(|x| x as f32).collect::<Vec<_>>();
        let (members, others) = (single(vectors(300)), single(vectors(300)));
        let fresh = single(vectors(3000));
        // Positive control: each member, slightly shifted.
        let near: Vec<f32> = members.iter().map(|x| x + 0.01).collect();
        let of = |values| Vectors { width: 6, values };
        let options = MonteCarlo {
            tries: 40,
            ..MonteCarlo::default()
        };
        let found =
            |drawn| monte_carlo_vectors(of(&members), of(&others), of(drawn), &options).unwrap();
        assert_eq!(found(&near).found, 1.0);
        assert!(
            (found(&fresh).found - 0.5).abs() < 0.35,
            "{:?}",
            found(&fresh)
        );
        let wrong = Vectors {
            width: 7,
            values: &fresh,
        };
        assert!(matches!(
            monte_carlo_vectors(of(&members), of(&others), wrong, &options),
            Err(Error::Attack(..))
        ));
        let few = &members[..6 * 50];
        assert!(matches!(
            monte_carlo_vectors(of(few), of(&others), of(&fresh), &options),
            Err(Error::Attack(..))
        ));
    }
}
