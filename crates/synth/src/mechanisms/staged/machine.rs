//! A run of the staged mechanism: from each batch's answers to the next batch.

use fhaim_domain::Clique;
use fhaim_pgm::{Measurement, Model};

use super::ladder::{least_share, need};
use super::options::{STAGES, StagedOptions};
use super::pair::{Pair, probe_scale};
use super::plan::{Candidate, Fixed, PlanOptions, Resolution, Standing, plan};
use super::shares::worthwhile_shares;
use super::shrink::shrunk;
use crate::Error;
use crate::desk::{Desk, Offer, SLACK};
use crate::engine::{Next, Outcome};
use crate::mechanisms::block::{MAX_CENTRED, freedom, pair_cost};
use crate::mechanisms::columns::{Measured, OneWays};
use crate::mechanisms::fitting::{Effort, FINAL_TOLERANCE, fit_job};
use crate::mechanisms::merge::Merges;
use crate::mechanisms::score::{Prior, Residual};
use fhaim_release::Job;
use fhaim_release::Phase;
use fhaim_release::{Machine, Progress};

/// One coarse block is asked for of every pair.
const PROBE: Phase = Phase::new("probe");

/// A planned batch of blocks.
const fn stage_phase(stage: u8) -> Phase {
    Phase::numbered("stage", stage)
}

/// What a request of the current batch was for.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    /// Index into the total and the 1-ways.
    OneWay(usize),
    /// Pair, and index into its blocks.
    Block(usize, usize),
}

/// What the next step does with its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    OneWays,
    Probe,
    Stage(u8),
    Done,
}

/// A run under way.
#[derive(Debug)]
pub(super) struct StagedMachine {
    job: Job,
    options: StagedOptions,
    desk: Desk,
    state: State,
    /// The ladder has no larger variances.
    largest_units: u64,
    purposes: Vec<Purpose>,
    one_ways: OneWays,
    merges: Vec<Merges>,
    fine_probe: bool,
    /// What scorings take to be known of all pairs.
    prior: Option<Prior>,
    pairs: Vec<Pair>,
    model: Option<Model>,
}

impl StagedMachine {
    pub(super) fn new(job: Job, options: StagedOptions) -> Result<Self, Error> {
        let need = need(&job, &options)?;
        Ok(Self {
            largest_units: need.largest_variance_units,
            desk: Desk::new(&job),
            one_ways: OneWays::new(&job, options.digit_weight),
            state: State::Start,
            purposes: Vec::new(),
            merges: Vec::new(),
            fine_probe: false,
            prior: None,
            pairs: Vec::new(),
            model: None,
            job,
            options,
        })
    }

    fn rho(&self) -> f64 {
        self.job.rho.to_f64()
    }

    /// Takes the answers of the current batch to where they belong.
    fn settle(&mut self, answers: &[Vec<i64>]) -> Result<(), Error> {
        let first = self.desk.settle(answers)?;
        let purposes = std::mem::take(&mut self.purposes);
        for (purpose, release) in purposes.into_iter().zip(&self.desk.settled()[first..]) {
            let item = match purpose {
                Purpose::OneWay(item) => &mut self.one_ways.items[item],
                Purpose::Block(pair, block) => &mut self.pairs[pair].blocks[block],
            };
            item.add(release, &self.job.holders);
        }
        self.one_ways.learn();
        Ok(())
    }

    /// Step 1: the total and all 1-ways.
    fn ask_one_ways(&mut self) -> Result<Next, Error> {
        let budget = self.options.one_way_share * self.rho();
        let offers = self.one_ways.offers(&self.desk, budget)?;
        self.purposes = (0..offers.len()).map(Purpose::OneWay).collect();
        self.state = State::OneWays;
        Ok(Next::Release(self.desk.ask(Phase::ONE_WAYS, offers)?))
    }

    /// Fits what is in the model so far.
    fn fit(&self, steps: usize, tolerance: f64) -> Result<Model, Error> {
        let measurements = self.measurements();
        let effort = Effort {
            steps,
            tolerance,
            passes: self.options.passes,
        };
        fit_job(&self.job, &measurements, effort, self.model.as_ref())
    }

    fn fit_between(&mut self) -> Result<(), Error> {
        let model = self.fit(self.options.fit_steps, self.options.fit_tolerance)?;
        self.model = Some(model);
        Ok(())
    }

