//! DistAIM: AIM over the records of all parties that were drawn so far.
//!
//! A party sends all its marginals once, when it is first drawn. They are part of every later round without another
//! request, so each record is charged for all rounds (R = T). In the paper, servers hold the marginals as secret shares.
//! Here the sums are in the clear, which gives the same choices and the same noise.

use std::sync::Arc;

use fhaim_domain::{Clique, Table};
use fhaim_dp::{NoiseShares, Selection};
use fhaim_pgm::{Measurement, Model, ModelGraph};
use fhaim_synth::{Candidate, eligible};
use rand::RngCore;

use crate::fitting::{Stage, fit_model, measurement};
use crate::schedule::Schedule;
use crate::score::{Scoring, sensitivity};
use crate::server::estimated_records;
use crate::{
    Accounting, Error, FederatedSetting, Method, Outcome, Participation, PartyLedger, Plan,
    Spending,
};

/// A run of DistAIM.
pub struct PooledRun<'a> {
    setting: Arc<FederatedSetting>,
    candidates: Vec<Candidate>,
    schedule: Schedule,
    tables: &'a [Table],
    rng: &'a mut dyn RngCore,
    ledgers: Vec<PartyLedger>,
    /// The number of records that each party in the pool released.
    totals: Vec<Option<i64>>,
    /// All records in the pool.
    pool: Option<Table>,
    /// The model's number of records.
    total: f64,
    graph: ModelGraph,
    measurements: Vec<Measurement>,
}

/// Adapts a setting to DistAIM: every party is in every round, regardless of the setting's method.
fn pooled(setting: &FederatedSetting) -> FederatedSetting {
    FederatedSetting {
        method: Method::Naive,
        most_rounds: setting.rounds,
        local_steps: 1,
        ..setting.clone()
    }
}

impl<'a> PooledRun<'a> {
    /// Prepares a run over the parties' tables. It ignores the setting's method and rounds per party, because every
    /// party pays for all rounds. `rng` draws the parties, the choices and the noise.
    ///
    /// # Errors
    /// [`Error::OtherDomain`]; errors of [`Plan::new`].
    pub fn new(
        setting: &FederatedSetting,
        tables: &'a [Table],
        rng: &'a mut dyn RngCore,
    ) -> Result<Self, Error> {
        let setting = Arc::new(pooled(setting));
        if tables
            .iter()
            .any(|table| table.domain() != &setting.job.domain)
        {
            return Err(Error::OtherDomain);
        }
        Ok(Self {
            candidates: setting.candidates(),
            schedule: Schedule::new(Arc::clone(&setting))?,
            ledgers: vec![PartyLedger::new(setting.job.rho); tables.len()],
            totals: vec![None; tables.len()],
            pool: None,
            total: 1.0,
            graph: ModelGraph::new(&setting.job.domain),
            measurements: Vec::new(),
            setting,
            tables,
            rng,
        })
    }

    /// Returns the noise of a DistAIM run with this setting.
    ///
    /// # Errors
    /// Those of [`Plan::new`].
    pub fn plan(setting: &FederatedSetting) -> Result<Plan, Error> {
        Plan::new(&pooled(setting))
    }

