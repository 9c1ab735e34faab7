//! A party: its records, its noise and its ledger. It only makes releases that it has paid for, and makes none twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use fhaim_domain::{Clique, Table};
use fhaim_dp::{NoiseShares, Selection};
use fhaim_pgm::{Measurement, Model};
use fhaim_synth::Candidate;
use rand::Rng;
use rand_chacha::ChaCha20Rng;

use crate::fitting::{Stage, fit_model, measurement};
use crate::masks::{MODULUS, PairKeys};
use crate::message::{Call, Group};
use crate::score::{Scoring, sensitivity};
use crate::{Accounting, Error, FederatedSetting, PartyLedger, Plan, Spending};

/// A party of a run.
#[derive(Debug)]
pub struct Client {
    setting: Arc<FederatedSetting>,
    candidates: Vec<Candidate>,
    plan: Plan,
    table: Table,
    keys: PairKeys,
    rng: ChaCha20Rng,
    ledger: PartyLedger,
    /// The number of records that the party released.
    total: Option<i64>,
    /// The round in which the party takes part, and the candidates that it chose in it.
    round: u32,
    chosen: BTreeSet<usize>,
    /// Number of rounds in which the party took part.
    taken: u32,
    /// Marginals that the party added to sums of the current round.
    summed: BTreeSet<Clique>,
    /// The number of the last sum to which the party added.
    last_message: Option<u64>,
}

impl Client {
    /// Creates a party with its records. `rng` draws its noise and choices. Key it from the operating system, except to
    /// reproduce runs.
    ///
    /// # Errors
    /// [`Error::OtherDomain`]; [`Error::TooManyRecords`]; errors of [`Plan::new`].
    pub fn new(
        setting: Arc<FederatedSetting>,
        table: Table,
        keys: PairKeys,
        rng: ChaCha20Rng,
    ) -> Result<Self, Error> {
        if table.domain() != &setting.job.domain {
            return Err(Error::OtherDomain);
        }
        // Leaves room for the counts of all parties, and for noise.
        if table.records() as u64 >= MODULUS / 8 / keys.parties().max(1) as u64 {
            return Err(Error::TooManyRecords(table.records()));
        }
        Ok(Self {
            candidates: setting.candidates(),
            plan: Plan::new(&setting)?,
            ledger: PartyLedger::new(setting.job.rho),
            setting,
            table,
            keys,
            rng,
            total: None,
            round: 0,
            chosen: BTreeSet::new(),
            taken: 0,
            summed: BTreeSet::new(),
            last_message: None,
        })
    }

    /// Returns the party's payments.
    pub fn ledger(&self) -> &PartyLedger {
        &self.ledger
    }

    /// Returns the number of records with noise, or exactly under [`Accounting::Printed`]. It is drawn once and stays
    /// the same.
    ///
    /// # Errors
    /// [`Error::OverBudget`].
    pub fn total(&mut self) -> Result<i64, Error> {
        if let Some(total) = self.total {
            return Ok(total);
        }
        if self.setting.accounting == Accounting::Printed {
            let total = self.table.records() as i64;
            self.total = Some(total);
            return Ok(total);
        }
        let noise = NoiseShares::new(self.plan.total_units, 1)?;
        self.ledger
            .debit(self.round, Spending::Total, &[], noise.price(1, 1)?)?;
        // A table has less than 2^45 records.
        let total = self.table.records() as i64 + noise.draw(1, &mut self.rng)?[0];
        self.total = Some(total);
        Ok(total)
    }

    /// Takes part in a round and returns the candidates that the party wants measured, at most s of them.
    ///
    /// # Errors
    /// [`Error::OutOfTurn`] for a round that has passed, or for an invalid call; [`Error::TooOften`];
    /// [`Error::OverBudget`].
    pub fn choose(&mut self, call: &Call) -> Result<Vec<usize>, Error> {
        self.enter(call.round)?;
        let heaviest = self.candidates.iter().map(|c| c.weight).max().unwrap_or(1);
        let sensitivity = sensitivity(self.setting.method, heaviest);
        let selection = call.plan.selection(sensitivity)?;
        if selection.is_some() != self.setting.method.selects() {
            return Err(Error::OutOfTurn(
                "the call's noise does not fit the method of this run",
            ));
        }
        if call.eligible.iter().any(|&i| i >= self.candidates.len()) || call.eligible.is_empty() {
            return Err(Error::OutOfTurn(
                "the call has no candidates, or unknown ones",
            ));
        }
        let mut local: Option<Local> = None;
        for step in 1..=self.setting.local_steps {
            let position = match &selection {
                Some(selection) => self.select(call, local.as_ref(), selection)?,
                None => self.rng.random_range(0..call.eligible.len()),
            };
            let choice = call.eligible[position];
            self.chosen.insert(choice);
            if step < self.setting.local_steps && selection.is_some() {
                local = Some(self.measure_locally(call, choice, local)?);
            }
        }
        Ok(self.chosen.iter().copied().collect())
    }

    /// Chooses among the eligible candidates with the exponential mechanism.
    fn select(
        &mut self,
        call: &Call,
        local: Option<&Local>,
        selection: &Selection,
    ) -> Result<usize, Error> {
        let scores = self.scores(call, local)?;
        self.ledger
            .debit(self.round, Spending::Selection, &[], selection.rho()?)?;
        selection
            .choose(&scores, &mut self.rng)
            .ok_or(Error::OutOfTurn("there are no candidates to choose from"))
    }