    /// The 1-ways and every block of every member, its probe included.
    fn measurements(&self) -> Vec<Measurement> {
        let members = self
            .pairs
            .iter()
            .filter(|pair| pair.plan.standing != Standing::Outside);
        let total = self.model.as_ref().map_or(0.0, Model::total);
        let mut measurements = self.one_ways.measurements();
        for pair in members {
            let counts: Vec<f64> = pair.expected.iter().map(|share| share * total).collect();
            let measurement = |block| match counts.as_slice() {
                [] => Measured::measurement(block),
                counts => shrunk(block, counts),
            };
            measurements.extend(pair.blocks.iter().filter_map(measurement));
        }
        measurements
    }

    /// Step 2 (merges) and step 3 (the probe).
    fn ask_probe(&mut self) -> Result<Vec<Offer>, Error> {
        let model = self.model.as_ref().ok_or(NO_MODEL)?;
        self.merges = (0..self.job.domain.len())
            .map(|a| Ok(Merges::new(&model.marginal(&Clique::new([a]))?)))
            .collect::<Result<_, Error>>()?;
        let total = model.total();
        let budget = self.options.probe_share * self.rho() * (1.0 - SLACK);
        // What is paid for is the noise of some holders; what a probe can see is limited by all.
        let inflation = self.job.holders.inflation();
        self.fine_probe = true;
        self.pairs = self.new_pairs();
        if inflation * probe_scale(&self.pairs, budget) > self.options.fine_probe_scale * total {
            self.fine_probe = false;
            self.pairs = self.new_pairs();
        }
        let scale = probe_scale(&self.pairs, budget);
        if inflation * scale > self.options.largest_probe_scale * total {
            self.pairs.clear();
        }
        let mut offers = Vec::with_capacity(self.pairs.len());
        for (index, pair) in self.pairs.iter_mut().enumerate() {
            // One scale s for all: rho in proportion to f(k_a) f(k_b).
            let share = pair_cost(pair.plan.probe) / (2.0 * scale * scale);
            let statistic = pair.blocks[0].block.statistic();
            if let Some(offer) = self.desk.offer(statistic, share, self.largest_units)? {
                self.purposes.push(Purpose::Block(index, 0));
                offers.push(offer);
            }
        }
        Ok(offers)
    }

    /// The workload's pairs whose attributes both vary; the others have nothing to measure.
    fn new_pairs(&self) -> Vec<Pair> {
        let varies = |&a: &usize| {
            let merges = &self.merges[a];
            merges.categories() > 1 && merges.resolved(merges.categories()) > 0.0
        };
        let pairs = self.job.workload.pairs().iter();
        pairs
            .filter(|pair| pair.attributes.iter().all(varies))
            .map(|pair| {
                let probe = pair.attributes.map(|a| self.probe_groups(a));
                let plan = Candidate {
                    attributes: pair.attributes,
                    weight: f64::from(pair.weight),
                    resolutions: self.resolutions(pair.attributes),
                    probe,
                    probe_rho: 0.0,
                    probe_resolved: self.resolved(pair.attributes, probe),
                    distance: 0.0,
                    standing: Standing::Outside,
                };
                Pair::new(plan, &self.merges)
            })
            .collect()
    }

    fn probe_groups(&self, attribute: usize) -> usize {
        if self.fine_probe {
            let wanted = self.merges[attribute].groups_resolving(self.options.fine_probe_resolves);
            wanted.min(MAX_CENTRED)
        } else {
            2
        }
    }

    /// R at a resolution.
    fn resolved(&self, [a, b]: [usize; 2], [ka, kb]: [usize; 2]) -> f64 {
        self.merges[a].resolved(ka) * self.merges[b].resolved(kb)
    }

    /// The resolutions on offer to a pair, coarsest first.
    fn resolutions(&self, attributes: [usize; 2]) -> Vec<Resolution> {
        let mut resolutions: Vec<Resolution> = Vec::new();
        for &share in &self.options.resolutions {
            let groups = attributes.map(|a| self.merges[a].groups_resolving(share));
            if resolutions.last().is_none_or(|last| last.groups != groups) {
                resolutions.push(Resolution {
                    groups,
                    resolved: self.resolved(attributes, groups),
                    spent: 0.0,
                });
            }
        }
        resolutions
    }

