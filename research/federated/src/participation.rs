//! Who takes part in a round: a draw that looks at nothing but how often each party took part before.

use rand::{Rng, RngCore};

use crate::{Error, FederatedSetting};

/// How often an empty draw is repeated before one party is drawn alone, which is what the repetition
/// tends to where a party's chance is small.
const MAX_DRAWS: u32 = 1000;

/// The parties and how often each took part.
#[derive(Clone, Debug)]
pub struct Participation {
    taken: Vec<u32>,
    most: u32,
    rounds: u32,
    probability: f64,
}

impl Participation {
    /// So many parties, none of whom took part yet.
    pub fn new(setting: &FederatedSetting, parties: usize) -> Self {
        Self {
            taken: vec![0; parties],
            most: setting.most_rounds,
            rounds: setting.rounds,
            probability: setting.participation,
        }
    }

    /// P_0: who makes the first sums. It is no round, and does not count as one.
    ///
    /// # Errors
    /// [`Error::NobodyLeft`] without parties.
    pub fn first(&self, rng: &mut dyn RngCore) -> Result<Vec<usize>, Error> {
        let all: Vec<usize> = (0..self.taken.len()).collect();
        self.among(&all, 0, rng)
    }

    /// P_t: each party that may still take part, with probability p; drawn again if that is nobody. Where that is more
    /// than leaves a party for every later round, so many of them at random as do.
    ///
    /// # Errors
    /// [`Error::NobodyLeft`] where every party has had its rounds: never within the setting's, if
    /// [`FederatedSetting::check_parties`] holds.
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
    fn nobody_takes_part_more_often_than_the_setting_allows() {
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

    /// Every round has a party wherever the parties can fill them at all, however many would like to take part.
    #[test]
    fn few_parties_fill_all_rounds_that_they_can() {
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
            refused.ends_with("let each take part in 5, or run 6"),
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
