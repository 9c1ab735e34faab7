//! The state of a pair of the workload in a plan.

use fhaim_domain::Clique;
use fhaim_pgm::ModelGraph;

use crate::mechanisms::block::{freedom, functions};
use crate::mechanisms::score::MEAN_ABS;

/// The standing of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateStatus {
    /// Not in the model.
    Outside,
    /// In the model, with only its probe.
    ProbeOnly,
    /// In the model, and measured at `resolutions[_]`.
    Measured(usize),
}

impl CandidateStatus {
    /// Returns its position among a candidate's standings, each of which distinguishes more groups
    /// than those before.
    pub(super) fn position(self) -> usize {
        match self {
            Self::Outside => 0,
            Self::ProbeOnly => 1,
            Self::Measured(index) => 2 + index,
        }
    }
}

/// A resolution at which a pair may be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    /// Groups of the two attributes.
    pub groups: [usize; 2],
    /// R: the share of the pair's variation that the groups resolve.
    pub resolved: f64,
    /// rho already spent on the pair at exactly this resolution.
    pub spent: f64,
}

/// The state of a pair of the workload in a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The attributes, ascending.
    pub attributes: [usize; 2],
    /// The workload's weight.
    pub weight: f64,
    /// Offered resolutions, coarsest first.
    pub resolutions: Vec<Resolution>,
    /// Groups of the probe.
    pub probe: [usize; 2],
    /// The pair's share of the probe.
    pub probe_rho: f64,
    /// R at the probe.
    pub probe_resolved: f64,
    /// G: expected L1 distance from the model without the pair (unweighted).
    pub distance: f64,
    /// The pair's standing, which the plan changes.
    pub standing: CandidateStatus,
    /// Whether this is an extra pair: it is measured, but its measurements stay outside the model,
    /// which has no room for it. The plan changes this.
    pub beside: bool,
}

impl Candidate {
    pub(super) fn clique(&self) -> Clique {
        Clique::new(self.attributes)
    }

    /// Returns the groups that the model distinguishes for the pair in a standing. The probe of a
    /// pair in the model is fitted too.
    pub(super) fn groups(&self, standing: CandidateStatus) -> [usize; 2] {
        let [pa, pb] = self.probe;
        match standing {
            CandidateStatus::Outside => [1, 1],
            CandidateStatus::ProbeOnly => self.probe,
            CandidateStatus::Measured(index) => {
                let [ka, kb] = self.resolutions[index].groups;
                [ka.max(pa), kb.max(pb)]
            }
        }
    }

    /// Returns the resolution at which the pair is measured in a standing.
    pub(super) fn measured_at(&self, standing: CandidateStatus) -> Option<&Resolution> {
        match standing {
            CandidateStatus::Measured(index) => Some(&self.resolutions[index]),
            CandidateStatus::Outside | CandidateStatus::ProbeOnly => None,
        }
    }

    /// Adds the pair to a model's graph, in a standing.
    pub(super) fn join(&self, standing: CandidateStatus, graph: &mut ModelGraph) {
        if standing != CandidateStatus::Outside && !self.beside {
            let groups = self.groups(standing);
            (self.attributes.iter().zip(groups)).for_each(|(&a, k)| graph.refine(a, k));
            graph.add(&self.clique());
        }
    }

    /// Returns c^(2/3) of the pair measured at a resolution.
    pub(super) fn noise_term(&self, resolution: &Resolution) -> f64 {
        let [ka, kb] = resolution.groups;
        (self.weight * freedom(ka) * freedom(kb)).powf(2.0 / 3.0)
    }

    /// Returns the pair's own terms of J in a standing.
    pub(super) fn own_term(&self, standing: CandidateStatus, beta: f64) -> f64 {
        match standing {
            CandidateStatus::Outside => self.weight * self.distance,
            CandidateStatus::ProbeOnly => {
                let [ka, kb] = self.probe;
                let noise = MEAN_ABS * freedom(ka) * freedom(kb) / (2.0 * self.probe_rho).sqrt();
                let hidden = (1.0 - self.probe_resolved).max(0.0);
                self.weight * (beta * noise + self.distance * hidden.sqrt())
            }
            CandidateStatus::Measured(index) => {
                let hidden = (1.0 - self.resolutions[index].resolved).max(0.0);
                self.weight * self.distance * hidden.sqrt()
            }
        }
    }
}

/// Returns the number of integers that a block releases.
pub(super) fn block_cells(resolution: &Resolution) -> usize {
    let [ka, kb] = resolution.groups;
    functions(ka) * functions(kb)
}