    /// Step 4, scores: sets the distance of every pair outside the model.
    fn score(&mut self) -> Result<(), Error> {
        let outside: Vec<usize> = (0..self.pairs.len())
            .filter(|&i| self.pairs[i].plan.standing == Standing::Outside)
            .filter(|&i| self.pairs[i].blocks[0].is_measured())
            .collect();
        let cliques: Vec<Clique> = outside.iter().map(|&i| self.pairs[i].clique()).collect();
        let model = self.model.as_ref().ok_or(NO_MODEL)?;
        let marginals = model.pair_marginals(&cliques)?;
        let residuals: Vec<Residual> = outside
            .iter()
            .zip(&marginals)
            .map(|(&i, marginal)| self.pairs[i].residual(marginal))
            .collect();
        let prior = match self.prior.take() {
            None => Prior::learn(self.options.scoring, &residuals),
            Some(before) => before.learn_anew(&residuals),
        };
        let total = model.total();
        for ((&i, residual), mut marginal) in outside.iter().zip(&residuals).zip(marginals) {
            self.pairs[i].plan.distance = prior.expected_distance(residual);
            if self.options.shrinkage && total > 0.0 {
                marginal.iter_mut().for_each(|count| *count /= total);
                self.pairs[i].expected = marginal;
            }
        }
        self.prior = Some(prior);
        Ok(())
    }

    /// Step 4, plan: changes the pairs' standings. Whether they should be scored anew.
    fn plan(&mut self) -> bool {
        let fixed = Fixed {
            noise_terms: self.options.one_way_weight * self.one_ways.weights.iter().sum::<f64>(),
            spent: self.one_ways.items.iter().map(|item| item.rho).sum(),
            left: self.desk.left().to_f64(),
        };
        let options = PlanOptions {
            // Every term of J that is noise has beta, and grows with what all holders add.
            beta: self.options.beta * self.job.holders.inflation(),
            gamma: if self.fine_probe {
                self.options.gamma_fine
            } else {
                self.options.gamma
            },
            model_cells: self.job.model_cells(),
            block_cells: self.options.block_cells,
            additions: if self.fine_probe {
                self.options.additions
            } else {
                usize::MAX
            },
        };
        let mut candidates = Vec::with_capacity(self.pairs.len());
        for pair in &mut self.pairs {
            pair.plan.probe_rho = pair.blocks[0].rho;
            let spent: Vec<f64> = (pair.plan.resolutions.iter())
                .map(|resolution| pair.spent_at(resolution.groups))
                .collect();
            for (resolution, spent) in pair.plan.resolutions.iter_mut().zip(spent) {
                resolution.spent = spent;
            }
            candidates.push(pair.plan.clone());
        }
        let unfinished = plan(&self.job.domain, &fixed, &options, &mut candidates);
        for (pair, planned) in self.pairs.iter_mut().zip(candidates) {
            pair.plan = planned;
            if pair.plan.standing == Standing::Outside {
                // It is scored anew before it can join.
                pair.expected = Vec::new();
            }
        }
        unfinished
    }

    /// Step 4, measure: what the stage's budget buys.
    fn ask_stage(&mut self, stage: u8) -> Result<Vec<Offer>, Error> {
        let left = self.desk.left().to_f64() * (1.0 - SLACK);
        let budget = if stage < STAGES {
            left * self.options.first_stage_share
        } else {
            left
        };
        let items = self.stage_items();
        let least = least_share(&self.job).to_f64();
        let weights: Vec<f64> = items.iter().map(|item| item.weight).collect();
        let spent: Vec<f64> = items.iter().map(|item| item.spent).collect();
        let shares = worthwhile_shares(budget, least, &weights, &spent);
        let mut offers = Vec::new();
        for (item, share) in items.iter().zip(shares) {
            if share <= 0.0 {
                continue;
            }
            let measured = match item.purpose {
                Purpose::OneWay(i) => &self.one_ways.items[i],
                Purpose::Block(pair, block) => &self.pairs[pair].blocks[block],
            };
            let statistic = measured.block.statistic();
            if let Some(offer) = self.desk.offer(statistic, share, self.largest_units)? {
                offers.push(offer);
                self.purposes.push(item.purpose);
            }
        }
        Ok(offers)
    }

