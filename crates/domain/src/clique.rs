//! Attribute sets and the sizes of their marginals.

use serde::{Deserialize, Serialize};

/// A fine attribute that depends on a coarse one. Given the coarse value, it is independent of
/// everything else, and each coarse value allows only some of its values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Digit {
    coarse: usize,
    fine: usize,
    parts: Vec<u32>,
}

impl Digit {
    /// Makes `fine` a digit of `coarse`, with `parts[v]` values under value v of `coarse`.
    pub fn new(coarse: usize, fine: usize, parts: Vec<u32>) -> Self {
        Self {
            coarse,
            fine,
            parts,
        }
    }

    /// The coarse attribute.
    pub fn coarse(&self) -> usize {
        self.coarse
    }

    /// The fine attribute.
    pub fn fine(&self) -> usize {
        self.fine
    }

    /// Number of fine values under each coarse value. These are the first values of the fine
    /// attribute.
    pub fn parts(&self) -> &[u32] {
        &self.parts
    }

    /// The two attributes.
    pub fn clique(&self) -> Clique {
        Clique::new([self.coarse, self.fine])
    }
}

/// The number of values of each attribute, by attribute index, and which attributes are digits of
/// others.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Domain {
    sizes: Vec<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    digits: Vec<Digit>,
}

impl Domain {
    /// Builds a domain from attribute sizes (each at least 1), without digits.
    pub fn new(sizes: Vec<usize>) -> Self {
        Self::with_digits(sizes, Vec::new())
    }

    /// Builds a domain from attribute sizes (each at least 1), some of which are digits of others.
    pub fn with_digits(sizes: Vec<usize>, digits: Vec<Digit>) -> Self {
        Self { sizes, digits }
    }

    /// The digits: fine attributes, each with its coarse attribute.
    pub fn digits(&self) -> &[Digit] {
        &self.digits
    }

    /// Whether an attribute is a digit of another.
    pub fn is_digit(&self, attribute: usize) -> bool {
        self.digits.iter().any(|digit| digit.fine == attribute)
    }

    /// Returns the fine attribute of the first invalid digit. A digit is invalid if its attributes
    /// do not exist or are in the wrong order, if the coarse one is itself a digit, if the fine one
    /// belongs to several, or if the numbers of values do not fit.
    pub fn wrong_digit(&self) -> Option<usize> {
        let fits = |digit: &Digit| {
            let coarse = self.sizes.get(digit.coarse);
            let fine = self.sizes.get(digit.fine).copied().unwrap_or(0);
            let parts = digit.parts.iter().map(|&parts| parts as usize);
            let hangs = self
                .digits
                .iter()
                .filter(|other| other.fine == digit.fine)
                .count()
                == 1;
            coarse == Some(&digit.parts.len())
                && digit.coarse < digit.fine
                && hangs
                && !self.is_digit(digit.coarse)
                && parts.into_iter().all(|parts| (1..=fine).contains(&parts))
        };
        self.digits
            .iter()
            .find(|digit| !fits(digit))
            .map(Digit::fine)
    }

    /// Returns the attributes that are not digits, ascending. Workloads consist of them.
    pub fn coarse_attributes(&self) -> Vec<usize> {
        (0..self.len()).filter(|&a| !self.is_digit(a)).collect()
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

    /// Returns the number of cells of the marginal over `clique`, or `None` if it does not fit
    /// `usize`.
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

    /// Returns all pairs of attributes that are not digits, in lexicographic order: the default
    /// workload.
    pub fn pairs(&self) -> Vec<Clique> {
        self.subsets(2).collect()
    }

    /// Returns all sets of `size` attributes that are not digits, in lexicographic order: a
    /// workload.
    pub fn subsets(&self, size: usize) -> Subsets {
        let attributes = self.coarse_attributes();
        let next = (size <= attributes.len()).then(|| (0..size).collect());
        Subsets { attributes, next }
    }
}

/// Iterator over all sets of attributes of one size; see [`Domain::subsets`].
#[derive(Clone, Debug)]
pub struct Subsets {
    attributes: Vec<usize>,
    /// Indices into `attributes`.
    next: Option<Vec<usize>>,
}

impl Iterator for Subsets {
    type Item = Clique;

    fn next(&mut self) -> Option<Clique> {
        let current = self.next.take()?;
        let size = current.len();
        // The last index that can still grow; all indices after it are at their maximum.
        let place = (0..size)
            .rev()
            .find(|&i| current[i] + size < self.attributes.len() + i);
        self.next = place.map(|place| {
            let mut next = current.clone();
            let first = next[place] + 1;
            for (offset, attribute) in next[place..].iter_mut().enumerate() {
                *attribute = first + offset;
            }
            next
        });
        // Indices are ascending, and so are the attributes at them.
        Some(Clique(
            current
                .iter()
                .map(|&place| self.attributes[place])
                .collect(),
        ))
    }
}

/// A set of attributes, sorted and without repeats. The cells of its marginal are in row-major
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
    /// Builds a clique from attribute indices in any order, and drops repeats.
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

    /// Returns whether every attribute of `self` belongs to `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().all(|&a| other.contains(a))
    }

    /// Returns the attributes in either clique.
    pub fn union(&self, other: &Self) -> Self {
        Self::new(self.0.iter().chain(&other.0).copied())
    }

    /// Returns the attributes in both cliques.
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
    fn digits_are_excluded_from_workloads() {
        let digit = Digit::new(1, 2, vec![2, 1]);
        let domain = Domain::with_digits(vec![3, 2, 2, 4], vec![digit]);
        assert_eq!(domain.wrong_digit(), None);
        let pairs: Vec<Clique> = domain.pairs();
        assert_eq!(pairs, [[0, 1], [0, 3], [1, 3]].map(Clique::new));
        assert_eq!(
            domain.subsets(3).collect::<Vec<_>>(),
            [Clique::new([0, 1, 3])]
        );
        let json = serde_json::to_string(&Domain::new(vec![2])).unwrap();
        assert_eq!(json, r#"{"sizes":[2]}"#);
        for wrong in [
            Digit::new(1, 4, vec![2, 1]),
            Digit::new(1, 2, vec![2]),
            Digit::new(1, 2, vec![2, 3]),
            Digit::new(1, 2, vec![2, 0]),
            Digit::new(3, 2, vec![1; 4]),
        ] {
            let domain = Domain::with_digits(vec![3, 2, 2, 4], vec![wrong.clone()]);
            assert_eq!(domain.wrong_digit(), Some(wrong.fine()), "{wrong:?}");
        }
    }

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