    /// Runs all rounds, and returns the result and each party's payments.
    ///
    /// # Errors
    /// Errors of the fit; [`Error::NoCandidate`] if no candidate fits the model cap.
    pub fn run(mut self, begun: &mut dyn FnMut(u32)) -> Result<(Outcome, Vec<PartyLedger>), Error> {
        let setting = Arc::clone(&self.setting);
        let mut participation = Participation::new(&setting, self.tables.len());
        begun(0);
        let first = participation.first(self.rng)?;
        self.admit(&first, 0)?;
        self.total = self.records();
        for attribute in 0..setting.job.domain.len() {
            self.measure(0, &Clique::new([attribute]))?;
        }
        if setting.accounting == Accounting::Printed {
            // In FLAIM's program, the parties of the first sums enter the pool only when they are drawn again.
            self.totals.fill(None);
        }
        let fit = |run: &Self, stage, warm: Option<&Model>| {
            fit_model(&run.setting, &run.measurements, run.total, stage, warm)
        };
        let mut model = fit(&self, Stage::Between, None)?;
        while !self.schedule.is_last() {
            let round = self.schedule.next_round()?;
            begun(round);
            let drawn = participation.draw(round, self.rng)?;
            self.admit(&drawn, round)?;
            let choice = self.choose(round, &model)?;
            let clique = self.candidates[choice].clique.clone();
            self.measure(round, &clique)?;
            self.graph.add(&clique);
            let before = model;
            model = fit(&self, Stage::Between, Some(&before))?;
            let sum = (&clique, self.records());
            self.schedule
                .end_round([sum].into_iter(), &before, &model)?;
        }
        let outcome = Outcome {
            model: fit(&self, Stage::Last, Some(&model))?,
            records: estimated_records(&self.totals),
            rounds: self.schedule.round(),
            measurements: self.measurements.len(),
            dropped: 0,
        };
        Ok((outcome, self.ledgers))
    }

    /// Adds those of these parties to the pool that are not in it yet.
    fn admit(&mut self, parties: &[usize], round: u32) -> Result<(), Error> {
        for &party in parties {
            if self.totals[party].is_none() {
                let noise = self.noise_of_total(party, round)?;
                self.totals[party] = Some(self.tables[party].records() as i64 + noise);
            }
        }
        let members = self.tables.iter().zip(&self.totals);
        let members = members.filter(|(_, total)| total.is_some());
        let members: Vec<&Table> = members.map(|(table, _)| table).collect();
        self.pool = Some(together(&members)?);
        Ok(())
    }

    /// Debits a party for its number of records, and draws the noise; none if numbers of records are exact.
    fn noise_of_total(&mut self, party: usize, round: u32) -> Result<i64, Error> {
        if self.setting.accounting == Accounting::Printed {
            return Ok(0);
        }
        let noise = NoiseShares::new(self.schedule.plan().total_units, 1)?;
        let price = noise.price(1, 1)?;
        self.ledgers[party].debit(round, Spending::Total, &[], price)?;
        Ok(noise.draw(1, self.rng)?[0])
    }

    /// Returns the released number of records in the pool, at least 1.
    fn records(&self) -> f64 {
        let released = self.totals.iter().flatten();
        released
            .map(|&total| total.max(1) as f64)
            .sum::<f64>()
            .max(1.0)
    }

    fn pool(&self) -> Result<&Table, Error> {
        self.pool
            .as_ref()
            .ok_or(Error::OutOfTurn("no party is in the pool yet"))
    }

    /// Debits every party in the pool by the same amount.
    fn debit(
        &mut self,
        round: u32,
        spending: Spending,
        attributes: &[usize],
        rho: fhaim_dp::Rho,
    ) -> Result<(), Error> {
        for (ledger, total) in self.ledgers.iter_mut().zip(&self.totals) {
            if total.is_some() {
                ledger.debit(round, spending, attributes, rho)?;
            }
        }
        Ok(())
    }

    fn measure(&mut self, round: u32, clique: &Clique) -> Result<(), Error> {
        let noise = NoiseShares::new(self.schedule.plan().variance_units, 1)?;
        let counts = self.pool()?.counts(clique)?;
        let price = noise.price(1, counts.len() as u64)?;
        self.debit(round, Spending::Sum, clique.attributes(), price)?;
        let drawn = noise.draw(counts.len(), self.rng)?;
        let cells = counts.iter().zip(drawn.iter());
        let sum: Vec<i64> = cells.map(|(&count, n)| count as i64 + n).collect();
        let scale = (self.records(), self.total);
        let units = noise.sum_units();
        self.measurements
            .push(measurement(&self.setting, clique, &sum, units, scale));
        Ok(())
    }