    /// The total, the 1-ways and the measured members, with what was spent on them.
    fn stage_items(&mut self) -> Vec<StageItem> {
        let one_ways = self.one_ways.items.iter().zip(&self.one_ways.weights);
        let mut items: Vec<StageItem> = one_ways
            .enumerate()
            .map(|(i, (item, &weight))| StageItem {
                purpose: Purpose::OneWay(i),
                weight: self.options.one_way_weight * weight,
                spent: item.rho,
            })
            .collect();
        for (index, pair) in self.pairs.iter_mut().enumerate() {
            let Standing::Measured(at) = pair.plan.standing else {
                continue;
            };
            let groups = pair.plan.resolutions[at].groups;
            let cost = pair.plan.weight * freedom(groups[0]) * freedom(groups[1]);
            let block = pair.block_index(groups, &self.merges);
            items.push(StageItem {
                purpose: Purpose::Block(index, block),
                weight: cost.powf(2.0 / 3.0),
                spent: pair.blocks[block].rho,
            });
        }
        items
    }

    fn finish(&mut self) -> Result<Next, Error> {
        let model = self.fit(self.options.final_steps, FINAL_TOLERANCE)?;
        self.state = State::Done;
        Ok(Next::Done(Box::new(Outcome::new(model, &self.desk))))
    }

    /// Fits and goes on to the next batch that is not empty, or to the end.
    fn advance(&mut self) -> Result<Next, Error> {
        loop {
            let (state, phase) = match self.state {
                State::Start => return self.ask_one_ways(),
                State::OneWays => (State::Probe, PROBE),
                State::Probe => (State::Stage(1), stage_phase(1)),
                State::Stage(stage) if stage < STAGES => {
                    (State::Stage(stage + 1), stage_phase(stage + 1))
                }
                State::Stage(_) => return self.finish(),
                State::Done => return Err(Error::Done),
            };
            self.fit_between()?;
            let offers = match state {
                State::Stage(stage) => {
                    self.score()?;
                    while self.plan() {
                        // The new members' probes tell more about the pairs still outside.
                        self.fit_between()?;
                        self.score()?;
                    }
                    self.ask_stage(stage)?
                }
                _ => self.ask_probe()?,
            };
            self.state = state;
            if !offers.is_empty() {
                return Ok(Next::Release(self.desk.ask(phase, offers)?));
            }
        }
    }
}

const NO_MODEL: Error = Error::Internal("no model was fitted");

/// An item that a stage may spend on.
#[derive(Clone, Copy, Debug)]
struct StageItem {
    purpose: Purpose,
    /// c^(2/3).
    weight: f64,
    /// rho spent on it before, at the same resolution.
    spent: f64,
}

impl Machine for StagedMachine {
    type Outcome = Outcome;
    type Error = Error;

    fn step(&mut self, answers: &[Vec<i64>]) -> Result<Next, Error> {
        if self.state == State::Done {
            return Err(Error::Done);
        }
        self.settle(answers)?;
        self.advance()
    }

