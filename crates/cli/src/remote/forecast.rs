//! Forecasts the duration of a job: from the speed of this machine before the job starts, and from the services' speed
//! once some batches are done.

use fhaim_protocol::terms::Terms;
use fhaim_sdk::Client;
use fhaim_synth::{MechanismName, Mechanisms};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    error::Error,
    estimate::{self, duration},
};

/// Minimum share of the expected work that must be done before the remaining time is forecast from it.
const LEAST_DONE: f64 = 0.1;

/// Expected time of each batch of a job, and the job's progress.
#[derive(Debug)]
pub struct Forecast {
    /// Expected seconds of each batch, with the work on its answers, on a machine as fast as this one.
    stages: Vec<f64>,
    /// Number of batches that the job has requested.
    asked: usize,
    /// Time of the first request.
    begun: Option<OffsetDateTime>,
    /// The last description of the remaining time, which is not repeated.
    told: Option<String>,
}

impl Forecast {
    /// Returns the forecast of a run over a dataset, for the maximum number of records in its terms.
    ///
    /// # Errors
    /// If the terms are invalid, or the system cannot provide randomness.
    pub async fn of(client: &Client, dataset: Uuid) -> Result<Self, Error> {
        let terms = client.dataset(dataset).await?.terms.0;
        let measured = tokio::task::spawn_blocking(move || stages(terms));
        let stages = measured
            .await
            .map_err(|_| Error::Job("cannot measure this machine's speed".to_owned()))??;
        Ok(Self::new(stages))
    }

    fn new(stages: Vec<f64>) -> Self {
        Self {
            stages,
            asked: 0,
            begun: None,
            told: None,
        }
    }

    /// Describes the expected time of the whole job.
    pub fn before(&self) -> String {
        let all = duration(self.stages.iter().sum());
        format!("about {all} if the services are as fast as this machine")
    }

    /// Records that the job has requested another batch, or the model. Describes the remaining time, if it is known.
    pub fn asked(&mut self, at: OffsetDateTime) -> Option<String> {
        let begun = *self.begun.get_or_insert(at);
        let done = self.asked;
        self.asked += 1;
        let left = self.left(done, (at - begun).as_seconds_f64())?;
        let left = duration(left);
        let told = format!("about {left} left, according to the time so far");
        if self.told.as_ref() == Some(&told) {
            return None;
        }
        self.told = Some(told.clone());
        Some(told)
    }

    /// Returns the remaining seconds after `done` batches that took `took` seconds together.
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
    fn remaining_time_is_forecast_once_enough_is_done() {
        let mut forecast = Forecast::new(vec![1.0, 9.0, 50.0, 40.0]);
        assert_eq!(
            forecast.before(),
            "about 2 min if the services are as fast as this machine"
        );
        assert_eq!(forecast.asked(at(100)), None);
        assert_eq!(forecast.asked(at(103)), None);
        // A tenth of the work took 30 s.
        let left = forecast.asked(at(130)).unwrap();
        assert_eq!(left, "about 4 min left, according to the time so far");
        let left = forecast.asked(at(220)).unwrap();
        assert_eq!(left, "about 80 s left, according to the time so far");
    }

    #[test]
    fn job_with_more_batches_than_expected_has_no_forecast() {
        let mut forecast = Forecast::new(vec![1.0, 1.0]);
        assert_eq!(forecast.asked(at(0)), None);
        assert!(forecast.asked(at(1)).is_some());
        for second in 2..5 {
            assert_eq!(forecast.asked(at(second)), None);
        }
    }
}
