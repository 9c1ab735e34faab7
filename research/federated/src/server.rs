//! The server: draws the parties of each round, collects choices, adds masked marginals and fits the model.

use std::collections::BTreeMap;
use std::sync::Arc;

use fhaim_domain::{Clique, Table};
use fhaim_pgm::{Measurement, Model, ModelGraph};
use fhaim_release::CELL_BYTES;
use fhaim_synth::{Candidate, eligible};
use rand::RngCore;

use crate::client::one_ways;
use crate::fitting::{Stage, fit_model, measurement};
use crate::masks::lift;
use crate::message::{Call, Group, Reply, Request};
use crate::schedule::Schedule;
use crate::{Error, FederatedSetting, Participation};

/// The result of a run. It is differentially private unless the method is the oracle.
#[derive(Debug)]
pub struct Outcome {
    /// The fitted model.
    pub model: Model,
    /// Estimated number of records of all parties: the mean of the released numbers, times the number of parties.
    pub records: f64,
    /// Number of rounds that were run.
    pub rounds: u32,
    /// Number of noisy marginals that the model was fitted to.
    pub measurements: usize,
    /// Number of choices that were not measured because the model had no room for all choices of a round.
    pub dropped: usize,
}

/// The reply that the server waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Start,
    FirstTotals(Vec<usize>),
    FirstSums(Vec<Group>),
    /// The parties asked for their number of records, and all parties of the round.
    Totals(Vec<usize>, Vec<usize>),
    Choices(Vec<usize>),
    Sums(Vec<Group>),
    Done,
}

/// The oracle's knowledge of the pooled table: shares of the candidates' cells, and each party's number of records.
#[derive(Debug)]
struct Oracle {
    shares: Vec<Vec<f64>>,
    records: Vec<usize>,
}

/// The server's state of a run.
#[derive(Debug)]
pub struct Server {
    setting: Arc<FederatedSetting>,
    candidates: Vec<Candidate>,
    schedule: Schedule,
    participation: Participation,
    /// The number of records that each party released.
    totals: Vec<Option<i64>>,
    /// The model's number of records: the sum over the parties of the first sums.
    total: f64,
    graph: ModelGraph,
    measurements: Arc<Vec<Measurement>>,
    model: Option<Arc<Model>>,
    messages: u64,
    dropped: usize,
    oracle: Option<Oracle>,
    state: State,
}

const NO_MODEL: Error = Error::OutOfTurn("the model is not fitted yet");

impl Server {
    /// Starts a run among this number of parties.
    ///
    /// # Errors
    /// Those of [`Plan::new`](crate::Plan::new) and [`FederatedSetting::check_parties`].
    pub fn new(setting: Arc<FederatedSetting>, parties: usize) -> Result<Self, Error> {
        let schedule = Schedule::new(Arc::clone(&setting))?;
        setting.check_parties(parties)?;
        Ok(Self {
            candidates: setting.candidates(),
            participation: Participation::new(&setting, parties),
            totals: vec![None; parties],
            total: 1.0,
            graph: ModelGraph::new(&setting.job.domain),
            measurements: Arc::new(Vec::new()),
            model: None,
            messages: 0,
            dropped: 0,
            oracle: None,
            state: State::Start,
            schedule,
            setting,
        })
    }

    /// Gives the oracle the parties' tables. **Not private**; only for comparisons.
    ///
    /// # Errors
    /// [`Error::Table`] for a table over another domain.
    pub fn with_oracle(mut self, tables: &[Table]) -> Result<Self, Error> {
        let records: Vec<usize> = tables.iter().map(Table::records).collect();
        let pooled = records.iter().sum::<usize>().max(1) as f64;
        let share = |candidate: &Candidate| -> Result<Vec<f64>, Error> {
            let mut shares = vec![0.0; candidate.cells];
            for table in tables {
                let counts = table.counts(&candidate.clique)?;
                shares
                    .iter_mut()
                    .zip(counts)
                    .for_each(|(s, c)| *s += c as f64);
            }
            shares.iter_mut().for_each(|share| *share /= pooled);
            Ok(shares)
        };
        let shares = self
            .candidates
            .iter()
            .map(share)
            .collect::<Result<_, _>>()?;
        self.oracle = Some(Oracle { shares, records });
        Ok(self)
    }

