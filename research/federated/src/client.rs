//! One party: its records, its noise, its ledger. It answers what it has paid for, and nothing twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use fhaim_domain::{Clique, Table};
use fhaim_dp::NoiseShares;
use fhaim_pgm::{Measurement, Model};
use fhaim_synth::Candidate;
use rand_chacha::ChaCha20Rng;

use crate::fitting::{Stage, fit_model, measurement};
use crate::masks::{MODULUS, PairKeys};
use crate::message::{Call, Group};
use crate::score::{Scoring, sensitivity};
use crate::{Error, FederatedSetting, Method, PartyLedger, Plan, Spending};

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
    /// What it released as its number of records.
    total: Option<i64>,
    /// The round it takes part in, and the candidates it chose there.
    round: u32,
    chosen: BTreeSet<usize>,
    /// Rounds it took part in.
    taken: u32,
    /// Sums of the round that it added to.
    summed: BTreeSet<Clique>,
    /// The number of the last sum that it added to.
    last_message: Option<u64>,
}

impl Client {
    /// A party with its records. `rng` draws its noise and choices: keyed by the operating system, unless
    /// runs are compared.
    ///
    /// # Errors
    /// [`Error::OtherDomain`]; [`Error::TooManyRecords`]; what [`Plan::new`] refuses.
    pub fn new(
        setting: Arc<FederatedSetting>,
        table: Table,
        keys: PairKeys,
        rng: ChaCha20Rng,
    ) -> Result<Self, Error> {
        if table.domain() != &setting.job.domain {
            return Err(Error::OtherDomain);
        }
        // Room for every party's counts, and for noise.
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

    /// What it has paid.
    pub fn ledger(&self) -> &PartyLedger {
        &self.ledger
    }

    /// Its number of records with noise: drawn once, the same ever after.
    ///
    /// # Errors
    /// [`Error::OverBudget`].
    pub fn total(&mut self) -> Result<i64, Error> {
        if let Some(total) = self.total {
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

    /// Takes part in a round, and says which candidates it wants measured, at most s of them.
    ///
    /// # Errors
    /// A round out of turn, or one too many; [`Error::OverBudget`]; a call of another shape.
    pub fn choose(&mut self, call: &Call) -> Result<Vec<usize>, Error> {
        self.enter(call.round)?;
        let heaviest = self.candidates.iter().map(|c| c.weight).max().unwrap_or(1);
        let sensitivity = sensitivity(self.setting.method, heaviest);
        let Some(selection) = call.plan.selection(sensitivity)? else {
            return Err(Error::OutOfTurn("a choice where nobody chooses"));
        };
        if call.eligible.iter().any(|&i| i >= self.candidates.len()) || call.eligible.is_empty() {
            return Err(Error::OutOfTurn("a candidate that there is not"));
        }
        let mut local: Option<Local> = None;
        for step in 1..=self.setting.local_steps {
            let scores = self.scores(call, local.as_ref())?;
            self.ledger
                .debit(self.round, Spending::Selection, &[], selection.rho()?)?;
            let Some(position) = selection.choose(&scores, &mut self.rng) else {
                return Err(Error::OutOfTurn("nothing to choose from"));
            };
            let choice = call.eligible[position];
            self.chosen.insert(choice);
            if step < self.setting.local_steps {
                local = Some(self.measure_locally(call, choice, local)?);
            }
        }
        Ok(self.chosen.iter().copied().collect())
    }

    /// Takes part in a round: pays nothing yet.
    fn enter(&mut self, round: u32) -> Result<(), Error> {
        if round <= self.round {
            return Err(Error::OutOfTurn("a round that was before"));
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
        let (marginals, one_ways) = match local {
            Some(local) => (&local.marginals, &local.one_ways),
            None => (&call.marginals, &call.one_ways),
        };
        let scoring = Scoring {
            method: self.setting.method,
            table: &self.table,
            records: self.records()?,
            total: call.model.total(),
            sigma: call.plan.sigma(),
            one_ways,
        };
        let candidates = call.eligible.iter().map(|&i| &self.candidates[i]);
        scoring.scores(candidates, marginals, call.pooled.as_deref())
    }

    /// What it released as its number of records, at least 1.
    fn records(&self) -> Result<f64, Error> {
        let total = self.total;
        let total = total.ok_or(Error::OutOfTurn("a round before the number of records"))?;
        Ok(total.max(1) as f64)
    }

    /// A marginal with noise of the party's own, and a model of the party's own with it.
    fn measure_locally(
        &mut self,
        call: &Call,
        choice: usize,
        before: Option<Local>,
    ) -> Result<Local, Error> {
        let clique = self.candidates[choice].clique.clone();
        let noise = NoiseShares::new(call.plan.variance_units, 1)?;
        let counts = self.table.counts(&clique)?;
        let price = noise.price(1, counts.len() as u64)?;
        self.ledger.debit(
            self.round,
            Spending::LocalMeasurement,
            clique.attributes(),
            price,
        )?;
        let noise_drawn = noise.draw(counts.len(), &mut self.rng)?;
        let cells = counts.iter().zip(noise_drawn.iter());
        let noisy: Vec<i64> = cells.map(|(&count, n)| count as i64 + n).collect();
        let (records, total) = (self.records()?, call.model.total());
        let weighs = self.setting.method.weighs_records();
        let measured = measurement(&clique, &noisy, noise.sum_units(), (records, total), weighs);
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
        let one_ways = one_ways(&model)?;
        Ok(Local {
            marginals: model.pair_marginals(&cliques)?,
            one_ways,
            measurements,
        })
    }

    /// Its part of a sum: the marginal with its share of the noise, masked.
    ///
    /// # Errors
    /// A sum that it did not choose and that the method does not ask for, a number or a group that is none;
    /// [`Error::OverBudget`].
    pub fn add(&mut self, group: &Group) -> Result<Vec<u64>, Error> {
        if self.setting.method == Method::Random && group.round > self.round {
            // Nobody asked it to choose: the sum is what tells it of the round.
            self.enter(group.round)?;
        }
        self.check_group(group)?;
        let parties = u32::try_from(group.parties.len()).unwrap_or(u32::MAX);
        let noise = NoiseShares::new(group.variance_units, parties)?;
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
            return refuse("a sum's number that was used before");
        }
        let known = group.parties.iter().all(|&p| p < self.keys.parties());
        let ascending = group.parties.is_sorted_by(|one, two| one < two);
        if !known || !ascending || !group.parties.contains(&self.keys.party()) {
            return refuse("a group that this party is not in, or that is none");
        }
        if group.round != self.round || self.summed.contains(&group.clique) {
            return refuse("a sum of another round, or the same again");
        }
        let chosen = self.chosen.iter();
        let mut chosen = chosen.map(|&i| &self.candidates[i].clique);
        let asked = match (group.round, self.setting.method) {
            (0, _) => group.clique.len() == 1,
            (_, Method::Random) => self.summed.is_empty(),
            (_, Method::AugPrivate) if group.clique.len() == 1 => true,
            _ => chosen.any(|clique| *clique == group.clique),
        };
        if asked {
            Ok(())
        } else {
            refuse("a sum that was not chosen")
        }
    }
}

/// A client's own model within a round.
struct Local {
    marginals: Vec<Vec<f64>>,
    one_ways: Vec<Vec<f64>>,
    measurements: Vec<Measurement>,
}

/// All 1-ways of a model.
pub(crate) fn one_ways(model: &Model) -> Result<Vec<Vec<f64>>, Error> {
    (0..model.domain().len())
        .map(|attribute| Ok(model.marginal(&Clique::new([attribute]))?))
        .collect()
}
