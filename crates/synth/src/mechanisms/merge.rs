//! Nested merges of an attribute's categories (docs/MECHANISM.md, C step 2).

/// The merges of one attribute into 1, 2, ..., n contiguous groups, each refining the one before.
/// Each step splits the heaviest group that has more than one category, at the cut nearest to half
/// its mass.
#[derive(Clone, Debug, PartialEq)]
pub struct Merges {
    /// Cuts in the order of the splits. A cut c separates categories c - 1 and c.
    cuts: Vec<usize>,
    /// `resolved[k - 1]` is the share of the attribute's variation that k groups resolve.
    resolved: Vec<f64>,
}

/// Categories `start..end` and their mass.
#[derive(Clone, Copy)]
struct Group {
    start: usize,
    end: usize,
    mass: f64,
}

impl Merges {
    /// Returns the merges for released category masses, which are at least 0 and need not add up to
    /// 1.
    pub fn new(masses: &[f64]) -> Self {
        let total: f64 = masses.iter().sum();
        let scale = if total > 0.0 { 1.0 / total } else { 0.0 };
        let shares: Vec<f64> = masses.iter().map(|mass| mass * scale).collect();
        let variation = if total > 0.0 {
            1.0 - sum_of_squares(shares.iter().copied())
        } else {
            0.0
        };
        let mut groups = vec![Group {
            start: 0,
            end: shares.len(),
            mass: 1.0,
        }];
        let mut cuts = Vec::with_capacity(shares.len().saturating_sub(1));
        let mut resolved = vec![0.0];
        while let Some(index) = heaviest(&groups) {
            let (left, right) = split(groups[index], &shares);
            groups[index] = left;
            groups.push(right);
            cuts.push(right.start);
            let within = 1.0 - sum_of_squares(groups.iter().map(|group| group.mass));
            // If one category has the whole mass, no merge resolves anything.
            let share = if variation > 1e-12 {
                (within / variation).clamp(0.0, 1.0)
            } else {
                0.0
            };
            resolved.push(share);
        }
        if let Some(last) = resolved.last_mut()
            && variation > 1e-12
        {
            *last = 1.0;
        }
        Self { cuts, resolved }
    }

    /// Returns the number of categories, which is also the largest number of groups.
    pub fn categories(&self) -> usize {
        self.cuts.len() + 1
    }

    /// Returns the group of each category in the merge into `k` groups (1 to n), in ascending
    /// order.
    pub fn groups(&self, k: usize) -> Vec<u32> {
        let mut cuts: Vec<usize> = self.cuts[..k.clamp(1, self.categories()) - 1].to_vec();
        cuts.sort_unstable();
        let mut groups = Vec::with_capacity(self.categories());
        let mut group = 0;
        for category in 0..self.categories() {
            if cuts.get(group) == Some(&category) {
                group += 1;
            }
            groups.push(group as u32);
        }
        groups
    }

    /// Returns g(k): the share of the attribute's variation, 1 - sum of squared masses, that k
    /// groups resolve. Returns 0 if the attribute does not vary or has one category.
    pub fn resolved(&self, k: usize) -> f64 {
        let variation = self.resolved.get(k.wrapping_sub(1));
        variation.copied().unwrap_or(0.0)
    }

    /// Returns the smallest k >= 2 with g(k) >= `share`, or n if no k is large enough.
    pub fn groups_resolving(&self, share: f64) -> usize {
        (2..=self.categories())
            .find(|&k| self.resolved(k) >= share)
            .unwrap_or(self.categories())
    }
}

fn sum_of_squares(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum()
}

/// Returns the heaviest group with more than one category, and the first among equals.
fn heaviest(groups: &[Group]) -> Option<usize> {
    let mut best: Option<usize> = None;
    for (index, group) in groups.iter().enumerate() {
        let heavier = best.is_none_or(|b| group.mass > groups[b].mass);
        if group.end - group.start > 1 && heavier {
            best = Some(index);
        }
    }
    best
}

/// Splits a group of at least two categories at the cut nearest to half its mass.
fn split(group: Group, shares: &[f64]) -> (Group, Group) {
    let mass: f64 = shares[group.start..group.end].iter().sum();
    let (mut cut, mut left, mut distance) = (group.start + 1, 0.0, f64::INFINITY);
    let mut before = 0.0;
    for candidate in group.start + 1..group.end {
        before += shares[candidate - 1];
        let from_half = (before - mass / 2.0).abs();
        if from_half < distance {
            (cut, left, distance) = (candidate, before, from_half);
        }
    }
    let first = Group {
        end: cut,
        mass: left,
        ..group
    };
    let second = Group {
        start: cut,
        mass: mass - left,
        ..group
    };
    (first, second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_are_nested_contiguous_and_complete() {
        let masses = [5.0, 1.0, 0.0, 7.0, 2.0, 2.0, 9.0, 0.0];
        let merges = Merges::new(&masses);
        assert_eq!(merges.categories(), 8);
        for k in 1..=8 {
            let groups = merges.groups(k);
            assert_eq!(groups[0], 0);
            assert_eq!(groups[7] as usize, k - 1);
            assert!(groups.windows(2).all(|w| w[1] == w[0] || w[1] == w[0] + 1));
            if k > 1 {
                let coarse = merges.groups(k - 1);
                let refines = groups
                    .windows(2)
                    .zip(coarse.windows(2))
                    .all(|(fine, coarse)| coarse[0] == coarse[1] || fine[0] != fine[1]);
                assert!(refines);
            }
        }
        assert_eq!(merges.groups(8), (0..8).collect::<Vec<u32>>());
    }

    #[test]
    fn first_cut_is_nearest_to_half_the_mass() {
        // Cuts leave 5, 6, 6, 13, 15, 17, 26 of 26 on the left: 13 is half.
        let merges = Merges::new(&[5.0, 1.0, 0.0, 7.0, 2.0, 2.0, 9.0, 0.0]);
        assert_eq!(merges.groups(2), [0, 0, 0, 0, 1, 1, 1, 1]);
    }

    #[test]
    fn resolution_is_the_resolved_share_of_variation() {
        let masses = [1.0, 2.0, 3.0, 4.0];
        let merges = Merges::new(&masses);
        let variation = 1.0 - (0.01 + 0.04 + 0.09 + 0.16);
        for k in 1..=4 {
            let mut grouped = vec![0.0; k];
            for (mass, &group) in masses.iter().zip(&merges.groups(k)) {
                grouped[group as usize] += mass / 10.0;
            }
            let within = 1.0 - grouped.iter().map(|p| p * p).sum::<f64>();
            assert!((merges.resolved(k) - within / variation).abs() < 1e-12);
        }
        assert_eq!(merges.resolved(4), 1.0);
        assert_eq!(merges.groups_resolving(0.0), 2);
        assert_eq!(merges.groups_resolving(1.0), 4);
    }

    #[test]
    fn constant_attribute_has_zero_resolution() {
        for masses in [&[3.0][..], &[0.0, 5.0, 0.0], &[0.0, 0.0]] {
            let merges = Merges::new(masses);
            assert!((1..=masses.len()).all(|k| merges.resolved(k) == 0.0));
            assert_eq!(merges.groups(masses.len()).len(), masses.len());
        }
    }
}
