//! The total and the 1-ways: what every mechanism over a source starts from, and the baseline
//! that measures nothing else.

use fhaim_dp::Rho;
use fhaim_pgm::{FitOptions, Measurement, Model, fit};

use crate::block::Block;
use crate::desk::{Desk, Offer, shares};
use crate::engine::{Mechanism, Next, Outcome, Phase, Progress};
use crate::prior::expected_counts;
use crate::{Error, Job, LadderNeed};

/// Weight of the total's noise in the workload error, for each unit of workload weight.
const TOTAL_COST: f64 = 0.7;

/// Bytes that the fit may take for each byte of the junction tree: potentials, beliefs,
/// gradients and messages beside it.
const FIT_BYTES_PER_MODEL_BYTE: usize = 64;

/// A statistic measured once or more: the inverse-variance mean of its tables.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) block: Block,
    table: Vec<f64>,
    /// 1 / s^2, summed over the measurements.
    precision: f64,
    /// What was spent on it.
    pub(crate) rho: f64,
}

impl Measured {
    pub(crate) fn new(block: Block) -> Self {
        Self {
            block,
            table: Vec::new(),
            precision: 0.0,
            rho: 0.0,
        }
    }

    /// Takes in one answer.
    pub(crate) fn add(&mut self, values: &[i64], variance_units: u64, rho: Rho) {
        let scale = self.block.scale(variance_units);
        let precision = 1.0 / (scale * scale);
        let table = self.block.table(values);
        let weight = precision / (self.precision + precision);
        if self.table.is_empty() {
            self.table = table;
        } else {
            for (mean, value) in self.table.iter_mut().zip(&table) {
                *mean += weight * (value - *mean);
            }
        }
        self.precision += precision;
        self.rho += rho.to_f64();
    }

    /// Whether there was an answer.
    pub(crate) fn is_measured(&self) -> bool {
        self.precision > 0.0
    }

    /// The mean of the tables.
    pub(crate) fn table(&self) -> &[f64] {
        &self.table
    }

    /// s of the mean.
    pub(crate) fn scale(&self) -> f64 {
        self.precision.sqrt().recip()
    }

    /// For the fit; `None` before the first answer.
    pub(crate) fn measurement(&self) -> Option<Measurement> {
        self.is_measured()
            .then(|| self.block.measurement(self.table.clone(), self.scale()))
    }
}

/// The total and the 1-ways of a job, with their costs.
#[derive(Clone, Debug)]
pub(crate) struct OneWays {
    /// The total first, then one block for each attribute that has a choice.
    pub(crate) items: Vec<Measured>,
    /// c^(2/3) of each item.
    pub(crate) weights: Vec<f64>,
    /// What the fit sees, since the last [`OneWays::learn`].
    estimates: Vec<Measurement>,
}

impl OneWays {
    pub(crate) fn new(job: &Job) -> Self {
        let mut items = vec![Measured::new(Block::total())];
        let mut costs = vec![TOTAL_COST * job.workload.weight().max(1.0)];
        for (attribute, &size) in job.domain.sizes().iter().enumerate() {
            if size > 1 {
                items.push(Measured::new(Block::one_way(attribute, size)));
                // An attribute outside the workload is still to be drawn from.
                let weight = job.workload.weight_of(attribute).max(1.0);
                costs.push(weight * (size as f64 - 1.0));
            }
        }
        Self {
            items,
            weights: costs.iter().map(|cost| cost.powf(2.0 / 3.0)).collect(),
            estimates: Vec::new(),
        }
    }

    /// All statistics with shares of `budget`.
    pub(crate) fn offers(&self, desk: &Desk, budget: f64) -> Result<Vec<Offer>, Error> {
        self.items
            .iter()
            .zip(shares(budget, &self.weights))
            .map(|(item, share)| {
                desk.offer(item.block.statistic(), share, u64::MAX)?
                    .ok_or(Error::BudgetTooSmall(desk.left()))
            })
            .collect()
    }

    /// Integers that one release of all of them takes.
    pub(crate) fn cells(&self) -> usize {
        let cells = |item: &Measured| item.block.statistic().cells();
        self.items.iter().map(cells).sum()
    }

    /// Makes what the fit sees of the answers so far: noisy 1-ways with the help of the prior.
    pub(crate) fn learn(&mut self) {
        let total = self.items[0].table().first().copied().unwrap_or(0.0);
        let estimate = |item: &Measured| {
            let mut measurement = item.measurement()?;
            let mean = total / measurement.values.len() as f64;
            if measurement.clique.len() == 1 {
                let counts: Vec<f64> = measurement.values.iter().map(|y| y + mean).collect();
                if let Some(expected) = expected_counts(&counts, total, measurement.sigma) {
                    measurement.values = expected.iter().map(|count| count - mean).collect();
                }
            }
            Some(measurement)
        };
        self.estimates = self.items.iter().filter_map(estimate).collect();
    }

