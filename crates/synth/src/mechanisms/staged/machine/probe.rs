//! Merges and the probe (docs/MECHANISM.md, C, steps 2 and 3).

use fhaim_domain::Clique;

use super::super::extent::{FINE_PROBE_SCALE, LARGEST_PROBE_SCALE, most_groups};
use super::super::pair::{Pair, probe_scale};
use super::super::plan::{Candidate, CandidateStatus, Resolution};
use super::look::FIRST_LOOK;
use super::{NO_MODEL, Purpose, StagedMachine};
use crate::Error;
use crate::account::{Offer, SLACK};
use crate::mechanisms::block::{MAX_CENTRED, pair_cost};
use crate::mechanisms::merge::Merges;
use fhaim_release::WeightedPair;

/// Largest scale of a clear probe, as a share of the number of records.
const CLEAR_PROBE_SCALE: f64 = 0.002;

/// Share of an attribute's variation that a finer probe resolves, with at most [`MAX_CENTRED`] groups.
const FINE_PROBE_RESOLVES: f64 = 0.95;

/// Shares of variation that the offered blocks resolve.
pub(in super::super) const RESOLUTIONS: [f64; 7] = [0.0, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0];

impl StagedMachine {
    /// Step 2 (merges) and step 3: returns the probe, or its first look.
    pub(super) fn ask_probe(&mut self) -> Result<Vec<Offer>, Error> {
        let model = self.model.as_ref().ok_or(NO_MODEL)?;
        self.merges = (0..self.job.domain.len())
            .map(|a| Ok(Merges::new(&model.marginal(&Clique::new([a]))?)))
            .collect::<Result<_, Error>>()?;
        // The ladder's noise for a probe follows from the record bound, which the released total
        // may exceed.
        let total = model.total().min(self.job.record_bound as f64);
        let budget = self.probe_budget(self.probe_share());
        // The price counts the noise of some holders, but a probe's precision is limited by the
        // noise of all.
        let inflation = self.job.holders.inflation();
        let groups = self.most_fine_groups();
        self.fine_probe = groups.is_some();
        self.pairs = self.new_pairs(groups);
        let scale = inflation * probe_scale(&self.pairs, budget);
        if self.fine_probe && scale > FINE_PROBE_SCALE * total {
            self.fine_probe = false;
            self.pairs = self.new_pairs(None);
        }
        let scale = inflation * probe_scale(&self.pairs, budget);
        if scale > LARGEST_PROBE_SCALE * total {
            self.pairs.clear();
        }
        self.clear_probe = scale <= CLEAR_PROBE_SCALE * total;
        let mut offers = self.probe_offers(if self.looks_first() {
            FIRST_LOOK
        } else {
            self.probe_share()
        })?;
        offers.extend(self.coarse_look_offers(scale, total)?);
        Ok(offers)
    }

    /// Returns the probe's share of rho.
    pub(super) fn probe_share(&self) -> f64 {
        let pairs = self.job.workload.pairs().len();
        self.mechanism.options.probe_share_of(pairs)
    }

    /// Returns the rho of a share, minus a slack for rounding.
    pub(super) fn probe_budget(&self, share: f64) -> f64 {
        share * self.rho() * (1.0 - SLACK)
    }

    /// Returns the blocks of all pairs' probes for a share of rho.
    pub(super) fn probe_offers(&mut self, share: f64) -> Result<Vec<Offer>, Error> {
        let scale = probe_scale(&self.pairs, self.probe_budget(share));
        let mut offers = Vec::with_capacity(self.pairs.len());
        for (index, pair) in self.pairs.iter_mut().enumerate() {
            // All pairs have the same scale s, so rho is proportional to f(k_a) f(k_b).
            let share = pair_cost(pair.plan.probe) / (2.0 * scale * scale);
            let statistic = pair.blocks[0].block.statistic();
            if let Some(offer) = self.account.offer(statistic, share, self.largest_units)? {
                self.purposes.push(Purpose::Block(index, 0));
                offers.push(offer);
            }
        }
        Ok(offers)
    }

    /// Returns the largest number of groups of an attribute in a finer probe, or `None` if there is
    /// no room for one.
    fn most_fine_groups(&self) -> Option<usize> {
        let groups: Vec<usize> = (0..self.merges.len())
            .map(|a| self.probe_groups(a, Some(MAX_CENTRED)))
            .collect();
        let wanted = self.varying_pairs().map(|pair| pair.attributes);
        let wanted: Vec<[usize; 2]> = wanted.map(|pair| pair.map(|a| groups[a])).collect();
        most_groups(&wanted)
    }

    /// Returns the workload's pairs whose attributes both vary. Other pairs have nothing to
    /// measure.
    fn varying_pairs(&self) -> impl Iterator<Item = &WeightedPair> {
        let varies = |&a: &usize| {
            let merges = &self.merges[a];
            merges.categories() > 1 && merges.resolved(merges.categories()) > 0.0
        };
        let pairs = self.job.workload.pairs().iter();
        pairs.filter(move |pair| pair.attributes.iter().all(varies))
    }

    /// Returns the pairs to probe, finely with at most `fine` groups for each attribute, or
    /// coarsely.
    fn new_pairs(&self, fine: Option<usize>) -> Vec<Pair> {
        self.varying_pairs()
            .map(|pair| {
                let probe = pair.attributes.map(|a| self.probe_groups(a, fine));
                let plan = Candidate {
                    attributes: pair.attributes,
                    weight: f64::from(pair.weight),
                    resolutions: self.resolutions(pair.attributes),
                    probe,
                    probe_rho: 0.0,
                    probe_resolved: self.resolved(pair.attributes, probe),
                    distance: 0.0,
                    standing: CandidateStatus::Outside,
                    beside: false,
                };
                Pair::new(plan, &self.merges)
            })
            .collect()
    }

    fn probe_groups(&self, attribute: usize, fine: Option<usize>) -> usize {
        let wanted = |most: usize| {
            let merges = &self.merges[attribute];
            let wanted = merges.groups_resolving(FINE_PROBE_RESOLVES);
            wanted.min(most)
        };
        fine.map_or(2, wanted)
    }

    /// Returns R at a resolution.
    pub(super) fn resolved(&self, [a, b]: [usize; 2], [ka, kb]: [usize; 2]) -> f64 {
        self.merges[a].resolved(ka) * self.merges[b].resolved(kb)
    }

    /// Returns the resolutions that are offered for a pair, coarsest first.
    fn resolutions(&self, attributes: [usize; 2]) -> Vec<Resolution> {
        let mut resolutions: Vec<Resolution> = Vec::new();
        for share in RESOLUTIONS {
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
}
