//! The public input of a run: domain, workload, budget, bounds.

use fhaim_domain::{Clique, Domain};
use fhaim_dp::{Leak, Rho};
use serde::{Deserialize, Serialize};

use crate::{Error, Holders, Tariff};

/// Bytes of a model's cell.
pub const CELL_BYTES: usize = 8;

/// Largest size of a model unless the user sets another cap: 64 MB.
pub const DEFAULT_MODEL_BYTES: usize = 64_000_000;

/// The pairs and triples of attributes whose marginals should be accurate, with their weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    pairs: Vec<WeightedPair>,
    /// Triples, for mechanisms that run in the clear or among parties. The services do not compute
    /// triples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    triples: Vec<WeightedTriple>,
}

/// One triple of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightedTriple {
    /// The three attributes, ascending.
    pub attributes: [usize; 3],
    /// Weight of the triple's error; at least 1.
    pub weight: u32,
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
    /// Returns the pair as a clique.
    pub fn clique(&self) -> Clique {
        Clique::new(self.attributes)
    }
}

impl Workload {
    /// Returns all pairs of attributes that are not digits, each with weight 1, in lexicographic
    /// order.
    pub fn all_pairs(domain: &Domain) -> Self {
        let attributes = domain.coarse_attributes();
        let pairs = attributes.iter().enumerate().flat_map(|(place, &a)| {
            attributes[place + 1..].iter().map(move |&b| WeightedPair {
                attributes: [a, b],
                weight: 1,
            })
        });
        Self {
            pairs: pairs.collect(),
            triples: Vec::new(),
        }
    }

    /// Creates a workload of triples only, each with weight 1. The triples and their attributes may
    /// be in any order.
    ///
    /// # Errors
    /// A triple that is outside the domain, has fewer than three attributes, or is repeated.
    pub fn of_triples(
        domain: &Domain,
        triples: impl IntoIterator<Item = [usize; 3]>,
    ) -> Result<Self, Error> {
        let mut kept: Vec<[usize; 3]> = Vec::new();
        for mut triple in triples {
            triple.sort_unstable();
            let [a, b, c] = triple;
            if a == b || b == c || c >= domain.len() || kept.contains(&triple) {
                return Err(Error::WorkloadTriple(triple));
            }
            kept.push(triple);
        }
        kept.sort_unstable();
        let weighted = |attributes| WeightedTriple {
            attributes,
            weight: 1,
        };
        Ok(Self {
            pairs: Vec::new(),
            triples: kept.into_iter().map(weighted).collect(),
        })
    }

    /// Returns the pairs within the workload's sets. Each pair has the sum of the weights of the
    /// sets that contain it. Use it for mechanisms that do not support triples.
    pub fn within_pairs(&self) -> Self {
        let mut weights: std::collections::BTreeMap<[usize; 2], u32> = self
            .pairs
            .iter()
            .map(|pair| (pair.attributes, pair.weight))
            .collect();
        for triple in &self.triples {
            let [a, b, c] = triple.attributes;
            for pair in [[a, b], [a, c], [b, c]] {
                let weight = weights.entry(pair).or_default();
                *weight = weight.saturating_add(triple.weight);
            }
        }
        let weighted = |(attributes, weight)| WeightedPair { attributes, weight };
        Self {
            pairs: weights.into_iter().map(weighted).collect(),
            triples: Vec::new(),
        }
    }

    /// Returns all pairs, with weight `weight` for the pairs of attribute `target`.
    pub fn all_pairs_with_target(domain: &Domain, target: usize, weight: u32) -> Self {
        let mut workload = Self::all_pairs(domain);
        for pair in &mut workload.pairs {
            if pair.attributes.contains(&target) {
                pair.weight = weight.max(1);
            }
        }
        workload
    }

