//! A stage: scores, a plan, and the requests that its budget pays for (docs/MECHANISM.md, C, step
//! 4).

use fhaim_domain::Clique;
use fhaim_pgm::Model;

use super::super::extent::{model_cells, stage_cells};
use super::super::ladder::least_share;
use super::super::options::STAGES;
use super::super::pair::COARSE;
use super::super::plan::{
    Candidate, CandidateStatus, Fixed, PlanOptions, best_gamma, plan, plan_beside,
};
use super::super::shares::worthwhile_shares;
use super::{NO_MODEL, Purpose, StagedMachine};
use crate::Error;
use crate::account::{Offer, SLACK};
use crate::mechanisms::block::freedom;
use crate::mechanisms::score::{Prior, Residual};

/// Share of the remaining rho for stage 1. Stage 2 gets the rest.
const FIRST_STAGE_SHARE: f64 = 0.5;

/// Weight of total and 1-ways relative to pairs, in plans and in a stage's spending. An error in a
/// 1-way is hardly visible in a pair that has a larger error for another reason. A weight of 1
/// would treat these errors as if they added up.
pub(in super::super) const ONE_WAY_WEIGHT: f64 = 0.5;

/// beta, the weight of noise relative to dependences outside the model: in general, and after a
/// clear probe. After a clear probe nearly all pairs are measured, and their errors add up to less
/// than their sum.
const BETA: f64 = 0.85;
const CLEAR_BETA: f64 = 0.6;

/// Candidates for gamma. Each stage uses the one whose complete plan has the lowest J.
const PENALTIES: [f64; 4] = [0.1, 0.25, 0.5, 0.75];

/// gamma if the choice among [`PENALTIES`] is left out.
const PENALTY: f64 = 0.5;

/// Number of pairs that join the model between two scorings of a stage, after a finer probe. A
/// coarse probe is too imprecise to show what the new members leave unexplained.
pub(in super::super) const ADDITIONS: usize = 4;

/// An item that a stage may measure.
#[derive(Clone, Copy, Debug)]
struct StageItem {
    purpose: Purpose,
    /// c^(2/3).
    weight: f64,
    /// rho spent on it so far, at the same resolution.
    spent: f64,
}

impl StagedMachine {
    /// Step 4, scores and plan. After a finer probe the two alternate, with a few pairs joining
    /// between two scorings.
    pub(super) fn plan_stage(&mut self) -> Result<(), Error> {
        self.score()?;
        let gamma = self.gamma();
        while self.plan(gamma) {
            // The new members' probes tell more about the pairs still outside.
            self.fit_between()?;
            self.score()?;
        }
        if self.mechanism.options.extra_pairs {
            self.plan_beside(gamma);
        }
        Ok(())
    }

    /// Step 4, plan: plans the extra pairs, for which the model has no room.
    fn plan_beside(&mut self, gamma: f64) {
        let mut candidates = self.candidates();
        let options = self.plan_options(gamma);
        plan_beside(&self.job.domain, &self.fixed(), &options, &mut candidates);
        for (pair, planned) in self.pairs.iter_mut().zip(candidates) {
            pair.plan = planned;
        }
    }

    /// Returns the differences of these pairs' probes from the model, and the model's counts.
    pub(super) fn residuals(
        &self,
        pairs: &[usize],
    ) -> Result<(Vec<Residual>, Vec<Vec<f64>>), Error> {
        let cliques: Vec<Clique> = pairs.iter().map(|&i| self.pairs[i].clique()).collect();
        let model = self.model.as_ref().ok_or(NO_MODEL)?;
        let marginals = model.pair_marginals(&cliques)?;
        let residuals = pairs.iter().zip(&marginals);
        let residuals = residuals.map(|(&i, marginal)| self.pairs[i].residual(marginal));
        Ok((residuals.collect(), marginals))
    }

    /// As [`Self::residuals`], for the blocks of a coarse look. Pairs without such a block have
    /// `None`.
    pub(super) fn coarse_residuals(
        &self,
        pairs: &[usize],
        marginals: &[Vec<f64>],
    ) -> Vec<Option<Residual>> {
        let residuals = pairs.iter().zip(marginals).map(|(&i, marginal)| {
            let pair = &self.pairs[i];
            pair.coarse_residual(self.resolved(pair.plan.attributes, COARSE), marginal)
        });
        residuals.collect()
    }

    /// Returns the expected distances of pairs, each the larger one of those from its probe and
    /// from its coarse look.
    fn distances(&mut self, residuals: &[Residual], coarse: &[Option<Residual>]) -> Vec<f64> {
        let prior = self.next_prior(self.prior.as_ref(), residuals);
        let looks: Vec<Residual> = coarse.iter().flatten().cloned().collect();
        let coarse_prior = self.next_prior(self.coarse_prior.as_ref(), &looks);
        let distances = residuals.iter().zip(coarse).map(|(probe, coarse)| {
            let coarse = coarse
                .as_ref()
                .map(|coarse| coarse_prior.expected_distance(coarse));
            prior.expected_distance(probe).max(coarse.unwrap_or(0.0))
        });
        let distances = distances.collect();
        self.prior = Some(prior);
        self.coarse_prior = Some(coarse_prior);
        distances
    }

