//! Draws the parties of a round. The draw depends only on how often each party took part before.

use rand::{Rng, RngCore};

use crate::{Error, FederatedSetting};

/// Number of tries to draw a party before one is drawn uniformly. For small probabilities, repeated tries converge to
/// that distribution.
const MAX_DRAWS: u32 = 1000;

/// The parties of a run, with the number of rounds in which each took part.
#[derive(Clone, Debug)]
pub struct Participation {
    taken: Vec<u32>,
    most: u32,
    rounds: u32,
    probability: f64,
}

impl Participation {
    /// Starts with this number of parties, none of which took part yet.
    pub fn new(setting: &FederatedSetting, parties: usize) -> Self {
        Self {
            taken: vec![0; parties],
            most: setting.most_rounds,
            rounds: setting.rounds,
            probability: setting.participation,
        }
    }

    /// Draws P_0, the parties of the first sums. These do not count as a round.
    ///
    /// # Errors
    /// [`Error::NobodyLeft`] if there are no parties.
    pub fn first(&self, rng: &mut dyn RngCore) -> Result<Vec<usize>, Error> {
        let all: Vec<usize> = (0..self.taken.len()).collect();
        self.among(&all, 0, rng)
    }

    /// Draws P_t: each party that may still take part, with probability p. An empty draw is repeated. If a draw would
    /// leave too few parties for the later rounds, a random subset of it is kept.
    ///
    /// # Errors
    /// [`Error::NobodyLeft`] if every party has used up its rounds. This cannot happen within the rounds of the setting
    /// if [`FederatedSetting::check_parties`] succeeds.
    pub fn draw(&mut self, round: u32, rng: &mut dyn RngCore) -> Result<Vec<usize>, Error> {
        let open: Vec<usize> = (0..self.taken.len())
            .filter(|&party| self.taken[party] < self.most)
            .collect();
        let mut drawn = self.among(&open, round, rng)?;
        let left: u64 = (open.iter())
            .map(|&party| u64::from(self.most - self.taken[party]))
            .sum();
        let later = u64::from(self.rounds.saturating_sub(round));
        let most = usize::try_from(left.saturating_sub(later).max(1)).unwrap_or(usize::MAX);
        if drawn.len() > most {
            let kept = rand::seq::index::sample(rng, drawn.len(), most).into_vec();
            drawn = kept.into_iter().map(|place| drawn[place]).collect();
            drawn.sort_unstable();
        }
        for &party in &drawn {
            self.taken[party] += 1;
        }
        Ok(drawn)
    }

    fn among(
        &self,
        open: &[usize],
        round: u32,
        rng: &mut dyn RngCore,
    ) -> Result<Vec<usize>, Error> {
        if open.is_empty() {
            return Err(Error::NobodyLeft(round));
        }
        for _ in 0..MAX_DRAWS {
            let drawn = open.iter().copied();
            let drawn: Vec<usize> = drawn
                .filter(|_| rng.random::<f64>() < self.probability)
                .collect();
            if !drawn.is_empty() {
                return Ok(drawn);
            }
        }
        Ok(vec![open[rng.random_range(0..open.len())]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;
    use fhaim_domain::Domain;
    use fhaim_dp::Rho;
    use fhaim_release::MechanismJob;
    use rand::{SeedableRng, rngs::StdRng};

    fn setting(participation: f64) -> FederatedSetting {
        let rho = Rho::from_f64_down(0.1).unwrap();
        let job = MechanismJob::new(Domain::new(vec![2; 3]), rho, 10);
        FederatedSetting {
            participation,
            ..FederatedSetting::new(job, Method::Naive)
        }
    }

    #[test]
    fn no_party_takes_part_more_often_than_allowed() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut participation = Participation::new(&setting(0.5), 20);
        let mut taken = [0; 20];
        let mut rounds = 0;
        while let Ok(drawn) = participation.draw(rounds + 1, &mut rng) {
            assert!(!drawn.is_empty() && drawn.is_sorted());
            drawn.iter().for_each(|&party| taken[party] += 1);
            rounds += 1;
        }
        assert_eq!(taken, [3; 20]);
        assert!(rounds >= 6);
        let tiny = Participation::new(&setting(1e-300), 5);
        assert_eq!(tiny.first(&mut rng).unwrap().len(), 1);
        assert!(matches!(
            Participation::new(&setting(0.5), 0).first(&mut rng),
            Err(Error::NobodyLeft(0))
        ));
    }

    /// Every round has a party whenever the parties can fill all rounds, even if a draw has many parties.
    #[test]
    fn rounds_are_filled_whenever_parties_can_fill_them() {
        let mut rng = StdRng::seed_from_u64(3);
        for parties in 1..=5usize {
            for most_rounds in 1..=10 {
                for participation in [0.01, 0.1, 0.9, 1.0] {
                    let setting = FederatedSetting {
                        most_rounds,
                        ..setting(participation)
                    };
                    let fills = parties as u32 * most_rounds >= setting.rounds;
                    assert_eq!(setting.check_parties(parties).is_ok(), fills);
                    if !fills {
                        continue;
                    }
                    let mut drawn = Participation::new(&setting, parties);
                    for round in 1..=setting.rounds {
                        let drawn = drawn.draw(round, &mut rng).unwrap();
                        assert!(!drawn.is_empty() && drawn.is_sorted());
                    }
                    assert!(drawn.taken.iter().all(|&taken| taken <= most_rounds));
                }
            }
        }
        let refused = setting(0.1).check_parties(2).unwrap_err().to_string();
        assert!(refused.contains("2 parties") && refused.contains("10 rounds"));
        assert!(
            refused.ends_with("allow 5 rounds per party, or run 6 rounds"),
            "{refused}"
        );
    }

    #[test]
    fn each_party_is_drawn_with_its_probability() {
        let mut rng = StdRng::seed_from_u64(2);
        let participation = Participation::new(&setting(0.1), 100);
        let draws = 2000;
        let drawn: usize = (0..draws)
            .map(|_| participation.first(&mut rng).unwrap().len())
            .sum();
        let mean = drawn as f64 / f64::from(draws);
        assert!((mean - 10.0).abs() < 5.0 * (9.0 / f64::from(draws)).sqrt());
    }
}