    /// What the fit sees.
    pub(crate) fn measurements(&self) -> Vec<Measurement> {
        self.estimates.clone()
    }
}

/// Fits a model within a job's cap.
pub(crate) fn fit_job(
    job: &Job,
    measurements: &[Measurement],
    steps: usize,
    tolerance: f64,
    warm_start: Option<&Model>,
) -> Result<Model, Error> {
    let options = FitOptions {
        steps,
        tolerance,
        max_bytes: job.model_bytes.saturating_mul(FIT_BYTES_PER_MODEL_BYTE),
        ..FitOptions::default()
    };
    Ok(fit(&job.domain, measurements, &options, warm_start)?)
}

/// The baseline: the whole budget on the total and the 1-ways, attributes independent.
#[derive(Debug)]
pub struct OneWaysOnly {
    job: Job,
    desk: Desk,
    one_ways: OneWays,
    asked: bool,
    done: bool,
}

impl OneWaysOnly {
    /// Ready for its first step.
    ///
    /// # Errors
    /// As [`Job::check`].
    pub fn new(job: Job) -> Result<Self, Error> {
        job.check()?;
        Ok(Self {
            desk: Desk::new(&job),
            one_ways: OneWays::new(&job),
            job,
            asked: false,
            done: false,
        })
    }

    fn finish(&mut self, answers: &[Vec<i64>]) -> Result<Next, Error> {
        let first = self.desk.settle(answers)?;
        for (item, release) in self
            .one_ways
            .items
            .iter_mut()
            .zip(&self.desk.settled()[first..])
        {
            item.add(&release.values, release.request.variance_units, release.rho);
        }
        self.one_ways.learn();
        let model = fit_job(
            &self.job,
            &self.one_ways.measurements(),
            FINAL_STEPS,
            FINAL_TOLERANCE,
            None,
        )?;
        self.done = true;
        Ok(Next::Done(Box::new(Outcome {
            model,
            releases: self.desk.settled().to_vec(),
            spent: self.desk.spent(),
            timings: Vec::new(),
        })))
    }
}

/// What the baseline may ask of a noise ladder.
pub(crate) fn ladder_need(job: &Job) -> Result<LadderNeed, Error> {
    let one_ways = OneWays::new(job);
    let offers = one_ways.offers(&Desk::new(job), job.rho.to_f64())?;
    Ok(LadderNeed {
        cells: one_ways.cells(),
        largest_variance_units: offers.iter().map(Offer::variance_units).max().unwrap_or(1),
    })
}

/// Steps of a mechanism's last fit: with more the loss still falls a little, the workload error
/// does not.
pub(crate) const FINAL_STEPS: usize = 200;

/// Tolerance of a mechanism's last fit.
pub(crate) const FINAL_TOLERANCE: f64 = 1e-4;

impl Mechanism for OneWaysOnly {
    fn step(&mut self, answers: &[Vec<i64>]) -> Result<Next, Error> {
        if self.done {
            return Err(Error::Done);
        }
        if self.asked {
            return self.finish(answers);
        }
        if !answers.is_empty() {
            return Err(Error::AnswerCount {
                expected: 0,
                found: answers.len(),
            });
        }
        let offers = self.one_ways.offers(&self.desk, self.job.rho.to_f64())?;
        self.asked = true;
        Ok(Next::Release(self.desk.ask(Phase::OneWays, offers)?))
    }

    fn progress(&self) -> Progress {
        Progress {
            phase: if self.done {
                Phase::Fit
            } else {
                Phase::OneWays
            },
            round: usize::from(self.asked) + usize::from(self.done),
            rounds: 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Statistic;
    use fhaim_domain::Domain;

    #[test]
    fn repeated_answers_combine_by_inverse_variance() {
        let mut item = Measured::new(Block::one_way(0, 2));
        assert!(item.measurement().is_none());
        item.add(&[100], 1, Rho::ZERO);
        item.add(&[160], 2, Rho::ZERO);
        // Precisions 2 : 1.
        assert_eq!(item.table(), [60.0, -60.0]);
        assert!((item.scale() - (4.0f64 / 2.0 / 1.5).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn attributes_with_one_value_are_not_measured() {
        let rho = Rho::from_f64_down(0.1).unwrap();
        let job = Job::new(Domain::new(vec![1, 2, 5]), rho, 10);
        let one_ways = OneWays::new(&job);
        assert_eq!(one_ways.cells(), 1 + 1 + 5);
        assert_eq!(one_ways.items.len(), 3);
        let desk = Desk::new(&job);
        let offers = one_ways.offers(&desk, 0.1).unwrap();
        assert!(desk.affords(&offers));
        assert!(matches!(
            one_ways.items[0].block.statistic(),
            Statistic::Total
        ));
    }
}