    /// Creates a workload of pairs (in either order) with weights. Weight 0 leaves a pair out.
    ///
    /// # Errors
    /// A pair that is outside the domain, has the same attribute twice, or is repeated.
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
        Ok(Self {
            pairs: kept,
            triples: Vec::new(),
        })
    }

    /// Returns the pairs, in lexicographic order.
    pub fn pairs(&self) -> &[WeightedPair] {
        &self.pairs
    }

    /// Returns the triples, in lexicographic order.
    pub fn triples(&self) -> &[WeightedTriple] {
        &self.triples
    }

    /// Returns all sets with their weights: the pairs, then the triples.
    pub fn sets(&self) -> impl Iterator<Item = (&[usize], u32)> {
        let pairs = self.pairs.iter();
        let pairs = pairs.map(|pair| (pair.attributes.as_slice(), pair.weight));
        let triples = self.triples.iter();
        pairs.chain(triples.map(|triple| (triple.attributes.as_slice(), triple.weight)))
    }

    /// Returns the sum of the weights of all sets.
    pub fn weight(&self) -> f64 {
        self.sets().map(|(_, weight)| f64::from(weight)).sum()
    }

    /// Returns the sum of the weights of the sets that contain `attribute`.
    pub fn weight_of(&self, attribute: usize) -> f64 {
        self.sets()
            .filter(|(attributes, _)| attributes.contains(&attribute))
            .map(|(_, weight)| f64::from(weight))
            .sum()
    }

    /// Returns the sum of the weights of each attribute's sets, by attribute. AIM's weight of a
    /// clique q is the sum over the workload's sets r of weight times |q and r|, which equals the
    /// sum of its attributes' weights. All are computed at once, since computing them set by set
    /// would take seconds for a wide table.
    pub fn attribute_weights(&self, domain: &Domain) -> Vec<u64> {
        let mut weights = vec![0; domain.len()];
        for (attributes, weight) in self.sets() {
            for &attribute in attributes {
                if let Some(sum) = weights.get_mut(attribute) {
                    *sum += u64::from(weight);
                }
            }
        }
        weights
    }
}

/// The input of one run of a mechanism: everything that it may know before its first release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MechanismJob {
    /// Sizes of the attributes.
    pub domain: Domain,
    /// The marginals that should be accurate.
    pub workload: Workload,
    /// The whole budget of the run, a hard cap.
    pub rho: Rho,
    /// N: the most records in a table of the dataset.
    pub record_bound: u64,
    /// Charge on each release in addition to its noise, for the residual ciphertext noise that the
    /// decryptor sees. Zero in the clear. The same value gives the same releases.
    pub leak: Leak,
    /// Most bytes that the model's junction tree may take.
    pub model_bytes: usize,
    /// The holders of the table, and on how many holders' noise its price relies.
    #[serde(default, skip_serializing_if = "Holders::is_one")]
    pub holders: Holders,
}

impl MechanismJob {
    /// Creates a job over all pairs, with the default model cap and no leak.
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

    /// Returns the tariff of its releases.
    pub fn tariff(&self) -> Tariff {
        Tariff {
            record_bound: self.record_bound,
            leak: self.leak,
            holders: self.holders.clone(),
        }
    }

    /// Returns the most cells that the model's junction tree may have.
    pub fn model_cells(&self) -> usize {
        self.model_bytes / CELL_BYTES
    }

    /// Checks the job for a mechanism that does not support triples: as [`MechanismJob::check`].
    ///
    /// # Errors
    /// Those of [`MechanismJob::check`], and [`Error::PairsOnly`].
    pub fn check_pairs(&self) -> Result<(), Error> {
        match self.workload.triples.first() {
            Some(triple) => Err(Error::PairsOnly(triple.attributes)),
            None => self.check(),
        }
    }