    /// Enters a round. This costs nothing.
    fn enter(&mut self, round: u32) -> Result<(), Error> {
        if round <= self.round {
            return Err(Error::OutOfTurn("the round has already passed"));
        }
        if self.taken >= self.setting.most_rounds {
            return Err(Error::TooOften(self.taken + 1));
        }
        self.taken += 1;
        self.round = round;
        self.chosen.clear();
        self.summed.clear();
        Ok(())
    }

    fn scores(&self, call: &Call, local: Option<&Local>) -> Result<Vec<i64>, Error> {
        let marginals = local.map_or(&call.marginals, |local| &local.marginals);
        let scoring = Scoring {
            method: self.setting.method,
            table: &self.table,
            records: self.records()?,
            total: call.model.total(),
            sigma: call.plan.sigma(),
            // The penalty is that of the global model in all local steps (Algorithm 1, line 7).
            one_ways: &call.one_ways,
        };
        let candidates = call.eligible.iter().map(|&i| &self.candidates[i]);
        scoring.scores(candidates, marginals, call.pooled.as_deref())
    }

    /// Returns the released number of records, at least 1.
    fn records(&self) -> Result<f64, Error> {
        let total = self.total;
        let total = total.ok_or(Error::OutOfTurn(
            "the number of records is not released yet",
        ))?;
        Ok(total.max(1) as f64)
    }

    /// Measures a marginal with the party's own noise, and fits a local model with it.
    fn measure_locally(
        &mut self,
        call: &Call,
        choice: usize,
        before: Option<Local>,
    ) -> Result<Local, Error> {
        let clique = self.candidates[choice].clique.clone();
        let noise = NoiseShares::new(call.plan.variance_units, 1)?;
        let counts = self.table.counts(&clique)?;
        if self.setting.accounting == Accounting::Corrected {
            let price = noise.price(1, counts.len() as u64)?;
            let (kind, attributes) = (Spending::LocalMeasurement, clique.attributes());
            self.ledger.debit(self.round, kind, attributes, price)?;
        }
        let noise_drawn = noise.draw(counts.len(), &mut self.rng)?;
        let cells = counts.iter().zip(noise_drawn.iter());
        let noisy: Vec<i64> = cells.map(|(&count, n)| count as i64 + n).collect();
        let (records, total) = (self.records()?, call.model.total());
        let units = noise.sum_units();
        let measured = measurement(&self.setting, &clique, &noisy, units, (records, total));
        let mut measurements = match before {
            Some(local) => local.measurements,
            None => call.measurements.to_vec(),
        };
        measurements.push(measured);
        let model = fit_model(
            &self.setting,
            &measurements,
            total,
            Stage::Between,
            Some(&call.model),
        )?;
        let eligible = call.eligible.iter();
        let cliques: Vec<Clique> = eligible
            .map(|&i| self.candidates[i].clique.clone())
            .collect();
        Ok(Local {
            marginals: model.pair_marginals(&cliques)?,
            measurements,
        })
    }

    /// Returns the party's part of a sum: the marginal with its share of the noise, masked.
    ///
    /// # Errors
    /// [`Error::OutOfTurn`] for an invalid group or number, and for a sum that the party did not choose and the method
    /// does not require; [`Error::OverBudget`].
    pub fn add(&mut self, group: &Group) -> Result<Vec<u64>, Error> {
        self.check_group(group)?;
        let parties = u32::try_from(group.parties.len()).unwrap_or(u32::MAX);
        let noise = self.setting.shares(group.variance_units, parties)?;
        let counts = self.table.counts(&group.clique)?;
        let price = noise.price(1, counts.len() as u64)?;
        let attributes = group.clique.attributes();
        self.ledger
            .debit(group.round, Spending::Sum, attributes, price)?;
        self.last_message = Some(group.message);
        self.summed.insert(group.clique.clone());
        let drawn = noise.draw(counts.len(), &mut self.rng)?;
        let cells = counts.iter().zip(drawn.iter());
        let noisy: Vec<i64> = cells.map(|(&count, n)| count as i64 + n).collect();
        Ok(self.keys.mask(&noisy, &group.parties, group.message))
    }

    fn check_group(&self, group: &Group) -> Result<(), Error> {
        let refuse = |what| Err(Error::OutOfTurn(what));
        if self.last_message.is_some_and(|last| group.message <= last) {
            return refuse("the number of the sum was used before");
        }
        let known = group.parties.iter().all(|&p| p < self.keys.parties());
        let ascending = group.parties.is_sorted_by(|one, two| one < two);
        if !known || !ascending || !group.parties.contains(&self.keys.party()) {
            return refuse("the group is invalid, or does not include this party");
        }
        if group.round != self.round || self.summed.contains(&group.clique) {
            return refuse("the sum is of another round, or was already answered");
        }
        let chosen = self.chosen.iter();
        let mut chosen = chosen.map(|&i| &self.candidates[i].clique);
        let asked = match (group.round, group.clique.len()) {
            (0, size) => size == 1,
            (_, 1) if self.setting.method.combines_one_ways() => true,
            _ => chosen.any(|clique| *clique == group.clique),
        };
        if asked {
            Ok(())
        } else {
            refuse("the sum was not chosen")
        }
    }
}

/// A client's local model within a round.
struct Local {
    marginals: Vec<Vec<f64>>,
    measurements: Vec<Measurement>,
}

/// Returns all 1-ways of a model.
pub(crate) fn one_ways(model: &Model) -> Result<Vec<Vec<f64>>, Error> {
    (0..model.domain().len())
        .map(|attribute| Ok(model.marginal(&Clique::new([attribute]))?))
        .collect()
}
