//! What a run is about: domain, workload, budget, bounds. All of it public.

use fhaim_domain::{Clique, Domain};
use fhaim_dp::{Leak, Rho};
use serde::{Deserialize, Serialize};

use crate::{Error, Holders, Tariff};

/// Bytes of one model cell.
pub const CELL_BYTES: usize = 8;

/// Model cap unless the user names another: 64 MB.
pub const DEFAULT_MODEL_BYTES: usize = 64_000_000;

/// The pairs of attributes whose marginals should come out right, and how much each counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    pairs: Vec<WeightedPair>,
}

/// One pair of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightedPair {
    /// The two attributes, ascending.
    pub attributes: [usize; 2],
    /// Weight of the pair's error; at least 1.
    pub weight: u32,
}

impl WeightedPair {
    /// The pair as a clique.
    pub fn clique(&self) -> Clique {
        Clique::new(self.attributes)
    }
}

impl Workload {
    /// All pairs of attributes, each with weight 1, in lexicographic order.
    pub fn all_pairs(domain: &Domain) -> Self {
        let d = domain.len();
        let pairs = (0..d)
            .flat_map(|a| {
                (a + 1..d).map(move |b| WeightedPair {
                    attributes: [a, b],
                    weight: 1,
                })
            })
            .collect();
        Self { pairs }
    }

    /// All pairs, those of attribute `target` with weight `weight`.
    pub fn all_pairs_with_target(domain: &Domain, target: usize, weight: u32) -> Self {
        let mut workload = Self::all_pairs(domain);
        for pair in &mut workload.pairs {
            if pair.attributes.contains(&target) {
                pair.weight = weight.max(1);
            }
        }
        workload
    }

    /// A workload of the given pairs (either order) and weights; weight 0 leaves a pair out.
    ///
    /// # Errors
    /// A pair outside the domain, of one attribute with itself, or given twice.
    pub fn new(
        domain: &Domain,
        pairs: impl IntoIterator<Item = ([usize; 2], u32)>,
    ) -> Result<Self, Error> {
        let mut kept: Vec<WeightedPair> = Vec::new();
        for ([a, b], weight) in pairs {
            if a == b || a.max(b) >= domain.len() {
                return Err(Error::WorkloadPair(a, b));
            }
            let attributes = [a.min(b), a.max(b)];
            if kept.iter().any(|pair| pair.attributes == attributes) {
                return Err(Error::RepeatedPair(a, b));
            }
            if weight > 0 {
                kept.push(WeightedPair { attributes, weight });
            }
        }
        kept.sort_by_key(|pair| pair.attributes);
        Ok(Self { pairs: kept })
    }

    /// The pairs, in lexicographic order.
    pub fn pairs(&self) -> &[WeightedPair] {
        &self.pairs
    }

    /// Sum of the weights of all pairs.
    pub fn weight(&self) -> f64 {
        self.pairs.iter().map(|pair| f64::from(pair.weight)).sum()
    }

    /// Sum of the weights of the pairs with `attribute` in them.
    pub fn weight_of(&self, attribute: usize) -> f64 {
        self.pairs
            .iter()
            .filter(|pair| pair.attributes.contains(&attribute))
            .map(|pair| f64::from(pair.weight))
            .sum()
    }

    /// Sum of the weights of each attribute's pairs, by attribute. AIM's weight of a clique q, the
    /// sum over the workload's pairs r of weight times |q and r|, is the sum of its attributes'.
    /// Worked out for all at once: pair by pair it would take seconds for a wide table.
    pub fn attribute_weights(&self, domain: &Domain) -> Vec<u64> {
        let mut weights = vec![0; domain.len()];
        for pair in &self.pairs {
            for &attribute in &pair.attributes {
                if let Some(weight) = weights.get_mut(attribute) {
                    *weight += u64::from(pair.weight);
                }
            }
        }
        weights
    }
}

/// One run of a mechanism: everything it may know before its first release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Sizes of the attributes.
    pub domain: Domain,
    /// What should come out right.
    pub workload: Workload,
    /// The whole budget, a hard cap.
    pub rho: Rho,
    /// N: no table of the dataset has more records.
    pub record_bound: u64,
    /// Charged for each release beside its noise: what residual ciphertext noise may tell the
    /// decryptor. Zero in the clear; the same value gives the same releases.
    pub leak: Leak,
    /// Most bytes the model's junction tree may take.
    pub model_bytes: usize,
    /// Who holds the table, and on whose noise its price relies.
    #[serde(default, skip_serializing_if = "Holders::is_one")]
    pub holders: Holders,
}