    /// Takes the reply to the last request (`None` at the start) and returns the next request. `rng` draws the parties
    /// of a round, which does not depend on records.
    ///
    /// # Errors
    /// [`Error::OutOfTurn`] for a reply that was not requested; [`Error::Shape`]; errors of the fit. After an error the
    /// server must not be used again.
    pub fn step(&mut self, reply: Option<Reply>, rng: &mut dyn RngCore) -> Result<Request, Error> {
        match (std::mem::replace(&mut self.state, State::Done), reply) {
            (State::Start, None) => {
                let first = self.participation.first(rng)?;
                self.state = State::FirstTotals(first.clone());
                Ok(Request::Totals(first))
            }
            (State::FirstTotals(parties), Some(Reply::Totals(totals))) => {
                self.take_totals(&parties, &totals)?;
                self.total = self.records_of(&parties);
                Ok(self.ask_first_sums(&parties))
            }
            (State::FirstSums(groups), Some(Reply::Sums(sums))) => {
                self.take_sums(&groups, &sums)?;
                self.fit(Stage::Between)?;
                self.next_round(rng)
            }
            (State::Totals(asked, parties), Some(Reply::Totals(totals))) => {
                self.take_totals(&asked, &totals)?;
                self.ask_choices(parties)
            }
            (State::Choices(parties), Some(Reply::Choices(choices))) => {
                check_len("choices", parties.len(), choices.len())?;
                self.ask_sums(&parties, &choices)
            }
            (State::Sums(groups), Some(Reply::Sums(sums))) => {
                self.end_round(&groups, &sums)?;
                self.next_round(rng)
            }
            _ => Err(Error::OutOfTurn("the reply was not requested")),
        }
    }

    fn take_totals(&mut self, parties: &[usize], totals: &[i64]) -> Result<(), Error> {
        check_len("numbers of records", parties.len(), totals.len())?;
        for (&party, &total) in parties.iter().zip(totals) {
            self.totals[party] = Some(total);
        }
        Ok(())
    }

    /// Returns the number of records of some parties: released, or exact for the oracle. Each released number counts as
    /// at least 1.
    fn records_of(&self, parties: &[usize]) -> f64 {
        let released = |&party: &usize| self.totals[party].unwrap_or(1).max(1) as f64;
        match &self.oracle {
            Some(oracle) => parties.iter().map(|&p| oracle.records[p] as f64).sum(),
            None => parties.iter().map(released).sum(),
        }
    }

    fn ask_first_sums(&mut self, parties: &[usize]) -> Request {
        let singles = (0..self.setting.job.domain.len()).map(|a| Clique::new([a]));
        let groups: Vec<Group> = singles
            .map(|clique| self.group(clique, parties.to_vec()))
            .collect();
        self.state = State::FirstSums(groups.clone());
        Request::Sums(groups)
    }

    fn group(&mut self, clique: Clique, parties: Vec<usize>) -> Group {
        self.messages += 1;
        Group {
            message: self.messages,
            round: self.schedule.round(),
            clique,
            parties,
            variance_units: self.schedule.plan().variance_units,
        }
    }

    /// Begins the next round, or ends the run.
    fn next_round(&mut self, rng: &mut dyn RngCore) -> Result<Request, Error> {
        if self.schedule.is_last() {
            self.fit(Stage::Last)?;
            return self.outcome();
        }
        let round = self.schedule.next_round()?;
        let parties = self.participation.draw(round, rng)?;
        let new = parties.iter().copied();
        let new: Vec<usize> = new.filter(|&party| self.totals[party].is_none()).collect();
        self.state = State::Totals(new.clone(), parties);
        Ok(Request::Totals(new))
    }

    fn outcome(&mut self) -> Result<Request, Error> {
        let model = self.model.take().ok_or(NO_MODEL)?;
        Ok(Request::Done(Box::new(Outcome {
            model: Arc::unwrap_or_clone(model),
            records: estimated_records(&self.totals),
            rounds: self.schedule.round(),
            measurements: self.measurements.len(),
            dropped: self.dropped,
        })))
    }

    /// Requests choices.
    fn ask_choices(&mut self, parties: Vec<usize>) -> Result<Request, Error> {
        let share = self.schedule.share_used()?;
        let eligible = eligible(&self.setting.job, &self.graph, &self.candidates, share);
        if eligible.is_empty() {
            return Err(Error::NoCandidate(self.setting.job.model_bytes));
        }
        let model = Arc::clone(self.model.as_ref().ok_or(NO_MODEL)?);
        // A method without scores needs no marginals, and those of attributes that are far apart may be too large.
        let scored = eligible.iter().filter(|_| self.setting.method.selects());
        let cliques = scored.map(|&i| self.candidates[i].clique.clone());
        let cliques: Vec<Clique> = cliques.collect();
        let pooled = self.oracle.as_ref().map(|oracle| {
            let shares = eligible.iter().map(|&i| oracle.shares[i].clone());
            shares.collect()
        });
        let call = Call {
            round: self.schedule.round(),
            plan: *self.schedule.plan(),
            marginals: model.pair_marginals(&cliques)?,
            one_ways: one_ways(&model)?,
            measurements: Arc::clone(&self.measurements),
            model,
            eligible,
            pooled,
        };
        self.state = State::Choices(parties.clone());
        Ok(Request::Choices(parties, Arc::new(call)))
    }

