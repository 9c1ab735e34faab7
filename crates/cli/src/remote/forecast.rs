//! When a job will be done: by what its batches take here, before it begins; and by what they took there, once some are
//! done.

use fhaim_protocol::terms::Terms;
use fhaim_sdk::Client;
use fhaim_synth::{MechanismName, Mechanisms};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    error::Error,
    estimate::{self, duration},
};

/// Of all that is expected so much has to be done before the rest is told by it.
const LEAST_DONE: f64 = 0.1;

/// What each batch of a job is expected to take, and how far it is.
#[derive(Debug)]
pub struct Forecast {
    /// Seconds of each batch, and of what comes of its answers, on a machine as fast as this one.
    stages: Vec<f64>,
    /// Batches that were asked for.
    asked: usize,
    /// When the first was.
    begun: Option<OffsetDateTime>,
}

impl Forecast {
    /// The forecast of a run over a dataset, as far as its terms tell: of as many records as they allow.
    ///
    /// # Errors
    /// Terms that cannot be read; a system without randomness.
    pub async fn of(client: &Client, dataset: Uuid) -> Result<Self, Error> {
        let terms = client.dataset(dataset).await?.terms.0;
        let measured = tokio::task::spawn_blocking(move || stages(terms));
        let stages = measured
            .await
            .map_err(|_| Error::Job("the machine was not measured".to_owned()))??;
        Ok(Self::new(stages))
    }

    fn new(stages: Vec<f64>) -> Self {
        Self {
            stages,
            asked: 0,
            begun: None,
        }
    }

    /// What there is to say before the job begins.
    pub fn before(&self) -> String {
        let all = duration(self.stages.iter().sum());
        format!("about {all} where the services are as fast as this machine")
    }

    /// Notes that another batch was asked for, or the model; what there is to say then, if there is.
    pub fn asked(&mut self, at: OffsetDateTime) -> Option<String> {
        let begun = *self.begun.get_or_insert(at);
        let done = self.asked;
        self.asked += 1;
        let left = self.left(done, (at - begun).as_seconds_f64())?;
        Some(format!(
            "about {} left, by what it took so far",
            duration(left)
        ))
    }

    /// Seconds left after so many batches that took so long together.
    fn left(&self, done: usize, took: f64) -> Option<f64> {
        let (done, left) = self.stages.split_at_checked(done)?;
        let (done, left): (f64, f64) = (done.iter().sum(), left.iter().sum());
        (left > 0.0 && done >= LEAST_DONE * (done + left)).then(|| took * left / done)
    }
}

fn stages(terms: Terms) -> Result<Vec<f64>, Error> {
    let contribution = terms.contribution;
    let mechanism: MechanismName = terms.mechanism.parse()?;
    let plan = terms.complete(&Mechanisms)?.plan()?;
    let records = usize::try_from(plan.job.record_bound).unwrap_or(usize::MAX);
    estimate::load(
        mechanism,
        &plan.job,
        &plan.job.domain,
        records,
        contribution,
    )?
    .stages()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + time::Duration::seconds(seconds)
    }

    #[test]
    fn what_is_left_is_told_once_enough_is_done() {
        let mut forecast = Forecast::new(vec![1.0, 9.0, 50.0, 40.0]);
        assert_eq!(
            forecast.before(),
            "about 2 min where the services are as fast as this machine"
        );
        assert_eq!(forecast.asked(at(100)), None);
        assert_eq!(forecast.asked(at(103)), None);
        // A tenth took 30 s.
        let left = forecast.asked(at(130)).unwrap();
        assert_eq!(left, "about 4 min left, by what it took so far");
        let left = forecast.asked(at(220)).unwrap();
        assert_eq!(left, "about 80 s left, by what it took so far");
    }

    #[test]
    fn a_job_of_other_batches_than_expected_is_not_told() {
        let mut forecast = Forecast::new(vec![1.0, 1.0]);
        assert_eq!(forecast.asked(at(0)), None);
        assert!(forecast.asked(at(1)).is_some());
        for second in 2..5 {
            assert_eq!(forecast.asked(at(second)), None);
        }
    }
}