impl Job {
    /// A job over all pairs with the default model cap and no leak.
    pub fn new(domain: Domain, rho: Rho, record_bound: u64) -> Self {
        Self {
            workload: Workload::all_pairs(&domain),
            domain,
            rho,
            record_bound,
            leak: Leak::NONE,
            model_bytes: DEFAULT_MODEL_BYTES,
            holders: Holders::one(),
        }
    }

    /// What its releases are priced by.
    pub fn tariff(&self) -> Tariff {
        Tariff {
            record_bound: self.record_bound,
            leak: self.leak,
            holders: self.holders.clone(),
        }
    }

    /// Most cells the model's junction tree may have.
    pub fn model_cells(&self) -> usize {
        self.model_bytes / CELL_BYTES
    }

    /// Checks what no mechanism can do without.
    ///
    /// # Errors
    /// An empty domain, attributes that nobody holds, a workload outside it, a budget of zero, a model cap below the 1-ways.
    pub fn check(&self) -> Result<(), Error> {
        if self.domain.is_empty() {
            return Err(Error::EmptyDomain(None));
        }
        if let Some(empty) = self.domain.sizes().iter().position(|&n| n == 0) {
            return Err(Error::EmptyDomain(Some(empty)));
        }
        let owners = self
            .holders
            .owners()
            .map_or(self.domain.len(), <[u32]>::len);
        if owners != self.domain.len() {
            return Err(Error::Owners(self.holders.count()));
        }
        if let Some(pair) = self.workload.pairs.iter().find(|pair| {
            let [a, b] = pair.attributes;
            a >= b || b >= self.domain.len()
        }) {
            let [a, b] = pair.attributes;
            return Err(Error::WorkloadPair(a, b));
        }
        if self.workload.pairs.is_empty() && self.domain.len() > 1 {
            return Err(Error::EmptyWorkload);
        }
        if self.rho == Rho::ZERO {
            return Err(Error::BudgetTooSmall(self.rho));
        }
        let cells = self.domain.columns();
        if cells > self.model_cells() {
            return Err(Error::ModelCap {
                cells,
                cap: self.model_bytes,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pairs_weights_add_up() {
        let domain = Domain::new(vec![2, 3, 4, 5]);
        let workload = Workload::all_pairs(&domain);
        assert_eq!(workload.pairs().len(), 6);
        assert_eq!(workload.weight(), 6.0);
        assert_eq!(workload.weight_of(2), 3.0);
        // A pair overlaps itself by 2 and the 2 (d - 2) pairs that share an attribute by 1.
        let weights = workload.attribute_weights(&domain);
        assert_eq!(weights[0] + weights[3], 2 + 4);
        assert_eq!(weights, [3; 4]);
    }

    #[test]
    fn a_target_raises_its_pairs_alone() {
        let domain = Domain::new(vec![2; 4]);
        let workload = Workload::all_pairs_with_target(&domain, 1, 3);
        assert_eq!(workload.weight(), 3.0 + 9.0);
        assert_eq!(workload.weight_of(0), 2.0 + 3.0);
    }

    #[test]
    fn pairs_outside_the_domain_or_repeated_are_refused() {
        let domain = Domain::new(vec![2; 3]);
        assert!(matches!(
            Workload::new(&domain, [([0, 3], 1)]),
            Err(Error::WorkloadPair(0, 3))
        ));
        assert!(matches!(
            Workload::new(&domain, [([1, 1], 1)]),
            Err(Error::WorkloadPair(1, 1))
        ));
        assert!(matches!(
            Workload::new(&domain, [([0, 1], 1), ([1, 0], 2)]),
            Err(Error::RepeatedPair(1, 0))
        ));
        let sorted = Workload::new(&domain, [([2, 1], 1), ([1, 0], 2), ([0, 2], 0)]).unwrap();
        let pairs: Vec<_> = sorted.pairs().iter().map(|p| p.attributes).collect();
        assert_eq!(pairs, [[0, 1], [1, 2]]);
    }

    #[test]
    fn jobs_that_cannot_run_are_refused() {
        let rho = Rho::from_f64_down(0.1).unwrap();
        let job = |sizes: Vec<usize>| Job::new(Domain::new(sizes), rho, 100);
        assert!(job(vec![2, 3]).check().is_ok());
        assert!(matches!(job(vec![]).check(), Err(Error::EmptyDomain(None))));
        assert!(matches!(
            job(vec![2, 0]).check(),
            Err(Error::EmptyDomain(Some(1)))
        ));
        let mut capped = job(vec![2, 3]);
        capped.model_bytes = 39;
        assert!(matches!(
            capped.check(),
            Err(Error::ModelCap { cells: 5, cap: 39 })
        ));
        let mut broke = job(vec![2, 3]);
        broke.rho = Rho::ZERO;
        assert!(matches!(broke.check(), Err(Error::BudgetTooSmall(_))));
    }
}