    /// Requests the sums of the chosen candidates. If the model has no room for all of them, those with the most
    /// records behind them come first.
    fn ask_sums(&mut self, parties: &[usize], choices: &[Vec<usize>]) -> Result<Request, Error> {
        let mut choosers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (&party, choices) in parties.iter().zip(choices) {
            for &choice in choices {
                if choice >= self.candidates.len() {
                    return Err(Error::OutOfTurn("a chosen candidate does not exist"));
                }
                choosers.entry(choice).or_default().push(party);
            }
        }
        let mut ranked: Vec<(usize, Vec<usize>)> = choosers.into_iter().collect();
        ranked.sort_by(|one, two| {
            let records = |group: &[usize]| self.records_of(group);
            records(&two.1).total_cmp(&records(&one.1))
        });
        let proxied = self.setting.method.combines_one_ways() && !self.schedule.is_last();
        let singles = (0..self.setting.job.domain.len()).filter(|_| proxied);
        let mut groups: Vec<Group> = singles
            .map(|a| self.group(Clique::new([a]), parties.to_vec()))
            .collect();
        let cap = self.setting.job.model_bytes / CELL_BYTES;
        for (choice, group) in ranked {
            let clique = self.candidates[choice].clique.clone();
            let fits = self.graph.contains(&clique)
                || self
                    .graph
                    .cells_with(&clique)
                    .is_some_and(|cells| cells <= cap);
            if fits {
                self.graph.add(&clique);
                groups.push(self.group(clique, group));
            } else {
                self.dropped += 1;
            }
        }
        self.state = State::Sums(groups.clone());
        Ok(Request::Sums(groups))
    }

    fn take_sums(&mut self, groups: &[Group], sums: &[Vec<Vec<u64>>]) -> Result<(), Error> {
        check_len("sums", groups.len(), sums.len())?;
        let mut taken = Vec::with_capacity(groups.len());
        for (group, parts) in groups.iter().zip(sums) {
            check_len("parts of a sum", group.parties.len(), parts.len())?;
            let cells = self.setting.job.domain.cells(&group.clique).unwrap_or(0);
            for part in parts {
                check_len("cells of a part", cells, part.len())?;
            }
            let parties = u32::try_from(group.parties.len()).unwrap_or(u32::MAX);
            let units = self
                .setting
                .shares(group.variance_units, parties)?
                .sum_units();
            let scale = (self.records_of(&group.parties), self.total);
            let sum = lift(parts);
            taken.push(measurement(
                &self.setting,
                &group.clique,
                &sum,
                units,
                scale,
            ));
        }
        Arc::make_mut(&mut self.measurements).extend(taken);
        Ok(())
    }

    fn fit(&mut self, stage: Stage) -> Result<(), Error> {
        let warm = self.model.as_deref();
        let model = fit_model(&self.setting, &self.measurements, self.total, stage, warm)?;
        self.model = Some(Arc::new(model));
        Ok(())
    }

    /// Takes the sums of a round, fits the model and sets the noise of the next round.
    fn end_round(&mut self, groups: &[Group], sums: &[Vec<Vec<u64>>]) -> Result<(), Error> {
        self.take_sums(groups, sums)?;
        let before = self.model.clone().ok_or(NO_MODEL)?;
        self.fit(Stage::Between)?;
        let after = self.model.clone().ok_or(NO_MODEL)?;
        let combines = self.setting.method.combines_one_ways();
        let chosen = groups
            .iter()
            .filter(|group| !combines || group.clique.len() > 1);
        let chosen: Vec<(&Clique, f64)> = chosen
            .map(|group| (&group.clique, self.records_of(&group.parties)))
            .collect();
        self.schedule.end_round(chosen.into_iter(), &before, &after)
    }
}

/// Returns the estimated number of records of all parties, from those that released their number.
pub(crate) fn estimated_records(totals: &[Option<i64>]) -> f64 {
    let released: Vec<f64> = totals.iter().flatten().map(|&t| t.max(1) as f64).collect();
    released.iter().sum::<f64>() / released.len().max(1) as f64 * totals.len() as f64
}

fn check_len(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if expected == found {
        Ok(())
    } else {
        Err(Error::Shape {
            what,
            expected,
            found,
        })
    }
}
