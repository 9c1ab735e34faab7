//! Combinations of the same columns, computed from shared sums.
//!
//! A basis of an attribute's contrasts has one function for each group of its values: k on the group, minus 1
//! everywhere. That is k G - T, where G is the sum of the group's columns and T the sum of all columns. It takes
//! n + 2 k additions and products for an attribute, compared with n k term by term. Coarser groups are unions of
//! finer ones, whose sums are used again. A sum modulo a prime has one least residue, however it is computed, so
//! all ciphertexts stay the same.

use crate::scheme::ring::{Poly, Ring};
use crate::table::Combination;
use std::collections::BTreeMap;

/// Number of values that are combined per step: sums stay in the first-level cache.
const STRIP: usize = 512;

/// Number of distinct sums for which smaller sums are tried as parts. The trials are quadratic in this number, so
/// larger sums than these are computed from columns.
const MAX_SHARED: usize = 1024;

/// A recipe for combinations of inputs. Numbers from the number of inputs on refer to sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recipe {
    /// Sums of inputs and of earlier sums, by number.
    pub(crate) sums: Vec<Vec<usize>>,
    /// The terms of each combination: coefficients and numbers of inputs or sums.
    pub(crate) outputs: Vec<Vec<(i64, usize)>>,
}

/// Combinations that share columns.
#[derive(Debug)]
pub(crate) struct Family {
    /// The inputs of the recipe.
    pub(crate) columns: Vec<usize>,
    /// The numbers of the combinations that are the recipe's outputs.
    pub(crate) members: Vec<usize>,
    pub(crate) recipe: Recipe,
}

/// The inputs of each coefficient, ascending.
type Classes = BTreeMap<i64, Vec<usize>>;

/// Coefficients, and the sets of inputs whose sums they multiply.
type Terms = Vec<(i64, Vec<usize>)>;

impl Recipe {
    /// Applies the recipe to polynomials over the ciphertext primes, all in transform form.
    #[expect(
        clippy::indexing_slicing,
        reason = "a recipe refers only to its inputs and earlier sums; limbs have the ring's degree"
    )]
    pub(crate) fn combine(&self, ring: &Ring, inputs: &[&Poly]) -> Vec<Poly> {
        let mut outputs = vec![ring.zero(); self.outputs.len()];
        let mut sums = vec![[0; STRIP]; self.sums.len()];
        for (j, limb) in ring.ciphertext_limbs().iter().enumerate() {
            let m = limb.modulus;
            let factor = |&(c, k): &(i64, usize)| (m.mont(m.residue_of(i128::from(c))), k);
            let factors = |terms: &Vec<_>| terms.iter().map(factor).collect();
            let factors: Vec<Vec<(u64, usize)>> = self.outputs.iter().map(factors).collect();
            for start in (0..ring.degree()).step_by(STRIP) {
                let strip = start..ring.degree().min(start + STRIP);
                for (i, parts) in self.sums.iter().enumerate() {
                    let (earlier, rest) = sums.split_at_mut(i);
                    let part = |&k: &usize| match k.checked_sub(inputs.len()) {
                        None => &inputs[k].limb(j)[strip.clone()],
                        Some(k) => &earlier[k][..strip.len()],
                    };
                    let sum = &mut rest[0][..strip.len()];
                    m.sum(parts.iter().map(part), sum);
                }
                for (terms, output) in factors.iter().zip(&mut outputs) {
                    let term = |&(factor, k): &(u64, usize)| match k.checked_sub(inputs.len()) {
                        None => (factor, &inputs[k].limb(j)[strip.clone()]),
                        Some(k) => (factor, &sums[k][..strip.len()]),
                    };
                    let terms: Vec<(u64, &[u64])> = terms.iter().map(term).collect();
                    m.combine(&terms, &mut output.limb_mut(j)[strip.clone()]);
                }
            }
        }
        outputs
    }

    /// Makes a recipe for combinations of `inputs` inputs, given by number.
    pub(crate) fn new(inputs: usize, combinations: &[Vec<(usize, i64)>]) -> Self {
        let classes: Vec<Option<Classes>> = combinations.iter().map(|c| classes(c)).collect();
        let mut uses: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        for classes in classes.iter().flatten() {
            *uses.entry(all(classes)).or_default() += 1;
        }
        let terms: Vec<Option<Terms>> = classes
            .into_iter()
            .map(|classes| classes.map(|classes| terms(classes, &uses)))
            .collect();
        let mut sets: Vec<Vec<usize>> = (terms.iter().flatten().flatten())
            .filter(|(_, set)| set.len() > 1)
            .map(|(_, set)| set.clone())
            .collect();
        sets.sort_unstable_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        sets.dedup();
        let numbers: BTreeMap<&[usize], usize> =
            sets.iter().map(Vec::as_slice).zip(inputs..).collect();
        let number = |set: &Vec<usize>| match set[..] {
            [only] => Some(only),
            _ => numbers.get(set.as_slice()).copied(),
        };
        let output = |(terms, combination): (&Option<Vec<_>>, &Vec<(usize, i64)>)| match terms {
            Some(terms) => {
                let numbered = terms.iter();
                let numbered = numbered.filter_map(|(c, set)| Some((*c, number(set)?)));
                numbered.collect()
            }
            // A combination that names an input twice is computed term by term.
            None => combination.iter().map(|&(input, c)| (c, input)).collect(),
        };
        Self {
            outputs: terms.iter().zip(combinations).map(output).collect(),
            sums: covers(inputs, &sets),
        }
    }
}

