//! DistAIM: AIM over the records of all parties that were drawn so far.
//!
//! A party sends all its marginals once, when it is first drawn. They are part of every later round without another
//! request, so each record is charged for all rounds. In the paper, servers hold the marginals as secret shares. Here
//! the sums are in the clear, which gives the same choices and the same noise.

use std::sync::Arc;

use fhaim_domain::{Clique, Table};
use fhaim_dp::{NoiseShares, Selection};
use fhaim_pgm::{Measurement, Model, ModelGraph};
use fhaim_synth::{Candidate, eligible};
use rand::RngCore;

use crate::fitting::{Stage, fit_model, measurement};
use crate::plan::Parts;
use crate::score::{Scoring, sensitivity};
use crate::{Error, FederatedSetting, Method, Outcome, Participation, PartyLedger, Plan, Spending};

/// A run of DistAIM.
pub struct PooledRun<'a> {
    setting: Arc<FederatedSetting>,
    candidates: Vec<Candidate>,
    plan: Plan,
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
        anneal: false,
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
        let setting = pooled(setting);
        if tables
            .iter()
            .any(|table| table.domain() != &setting.job.domain)
        {
            return Err(Error::OtherDomain);
        }
        Ok(Self {
            candidates: setting.candidates(),
            plan: Plan::new(&setting)?,
            ledgers: vec![PartyLedger::new(setting.job.rho); tables.len()],
            totals: vec![None; tables.len()],
            pool: None,
            total: 1.0,
            graph: ModelGraph::new(&setting.job.domain),
            measurements: Vec::new(),
            setting: Arc::new(setting),
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
        let fit = |run: &Self, stage, warm: Option<&Model>| {
            fit_model(&run.setting, &run.measurements, run.total, stage, warm)
        };
        let mut model = fit(&self, Stage::Between, None)?;
        for round in 1..=setting.rounds {
            begun(round);
            let drawn = participation.draw(round, self.rng)?;
            self.admit(&drawn, round)?;
            let choice = self.choose(round, &model)?;
            let clique = self.candidates[choice].clique.clone();
            self.measure(round, &clique)?;
            self.graph.add(&clique);
            model = fit(&self, Stage::Between, Some(&model))?;
        }
        let outcome = Outcome {
            model: fit(&self, Stage::Last, Some(&model))?,
            rounds: setting.rounds,
            measurements: self.measurements.len(),
            dropped: 0,
        };
        Ok((outcome, self.ledgers))
    }

    /// Adds those of these parties to the pool that are not in it yet.
    fn admit(&mut self, parties: &[usize], round: u32) -> Result<(), Error> {
        let noise = NoiseShares::new(self.plan.total_units, 1)?;
        for &party in parties {
            if self.totals[party].is_none() {
                let price = noise.price(1, 1)?;
                self.ledgers[party].debit(round, Spending::Total, &[], price)?;
                let noise = noise.draw(1, self.rng)?[0];
                self.totals[party] = Some(self.tables[party].records() as i64 + noise);
            }
        }
        let members = self.tables.iter().zip(&self.totals);
        let members = members.filter(|(_, total)| total.is_some());
        let members: Vec<&Table> = members.map(|(table, _)| table).collect();
        self.pool = Some(together(&members)?);
        Ok(())
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
        let noise = NoiseShares::new(self.plan.variance_units, 1)?;
        let counts = self.pool()?.counts(clique)?;
        let price = noise.price(1, counts.len() as u64)?;
        self.debit(round, Spending::Sum, clique.attributes(), price)?;
        let drawn = noise.draw(counts.len(), self.rng)?;
        let cells = counts.iter().zip(drawn.iter());
        let sum: Vec<i64> = cells.map(|(&count, n)| count as i64 + n).collect();
        let scale = (self.records(), self.total);
        self.measurements
            .push(measurement(clique, &sum, noise.sum_units(), scale, true));
        Ok(())
    }

    fn choose(&mut self, round: u32, model: &Model) -> Result<usize, Error> {
        let share = self.share_used(round)?;
        let eligible = eligible(&self.setting.job, &self.graph, &self.candidates, share);
        let cliques = eligible.iter().map(|&i| self.candidates[i].clique.clone());
        let cliques: Vec<Clique> = cliques.collect();
        let scoring = Scoring {
            method: Method::Naive,
            table: self.pool()?,
            records: self.records(),
            total: model.total(),
            sigma: self.plan.sigma(),
            one_ways: &[],
        };
        let marginals = model.pair_marginals(&cliques)?;
        let candidates = eligible.iter().map(|&i| &self.candidates[i]);
        let scores = scoring.scores(candidates, &marginals, None)?;
        let heaviest = self.candidates.iter().map(|c| c.weight).max().unwrap_or(1);
        let selection = Selection::new(self.plan.epsilon, sensitivity(Method::Naive, heaviest))?;
        self.debit(round, Spending::Selection, &[], selection.rho()?)?;
        let choice = selection.choose(&scores, self.rng);
        let cap = self.setting.job.model_bytes;
        choice
            .map(|position| eligible[position])
            .ok_or(Error::NoCandidate(cap))
    }

    fn share_used(&self, round: u32) -> Result<f64, Error> {
        if round == self.setting.rounds {
            return Ok(1.0);
        }
        let upto = |rounds| -> Result<f64, Error> {
            let parts = Parts {
                rounds,
                first: true,
                proxied: 0,
            };
            Ok(self.plan.party_rho(&self.setting, parts)?.to_f64())
        };
        Ok(upto(round - 1)? / upto(self.setting.rounds)?)
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