    /// Checks the requirements that all mechanisms have.
    ///
    /// # Errors
    /// An empty domain, attributes without a holder, a workload outside the domain, a budget of
    /// zero, a model cap below the 1-ways.
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
        if let Some(triple) = self.workload.triples.iter().find(|triple| {
            let [a, b, c] = triple.attributes;
            a >= b || b >= c || c >= self.domain.len()
        }) {
            return Err(Error::WorkloadTriple(triple.attributes));
        }
        if let Some(digit) = self.domain.wrong_digit() {
            return Err(Error::WrongDigit(digit));
        }
        if self.workload.sets().next().is_none() && self.domain.coarse_attributes().len() > 1 {
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
    use fhaim_domain::Digit;

    #[test]
    fn attribute_weights_add_up_over_all_pairs() {
        let domain = Domain::new(vec![2, 3, 4, 5]);
        let workload = Workload::all_pairs(&domain);
        assert_eq!(workload.pairs().len(), 6);
        assert_eq!(workload.weight(), 6.0);
        assert_eq!(workload.weight_of(2), 3.0);
        // A pair overlaps itself by 2, and the 2 (d - 2) pairs that share one attribute with it by
        // 1.
        let weights = workload.attribute_weights(&domain);
        assert_eq!(weights[0] + weights[3], 2 + 4);
        assert_eq!(weights, [3; 4]);
    }

    #[test]
    fn target_weight_raises_only_pairs_of_the_target() {
        let domain = Domain::new(vec![2; 4]);
        let workload = Workload::all_pairs_with_target(&domain, 1, 3);
        assert_eq!(workload.weight(), 3.0 + 9.0);
        assert_eq!(workload.weight_of(0), 2.0 + 3.0);
    }

    #[test]
    fn invalid_or_repeated_workload_pairs_are_rejected() {
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
    fn triples_have_overlap_weights_and_convert_to_pairs() {
        let domain = Domain::new(vec![2; 4]);
        let workload = Workload::of_triples(&domain, [[2, 0, 1], [1, 2, 3]]).unwrap();
        assert_eq!(workload.triples()[0].attributes, [0, 1, 2]);
        assert_eq!(workload.attribute_weights(&domain), [1, 2, 2, 1]);
        assert_eq!((workload.weight(), workload.weight_of(3)), (2.0, 1.0));
        let pairs = workload.within_pairs();
        let expected = [
            ([0, 1], 1),
            ([0, 2], 1),
            ([1, 2], 2),
            ([1, 3], 1),
            ([2, 3], 1),
        ];
        assert_eq!(pairs, Workload::new(&domain, expected).unwrap());
        for wrong in [[0, 0, 1], [1, 2, 4]] {
            assert!(matches!(
                Workload::of_triples(&domain, [wrong]),
                Err(Error::WorkloadTriple(..))
            ));
        }
        assert!(matches!(
            Workload::of_triples(&domain, [[0, 1, 2], [2, 1, 0]]),
            Err(Error::WorkloadTriple(..))
        ));

        let mut job = MechanismJob::new(domain, Rho::from_f64_down(0.1).unwrap(), 100);
        job.workload = workload;
        assert!(job.check().is_ok());
        assert_eq!(job.check_pairs(), Err(Error::PairsOnly([0, 1, 2])));
        let written = serde_json::to_string(&Workload::all_pairs(&job.domain)).unwrap();
        assert!(
            !written.contains("triples"),
            "the format of stored jobs is unchanged"
        );
        let again = serde_json::to_string(&job).unwrap();
        assert_eq!(serde_json::from_str::<MechanismJob>(&again).unwrap(), job);
    }

    #[test]
    fn jobs_that_cannot_run_are_rejected() {
        let rho = Rho::from_f64_down(0.1).unwrap();
        let job = |sizes: Vec<usize>| MechanismJob::new(Domain::new(sizes), rho, 100);
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
        let digit = |parts| MechanismJob {
            domain: Domain::with_digits(vec![2, 3], vec![Digit::new(0, 1, parts)]),
            workload: Workload {
                pairs: Vec::new(),
                triples: Vec::new(),
            },
            ..job(vec![2, 3])
        };
        assert!(digit(vec![3, 1]).check().is_ok());
        assert!(matches!(
            digit(vec![3, 4]).check(),
            Err(Error::WrongDigit(1))
        ));
        let mut broke = job(vec![2, 3]);
        broke.rho = Rho::ZERO;
        assert!(matches!(broke.check(), Err(Error::BudgetTooSmall(_))));
    }
}