/// Groups a combination's inputs by coefficient. Returns `None` if it names an input twice.
fn classes(combination: &[(usize, i64)]) -> Option<Classes> {
    let mut inputs: Vec<usize> = combination.iter().map(|&(input, _)| input).collect();
    inputs.sort_unstable();
    if inputs
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a == b))
    {
        return None;
    }
    let mut classes = Classes::new();
    for &(input, c) in combination.iter().filter(|&&(_, c)| c != 0) {
        classes.entry(c).or_default().push(input);
    }
    classes.values_mut().for_each(|class| class.sort_unstable());
    Some(classes)
}

/// Returns all inputs of a combination, ascending.
fn all(classes: &Classes) -> Vec<usize> {
    let mut all: Vec<usize> = classes.values().flatten().copied().collect();
    all.sort_unstable();
    all
}

/// Returns coefficients and the sets whose sums they multiply. Usually these are each coefficient and its inputs. If
/// it saves additions, they are the most common coefficient with all inputs, and each other coefficient's difference
/// from it. `uses` has the number of combinations with the same inputs.
fn terms(classes: Classes, uses: &BTreeMap<Vec<usize>, usize>) -> Terms {
    let all = all(&classes);
    let uses = uses.get(&all).copied().unwrap_or_default();
    let commonest = classes.iter().max_by_key(|(_, class)| class.len());
    if let Some((&base, class)) = commonest
        && classes.len() > 1
        && class.len().saturating_mul(uses) > all.len()
        && classes.keys().all(|c| c.checked_sub(base).is_some())
    {
        let others = classes.into_iter().filter(|&(c, _)| c != base);
        let others = others.map(|(c, class)| (c.wrapping_sub(base), class));
        return [(base, all)].into_iter().chain(others).collect();
    }
    classes.into_iter().collect()
}

/// Returns the parts of each set, from small to large: inputs and earlier sums. It takes the largest earlier sums
/// that are within the rest of the set first.
fn covers(inputs: usize, sets: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let masks: Vec<Mask> = sets.iter().map(|set| Mask::of(inputs, set)).collect();
    let cover = |(i, set): (usize, &Mask)| {
        let mut rest = set.clone();
        let mut parts = Vec::new();
        for (k, smaller) in masks.iter().enumerate().take(i.min(MAX_SHARED)).rev() {
            if rest.holds(smaller) {
                rest.remove(smaller);
                parts.push(inputs + k);
            }
        }
        parts.extend(rest.members());
        parts
    };
    masks.iter().enumerate().map(cover).collect()
}

