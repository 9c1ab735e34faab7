//! A complete mechanism with its own model and source. Run it with
//! `cargo run -p fhaim-synth --example mechanism`.
//!
//! `counts` releases the number of records and the counts of every column in one batch, and draws
//! the columns independently. It implements the same traits as the mechanisms of the crate, and
//! `tests/contract.rs` checks that it keeps their promises.

use std::error::Error;

use fhaim_domain::{Domain, Schema, Table};
use fhaim_dp::accounting;
use fhaim_release::{
    Axis, LadderNeed, MechanismJob, ReleaseRequest, ReleaseSource, SourceError, Statistic,
};
use fhaim_release::{Machine, MechanismRun, Phase, RunProgress};
use fhaim_synth::{
    AnyMachine, Density, FittedModel, Mechanism, MechanismStep, ModelError, Offer, ReleaseAccount,
    RunOutcome, drive, exact, parse_options, write_options,
};
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The mechanism with its options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts(CountsOptions);

/// The options.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CountsOptions {
    /// Share of rho for the number of records.
    total_share: f64,
}

impl Default for CountsOptions {
    fn default() -> Self {
        Self { total_share: 0.1 }
    }
}

const NAME: &str = "counts";

impl Counts {
    /// Returns the only batch: the total, then each column.
    fn offers(
        &self,
        account: &ReleaseAccount,
        job: &MechanismJob,
    ) -> Result<Vec<Offer>, fhaim_synth::Error> {
        let rho = job.rho.to_f64();
        let columns = job.domain.sizes().iter().enumerate();
        let columns = columns.map(|(a, &size)| Statistic::OneWay(Axis::identity(a, size)));
        let share = rho * (1.0 - self.0.total_share) / job.domain.len() as f64;
        std::iter::once((Statistic::Total, rho * self.0.total_share))
            .chain(columns.map(|column| (column, share)))
            .map(|(statistic, share)| {
                // A little less than the share, so that rounding cannot exceed the budget.
                let offer = account.offer(statistic, share * (1.0 - 1e-9), u64::MAX)?;
                offer.ok_or(fhaim_synth::Error::budget_too_small(job.rho))
            })
            .collect()
    }
}

impl Mechanism for Counts {
    fn name(&self) -> &'static str {
        NAME
    }

    fn label(&self) -> &'static str {
        "Toy"
    }

    fn about(&self) -> &'static str {
        "Counts of every column, in one batch"
    }

    fn options(&self) -> Result<Value, fhaim_synth::Error> {
        write_options(NAME, &self.0)
    }

    fn with_options(&self, options: &Value) -> Result<Box<dyn Mechanism>, fhaim_synth::Error> {
        let options: CountsOptions = parse_options(NAME, options)?;
        if !(options.total_share > 0.0 && options.total_share < 1.0) {
            return Err(fhaim_synth::Error::Option {
                name: "total_share",
                range: "between 0 and 1",
                value: options.total_share,
            });
        }
        Ok(Box::new(Self(options)))
    }

    fn ladder_need(&self, job: &MechanismJob) -> Result<LadderNeed, fhaim_synth::Error> {
        job.check()?;
        let offers = self.offers(&ReleaseAccount::new(job), job)?;
        Ok(LadderNeed {
            cells: 1 + job.domain.columns(),
            largest_variance_units: offers.iter().map(Offer::variance_units).max().unwrap_or(1),
        })
    }

    fn start(&self, job: MechanismJob) -> Result<Box<AnyMachine>, fhaim_synth::Error> {
        job.check()?;
        Ok(Box::new(CountsRun {
            mechanism: *self,
            account: ReleaseAccount::new(&job),
            job,
            steps: 0,
        }))
    }
}

/// A run in progress.
struct CountsRun {
    mechanism: Counts,
    job: MechanismJob,
    account: ReleaseAccount,
    steps: usize,
}

const COUNT: Phase = Phase::new("count", "Counting every cell");

impl Machine for CountsRun {
    type Outcome = RunOutcome;
    type Error = fhaim_synth::Error;

    fn step(&mut self, answers: &[Vec<i64>]) -> Result<MechanismStep, fhaim_synth::Error> {
        if self.steps > 1 {
            return Err(fhaim_synth::Error::Done);
        }
        self.account.settle(answers)?;
        self.steps += 1;
        if self.steps == 1 {
            let offers = self.mechanism.offers(&self.account, &self.job)?;
            return Ok(MechanismStep::Release(self.account.ask(COUNT, offers)?));
        }
        let model = Independent::new(self.job.domain.clone(), answers);
        Ok(MechanismStep::Done(Box::new(RunOutcome::new(
            model,
            &self.account,
        ))))
    }

    fn progress(&self) -> RunProgress {
        RunProgress {
            phase: if self.steps > 1 { Phase::FIT } else { COUNT },
            round: self.steps,
            rounds: 2,
        }
    }
}