    fn progress(&self) -> Progress {
        let rounds = 3 + usize::from(STAGES);
        let (phase, round) = match self.state {
            State::Start | State::OneWays => (Phase::ONE_WAYS, 1),
            State::Probe => (PROBE, 2),
            State::Stage(stage) => (stage_phase(stage), 2 + usize::from(stage)),
            State::Done => (Phase::FIT, rounds),
        };
        Progress {
            phase,
            round,
            rounds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Domain;
    use fhaim_dp::Rho;
    use fhaim_release::{ReleaseRequest, Statistic, UNIT_VARIANCE};
    use rand::{Rng, SeedableRng, rngs::StdRng};

    /// Answers about a table of `records` records, uniform and independent, without noise.
    fn answers(requests: &[ReleaseRequest], records: i64) -> Vec<Vec<i64>> {
        let answer = |request: &ReleaseRequest| match request.statistic {
            Statistic::Total => vec![records],
            ref centred => vec![0; centred.cells()],
        };
        requests.iter().map(answer).collect()
    }

    /// Whether a run on `records` records asks about any pair.
    fn asks_about_pairs(rho: f64, records: i64) -> bool {
        let rho = Rho::from_f64_down(rho).unwrap();
        let job = Job::new(Domain::new(vec![3; 6]), rho, records as u64);
        let mut staged = StagedMachine::new(job, StagedOptions::default()).unwrap();
        let (mut given, mut pairs) = (Vec::new(), false);
        while let Next::Release(requests) = staged.step(&given).unwrap() {
            pairs |= (requests.iter()).any(|r| matches!(r.statistic, Statistic::Product(..)));
            given = answers(&requests, records);
        }
        let spent = staged.desk.spent().to_f64();
        assert!(spent > 0.98 * rho.to_f64(), "{spent} of {}", rho.to_f64());
        pairs
    }

    #[test]
    fn a_probe_that_could_tell_nothing_is_left_out() {
        // 15 pairs of two contrasts: s is some 43 records.
        assert!(!asks_about_pairs(0.01, 100));
        assert!(!asks_about_pairs(0.01, 300));
        assert!(asks_about_pairs(0.01, 400));
        assert!(asks_about_pairs(0.2, 100));
    }

    /// Blocks of pairs that the stages ask for, on counts of a uniform and independent table with
    /// noise of the size that the probe has.
    fn blocks_of_noise(options: StagedOptions, seed: u64) -> usize {
        let rho = Rho::from_f64_down(0.01).unwrap();
        let job = Job::new(Domain::new(vec![4; 12]), rho, 20_000);
        let mut staged = StagedMachine::new(job, options).unwrap();
        let mut rng = StdRng::seed_from_u64(seed);
        let (mut given, mut blocks) = (Vec::new(), 0);
        while let Next::Release(requests) = staged.step(&given).unwrap() {
            if matches!(staged.state, State::Stage(_)) {
                let pairs = requests.iter();
                let pairs = pairs.filter(|r| matches!(r.statistic, Statistic::Product(..)));
                blocks += pairs.count();
            }
            let noise = |request: &ReleaseRequest| {
                let sigma = (UNIT_VARIANCE as f64 * request.variance_units as f64).sqrt();
                let cells = request.statistic.cells();
                let values = (0..cells).map(|_| (sigma * normal(&mut rng)).round() as i64);
                values.collect::<Vec<i64>>()
            };
            let noise = requests.iter().map(noise).collect::<Vec<_>>();
            let exact = answers(&requests, 20_000);
            let sum = |(exact, noise): (Vec<i64>, Vec<i64>)| {
                exact.iter().zip(noise).map(|(x, n)| x + n).collect()
            };
            given = exact.into_iter().zip(noise).map(sum).collect();
        }
        blocks
    }

    fn normal(rng: &mut StdRng) -> f64 {
        let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// The largest variance of a pair's block in a run's stages, all pairs being far from independent.
    fn most_units_of_pairs(options: StagedOptions) -> u64 {
        let rho = Rho::from_f64_down(0.01).unwrap();
        let job = Job::new(Domain::new(vec![4; 5]), rho, 20_000);
        let mut staged = StagedMachine::new(job, options).unwrap();
        let (mut given, mut most) = (Vec::new(), 0);
        while let Next::Release(requests) = staged.step(&given).unwrap() {
            given = answers(&requests, 20_000);
            for (request, answer) in requests.iter().zip(&mut given) {
                if matches!(request.statistic, Statistic::Product(..)) {
                    answer.fill(-2_000);
                    answer[0] = 6_000;
                    if matches!(staged.state, State::Stage(_)) {
                        most = most.max(request.variance_units);
                    }
                }
            }
        }
        most
    }

    #[test]
    fn pairs_get_more_of_the_budget_where_one_ways_weigh_less() {
        let units = |one_way_weight| {
            most_units_of_pairs(StagedOptions {
                one_way_weight,
                ..StagedOptions::default()
            })
        };
        let (landed, half) = (units(1.0), units(0.5));
        assert!(0 < half && half < landed, "{half} units, {landed} before");
    }

    #[test]
    fn noise_is_not_taken_for_dependence() {
        let blocks = |options: fn() -> StagedOptions| {
            (0..8)
                .map(|seed| blocks_of_noise(options(), seed))
                .sum::<usize>()
        };
        let few = blocks(StagedOptions::recommended);
        let many = blocks(StagedOptions::default);
        assert!(
            4 * few < many,
            "{few} blocks of pairs, {many} without the mixture"
        );
    }
}