/// A set of inputs, with one bit for each.
#[derive(Clone)]
struct Mask(Vec<u64>);

impl Mask {
    fn of(inputs: usize, set: &[usize]) -> Self {
        let mut words = vec![0; inputs.div_ceil(64)];
        for &input in set {
            if let Some(word) = words.get_mut(input / 64) {
                *word |= 1 << (input % 64);
            }
        }
        Self(words)
    }

    fn holds(&self, other: &Self) -> bool {
        let mut words = self.0.iter().zip(&other.0);
        words.all(|(a, b)| a & b == *b)
    }

    fn remove(&mut self, other: &Self) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a &= !b;
        }
    }

    fn members(&self) -> impl Iterator<Item = usize> {
        let word = |(i, &word): (usize, &u64)| {
            (0..64).filter_map(move |bit| (word >> bit & 1 == 1).then_some(64 * i + bit))
        };
        self.0.iter().enumerate().flat_map(word)
    }
}

/// Groups combinations into families that share columns.
pub(crate) fn families(combinations: &[&Combination]) -> Vec<Family> {
    let mut columns: Vec<usize> = (combinations.iter())
        .flat_map(|combination| combination.0.iter().map(|&(column, _)| column))
        .collect();
    columns.sort_unstable();
    columns.dedup();
    let places: BTreeMap<usize, usize> = columns.iter().copied().zip(0..).collect();
    let place = |&(column, _): &(usize, i64)| places.get(&column).copied();
    let mut groups = Groups((0..columns.len()).collect());
    for combination in combinations {
        let mut named = combination.0.iter().filter_map(place);
        if let Some(first) = named.next() {
            named.for_each(|other| groups.join(first, other));
        }
    }
    // Combinations that name no column form a family too.
    let mut members: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (i, combination) in combinations.iter().enumerate() {
        let group = combination.0.first().and_then(place);
        let group = group.map(|place| groups.first(place));
        members.entry(group).or_default().push(i);
    }
    members
        .into_values()
        .map(|members| family(combinations, members))
        .collect()
}

fn family(combinations: &[&Combination], members: Vec<usize>) -> Family {
    let terms = |&member: &usize| combinations.get(member).map_or(&[][..], |c| &c.0);
    let named = members.iter().flat_map(terms).map(|&(column, _)| column);
    let mut columns: Vec<usize> = named.collect();
    columns.sort_unstable();
    columns.dedup();
    let numbered = |member: &usize| {
        let terms = terms(member).iter();
        // Every column is in `columns`.
        terms
            .filter_map(|&(column, c)| Some((columns.binary_search(&column).ok()?, c)))
            .collect()
    };
    let combinations: Vec<Vec<(usize, i64)>> = members.iter().map(numbered).collect();
    Family {
        recipe: Recipe::new(columns.len(), &combinations),
        columns,
        members,
    }
}

/// Disjoint sets: each element leads to another element of its set, and finally to the set's first.
struct Groups(Vec<usize>);