    /// Returns the prior for a scoring, given the one of the previous scoring.
    fn next_prior(&self, before: Option<&Prior>, residuals: &[Residual]) -> Prior {
        match before {
            Some(before) => before.learn_again(residuals),
            None if self.mechanism.ablations.mixture_prior => Prior::single(residuals),
            None => Prior::learn(residuals),
        }
    }

    /// Step 4, scores: sets the distance of every pair outside the model.
    fn score(&mut self) -> Result<(), Error> {
        let outside: Vec<usize> = (0..self.pairs.len())
            .filter(|&i| self.pairs[i].plan.standing == CandidateStatus::Outside)
            .filter(|&i| self.pairs[i].blocks[0].is_measured())
            .collect();
        let (residuals, marginals) = self.residuals(&outside)?;
        let coarse = self.coarse_residuals(&outside, &marginals);
        let distances = self.distances(&residuals, &coarse);
        let total = self.model.as_ref().map_or(0.0, Model::total);
        for ((&i, distance), mut marginal) in outside.iter().zip(distances).zip(marginals) {
            self.pairs[i].plan.distance = distance;
            if !self.mechanism.ablations.shrinkage && total > 0.0 {
                marginal.iter_mut().for_each(|count| *count /= total);
                self.pairs[i].expected = marginal;
            }
        }
        Ok(())
    }

    /// Returns the exponent of the model's growth for this stage's plan.
    fn gamma(&mut self) -> f64 {
        if self.mechanism.ablations.penalties {
            return PENALTY;
        }
        let candidates = self.candidates();
        let options = self.plan_options(PENALTY);
        let domain = &self.job.domain;
        best_gamma(domain, &self.fixed(), &options, &PENALTIES, &candidates)
    }

    fn fixed(&self) -> Fixed {
        Fixed {
            noise_terms: ONE_WAY_WEIGHT * self.one_ways.weights.iter().sum::<f64>(),
            spent: self.one_ways.items.iter().map(|item| item.rho).sum(),
            left: self.account.left().to_f64(),
        }
    }

    fn plan_options(&self, gamma: f64) -> PlanOptions {
        let beta = match self.clear_probe && !self.mechanism.ablations.clear_probe {
            true => CLEAR_BETA,
            false => BETA,
        };
        PlanOptions {
            // beta multiplies every noise term of J, so it includes the noise of all holders.
            beta: beta * self.job.holders.inflation(),
            gamma,
            model_cells: model_cells(&self.job),
            beside_cells: self.job.model_cells(),
            block_cells: stage_cells(&self.job),
            additions: if self.fine_probe {
                ADDITIONS
            } else {
                usize::MAX
            },
        }
    }

    /// Returns the pairs' states for the plan, updated with the rho spent so far.
    fn candidates(&mut self) -> Vec<Candidate> {
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
        candidates
    }

    /// Step 4, plan: changes the pairs' standings. Returns whether the pairs should be scored
    /// again.
    fn plan(&mut self, gamma: f64) -> bool {
        let mut candidates = self.candidates();
        let options = self.plan_options(gamma);
        let unfinished = plan(&self.job.domain, &self.fixed(), &options, &mut candidates);
        for (pair, planned) in self.pairs.iter_mut().zip(candidates) {
            pair.plan = planned;
            if pair.plan.standing == CandidateStatus::Outside {
                // The pair is scored again before it can join.
                pair.expected = Vec::new();
            }
        }
        unfinished
    }

    /// Step 4, measure: returns the requests that the stage's budget pays for.
    pub(super) fn ask_stage(&mut self, stage: u8) -> Result<Vec<Offer>, Error> {
        let left = self.account.left().to_f64() * (1.0 - SLACK);
        let budget = if stage < STAGES {
            left * FIRST_STAGE_SHARE
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
            if let Some(offer) = self.account.offer(statistic, share, self.largest_units)? {
                offers.push(offer);
                self.purposes.push(item.purpose);
            }
        }
        Ok(offers)
    }

    /// Returns the total, the 1-ways and the measured pairs, with the rho spent on them so far.
    fn stage_items(&mut self) -> Vec<StageItem> {
        let one_ways = self.one_ways.items.iter().zip(&self.one_ways.weights);
        let mut items: Vec<StageItem> = one_ways
            .enumerate()
            .map(|(i, (item, &weight))| StageItem {
                purpose: Purpose::OneWay(i),
                weight: ONE_WAY_WEIGHT * weight,
                spent: item.rho,
            })
            .collect();
        for (index, pair) in self.pairs.iter_mut().enumerate() {
            let CandidateStatus::Measured(at) = pair.plan.standing else {
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
}