/// A model of independent columns. It has a density, but no marginals and no conditions.
#[derive(Debug)]
struct Independent {
    domain: Domain,
    total: f64,
    /// Share of each category, by column.
    shares: Vec<Vec<f64>>,
}

impl Independent {
    fn new(domain: Domain, answers: &[Vec<i64>]) -> Self {
        let shares = answers.iter().skip(1).map(|counts| {
            // At least half a record, so that no category is impossible.
            let counts: Vec<f64> = counts.iter().map(|&n| (n as f64).max(0.5)).collect();
            let sum: f64 = counts.iter().sum();
            counts.iter().map(|count| count / sum).collect()
        });
        let total = answers.iter().flatten().next();
        Self {
            shares: shares.collect(),
            total: total.map_or(0.0, |&total| (total as f64).max(0.0)),
            domain,
        }
    }
}

impl FittedModel for Independent {
    fn domain(&self) -> &Domain {
        &self.domain
    }

    fn total(&self) -> f64 {
        self.total
    }

    fn bytes(&self) -> usize {
        self.domain.columns() * size_of::<f64>()
    }

    fn sample(&self, records: usize, rng: &mut dyn RngCore) -> Vec<Vec<u32>> {
        let mut draw = |shares: &[f64]| {
            let mut left: f64 = rng.random();
            let found = shares.iter().position(|share| {
                left -= share;
                left < 0.0
            });
            found.unwrap_or(shares.len() - 1) as u32
        };
        let columns = self.shares.iter();
        columns
            .map(|shares| (0..records).map(|_| draw(shares)).collect())
            .collect()
    }

    fn save(&self) -> Vec<u8> {
        let numbers = std::iter::once(&self.total).chain(self.shares.iter().flatten());
        let numbers = numbers.flat_map(|number| number.to_le_bytes());
        b"toycount".iter().copied().chain(numbers).collect()
    }

    fn density(&self) -> Option<&dyn Density> {
        Some(self)
    }
}

impl Density for Independent {
    fn log_densities(&self, columns: &[Vec<u32>]) -> Result<Vec<f64>, ModelError> {
        let records = columns.first().map_or(0, Vec::len);
        let mut densities = vec![0.0; records];
        for (column, shares) in columns.iter().zip(&self.shares) {
            for (density, &code) in densities.iter_mut().zip(column) {
                let share = shares.get(code as usize);
                *density += share
                    .ok_or_else(|| ModelError::generator("the record has an unknown code"))?
                    .ln();
            }
        }
        Ok(densities)
    }
}

/// Answers without noise. Use it to try a mechanism on made-up records, never on real ones.
struct Noiseless<'a>(&'a Table);

impl ReleaseSource for Noiseless<'_> {
    fn release(&mut self, requests: &[ReleaseRequest]) -> Result<Vec<Vec<i64>>, SourceError> {
        let answer = |request: &ReleaseRequest| {
            exact(self.0, &request.statistic).map_err(|error| SourceError::Statistic {
                number: request.number,
                error,
            })
        };
        requests.iter().map(answer).collect()
    }
}

/// Returns 400 records of two columns, one with two categories and one with three.
pub fn table() -> Result<Table, Box<dyn Error>> {
    let schema = br#"{"name": "toy", "columns": [
        {"name": "coin", "kind": "categorical", "categories": ["heads", "tails"]},
        {"name": "size", "kind": "categorical", "categories": ["small", "middling", "large"]}]}"#;
    let schema = Schema::from_json("toy.json", schema)?;
    let column = |period: u32, size: u32| (0..400).map(|i| i / period % size).collect();
    Ok(Table::new(schema, vec![column(1, 2), column(7, 3)])?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let table = table()?;
    let job = MechanismJob::new(table.domain().clone(), accounting::rho(1.0, 1e-9)?, 512);
    let mechanism = Counts::default().with_options(&serde_json::json!({ "total_share": 0.2 }))?;
    let need = mechanism.ladder_need(&job)?;
    println!("{}: {}", mechanism.name(), mechanism.about());
    println!("at most {} integers are released", need.cells);

    let run = MechanismRun::new(mechanism.start(job.clone())?, job.clone(), Vec::new())?;
    let exact = drive(run, &mut Noiseless(&table), &mut |at| {
        println!("{} ({}/{})", at.phase, at.round, at.rounds);
    })?;
    let mut rng = StdRng::seed_from_u64(1);
    let noisy = mechanism.run_in_the_clear(&table, &job, &mut rng, &mut |_| {})?;
    for (source, outcome) in [("a toy source", exact), ("the table with noise", noisy)] {
        let (total, spent) = (outcome.model.total(), outcome.spent.to_f64());
        println!("{source}: {total} records, rho {spent:.6} spent");
    }
    Ok(())
}