impl Groups {
    fn first(&mut self, element: usize) -> usize {
        let mut at = element;
        while let Some(&next) = self.0.get(at)
            && next != at
        {
            // Halves the path while walking it.
            let after = self.0.get(next).copied().unwrap_or(next);
            if let Some(place) = self.0.get_mut(at) {
                *place = after;
            }
            at = next;
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.first(a), self.first(b));
        if let Some(place) = self.0.get_mut(a.max(b)) {
            *place = a.min(b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Applies a recipe to integers.
    fn made(recipe: &Recipe, inputs: &[i128]) -> Vec<i128> {
        let mut values = inputs.to_vec();
        for sum in &recipe.sums {
            values.push(sum.iter().map(|&k| values[k]).sum());
        }
        let output = |terms: &Vec<(i64, usize)>| {
            let products = terms.iter().map(|&(c, k)| i128::from(c) * values[k]);
            products.sum()
        };
        recipe.outputs.iter().map(output).collect()
    }

    fn additions(recipe: &Recipe) -> usize {
        let sums = recipe.sums.iter().map(Vec::len).sum::<usize>();
        sums + recipe.outputs.iter().map(Vec::len).sum::<usize>()
    }

    /// Returns the centred basis of n values in k equal groups.
    fn centred(n: usize, k: usize) -> Vec<Vec<(usize, i64)>> {
        let function = |group: usize| {
            let own = move |x: usize| i64::from(x * k / n == group);
            (0..n).map(|x| (x, k as i64 * own(x) - 1)).collect()
        };
        (0..k).map(function).collect()
    }

    #[test]
    fn each_contrast_uses_each_column_once() {
        // 1-ways: one sum of all columns, then two terms each.
        assert_eq!(additions(&Recipe::new(32, &centred(32, 32))), 32 + 64);
        // Each group's sum once, the sum of the groups, then two terms each.
        let groups = Recipe::new(32, &centred(32, 8));
        assert_eq!(additions(&groups), 32 + 8 + 16);
        // Coarser groups are sums of finer ones.
        let both = [centred(32, 8), centred(32, 4)].concat();
        assert_eq!(additions(&Recipe::new(32, &both)), 32 + 8 + 4 + 16 + 8);
        // A single contrast: both groups, two terms.
        assert_eq!(additions(&Recipe::new(32, &centred(32, 2)[..1])), 32 + 2);
        // Two values: no sums to share.
        assert_eq!(additions(&Recipe::new(2, &centred(2, 2)[..1])), 2);
    }

    #[test]
    fn combinations_are_grouped_by_shared_columns() {
        let combination =
            |columns: &[usize]| Combination(columns.iter().map(|&c| (c, 2)).collect());
        let combinations = [
            combination(&[7, 9]),
            combination(&[1]),
            combination(&[]),
            combination(&[3, 7]),
            combination(&[1, 4]),
        ];
        let families = families(&combinations.iter().collect::<Vec<_>>());
        let found: Vec<(Vec<usize>, Vec<usize>)> = (families.into_iter())
            .map(|family| (family.columns, family.members))
            .collect();
        let wanted = [
            (vec![], vec![2]),
            (vec![1, 4], vec![1, 4]),
            (vec![3, 7, 9], vec![0, 3]),
        ];
        assert_eq!(found, wanted);
    }

    proptest! {
        #[test]
        fn recipes_compute_their_statistics(
            combinations in prop::collection::vec(
                prop::collection::vec((0usize..9, prop_oneof![-2i64..3, Just(i64::MIN), Just(i64::MAX)]), 0..12),
                0..12,
            ),
        ) {
            let inputs: Vec<i128> = (0..9).map(|i| i128::from(7u32.pow(i))).collect();
            let recipe = Recipe::new(inputs.len(), &combinations);
            let wanted: Vec<i128> = combinations
                .iter()
                .map(|terms| terms.iter().map(|&(k, c)| i128::from(c) * inputs[k]).sum())
                .collect();
            prop_assert_eq!(made(&recipe, &inputs), wanted);
        }
    }

    #[test]
    fn combinations_of_many_inputs_are_reduced() {
        let moduli = [0x0fff_ffff_ffff_c001, 0x0fff_f316_e37b_0001];
        let ring = Ring::new(64, &moduli, &[0x0fff_ffff_fffe_8001]).unwrap();
        // The largest residues, and more of them than fit between two reductions.
        let ones = ring.transform_signed(&[-1; 64]);
        for (count, coefficient) in [(0, 5), (1, -7), (100, 1), (1000, -1)] {
            let terms = (0..count).map(|k| (k, coefficient)).collect();
            let recipe = Recipe::new(count, &[terms]);
            let as_they_stand = Recipe {
                sums: Vec::new(),
                outputs: vec![(0..count).map(|k| (coefficient, k)).collect()],
            };
            let wanted = [-(count as i128) * i128::from(coefficient); 64];
            let wanted = [ring.transform_signed(&wanted)];
            for recipe in [recipe, as_they_stand] {
                assert_eq!(recipe.combine(&ring, &vec![&ones; count]), wanted);
            }
        }
    }
}