    fn choose(&mut self, round: u32, model: &Model) -> Result<usize, Error> {
        let share = self.schedule.share_used()?;
        let eligible = eligible(&self.setting.job, &self.graph, &self.candidates, share);
        let cliques = eligible.iter().map(|&i| self.candidates[i].clique.clone());
        let cliques: Vec<Clique> = cliques.collect();
        let scoring = Scoring {
            method: Method::Naive,
            table: self.pool()?,
            records: self.records(),
            total: model.total(),
            sigma: self.schedule.plan().sigma(),
            one_ways: &[],
        };
        let marginals = model.pair_marginals(&cliques)?;
        let candidates = eligible.iter().map(|&i| &self.candidates[i]);
        let scores = scoring.scores(candidates, &marginals, None)?;
        let heaviest = self.candidates.iter().map(|c| c.weight).max().unwrap_or(1);
        let epsilon = self.schedule.plan().epsilon;
        let selection = Selection::new(epsilon, sensitivity(Method::Naive, heaviest))?;
        self.debit(round, Spending::Selection, &[], selection.rho()?)?;
        let choice = selection.choose(&scores, self.rng);
        let cap = self.setting.job.model_bytes;
        choice
            .map(|position| eligible[position])
            .ok_or(Error::NoCandidate(cap))
    }
}

/// Concatenates tables of the same schema.
pub(crate) fn together(tables: &[&Table]) -> Result<Table, Error> {
    let Some(first) = tables.first() else {
        return Err(fhaim_domain::CodesProblem::Empty.into());
    };
    let column = |attribute: usize| {
        let columns = tables.iter().map(|table| table.column(attribute));
        columns.flatten().copied().collect()
    };
    let columns = (0..first.domain().len()).map(column).collect();
    Ok(Table::new(first.shared_schema(), columns)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Schema;
    use fhaim_dp::accounting;
    use fhaim_release::MechanismJob;
    use rand::{SeedableRng, rngs::StdRng};

    fn tables() -> Vec<Table> {
        let column = |name| {
            format!(r#"{{"name": "{name}", "kind": "categorical", "categories": ["x", "y"]}}"#)
        };
        let json = format!(
            r#"{{"name": "t", "columns": [{}, {}]}}"#,
            column("a"),
            column("b")
        );
        let schema = Schema::from_json("t", json.as_bytes()).unwrap();
        let table = |records| Table::new(schema.clone(), vec![vec![0; records]; 2]).unwrap();
        vec![table(500), table(2000)]
    }

    fn setting(accounting: Accounting) -> FederatedSetting {
        let rho = accounting::rho(5.0, 1e-5).unwrap();
        let job = MechanismJob::new(tables()[0].domain().clone(), rho, 1 << 20);
        FederatedSetting {
            accounting,
            most_rounds: 10,
            ..FederatedSetting::new(job, Method::Naive)
        }
    }

    /// Algorithm 3, line 9: measurements have the weight 1/sigma, however many parties are in the pool.
    #[test]
    fn measurements_of_a_growing_pool_have_the_same_weight() {
        let tables = tables();
        let mut rng = StdRng::seed_from_u64(1);
        let mut run = PooledRun::new(&setting(Accounting::Corrected), &tables, &mut rng).unwrap();
        run.admit(&[0], 0).unwrap();
        run.total = run.records();
        run.measure(0, &Clique::new([0])).unwrap();
        run.admit(&[1], 1).unwrap();
        run.measure(1, &Clique::new([0])).unwrap();
        assert_eq!(run.measurements[0].sigma, run.measurements[1].sigma);
    }

    #[test]
    fn printed_sums_are_scaled_by_their_own_noisy_records() {
        let tables = tables();
        let mut rng = StdRng::seed_from_u64(2);
        let mut run = PooledRun::new(&setting(Accounting::Printed), &tables, &mut rng).unwrap();
        run.admit(&[0, 1], 0).unwrap();
        run.total = run.records();
        assert_eq!(run.total, 2500.0);
        run.measure(0, &Clique::new([0, 1])).unwrap();
        let values = &run.measurements[0].values;
        assert!((values.iter().sum::<f64>() - 2500.0).abs() < 1e-6);
    }
}
