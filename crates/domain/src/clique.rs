//! Attribute sets and the sizes of their marginals.

use serde::{Deserialize, Serialize};

/// The number of values of each attribute, by attribute index.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Domain {
    sizes: Vec<usize>,
}

impl Domain {
    /// A domain from attribute sizes (each at least 1).
    pub fn new(sizes: Vec<usize>) -> Self {
        Self { sizes }
    }

    /// Sizes by attribute index.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Number of attributes.
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Whether there is no attribute.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Number of values of attribute `attribute`.
    pub fn size(&self, attribute: usize) -> usize {
        self.sizes[attribute]
    }

    /// Number of cells of the marginal over `clique`, or `None` if it does not fit `usize`.
    pub fn cells(&self, clique: &Clique) -> Option<usize> {
        clique
            .attributes()
            .iter()
            .try_fold(1usize, |cells, &a| cells.checked_mul(self.sizes[a]))
    }

    /// Number of one-hot columns: the sum of all sizes.
    pub fn columns(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// All pairs of attributes, in lexicographic order: the default workload.
    pub fn pairs(&self) -> Vec<Clique> {
        let d = self.len();
        (0..d)
            .flat_map(|a| (a + 1..d).map(move |b| Clique::new([a, b])))
            .collect()
    }

    /// All sets of `size` attributes, in lexicographic order: a workload.
    pub fn subsets(&self, size: usize) -> Subsets {
        let next = (size <= self.len()).then(|| (0..size).collect());
        Subsets {
            attributes: self.len(),
            next,
        }
    }
}

/// Iterator over all sets of attributes of one size; see [`Domain::subsets`].
#[derive(Clone, Debug)]
pub struct Subsets {
    attributes: usize,
    next: Option<Vec<usize>>,
}

impl Iterator for Subsets {
    type Item = Clique;

    fn next(&mut self) -> Option<Clique> {
        let current = self.next.take()?;
        let size = current.len();
        // The last place that can still move right; all after it stand at their last.
        let place = (0..size)
            .rev()
            .find(|&i| current[i] + size < self.attributes + i);
        self.next = place.map(|place| {
            let mut next = current.clone();
            let first = next[place] + 1;
            for (offset, attribute) in next[place..].iter_mut().enumerate() {
                *attribute = first + offset;
            }
            next
        });
        Some(Clique(current))
    }
}

/// A set of attributes, sorted and without repeats. Cells of its marginal are in row-major
/// order of the sorted attributes (the last attribute varies fastest).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Vec<usize>")]
pub struct Clique(Vec<usize>);

impl From<Vec<usize>> for Clique {
    fn from(attributes: Vec<usize>) -> Self {
        Self::new(attributes)
    }
}

impl Clique {
    /// A clique from attribute indices in any order; repeats are dropped.
    pub fn new(attributes: impl IntoIterator<Item = usize>) -> Self {
        let mut attributes: Vec<usize> = attributes.into_iter().collect();
        attributes.sort_unstable();
        attributes.dedup();
        Self(attributes)
    }

    /// The attributes, ascending.
    pub fn attributes(&self) -> &[usize] {
        &self.0
    }

    /// Number of attributes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no attribute.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `attribute` belongs to the clique.
    pub fn contains(&self, attribute: usize) -> bool {
        self.0.binary_search(&attribute).is_ok()
    }

    /// Whether every attribute of `self` belongs to `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().all(|&a| other.contains(a))
    }

    /// The attributes in either.
    pub fn union(&self, other: &Self) -> Self {
        Self::new(self.0.iter().chain(&other.0).copied())
    }

    /// The attributes in both.
    pub fn intersection(&self, other: &Self) -> Self {
        Self(
            self.0
                .iter()
                .copied()
                .filter(|&a| other.contains(a))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsets_are_complete_and_in_order() {
        let domain = Domain::new(vec![2; 5]);
        assert_eq!(domain.subsets(2).collect::<Vec<_>>(), domain.pairs());
        let triples: Vec<Clique> = domain.subsets(3).collect();
        assert_eq!(triples.len(), 10);
        assert!(triples.is_sorted());
        assert_eq!(triples[9], Clique::new([2, 3, 4]));
        assert_eq!(domain.subsets(0).collect::<Vec<_>>(), [Clique::new([])]);
        assert_eq!(domain.subsets(5).count(), 1);
        assert_eq!(domain.subsets(6).count(), 0);
    }
}
